//! Round-trip times: smoothed per path (RFC 6298, section 2), minimum per connection.

use crate::time::{Duration, Instant};

/// Smoothed round-trip time of a path and its variation, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rtt {
    smoothed_ns: u32,
    variation_ns: u32,
}

impl Rtt {
    /// Before the first sample.
    pub const UNKNOWN: Self = Self {
        smoothed_ns: 0,
        variation_ns: 0,
    };

    /// Takes a sample in.
    #[inline]
    // spec: MR-LOSS-006
    pub fn sample(&mut self, ns: u32) {
        if self.smoothed_ns == 0 {
            self.smoothed_ns = ns.max(1);
            self.variation_ns = ns / 2;
            return;
        }
        let error = ns.abs_diff(self.smoothed_ns);
        self.variation_ns = self.variation_ns - self.variation_ns / 4 + error / 4;
        self.smoothed_ns = (self.smoothed_ns - self.smoothed_ns / 8 + ns / 8).max(1);
    }

    /// Whether there was a sample.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.smoothed_ns != 0
    }

    /// The smoothed time, or `otherwise` before the first sample.
    #[inline]
    #[must_use]
    pub const fn smoothed_or(&self, otherwise: u32) -> u32 {
        if self.smoothed_ns == 0 {
            otherwise
        } else {
            self.smoothed_ns
        }
    }

    /// Time after which silence is suspicious: srtt + 4 max(rttvar, 5 % srtt).
    #[inline]
    #[must_use]
    // spec: MR-PROBE-001
    pub fn timeout_ns(&self, initial: u32) -> u64 {
        if self.smoothed_ns == 0 {
            return u64::from(initial) * 3;
        }
        u64::from(self.smoothed_ns) + 4 * u64::from(self.variation_ns.max(self.smoothed_ns / 20))
    }
}

/// The least round-trip time of the last one to two windows, so that a route that became longer is believed after a while.
#[derive(Clone, Copy, Debug)]
pub struct MinimumRtt {
    window_started: Instant,
    current_ns: u32,
    last_ns: u32,
}

/// How long a minimum is believed. RFC 9438 and BBR use the same ten seconds.
const WINDOW: Duration = Duration::from_millis(10_000);

impl Default for MinimumRtt {
    fn default() -> Self {
        Self::new()
    }
}

impl MinimumRtt {
    /// No sample yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            window_started: Instant::ZERO,
            current_ns: u32::MAX,
            last_ns: u32::MAX,
        }
    }

    /// Takes a sample in; true if the minimum changed.
    #[inline]
    pub fn sample(&mut self, now: Instant, ns: u32) -> bool {
        let before = self.ns_or(0);
        // spec: MR-LOSS-007
        if now.since(self.window_started) > WINDOW {
            self.window_started = now;
            self.last_ns = self.current_ns;
            self.current_ns = u32::MAX;
        }
        self.current_ns = self.current_ns.min(ns.max(1));
        self.ns_or(0) != before
    }

    /// The minimum, or `otherwise` before the first sample.
    #[inline]
    #[must_use]
    pub fn ns_or(&self, otherwise: u32) -> u32 {
        let least = self.current_ns.min(self.last_ns);
        if least == u32::MAX { otherwise } else { least }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: MR-PROBE-001
    #[test]
    fn the_smoothed_time_converges_and_the_timeout_covers_the_variation() {
        let mut rtt = Rtt::default();
        assert!(!rtt.is_known());
        assert_eq!(rtt.timeout_ns(20_000), 60_000);
        for _ in 0..100 {
            rtt.sample(14_000);
        }
        let srtt = rtt.smoothed_or(0);
        assert!(srtt.abs_diff(14_000) < 20, "{srtt}");
        // Steady: the 5 % floor rules.
        assert_eq!(rtt.timeout_ns(0), u64::from(srtt + 4 * (srtt / 20)));
        for i in 0..100 {
            rtt.sample(if i % 2 == 0 { 10_000 } else { 18_000 });
        }
        assert!(rtt.timeout_ns(0) > 25_000);
    }

    // spec: MR-LOSS-007
    #[test]
    fn a_longer_route_is_believed_within_two_windows() {
        let mut minimum = MinimumRtt::new();
        let at = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        assert!(minimum.sample(at(20), 10));
        assert!(!minimum.sample(at(21), 50));
        minimum.sample(at(31), 50);
        assert_eq!(minimum.ns_or(0), 10);
        minimum.sample(at(42), 50);
        assert_eq!(minimum.ns_or(0), 50);
    }
}
