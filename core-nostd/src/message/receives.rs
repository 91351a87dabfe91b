//! Posted receive buffers: one pool for all queues of an endpoint. A completion stays in its buffer's record until it is polled.

use crate::memory::{LocalSlice, RegionIndex};
use crate::storage::{FreeList, Table};
use crate::work::{Completion, CompletionKind, ConnectionHandle, ReceiveRequest, Status};

/// No buffer.
const NONE: u16 = u16::MAX;

/// Shared queues of an endpoint.
pub const SHARED_QUEUES: usize = 8;

/// Posted buffers in order. The first has the sequence number `base`.
#[derive(Clone, Copy, Debug)]
pub struct Queue {
    head: u16,
    tail: u16,
    count: u16,
    base: u32,
}

impl Queue {
    /// No buffers.
    pub const EMPTY: Self = Self {
        head: NONE,
        tail: NONE,
        count: 0,
        base: 0,
    };

    /// How many were used up: the sequence number of the first.
    #[must_use]
    pub const fn used_up(&self) -> u32 {
        self.base
    }

    /// A buffer of a shared queue was used up in place of one from here.
    pub const fn skip(&mut self) {
        self.base = self.base.wrapping_add(1);
    }

    /// Whether there never were any.
    #[must_use]
    pub const fn is_untouched(&self) -> bool {
        self.count == 0 && self.base == 0
    }
}

#[derive(Clone, Copy, Debug)]
struct Buffer {
    id: u64,
    local: LocalSlice,
    next: u16,
    /// A message is being placed in it: it keeps its place in the order, but is spoken for.
    bound: bool,
    stream: u16,
    connection: u32,
    length: u32,
    immediate: u32,
    kind: CompletionKind,
    status: Status,
    has_immediate: bool,
    solicited: bool,
}

const FREE: Buffer = Buffer {
    id: 0,
    local: LocalSlice {
        region: RegionIndex(0),
        offset: 0,
        length: 0,
    },
    next: NONE,
    bound: false,
    stream: 0,
    connection: 0,
    length: 0,
    immediate: 0,
    kind: CompletionKind::Receive,
    status: Status::Success,
    has_immediate: false,
    solicited: false,
};

/// What a receive completion says beyond its buffer.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The connection.
    pub connection: ConnectionHandle,
    /// The stream.
    pub stream: u16,
    /// What used the buffer up.
    pub kind: CompletionKind,
    /// How it ended.
    pub status: Status,
    /// Bytes.
    pub length: u32,
    /// Immediate.
    pub immediate: Option<u32>,
    /// The peer asked to wake a waiter.
    pub solicited: bool,
}

/// The pool.
#[derive(Debug)]
pub struct Receives<const RECEIVES: usize> {
    table: Table<Buffer, RECEIVES>,
    free: FreeList<RECEIVES>,
    completed: Queue,
    shared: [Queue; SHARED_QUEUES],
}

impl<const RECEIVES: usize> Default for Receives<RECEIVES> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const RECEIVES: usize> Receives<RECEIVES> {
    /// No buffers posted.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            table: Table::filled(FREE),
            free: FreeList::new(),
            completed: Queue::EMPTY,
            shared: [Queue::EMPTY; SHARED_QUEUES],
        }
    }

    /// Posts a buffer to a queue; false if the pool is exhausted.
    #[must_use]
    pub fn post(&mut self, queue: &mut Queue, request: &ReceiveRequest) -> bool {
        let Some(index) = self.free.take(|index| self.table.at(index).next) else {
            return false;
        };
        *self.table.at_mut(index) = Buffer {
            id: request.id,
            local: request.local,
            ..FREE
        };
        self.push(queue, index);
        true
    }

    /// Posts a buffer to a shared queue; `None` if there is no such queue, false if the pool is exhausted.
    #[must_use]
    pub fn post_shared(&mut self, number: u8, request: &ReceiveRequest) -> Option<bool> {
        let mut queue = *self.shared.get(usize::from(number))?;
        let posted = self.post(&mut queue, request);
        if let Some(place) = self.shared.get_mut(usize::from(number)) {
            *place = queue;
        }
        Some(posted)
    }

    /// The buffer with sequence number `rsn` of a stream's queue is spoken for from now on. `None`: not posted.
    // spec: MR-RNR-001
    pub fn bind(&mut self, queue: &Queue, rsn: u32) -> Option<u16> {
        let mut distance = rsn.wrapping_sub(queue.base);
        if distance >= u32::from(queue.count) {
            return None;
        }
        if crate::planted::Bug::WrongBuffer.is_planted() && distance != 0 {
            distance -= 1;
        }
        let mut index = queue.head;
        for _ in 0..distance {
            index = self.table.at(index).next;
        }
        let buffer = self.table.at_mut(index);
        if buffer.bound {
            return None;
        }
        buffer.bound = true;
        Some(index)
    }

    /// The next buffer of a shared queue is spoken for, and leaves the queue.
    pub fn bind_shared(&mut self, number: u8) -> Option<u16> {
        let mut queue = *self.shared.get(usize::from(number))?;
        let index = self.pop(&mut queue)?;
        *self.shared.get_mut(usize::from(number))? = queue;
        self.table.at_mut(index).bound = true;
        Some(index)
    }

    /// A region is no more: buffers in it have no place, whatever is registered under its index later.
    // spec: MR-MEM-007
    pub fn withdraw_region(&mut self, region: RegionIndex) {
        for buffer in self.table.iter_mut() {
            if buffer.local.region == region {
                buffer.local.region = RegionIndex::GONE;
            }
        }
    }

    /// The place of a bound buffer.
    #[inline]
    #[must_use]
    pub fn local(&self, index: u16) -> LocalSlice {
        self.table.at(index).local
    }

    /// Completes the first buffer of a stream's queue. False if there is none.
    pub fn complete_first(&mut self, queue: &mut Queue, outcome: &Outcome) -> bool {
        let Some(index) = self.pop(queue) else {
            return false;
        };
        self.complete(index, outcome);
        true
    }

    /// Completes a buffer that is in no queue any more.
    pub fn complete(&mut self, index: u16, outcome: &Outcome) {
        let buffer = self.table.at_mut(index);
        buffer.connection = outcome.connection.to_bits();
        buffer.stream = outcome.stream;
        buffer.kind = outcome.kind;
        buffer.status = outcome.status;
        buffer.length = outcome.length;
        buffer.immediate = outcome.immediate.unwrap_or(0);
        buffer.has_immediate = outcome.immediate.is_some();
        buffer.solicited = outcome.solicited;
        let mut completed = self.completed;
        self.push(&mut completed, index);
        self.completed = completed;
    }

    /// The next completion, oldest first; its buffer's record becomes free.
    pub fn poll(&mut self) -> Option<Completion> {
        let mut completed = self.completed;
        let index = self.pop(&mut completed)?;
        self.completed = completed;
        let buffer = *self.table.at(index);
        self.table.at_mut(index).next = self.free.give(index);
        Some(Completion {
            connection: ConnectionHandle::from_bits(buffer.connection),
            stream: buffer.stream,
            id: buffer.id,
            kind: buffer.kind,
            status: buffer.status,
            length: buffer.length,
            immediate: buffer.has_immediate.then_some(buffer.immediate),
            solicited: buffer.solicited,
        })
    }

    fn push(&mut self, queue: &mut Queue, index: u16) {
        self.table.at_mut(index).next = NONE;
        if queue.count == 0 {
            queue.head = index;
        } else {
            self.table.at_mut(queue.tail).next = index;
        }
        queue.tail = index;
        queue.count += 1;
    }

    fn pop(&mut self, queue: &mut Queue) -> Option<u16> {
        if queue.count == 0 {
            return None;
        }
        let index = queue.head;
        queue.head = self.table.at(index).next;
        queue.count -= 1;
        queue.base = queue.base.wrapping_add(1);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: u64) -> ReceiveRequest {
        ReceiveRequest {
            id,
            local: LocalSlice {
                length: 64,
                ..LocalSlice::default()
            },
        }
    }

    fn outcome(length: u32) -> Outcome {
        Outcome {
            connection: ConnectionHandle::from_bits(1),
            stream: 0,
            kind: CompletionKind::Receive,
            status: Status::Success,
            length,
            immediate: None,
            solicited: false,
        }
    }

    // spec: MR-RNR-001
    #[test]
    fn the_kth_message_finds_the_kth_buffer_whatever_comes_first() {
        let mut receives = Receives::<4>::new();
        let mut queue = Queue::EMPTY;
        for id in 10..13 {
            assert!(receives.post(&mut queue, &request(id)));
        }
        let third = receives.bind(&queue, 2).unwrap();
        assert_eq!(receives.bind(&queue, 2), None, "bound once");
        assert_eq!(receives.bind(&queue, 3), None, "not posted");
        let first = receives.bind(&queue, 0).unwrap();
        assert_ne!(first, third);
        for length in [1, 2, 3] {
            assert!(receives.complete_first(&mut queue, &outcome(length)));
        }
        assert!(!receives.complete_first(&mut queue, &outcome(0)));
        let polled: std::vec::Vec<_> = core::iter::from_fn(|| receives.poll())
            .map(|c| (c.id, c.length))
            .collect();
        assert_eq!(polled, [(10, 1), (11, 2), (12, 3)]);
    }

    #[test]
    fn the_pool_is_bounded_and_records_return_only_when_polled() {
        let mut receives = Receives::<1>::new();
        let mut queue = Queue::EMPTY;
        assert!(receives.post(&mut queue, &request(1)));
        assert!(!receives.post(&mut queue, &request(2)));
        receives.complete_first(&mut queue, &outcome(0));
        assert!(!receives.post(&mut queue, &request(2)));
        receives.poll().unwrap();
        assert!(receives.post(&mut queue, &request(2)));
    }

    // spec: MR-RNR-001
    #[test]
    fn a_shared_queue_serves_in_order_of_arrival() {
        let mut receives = Receives::<4>::new();
        assert_eq!(receives.post_shared(9, &request(1)), None);
        assert_eq!(receives.post_shared(1, &request(1)), Some(true));
        assert_eq!(receives.post_shared(1, &request(2)), Some(true));
        let first = receives.bind_shared(1).unwrap();
        receives.complete(first, &outcome(5));
        assert_eq!(receives.poll().unwrap().id, 1);
        assert!(receives.bind_shared(1).is_some());
        assert!(receives.bind_shared(1).is_none());
    }
}
