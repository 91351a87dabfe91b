//! A run goes on: the next packet of the same message over the same path, when nothing else wants to be sent. Nothing is decided here that
//! [`super::outbound`] would decide otherwise; what it would find out again is known.

use super::{Connection, Shared};
use crate::message::outgoing;
use crate::path::inflight::NONE;
use crate::path::send::PathState;
use crate::rate::controller::Controller;
use crate::time::Instant;
use crate::transmit::{HEADER_BUFFER, Transmit};

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// The next packet of a run, if it is as plain as the one before. Neither the first nor the last of a run or of a message.
    #[inline(always)]
    pub(crate) fn continue_run<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &mut Shared<R, V>,
        out: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        let number = self.run_message;
        let window = self.controller.window();
        if number == NONE
            || self.run_left == 0
            // The last of a run may hand its turn to another stream.
            || (self.run_left == 1 && self.active_count != 1)
            || !shared.template.is_of(self.local_id, number)
            || !self.lost_paths.is_empty()
            || !self.orphans.is_empty()
            || self.response_first != outgoing::NONE
            || self.regions_seen != shared.regions.withdrawals()
            || self.slots.is_nearly_full()
            // What follows is the first that is outstanding, and the waiting for the peer begins.
            || self.slots.used() == 0
            || u64::from(self.outstanding) << 16 >= u64::from(window)
        {
            return None;
        }
        let (path, data_window) = (self.run_path, self.data_window());
        let record = self.send_paths.at_mut(u16::from(path));
        if record.state != PathState::Active
            || record.inflight.len() >= u16::from(self.config.run)
            || record.next_psn.wrapping_sub(record.cumulative) >= data_window
        {
            return None;
        }
        let message = self.requests.at_mut(number);
        let (offset, length) = (message.cursor, self.agreed.payload_bytes);
        if message.length - offset <= u32::from(length) {
            return None;
        }
        let index = self.slots.allocate()?;
        message.cursor = offset + u32::from(length);
        message.outstanding += 1;
        self.queued_bytes = self.queued_bytes.saturating_sub(u64::from(length));
        let slot = self.slots.at_mut(index);
        slot.message = number;
        slot.length = length;
        slot.offset = offset;
        slot.attempt = message.attempt;
        slot.transmissions = 0;
        slot.psn = record.next_psn;
        record.next_psn = slot.psn.wrapping_add(1);
        let transmit = self.send_slot(now, shared, path, index, true, out);
        self.carried(path, window);
        transmit
    }

    /// A message's packets may make up runs no more: it is over, withdrawn, or begins again.
    pub(super) fn stop_run_of(&mut self, number: u16) {
        if self.run_message == number {
            self.run_message = NONE;
        }
    }
}
