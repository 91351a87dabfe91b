//! Completion queues: taken from by polling, by waiting, or when their descriptor says so.

use crate::shared::{LONGEST_SLEEP, Shared};
use metaroce_core::work::Completion;
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Completions that a queue holds before operations that would report to it are refused.
pub const QUEUE_CAPACITY: usize = 1 << 16;

/// A queue of completions. Clones are the same queue.
///
/// Three ways to use it: [`Self::poll`] at any time; [`Self::wait`], which sleeps (and makes progress itself where
/// the NIC has no background thread); or an event loop that watches the descriptor ([`AsFd`]) after [`Self::arm`].
#[derive(Clone, Debug)]
pub struct CompletionQueue(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    filled: Condvar,
    event: OwnedFd,
    /// Empty until the NIC exists.
    shared: OnceLock<Weak<Shared>>,
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Completion>,
    armed: Option<Armed>,
    waiters: usize,
}

/// Which completions make an armed queue's descriptor readable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Armed {
    /// Every one.
    Any,
    /// Receives that the peer marked as solicited, and failures.
    Solicited,
}

impl Armed {
    fn wants(self, completion: &Completion) -> bool {
        self == Self::Any
            || completion.solicited
            || completion.status != metaroce_core::work::Status::Success
    }
}

impl CompletionQueue {
    pub(crate) fn new() -> std::io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Inner {
            state: Mutex::default(),
            filled: Condvar::new(),
            event,
            shared: OnceLock::new(),
        })))
    }

    pub(crate) fn attach(&self, shared: &Arc<Shared>) {
        let _ = self.0.shared.set(Arc::downgrade(shared));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, completion: Completion) {
        let mut state = self.state();
        state.items.push_back(completion);
        let wake = state.waiters > 0;
        if state.armed.is_some_and(|armed| armed.wants(&completion)) {
            state.armed = None;
            let _ = rustix::io::write(&self.0.event, &1u64.to_ne_bytes());
        }
        drop(state);
        if wake {
            self.0.filled.notify_all();
        }
    }

    /// Completions that wait to be taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state().items.len()
    }

    /// Whether no completion waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes one completion. Does not make progress itself.
    #[must_use]
    pub fn poll(&self) -> Option<Completion> {
        self.state().items.pop_front()
    }

    /// Takes up to `most` completions and appends them to `into`; returns how many.
    pub fn poll_into(&self, into: &mut Vec<Completion>, most: usize) -> usize {
        let mut state = self.state();
        let count = most.min(state.items.len());
        into.extend(state.items.drain(..count));
        count
    }

    /// Takes one completion, waiting for it up to `timeout` (`None`: for as long as the NIC is there).
    ///
    /// Without a background thread this makes progress on the NIC meanwhile.
    #[must_use]
    pub fn wait(&self, timeout: Option<Duration>) -> Option<Completion> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let shared = self.0.shared.get().and_then(Weak::upgrade);
        match shared {
            Some(shared) if !shared.has_background() => {
                let mut taken = None;
                shared.progress_until(deadline, |_| {
                    taken = self.poll();
                    taken.is_some()
                });
                taken
            }
            _ => self.sleep(deadline),
        }
    }

    fn sleep(&self, deadline: Option<Instant>) -> Option<Completion> {
        let mut state = self.state();
        loop {
            if let Some(completion) = state.items.pop_front() {
                return Some(completion);
            }
            let left = deadline.map_or(LONGEST_SLEEP, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() || self.is_over() {
                return None;
            }
            state.waiters += 1;
            state = self
                .0
                .filled
                .wait_timeout(state, left.min(LONGEST_SLEEP))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            state.waiters -= 1;
        }
    }

    /// Whether the NIC is gone, so that nothing will ever come.
    fn is_over(&self) -> bool {
        self.0
            .shared
            .get()
            .is_some_and(|shared| shared.upgrade().is_none_or(|shared| shared.is_stopped()))
    }

    /// Makes the descriptor readable at the next completion that counts. Returns whether the queue is empty now: if not,
    /// take what is there before sleeping. The descriptor stays readable until [`Self::disarm`].
    #[must_use]
    pub fn arm(&self, armed: Armed) -> bool {
        let mut state = self.state();
        state.armed = Some(armed);
        state.items.is_empty()
    }

    /// Makes the descriptor unreadable.
    pub fn disarm(&self) {
        let mut state = self.state();
        state.armed = None;
        let _ = rustix::io::read(&self.0.event, &mut [0u8; 8]);
    }
}

impl AsFd for CompletionQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.event.as_fd()
    }
}

impl PartialEq for CompletionQueue {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
