//! Things that come out at their time, in the order of their times.

use metaroce_core::time::Instant;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A queue ordered by time of release; things of one time come out in the order they went in.
#[derive(Debug)]
pub struct DelayQueue<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    pushed: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Instant,
    number: u64,
    item: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<T> Default for DelayQueue<T> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            pushed: 0,
        }
    }
}

impl<T> DelayQueue<T> {
    /// Puts a thing in that comes out at `at`.
    pub fn push(&mut self, at: Instant, item: T) {
        self.heap.push(Reverse(Entry {
            at,
            number: self.pushed,
            item,
        }));
        self.pushed += 1;
    }

    /// The next thing whose time has come.
    pub fn pop_due(&mut self, now: Instant) -> Option<T> {
        if self.next_time()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry.item)
    }

    /// When the next thing comes out.
    #[must_use]
    pub fn next_time(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(entry)| entry.at)
    }

    /// How many things wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}
