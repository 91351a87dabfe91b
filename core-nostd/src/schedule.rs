//! Which connections have something to do: rings of those that may send, of those whose lines are busy and of those with events, a heap of deadlines.
//!
//! The links are in the connections' table entries, so that nothing needs room of its own. Every operation is constant or
//! logarithmic in the number of connections.

use crate::time::Instant;

const NONE: u16 = u16::MAX;

/// A table entry's place in the rings and the heap.
#[derive(Clone, Copy, Debug)]
pub struct Links {
    /// Its deadline in the heap.
    deadline: Instant,
    /// Which entry is at this entry's index in the heap.
    heap_member: u16,
    /// Where in the heap this entry is.
    heap_place: u16,
    next: [u16; RINGS],
    queued: [bool; RINGS],
}

impl Links {
    /// In nothing.
    pub const IDLE: Self = Self {
        deadline: Instant::FAR_FUTURE,
        heap_member: NONE,
        heap_place: NONE,
        next: [NONE; RINGS],
        queued: [false; RINGS],
    };
}

impl Links {
    /// Whether the entry is in a ring.
    #[inline(always)]
    #[must_use]
    pub const fn is_queued(&self, ring: Ring) -> bool {
        self.queued[ring as usize]
    }
}

/// Something that has links.
pub trait Linked {
    /// The links.
    fn links(&mut self) -> &mut Links;
}

/// How many rings there are.
const RINGS: usize = 3;

/// The rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ring {
    /// May have a datagram to send.
    Ready = 0,
    /// May have an event.
    Events = 1,
    /// Would send if the line of another plane were free.
    Held = 2,
}

/// Heads of the rings, size of the heap.
#[derive(Debug)]
pub struct Schedule {
    first: [u16; RINGS],
    last: [u16; RINGS],
    heap_length: u16,
}

impl Default for Schedule {
    fn default() -> Self {
        Self::new()
    }
}

fn links<T: Linked>(table: &mut [T], index: u16) -> Option<&mut Links> {
    table.get_mut(usize::from(index)).map(Linked::links)
}

impl Schedule {
    /// Nothing to do.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            first: [NONE; RINGS],
            last: [NONE; RINGS],
            heap_length: 0,
        }
    }

    /// The entry at the front of a ring.
    #[inline]
    #[must_use]
    pub const fn front(&self, ring: Ring) -> Option<u16> {
        let first = self.first[ring as usize];
        if first == NONE { None } else { Some(first) }
    }

    /// Appends an entry to a ring unless it is in it.
    #[inline]
    pub fn push<T: Linked>(&mut self, table: &mut [T], ring: Ring, index: u16) {
        let Some(own) = links(table, index) else {
            return;
        };
        if core::mem::replace(&mut own.queued[ring as usize], true) {
            return;
        }
        own.next[ring as usize] = NONE;
        match links(table, self.last[ring as usize]) {
            Some(last) => last.next[ring as usize] = index,
            None => self.first[ring as usize] = index,
        }
        self.last[ring as usize] = index;
    }

    /// Takes the front of a ring off.
    #[inline]
    pub fn pop<T: Linked>(&mut self, table: &mut [T], ring: Ring) -> Option<u16> {
        let index = self.front(ring)?;
        let own = links(table, index)?;
        own.queued[ring as usize] = false;
        let next = own.next[ring as usize];
        self.first[ring as usize] = next;
        if next == NONE {
            self.last[ring as usize] = NONE;
        }
        Some(index)
    }

    /// Whether a ring has more than one member.
    #[inline(always)]
    #[must_use]
    pub const fn has_several(&self, ring: Ring) -> bool {
        self.first[ring as usize] != self.last[ring as usize]
    }

    /// Moves the front of a ring to its end.
    #[inline]
    pub fn rotate<T: Linked>(&mut self, table: &mut [T], ring: Ring) {
        if self.has_several(ring)
            && let Some(index) = self.pop(table, ring)
        {
            self.push(table, ring, index);
        }
    }

    /// The earliest deadline, and whose it is.
    #[inline]
    pub fn earliest<T: Linked>(&self, table: &mut [T]) -> Option<(Instant, u16)> {
        let member = self.member(table, 0)?;
        Some((links(table, member)?.deadline, member))
    }

    /// Sets an entry's deadline; the far future takes it out.
    #[inline]
    pub fn set_deadline<T: Linked>(&mut self, table: &mut [T], index: u16, deadline: Instant) {
        let Some(own) = links(table, index) else {
            return;
        };
        let (before, place) = (own.deadline, own.heap_place);
        if before == deadline {
            return;
        }
        own.deadline = deadline;
        if place == NONE {
            let place = self.heap_length;
            self.heap_length += 1;
            self.put(table, place, index);
            self.sift_up(table, place);
        } else if deadline == Instant::FAR_FUTURE {
            own.heap_place = NONE;
            self.heap_length -= 1;
            if place != self.heap_length
                && let Some(moved) = self.member_any(table, self.heap_length)
            {
                self.put(table, place, moved);
                self.sift_up(table, place);
                self.sift_down(table, place);
            }
        } else if deadline < before {
            self.sift_up(table, place);
        } else {
            self.sift_down(table, place);
        }
    }

    fn member<T: Linked>(&self, table: &mut [T], place: u16) -> Option<u16> {
        if place < self.heap_length {
            self.member_any(table, place)
        } else {
            None
        }
    }

    fn member_any<T: Linked>(&self, table: &mut [T], place: u16) -> Option<u16> {
        links(table, place).map(|links| links.heap_member)
    }

    fn put<T: Linked>(&self, table: &mut [T], place: u16, index: u16) {
        if let Some(at) = links(table, place) {
            at.heap_member = index;
        }
        if let Some(own) = links(table, index) {
            own.heap_place = place;
        }
    }

    fn deadline_at<T: Linked>(&self, table: &mut [T], place: u16) -> Instant {
        match self.member(table, place) {
            Some(member) => {
                links(table, member).map_or(Instant::FAR_FUTURE, |links| links.deadline)
            }
            None => Instant::FAR_FUTURE,
        }
    }

    fn sift_up<T: Linked>(&self, table: &mut [T], mut place: u16) {
        while place != 0 {
            let parent = (place - 1) / 2;
            if self.deadline_at(table, parent) <= self.deadline_at(table, place) {
                return;
            }
            self.swap(table, place, parent);
            place = parent;
        }
    }

    fn sift_down<T: Linked>(&self, table: &mut [T], mut place: u16) {
        loop {
            let (left, right) = (
                place.saturating_mul(2).saturating_add(1),
                place.saturating_mul(2).saturating_add(2),
            );
            let mut least = place;
            for child in [left, right] {
                if child < self.heap_length
                    && self.deadline_at(table, child) < self.deadline_at(table, least)
                {
                    least = child;
                }
            }
            if least == place {
                return;
            }
            self.swap(table, place, least);
            place = least;
        }
    }

    fn swap<T: Linked>(&self, table: &mut [T], a: u16, b: u16) {
        if let (Some(at_a), Some(at_b)) = (self.member_any(table, a), self.member_any(table, b)) {
            self.put(table, a, at_b);
            self.put(table, b, at_a);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::vec;

    impl Linked for Links {
        fn links(&mut self) -> &mut Links {
            self
        }
    }

    proptest! {
        #[test]
        fn the_heap_knows_the_earliest(steps in proptest::collection::vec((0u16..12, 0u64..50), 1..400)) {
            let mut table = vec![Links::IDLE; 12];
            let mut schedule = Schedule::new();
            let mut model = [u64::MAX; 12];
            for (index, at) in steps {
                let at = if at < 8 { u64::MAX } else { at };
                model[usize::from(index)] = at;
                schedule.set_deadline(&mut table, index, Instant::from_nanos(at));
                let expected = model.iter().min().copied().filter(|at| *at != u64::MAX);
                let found = schedule.earliest(&mut table);
                prop_assert_eq!(found.map(|(at, _)| at.as_nanos()), expected);
                if let Some((at, index)) = found { prop_assert_eq!(model[usize::from(index)], at.as_nanos()); }
            }
        }

        #[test]
        fn the_ring_is_a_queue_without_repeats(steps in proptest::collection::vec((0u8..3, 0u16..6), 1..200)) {
            let mut table = vec![Links::IDLE; 6];
            let mut schedule = Schedule::new();
            let mut model = VecDeque::new();
            for (step, index) in steps {
                match step {
                    0 => { schedule.push(&mut table, Ring::Ready, index); if !model.contains(&index) { model.push_back(index); } }
                    1 => prop_assert_eq!(schedule.pop(&mut table, Ring::Ready), model.pop_front()),
                    _ => { schedule.rotate(&mut table, Ring::Ready); if let Some(front) = model.pop_front() { model.push_back(front); } }
                }
                prop_assert_eq!(schedule.front(Ring::Ready), model.front().copied());
                prop_assert_eq!(schedule.front(Ring::Events), None);
            }
        }
    }
}
