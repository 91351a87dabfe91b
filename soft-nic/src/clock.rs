//! The time that the core is told.

use metaroce_core::time::Instant;

/// Monotonic nanoseconds since the clock was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: std::time::Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            epoch: std::time::Instant::now(),
        }
    }

    /// Now.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}
