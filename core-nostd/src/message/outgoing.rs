//! Outgoing messages: work requests of this side, and responses to the peer's requests.

use crate::memory::{LocalSlice, RegionIndex};
use crate::storage::{FreeList, Table};
use crate::time::Instant;
use crate::wire::{ErrorReport, Opcode};
use crate::work::{INLINE_BYTES, Status};

/// No message.
pub const NONE: u16 = u16::MAX;

/// Where a message is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// The record is free.
    Free,
    /// Bytes (or the request) are still to be sent or acknowledged.
    Open,
    /// Refused because no buffer was posted; waits for its next attempt.
    Waiting,
    /// Over; waits for the earlier ones of its stream, or to be polled.
    Done,
}

/// An outgoing message.
#[derive(Clone, Copy, Debug)]
pub struct OutMessage {
    /// The application's number.
    pub id: u64,
    /// Remote address of the first byte; for SENDs, their receive sequence number.
    pub address: u64,
    /// Offset of the first byte in the local region.
    pub local_offset: u64,
    /// The bytes themselves, for inline messages, atomic operands and fixed-size responses.
    pub inline: [u8; INLINE_BYTES],
    /// Bytes of the message on the wire (for a READ request: bytes wanted).
    pub length: u32,
    /// Bytes handed to the scheduler so far. See [`Self::pause`].
    pub cursor: u32,
    /// Packets sent and not acknowledged.
    pub outstanding: u32,
    /// Bytes of the response not yet placed, for READs and atomics. See [`Self::pause`].
    pub awaited: u32,
    /// Remote key.
    pub key: u32,
    /// Immediate; or the token by which the response is matched (requests), or which it answers (responses).
    pub immediate: u32,
    /// Message sequence number.
    pub msn: u32,
    /// Local region.
    pub region: u16,
    /// Stream.
    pub stream: u16,
    /// Next message of its stream, or of the list it is in.
    pub next: u16,
    /// Opcode.
    pub opcode: Opcode,
    /// Where it is in its life.
    pub progress: Progress,
    /// How it ended.
    pub status: Status,
    /// Attempts made, modulo 256.
    pub attempt: u8,
    /// Attempts left if there is no buffer.
    pub attempts_left: u8,
    /// Bits of [`OutMessage::INLINE`] and its siblings.
    pub flags: u8,
}

impl OutMessage {
    /// The bytes are in `inline`.
    pub const INLINE: u8 = 1;
    /// Success is reported.
    pub const SIGNALED: u8 = 2;
    /// The peer shall wake a waiter.
    pub const SOLICITED: u8 = 4;
    /// Starts only when earlier READs and atomics are done.
    pub const FENCE: u8 = 8;
    /// It has been started.
    pub const STARTED: u8 = 16;
    /// Its single packet without payload has been sent.
    pub const EMPTY_SENT: u8 = 32;
    /// The atomic is a compare-swap.
    pub const COMPARE_SWAP: u8 = 64;

    /// A free record.
    pub const FREE: Self = Self {
        id: 0,
        address: 0,
        local_offset: 0,
        inline: [0; INLINE_BYTES],
        length: 0,
        cursor: 0,
        outstanding: 0,
        awaited: 0,
        key: 0,
        immediate: 0,
        msn: 0,
        region: 0,
        stream: 0,
        next: NONE,
        opcode: Opcode::Write,
        progress: Progress::Free,
        status: Status::Success,
        attempt: 0,
        attempts_left: 0,
        flags: 0,
    };

    /// Whether a flag is set.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[must_use]
    pub const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Payload bytes that its packets carry in all.
    #[inline]
    #[must_use]
    pub const fn payload_length(&self) -> u32 {
        match self.opcode {
            Opcode::ReadRequest => 0,
            Opcode::AtomicRequest => crate::wire::ATOMIC_REQUEST_SIZE as u32,
            _ => self.length,
        }
    }

    /// Whether anything is still to be handed to the scheduler.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[must_use]
    pub const fn has_unsent(&self) -> bool {
        matches!(self.progress, Progress::Open)
            && (self.cursor < self.payload_length()
                || (self.payload_length() == 0 && !self.has(Self::EMPTY_SENT)))
    }

    /// Bytes of this message that count as demand.
    #[inline]
    #[must_use]
    pub const fn unsent_bytes(&self) -> u32 {
        if self.has_unsent() {
            self.payload_length() - self.cursor
        } else {
            0
        }
    }

    /// Whether every packet was acknowledged and every awaited byte placed.
    #[inline]
    #[must_use]
    // spec: MR-MSG-004
    pub fn is_complete(&self) -> bool {
        matches!(self.progress, Progress::Open)
            && self.outstanding <= u32::from(crate::planted::Bug::EarlyCompletion.is_planted())
            && self.awaited == 0
            && !self.has_unsent()
    }

    /// Whether it awaits a response.
    #[inline]
    #[must_use]
    pub const fn expects_response(&self) -> bool {
        matches!(self.opcode, Opcode::ReadRequest | Opcode::AtomicRequest)
    }

    /// What tells it from other messages that are or were in the same record.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[must_use]
    pub const fn identity(&self) -> (u32, u32, u16, Opcode) {
        (self.msn, self.immediate, self.stream, self.opcode)
    }

    /// Whether its bytes travel as SEND.
    #[inline]
    #[must_use]
    pub const fn is_send(&self) -> bool {
        matches!(self.opcode, Opcode::Send | Opcode::SendImm)
    }

    /// Puts everything back to the start for the next attempt.
    pub fn restart(&mut self) {
        self.cursor = 0;
        self.awaited = 0;
        self.flags &= !Self::EMPTY_SENT;
        if !crate::planted::Bug::RnrSameAttempt.is_planted() {
            self.attempt = self.attempt.wrapping_add(1);
        }
        self.progress = Progress::Open;
    }

    /// A refused SEND pauses until then. It awaits nothing and nothing of it is sent meanwhile, so the time is kept in those fields.
    pub const fn pause(&mut self, until: Instant) {
        self.progress = Progress::Waiting;
        self.cursor = until.as_nanos() as u32;
        self.awaited = (until.as_nanos() >> 32) as u32;
    }

    /// When it begins again, if it pauses.
    #[must_use]
    pub const fn pauses_until(&self) -> Option<Instant> {
        if !matches!(self.progress, Progress::Waiting) {
            return None;
        }
        let ns = (self.awaited as u64) << 32 | self.cursor as u64;
        Some(Instant::from_nanos(ns))
    }

    /// Turns a response into an error report.
    pub fn make_error(&mut self, report: &ErrorReport) {
        let bytes = report.encode();
        if let Some(place) = self.inline.first_chunk_mut() {
            *place = bytes;
        }
        self.opcode = Opcode::Error;
        self.length = bytes.len() as u32;
        self.cursor = 0;
        self.flags = Self::INLINE;
        self.progress = Progress::Open;
    }

    /// Where the message begins, unless it is inline.
    #[inline]
    #[must_use]
    pub const fn local(&self) -> Option<LocalSlice> {
        if self.has(Self::INLINE) {
            return None;
        }
        Some(LocalSlice {
            region: RegionIndex(self.region),
            offset: self.local_offset,
            length: 0,
        })
    }
}

/// A table of outgoing messages with a free list.
#[derive(Debug)]
pub struct OutTable<const MESSAGES: usize> {
    table: Table<OutMessage, MESSAGES>,
    free: FreeList<MESSAGES>,
}

impl<const MESSAGES: usize> Default for OutTable<MESSAGES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const MESSAGES: usize> OutTable<MESSAGES> {
    /// All free.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(MESSAGES < 1 << 14, "message numbers have 14 bits") };
        Self {
            table: Table::filled(OutMessage::FREE),
            free: FreeList::new(),
        }
    }

    /// Records in use.
    #[must_use]
    pub const fn used(&self) -> u16 {
        self.free.used()
    }

    /// Whether every record is in use.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.free.used() as usize >= MESSAGES
    }

    /// Stores a message, if there is room.
    pub fn insert(&mut self, message: OutMessage) -> Option<u16> {
        let index = self.free.take(|index| self.table.at(index).next)?;
        *self.table.at_mut(index) = message;
        Some(index)
    }

    /// Frees a record that is in no list.
    pub fn remove(&mut self, index: u16) {
        let record = self.table.at_mut(index);
        record.progress = Progress::Free;
        record.next = self.free.give(index);
    }

    /// A message.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[must_use]
    pub fn at(&self, index: u16) -> &OutMessage {
        self.table.at(index)
    }

    /// A message, to be changed.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub fn at_mut(&mut self, index: u16) -> &mut OutMessage {
        self.table.at_mut(index)
    }

    /// The message at an index that the peer named, if it is in use.
    #[must_use]
    pub fn get(&self, index: u16) -> Option<&OutMessage> {
        self.table
            .get(index)
            .filter(|message| message.progress != Progress::Free)
    }

    /// A region is no more: messages from or to it have no place, whatever is registered under its index later.
    // spec: MR-MEM-007
    pub fn withdraw_region(&mut self, region: RegionIndex) {
        for message in self.table.iter_mut() {
            if message.region == region.0 {
                message.region = RegionIndex::GONE.0;
            }
        }
    }

    /// Indices of the records in use.
    pub fn indices(&self) -> impl Iterator<Item = u16> + use<'_, MESSAGES> {
        (0..self.free.touched()).filter(|index| self.table.at(*index).progress != Progress::Free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn a_message_without_bytes_is_one_packet() {
        let mut message = OutMessage {
            progress: Progress::Open,
            ..OutMessage::FREE
        };
        assert!(message.has_unsent() && !message.is_complete());
        message.flags |= OutMessage::EMPTY_SENT;
        message.outstanding = 1;
        assert!(!message.has_unsent() && !message.is_complete());
        message.outstanding = 0;
        assert!(message.is_complete());
        message.restart();
        assert!(message.has_unsent());
    }

    #[test]
    fn a_read_is_complete_when_its_bytes_are_here() {
        let mut message = OutMessage {
            progress: Progress::Open,
            opcode: Opcode::ReadRequest,
            length: 100,
            awaited: 100,
            flags: OutMessage::EMPTY_SENT,
            ..OutMessage::FREE
        };
        assert!(!message.is_complete());
        message.awaited = 0;
        assert!(message.is_complete());
    }

    #[test]
    fn records_are_reused_and_bounded() {
        let mut table = OutTable::<2>::new();
        let open = OutMessage {
            progress: Progress::Open,
            ..OutMessage::FREE
        };
        let (a, b) = (table.insert(open).unwrap(), table.insert(open).unwrap());
        assert!(table.insert(open).is_none() && table.is_full());
        table.remove(a);
        assert!(table.get(a).is_none());
        assert_eq!(table.insert(open), Some(a));
        assert_eq!(table.indices().collect::<Vec<_>>(), [a, b]);
    }
}
