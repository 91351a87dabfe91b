//! Time as the core sees it: integer nanoseconds that somebody else's clock supplies.
//!
//! The core reads no clock. Every entry point takes the present as an [`Instant`]; a clock that jumps
//! backwards is tolerated (ages saturate at zero), one that jumps forwards only makes timers fire.

use core::ops::{Add, AddAssign};

/// A point in time: nanoseconds since an epoch of the caller's choice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Instant(u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Duration(u64);

impl Instant {
    /// The epoch itself.
    pub const ZERO: Self = Self(0);
    /// Later than every other instant.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the epoch.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time that passed since `earlier`; zero if `earlier` is later (the clock went back).
    #[must_use]
    // spec: MR-TIME-003
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of `ns` nanoseconds.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// A span of `us` microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us.saturating_mul(1_000))
    }

    /// A span of `ms` milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }

    /// The span in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span in nanoseconds, saturated to 32 bits (4.29 s), as path records keep it.
    #[must_use]
    pub const fn as_nanos_u32(self) -> u32 {
        if self.0 > u32::MAX as u64 {
            u32::MAX
        } else {
            self.0 as u32
        }
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: MR-TIME-003
    #[test]
    fn a_clock_that_goes_back_gives_no_age() {
        let early = Instant::from_nanos(5);
        let late = Instant::from_nanos(9);
        assert_eq!(late.since(early), Duration::from_nanos(4));
        assert_eq!(early.since(late), Duration::ZERO);
    }

    #[test]
    fn sums_saturate_at_the_far_future() {
        assert_eq!(
            Instant::FAR_FUTURE + Duration::from_millis(1),
            Instant::FAR_FUTURE
        );
        assert_eq!(Duration::from_millis(u64::MAX).as_nanos(), u64::MAX);
        assert_eq!(Duration::from_millis(5_000).as_nanos_u32(), u32::MAX);
    }
}
