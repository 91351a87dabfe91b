//! The receiver's allocator: max-min fair shares of the ingress capacity among the senders that have demand.
//!
//! Work per packet is constant. Shares are recomputed at most once a microsecond, over classes of demand (octaves of bytes),
//! not over senders.

use super::reclaim::Reclaim;
use crate::time::{Duration, Instant};
use crate::wire::Demand;

/// No sender.
const NONE: u16 = u16::MAX;
/// Shares are not recomputed more often than this.
const RECOMPUTE_NS: u64 = 1_000;
/// Demands below this octave (128 KiB) are small: when everybody's is and shares are tiny, the link is overcommitted.
const SMALL_DEMAND_OCTAVE: u8 = 16;

/// What the allocator remembers of one sender.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    seen: Instant,
    previous: u16,
    next: u16,
    octave: u8,
    active: bool,
}

impl Share {
    /// A sender without demand.
    pub const IDLE: Self = Self {
        seen: Instant::ZERO,
        previous: NONE,
        next: NONE,
        octave: 0,
        active: false,
    };
}

impl Share {
    /// Whether hearing this demand now would change nothing worth noting.
    #[inline(always)]
    #[must_use]
    pub fn is_current(&self, now: Instant, demand: Demand) -> bool {
        self.active
            && self.octave == demand.0 >> 2
            && demand.0 != 0
            && now.since(self.seen).as_nanos() < RECOMPUTE_NS
    }
}

/// Where the senders' records are.
pub trait ShareTable {
    /// The record of a sender.
    fn share(&mut self, sender: u16) -> &mut Share;
}

/// Divides the capacity.
#[derive(Debug)]
pub struct Allocator {
    capacity_mbps: u32,
    packet_bytes: u32,
    /// Time over which a demand is meant: the round trip.
    horizon_ns: u32,
    level_mbps: u32,
    computed_at: Instant,
    dirty: bool,
    members: u16,
    /// Senders in the order in which they were last heard.
    oldest: u16,
    newest: u16,
    occupied: u64,
    count: [u16; 64],
    reclaim: Reclaim,
    /// Connections made lately, since then.
    young: u16,
    young_since: Instant,
}

impl Allocator {
    /// Divides `capacity_mbps` among packets of `packet_bytes` on the wire; round trips are about `horizon_ns`.
    #[must_use]
    pub const fn new(capacity_mbps: u32, packet_bytes: u32, horizon_ns: u32) -> Self {
        Self {
            capacity_mbps,
            packet_bytes,
            horizon_ns,
            level_mbps: capacity_mbps,
            computed_at: Instant::ZERO,
            dirty: false,
            members: 0,
            oldest: NONE,
            newest: NONE,
            occupied: 0,
            count: [0; 64],
            reclaim: Reclaim::new(),
            young: 0,
            young_since: Instant::ZERO,
        }
    }

    /// Senders with demand.
    #[must_use]
    pub const fn members(&self) -> u16 {
        self.members
    }

    /// A connection was made: its peer may be about to send. Until it says how much, every second one of those that came lately counts as a
    /// sender, as connections are often made for the other direction.
    // spec: MR-HINT-012
    pub fn connected(&mut self, now: Instant) {
        if now.since(self.young_since) > self.silence() {
            self.young = 0;
            self.young_since = now;
        }
        self.young = self.young.saturating_add(1);
        self.dirty = true;
    }

    /// Round trips of silence after which a sender does not count.
    const fn silence(&self) -> Duration {
        Duration::from_nanos(4 * self.horizon_ns as u64)
    }

    /// Senders to divide the capacity among: those with demand, or as many as may be expected.
    fn expected(&self) -> u16 {
        self.members.max(self.young / 2)
    }

    /// A round trip was measured; the shortest counts.
    pub fn observe_rtt(&mut self, ns: u32) {
        self.horizon_ns = self.horizon_ns.min(ns.max(1_000));
    }

    /// A packet of a sender said how much it still has for this receiver.
    #[inline]
    pub fn observe(
        &mut self,
        now: Instant,
        sender: u16,
        demand: Demand,
        table: &mut impl ShareTable,
    ) {
        let share = *table.share(sender);
        // spec: MR-HINT-002
        if demand == Demand::NONE {
            if share.active {
                self.leave(sender, table);
            }
            return;
        }
        // Demand codes have four steps an octave: 2^(octave+1) to 2^(octave+2) bytes.
        let octave = demand.0 >> 2;
        if !share.active {
            let share = table.share(sender);
            share.active = true;
            share.octave = octave;
            share.seen = now;
            self.members += 1;
            self.enter(octave);
            self.append(sender, table);
            return;
        }
        if share.octave != octave {
            self.exit(share.octave);
            self.enter(octave);
            table.share(sender).octave = octave;
        }
        if self.newest != sender && now.since(share.seen).as_nanos() >= RECOMPUTE_NS {
            self.unlink(sender, table);
            self.append(sender, table);
        }
        table.share(sender).seen = now;
    }

    /// The sender's connection ended, or its demand is served.
    pub fn leave(&mut self, sender: u16, table: &mut impl ShareTable) {
        let share = *table.share(sender);
        if !share.active {
            return;
        }
        self.unlink(sender, table);
        self.exit(share.octave);
        self.members -= 1;
        *table.share(sender) = Share::IDLE;
    }

    /// The rate that one more packet's sender is told, Mbit/s of wire bytes; `arrived` are the bytes that have come so far, counted as on the wire.
    #[inline]
    pub fn level(&mut self, now: Instant, arrived: u64, table: &mut impl ShareTable) -> u32 {
        // spec: MR-HINT-004
        if now.since(self.computed_at).as_nanos() >= RECOMPUTE_NS {
            self.expire(now, table);
            if self.young != 0 && now.since(self.young_since) > self.silence() {
                self.young = 0;
                self.dirty = true;
            }
            self.dirty |= self
                .reclaim
                .measure(now, arrived, self.capacity_mbps, self.horizon_ns);
            if self.dirty {
                self.recompute();
            }
            self.computed_at = now;
        }
        self.level_mbps
    }

    /// Drops senders that were silent longer than max(4 RTT, 4 packet times at their share).
    // spec: MR-HINT-002
    fn expire(&mut self, now: Instant, table: &mut impl ShareTable) {
        let packet_time = u64::from(self.packet_bytes) * 8_000 / u64::from(self.level_mbps.max(1));
        let limit = Duration::from_nanos(4 * u64::from(self.horizon_ns).max(packet_time));
        while self.oldest != NONE && now.since(table.share(self.oldest).seen) > limit {
            self.leave(self.oldest, table);
        }
    }

    /// Water filling: demands below the level are met, the rest share what is left.
    // spec: MR-HINT-001, MR-HINT-004
    fn recompute(&mut self) {
        self.dirty = false;
        self.reclaim.members(self.expected());
        let mut capacity = u64::from(self.capacity_mbps);
        let mut members = u64::from(self.expected());
        let mut rest = self.occupied;
        let mut largest = 0;
        while rest != 0 {
            let octave = rest.trailing_zeros() as u8;
            rest &= rest - 1;
            largest = octave;
            let demand_mbps = (24_000u64 << octave.min(47)) / u64::from(self.horizon_ns.max(1));
            if demand_mbps * members > capacity {
                largest = 63 - rest.leading_zeros().min(63) as u8;
                largest = largest.max(octave);
                break;
            }
            let count = self
                .count
                .get(usize::from(octave))
                .copied()
                .map_or(0, u64::from);
            capacity = capacity.saturating_sub(demand_mbps * count);
            members = members.saturating_sub(count);
        }
        let mut level = if members == 0 {
            u64::from(self.capacity_mbps)
        } else {
            capacity.div_ceil(members)
        };
        let packet_per_rtt =
            u64::from(self.packet_bytes) * 8_000 / u64::from(self.horizon_ns.max(1));
        // spec: MR-HINT-005
        if members != 0 && level < packet_per_rtt && largest < SMALL_DEMAND_OCTAVE {
            level = level * 6 / 5;
        }
        level = self.reclaim.apply(level);
        self.level_mbps = (level.max(1)).min(u64::from(self.capacity_mbps)) as u32;
    }

    fn enter(&mut self, octave: u8) {
        if let Some(count) = self.count.get_mut(usize::from(octave)) {
            *count += 1;
            self.occupied |= 1 << octave;
            self.dirty = true;
        }
    }

    fn exit(&mut self, octave: u8) {
        if let Some(count) = self.count.get_mut(usize::from(octave)) {
            *count -= 1;
            if *count == 0 {
                self.occupied &= !(1 << octave);
            }
            self.dirty = true;
        }
    }

    fn append(&mut self, sender: u16, table: &mut impl ShareTable) {
        let share = table.share(sender);
        share.previous = self.newest;
        share.next = NONE;
        if self.newest == NONE {
            self.oldest = sender;
        } else {
            table.share(self.newest).next = sender;
        }
        self.newest = sender;
    }

    fn unlink(&mut self, sender: u16, table: &mut impl ShareTable) {
        let Share { previous, next, .. } = *table.share(sender);
        if previous == NONE {
            self.oldest = next;
        } else {
            table.share(previous).next = next;
        }
        if next == NONE {
            self.newest = previous;
        } else {
            table.share(next).previous = previous;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    impl ShareTable for Vec<Share> {
        fn share(&mut self, sender: u16) -> &mut Share {
            &mut self[usize::from(sender)]
        }
    }

    fn us(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    // spec: MR-HINT-001
    #[test]
    fn large_demands_share_alike_and_small_ones_are_met() {
        let mut table = std::vec![Share::IDLE; 16];
        let mut allocator = Allocator::new(100_000, 4214, 14_000);
        for sender in 0..15 {
            allocator.observe(us(10), sender, Demand::from_bytes(2_000_000), &mut table);
        }
        assert_eq!(
            allocator.level(us(12), 0, &mut table),
            100_000u32.div_ceil(15)
        );
        // 4 KiB in a round trip of 14 us are 2.3 Gbit/s; the fifteen share the rest.
        allocator.observe(us(12), 15, Demand::from_bytes(4_096), &mut table);
        let level = allocator.level(us(14), 0, &mut table);
        assert!((6_400..6_667).contains(&level), "{level}");
        for sender in 1..16 {
            allocator.observe(us(14), sender, Demand::NONE, &mut table);
        }
        assert_eq!(allocator.level(us(16), 0, &mut table), 100_000);
        assert_eq!(allocator.members(), 1);
    }

    // spec: MR-HINT-002
    #[test]
    fn the_silent_leave() {
        let mut table = std::vec![Share::IDLE; 3];
        let mut allocator = Allocator::new(100_000, 4214, 14_000);
        for sender in 0..3 {
            allocator.observe(us(10), sender, Demand::from_bytes(1 << 30), &mut table);
        }
        for t in 11..80 {
            allocator.observe(us(t), 1, Demand::from_bytes(1 << 30), &mut table);
            allocator.level(us(t), 0, &mut table);
        }
        assert_eq!(
            (allocator.members(), allocator.level(us(80), 0, &mut table)),
            (1, 100_000)
        );
    }

    // spec: MR-HINT-012
    #[test]
    fn of_many_who_connect_together_half_count_before_they_say_so() {
        let mut table = std::vec![Share::IDLE; 20];
        let mut allocator = Allocator::new(100_000, 4214, 14_000);
        // The line is full, so that nothing is left over.
        let level = |allocator: &mut Allocator, t: u64, table: &mut Vec<Share>| {
            allocator.level(us(t), t * 12_500, table)
        };
        let mut told = std::vec![];
        for t in 0..20 {
            allocator.connected(us(100 + t));
            told.push(level(&mut allocator, 100 + t, &mut table));
        }
        assert_eq!(
            (told[0], told[2], told[4], told[19]),
            (100_000, 100_000, 50_000, 10_000)
        );
        // Two that say so are no more than those who were expected.
        allocator.observe(us(125), 0, Demand::from_bytes(1 << 30), &mut table);
        allocator.observe(us(125), 1, Demand::from_bytes(1 << 30), &mut table);
        assert_eq!(level(&mut allocator, 127, &mut table), 10_000);
        allocator.observe(us(157), 0, Demand::from_bytes(1 << 30), &mut table);
        allocator.observe(us(157), 1, Demand::from_bytes(1 << 30), &mut table);
        assert_eq!(
            level(&mut allocator, 157, &mut table),
            50_000,
            "the others did not"
        );
    }

    proptest! {
        /// The list and the classes agree with the records whatever happens, and shares never exceed the capacity by more than rounding
        /// (or the overcommitment of tiny shares).
        // spec: MR-HINT-004
        #[test]
        fn records_stay_consistent(steps in proptest::collection::vec((0u16..8, any::<u8>(), 0u64..40), 1..300)) {
            let mut table = std::vec![Share::IDLE; 8];
            let mut allocator = Allocator::new(1_000, 4214, 14_000);
            let mut now = 0;
            for (sender, demand, later) in steps {
                now += later;
                allocator.observe(us(now), sender, Demand(demand), &mut table);
                let level = allocator.level(us(now), 0, &mut table);
                prop_assert!((1..=1_000).contains(&level));
                let active = table.iter().filter(|share| share.active).count();
                prop_assert_eq!(active, usize::from(allocator.members()));
                let (mut at, mut listed) = (allocator.oldest, 0);
                while at != NONE { listed += 1; prop_assert!(table[usize::from(at)].active); at = table[usize::from(at)].next; }
                prop_assert_eq!(listed, active);
                prop_assert_eq!(allocator.count.iter().map(|c| usize::from(*c)).sum::<usize>(), active);
            }
        }
    }
}
