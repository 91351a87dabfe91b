//! The default controller: one window W, the sum of the paths' weights, moved by ECN marks and bounded by the receiver's hint.
//!
//! * An acknowledged packet without a mark grows its path's weight by 1/W + 0.25 (T - W)/W while W < T, where
//!   T = min(1.25 x hint x min RTT, 2 BDP), if the window was what limited the sender.
//! * A marked one cuts it by a quarter of a packet: a fully marked round trip costs a quarter of the path's window. Not by a smoothed fraction
//!   (that favours connections with many paths) and never handing the cut to siblings (that breaks fairness).
//! * Losses cut alike when they speak of congestion; the fabric's own cut nothing under a hint.
//!
//! A burst starts with 8 packets and jumps to T once, on the first hint, if nothing was marked or lost.

use super::controller::{Controller, Network, ONE_PACKET};
use crate::storage::Table;
use crate::time::{Duration, Instant};

/// Packets that a burst starts with.
const INITIAL_WINDOW: u32 = 8 * ONE_PACKET;
/// Least window under a hint: one packet, paced.
const LEAST_HINTED: u32 = ONE_PACKET;
/// Least window without: 0.05 packets.
const LEAST_UNHINTED: u32 = ONE_PACKET / 20;
/// Least weight of an open path.
const LEAST_WEIGHT: u32 = ONE_PACKET / 64;
/// What one marked packet takes.
const CUT: u32 = ONE_PACKET / 4;
/// Round trips after which a hint is stale.
const HINT_ROUND_TRIPS: u64 = 4;

/// See the module's documentation.
#[derive(Debug)]
pub struct Coupled<const PATHS: usize> {
    weights: Table<u32, PATHS>,
    /// Sum of the weights.
    total: u32,
    /// Number of weights that are not zero.
    open: u16,
    network: Network,
    /// T, or 2 BDP without a hint.
    target: u32,
    hint_mbps: u32,
    hinted_at: Instant,
    decayed_at: Instant,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was marked, lost or hinted since the burst began.
    Start,
    /// Marked or lost before the first hint.
    Troubled,
    /// Jumped, or grown.
    Steady,
}

impl<const PATHS: usize> Coupled<PATHS> {
    /// No path is open yet.
    #[must_use]
    pub fn new(network: Network) -> Self {
        let mut new = Self {
            weights: Table::filled(0),
            total: 0,
            open: 0,
            network,
            target: 0,
            hint_mbps: 0,
            hinted_at: Instant::ZERO,
            decayed_at: Instant::ZERO,
            phase: Phase::Start,
        };
        new.retarget();
        new
    }

    // spec: MR-CC-004
    fn retarget(&mut self) {
        let limit = self
            .network
            .packets_per_rtt(self.network.link_mbps)
            .saturating_mul(2)
            .max(INITIAL_WINDOW);
        self.target = if self.hint_mbps == 0 {
            limit
        } else {
            let share = self.network.packets_per_rtt(self.hint_mbps);
            (share + share / 4).min(limit).max(LEAST_HINTED)
        };
    }

    fn least(&self) -> u32 {
        if self.hint_mbps == 0 {
            LEAST_UNHINTED
        } else {
            LEAST_HINTED
        }
    }

    /// Gives every open path the same share of `window`.
    fn spread(&mut self, window: u32) {
        let Some(share) = window.checked_div(u32::from(self.open)) else {
            return;
        };
        let share = share.max(LEAST_WEIGHT);
        self.total = 0;
        for weight in self.weights.iter_mut().filter(|weight| **weight != 0) {
            *weight = share;
            self.total += share;
        }
    }

    /// Takes `amount` from a path's weight, down to the least that it and the window may have.
    // spec: MR-CC-002
    fn cut(&mut self, path: u8, amount: u32) {
        let least = self.least();
        let weight = self.weights.at_mut(u16::from(path));
        let amount = amount
            .min(weight.saturating_sub(LEAST_WEIGHT))
            .min(self.total.saturating_sub(least));
        *weight -= amount;
        self.total -= amount;
    }

    fn round_trips(&self, count: u64) -> Duration {
        Duration::from_nanos(u64::from(self.network.loop_rtt_ns) * count)
    }
}

impl<const PATHS: usize> Controller for Coupled<PATHS> {
    fn open(&mut self, path: u8) {
        let weight = self.weights.at_mut(u16::from(path));
        if *weight != 0 {
            return;
        }
        // An equal share of what there is; the first path brings the initial window.
        let share = self
            .total
            .checked_div(u32::from(self.open))
            .unwrap_or(INITIAL_WINDOW)
            .max(LEAST_WEIGHT);
        *weight = share;
        self.open += 1;
        self.total = self.total.saturating_add(share);
        if self.phase == Phase::Start {
            self.spread(INITIAL_WINDOW);
        }
    }

    fn close(&mut self, path: u8) {
        let weight = self.weights.at_mut(u16::from(path));
        if *weight != 0 {
            self.total -= *weight;
            self.open -= 1;
            *weight = 0;
        }
    }

    #[inline]
    fn acknowledged(&mut self, path: u8, packets: u32, marked: u32, limited: bool) {
        let marked = marked.min(packets);
        if marked != 0 {
            if self.phase == Phase::Start {
                self.phase = Phase::Troubled;
            }
            // spec: MR-CC-003
            self.cut(path, CUT.saturating_mul(marked));
        }
        let clean = packets - marked;
        if clean == 0 {
            return;
        }
        if self.total < self.target {
            // spec: MR-CC-004
            if limited {
                let weight = self.weights.at_mut(u16::from(path));
                if *weight != 0 {
                    // spec: MR-CC-005
                    let per_window = ONE_PACKET
                        // spec: MR-CC-006
                        + if self.hint_mbps == 0 {
                            0
                        } else {
                            (self.target - self.total) / 4
                        };
                    let growth = (u64::from(per_window) << 16) / u64::from(self.total.max(1))
                        * u64::from(clean);
                    let growth = growth.min(u64::from(self.target - self.total)) as u32;
                    *weight += growth;
                    self.total += growth;
                }
            }
        } else if self.hint_mbps != 0 && self.total > self.target {
            // The share became smaller: come down within a few round trips.
            let excess = self.total - self.target;
            let weight = *self.weights.at(u16::from(path));
            // spec: MR-CC-013
            self.cut(path, excess.min(weight / 8 + 1));
        }
    }

    fn lost(&mut self, path: u8, packets: u32) {
        if self.phase == Phase::Start {
            self.phase = Phase::Troubled;
        }
        self.cut(path, CUT.saturating_mul(packets));
    }

    fn lost_to_fabric(&mut self, path: u8, packets: u32) {
        if self.hint_mbps == 0 {
            self.lost(path, packets);
        }
    }

    fn collapsed(&mut self) {
        self.phase = Phase::Troubled;
        // spec: MR-CC-007
        let half = (self.total / 2).max(self.least());
        self.spread(half);
    }

    #[inline]
    fn hinted(&mut self, now: Instant, mbps: u32) {
        self.hinted_at = now;
        if mbps != self.hint_mbps {
            self.hint_mbps = mbps;
            self.retarget();
        }
        if self.phase == Phase::Steady {
            return;
        }
        // spec: MR-CC-008
        if self.phase == Phase::Start && self.total < self.target {
            self.spread(self.target);
        }
        self.phase = Phase::Steady;
    }

    fn network(&mut self, network: Network) {
        self.network = network;
        self.retarget();
    }

    // spec: MR-CC-009
    fn burst(&mut self, now: Instant) {
        if self.hint_mbps != 0 && now.since(self.hinted_at) <= self.round_trips(HINT_ROUND_TRIPS) {
            return;
        }
        self.hint_mbps = 0;
        self.phase = Phase::Start;
        self.retarget();
        self.spread(INITIAL_WINDOW);
    }

    #[inline]
    fn tick(&mut self, now: Instant) {
        if self.hint_mbps == 0
            || now.since(self.hinted_at)
                <= self.round_trips(HINT_ROUND_TRIPS).max(MINIMUM_HINT_LIFE)
        {
            return;
        }
        // Silence is not good news: half the window each round trip, down to that of a new burst.
        // spec: MR-CC-010
        if now.since(self.decayed_at) > self.round_trips(1) {
            self.decayed_at = now;
            let half = (self.total / 2).max(INITIAL_WINDOW.min(self.total));
            self.spread(half);
        }
    }

    #[inline]
    fn window(&self) -> u32 {
        self.total.max(self.least())
    }

    #[inline]
    fn weight(&self, path: u8) -> u32 {
        *self.weights.at(u16::from(path))
    }

    #[inline]
    fn pacing_mbps(&self) -> Option<u32> {
        if self.hint_mbps == 0 {
            None
        } else {
            Some(self.hint_mbps)
        }
    }

    #[inline]
    fn is_hinted(&self) -> bool {
        self.hint_mbps != 0
    }
}

/// A hint lives at least this long, so that a scheduler's pause at a software endpoint is not silence.
const MINIMUM_HINT_LIFE: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    const NETWORK: Network = Network {
        loop_rtt_ns: 14_090,
        link_mbps: 100_000,
        packet_bytes: 4214,
    };

    fn opened<const P: usize>() -> Coupled<P> {
        let mut controller = Coupled::<P>::new(NETWORK);
        for path in 0..P as u8 {
            controller.open(path);
        }
        controller
    }

    fn packets(fixed: u32) -> f64 {
        f64::from(fixed) / f64::from(ONE_PACKET)
    }

    // spec: MR-CC-008
    #[test]
    fn a_burst_starts_small_and_jumps_once() {
        let mut controller = opened::<8>();
        assert_eq!(controller.window(), INITIAL_WINDOW);
        controller.hinted(Instant::ZERO, 100_000);
        let bdp = 100e9 * 14.09e-6 / 8.0 / 4214.0;
        assert!(
            (packets(controller.window()) - 1.25 * bdp).abs() < 0.1,
            "{}",
            packets(controller.window())
        );
        let mut marked = opened::<8>();
        marked.acknowledged(0, 1, 1, true);
        marked.hinted(Instant::ZERO, 100_000);
        assert!(packets(marked.window()) < 8.0);
    }

    // spec: MR-CC-003
    #[test]
    fn a_fully_marked_round_trip_costs_a_quarter_whatever_the_number_of_paths() {
        fn after<const P: usize>() -> f64 {
            let mut controller = opened::<P>();
            controller.hinted(Instant::ZERO, 100_000);
            let before = controller.window();
            let each = packets(before) / P as f64;
            let mut rest = vec![each; P];
            for _ in 0..before >> 16 {
                let path = (0..P).max_by(|a, b| rest[*a].total_cmp(&rest[*b])).unwrap();
                rest[path] -= 1.0;
                controller.acknowledged(path as u8, 1, 1, true);
            }
            packets(controller.window()) / packets(before)
        }
        for ratio in [after::<1>(), after::<8>(), after::<32>()] {
            assert!((ratio - 0.75).abs() < 0.02, "{ratio}");
        }
    }

    // spec: MR-CC-004, MR-CC-013
    #[test]
    fn it_returns_to_its_target_and_stays() {
        let mut controller = opened::<4>();
        controller.hinted(Instant::ZERO, 100_000);
        let target = controller.target;
        for _ in 0..20 {
            controller.acknowledged(0, 1, 1, true);
        }
        assert!(controller.window() < target);
        for i in 0..2_000u32 {
            controller.acknowledged((i % 4) as u8, 1, 0, true);
            assert!(controller.window() <= target);
        }
        assert!(controller.window() > target - ONE_PACKET);
        // A smaller share: down to it, again without undershooting.
        controller.hinted(Instant::ZERO, 10_000);
        for i in 0..400u32 {
            controller.acknowledged((i % 4) as u8, 1, 0, true);
        }
        assert!(
            packets(controller.window()) < 5.5
                && controller.window() >= controller.target - ONE_PACKET / 8,
            "{}",
            packets(controller.window())
        );
    }

    // spec: MR-CC-002
    #[test]
    fn weights_always_add_up_and_closing_hands_nothing_to_siblings() {
        let mut controller = opened::<4>();
        controller.hinted(Instant::ZERO, 100_000);
        let others = controller.weight(0) + controller.weight(1) + controller.weight(2);
        controller.close(3);
        assert_eq!(controller.window(), others);
        controller.acknowledged(3, 1, 0, true);
        assert_eq!(controller.weight(3), 0);
        controller.open(3);
        let sum: u32 = (0..4).map(|path| controller.weight(path)).sum();
        assert_eq!(controller.window(), sum);
    }

    // spec: MR-CC-006, MR-CC-007
    #[test]
    fn fabric_loss_cuts_nothing_under_a_hint_and_congestion_does() {
        let mut controller = opened::<2>();
        controller.hinted(Instant::ZERO, 100_000);
        let before = controller.window();
        controller.lost_to_fabric(0, 5);
        assert_eq!(controller.window(), before);
        controller.lost(0, 4);
        assert_eq!(controller.window(), before - ONE_PACKET);
        controller.collapsed();
        assert!(controller.window() <= before / 2);
    }

    // spec: MR-CC-010
    #[test]
    fn silence_decays_the_window() {
        let mut controller = opened::<2>();
        controller.hinted(Instant::ZERO, 100_000);
        let mut now = Instant::from_nanos(100_000);
        for _ in 0..20 {
            controller.tick(now);
            now += Duration::from_micros(20);
        }
        assert_eq!(controller.window(), INITIAL_WINDOW);
        controller.burst(now);
        assert!(!controller.is_hinted());
    }
}
