//! What is sent next: acknowledgments and other control first, then retransmissions, then new data.

use super::{Connection, RESPONSE_BIT, RESPONSE_STREAM, Shared, Timer, due};
use crate::memory::Access;
use crate::message::outgoing::{self, OutMessage, Progress};
use crate::path::inflight::{NONE, Slot};
use crate::path::send::PathState;
use crate::rate::controller::Controller;
use crate::time::Instant;
use crate::transmit::{Class, Ecn, HEADER_BUFFER, Transmit};
use crate::wire::{
    ACK_BLOCK_SIZE, ACK_SIZE, AckKind, DATA_SIZE, Data, Demand, ErrorCode, ErrorReport, Flags,
    Header, Kind, Opcode, SendAddress, append_ack_block, encode_ack, encode_data,
};
use crate::work::Status;

/// A part of a message that goes into one packet.
#[derive(Clone, Copy)]
struct Piece {
    message: u16,
    offset: u32,
    length: u16,
}

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// The next datagram, if one may leave now.
    #[inline]
    pub(crate) fn poll_transmit<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &mut Shared<'_, R, V>,
        out: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        if self.due != 0
            && let Some(transmit) = self.poll_control(now, shared, out)
        {
            return Some(transmit);
        }
        if !self.ack_now.is_empty() && self.is_open_or_lingering() {
            return Some(self.acknowledge(now, shared, out));
        }
        if self.is_open() {
            self.poll_data(now, shared, out)
        } else {
            None
        }
    }

    /// A datagram of this connection over a plane.
    pub(super) fn transmit(
        &self,
        plane: u8,
        entropy: u16,
        class: Class,
        length: usize,
    ) -> Option<Transmit> {
        let destination = self.peer.get(usize::from(plane))?.socket();
        Some(Transmit {
            connection: Some(self.handle()),
            destination,
            plane,
            entropy,
            class,
            ecn: Ecn::NotEct,
            header_length: length,
            payload: None,
            trailer: self.trailer.size() != 0,
            length: length + self.trailer.size(),
            slot: NONE,
        })
    }

    /// One ACK for the next path that is due, with more blocks for other paths if the endpoint bundles them.
    fn acknowledge<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &Shared<'_, R, V>,
        out: &mut [u8; HEADER_BUFFER],
    ) -> Transmit {
        let path = self.ack_now.next_from(self.ack_next).unwrap_or(0);
        self.ack_next = path.wrapping_add(1);
        self.acknowledged_now(path);
        let receive = self.receive_paths.at(u16::from(path));
        let entropy = receive.reply;
        let block = receive.block(now, path, shared.hint_mbps);
        let mut length = ACK_SIZE;
        if let Some(first) = out.first_chunk_mut::<ACK_SIZE>() {
            encode_ack(AckKind::Ack, Flags::NONE, self.peer_id, &block, first);
        }
        let mut left = shared.config.ack_blocks - 1;
        while left != 0
            && let Some(path) = self
                .ack_now
                .next_from(self.ack_next)
                .or_else(|| self.ack_later.next_from(self.ack_next))
            && let Some(place) = out
                .get_mut(length..)
                .and_then(|rest| rest.first_chunk_mut::<ACK_BLOCK_SIZE>())
        {
            self.ack_next = path.wrapping_add(1);
            self.acknowledged_now(path);
            append_ack_block(
                &self
                    .receive_paths
                    .at(u16::from(path))
                    .block(now, path, shared.hint_mbps),
                place,
            );
            length += ACK_BLOCK_SIZE;
            left -= 1;
        }
        if self.ack_later.is_empty() {
            self.timers.clear(Timer::Ack);
        }
        self.statistics.acks_sent += 1;
        let plane = path % self.agreed.planes.max(1);
        // Both sides checked that the planes agreed on have addresses.
        self.transmit(plane, entropy, Class::Control, length)
            .unwrap_or(NO_TRANSMIT)
    }

    #[inline]
    fn acknowledged_now(&mut self, path: u8) {
        self.ack_now.remove(path);
        self.ack_later.remove(path);
        self.receive_paths.at_mut(u16::from(path)).unacknowledged = 0;
    }

    fn poll_data<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &Shared<'_, R, V>,
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
        self.controller.tick(now);
        let window = self.controller.window();
        if self.outstanding != 0 && u64::from(self.outstanding) << 16 >= u64::from(window) {
            self.limited = true;
            return None;
        }
        if let Some(at) = self.pacer.blocked_until(now) {
            self.limited = false;
            self.timers.set(Timer::Pace, at);
            return None;
        }
        while let Some(path) = self.lost_paths.first() {
            let record = self.send_paths.at_mut(u16::from(path));
            let Some(index) = self.slots.pop(&mut record.lost) else {
                self.lost_paths.remove(path);
                continue;
            };
            if record.lost.is_empty() {
                self.lost_paths.remove(path);
            }
            return self.send_slot(now, shared, path, index, out);
        }
        self.send_new(now, shared, window, out)
    }

    /// Sends an orphan or the next piece of a message over the path whose turn it is.
    fn send_new<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &Shared<'_, R, V>,
        window: u32,
        out: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        if self.orphans.is_empty() && self.slots.is_full() {
            self.limited = true;
            return None;
        }
        let Some(path) = self.pick_path(window) else {
            self.limited = true;
            return None;
        };
        let index = match self.slots.pop(&mut self.orphans) {
            Some(index) => index,
            None => match self.next_piece() {
                Some(piece) => {
                    let index = self.slots.allocate()?;
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
        slot.psn = record.next_psn;
        record.next_psn = record.next_psn.wrapping_add(1);
        let transmit = self.send_slot(now, shared, path, index, out);
        self.carried(path, window);
        transmit
    }

    /// The path for the next new packet. It stays out of the wheel until [`Self::carried`].
    #[inline]
    fn pick_path(&mut self, window: u32) -> Option<u8> {
        if self.run_left != 0 {
            let path = self.run_path;
            if self
                .send_paths
                .at(u16::from(path))
                .has_room(self.controller.weight(path), u32::from(self.agreed.window))
            {
                return Some(path);
            }
            self.end_run(window);
        }
        self.follow_window(window);
        while let Some(path) = self.wheel.take() {
            if u16::from(path) >= self.path_limit {
                self.reserve.insert(path);
                continue;
            }
            if self
                .send_paths
                .at(u16::from(path))
                .has_room(self.controller.weight(path), u32::from(self.agreed.window))
            {
                self.run_path = path;
                self.run_left = self.config.run;
                self.run_carried = 0;
                return Some(path);
            }
        }
        None
    }

    /// Nothing was sent after all.
    fn unpick_path(&mut self, path: u8) {
        if self.run_carried == 0 {
            self.run_left = 0;
            self.wheel.insert(path);
        }
    }

    /// A path carried a packet: its turn goes on or ends.
    #[inline]
    fn carried(&mut self, path: u8, window: u32) {
        debug_assert_eq!(path, self.run_path);
        self.run_carried += 1;
        self.run_left -= 1;
        if self.run_left == 0 {
            self.end_run(window);
        }
    }

    #[inline]
    fn end_run(&mut self, window: u32) {
        let path = self.run_path;
        self.run_left = 0;
        let weight = self.controller.weight(path);
        let count = u32::from(self.usable_count.max(1));
        if self.run_carried != 0 {
            self.wheel
                .charge(path, u32::from(self.run_carried), weight, window / count);
        }
        self.run_carried = 0;
        self.offer(path);
    }

    /// Lets a path wait for its turn if it may carry.
    #[inline]
    pub(super) fn offer(&mut self, path: u8) {
        if self.run_left != 0 && path == self.run_path {
            return;
        }
        let record = self.send_paths.at(u16::from(path));
        if record.has_room(self.controller.weight(path), u32::from(self.agreed.window)) {
            if u16::from(path) < self.path_limit {
                self.wheel.insert(path);
            } else {
                self.reserve.insert(path);
            }
        }
    }

    /// At most as many paths as there are packets in the window are used, or each would be too sparse for the loss rule to see.
    #[inline]
    fn follow_window(&mut self, window: u32) {
        let packets = (window.min(255 << 16).div_ceil(1 << 16)).max(1) as u16;
        let count = self.usable_count;
        if (packets, count) == self.path_limit_key {
            return;
        }
        self.path_limit_key = (packets, count);
        self.path_limit = if packets >= count {
            256
        } else {
            self.usable
                .iter()
                .nth(usize::from(packets))
                .map_or(256, u16::from)
        };
        for path in self.reserve.iter() {
            if u16::from(path) < self.path_limit {
                self.reserve.remove(path);
                self.offer(path);
            }
        }
    }

    /// The next part of a message, taken from responses and streams in turn.
    fn next_piece(&mut self) -> Option<Piece> {
        if self.response_first != outgoing::NONE {
            let index = self.response_first;
            let piece = self.cut_piece(index | RESPONSE_BIT);
            if !self.responses.at(index).has_unsent() {
                self.response_first = self.responses.at(index).next;
                if self.response_first == outgoing::NONE {
                    self.response_last = outgoing::NONE;
                }
                self.responses.at_mut(index).next = outgoing::NONE;
            }
            return Some(piece);
        }
        while self.active_count != 0 {
            let stream = self.active_first;
            let message = self.streams.at(stream).unsent;
            if message == outgoing::NONE || !self.may_start(stream, message) {
                self.deactivate_first();
                continue;
            }
            let piece = self.cut_piece(message);
            if !self.requests.at(message).has_unsent() {
                self.advance_unsent(stream);
            }
            if self.streams.at(stream).unsent == outgoing::NONE {
                self.deactivate_first();
            } else if self.active_count > 1 && self.run_left <= 1 {
                self.rotate_active();
            }
            return Some(piece);
        }
        None
    }

    /// Whether a stream's next message may go on, or start: fences and the peer's limits.
    #[inline]
    fn may_start(&mut self, stream: u16, number: u16) -> bool {
        let message = self.requests.at(number);
        if message.has(OutMessage::STARTED) {
            return true;
        }
        let fenced = message.has(OutMessage::FENCE) && self.streams.at(stream).reads != 0;
        let expects_response = message.expects_response();
        if fenced
            || self.started >= self.agreed.open_messages
            || (expects_response && self.reads >= self.agreed.open_responses)
        {
            self.streams_blocked = true;
            return false;
        }
        self.requests.at_mut(number).flags |= OutMessage::STARTED;
        self.started += 1;
        if expects_response {
            self.reads += 1;
            self.streams.at_mut(stream).reads += 1;
        }
        true
    }

    #[inline]
    fn cut_piece(&mut self, number: u16) -> Piece {
        let payload = u32::from(self.agreed.payload_bytes);
        let message = self.message_mut(number);
        let offset = message.cursor;
        let length = (message.payload_length() - offset).min(payload);
        message.cursor = offset + length;
        if length == 0 {
            message.flags |= OutMessage::EMPTY_SENT;
        }
        message.outstanding += 1;
        if number & RESPONSE_BIT == 0 {
            self.queued_bytes = self.queued_bytes.saturating_sub(u64::from(length));
        }
        Piece {
            message: number,
            offset,
            length: length as u16,
        }
    }

    /// Moves a stream's mark to the next message with something to send.
    pub(super) fn advance_unsent(&mut self, stream: u16) {
        let mut next = self.streams.at(stream).unsent;
        while next != outgoing::NONE && !self.requests.at(next).has_unsent() {
            next = self.requests.at(next).next;
        }
        self.streams.at_mut(stream).unsent = next;
    }

    /// Sends a slot's content (again): takes a TSN, writes the header, notes the transmission.
    fn send_slot<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &Shared<'_, R, V>,
        path: u8,
        index: u16,
        out: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        if self.slots.at(index).message != NONE
            && !self.content_is_there(shared, self.slots.at(index).message)
        {
            self.content_is_gone(now, self.slots.at(index).message);
        }
        let slot = self.slots.at_mut(index);
        let retransmission = slot.transmissions != 0;
        slot.transmissions = slot.transmissions.saturating_add(1);
        slot.sent_ns = now.as_nanos() as u32;
        let record = self.send_paths.at_mut(u16::from(path));
        slot.tsn = record.take_tsn(now);
        record.bytes += u64::from(slot.length);
        if retransmission {
            record.retransmitted += 1;
        } else {
            record.packets += 1;
        }
        let (plane, entropy, generation) = (record.plane, record.entropy, record.generation);
        self.slots.push(&mut record.inflight, index);
        if record.inflight.len() == 1 {
            let at = self.probe_time(path);
            self.timers.advance(Timer::Probe, at);
        }
        self.outstanding += 1;
        let slot = *self.slots.at(index);
        let ends_burst = self.active_count == 0 && self.response_first == outgoing::NONE;
        let flags = Flags::NONE
            .with(Flags::RETRANSMISSION, retransmission)
            .with(Flags::ACK_REQUEST, ends_burst);
        let header = Header {
            kind: Kind::Data,
            flags,
            path,
            generation,
            connection: self.peer_id,
            psn: slot.psn,
            tsn: slot.tsn,
        };
        let transmit = self.write_data(header, &slot, plane, entropy, out);
        let wire = transmit.map_or(0, |transmit| transmit.length as u32)
            + u32::from(shared.config.overhead_bytes);
        self.pacer.sent(now, wire, 2 * u32::from(self.config.run));
        transmit
    }

    fn write_data(
        &self,
        mut header: Header,
        slot: &Slot,
        plane: u8,
        entropy: u16,
        out: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        let mut data = Data {
            opcode: Opcode::Nop,
            demand: Demand::from_bytes(self.queued_bytes),
            stream: RESPONSE_STREAM,
            msn: 0,
            length: 0,
            offset: 0,
            address: 0,
            key: 0,
            immediate: 0,
        };
        let mut length = DATA_SIZE;
        let mut payload = None;
        if slot.message != NONE {
            let message = self.message(slot.message);
            data.opcode = message.opcode;
            data.length = message.length;
            data.offset = slot.offset;
            match message.opcode {
                Opcode::ReadResponse | Opcode::AtomicResponse => data.key = message.token,
                Opcode::Error => {}
                _ => {
                    data.stream = message.stream;
                    data.msn = message.msn;
                    data.key = message.key;
                    data.address = message.address;
                    data.immediate = message.immediate;
                    if message.is_send() {
                        data.key = 0;
                        data.address = SendAddress {
                            rsn: message.rsn,
                            attempt: slot.attempt,
                        }
                        .to_bits();
                    }
                    if message.expects_response() {
                        data.immediate = message.token;
                    }
                    header.flags = header
                        .flags
                        .with(Flags::SOLICITED, message.has(OutMessage::SOLICITED));
                }
            }
            if slot.length != 0 {
                payload = message.local(slot.offset, u32::from(slot.length));
                if payload.is_none() {
                    let end = DATA_SIZE + usize::from(slot.length);
                    let from = slot.offset as usize;
                    if let (Some(place), Some(bytes)) = (
                        out.get_mut(DATA_SIZE..end),
                        message.inline.get(from..from + usize::from(slot.length)),
                    ) {
                        place.copy_from_slice(bytes);
                    }
                    length = end;
                }
            }
        }
        if let Some(fixed) = out.first_chunk_mut::<DATA_SIZE>() {
            encode_data(&header, &data, fixed);
        }
        let mut transmit = self.transmit(plane, entropy, Class::Data, length)?;
        transmit.ecn = Ecn::Ect0;
        transmit.length += payload.map_or(0, |place| place.length as usize);
        transmit.payload = payload;
        Some(transmit)
    }

    /// Whether a message's bytes may still be read: its region is registered, and for a READ of the peer, under the key it named.
    #[inline]
    fn content_is_there<const R: usize, const V: usize>(
        &self,
        shared: &Shared<'_, R, V>,
        number: u16,
    ) -> bool {
        let message = self.message(number);
        if message.has(OutMessage::INLINE) || message.expects_response() || message.length == 0 {
            return true;
        }
        if number & RESPONSE_BIT == 0 {
            return shared
                .regions
                .is_registered(crate::memory::RegionIndex(message.region));
        }
        shared
            .regions
            .check_remote(
                message.key,
                message.address,
                u64::from(message.length),
                Access::REMOTE_READ,
            )
            .is_ok()
    }

    /// The bytes of a message can no longer be read: a work request fails its stream, a response becomes an error report.
    pub(super) fn content_is_gone(&mut self, now: Instant, number: u16) {
        if number & RESPONSE_BIT == 0 {
            let stream = self.requests.at(number).stream;
            self.requests.at_mut(number).status = Status::LocalAccess;
            let msn = self.requests.at(number).msn;
            self.fail_stream(
                now,
                stream,
                Status::LocalAccess,
                false,
                Some((msn, ErrorCode::StreamError)),
            );
            return;
        }
        self.withdraw_slots(number);
        let index = number & !RESPONSE_BIT;
        let queued = self.responses.at(index).has_unsent();
        let message = self.responses.at_mut(index);
        let report = ErrorReport {
            code: ErrorCode::MemoryFault,
            attempt: 0,
            stream: message.stream,
            msn: message.msn,
            token: message.token,
        };
        message.make_error(&report);
        if !queued {
            self.queue_response(index);
        }
    }

    /// The memory refused the bytes of a packet that was about to leave: it leaves as one that was withdrawn.
    pub(crate) fn gather_failed(
        &mut self,
        now: Instant,
        failed: &Transmit,
        out: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        let number = self.slots.at(failed.slot).message;
        if number != NONE {
            self.content_is_gone(now, number);
        }
        let header = Header::decode(out).ok()?;
        let header = Header {
            flags: Flags(header.flags.0 & !Flags::SOLICITED.0),
            ..header
        };
        let mut slot = *self.slots.at(failed.slot);
        slot.message = NONE;
        self.write_data(header, &slot, failed.plane, failed.entropy, out)
    }

    /// Every outstanding packet of a message will carry nothing when it is sent again.
    pub(super) fn withdraw_slots(&mut self, number: u16) {
        for slot in self.slots.iter_mut().filter(|slot| slot.message == number) {
            slot.message = NONE;
            slot.length = 0;
        }
        self.message_mut(number).outstanding = 0;
    }

    /// Puts a response that has something to send at the end of their queue.
    pub(super) fn queue_response(&mut self, index: u16) {
        self.responses.at_mut(index).next = outgoing::NONE;
        if self.response_last == outgoing::NONE {
            self.response_first = index;
        } else {
            self.responses.at_mut(self.response_last).next = index;
        }
        self.response_last = index;
    }

    /// Puts a stream with something to send into the ring.
    pub(super) fn activate(&mut self, stream: u16) {
        let record = self.streams.at_mut(stream);
        if record.active || record.unsent == outgoing::NONE {
            return;
        }
        record.active = true;
        record.next_active = outgoing::NONE;
        if self.active_count == 0 {
            self.active_first = stream;
        } else {
            self.streams.at_mut(self.active_last).next_active = stream;
        }
        self.active_last = stream;
        self.active_count += 1;
    }

    fn deactivate_first(&mut self) {
        let record = self.streams.at_mut(self.active_first);
        record.active = false;
        self.active_first = record.next_active;
        self.active_count -= 1;
    }

    fn rotate_active(&mut self) {
        let first = self.active_first;
        self.active_first = self.streams.at(first).next_active;
        self.streams.at_mut(first).next_active = outgoing::NONE;
        self.streams.at_mut(self.active_last).next_active = first;
        self.active_last = first;
    }

    /// A stream takes part again in the choice of what to send (a limit or fence that held it back is gone).
    pub(super) fn unblock_streams(&mut self) {
        if !self.streams_blocked {
            return;
        }
        self.streams_blocked = false;
        for stream in 0..self.agreed.streams.min(STREAMS as u16) {
            self.activate(stream);
        }
    }

    /// A refused message that waited begins again.
    pub(super) fn retry_waiting(&mut self, now: Instant) {
        if self.waiting_messages == 0 {
            return;
        }
        for index in 0..MESSAGES as u16 {
            if self
                .requests
                .get(index)
                .is_none_or(|message| message.progress != Progress::Waiting)
            {
                continue;
            }
            self.waiting_messages -= 1;
            let message = self.requests.at_mut(index);
            message.restart();
            let (stream, bytes) = (message.stream, message.payload_length());
            self.queued_bytes += u64::from(bytes);
            // Whatever comes after it in the stream may have been sent: the mark goes back to it.
            self.streams.at_mut(stream).unsent = self.streams.at(stream).first;
            self.advance_unsent(stream);
            self.activate(stream);
        }
        self.answered_at = self.answered_at.max(now);
    }

    /// A run of packets over one path is not finished: what comes next belongs behind it.
    pub(crate) const fn in_run(&self) -> bool {
        self.run_left != 0
    }

    /// Whether a path is one that control may be sent over.
    pub(super) fn is_sound(&self, path: u8) -> bool {
        matches!(
            self.send_paths.at(u16::from(path)).state,
            PathState::Active | PathState::Draining
        )
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

/// A datagram to nowhere, for a state that the checks at set-up exclude.
const NO_TRANSMIT: Transmit = Transmit {
    connection: None,
    destination: core::net::SocketAddr::V4(core::net::SocketAddrV4::new(
        core::net::Ipv4Addr::UNSPECIFIED,
        0,
    )),
    plane: 0,
    entropy: 0,
    class: Class::Control,
    ecn: Ecn::NotEct,
    header_length: 0,
    payload: None,
    trailer: false,
    length: 0,
    slot: NONE,
};
