//! DATA comes in: each packet is checked and goes straight to its final address, in whatever order it comes.

use super::outbound::GAP_MEMORY;
use super::prediction::Varying;
use super::{Connection, RESPONSE_STREAM, Shared, Timer};
use crate::memory::{Access, AccessFault, LocalSlice, Memory, RegionIndex};
use crate::message::incoming::{InMessage, InProgress, NO_BUFFER};
use crate::message::outgoing::Progress;
use crate::path::receive::{Arrival, ReceivePath};
use crate::stats::DropReason;
use crate::time::Instant;
use crate::wire::{
    AtomicRequest, Data, ErrorCode, ErrorReport, Flags, Header, Opcode, SendAddress,
};
use crate::work::Status;

/// A DATA packet that is valid in itself.
pub(crate) struct DataPacket<'a> {
    pub header: Header,
    pub data: Data,
    pub payload: &'a [u8],
    /// It met congestion.
    pub ce: bool,
}

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// A DATA packet. It is accepted as a whole, or changes nothing (but may be answered with an error report).
    #[inline(always)]
    pub(crate) fn handle_data<M: Memory, const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &mut Shared<R, V>,
        memory: &mut M,
        packet: DataPacket<'_>,
    ) -> Result<(), DropReason> {
        let DataPacket {
            header,
            data,
            payload,
            ce,
        } = packet;
        // spec: MR-PATH-009
        self.current_generation(header.path, header.generation)?;
        let number = u16::from(header.path);
        match self.receive_paths.at(number).classify(header.psn) {
            Arrival::New => {}
            // spec: MR-PATH-007, MR-PATH-013
            Arrival::Duplicate => {
                let path = self.receive_paths.at_mut(number);
                path.note_duplicate();
                path.note_transmission(now, header.tsn, header.psn, ce);
                self.ack_now.insert(header.path);
                self.statistics.duplicates_received =
                    self.statistics.duplicates_received.wrapping_add(1);
                return Err(DropReason::Duplicate);
            }
            // spec: MR-PATH-008
            Arrival::BeyondWindow => return Err(DropReason::BeyondWindow),
        }
        // spec: MR-ERR-001, MR-MSG-002
        match data.opcode {
            Opcode::Write | Opcode::WriteImm => {
                self.accept_write(shared, memory, header, data, payload)?
            }
            Opcode::Send | Opcode::SendImm => {
                self.accept_send(shared, memory, header, data, payload)?
            }
            Opcode::ReadRequest | Opcode::AtomicRequest => {
                self.accept_request(shared, memory, data, payload)?
            }
            Opcode::ReadResponse | Opcode::AtomicResponse => {
                self.accept_response(shared, memory, data, payload)?
            }
            Opcode::Error => {
                let report = ErrorReport::decode(payload)?;
                self.accept_error(now, &report);
            }
            // spec: MR-MSG-011
            Opcode::Nop => {}
        }
        let varying = Varying {
            path: header.path,
            generation: header.generation,
            flags: header.flags,
            psn: header.psn,
            tsn: header.tsn,
            offset: data.offset,
            demand: data.demand,
        };
        self.accepted(now, shared, varying, payload.len(), ce);
        Ok(())
    }

    /// Records a packet whose content was accepted, and sees to its acknowledgment.
    #[inline(always)]
    pub(super) fn accepted<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &Shared<R, V>,
        packet: Varying,
        length: usize,
        ce: bool,
    ) {
        self.statistics.packets_received += 1;
        self.statistics.bytes_received += length as u64;
        let path = self.receive_paths.at_mut(u16::from(packet.path));
        path.accept(packet.psn);
        let noted = path.note_transmission(now, packet.tsn, packet.psn, ce);
        path.unacknowledged = path.unacknowledged.saturating_add(1);
        // spec: MR-PATH-013, MR-PATH-014
        if noted.gap {
            self.gaps_until = now + GAP_MEMORY;
        }
        if noted.gap
            || noted.ce_changed
            || packet.flags.contains(Flags::ACK_REQUEST)
            || path.unacknowledged >= shared.config.ack_packets
        {
            self.ack_now.insert(packet.path);
        } else {
            // spec: MR-PATH-014
            self.ack_later.insert(packet.path);
            self.timers
                .advance(Timer::Ack, now + shared.config.ack_delay);
        }
    }

    /// Checks that a path exists and that its generation is the current one, or opens the next one if a FENCE has ended the current.
    #[inline(always)]
    pub(super) fn current_generation(
        &mut self,
        number: u8,
        generation: u8,
    ) -> Result<(), DropReason> {
        if number >= self.agreed.paths {
            return Err(DropReason::UnknownPath);
        }
        let path = self.receive_paths.at_mut(u16::from(number));
        if generation == path.generation() {
            // spec: MR-FENCE-004
            return if path.is_frozen() && !crate::planted::Bug::FrozenAccepts.is_planted() {
                Err(DropReason::Frozen)
            } else {
                Ok(())
            };
        }
        // spec: MR-FENCE-008
        if path.is_frozen() && generation == path.generation().wrapping_add(1) {
            *path = ReceivePath::new(generation, path.reply);
            return Ok(());
        }
        if crate::planted::Bug::GenerationUnchecked.is_planted() {
            return Ok(());
        }
        Err(DropReason::WrongGeneration)
    }

    /// Checks that a stream takes messages, and that this one is not over. Returns whether it is its turn.
    #[inline(always)]
    fn in_turn(&mut self, data: Data) -> Result<bool, DropReason> {
        // spec: MR-STREAM-001
        if data.stream >= self.agreed.streams {
            return Err(DropReason::UnknownStream);
        }
        let stream = self
            .streams
            .get(data.stream)
            .ok_or(DropReason::UnknownStream)?;
        // spec: MR-STREAM-004
        if stream.failed.is_some() {
            return Err(self.refuse_failed(&data));
        }
        let ahead = data.msn.wrapping_sub(stream.expected_msn);
        // spec: MR-MSG-008
        if ahead >= 1 << 31 {
            return Err(DropReason::StaleMessage);
        }
        Ok(ahead == 0)
    }

    #[inline(always)]
    fn accept_write<M: Memory, const R: usize, const V: usize>(
        &mut self,
        shared: &mut Shared<R, V>,
        memory: &mut M,
        header: Header,
        data: Data,
        payload: &[u8],
    ) -> Result<(), DropReason> {
        let turn = self.in_turn(data)?;
        // spec: MR-MEM-006, MR-MEM-003
        let place = if data.length == 0 {
            None
        } else {
            match shared.regions.check_remote(
                data.key,
                data.address,
                u64::from(data.length),
                Access::REMOTE_WRITE,
            ) {
                Ok((region, offset)) => Some((region, offset + u64::from(data.offset))),
                Err(fault) => return Err(self.refuse(data, code_of(fault), 0)),
            }
        };
        if turn
            && payload.len() == data.length as usize
            && data.opcode == Opcode::Write
            && self.incoming.find(data.stream, data.msn).is_none()
        {
            // The only packet of the message whose turn it is: no record is needed.
            if let Some((region, offset)) = place {
                memory
                    .place(region, offset, payload)
                    .map_err(|_| self.refuse(data, ErrorCode::MemoryFault, 0))?;
            }
            let stream = self.streams.at_mut(data.stream);
            stream.expected_msn = stream.expected_msn.wrapping_add(1);
            if self.incoming.used() != 0 {
                self.advance(shared, memory, data.stream);
            }
            return Ok(());
        }
        let index = match self.incoming.find(data.stream, data.msn) {
            Some(index) => self.continue_message(index, data, payload)?,
            None => self.begin_message(header, data, 0, NO_BUFFER)?,
        };
        if let Some((region, offset)) = place
            && memory.place(region, offset, payload).is_err()
        {
            return Err(self.refuse(data, ErrorCode::MemoryFault, 0));
        }
        self.count_placed(shared, memory, index, payload, turn);
        if let Some((region, offset)) = place {
            self.predict(
                shared,
                index,
                region,
                offset.wrapping_sub(u64::from(data.offset)),
            );
        }
        Ok(())
    }

    fn accept_send<M: Memory, const R: usize, const V: usize>(
        &mut self,
        shared: &mut Shared<R, V>,
        memory: &mut M,
        header: Header,
        data: Data,
        payload: &[u8],
    ) -> Result<(), DropReason> {
        let turn = self.in_turn(data)?;
        let SendAddress { rsn, attempt } = SendAddress::from_bits(data.address);
        let known = self.incoming.find(data.stream, data.msn);
        let index = match known {
            Some(index) if self.incoming.at(index).progress != InProgress::Refused => {
                // spec: MR-RNR-004
                if self.incoming.at(index).attempt != attempt {
                    return Err(DropReason::StaleMessage);
                }
                self.continue_message(index, data, payload)?
            }
            _ => {
                if let Some(index) = known {
                    // Refused before: only a later attempt counts.
                    let age = attempt.wrapping_sub(self.incoming.at(index).attempt);
                    // spec: MR-RNR-004
                    if age == 0 || age >= 1 << 7 {
                        return Err(DropReason::StaleMessage);
                    }
                }
                let buffer = self.buffer_for(shared, data, rsn, attempt, known)?;
                if let Some(index) = known {
                    self.incoming.remove(index);
                }
                self.begin_message(header, data, attempt, buffer)?
            }
        };
        let local = shared.receives.local(self.incoming.at(index).buffer);
        // The record keeps the buffer until the stream's receives are flushed.
        // spec: MR-RNR-007
        if data.length > local.length {
            return Err(self.refuse(data, ErrorCode::LengthExceedsBuffer, attempt));
        }
        if !payload.is_empty() {
            let there = shared.regions.is_registered(local.region);
            if !there
                || memory
                    .place(local.region, local.offset + u64::from(data.offset), payload)
                    .is_err()
            {
                return Err(self.refuse(data, ErrorCode::MemoryFault, attempt));
            }
        }
        self.count_placed(shared, memory, index, payload, turn);
        Ok(())
    }

    /// The posted buffer of a SEND that begins, or its refusal.
    fn buffer_for<const R: usize, const V: usize>(
        &mut self,
        shared: &mut Shared<R, V>,
        data: Data,
        rsn: u32,
        attempt: u8,
        known: Option<u16>,
    ) -> Result<u16, DropReason> {
        if known.is_none() && usize::from(self.incoming.used()) >= MESSAGES {
            return Err(DropReason::NoRoom);
        }
        let stream = self.streams.at(data.stream);
        let buffer = match stream.shared {
            // spec: MR-RNR-001
            Some(queue) => shared.receives.bind_shared(queue),
            None => shared.receives.bind(&stream.receives, rsn),
        };
        let Some(buffer) = buffer else {
            // Without a report nothing is refused: as if it had been lost.
            // spec: MR-RNR-002, MR-ERR-002
            self.report(data, ErrorCode::ReceiverNotReady, attempt)?;
            self.statistics.rnr_sent = self.statistics.rnr_sent.wrapping_add(1);
            let refused = InMessage {
                msn: data.msn,
                stream: data.stream,
                attempt,
                opcode: data.opcode,
                progress: InProgress::Refused,
                ..InMessage::FREE
            };
            match known {
                Some(index) => *self.incoming.at_mut(index) = refused,
                None => {
                    self.incoming.insert(refused);
                }
            }
            return Err(DropReason::Refused(ErrorCode::ReceiverNotReady));
        };
        Ok(buffer)
    }

    /// The record of a message that has begun, if another packet fits what is known of it.
    #[inline(always)]
    fn continue_message(&self, index: u16, data: Data, payload: &[u8]) -> Result<u16, DropReason> {
        let entry = self.incoming.at(index);
        // spec: MR-MSG-007
        if entry.progress != InProgress::Open
            || entry.opcode != data.opcode
            || entry.length != data.length
            || payload.len() as u32 > entry.remaining
        {
            return Err(DropReason::InconsistentMessage);
        }
        Ok(index)
    }

    /// A record of a message that begins.
    #[inline(always)]
    fn begin_message(
        &mut self,
        header: Header,
        data: Data,
        attempt: u8,
        buffer: u16,
    ) -> Result<u16, DropReason> {
        self.incoming
            .insert(InMessage {
                msn: data.msn,
                stream: data.stream,
                length: data.length,
                remaining: data.length,
                address: data.address,
                immediate: data.immediate,
                opcode: data.opcode,
                attempt,
                buffer,
                solicited: header.flags.contains(Flags::SOLICITED),
                progress: InProgress::Open,
                ..InMessage::FREE
            })
            // spec: MR-MSG-009
            .ok_or(DropReason::NoRoom)
    }

    /// Counts the bytes of a packet that was placed; a message that is whole completes when it is its turn.
    #[inline(always)]
    fn count_placed<M: Memory, const R: usize, const V: usize>(
        &mut self,
        shared: &mut Shared<R, V>,
        memory: &mut M,
        index: u16,
        payload: &[u8],
        turn: bool,
    ) {
        let entry = self.incoming.at_mut(index);
        // spec: MR-MSG-003
        entry.remaining -= payload.len() as u32;
        if entry.remaining == 0 {
            entry.progress = InProgress::Ready;
            let stream = entry.stream;
            if turn {
                self.advance(shared, memory, stream);
            }
        }
    }

    fn accept_request<M: Memory, const R: usize, const V: usize>(
        &mut self,
        shared: &mut Shared<R, V>,
        memory: &mut M,
        data: Data,
        payload: &[u8],
    ) -> Result<(), DropReason> {
        let turn = self.in_turn(data)?;
        if self.incoming.find(data.stream, data.msn).is_some() {
            return Err(DropReason::InconsistentMessage);
        }
        let atomic = data.opcode == Opcode::AtomicRequest;
        let right = if atomic {
            Access::REMOTE_ATOMIC
        } else {
            Access::REMOTE_READ
        };
        // spec: MR-READ-002
        if atomic && !data.address.is_multiple_of(8) {
            return Err(self.refuse(data, ErrorCode::InvalidRequest, 0));
        }
        // spec: MR-READ-007
        if data.length != 0
            && let Err(fault) =
                shared
                    .regions
                    .check_remote(data.key, data.address, u64::from(data.length), right)
        {
            return Err(self.refuse(data, code_of(fault), 0));
        }
        let mut entry = InMessage {
            msn: data.msn,
            stream: data.stream,
            length: data.length,
            address: data.address,
            key: data.key,
            immediate: data.immediate,
            opcode: data.opcode,
            progress: InProgress::Ready,
            ..InMessage::FREE
        };
        if atomic {
            match AtomicRequest::decode(payload)? {
                AtomicRequest::FetchAdd { add } => entry.operand = add,
                AtomicRequest::CompareSwap { compare, swap } => {
                    entry.compare_swap = true;
                    entry.operand = compare;
                    entry.swap = swap;
                }
            }
        }
        if crate::planted::Bug::ReadBeforeWrite.is_planted() && !self.responses.is_full() {
            self.execute(shared, memory, &entry);
            entry.opcode = Opcode::Write;
        }
        // spec: MR-READ-001
        self.incoming.insert(entry).ok_or(DropReason::NoRoom)?;
        if turn {
            self.advance(shared, memory, data.stream);
        }
        Ok(())
    }

    fn accept_response<M: Memory, const R: usize, const V: usize>(
        &mut self,
        shared: &mut Shared<R, V>,
        memory: &mut M,
        data: Data,
        payload: &[u8],
    ) -> Result<(), DropReason> {
        if data.stream != RESPONSE_STREAM {
            return Err(DropReason::UnknownStream);
        }
        let index = (data.key & 0x3fff) as u16;
        // spec: MR-READ-004, MR-READ-006
        let Some(message) = self
            .requests
            .get(index)
            .filter(|message| message.immediate == data.key && message.expects_response())
        else {
            // The request was flushed. Its response has nowhere to go, but its packets must be acknowledged.
            return Ok(());
        };
        if message.progress != Progress::Open {
            return Ok(());
        }
        let atomic = data.opcode == Opcode::AtomicResponse;
        // spec: MR-READ-004
        if (message.opcode == Opcode::AtomicRequest) != atomic
            || data.length != message.length
            || payload.len() as u32 > message.awaited
        {
            return Err(DropReason::InconsistentMessage);
        }
        let place = LocalSlice {
            region: RegionIndex(message.region),
            offset: message.local_offset + u64::from(data.offset),
            length: payload.len() as u32,
        };
        let placed = if !shared.regions.is_registered(place.region) && !payload.is_empty() {
            false
        } else if atomic {
            let old = payload
                .first_chunk()
                .map_or(0, |bytes| u64::from_be_bytes(*bytes));
            memory
                .place(place.region, place.offset, &old.to_ne_bytes())
                .is_ok()
        } else {
            payload.is_empty() || memory.place(place.region, place.offset, payload).is_ok()
        };
        let (stream, msn) = (message.stream, message.msn);
        if !placed {
            self.requests.at_mut(index).status = Status::LocalAccess;
            self.fail_stream(
                stream,
                Status::LocalAccess,
                false,
                Some((msn, ErrorCode::StreamError)),
            );
            return Ok(());
        }
        let message = self.requests.at_mut(index);
        message.awaited -= payload.len() as u32;
        if message.is_complete() {
            self.message_complete(index);
        }
        Ok(())
    }
}

/// How an access fault is reported.
pub(super) const fn code_of(fault: AccessFault) -> ErrorCode {
    match fault {
        AccessFault::InvalidKey => ErrorCode::InvalidKey,
        AccessFault::OutOfBounds => ErrorCode::OutOfBounds,
        AccessFault::Denied => ErrorCode::AccessDenied,
    }
}
