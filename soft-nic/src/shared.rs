//! The lock around the driver, and how threads wait for it to get somewhere.

use crate::driver::{Driver, Pass};
use crate::error::Error;
use crate::socket::UdpPort;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What the NIC's handles have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    driver: Mutex<Driver>,
    /// Signalled when events other than completions were reported.
    changed: Condvar,
    /// Threads that want the lock, so that the background thread lets them.
    wanting: AtomicU32,
    services: Vec<Arc<UdpPort>>,
    wake: OwnedFd,
    /// Threads that sleep until there is something to do.
    sleepers: AtomicU32,
    /// The driver's time at which the last of them looks again by itself.
    asleep_until: AtomicU64,
    background: AtomicBool,
    stopped: AtomicBool,
    spin: Duration,
}

/// Without anything to wait for, a sleeper looks again after this long.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_millis(500);
/// Waiting for less than this is not worth a system call.
const SHORTEST_SLEEP: Duration = Duration::from_micros(5);

impl Shared {
    pub(crate) fn new(driver: Driver, spin: Duration) -> std::io::Result<Self> {
        Ok(Self {
            services: driver.services.clone(),
            driver: Mutex::new(driver),
            changed: Condvar::new(),
            wanting: AtomicU32::new(0),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            sleepers: AtomicU32::new(0),
            asleep_until: AtomicU64::new(0),
            background: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            spin,
        })
    }

    /// The driver, for an application's thread.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Driver> {
        self.wanting.fetch_add(1, Ordering::Relaxed);
        let guard = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanting.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    pub(crate) fn has_background(&self) -> bool {
        self.background.load(Ordering::Relaxed)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Something was posted by an application's thread: with a background thread it is sent right here, and a
    /// sleeper that would wake too late is woken.
    pub(crate) fn posted(&self, driver: &mut Driver) {
        if !self.has_background() {
            return;
        }
        let now = driver.clock.now();
        while driver.transmit(now) {}
        let asleep_until = self.asleep_until.load(Ordering::Relaxed);
        if self.sleepers.load(Ordering::Relaxed) != 0
            && (driver.outbox.is_blocked()
                || driver
                    .next_time()
                    .is_some_and(|at| at.as_nanos() < asleep_until))
        {
            self.wake();
        }
    }

    /// Ends a sleep.
    pub(crate) fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// One pass by the calling thread. Returns whether anything happened.
    pub(crate) fn progress(&self) -> bool {
        let mut driver = self.lock();
        let pass = driver.pass();
        drop(driver);
        self.note(pass);
        pass.busy
    }

    /// Tells those who wait that there is something for them.
    fn note(&self, pass: Pass) {
        if pass.changed {
            self.changed.notify_all();
        }
        if pass.reported && self.sleepers.load(Ordering::Relaxed) != 0 {
            self.wake();
        }
    }

    /// Makes progress until `done` or the deadline; returns whether it was `done`, which is asked with the lock held.
    pub(crate) fn progress_until(
        &self,
        deadline: Option<Instant>,
        mut done: impl FnMut(&mut Driver) -> bool,
    ) -> bool {
        self.progress_loop(deadline, |mut driver| done(&mut driver))
    }

    /// The same for an application's `done`, which is asked without the lock, since it may need it.
    pub(crate) fn progress_until_unlocked(
        &self,
        deadline: Option<Instant>,
        mut done: impl FnMut() -> bool,
    ) -> bool {
        self.progress_loop(deadline, |driver| {
            drop(driver);
            done()
        })
    }

    fn progress_loop(
        &self,
        deadline: Option<Instant>,
        mut done: impl FnMut(MutexGuard<'_, Driver>) -> bool,
    ) -> bool {
        let mut idle_since: Option<Instant> = None;
        loop {
            let mut driver = self.lock();
            let pass = driver.pass();
            let reports = driver.reports;
            self.note(pass);
            if done(driver) {
                return true;
            }
            if pass.busy {
                idle_since = None;
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return false;
                }
                continue;
            }
            let now = Instant::now();
            if self.is_stopped() || deadline.is_some_and(|deadline| now >= deadline) {
                return false;
            }
            if now.saturating_duration_since(*idle_since.get_or_insert(now)) < self.spin {
                std::hint::spin_loop();
                continue;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(now));
            self.sleep(self.lock(), reports, left);
        }
    }

    /// Waits for the background thread to get somewhere; returns whether it was `done`.
    pub(crate) fn wait_until(
        &self,
        deadline: Option<Instant>,
        mut done: impl FnMut(&mut Driver) -> bool,
    ) -> bool {
        if !self.has_background() {
            return self.progress_until(deadline, done);
        }
        let mut driver = self.lock();
        loop {
            if done(&mut driver) {
                return true;
            }
            let left = deadline.map_or(LONGEST_SLEEP, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            if left.is_zero() || self.is_stopped() {
                return false;
            }
            driver = self
                .changed
                .wait_timeout(driver, left.min(LONGEST_SLEEP))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Why a wait brought nothing.
    pub(crate) fn in_vain(&self, what: &'static str, after: Duration) -> Error {
        if self.is_stopped() {
            Error::ShutDown
        } else {
            Error::TimedOut { what, after }
        }
    }

    /// Sleeps until something comes in, the driver's next time, or `most`; not at all if more was reported than the
    /// `reports` that the caller knows of.
    fn sleep(&self, mut driver: MutexGuard<'_, Driver>, reports: u64, most: Option<Duration>) {
        if driver.reports != reports {
            return;
        }
        let now = driver.clock.now();
        let mut timeout = most.unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP);
        if let Some(at) = driver.next_time() {
            timeout = timeout.min(Duration::from_nanos(at.since(now).as_nanos()));
        }
        let blocked = driver.outbox.blocked_port();
        let until = now
            .as_nanos()
            .saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        if self.sleepers.fetch_add(1, Ordering::Relaxed) == 0 {
            self.asleep_until.store(until, Ordering::Relaxed);
        } else {
            self.asleep_until.fetch_max(until, Ordering::Relaxed);
        }
        drop(driver);
        if timeout >= SHORTEST_SLEEP {
            let mut descriptors: Vec<_> = self
                .services
                .iter()
                .map(|service| PollFd::from_borrowed_fd(service.as_fd(), PollFlags::IN))
                .collect();
            descriptors.push(PollFd::new(&self.wake, PollFlags::IN));
            if let Some(port) = &blocked {
                descriptors.push(PollFd::new(&**port, PollFlags::OUT));
            }
            let timeout = Timespec {
                tv_sec: timeout.as_secs() as i64,
                tv_nsec: i64::from(timeout.subsec_nanos()),
            };
            let woken = poll(&mut descriptors, Some(&timeout)).is_ok_and(|ready| ready > 0)
                && rustix::io::read(&self.wake, &mut [0u8; 8]).is_ok();
            // Whoever takes the call to wake passes it on: it was for all.
            if self.sleepers.fetch_sub(1, Ordering::Relaxed) > 1 && woken {
                self.wake();
            }
        } else {
            self.sleepers.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// What the background thread does until [`Self::stop`].
    pub(crate) fn run(&self) {
        self.or_stop(|| self.serve());
    }

    /// Runs what others wait for. If it ends by a panic, which only a bug brings, nobody waits in vain.
    pub(crate) fn or_stop(&self, work: impl FnOnce()) {
        struct Stop<'a>(&'a Shared);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.stop();
            }
        }
        let _stop = Stop(self);
        work();
    }

    fn serve(&self) {
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut idle_since: Option<Instant> = None;
        while !self.is_stopped() {
            let mut driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
            let pass = driver.pass();
            if pass.busy {
                idle_since = None;
                drop(driver);
                self.note(pass);
                self.let_others();
                continue;
            }
            let now = Instant::now();
            if now.saturating_duration_since(*idle_since.get_or_insert(now)) < self.spin {
                drop(driver);
                self.let_others();
                std::hint::spin_loop();
                continue;
            }
            let reports = driver.reports;
            self.sleep(driver, reports, None);
        }
    }

    /// Lets those have the lock who wait for it: an unfair mutex would give it to the thread that just had it.
    fn let_others(&self) {
        for _ in 0..100 {
            if self.wanting.load(Ordering::Relaxed) == 0 {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// The service sockets' descriptors.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.services
            .iter()
            .map(|service| service.as_fd())
            .collect()
    }

    pub(crate) fn set_background(&self, background: bool) {
        self.background.store(background, Ordering::Relaxed);
    }

    /// Ends the background thread and every wait.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.wake();
        self.changed.notify_all();
    }
}
