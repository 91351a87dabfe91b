//! The event queue: what happens next, in an order that is the same in every run.
//!
//! Events of equal time come out in the order in which they were put in. A 4-ary heap: shallow, and four
//! children lie in two cache lines.

use crate::time::Time;

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    time: Time,
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    fn before(&self, other: &Self) -> bool {
        (self.time, self.sequence) < (other.time, other.sequence)
    }
}

/// A queue of events that are small and cheap to copy.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    heap: Vec<Entry<E>>,
    sequence: u64,
    now: Time,
    popped: u64,
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

const ARITY: usize = 4;

impl<E: Copy> EventQueue<E> {
    /// An empty queue at time zero.
    #[must_use]
    pub fn new() -> Self {
        Self {
            heap: Vec::with_capacity(1024),
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
        self.heap.len()
    }

    /// Whether nothing is to come.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Puts an event in. A time in the past means now: time never runs back.
    pub fn push(&mut self, time: Time, event: E) {
        let entry = Entry {
            time: time.max(self.now),
            sequence: self.sequence,
            event,
        };
        self.sequence += 1;
        let mut hole = self.heap.len();
        self.heap.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if !entry.before(&self.heap[parent]) {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = entry;
    }

    /// The time of the next event.
    #[must_use]
    pub fn next_time(&self) -> Option<Time> {
        self.heap.first().map(|entry| entry.time)
    }

    /// Takes the next event out and moves the time to it.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let last = self.heap.pop()?;
        let first = match self.heap.first() {
            None => last,
            Some(&first) => {
                self.sink(last);
                first
            }
        };
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

    /// Lets `entry` sink from the top to its place.
    fn sink(&mut self, entry: Entry<E>) {
        let length = self.heap.len();
        let mut hole = 0;
        loop {
            let first = hole * ARITY + 1;
            if first >= length {
                break;
            }
            let mut least = first;
            for child in first + 1..(first + ARITY).min(length) {
                if self.heap[child].before(&self.heap[least]) {
                    least = child;
                }
            }
            if !self.heap[least].before(&entry) {
                break;
            }
            self.heap[hole] = self.heap[least];
            hole = least;
        }
        self.heap[hole] = entry;
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
