//! The sender's pacer: one packet after the other at a rate in wire bytes.

use crate::time::Instant;

/// Fraction bits of a nanosecond, so that the rounding of one packet's time does not add up.
const FRACTION: u32 = 8;

/// Spaces packets out to a rate.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pacer {
    mbps: u32,
    /// Time of a full packet at `mbps`, in 1/256 ns, and its bytes.
    full_interval: u64,
    full_bytes: u32,
    /// Unused time that may be made up for, in 1/256 ns.
    credit: u64,
    /// When the next packet may leave, in 1/256 ns.
    next: u64,
}

impl Pacer {
    /// A pacer without a rate.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            mbps: 0,
            full_interval: 0,
            full_bytes: 0,
            credit: 0,
            next: 0,
        }
    }

    /// Sets the rate in Mbit/s of wire bytes (0: none) and the wire bytes of a full packet. Unused time of up to `burst` full
    /// packets may be made up for.
    #[inline]
    pub fn set_rate(&mut self, mbps: u32, full_bytes: u32, burst: u32) {
        if mbps == self.mbps && full_bytes == self.full_bytes {
            return;
        }
        self.mbps = mbps;
        self.full_bytes = full_bytes;
        self.full_interval = interval(full_bytes, mbps);
        self.credit = self.full_interval.saturating_mul(u64::from(burst));
    }

    /// The time of a full packet at the rate, nanoseconds; 0 without one.
    #[must_use]
    pub const fn full_interval_ns(&self) -> u64 {
        self.full_interval >> FRACTION
    }

    /// When the next packet may leave, if a rate is set and it is not yet.
    #[inline]
    #[must_use]
    pub fn blocked_until(&self, now: Instant) -> Option<Instant> {
        if self.mbps == 0 || self.next <= now.as_nanos() << FRACTION {
            return None;
        }
        Some(Instant::from_nanos(self.next.div_ceil(1 << FRACTION)))
    }

    /// Counts a packet of `bytes` wire bytes that leaves now.
    #[inline]
    // spec: MR-CC-012
    pub fn sent(&mut self, now: Instant, bytes: u32) {
        if self.mbps == 0 {
            return;
        }
        let time = if bytes == self.full_bytes {
            self.full_interval
        } else {
            interval(bytes, self.mbps)
        };
        let earliest = (now.as_nanos() << FRACTION).saturating_sub(self.credit);
        self.next = self.next.max(earliest).wrapping_add(time);
    }

    /// Forgets the past: the next packet may leave at once.
    pub fn reset(&mut self) {
        self.next = 0;
    }
}

/// bytes x 8 bits / mbps, in 1/256 ns.
const fn interval(bytes: u32, mbps: u32) -> u64 {
    if mbps == 0 {
        return 0;
    }
    ((bytes as u64 * 8_000) << FRACTION) / mbps as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: MR-CC-012
    #[test]
    fn the_rate_is_kept_to_one_in_a_thousand() {
        let mut pacer = Pacer::new();
        pacer.set_rate(788, 4214, 0);
        let (mut now, mut sent) = (Instant::from_nanos(1_000_000), 0u64);
        let start = now;
        while sent < 10_000 {
            if let Some(at) = pacer.blocked_until(now) {
                now = at;
            }
            pacer.sent(now, 4214);
            sent += 1;
        }
        let ns = now.since(start).as_nanos();
        let mbps = (sent - 1) * 4214 * 8_000 / ns;
        assert!((787..=788).contains(&mbps), "{mbps}");
    }

    // spec: MR-CC-012
    #[test]
    fn idle_time_is_not_saved_up_beyond_the_burst() {
        let mut pacer = Pacer::new();
        pacer.set_rate(1_000, 1_000, 3);
        let now = Instant::from_nanos(1_000_000_000);
        let mut back_to_back = 0;
        while pacer.blocked_until(now).is_none() {
            pacer.sent(now, 1_000);
            back_to_back += 1;
        }
        assert_eq!(back_to_back, 4);
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut pacer = Pacer::new();
        pacer.sent(Instant::ZERO, u32::MAX);
        assert_eq!(pacer.blocked_until(Instant::ZERO), None);
    }
}
