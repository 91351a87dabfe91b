//! Which part of which message is sent next: responses first, then the streams in turn.

use super::{Connection, RESPONSE_BIT, Timer};
use crate::message::outgoing::{self, OutMessage};
use crate::time::Instant;
use crate::wire::Opcode;

/// A part of a message that goes into one packet.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub message: u16,
    pub offset: u32,
    pub length: u16,
}

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// The next part of a message, taken from responses and streams in turn.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn next_piece(&mut self) -> Option<Piece> {
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
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn may_start(&mut self, stream: u16, number: u16) -> bool {
        let message = self.requests.at(number);
        if message.has(OutMessage::STARTED) {
            return true;
        }
        // spec: MR-MSG-014
        let fenced = message.has(OutMessage::FENCE) && self.streams.at(stream).reads != 0;
        let expects_response = message.expects_response();
        if fenced
            // spec: MR-MSG-009
            || self.started >= self.agreed.open_messages
            // spec: MR-READ-005
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

    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn cut_piece(&mut self, number: u16) -> Piece {
        let payload = u32::from(self.agreed.payload_bytes);
        let message = self.message_mut(number);
        let offset = message.cursor;
        let length = (message.payload_length() - offset).min(payload);
        message.cursor = offset + length;
        if length == 0 {
            message.flags |= OutMessage::EMPTY_SENT;
        }
        message.outstanding += 1;
        // spec: MR-HINT-009
        self.queued_bytes = self.queued_bytes.saturating_sub(u64::from(length));
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

    /// Puts an ERROR in front of all other responses: until it is there the peer repeats what was refused.
    #[cold]
    pub(super) fn queue_error(&mut self, index: u16) {
        self.queued_bytes += u64::from(self.responses.at(index).unsent_bytes());
        let mut last = outgoing::NONE;
        let mut next = self.response_first;
        while next != outgoing::NONE && self.responses.at(next).opcode == Opcode::Error {
            last = next;
            next = self.responses.at(next).next;
        }
        self.responses.at_mut(index).next = next;
        if last == outgoing::NONE {
            self.response_first = index;
        } else {
            self.responses.at_mut(last).next = index;
        }
        if next == outgoing::NONE {
            self.response_last = index;
        }
        // What is kept for it may make room on a path.
        for path in self.usable.iter() {
            self.offer(path);
        }
    }

    /// Whether an ERROR waits to be sent.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(super) fn has_error(&self) -> bool {
        self.response_first != outgoing::NONE
            && self.responses.at(self.response_first).opcode == Opcode::Error
    }

    /// Takes a response that waits out of their queue.
    pub(super) fn unqueue_response(&mut self, index: u16) {
        let (mut last, mut at) = (outgoing::NONE, self.response_first);
        while at != outgoing::NONE && at != index {
            last = at;
            at = self.responses.at(at).next;
        }
        if at == outgoing::NONE {
            return;
        }
        let next = self.responses.at(index).next;
        if last == outgoing::NONE {
            self.response_first = next;
        } else {
            self.responses.at_mut(last).next = next;
        }
        if next == outgoing::NONE {
            self.response_last = last;
        }
    }

    /// Puts a response that has something to send at the end of their queue.
    // spec: MR-HINT-009
    pub(super) fn queue_response(&mut self, index: u16) {
        self.queued_bytes += u64::from(self.responses.at(index).unsent_bytes());
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

    pub(super) fn deactivate_first(&mut self) {
        let record = self.streams.at_mut(self.active_first);
        record.active = false;
        self.active_first = record.next_active;
        self.active_count -= 1;
    }

    // spec: MR-STREAM-005
    pub(super) fn rotate_active(&mut self) {
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

    /// Refused messages whose pause is over begin again.
    pub(super) fn retry_waiting(&mut self, now: Instant) {
        if self.waiting_messages == 0 {
            return;
        }
        for index in 0..MESSAGES as u16 {
            let Some(until) = self.requests.at(index).pauses_until() else {
                continue;
            };
            // spec: MR-RNR-009
            if until > now {
                self.timers.advance(Timer::Retry, until);
                continue;
            }
            self.waiting_messages -= 1;
            let message = self.requests.at_mut(index);
            // spec: MR-RNR-003
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

    /// Whether a number is that of a request, not of a response.
    pub(super) const fn is_request(number: u16) -> bool {
        number & RESPONSE_BIT == 0
    }
}
