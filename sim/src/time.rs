//! Simulated time: integer picoseconds, so that a byte at 100 Gb/s (80 ps) is exact.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// A point in simulated time, or a span of it, in picoseconds (213 days fit).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(u64);

impl Time {
    /// The beginning.
    pub const ZERO: Self = Self(0);
    /// Later than every other time.
    pub const NEVER: Self = Self(u64::MAX);

    /// `ps` picoseconds.
    #[must_use]
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// `ns` nanoseconds.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(1_000))
    }

    /// `us` microseconds.
    #[must_use]
    pub const fn from_us(us: u64) -> Self {
        Self(us.saturating_mul(1_000_000))
    }

    /// `ms` milliseconds.
    #[must_use]
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000_000))
    }

    /// In picoseconds.
    #[must_use]
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// In whole nanoseconds, rounded down.
    #[must_use]
    pub const fn ns(self) -> u64 {
        self.0 / 1_000
    }

    /// In microseconds, for people.
    #[must_use]
    pub fn us_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The span since `earlier`, zero if that is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// How long `bytes` take on a line of `mbps` Mbit/s.
    #[must_use]
    pub const fn to_send(bytes: u64, mbps: u64) -> Self {
        match bytes.checked_mul(8_000_000) {
            Some(bits) => Self(bits / mbps),
            None => {
                let ps = bytes as u128 * 8_000_000 / mbps as u128;
                Self(if ps > u64::MAX as u128 {
                    u64::MAX
                } else {
                    ps as u64
                })
            }
        }
    }
}

impl Add for Time {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, rhs: Self) {
        *self = *self + rhs;
    }
}

impl Sub for Time {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        self.since(rhs)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06} us", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_at_100_gbps_is_exact() {
        assert_eq!(Time::to_send(4214, 100_000).ps(), 337_120);
        assert_eq!(Time::to_send(134, 100_000).ps(), 10_720);
        assert_eq!(Time::from_us(1).to_string(), "1.000000 us");
    }
}
