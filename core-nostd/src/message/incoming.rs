//! Incoming messages that are open: begun and not complete, complete but out of turn, or refused and to be sent again.
//!
//! A message is complete when as many bytes as it has have been placed; every PSN is placed exactly once, so a count is enough.

use crate::storage::Table;
use crate::wire::Opcode;

/// No posted buffer.
pub const NO_BUFFER: u16 = u16::MAX;

/// State of an incoming message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InProgress {
    /// The record is free.
    Free,
    /// Bytes are missing.
    Open,
    /// Complete (or a request to be executed); waits for its turn.
    Ready,
    /// Complete and its turn is over; its completion waits for a posted buffer.
    Awaiting,
    /// No buffer was posted; this attempt is refused for good.
    Refused,
}

/// An incoming message.
#[derive(Clone, Copy, Debug)]
pub struct InMessage {
    /// Address that a READ or atomic names; receive sequence number and attempt of a SEND.
    pub address: u64,
    /// Operand of an atomic: addend or expected word.
    pub operand: u64,
    /// New word of a compare-swap.
    pub swap: u64,
    /// Message sequence number.
    pub msn: u32,
    /// Bytes.
    pub length: u32,
    /// Bytes not placed yet.
    pub remaining: u32,
    /// Immediate, or the requester's token.
    pub immediate: u32,
    /// Key that a READ or atomic names.
    pub key: u32,
    /// Stream.
    pub stream: u16,
    /// The posted buffer a SEND goes to.
    pub buffer: u16,
    /// Opcode.
    pub opcode: Opcode,
    /// State.
    pub progress: InProgress,
    /// Attempt of the sender.
    pub attempt: u8,
    /// The peer asked to wake a waiter.
    pub solicited: bool,
    /// The atomic is a compare-swap.
    pub compare_swap: bool,
}

impl InMessage {
    /// A free record.
    pub const FREE: Self = Self {
        address: 0,
        operand: 0,
        swap: 0,
        msn: 0,
        length: 0,
        remaining: 0,
        immediate: 0,
        key: 0,
        stream: 0,
        buffer: NO_BUFFER,
        opcode: Opcode::Write,
        progress: InProgress::Free,
        attempt: 0,
        solicited: false,
        compare_swap: false,
    };
}

/// Open incoming messages, found by stream and MSN: open addressing, so that a lookup is a step or two.
#[derive(Debug)]
pub struct InTable<const MESSAGES: usize> {
    table: Table<InMessage, MESSAGES>,
    used: u16,
}

impl<const MESSAGES: usize> Default for InTable<MESSAGES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const MESSAGES: usize> InTable<MESSAGES> {
    /// None open.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            table: Table::filled(InMessage::FREE),
            used: 0,
        }
    }

    /// Records in use.
    #[must_use]
    pub const fn used(&self) -> u16 {
        self.used
    }

    /// Where a message would be if nothing was in its way. Consecutive messages of a stream are neighbours.
    #[inline]
    fn home(stream: u16, msn: u32) -> u16 {
        (msn.wrapping_add(u32::from(stream).wrapping_mul(0x9e37)) % MESSAGES as u32) as u16
    }

    #[inline]
    const fn after(index: u16) -> u16 {
        if index as usize + 1 >= MESSAGES {
            0
        } else {
            index + 1
        }
    }

    /// The record of a message.
    #[inline]
    #[must_use]
    pub fn find(&self, stream: u16, msn: u32) -> Option<u16> {
        if self.used == 0 {
            return None;
        }
        let mut index = Self::home(stream, msn);
        for _ in 0..MESSAGES {
            let entry = self.table.at(index);
            if entry.progress == InProgress::Free {
                return None;
            }
            if entry.msn == msn && entry.stream == stream {
                return Some(index);
            }
            index = Self::after(index);
        }
        None
    }

    /// Stores a message that is not there, if there is room.
    pub fn insert(&mut self, message: InMessage) -> Option<u16> {
        // spec: MR-SEC-003
        if usize::from(self.used) >= MESSAGES {
            return None;
        }
        let mut index = Self::home(message.stream, message.msn);
        while self.table.at(index).progress != InProgress::Free {
            index = Self::after(index);
        }
        *self.table.at_mut(index) = message;
        self.used += 1;
        Some(index)
    }

    /// Frees a record. Others may move: indices held are void.
    pub fn remove(&mut self, index: u16) {
        let mut hole = index;
        let mut next = Self::after(hole);
        self.used -= 1;
        // Move entries back that were pushed past the hole, so that searches may stop at a free record.
        for _ in 0..MESSAGES {
            let entry = *self.table.at(next);
            if entry.progress == InProgress::Free || next == index {
                break;
            }
            let home = Self::home(entry.stream, entry.msn);
            if Self::distance(home, hole) <= Self::distance(home, next) {
                *self.table.at_mut(hole) = entry;
                hole = next;
            }
            next = Self::after(next);
        }
        self.table.at_mut(hole).progress = InProgress::Free;
    }

    const fn distance(from: u16, to: u16) -> usize {
        if to >= from {
            (to - from) as usize
        } else {
            to as usize + MESSAGES - from as usize
        }
    }

    /// A record.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, index: u16) -> &InMessage {
        self.table.at(index)
    }

    /// A record, to be changed.
    #[inline(always)]
    pub fn at_mut(&mut self, index: u16) -> &mut InMessage {
        self.table.at_mut(index)
    }

    /// The record of the earliest message of a stream whose completion waits for a buffer.
    #[must_use]
    pub fn first_awaiting(&self, stream: u16, expected_msn: u32) -> Option<u16> {
        (0..MESSAGES as u16)
            .filter(|index| {
                let entry = self.table.at(*index);
                entry.progress == InProgress::Awaiting && entry.stream == stream
            })
            .max_by_key(|index| expected_msn.wrapping_sub(self.table.at(*index).msn))
    }

    /// Frees every record that `gone` names, after showing it.
    pub fn remove_where(&mut self, mut gone: impl FnMut(&InMessage) -> bool) {
        let mut index = 0;
        while (index as usize) < MESSAGES {
            let entry = self.table.at(index);
            if entry.progress != InProgress::Free && gone(entry) {
                // Another record may have moved here: look again.
                self.remove(index);
            } else {
                index += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        // spec: MR-SEC-003
        #[test]
        fn it_is_a_map_of_bounded_size(steps in proptest::collection::vec((0u16..3, 0u32..12, any::<bool>()), 0..400)) {
            let mut table = InTable::<8>::new();
            let mut model = BTreeSet::new();
            for (stream, msn, add) in steps {
                let found = table.find(stream, msn);
                prop_assert_eq!(found.is_some(), model.contains(&(stream, msn)));
                if let Some(index) = found { prop_assert_eq!((table.at(index).stream, table.at(index).msn), (stream, msn)); }
                match (add, found) {
                    (true, None) => {
                        let stored = table.insert(InMessage { stream, msn, progress: InProgress::Open, ..InMessage::FREE });
                        prop_assert_eq!(stored.is_some(), model.len() < 8);
                        if stored.is_some() { model.insert((stream, msn)); }
                    }
                    (false, Some(index)) => { table.remove(index); model.remove(&(stream, msn)); }
                    _ => {}
                }
                prop_assert_eq!(usize::from(table.used()), model.len());
            }
            table.remove_where(|entry| entry.stream == 1);
            for stream in 0..3 { for msn in 0..12 {
                prop_assert_eq!(table.find(stream, msn).is_some(), stream != 1 && model.contains(&(stream, msn)));
            } }
        }
    }
}
