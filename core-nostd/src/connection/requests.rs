//! The peer's messages in their turn: what they complete, what they ask for, and what is refused.

use super::{Connection, RESPONSE_STREAM, Shared};
use crate::memory::{Access, AtomicChange, Memory};
use crate::message::incoming::{InMessage, InProgress, NO_BUFFER};
use crate::message::outgoing::{NONE, OutMessage, Progress};
use crate::message::receives::{Outcome, Receives};
use crate::stats::DropReason;
use crate::time::Instant;
use crate::wire::{Data, ErrorCode, ErrorReport, Opcode, SendAddress};
use crate::work::{CompletionKind, Status};

use super::Timer;
use super::inbound::code_of;
use super::post::status_of;

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// Completes and executes the messages of a stream whose turn it is, as far as they are here.
    pub(super) fn advance<M: Memory, const R: usize, const V: usize>(
        &mut self,
        shared: &mut Shared<R, V>,
        memory: &mut M,
        stream: u16,
    ) {
        loop {
            // spec: MR-MSG-005, MR-READ-001
            let expected = self.streams.at(stream).expected_msn;
            let Some(index) = self.incoming.find(stream, expected) else {
                return;
            };
            let entry = *self.incoming.at(index);
            // What was asked for before it may have failed the stream.
            if entry.progress != InProgress::Ready || self.streams.at(stream).failed.is_some() {
                return;
            }
            // spec: MR-RNR-008
            if matches!(entry.opcode, Opcode::Send | Opcode::SendImm)
                && SendAddress::from_bits(entry.address).rsn != self.rsn_in_turn(stream)
            {
                self.wrong_rsn(stream, expected);
                return;
            }
            let mut keep = false;
            match entry.opcode {
                Opcode::ReadRequest | Opcode::AtomicRequest => {
                    // spec: MR-READ-005
                    if self.responses.is_full() {
                        self.streams.at_mut(stream).stalled = true;
                        self.streams_stalled = true;
                        return;
                    }
                    self.execute(shared, memory, &entry);
                }
                Opcode::Write => {}
                _ => {
                    keep = self.streams.at(stream).awaiting != 0
                        || !self.complete_receive(&mut shared.receives, &entry);
                }
            }
            // spec: MR-MSG-012
            if keep {
                // The completion waits for a buffer; the stream does not.
                self.incoming.at_mut(index).progress = InProgress::Awaiting;
                self.streams.at_mut(stream).awaiting += 1;
            } else {
                self.incoming.remove(index);
            }
            let record = self.streams.at_mut(stream);
            record.expected_msn = record.expected_msn.wrapping_add(1);
        }
    }

    /// How many receive-consuming messages of a stream are over.
    fn rsn_in_turn(&self, stream: u16) -> u32 {
        let record = self.streams.at(stream);
        let waiting = u32::from(record.awaiting);
        record.receives.used_up().wrapping_add(waiting)
    }

    /// A SEND said that it was another than it is: it lies in the wrong buffer.
    #[cold]
    fn wrong_rsn(&mut self, stream: u16, msn: u32) {
        let (status, code) = (Status::RemoteInvalidRequest, ErrorCode::InvalidRequest);
        self.fail_stream(stream, status, true, Some((msn, code)));
    }

    /// Reports a receive in its buffer. False if there is none.
    fn complete_receive<const V: usize>(
        &mut self,
        receives: &mut Receives<V>,
        entry: &InMessage,
    ) -> bool {
        let write = entry.opcode == Opcode::WriteImm;
        let outcome = Outcome {
            connection: self.handle(),
            stream: entry.stream,
            kind: if write {
                CompletionKind::ReceiveWriteImmediate
            } else {
                CompletionKind::Receive
            },
            status: Status::Success,
            length: entry.length,
            immediate: entry.opcode.has_immediate().then_some(entry.immediate),
            solicited: entry.solicited,
        };
        let record = self.streams.at_mut(entry.stream);
        match (record.shared, write) {
            // spec: MR-RNR-001
            (None, _) => receives.complete_first(&mut record.receives, &outcome),
            (Some(_), false) => {
                record.receives.skip();
                receives.complete(entry.buffer, &outcome);
                true
            }
            (Some(queue), true) => match receives.bind_shared(queue) {
                Some(buffer) => {
                    record.receives.skip();
                    receives.complete(buffer, &outcome);
                    true
                }
                None => false,
            },
        }
    }

    /// Buffers were posted: completions that waited for them are reported, in order.
    pub(super) fn complete_awaiting<const V: usize>(
        &mut self,
        receives: &mut Receives<V>,
        stream: u16,
    ) {
        while self.streams.at(stream).awaiting != 0
            && let Some(index) = self
                .incoming
                .first_awaiting(stream, self.streams.at(stream).expected_msn)
        {
            let entry = *self.incoming.at(index);
            if !self.complete_receive(receives, &entry) {
                return;
            }
            self.incoming.remove(index);
            self.streams.at_mut(stream).awaiting -= 1;
        }
    }

    /// The same for every stream that uses a shared queue.
    pub(crate) fn shared_queue_filled<const V: usize>(
        &mut self,
        receives: &mut Receives<V>,
        queue: u8,
    ) {
        for stream in 0..STREAMS as u16 {
            if self.streams.at(stream).shared == Some(queue) {
                self.complete_awaiting(receives, stream);
            }
        }
    }

    /// Carries out a READ or atomic. There is room for its response.
    pub(super) fn execute<M: Memory, const R: usize, const V: usize>(
        &mut self,
        shared: &Shared<R, V>,
        memory: &mut M,
        entry: &InMessage,
    ) {
        let atomic = entry.opcode == Opcode::AtomicRequest;
        let mut response = OutMessage {
            opcode: if atomic {
                Opcode::AtomicResponse
            } else {
                Opcode::ReadResponse
            },
            address: entry.address,
            key: entry.key,
            immediate: entry.immediate,
            length: entry.length,
            stream: entry.stream,
            msn: entry.msn,
            progress: Progress::Open,
            ..OutMessage::FREE
        };
        // spec: MR-READ-008
        if entry.length == 0 {
            // Nothing is asked for: the acknowledged request says it all.
            return;
        }
        let right = if atomic {
            Access::REMOTE_ATOMIC
        } else {
            Access::REMOTE_READ
        };
        // The region may have been invalidated while the request waited for its turn.
        // spec: MR-READ-007
        let checked =
            shared
                .regions
                .check_remote(entry.key, entry.address, u64::from(entry.length), right);
        let outcome = checked.map_err(code_of).and_then(|(region, offset)| {
            response.region = region.0;
            response.local_offset = offset;
            if !atomic {
                return Ok(());
            }
            let change = if entry.compare_swap {
                AtomicChange::CompareSwap {
                    compare: entry.operand,
                    swap: entry.swap,
                }
            } else {
                AtomicChange::FetchAdd { add: entry.operand }
            };
            // spec: MR-READ-002, MR-READ-003
            if crate::planted::Bug::AtomicTwice.is_planted() {
                let _ = memory.modify(region, offset, change);
            }
            let old = memory
                .modify(region, offset, change)
                .map_err(|_| ErrorCode::MemoryFault)?;
            if let Some(place) = response.inline.first_chunk_mut() {
                *place = old.to_be_bytes();
            }
            response.flags = OutMessage::INLINE;
            Ok(())
        });
        if let Err(code) = outcome {
            // spec: MR-STREAM-003
            self.streams.at_mut(entry.stream).told = true;
            self.fail_stream(entry.stream, status_of(code), true, None);
            response.make_error(&ErrorReport {
                code,
                attempt: 0,
                stream: entry.stream,
                msn: entry.msn,
                token: entry.immediate,
            });
        }
        if let Some(index) = self.responses.insert(response) {
            if response.opcode == Opcode::Error {
                self.queue_error(index);
            } else {
                self.queue_response(index);
            }
        }
    }

    /// Whether requests or reports wait for room for a response.
    #[inline(always)]
    pub(crate) const fn is_stalled(&self) -> bool {
        self.streams_stalled
    }

    /// Room for responses has appeared: requests that waited for it go on.
    pub(crate) fn resume<M: Memory, const R: usize, const V: usize>(
        &mut self,
        shared: &mut Shared<R, V>,
        memory: &mut M,
    ) {
        if !self.streams_stalled || self.responses.is_full() {
            return;
        }
        self.streams_stalled = false;
        for stream in 0..STREAMS as u16 {
            if let Some((msn, code)) = self.streams.at(stream).tell {
                self.tell(stream, msn, code);
            }
            if core::mem::take(&mut self.streams.at_mut(stream).stalled)
                && self.streams.at(stream).failed.is_none()
            {
                self.advance(shared, memory, stream);
            }
        }
    }

    /// Refuses a packet for a reason that ends its stream, and reports it.
    #[cold]
    pub(super) fn refuse(&mut self, data: Data, code: ErrorCode, attempt: u8) -> DropReason {
        // spec: MR-ERR-002
        if let Err(reason) = self.report(data, code, attempt) {
            return reason;
        }
        self.fail_stream(data.stream, status_of(code), true, None);
        DropReason::Refused(code)
    }

    /// Refuses a packet of a stream that has failed. The peer seems not to know: it is told, once.
    // spec: MR-STREAM-004
    #[cold]
    pub(super) fn refuse_failed(&mut self, data: &Data) -> DropReason {
        if !self.streams.at(data.stream).told {
            self.tell(data.stream, data.msn, ErrorCode::StreamError);
        }
        DropReason::Refused(ErrorCode::StreamError)
    }

    /// Queues an error report about a message, if there is room for one.
    pub(super) fn report(
        &mut self,
        data: Data,
        code: ErrorCode,
        attempt: u8,
    ) -> Result<(), DropReason> {
        let request = matches!(data.opcode, Opcode::ReadRequest | Opcode::AtomicRequest);
        let token = if request { data.immediate } else { 0 };
        self.queue_report(&ErrorReport {
            code,
            attempt,
            stream: data.stream,
            msn: data.msn,
            token,
        })
    }

    fn queue_report(&mut self, report: &ErrorReport) -> Result<(), DropReason> {
        let mut message = OutMessage {
            stream: RESPONSE_STREAM,
            ..OutMessage::FREE
        };
        message.make_error(report);
        let index = self.responses.insert(message).ok_or(DropReason::NoRoom)?;
        self.queue_error(index);
        if report.code != ErrorCode::ReceiverNotReady {
            self.streams.at_mut(report.stream).told = true;
        }
        Ok(())
    }

    /// Tells the peer that a stream failed here, now or as soon as there is room for the report.
    fn tell(&mut self, stream: u16, msn: u32, code: ErrorCode) {
        let told = self.queue_report(&ErrorReport {
            code,
            attempt: 0,
            stream,
            msn,
            token: 0,
        });
        self.streams.at_mut(stream).tell = if told.is_ok() {
            None
        } else {
            Some((msn, code))
        };
        self.streams_stalled |= told.is_err();
    }

    /// Puts a stream in error: its open messages end, its packets are withdrawn, nothing else is touched.
    // spec: MR-STREAM-002, MR-STREAM-003
    pub(super) fn fail_stream(
        &mut self,
        stream: u16,
        status: Status,
        by_peer: bool,
        tell: Option<(u32, ErrorCode)>,
    ) {
        let record = self.streams.at_mut(stream);
        if record.failed.is_some() {
            return;
        }
        record.failed = Some(status);
        record.report = Some(by_peer);
        record.flush = true;
        self.report_streams = true;
        self.events = true;
        self.flush_messages(stream, Status::Flushed);
        if let Some((msn, code)) = tell {
            self.tell(stream, msn, code);
        }
        if crate::planted::Bug::ErrorSpreads.is_planted() {
            for other in 0..self.agreed.streams.min(STREAMS as u16) {
                self.fail_stream(other, Status::Flushed, by_peer, None);
            }
        }
    }

    /// Ends every open message of a stream. One that carries a status already keeps it.
    pub(super) fn flush_messages(&mut self, stream: u16, status: Status) {
        let mut index = self.streams.at(stream).first;
        while index != NONE {
            let message = *self.requests.at(index);
            if message.progress != Progress::Done {
                self.queued_bytes = self
                    .queued_bytes
                    .saturating_sub(u64::from(message.unsent_bytes()));
                if message.outstanding != 0 {
                    self.withdraw_slots(index);
                }
                self.stop_run_of(index);
                if message.has(OutMessage::STARTED) && message.expects_response() {
                    self.reads -= 1;
                    let record = self.streams.at_mut(stream);
                    record.reads = record.reads.saturating_sub(1);
                }
                if message.progress == Progress::Waiting {
                    self.waiting_messages -= 1;
                }
                let record = self.requests.at_mut(index);
                record.progress = Progress::Done;
                record.awaited = 0;
                if record.status == Status::Success {
                    record.status = status;
                }
            } else if message.status == Status::Success {
                // It is over, but out of turn: what comes before it fails.
                self.requests.at_mut(index).status = status;
            }
            index = message.next;
        }
        self.streams.at_mut(stream).unsent = NONE;
        self.retire_messages(stream);
        self.unblock_streams();
    }

    /// Gives the posted buffers of failed streams back to the application.
    // spec: MR-STREAM-003
    pub(super) fn flush_receives<const V: usize>(&mut self, receives: &mut Receives<V>) {
        for stream in 0..STREAMS as u16 {
            if !core::mem::take(&mut self.streams.at_mut(stream).flush) {
                continue;
            }
            let outcome = Outcome {
                connection: self.handle(),
                stream,
                kind: CompletionKind::Receive,
                status: Status::Flushed,
                length: 0,
                immediate: None,
                solicited: false,
            };
            let record = self.streams.at_mut(stream);
            record.awaiting = 0;
            let shared = record.shared.is_some();
            while receives.complete_first(&mut record.receives, &outcome) {}
            self.incoming.remove_where(|entry| {
                if entry.stream != stream {
                    return false;
                }
                if shared && entry.buffer != NO_BUFFER {
                    receives.complete(entry.buffer, &outcome);
                }
                true
            });
        }
    }

    /// The peer reports that it refused a message of this side.
    pub(super) fn accept_error(&mut self, now: Instant, report: &ErrorReport) {
        if report.stream >= self.agreed.streams || usize::from(report.stream) >= STREAMS {
            return;
        }
        let mut index = self.streams.at(report.stream).first;
        while index != NONE && self.requests.at(index).msn != report.msn {
            index = self.requests.at(index).next;
        }
        let open = index != NONE && self.requests.at(index).progress == Progress::Open;
        if report.code == ErrorCode::ReceiverNotReady {
            // spec: MR-RNR-006
            if open
                && self.requests.at(index).is_send()
                && self.requests.at(index).attempt == report.attempt
            {
                self.not_ready(now, index);
            }
            return;
        }
        if open && report.code != ErrorCode::StreamError {
            // spec: MR-ERR-003
            self.requests.at_mut(index).status = status_of(report.code);
        }
        // Whoever reports an error has failed the stream.
        self.streams.at_mut(report.stream).told = true;
        self.fail_stream(report.stream, status_of(report.code), false, None);
    }

    /// No buffer was posted for a SEND: it is withdrawn and begins again later, or gives up.
    fn not_ready(&mut self, now: Instant, index: u16) {
        let limit = self.config.rnr_attempts;
        let message = self.requests.at_mut(index);
        let (stream, msn) = (message.stream, message.msn);
        // spec: MR-RNR-005
        if message.attempts_left == 0 && limit != u8::MAX {
            message.status = Status::ReceiverNotReady;
            self.fail_stream(
                stream,
                Status::ReceiverNotReady,
                false,
                Some((msn, ErrorCode::StreamError)),
            );
            return;
        }
        message.attempts_left = message.attempts_left.saturating_sub(1);
        let unsent = message.unsent_bytes();
        self.queued_bytes = self.queued_bytes.saturating_sub(u64::from(unsent));
        // spec: MR-RNR-003, MR-MSG-010
        self.withdraw_slots(index);
        // spec: MR-RNR-009
        let until = now + self.config.rnr_delay;
        self.requests.at_mut(index).pause(until);
        self.waiting_messages += 1;
        if self.streams.at(stream).unsent == index {
            self.advance_unsent(stream);
        }
        self.timers.advance(Timer::Retry, until);
    }
}
