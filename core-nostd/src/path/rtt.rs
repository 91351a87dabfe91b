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

/// The least round-trip times of the last one to two windows, so that a route that became longer is believed after a while: of all packets, and of
/// full ones, which serialisation at every hop makes slower.
#[derive(Clone, Copy, Debug)]
pub struct MinimumRtt {
    /// In ticks, which wrap around after weeks.
    window_started: u32,
    current: Least,
    last: Least,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Least {
    all_ns: u32,
    full_ns: u32,
}

impl Least {
    const UNKNOWN: Self = Self {
        all_ns: u32::MAX,
        full_ns: u32::MAX,
    };
}

/// How long a minimum is believed. RFC 9438 and BBR use the same ten seconds.
const WINDOW: Duration = Duration::from_millis(10_000);
/// A tick is 2^20 ns, about 1 ms.
const TICK: u32 = 20;
const WINDOW_TICKS: u32 = (WINDOW.as_nanos() >> TICK) as u32;

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
            window_started: 0,
            current: Least::UNKNOWN,
            last: Least::UNKNOWN,
        }
    }

    /// Takes a sample in, of a full packet or another; true if a minimum may have changed.
    #[inline]
    pub fn sample(&mut self, now: Instant, ns: u32, full: bool) -> bool {
        let before = self.current;
        // spec: MR-LOSS-007
        let ticks = (now.as_nanos() >> TICK) as u32;
        if ticks.wrapping_sub(self.window_started) > WINDOW_TICKS {
            self.window_started = ticks;
            self.last = self.current;
            self.current = Least::UNKNOWN;
        }
        let ns = ns.max(1);
        self.current.all_ns = self.current.all_ns.min(ns);
        if full {
            self.current.full_ns = self.current.full_ns.min(ns);
        }
        self.current != before
    }

    /// The minimum, or `otherwise` before the first sample.
    #[inline]
    #[must_use]
    pub fn ns_or(&self, otherwise: u32) -> u32 {
        let least = self.current.all_ns.min(self.last.all_ns);
        if least == u32::MAX { otherwise } else { least }
    }

    /// That of full packets. Where it is not known yet, that of a short one and a fifth is a fair guess over three tiers.
    #[inline]
    #[must_use]
    // spec: MR-LOSS-008, MR-LOSS-009
    pub fn full_ns_or(&self, otherwise: u32) -> u32 {
        let full = self.current.full_ns.min(self.last.full_ns);
        let all = self.current.all_ns.min(self.last.all_ns);
        match (full, all) {
            (u32::MAX, u32::MAX) => otherwise,
            (u32::MAX, all) => all.saturating_add(all / 5),
            (full, _) => full,
        }
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
        assert!(minimum.sample(at(20), 10, false));
        assert!(!minimum.sample(at(21), 50, false));
        minimum.sample(at(31), 50, false);
        assert_eq!(minimum.ns_or(0), 10);
        minimum.sample(at(42), 50, false);
        assert_eq!(minimum.ns_or(0), 50);
    }

    // spec: MR-LOSS-007, MR-LOSS-008, MR-LOSS-009
    #[test]
    fn full_packets_have_a_minimum_of_their_own_and_forget_it_alike() {
        let mut minimum = MinimumRtt::new();
        let at = |s: u64| Instant::from_nanos(s * 1_000_000_000);
        assert_eq!(minimum.full_ns_or(7), 7);
        minimum.sample(at(20), 100, false);
        assert_eq!(minimum.full_ns_or(7), 120);
        minimum.sample(at(20), 115, true);
        minimum.sample(at(21), 130, true);
        minimum.sample(at(21), 90, false);
        assert_eq!((minimum.ns_or(0), minimum.full_ns_or(7)), (90, 115));
        // A single late one of the new window does not replace what the last one knew.
        minimum.sample(at(31), 900, true);
        assert_eq!((minimum.ns_or(0), minimum.full_ns_or(7)), (90, 115));
        // The links became slower, for full packets only.
        minimum.sample(at(42), 90, false);
        minimum.sample(at(42), 300, true);
        assert_eq!((minimum.ns_or(0), minimum.full_ns_or(7)), (90, 300));
        // None so long that it cannot be reckoned with.
        let mut minimum = MinimumRtt::new();
        minimum.sample(at(20), u32::MAX - 1, false);
        assert_eq!(minimum.full_ns_or(7), u32::MAX);
    }
}
