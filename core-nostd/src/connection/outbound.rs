//! What is sent next: acknowledgments and other control first, then retransmissions, then new data.

use super::{Connection, Shared, Timer, due};
use crate::message::outgoing;
use crate::path::inflight::NONE;
use crate::rate::controller::{Controller, ONE_PACKET};
use crate::time::{Duration, Instant};
use crate::transmit::{Class, HEADER_BUFFER, Transmit};
use crate::wire::{ACK_BLOCK_SIZE, ACK_SIZE, AckKind, Flags, append_ack_block, encode_ack};

/// A packet that was sent so often is refused rather than lost.
const STUBBORN: u8 = 8;
/// Blocks of an ACK while packets are being lost.
const BLOCKS_UNDER_LOSS: u8 = 2;
/// Packets are being lost for so long after a gap: where more than a few in a hundred are, always.
const LOSS_BURST: Duration = Duration::from_micros(14);
/// How long after a gap acknowledgments are repeated.
pub(super) const GAP_MEMORY: Duration = Duration::from_micros(200);

/// With at most so many paths each carries its next packet, and brings its next acknowledgment, soon.
const SOON: u8 = 16;

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// The next datagram, if one may leave now.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(crate) fn poll_transmit<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &mut Shared<R, V>,
        out: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        if self.due != 0
            && let Some(transmit) = self.poll_control(now, shared, out)
        {
            return Some(transmit);
        }
        if !self.ack_now.is_empty() && self.is_open_or_lingering() {
            return self.acknowledge(now, shared, out);
        }
        if self.is_open() {
            self.poll_data(now, shared, out)
        } else {
            None
        }
    }

    /// Whether what is sent next tells the peer its share.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(crate) fn wants_hint(&self) -> bool {
        self.due != 0 || !self.ack_now.is_empty()
    }

    /// One ACK for the next path that is due, with more blocks for other paths if the endpoint bundles them.
    fn acknowledge<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &mut Shared<R, V>,
        out: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        let path = self.ack_now.next_from(self.ack_next).unwrap_or(0);
        self.ack_next = path.wrapping_add(1);
        self.acknowledged_now(path);
        let receive = self.receive_paths.at_mut(u16::from(path));
        let entropy = receive.reply;
        // spec: MR-PROBE-006
        let redirected = core::mem::take(&mut receive.redirected);
        let flags = Flags::NONE.with(Flags::REDIRECT, redirected);
        // spec: MR-HINT-003
        let block = receive.block(now, path, shared.hint_mbps);
        let first = out.first_chunk_mut::<ACK_SIZE>()?;
        let mut length = encode_ack(AckKind::Ack, flags, self.peer_id, &block, first);
        // Where packets are being lost acknowledgments are, too: one tells less, and what the last one said is said again, if the path's own next one is far off.
        // spec: MR-PATH-015
        let losing = now < self.gaps_until;
        let mut again =
            (self.agreed.paths > SOON && losing && self.ack_last != path).then_some(self.ack_last);
        self.ack_last = path;
        let blocks = if now + GAP_MEMORY < self.gaps_until + LOSS_BURST {
            shared.config.ack_blocks.min(BLOCKS_UNDER_LOSS)
        } else {
            shared.config.ack_blocks
        };
        let mut left = blocks - 1 + u8::from(again.is_some());
        while left != 0
            && let Some(path) = self
                .ack_now
                .next_from(self.ack_next)
                .or_else(|| self.ack_later.next_from(self.ack_next))
                .filter(|_| left > u8::from(again.is_some()))
                .or_else(|| again.take())
            && let Some(place) = out
                .get_mut(length..)
                .and_then(|rest| rest.first_chunk_mut::<ACK_BLOCK_SIZE>())
        {
            self.ack_next = path.wrapping_add(1);
            self.acknowledged_now(path);
            let receive = self.receive_paths.at(u16::from(path));
            length += append_ack_block(&receive.block(now, path, shared.hint_mbps), place);
            left -= 1;
        }
        if self.ack_later.is_empty() {
            self.timers.clear(Timer::Ack);
        }
        self.statistics.acks_sent += 1;
        // spec: MR-PATH-015
        let plane = self.send_paths.at(u16::from(path)).plane;
        self.transmit(plane, entropy, Class::Control, length)
    }

    #[inline]
    fn acknowledged_now(&mut self, path: u8) {
        self.ack_now.remove(path);
        self.ack_later.remove(path);
        self.receive_paths.at_mut(u16::from(path)).unacknowledged = 0;
    }

    #[cfg_attr(not(feature = "small"), inline(always))]
    fn poll_data<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &mut Shared<R, V>,
        out: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        let wants = !self.lost_paths.is_empty()
            || !self.orphans.is_empty()
            || self.active_count != 0
            || self.response_first != outgoing::NONE;
        if !wants {
            self.limited = false;
            return None;
        }
        let window = self.controller.window();
        // A window holds something, so this is not so when nothing is outstanding.
        // spec: MR-CC-001
        if u64::from(self.outstanding) << 16 >= u64::from(window) {
            self.limited = true;
            if window < ONE_PACKET {
                // A run would not wait.
                self.run_message = NONE;
            }
            return None;
        }
        if window < ONE_PACKET
            && let Some(at) = self.paced_below_one(now, window)
        {
            self.limited = true;
            self.timers.set(Timer::Pace, at);
            return None;
        }
        // The pacer does not break a run, which is to leave in one piece.
        // spec: MR-CC-012
        if let Some(at) = self.pacer.blocked_until(now).filter(|_| !self.in_run()) {
            self.limited = false;
            self.timers.set(Timer::Pace, at);
            return None;
        }
        // spec: MR-LOSS-003
        while let Some(path) = self.next_lost(shared.busy_planes) {
            // What the peer refuses is lost again and again: the reports of two sides must not wait for each other.
            if self.has_error()
                && let Some(transmit) = self.send_error(now, shared, window, out)
            {
                return Some(transmit);
            }
            let record = self.send_paths.at_mut(u16::from(path));
            let Some(index) = self.slots.pop(&mut record.lost) else {
                self.lost_paths.remove(path);
                continue;
            };
            if record.lost.is_empty() {
                self.lost_paths.remove(path);
            }
            // What is lost again and again lets other paths go first.
            let stubborn = self.slots.at(index).transmissions >= STUBBORN;
            self.lost_next = if stubborn { path.wrapping_add(1) } else { 0 };
            if crate::planted::Bug::NewPsnOnRetransmission.is_planted() {
                self.slots.at_mut(index).psn = record.next_psn;
                record.next_psn = record.next_psn.wrapping_add(1);
            }
            return self.send_slot(now, shared, path, index, false, out);
        }
        shared.held_back = shared.busy_planes != 0 && !self.lost_paths.is_empty();
        self.send_new(now, shared, window, out)
    }

    /// The same as [`Self::send_new`], when an ERROR waits.
    #[cold]
    #[inline(never)]
    fn send_error<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &mut Shared<R, V>,
        window: u32,
        out: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        self.send_new(now, shared, window, out)
    }

    /// When the next packet may leave under a window of less than one: srtt/W after the last.
    // spec: MR-CC-014
    #[cold]
    #[inline(never)]
    fn paced_below_one(&self, now: Instant, window: u32) -> Option<Instant> {
        let srtt = u64::from(self.rtt.smoothed_or(self.min_rtt_ns()));
        let pause = (srtt << 16) / u64::from(window.max(1));
        let at = self.data_sent_at + Duration::from_nanos(pause);
        (at > now).then_some(at)
    }

    /// Sends an orphan or the next piece of a message over the path whose turn it is.
    #[cfg_attr(not(feature = "small"), inline(always))]
    fn send_new<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &mut Shared<R, V>,
        window: u32,
        out: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        let full = self.slots.is_nearly_full() && (self.slots.is_full() || !self.has_error());
        if self.orphans.is_empty() && full {
            self.limited = true;
            return None;
        }
        let Some(path) = self.pick_path(window, shared.busy_planes) else {
            // Those that wait do so for their lines.
            let waiting = self.has_waiting();
            shared.held_back |= waiting;
            self.limited = !waiting;
            return None;
        };
        let index = match self.slots.pop(&mut self.orphans) {
            Some(index) => {
                self.run_message = NONE;
                index
            }
            None => match self.next_piece() {
                Some(piece) => {
                    let index = self.slots.allocate()?;
                    let goes_on = window >= ONE_PACKET
                        && Self::is_request(piece.message)
                        && self.requests.at(piece.message).has_unsent();
                    self.run_message = if goes_on { piece.message } else { NONE };
                    let attempt = self.message(piece.message).attempt;
                    let slot = self.slots.at_mut(index);
                    slot.message = piece.message;
                    slot.length = piece.length;
                    slot.offset = piece.offset;
                    slot.attempt = attempt;
                    slot.transmissions = 0;
                    if self.slots.used() == 1 {
                        self.something_outstanding(now);
                    }
                    index
                }
                None => {
                    self.limited = false;
                    self.unpick_path(path);
                    return None;
                }
            },
        };
        let record = self.send_paths.at_mut(u16::from(path));
        let slot = self.slots.at_mut(index);
        // spec: MR-PATH-001
        slot.psn = record.next_psn;
        record.next_psn = record.next_psn.wrapping_add(1);
        let transmit = self.send_slot(now, shared, path, index, false, out);
        self.carried(path, window);
        transmit
    }

    fn is_open_or_lingering(&self) -> bool {
        self.is_open() || self.state == super::State::Lingering
    }

    pub(super) fn has_due(&self, bit: u16) -> bool {
        self.due & bit != 0
    }

    pub(super) fn clear_due(&mut self, bit: u16) {
        self.due &= !bit;
    }

    pub(super) fn set_due(&mut self, bit: u16) {
        debug_assert!(bit <= due::FENCE_ACKS);
        self.due |= bit;
    }
}
