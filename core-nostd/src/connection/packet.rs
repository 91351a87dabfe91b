//! A slot becomes a packet: its header is written, its content named, its transmission noted.

use super::{Connection, RESPONSE_BIT, RESPONSE_STREAM, Shared, Timer};
use crate::memory::{Access, LocalSlice, RegionIndex};
use crate::message::outgoing::{self, OutMessage, Progress};
use crate::path::inflight::{NONE, Slot};
use crate::time::Instant;
use crate::transmit::{Class, Ecn, HEADER_BUFFER, Transmit};
use crate::wire::{
    DATA_SIZE, Data, Demand, ErrorCode, ErrorReport, Flags, HEADER_SIZE, Header, Kind, Opcode,
    SendAddress, encode_data, encode_data_again,
};
use crate::work::Status;

/// What all packets of a message have in common: their DATA header but for demand and offset, and where their bytes are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Template {
    bytes: [u8; DATA_SIZE - HEADER_SIZE],
    local: Option<LocalSlice>,
    /// Local id of the connection; 0: of none.
    owner: u32,
    message: u16,
    attempt: u8,
    flags: Flags,
    /// What tells the message from another one that had its record before.
    identity: (u32, u32, u16, Opcode),
}

impl Template {
    /// Whether it is that of a request that has gone on since.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub const fn is_of(&self, owner: u32, request: u16) -> bool {
        self.owner == owner && self.message == request
    }

    /// Of no message.
    pub const NONE: Self = Self {
        bytes: [0; DATA_SIZE - HEADER_SIZE],
        local: None,
        owner: 0,
        message: NONE,
        attempt: 0,
        flags: Flags::NONE,
        identity: (0, 0, 0, Opcode::Nop),
    };
}

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// Sends a slot's content (again): takes a TSN, writes the header, notes the transmission. `known`: it is a first transmission in a run that goes on,
    /// the template is that of its message, and no region was withdrawn.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn send_slot<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &mut Shared<R, V>,
        path: u8,
        index: u16,
        known: bool,
        out: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        if !known && self.regions_seen != shared.regions.withdrawals() {
            self.regions_withdrawn(shared, index);
        }
        let slot = self.slots.at_mut(index);
        let retransmission = !known && slot.transmissions != 0;
        slot.transmissions = slot.transmissions.saturating_add(1);
        slot.sent_ns = now.as_nanos() as u32;
        self.data_sent_at = now;
        let record = self.send_paths.at_mut(u16::from(path));
        // spec: MR-PATH-002
        let tsn = record.take_tsn(now);
        if !(retransmission && crate::planted::Bug::TsnReused.is_planted()) {
            slot.tsn = tsn;
        }
        record.bytes += u64::from(slot.length);
        record.resent = retransmission;
        self.statistics.packets_sent += 1;
        if retransmission {
            record.retransmitted = record.retransmitted.wrapping_add(1);
        } else {
            record.packets = record.packets.wrapping_add(1);
        }
        let (plane, entropy, generation) = (record.plane, record.entropy, record.generation);
        self.slots.push(&mut record.inflight, index);
        if record.inflight.len() == 1 || retransmission {
            let at = self.probe_time(path);
            self.timers.advance(Timer::Probe, at);
        }
        self.outstanding += 1;
        let slot = *self.slots.at(index);
        // spec: MR-PROBE-009
        let ends_burst = !known && self.active_count == 0 && self.response_first == outgoing::NONE;
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
        let mut transmit = self.write_data(
            header,
            &slot,
            (plane, entropy),
            (&mut shared.template, known),
            out,
        );
        if let Some(transmit) = &mut transmit {
            transmit.slot = index;
        }
        let wire = transmit.map_or(0, |transmit| transmit.length as u32)
            + u32::from(shared.config.overhead_bytes);
        self.pacer.sent(now, wire);
        transmit
    }

    /// Writes a slot's packet. What all packets of a message have in common is taken from the packet before if that was of the same message.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn write_data(
        &self,
        header: Header,
        slot: &Slot,
        (plane, entropy): (u8, u16),
        (template, known): (&mut Template, bool),
        out: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        if !known && !self.fits(template, slot) {
            *template = self.template(slot);
        }
        let mut fixed = [0; DATA_SIZE];
        let flags = Flags(header.flags.0 | template.flags.0);
        // spec: MR-WIRE-019
        let demand = Demand::from_bytes(self.queued_bytes);
        encode_data_again(
            &Header { flags, ..header },
            &template.bytes,
            demand,
            slot.offset,
            &mut fixed,
        );
        if let Some(place) = out.first_chunk_mut::<DATA_SIZE>() {
            *place = fixed;
        }
        let mut transmit = self.transmit(plane, entropy, Class::Data, DATA_SIZE)?;
        // spec: MR-WIRE-009, MR-WIRE-010
        transmit.ecn = Ecn::Ect0;
        if slot.length != 0 {
            transmit.length += usize::from(slot.length);
            // spec: MR-LOSS-005
            match template.local {
                Some(local) => {
                    let offset = local.offset.wrapping_add(u64::from(slot.offset));
                    transmit.payload = Some(LocalSlice {
                        offset,
                        length: u32::from(slot.length),
                        ..local
                    });
                }
                None => {
                    self.write_inline(slot, out);
                    transmit.header_length += usize::from(slot.length);
                }
            }
        }
        Some(transmit)
    }

    /// Whether a template is that of a slot's message.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn fits(&self, template: &Template, slot: &Slot) -> bool {
        template.owner == self.local_id
            && template.message == slot.message
            && template.attempt == slot.attempt
            && (slot.message == NONE || template.identity == self.message(slot.message).identity())
    }

    /// Writes the bytes that a message carries itself behind the header.
    #[inline(never)]
    fn write_inline(&self, slot: &Slot, out: &mut [u8; HEADER_BUFFER]) {
        let (from, length) = (slot.offset as usize, usize::from(slot.length));
        if let (Some(place), Some(bytes)) = (
            out.get_mut(DATA_SIZE..DATA_SIZE + length),
            self.message(slot.message).inline.get(from..from + length),
        ) {
            crate::storage::copy(place, bytes);
        }
    }

    /// What all packets of a slot's message have in common.
    #[inline(never)]
    fn template(&self, slot: &Slot) -> Template {
        let mut data = Data {
            opcode: Opcode::Nop,
            demand: Demand::NONE,
            // spec: MR-WIRE-018
            stream: RESPONSE_STREAM,
            msn: 0,
            length: 0,
            offset: 0,
            address: 0,
            key: 0,
            immediate: 0,
        };
        let mut new = Template {
            owner: self.local_id,
            message: slot.message,
            attempt: slot.attempt,
            ..Template::NONE
        };
        // spec: MR-MSG-010
        if slot.message != NONE {
            let message = self.message(slot.message);
            data.opcode = message.opcode;
            data.length = message.length;
            match message.opcode {
                Opcode::ReadResponse | Opcode::AtomicResponse => data.key = message.immediate,
                Opcode::Error => {}
                _ => {
                    data.stream = message.stream;
                    data.msn = message.msn;
                    data.key = message.key;
                    data.address = message.address;
                    data.immediate = message.immediate;
                    if message.is_send() {
                        data.key = 0;
                        let rsn = message.address as u32;
                        data.address = SendAddress {
                            rsn,
                            attempt: slot.attempt,
                        }
                        .to_bits();
                    }
                    // spec: MR-MSG-013
                    new.flags =
                        Flags::NONE.with(Flags::SOLICITED, message.has(OutMessage::SOLICITED));
                }
            }
            new.local = message.local();
            new.identity = message.identity();
        }
        let mut fixed = [0; DATA_SIZE];
        encode_data(&Header::new(Kind::Data, 0), &data, &mut fixed);
        if let Some(bytes) = fixed.last_chunk() {
            new.bytes = *bytes;
        }
        new
    }

    /// Regions were withdrawn since a packet last left: messages whose bytes can no longer be read end here.
    #[cold]
    #[inline(never)]
    fn regions_withdrawn<const R: usize, const V: usize>(
        &mut self,
        shared: &mut Shared<R, V>,
        slot: u16,
    ) {
        self.regions_seen = shared.regions.withdrawals();
        for number in (0..MESSAGES as u16).flat_map(|index| [index, index | RESPONSE_BIT]) {
            let open = matches!(
                self.message(number).progress,
                Progress::Open | Progress::Waiting
            );
            if open && !self.content_is_there(shared, number) {
                self.content_is_gone(number);
            }
        }
        // The slot that is about to leave may have been of one of them.
        shared.template = self.template(self.slots.at(slot));
    }

    /// A region is no more: whatever of this side was to be read from or placed in it has no place.
    pub(crate) fn withdraw_region(&mut self, region: RegionIndex) {
        self.requests.withdraw_region(region);
    }

    /// Whether a message's bytes may still be read: its region is registered, and for a READ of the peer, under the key it named.
    #[inline]
    // spec: MR-MEM-005, MR-READ-007
    pub(super) fn content_is_there<const R: usize, const V: usize>(
        &self,
        shared: &Shared<R, V>,
        number: u16,
    ) -> bool {
        let message = self.message(number);
        if message.has(OutMessage::INLINE) || message.expects_response() || message.length == 0 {
            return true;
        }
        if number & RESPONSE_BIT == 0 {
            return shared.regions.is_registered(RegionIndex(message.region));
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
    pub(super) fn content_is_gone(&mut self, number: u16) {
        if number & RESPONSE_BIT == 0 {
            let stream = self.requests.at(number).stream;
            self.requests.at_mut(number).status = Status::LocalAccess;
            let msn = self.requests.at(number).msn;
            self.fail_stream(
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
        let unsent = u64::from(message.unsent_bytes());
        let report = ErrorReport {
            code: ErrorCode::MemoryFault,
            attempt: 0,
            stream: message.stream,
            msn: message.msn,
            token: message.immediate,
        };
        message.make_error(&report);
        // spec: MR-STREAM-003
        let stream = report.stream;
        self.streams.at_mut(stream).told = true;
        self.fail_stream(stream, Status::RemoteMemoryFault, true, None);
        // spec: MR-HINT-009
        if queued {
            self.queued_bytes = self.queued_bytes.saturating_sub(unsent);
            self.unqueue_response(index);
        }
        self.queue_error(index);
    }

    /// The memory refused the bytes of a packet that was about to leave: it leaves as one that was withdrawn.
    pub(crate) fn gather_failed(
        &mut self,
        failed: &Transmit,
        out: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        let number = self.slots.at(failed.slot).message;
        if number != NONE {
            self.content_is_gone(number);
        }
        let header = Header::decode(out).ok()?;
        let header = Header {
            flags: Flags(header.flags.0 & !Flags::SOLICITED.0),
            ..header
        };
        let mut slot = *self.slots.at(failed.slot);
        slot.message = NONE;
        slot.length = 0;
        slot.offset = 0;
        let way = (failed.plane, failed.entropy);
        self.write_data(header, &slot, way, (&mut { Template::NONE }, false), out)
    }

    /// Every outstanding packet of a message will carry nothing when it is sent again.
    // spec: MR-MSG-010
    pub(super) fn withdraw_slots(&mut self, number: u16) {
        for slot in self.slots.iter_mut().filter(|slot| slot.message == number) {
            slot.message = NONE;
            slot.length = 0;
            slot.offset = 0;
        }
        self.message_mut(number).outstanding = 0;
        self.stop_run_of(number);
    }

    /// A datagram of this connection over a plane.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn transmit(
        &self,
        plane: u8,
        entropy: u16,
        class: Class,
        length: usize,
    ) -> Option<Transmit> {
        // spec: MR-SETUP-013
        let to = *self.peer.get(usize::from(plane))?;
        Some(Transmit {
            connection: Some(self.handle()),
            to,
            plane,
            entropy,
            class,
            ecn: Ecn::NotEct,
            header_length: length,
            payload: None,
            trailer: self.trailer().size() != 0,
            length: length + self.trailer().size(),
            slot: NONE,
        })
    }
}
