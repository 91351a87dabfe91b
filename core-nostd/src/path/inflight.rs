//! Slots: what the sender remembers of each packet that is not acknowledged yet.
//!
//! All paths of a connection draw from one pool. A slot in use is in exactly one list: in flight on its path (in TSN
//! order), lost on its path (waiting to be sent again), or orphaned (its path was fenced; any path may take it).

use crate::storage::{FreeList, Table};

/// No slot, or no message.
pub const NONE: u16 = u16::MAX;

/// One outstanding packet: which bytes of which message, and its latest transmission.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Index of the message; [`NONE`] if the content was withdrawn.
    pub message: u16,
    /// Payload bytes.
    pub length: u16,
    /// Their offset in the message.
    pub offset: u32,
    /// Packet sequence number on the path.
    pub psn: u32,
    /// Sequence number of its latest transmission.
    pub tsn: u32,
    /// When that was: nanoseconds, modulo 2^32.
    pub sent_ns: u32,
    next: u16,
    /// Attempt of the message that this packet belongs to.
    pub attempt: u8,
    /// Transmissions so far, saturating.
    pub transmissions: u8,
}

const EMPTY: Slot = Slot {
    message: NONE,
    length: 0,
    offset: 0,
    psn: 0,
    tsn: 0,
    sent_ns: 0,
    next: NONE,
    attempt: 0,
    transmissions: 0,
};

/// A singly linked list through the pool.
#[derive(Clone, Copy, Debug)]
pub struct List {
    head: u16,
    tail: u16,
    count: u16,
}

impl Default for List {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl List {
    /// Nothing in it.
    pub const EMPTY: Self = Self {
        head: NONE,
        tail: NONE,
        count: 0,
    };

    /// Slots in the list.
    #[inline(always)]
    #[must_use]
    pub const fn len(&self) -> u16 {
        self.count
    }

    /// Whether there are none.
    #[inline(always)]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The first slot.
    #[inline(always)]
    #[must_use]
    pub const fn first(&self) -> Option<u16> {
        if self.head == NONE {
            None
        } else {
            Some(self.head)
        }
    }
}

/// The pool.
#[derive(Debug)]
pub struct Slots<const SLOTS: usize> {
    table: Table<Slot, SLOTS>,
    free: FreeList<SLOTS>,
}

impl<const SLOTS: usize> Default for Slots<SLOTS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const SLOTS: usize> Slots<SLOTS> {
    /// All free.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            table: Table::filled(EMPTY),
            free: FreeList::new(),
        }
    }

    /// Slots in use.
    #[must_use]
    pub const fn used(&self) -> u16 {
        self.free.used()
    }

    /// Whether [`Self::allocate`] would fail.
    #[inline(always)]
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.free.used() as usize >= SLOTS
    }

    /// Whether only those slots are left that are kept for what must not wait.
    #[inline(always)]
    #[must_use]
    pub const fn is_nearly_full(&self) -> bool {
        let kept = if SLOTS < 8 { 0 } else { 1 + SLOTS / 64 };
        self.free.used() as usize + kept >= SLOTS
    }

    /// Takes a free slot.
    #[inline(always)]
    pub fn allocate(&mut self) -> Option<u16> {
        self.free.take(|index| self.table.at(index).next)
    }

    /// Gives a slot back that is in no list.
    #[inline]
    pub fn release(&mut self, index: u16) {
        self.table.at_mut(index).next = self.free.give(index);
    }

    /// A slot.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, index: u16) -> &Slot {
        self.table.at(index)
    }

    /// A slot, to be changed.
    #[inline(always)]
    pub fn at_mut(&mut self, index: u16) -> &mut Slot {
        self.table.at_mut(index)
    }

    /// Every slot of the pool that was ever used.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Slot> {
        let fresh = usize::from(self.free.touched());
        self.table.iter_mut().take(fresh)
    }

    /// Appends a slot that is in no list.
    #[inline]
    pub fn push(&mut self, list: &mut List, index: u16) {
        self.table.at_mut(index).next = NONE;
        if list.tail == NONE {
            list.head = index;
        } else {
            self.table.at_mut(list.tail).next = index;
        }
        list.tail = index;
        list.count += 1;
    }

    /// Takes the first slot off.
    #[inline]
    pub fn pop(&mut self, list: &mut List) -> Option<u16> {
        let index = list.first()?;
        list.head = self.table.at(index).next;
        if list.head == NONE {
            list.tail = NONE;
        }
        list.count -= 1;
        Some(index)
    }

    /// Appends all of another list.
    #[inline]
    pub fn append(&mut self, list: &mut List, more: List) {
        if list.is_empty() {
            *list = more;
        } else if !more.is_empty() {
            self.table.at_mut(list.tail).next = more.head;
            list.tail = more.tail;
            list.count += more.count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn slots_are_in_one_list_each_and_none_is_lost(steps in proptest::collection::vec((0u8..4, 0usize..3), 0..400)) {
            let mut slots = Slots::<7>::new();
            let mut lists = [List::EMPTY; 3];
            let mut model: [VecDeque<u16>; 3] = Default::default();
            for (step, which) in steps {
                match step {
                    0 => match slots.allocate() {
                        Some(index) => {
                            prop_assert!(model.iter().all(|list| !list.contains(&index)));
                            slots.push(&mut lists[which], index);
                            model[which].push_back(index);
                        }
                        None => prop_assert_eq!(model.iter().map(VecDeque::len).sum::<usize>(), 7),
                    },
                    1 => {
                        let index = slots.pop(&mut lists[which]);
                        prop_assert_eq!(index, model[which].pop_front());
                        if let Some(index) = index { slots.release(index); }
                    }
                    2 => {
                        let to = (which + 1) % 3;
                        if let Some(index) = slots.pop(&mut lists[which]) {
                            slots.push(&mut lists[to], index);
                            let moved = model[which].pop_front().unwrap();
                            model[to].push_back(moved);
                        }
                    }
                    _ => {
                        let more = core::mem::take(&mut lists[(which + 1) % 3]);
                        slots.append(&mut lists[which], more);
                        let mut moved = core::mem::take(&mut model[(which + 1) % 3]);
                        model[which].append(&mut moved);
                    }
                }
                prop_assert_eq!(usize::from(slots.used()), model.iter().map(VecDeque::len).sum::<usize>());
                for (list, model) in lists.iter().zip(&model) { prop_assert_eq!(usize::from(list.len()), model.len()); }
            }
        }
    }
}
