//! Work requests in, completions and events out.

use super::{Connection, State, Timer, due};
use crate::memory::{Access, LocalSlice, Regions};
use crate::message::outgoing::{NONE, OutMessage, Progress};
use crate::message::receives::Receives;
use crate::rate::controller::Controller;
use crate::time::Instant;
use crate::wire::{AtomicRequest, Opcode};
use crate::work::{
    Completion, CompletionKind, Event, INLINE_BYTES, MAX_MESSAGE_BYTES, Operation, PostError,
    ReceiveRequest, Source, Status, WorkRequest,
};

/// A burst of more packets than this is announced.
const ANNOUNCED_PACKETS: u64 = 8;

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// Takes a work request.
    pub(crate) fn post<const R: usize>(
        &mut self,
        now: Instant,
        regions: &Regions<R>,
        stream: u16,
        work: &WorkRequest<'_>,
    ) -> Result<(), PostError> {
        // spec: MR-CLOSE-001, MR-CLOSE-003
        if self.state != State::Established {
            return Err(PostError::NotEstablished);
        }
        if stream >= self.agreed.streams {
            return Err(PostError::UnknownStream);
        }
        // spec: MR-STREAM-003
        if self.streams.at(stream).failed.is_some() {
            return Err(PostError::StreamFailed);
        }
        if self.requests.is_full() {
            return Err(PostError::QueueFull);
        }
        let mut message = Self::message_of(regions, work)?;
        message.stream = stream;
        message.attempts_left = self.config.rnr_attempts;
        let record = self.streams.at_mut(stream);
        // spec: MR-MSG-001
        message.msn = record.next_msn;
        if message.is_send() {
            message.address = u64::from(record.next_rsn);
        }
        let index = self.requests.insert(message).ok_or(PostError::QueueFull)?;
        record.next_msn = record.next_msn.wrapping_add(1);
        if message.is_send() || message.opcode == Opcode::WriteImm {
            record.next_rsn = record.next_rsn.wrapping_add(1);
        }
        if message.expects_response() {
            self.token = self.token.wrapping_add(1 << 14);
            self.requests.at_mut(index).immediate =
                (self.token & !0x3fff) | u32::from(index) | 1 << 31;
        }
        if record.last == NONE {
            record.first = index;
        } else {
            self.requests.at_mut(record.last).next = index;
        }
        record.last = index;
        if record.unsent == NONE {
            record.unsent = index;
        }
        self.begin_burst(now, u64::from(message.payload_length()));
        self.activate(stream);
        Ok(())
    }

    /// More bytes are queued; after a pause the controller starts anew and a large burst is announced.
    fn begin_burst(&mut self, now: Instant, bytes: u64) {
        let idle = self.slots.used() == 0 && self.queued_bytes == 0;
        if self.slots.used() == 0 {
            // No path may be able to carry it.
            self.timers.advance(Timer::Idle, now + self.patience());
        }
        self.queued_bytes += bytes;
        if idle {
            // spec: MR-CC-009
            self.controller.burst(now);
            self.follow_hint();
            self.pacer.reset();
            for path in self.usable.iter() {
                self.offer(path);
            }
            // spec: MR-HINT-006
            if self.config.announce
                && self.queued_bytes > ANNOUNCED_PACKETS * u64::from(self.agreed.payload_bytes)
            {
                self.announce();
            }
        }
    }

    /// Asks the peer for a share before a burst.
    pub(crate) fn announce(&mut self) {
        self.announce_number = self.announce_number.wrapping_add(1);
        self.set_due(due::ANNOUNCE);
    }

    /// The record of a work request, checked.
    fn message_of<const R: usize>(
        regions: &Regions<R>,
        work: &WorkRequest<'_>,
    ) -> Result<OutMessage, PostError> {
        let mut message = OutMessage {
            id: work.id,
            progress: Progress::Open,
            ..OutMessage::FREE
        };
        if work.flags.signaled {
            message.flags |= OutMessage::SIGNALED;
        }
        if work.flags.fence {
            message.flags |= OutMessage::FENCE;
        }
        match work.operation {
            Operation::Write {
                local,
                remote,
                immediate,
            } => {
                message.opcode = if immediate.is_some() {
                    Opcode::WriteImm
                } else {
                    Opcode::Write
                };
                message.address = remote.address;
                message.key = remote.key;
                message.immediate = immediate.unwrap_or(0);
                message.set_source(regions, local)?;
            }
            Operation::Send { local, immediate } => {
                message.opcode = if immediate.is_some() {
                    Opcode::SendImm
                } else {
                    Opcode::Send
                };
                message.immediate = immediate.unwrap_or(0);
                message.set_source(regions, local)?;
            }
            Operation::Read { local, remote } => {
                message.opcode = Opcode::ReadRequest;
                message.address = remote.address;
                message.key = remote.key;
                message.set_target(regions, local)?;
                message.awaited = message.length;
            }
            Operation::FetchAdd { local, remote, add } => {
                message.set_atomic(
                    regions,
                    local,
                    remote.address,
                    remote.key,
                    AtomicRequest::FetchAdd { add },
                )?;
            }
            Operation::CompareSwap {
                local,
                remote,
                compare,
                swap,
            } => {
                message.set_atomic(
                    regions,
                    local,
                    remote.address,
                    remote.key,
                    AtomicRequest::CompareSwap { compare, swap },
                )?;
                message.flags |= OutMessage::COMPARE_SWAP;
            }
        }
        if work.flags.solicited && message.opcode.may_solicit() {
            message.flags |= OutMessage::SOLICITED;
        }
        Ok(message)
    }

    /// Posts a buffer to a stream's own queue.
    pub(crate) fn post_receive<const V: usize>(
        &mut self,
        receives: &mut Receives<V>,
        stream: u16,
        request: &ReceiveRequest,
    ) -> Result<(), PostError> {
        if !self.is_open() {
            return Err(PostError::NotEstablished);
        }
        if stream >= self.agreed.streams {
            return Err(PostError::UnknownStream);
        }
        let record = self.streams.at_mut(stream);
        if record.failed.is_some() {
            return Err(PostError::StreamFailed);
        }
        if record.shared.is_some() {
            return Err(PostError::WrongQueue);
        }
        if !receives.post(&mut record.receives, request) {
            return Err(PostError::QueueFull);
        }
        self.complete_awaiting(receives, stream);
        Ok(())
    }

    /// Lets a stream take its buffers from a shared queue.
    pub(crate) fn attach_shared_queue<const V: usize>(
        &mut self,
        receives: &mut Receives<V>,
        stream: u16,
        queue: u8,
    ) -> Result<(), PostError> {
        if usize::from(queue) >= crate::message::receives::SHARED_QUEUES {
            return Err(PostError::WrongQueue);
        }
        let record = self
            .streams
            .get_mut(stream)
            .ok_or(PostError::UnknownStream)?;
        if record.shared.is_some() || !record.receives.is_untouched() {
            return Err(PostError::WrongQueue);
        }
        record.shared = Some(queue);
        self.complete_awaiting(receives, stream);
        Ok(())
    }

    /// Puts an operation that is over into the queue of those to be polled.
    pub(super) fn push_completed(&mut self, index: u16) {
        self.events = true;
        if crate::planted::Bug::CompletionOrder.is_planted() && self.completed_last != NONE {
            self.requests.at_mut(index).next = self.completed_first;
            self.completed_first = index;
            return;
        }
        self.requests.at_mut(index).next = NONE;
        if self.completed_last == NONE {
            self.completed_first = index;
        } else {
            self.requests.at_mut(self.completed_last).next = index;
        }
        self.completed_last = index;
    }

    /// Whether [`Self::poll_event`] may have something.
    #[inline(always)]
    pub(crate) const fn has_events(&self) -> bool {
        self.events
    }

    /// The next thing that happened. `Closed` is the last.
    pub(crate) fn poll_event<const V: usize>(
        &mut self,
        receives: &mut Receives<V>,
    ) -> Option<Event> {
        let connection = self.handle();
        if self.report_connected {
            self.report_connected = false;
            return Some(Event::Connected {
                connection,
                incoming: self.incoming_connection,
                service: self.config.service,
            });
        }
        if self.completed_first != NONE {
            let index = self.completed_first;
            let message = *self.requests.at(index);
            self.completed_first = message.next;
            if message.next == NONE {
                self.completed_last = NONE;
            }
            self.requests.remove(index);
            return Some(Event::Completion(Completion {
                connection,
                stream: message.stream,
                id: message.id,
                kind: kind_of(&message),
                status: message.status,
                length: message.length,
                immediate: None,
                solicited: false,
            }));
        }
        if self.report_streams {
            self.flush_receives(receives);
            if let Some(completion) = receives.poll() {
                return Some(Event::Completion(completion));
            }
            for stream in 0..STREAMS as u16 {
                let record = self.streams.at_mut(stream);
                if let (Some(by_peer), Some(status)) = (record.report.take(), record.failed) {
                    return Some(Event::StreamFailed {
                        connection,
                        stream,
                        status,
                        by_peer,
                    });
                }
            }
            self.report_streams = false;
        }
        if self.planes_down != self.planes_reported {
            let plane = (self.planes_down ^ self.planes_reported).trailing_zeros() as u8;
            self.planes_reported ^= 1 << plane;
            return Some(if self.planes_down >> plane & 1 != 0 {
                Event::PlaneDown { connection, plane }
            } else {
                Event::PlaneUp { connection, plane }
            });
        }
        // spec: MR-CLOSE-008
        self.events = false;
        let reason = self.closed.take()?;
        Some(Event::Closed { connection, reason })
    }
}

impl OutMessage {
    fn set_source<const R: usize>(
        &mut self,
        regions: &Regions<R>,
        source: Source<'_>,
    ) -> Result<(), PostError> {
        match source {
            Source::Region(slice) => self.set_local(regions, slice, Access::LOCAL_READ),
            Source::Inline(bytes) => {
                let place = self
                    .inline
                    .get_mut(..bytes.len())
                    .ok_or(PostError::BadLength)?;
                crate::storage::copy(place, bytes);
                self.length = bytes.len() as u32;
                self.flags |= Self::INLINE;
                Ok(())
            }
        }
    }

    fn set_target<const R: usize>(
        &mut self,
        regions: &Regions<R>,
        slice: LocalSlice,
    ) -> Result<(), PostError> {
        self.set_local(regions, slice, Access::LOCAL_WRITE)
    }

    fn set_local<const R: usize>(
        &mut self,
        regions: &Regions<R>,
        slice: LocalSlice,
        right: Access,
    ) -> Result<(), PostError> {
        if slice.length > MAX_MESSAGE_BYTES {
            return Err(PostError::BadLength);
        }
        // A message without bytes needs no region.
        // spec: MR-MEM-004, MR-MEM-006
        if slice.length != 0 {
            regions
                .check_local(slice, right)
                .map_err(PostError::Local)?;
        }
        self.region = slice.region.0;
        self.local_offset = slice.offset;
        self.length = slice.length;
        Ok(())
    }

    fn set_atomic<const R: usize>(
        &mut self,
        regions: &Regions<R>,
        local: LocalSlice,
        address: u64,
        key: u32,
        request: AtomicRequest,
    ) -> Result<(), PostError> {
        if local.length != 8 {
            return Err(PostError::BadLength);
        }
        if !address.is_multiple_of(8) {
            return Err(PostError::Unaligned);
        }
        self.set_target(regions, local)?;
        self.opcode = Opcode::AtomicRequest;
        self.address = address;
        self.key = key;
        self.awaited = 8;
        let bytes = request.encode();
        const { assert!(INLINE_BYTES >= crate::wire::ATOMIC_REQUEST_SIZE) }
        if let Some(place) = self.inline.first_chunk_mut() {
            *place = bytes;
        }
        self.flags |= Self::INLINE;
        Ok(())
    }
}

const fn kind_of(message: &OutMessage) -> CompletionKind {
    match message.opcode {
        Opcode::Send | Opcode::SendImm => CompletionKind::Send,
        Opcode::ReadRequest => CompletionKind::Read,
        Opcode::AtomicRequest if message.has(OutMessage::COMPARE_SWAP) => {
            CompletionKind::CompareSwap
        }
        Opcode::AtomicRequest => CompletionKind::FetchAdd,
        _ => CompletionKind::Write,
    }
}

/// How a refusal of the peer shows in a completion.
pub(super) const fn status_of(code: crate::wire::ErrorCode) -> Status {
    use crate::wire::ErrorCode;
    match code {
        ErrorCode::ReceiverNotReady => Status::ReceiverNotReady,
        ErrorCode::InvalidKey => Status::RemoteInvalidKey,
        ErrorCode::OutOfBounds => Status::RemoteOutOfBounds,
        ErrorCode::AccessDenied => Status::RemoteAccessDenied,
        ErrorCode::LengthExceedsBuffer => Status::LengthExceedsBuffer,
        ErrorCode::InvalidRequest | ErrorCode::ResourceExhausted => Status::RemoteInvalidRequest,
        ErrorCode::StreamError => Status::Flushed,
        ErrorCode::MemoryFault => Status::RemoteMemoryFault,
    }
}
