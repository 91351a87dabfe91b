//! NSCC, the congestion control at the sender: a window that follows marks and delay.
//!
//! The rules are those of the pseudocode in the Ultra Ethernet specification 1.0, 3.6.13; where it leaves a choice (the
//! average delay, what counts as no delay, how deep one cut is), that of the consortium's published simulator (htsim,
//! `uec.cpp`). Four cases, by the acknowledged packet's mark and its queueing delay against a target:
//!
//! | | delay below target | delay at target or above |
//! |---|---|---|
//! | no mark | proportional increase; fast if there is no delay at all | fair increase |
//! | mark | nothing (spraying avoids the path) | multiplicative decrease |
//!
//! Besides, a trimmed packet or a very long delay lets the window jump to what arrived in the last round trip ("quick
//! adapt").

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// The constants of [`Nscc`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NsccConfig {
    /// Rate of the host's line, Mbit/s.
    pub line_mbps: u64,
    /// Round trip over the longest path of the empty network (`config_base_rtt`).
    pub network_rtt: Time,
    /// A full packet, in the bytes that windows are counted in.
    pub packet_bytes: u64,
    /// Queueing delay that is aimed at: with trimming 0.75 of the round trip, else 1.0 (specification, 3.6.13.3).
    pub target_delay: Time,
    /// Delay at which the window jumps, where nothing tells of losses: 4 targets (specification, 3.6.13.3).
    pub jump_delay: Time,
    /// The largest window, in bandwidth-delay products: 1.5 (specification).
    pub max_window_bdp: f64,
    /// The window jumps only if less than this part, 2^-n, of the largest one arrived in a round trip: n = 3 (htsim).
    pub jump_gate: u32,
    /// Depth of a multiplicative decrease: 0.8 (`gamma`, htsim).
    pub decrease: f64,
    /// The least that a decrease leaves of a window: 0.5 (`max_md_jump`, htsim).
    pub decrease_floor: f64,
    /// Proportional increase at no delay, packets per round trip at the reference network: 4.0 (`alpha`,
    /// specification).
    pub proportional: f64,
    /// Fair increase, packets per round trip at the reference network: 5.0 (`fi`, htsim).
    pub fair: f64,
    /// Increase whatever happens, packets per round trip at the reference network: 0.15 (`eta`, htsim).
    pub always: f64,
    /// Fast increase, bytes per acknowledged byte at the reference network: 0.25 (`fi_scale`, htsim).
    pub fast: f64,
    /// Delay that counts as none, for the fast increase: 1 us (htsim).
    pub no_delay: Time,
    /// Weight of a new sample in the average delay: 0.0125 (htsim).
    pub delay_gain: f64,
    /// Increases are applied once this many packets were acknowledged, or once per round trip: 8 (htsim).
    pub apply_packets: u64,
}

/// 100 Gb/s and 12 us: the network for which the constants of increase are given (specification, 3.6.13.3).
const REFERENCE_BDP: f64 = 150_000.0;
/// Its round trip, in picoseconds.
const REFERENCE_RTT: f64 = 12e6;

impl NsccConfig {
    /// The published constants for a network of this rate and round trip.
    #[must_use]
    pub fn new(line_mbps: u64, network_rtt: Time, packet_bytes: u64, trimming: bool) -> Self {
        let target = if trimming {
            Time::from_ps(network_rtt.ps() / 4 * 3)
        } else {
            network_rtt
        };
        Self {
            line_mbps,
            network_rtt,
            packet_bytes,
            target_delay: target,
            jump_delay: Time::from_ps(4 * target.ps()),
            max_window_bdp: 1.5,
            jump_gate: 3,
            decrease: 0.8,
            decrease_floor: 0.5,
            proportional: 4.0,
            fair: 5.0,
            always: 0.15,
            fast: 0.25,
            no_delay: Time::from_us(1),
            delay_gain: 0.0125,
            apply_packets: 8,
        }
    }

    /// Bytes that the line carries in a time.
    fn bytes_in(&self, time: Time) -> f64 {
        time.ps() as f64 * self.line_mbps as f64 / 8e6
    }

    /// The largest window for a round trip, bytes.
    #[must_use]
    pub fn max_window(&self, rtt: Time) -> f64 {
        self.max_window_bdp * self.bytes_in(rtt)
    }

    /// How much larger this network is than the reference (`scaling_a`).
    fn scale(&self) -> f64 {
        self.bytes_in(self.network_rtt) / REFERENCE_BDP
    }
}

/// The window of one sender.
#[derive(Clone, Debug)]
pub struct Nscc {
    config: NsccConfig,
    window: f64,
    max_window: f64,
    base_rtt: Time,
    average_delay: f64,
    /// Increase that waits to be applied, in bytes times the window.
    increase: f64,
    since_applied: u64,
    applied_at: Time,
    decreased_at: Time,
    undelayed: u64,
    fast: bool,
    arrived: u64,
    round_ends: Option<Time>,
    jump_wanted: bool,
    ignore: u64,
    ignored: u64,
}

impl Nscc {
    /// A window that begins at its largest.
    #[must_use]
    pub fn new(config: NsccConfig) -> Self {
        let max_window = config.max_window(config.network_rtt);
        Self {
            config,
            window: max_window,
            max_window,
            base_rtt: config.network_rtt,
            average_delay: 0.0,
            increase: 0.0,
            since_applied: 0,
            applied_at: Time::ZERO,
            decreased_at: Time::ZERO,
            undelayed: 0,
            fast: false,
            arrived: 0,
            round_ends: None,
            jump_wanted: false,
            ignore: 0,
            ignored: 0,
        }
    }

    /// Bytes that may be in flight.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.window as u64
    }

    /// The shortest round trip so far.
    #[must_use]
    pub fn base_rtt(&self) -> Time {
        self.base_rtt
    }

    /// The queueing delay that is aimed at.
    #[must_use]
    pub fn target_delay(&self) -> Time {
        self.config.target_delay
    }

    /// An acknowledgment of `bytes` that had not been acknowledged before, with a round trip if it is certain which
    /// transmission it answers; `in_flight` is what is left. Returns the delay.
    pub fn on_ack(
        &mut self,
        now: Time,
        rtt: Option<Time>,
        marked: bool,
        bytes: u64,
        in_flight: u64,
    ) -> Time {
        self.arrived += bytes;
        self.since_applied += bytes;
        self.ignored += bytes;
        let delay = self.sample(rtt, marked);
        if self.quick_adapt(now, false, marked, delay, in_flight) {
            return delay;
        }
        let congested = delay >= self.config.target_delay;
        match (marked, congested) {
            (false, true) => self.increase += self.fair() * bytes as f64,
            (false, false) => self.proportional_increase(bytes, delay),
            (true, true) => self.multiplicative_decrease(now),
            (true, false) => {}
        }
        self.bound();
        let due = now.since(self.applied_at) >= self.config.network_rtt;
        if due || self.since_applied > self.config.apply_packets * self.config.packet_bytes {
            self.window += self.increase / self.window;
            if due {
                self.window += self.config.always * self.packet() * self.config.scale();
                self.applied_at = now;
            }
            self.restart_increase();
        }
        self.bound();
        delay
    }

    /// A packet came to the receiver without its payload, `bytes` of it.
    pub fn on_trimmed(&mut self, now: Time, rtt: Option<Time>, bytes: u64, in_flight: u64) {
        self.ignored += bytes;
        if let Some(rtt) = rtt {
            self.lower_base(rtt);
        }
        // A queue that trims is about one round trip long.
        let delay = self.config.network_rtt.ps() as f64;
        self.average(delay);
        self.jump_wanted = true;
        if !self.quick_adapt(now, true, true, Time::ZERO, in_flight) {
            self.window -= bytes as f64;
            self.bound();
        }
    }

    /// A packet of `bytes` is taken for lost.
    pub fn on_loss(&mut self, bytes: u64) {
        self.ignored += bytes;
        self.window -= bytes as f64;
        self.bound();
    }

    fn packet(&self) -> f64 {
        self.config.packet_bytes as f64
    }

    fn fair(&self) -> f64 {
        self.config.fair * self.packet() * self.config.scale()
    }

    fn bound(&mut self) {
        self.window = self.window.min(self.max_window).max(self.packet());
    }

    fn restart_increase(&mut self) {
        self.increase = 0.0;
        self.since_applied = 0;
    }

    fn lower_base(&mut self, rtt: Time) {
        if rtt < self.base_rtt {
            self.base_rtt = rtt;
            self.max_window = self.config.max_window(rtt);
        }
    }

    fn average(&mut self, delay: f64) {
        let gain = self.config.delay_gain;
        self.average_delay = gain * delay + (1.0 - gain) * self.average_delay;
    }

    fn sample(&mut self, rtt: Option<Time>, marked: bool) -> Time {
        let Some(rtt) = rtt else {
            return Time::from_ps(self.average_delay as u64);
        };
        self.lower_base(rtt);
        let delay = rtt.since(self.base_rtt);
        if !marked && delay > self.config.target_delay {
            // The queue behind this packet is short already: its delay is history.
            self.average(self.base_rtt.ps() as f64 * 0.25);
        } else {
            self.average(delay.ps() as f64);
        }
        delay
    }

    fn proportional_increase(&mut self, bytes: u64, delay: Time) {
        if delay < self.config.no_delay {
            self.undelayed += bytes;
            if self.fast || self.undelayed as f64 > self.window {
                self.fast = true;
                self.window += bytes as f64 * self.config.fast * self.config.scale();
                return;
            }
        } else {
            self.undelayed = 0;
        }
        self.fast = false;
        let target = self.config.target_delay;
        let room = target.since(delay).ps() as f64 / target.ps() as f64;
        let per_byte = self.config.proportional
            * self.packet()
            * self.config.scale()
            * (target.ps() as f64 / REFERENCE_RTT);
        self.increase += per_byte * room * bytes as f64;
    }

    fn multiplicative_decrease(&mut self, now: Time) {
        self.fast = false;
        self.undelayed = 0;
        let target = self.config.target_delay.ps() as f64;
        if self.average_delay > target && now.since(self.decreased_at) > self.base_rtt {
            let excess = (self.average_delay - target) / self.average_delay;
            self.window *= (1.0 - self.config.decrease * excess).max(self.config.decrease_floor);
            self.decreased_at = now;
        }
    }

    /// Once per round trip: if there was a loss or a very long delay, and little arrived, the window is what arrived.
    /// Then the marks of what was already in flight mean nothing new. Returns whether the acknowledgment is spent.
    fn quick_adapt(
        &mut self,
        now: Time,
        loss: bool,
        marked: bool,
        delay: Time,
        in_flight: u64,
    ) -> bool {
        let mut spent = false;
        if self.ignored < self.ignore && marked {
            spent = true;
        } else if self.round_ends.is_none_or(|end| now > end) {
            let bad = self.jump_wanted || loss || delay > self.config.jump_delay;
            let gate = (self.max_window as u64) >> self.config.jump_gate;
            if self.round_ends.is_some() && bad && self.arrived < gate {
                self.window = (self.arrived as f64).max(self.packet());
                self.ignore = in_flight;
                self.ignored = 0;
                self.jump_wanted = false;
                spent = true;
            }
            self.arrived = 0;
            self.round_ends = Some(now + self.base_rtt + self.config.target_delay);
        }
        if spent {
            self.restart_increase();
        }
        spent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u64 = 4214;
    const RTT: Time = Time::from_us(12);

    /// The reference network, where all scales are 1, without trimming (target 12 us).
    fn nscc() -> Nscc {
        Nscc::new(NsccConfig::new(100_000, RTT, PACKET, false))
    }

    /// A sender in mid-flow: window and average delay as given, nothing pending.
    fn at(now: Time, window: f64, average: Time) -> Nscc {
        let mut nscc = nscc();
        nscc.window = window;
        nscc.average_delay = average.ps() as f64;
        nscc.applied_at = now;
        nscc.decreased_at = Time::ZERO;
        nscc.round_ends = Some(now + Time::from_us(20));
        nscc
    }

    const NOW: Time = Time::from_us(100);
    const MID: f64 = 100_000.0;

    fn after(delay_us: u64, marked: bool, packets: u64) -> f64 {
        let mut nscc = at(NOW, MID, Time::ZERO);
        for _ in 0..packets {
            nscc.on_ack(NOW, Some(RTT + Time::from_us(delay_us)), marked, PACKET, 0);
        }
        nscc.window - MID
    }

    #[test]
    fn it_begins_at_one_and_a_half_bandwidth_delay_products() {
        assert_eq!(nscc().window(), 225_000);
    }

    #[test]
    fn without_marks_the_increase_shrinks_with_the_delay_to_the_target_and_is_fair_beyond() {
        // Nine packets are more than eight: the increase is applied. Per window of packets, 4 packets at no delay
        // (5/6 of that at 2 us of 12, half at 6), and 5 from the target on, whatever the window is.
        let packets = 9.0 * PACKET as f64 * PACKET as f64 / MID;
        for (delay, expected) in [
            (2, 4.0 * 10.0 / 12.0),
            (6, 2.0),
            (11, 4.0 / 12.0),
            (12, 5.0),
            (40, 5.0),
        ] {
            let got = after(delay, false, 9) / packets;
            assert!(
                (got - expected).abs() < 0.01,
                "{delay} us: {got} for {expected}"
            );
        }
        // Eight are not more than eight.
        assert!(after(6, false, 8).abs() < 1e-9);
    }

    #[test]
    fn a_mark_without_delay_changes_nothing() {
        assert!(after(6, true, 9).abs() < 1e-9);
    }

    #[test]
    fn marks_and_delay_cut_in_proportion_to_the_excess_once_per_round_trip() {
        let late = Some(RTT + Time::from_us(16));
        let mut nscc = at(NOW, MID, Time::from_us(16));
        nscc.on_ack(NOW, late, true, PACKET, 0);
        // A quarter of the delay is in excess: 0.8 of a quarter.
        assert!((nscc.window / MID - 0.8).abs() < 1e-3, "{}", nscc.window);
        let once = nscc.window;
        nscc.on_ack(NOW + Time::from_us(11), late, true, PACKET, 0);
        assert!(nscc.window >= once);
        nscc.on_ack(NOW + Time::from_us(13), late, true, PACKET, 0);
        assert!(nscc.window < once);
        // Never below half at once.
        let mut nscc = at(NOW, MID, Time::from_us(200));
        nscc.on_ack(NOW, Some(RTT + Time::from_us(40)), true, PACKET, 0);
        assert!((nscc.window / MID - 0.5).abs() < 1e-9);
        // An average below the target cuts nothing.
        let mut nscc = at(NOW, MID, Time::from_us(3));
        nscc.on_ack(NOW, late, true, PACKET, 0);
        assert!((nscc.window - MID).abs() < 1e-9);
    }

    #[test]
    fn a_window_without_any_delay_grows_fast() {
        let mut nscc = at(NOW, 50_000.0, Time::ZERO);
        let mut steps = Vec::new();
        for _ in 0..20 {
            let before = nscc.window;
            nscc.on_ack(NOW, Some(RTT), false, PACKET, 0);
            steps.push(nscc.window - before);
        }
        // The window is 50,000 bytes, and 62,800 once the proportional increase was applied: after so many bytes
        // without delay, a quarter of each packet.
        assert!(steps[..8].iter().all(|step| step.abs() < 1e-9), "{steps:?}");
        let quarter = PACKET as f64 / 4.0 - 1e-6;
        assert!(steps[12] < quarter && steps[14..].iter().all(|&step| step >= quarter));
        nscc.on_ack(NOW, Some(RTT + Time::from_us(2)), false, PACKET, 0);
        let before = nscc.window;
        nscc.on_ack(NOW, Some(RTT), false, PACKET, 0);
        assert!((nscc.window - before).abs() < 1e-9);
    }

    #[test]
    fn losses_let_the_window_jump_to_what_arrived_and_old_marks_are_ignored() {
        let mut nscc = at(NOW, 225_000.0, Time::from_us(50));
        nscc.arrived = 3 * PACKET;
        let end = NOW + Time::from_us(21);
        nscc.on_trimmed(end, None, PACKET, 10 * PACKET);
        assert_eq!(nscc.window(), 3 * PACKET);
        // Ten packets were in flight: their marks do not cut.
        for _ in 0..9 {
            nscc.on_ack(
                end + Time::from_us(13),
                Some(RTT + Time::from_us(40)),
                true,
                PACKET,
                0,
            );
        }
        assert_eq!(nscc.window(), 3 * PACKET);
        // Where a lot arrives, a trimmed packet costs itself only.
        let mut nscc = at(NOW, MID, Time::ZERO);
        nscc.arrived = 8 * PACKET;
        nscc.on_trimmed(end, None, PACKET, 0);
        assert!((MID - nscc.window - PACKET as f64).abs() < 1e-9);
    }

    #[test]
    fn the_window_keeps_its_bounds_whatever_comes() {
        let mut random = crate::random::Stream::new(1, crate::random::Purpose::Plan, 0);
        let mut nscc = nscc();
        let mut now = Time::ZERO;
        for _ in 0..20_000 {
            now += Time::from_ns(random.below(2_000));
            let rtt = Some(Time::from_ns(12_000 + random.below(100_000)));
            match random.below(10) {
                0 => nscc.on_trimmed(now, rtt, PACKET, random.below(300_000)),
                1 => nscc.on_loss(PACKET),
                _ => {
                    nscc.on_ack(
                        now,
                        rtt,
                        random.below(2) == 0,
                        PACKET,
                        random.below(300_000),
                    );
                }
            }
            assert!((PACKET..=225_000).contains(&nscc.window()));
        }
    }
}
