//! The event queue: what happens next, in an order that is the same in every run.
//!
//! Events of equal time come out in the order in which they were put in. A wheel of buckets of about a nanosecond holds
//! what is due within 17 us, unsorted: a bucket is sorted when its time has come, which costs next to nothing as few events share one.
//! What is due later waits in a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Time;

/// A bucket is 2^10 ps.
const BUCKET_SHIFT: u32 = 10;
const BUCKETS: usize = 1 << 14;
const WORDS: usize = BUCKETS / 64;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    time: Time,
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    const fn key(&self) -> (Time, u64) {
        (self.time, self.sequence)
    }

    const fn bucket(&self) -> u64 {
        bucket(self.time)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// The number of the bucket of a time, counted from time zero.
const fn bucket(time: Time) -> u64 {
    time.ps() >> BUCKET_SHIFT
}

/// A queue of events that are small and cheap to copy.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    /// Entries of the wheel, each with the next one of its bucket.
    slots: Vec<(Entry<E>, u32)>,
    free: u32,
    heads: Vec<u32>,
    /// Which buckets have entries, and which words of that are not zero.
    occupied: Vec<u64>,
    summary: [u64; WORDS / 64],
    in_wheel: usize,
    /// The entries of the bucket `base` and those before it, the last first.
    current: Vec<Entry<E>>,
    base: u64,
    later: BinaryHeap<Reverse<Entry<E>>>,
    sequence: u64,
    now: Time,
    popped: u64,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E: Copy> EventQueue<E> {
    /// An empty queue at time zero.
    #[must_use]
    pub fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: NONE,
            heads: vec![NONE; BUCKETS],
            occupied: vec![0; WORDS],
            summary: [0; WORDS / 64],
            in_wheel: 0,
            current: Vec::new(),
            base: 0,
            later: BinaryHeap::new(),
            sequence: 0,
            now: Time::ZERO,
            popped: 0,
        }
    }

    /// The time of the event that came out last.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// How many events have come out.
    #[must_use]
    pub fn processed(&self) -> u64 {
        self.popped
    }

    /// How many events are to come.
    #[must_use]
    pub fn len(&self) -> usize {
        self.current.len() + self.in_wheel + self.later.len()
    }

    /// Whether nothing is to come.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts an event in. A time in the past means now: time never runs back.
    pub fn push(&mut self, time: Time, event: E) {
        let entry = Entry {
            time: time.max(self.now),
            sequence: self.sequence,
            event,
        };
        self.sequence += 1;
        if entry.bucket() >= self.base + BUCKETS as u64 {
            self.later.push(Reverse(entry));
        } else {
            self.place(entry);
        }
    }

    /// The time of the next event. The wheel does not turn: what is put in before the next event would not find its bucket.
    #[must_use]
    pub fn next_time(&self) -> Option<Time> {
        if let Some(entry) = self.current.last() {
            return Some(entry.time);
        }
        let later = self.later.peek().map(|Reverse(entry)| entry.time);
        let in_wheel = self.next_in_wheel().and_then(|number| {
            let mut index = self.heads[number as usize % BUCKETS];
            let times = std::iter::from_fn(|| {
                let &(entry, next) = self.slots.get(index as usize)?;
                index = next;
                Some(entry.time)
            });
            times.min()
        });
        in_wheel.into_iter().chain(later).min()
    }

    /// Takes the next event out if it is due at `limit` or before, and moves the time to it.
    pub fn pop_until(&mut self, limit: Time) -> Option<(Time, E)> {
        if self.current.is_empty() {
            let base = self.next_number()?;
            if base > bucket(limit) {
                return None;
            }
            self.turn(base);
        }
        if self.current.last()?.time > limit {
            return None;
        }
        self.pop()
    }

    /// Takes the next event out and moves the time to it.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        if self.current.is_empty() {
            let base = self.next_number()?;
            self.turn(base);
        }
        let first = self.current.pop()?;
        debug_assert!(first.time >= self.now, "time ran back");
        self.now = first.time;
        self.popped += 1;
        Some((first.time, first.event))
    }

    /// Moves the time on to `time` if nothing is due before.
    pub fn advance_to(&mut self, time: Time) {
        if self.next_time().is_none_or(|next| next >= time) {
            self.now = self.now.max(time);
        }
    }

    /// Puts an entry that is due before the wheel ends into its bucket, or among those that are next.
    fn place(&mut self, entry: Entry<E>) {
        let number = entry.bucket();
        if number <= self.base {
            let at = self.current.partition_point(|other| *other > entry);
            self.current.insert(at, entry);
            return;
        }
        let at = number as usize % BUCKETS;
        let next = self.heads[at];
        let index = match self.slots.get_mut(self.free as usize) {
            Some(slot) => {
                let index = self.free;
                self.free = slot.1;
                *slot = (entry, next);
                index
            }
            None => {
                self.slots.push((entry, next));
                self.slots.len() as u32 - 1
            }
        };
        self.heads[at] = index;
        self.occupied[at / 64] |= 1 << (at % 64);
        self.summary[at / 64 / 64] |= 1 << (at / 64 % 64);
        self.in_wheel += 1;
    }

    /// The number of the next bucket of the wheel that has entries.
    fn next_in_wheel(&self) -> Option<u64> {
        (self.in_wheel != 0).then(|| self.next_bucket()).flatten()
    }

    /// The number of the bucket of the next entry that is not current.
    fn next_number(&self) -> Option<u64> {
        let later = self.later.peek().map(|Reverse(entry)| entry.bucket());
        self.next_in_wheel().into_iter().chain(later).min()
    }

    /// Makes the bucket `base`, the next that has entries, the current one.
    fn turn(&mut self, base: u64) {
        let end_before = self.base + BUCKETS as u64;
        self.base = base;
        let at = base as usize % BUCKETS;
        if base < end_before {
            let mut index = self.heads[at];
            while index != NONE {
                let (entry, next) = self.slots[index as usize];
                self.current.push(entry);
                self.slots[index as usize].1 = self.free;
                self.free = index;
                index = next;
            }
            self.heads[at] = NONE;
            self.occupied[at / 64] &= !(1 << (at % 64));
            if self.occupied[at / 64] == 0 {
                self.summary[at / 64 / 64] &= !(1 << (at / 64 % 64));
            }
            self.in_wheel -= self.current.len();
            // Those put in last come first in the list, as they must in `current`: mostly it is sorted.
            if !self.current.is_sorted_by(|a, b| a > b) {
                self.current.sort_unstable_by(|a, b| b.cmp(a));
            }
        }
        let end = base + BUCKETS as u64;
        while let Some(Reverse(entry)) = self.later.peek()
            && entry.bucket() < end
        {
            let entry = *entry;
            self.later.pop();
            self.place(entry);
        }
    }

    /// The number of the first bucket after `base` with entries, of which there are some.
    fn next_bucket(&self) -> Option<u64> {
        let start = (self.base + 1) as usize % BUCKETS;
        let found = self.first_from(start).or_else(|| self.first_from(0))? as u64;
        let turn = self.base + 1 - start as u64;
        Some(if (found as usize) < start {
            turn + BUCKETS as u64 + found
        } else {
            turn + found
        })
    }

    /// The first place from `start` on whose bucket has entries.
    fn first_from(&self, start: usize) -> Option<usize> {
        let word = start / 64;
        let rest = self.occupied[word] & (u64::MAX << (start % 64));
        if rest != 0 {
            return Some(word * 64 + rest.trailing_zeros() as usize);
        }
        let mut block = (word + 1) / 64;
        let mut mask = u64::MAX << ((word + 1) % 64);
        while block < self.summary.len() {
            let rest = self.summary[block] & mask;
            if rest != 0 {
                let word = block * 64 + rest.trailing_zeros() as usize;
                return Some(word * 64 + self.occupied[word].trailing_zeros() as usize);
            }
            block += 1;
            mask = u64::MAX;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};

    #[test]
    fn equal_times_come_out_as_they_went_in() {
        let mut queue = EventQueue::new();
        for i in 0..100u32 {
            queue.push(Time::from_ns(u64::from(i % 3)), i);
        }
        let order: Vec<(Time, u32)> = std::iter::from_fn(|| queue.pop()).collect();
        let mut expected: Vec<(Time, u32)> = (0..100)
            .map(|i| (Time::from_ns(u64::from(i % 3)), i))
            .collect();
        expected.sort();
        assert_eq!(order, expected);
        assert_eq!(queue.processed(), 100);
    }

    #[test]
    fn it_is_a_sorted_list_whatever_the_distances() {
        for reach in [12, 18, 26, 40] {
            let mut queue = EventQueue::new();
            let mut model = std::collections::BTreeSet::new();
            let mut random = Stream::new(reach, Purpose::Plan, 1);
            for i in 0..30_000u64 {
                // Nothing is due for a while: looking at it must not keep what is due before from its place.
                let limit = queue.now() + Time::from_ps(random.below(1 << 14));
                if random.one_in(1, 4) {
                    let due = model.first().copied().filter(|&(time, _)| time <= limit);
                    assert_eq!(queue.pop_until(limit), due);
                    if due.is_some() {
                        model.pop_first();
                    }
                } else if random.one_in(51, 100) {
                    let shift = random.below(reach + 1);
                    let time = queue.now() + Time::from_ps(random.below(1 << shift));
                    queue.push(time, i);
                    model.insert((time, i));
                } else {
                    assert_eq!(queue.next_time(), model.first().map(|&(time, _)| time));
                    assert_eq!(queue.pop(), model.pop_first());
                }
                assert_eq!(queue.len(), model.len());
            }
        }
    }

    #[test]
    fn random_traffic_is_sorted_and_the_past_is_now() {
        let mut queue = EventQueue::new();
        let mut random = Stream::new(1, Purpose::Plan, 0);
        let mut last = Time::ZERO;
        for _ in 0..20_000 {
            if random.one_in(3, 5) || queue.is_empty() {
                queue.push(Time::from_ps(random.below(1 << 30)), 0u32);
            } else if let Some((time, _)) = queue.pop() {
                assert!(time >= last);
                last = time;
            }
        }
        while let Some((time, _)) = queue.pop() {
            assert!(time >= last);
            last = time;
        }
        queue.push(Time::ZERO, 9);
        assert_eq!(queue.pop(), Some((last, 9)));
    }
}
