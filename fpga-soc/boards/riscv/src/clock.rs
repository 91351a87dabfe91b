//! embassy's clock over a counter and an alarm.

use core::cell::RefCell;
use core::marker::PhantomData;
use core::task::Waker;

use critical_section::Mutex;
use embassy_time_driver::Driver;
use embassy_time_queue_utils::Queue;

/// A counter of microseconds with an alarm.
pub trait Counter {
    /// Microseconds since the start.
    fn now() -> u64;

    /// Interrupts at `at` (`u64::MAX`: never), at once if that is over.
    fn set_alarm(at: u64);
}

/// embassy's clock: a tick is a microsecond.
pub struct Clock<C> {
    queue: Mutex<RefCell<Queue>>,
    counter: PhantomData<fn() -> C>,
}

impl<C: Counter> Clock<C> {
    /// For a `static`.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "const")]
    pub const fn new() -> Self {
        Self {
            queue: Mutex::new(RefCell::new(Queue::new())),
            counter: PhantomData,
        }
    }

    /// The alarm has gone off: wakes whose time has come, and sets it anew.
    pub fn on_alarm(&self) {
        critical_section::with(|cs| {
            let mut queue = self.queue.borrow_ref_mut(cs);
            C::set_alarm(queue.next_expiration(C::now()));
        });
    }
}

impl<C: Counter + 'static> Driver for Clock<C> {
    fn now(&self) -> u64 {
        C::now()
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|cs| {
            let mut queue = self.queue.borrow_ref_mut(cs);
            if queue.schedule_wake(at, waker) {
                C::set_alarm(queue.next_expiration(C::now()));
            }
        });
    }
}
