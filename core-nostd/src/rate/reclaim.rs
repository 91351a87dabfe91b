//! What senders leave of their shares is given to the others.
//!
//! A sender may be held back elsewhere: by its own line, which it shares out to many receivers, or by the fabric. Then its share of this
//! receiver's capacity is empty, and equal shares waste it. How much arrives tells: as in RCP (Dukkipati, 2008) one rate for all is raised while
//! the line is not full, and lowered when it is.

use crate::time::Instant;

/// Fraction bits of the factor.
const FRACTION: u32 = 8;
const ONE: u32 = 1 << FRACTION;
/// The factor is never more: where the line is not what limits the receiver (software is slower, or was told a rate that it has not), it never
/// fills, and the shares must still bound what comes.
const MOST: u32 = 2 * ONE;
/// The line is full when no more than one part in so many is free.
const FREE: u64 = 32;
/// Round trips between two changes: what was told a round trip ago is what arrives.
const ROUND_TRIPS: u64 = 2;
/// Round trips after which what is known is old.
const LIFE: u64 = 8;

/// The factor by which the shares exceed equal ones, 1 to 2.
#[derive(Clone, Copy, Debug)]
pub struct Reclaim {
    factor: u32,
    /// Members at the last change.
    members: u16,
    measured_at: Instant,
    /// Wire bytes that had arrived then.
    arrived: u64,
}

impl Default for Reclaim {
    fn default() -> Self {
        Self::new()
    }
}

impl Reclaim {
    /// Nothing was measured.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            factor: ONE,
            members: 0,
            measured_at: Instant::ZERO,
            arrived: 0,
        }
    }

    /// The share that is told instead of an equal share of `mbps`.
    #[must_use]
    pub const fn apply(&self, mbps: u64) -> u64 {
        mbps.saturating_mul(self.factor as u64) >> FRACTION
    }

    /// There are `members` now. Newcomers get their shares at once.
    // spec: MR-HINT-011
    pub fn members(&mut self, members: u16) {
        if members > self.members {
            self.factor = (self.factor * u32::from(self.members) / u32::from(members)).max(ONE);
        }
        self.members = members;
        self.factor = self.factor.min(self.most());
    }

    /// One alone has all of it already.
    const fn most(&self) -> u32 {
        if self.members > 1 { MOST } else { ONE }
    }

    /// Up to now `arrived` bytes came, counted as on the wire, of `capacity_mbps`; round trips are `horizon_ns`. Whether the factor changed.
    // spec: MR-HINT-010
    pub fn measure(
        &mut self,
        now: Instant,
        arrived: u64,
        capacity_mbps: u32,
        horizon_ns: u32,
    ) -> bool {
        let elapsed = now.since(self.measured_at).as_nanos();
        let horizon = u64::from(horizon_ns.max(1));
        if elapsed < ROUND_TRIPS * horizon {
            return false;
        }
        let before = self.factor;
        if elapsed > LIFE * horizon {
            self.factor = ONE;
        } else {
            let capacity = u64::from(capacity_mbps.max(1));
            let came = arrived.wrapping_sub(self.arrived).saturating_mul(8_000) / elapsed;
            let free = capacity.saturating_sub(came);
            if free < capacity / FREE {
                self.factor = (self.factor - self.factor / 8).max(ONE);
            } else {
                let more = u64::from(self.factor) * free / capacity;
                self.factor = (self.factor + more as u32).min(self.most());
            }
        }
        self.measured_at = now;
        self.arrived = arrived;
        self.factor != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u32 = 100_000;
    const HORIZON: u32 = 14_000;
    const PERIOD: u64 = ROUND_TRIPS * HORIZON as u64;

    /// Ten senders, of which each sends at most its `limit`; what they are told after each of `periods`.
    fn told(limits: [u64; 10], periods: u64) -> u64 {
        let mut reclaim = Reclaim::new();
        reclaim.members(10);
        let (mut level, mut arrived) = (10_000, 0);
        reclaim.measure(Instant::from_nanos(1), 0, CAPACITY, HORIZON);
        for period in 1..=periods {
            let sum: u64 = limits.iter().map(|limit| level.min(*limit)).sum();
            arrived += sum.min(u64::from(CAPACITY)) * PERIOD / 8_000;
            let now = Instant::from_nanos(1 + period * PERIOD);
            reclaim.measure(now, arrived, CAPACITY, HORIZON);
            level = reclaim.apply(10_000);
        }
        level
    }

    // spec: MR-HINT-010
    #[test]
    fn what_half_of_the_senders_leave_goes_to_the_others() {
        let mut limits = [100_000; 10];
        assert_eq!(told(limits, 50), 10_000, "all use their shares");
        limits[5..].fill(2_000);
        // Five take 10 Gbit/s together, 90 are left for five: 18 each, and an eighth less after the line was full.
        for periods in 40..50 {
            let level = told(limits, periods);
            assert!((15_250..18_100).contains(&level), "{level}");
        }
        assert_eq!(
            told([0; 10], 50),
            20_000,
            "never more than twice an equal share"
        );
    }

    // spec: MR-HINT-011
    #[test]
    fn a_fan_in_gets_equal_shares_at_once() {
        let mut reclaim = Reclaim::new();
        reclaim.members(4);
        reclaim.measure(Instant::from_nanos(1), 0, CAPACITY, HORIZON);
        for period in 1..20 {
            reclaim.measure(
                Instant::from_nanos(1 + period * PERIOD),
                0,
                CAPACITY,
                HORIZON,
            );
        }
        assert_eq!(reclaim.apply(25_000), 50_000);
        reclaim.members(127);
        assert_eq!(reclaim.apply(787), 787);
        reclaim.members(1);
        assert_eq!(reclaim.apply(100_000), 100_000);
    }

    // spec: MR-HINT-010
    #[test]
    fn what_was_measured_long_ago_does_not_count() {
        let mut reclaim = Reclaim::new();
        reclaim.members(4);
        reclaim.measure(Instant::from_nanos(1), 0, CAPACITY, HORIZON);
        assert!(reclaim.measure(Instant::from_nanos(1 + PERIOD), 0, CAPACITY, HORIZON));
        let later = Instant::from_nanos(1 + PERIOD + (LIFE + 1) * u64::from(HORIZON));
        assert!(reclaim.measure(later, 0, CAPACITY, HORIZON));
        assert_eq!(reclaim.apply(25_000), 25_000);
    }
}
