//! DCQCN: the rate of a queue pair by notifications of congestion.
//!
//! Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.1. The receiver (notification point)
//! answers marked packets with at most one CNP per interval and queue pair. The sender (reaction point) cuts its rate at a CNP and
//! raises it by a timer and a byte counter in three phases. All timers of the paper are functions of the time of the last cut,
//! so they are worked off when the rate is asked for, and an idle queue pair costs nothing.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// The constants of DCQCN.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DcqcnConfig {
    /// Least time between two CNPs of a queue pair.
    pub cnp_interval: Time,
    /// Least time between two cuts; a CNP that comes sooner only raises alpha.
    pub decrease_interval: Time,
    /// Gain g of the estimate alpha, above 0, at most 1.
    pub gain: f64,
    /// Without a CNP for so long (K), alpha is lowered; at least 1 us.
    pub alpha_interval: Time,
    /// Period of the timer T of rate increases, at least 1 us.
    pub increase_interval: Time,
    /// Bytes on the line per step of the byte counter B; none: only the timer counts.
    pub increase_bytes: Option<u64>,
    /// Steps F of fast recovery.
    pub recovery_steps: u32,
    /// R_AI, Mbit/s.
    pub additive_mbps: u64,
    /// R_HAI, Mbit/s.
    pub hyper_mbps: u64,
    /// The i-th step of hyper increase is i times R_HAI, as in IEEE 802.1Qau and the authors' simulator; else each is R_HAI.
    pub hyper_grows: bool,
    /// No rate falls below this, Mbit/s, at least 1.
    pub minimum_mbps: u64,
    /// Every cut makes the present rate the target. If not, only a cut after an increase does (`clamp_tgt_rate` off,
    /// `clamp_tgt_rate_after_time_inc` on: as NICs come).
    pub clamp_target: bool,
}

impl DcqcnConfig {
    /// The paper's (figure 14 and section 3), chosen for 40 Gb/s: CNP 50 us, g 1/256, K 55 us, T 55 us, B 10 MB, F 5, R_AI 40 Mb/s.
    /// R_HAI is that of the authors' simulator (`bobzhuyb/ns3-rdma`); the paper names no least rate, this one is
    /// that simulator's `MinRate`.
    pub const PAPER: Self = Self {
        cnp_interval: Time::from_us(50),
        decrease_interval: Time::ZERO,
        gain: 1.0 / 256.0,
        alpha_interval: Time::from_us(55),
        increase_interval: Time::from_us(55),
        increase_bytes: Some(10_000_000),
        recovery_steps: 5,
        additive_mbps: 40,
        hyper_mbps: 200,
        hyper_grows: true,
        minimum_mbps: 100,
        clamp_target: true,
    };

    /// ConnectX-4 and later as they come (NVIDIA, "DCQCN CC Parameters"; defaults as `mlxconfig` shows them): `min_time_between_cnps`
    /// 4 us, `rate_reduce_monitor_period` 4 us, `dce_tcp_g` 1019 of 1024, `dce_tcp_rtt` 1 us, `rpg_time_reset` 300 us, `rpg_byte_reset`
    /// 32767 blocks of 64 bytes (2 MB), `rpg_threshold` 1, `rpg_ai_rate` 5, `rpg_hai_rate` 50, `rpg_min_rate` 1.
    pub const CONNECTX: Self = Self {
        cnp_interval: Time::from_us(4),
        decrease_interval: Time::from_us(4),
        gain: 5.0 / 1024.0,
        alpha_interval: Time::from_us(1),
        increase_interval: Time::from_us(300),
        increase_bytes: Some(32_767 * 64),
        recovery_steps: 1,
        additive_mbps: 5,
        hyper_mbps: 50,
        hyper_grows: true,
        minimum_mbps: 1,
        clamp_target: false,
    };

    /// The vendor's settings as Li et al. (HPCC, SIGCOMM 2019, and the simulator published with it) ran DCQCN at 100 Gb/s: increases in
    /// proportion to the line, 5 and 50 Mb/s at 25 Gb/s, by the timer alone, with a least rate of 1 Gb/s (`MIN_RATE` of its `run.py`).
    /// Its switches mark from 400 to 1,600 kB with at most 20 % at 100 Gb/s.
    pub const CONNECTX_100G: Self = Self {
        increase_bytes: None,
        hyper_grows: false,
        additive_mbps: 20,
        hyper_mbps: 200,
        minimum_mbps: 1_000,
        ..Self::CONNECTX
    };
}

impl Default for DcqcnConfig {
    /// [`DcqcnConfig::CONNECTX_100G`]: the paper's increases were chosen for 40 Gb/s, the vendor's for 25.
    fn default() -> Self {
        Self::CONNECTX_100G
    }
}

/// When the receiver of a queue pair may send CNPs.
#[derive(Clone, Copy, Debug, Default)]
pub struct NotificationPoint {
    last: Option<Time>,
}

impl NotificationPoint {
    /// A marked packet has come: whether it is answered.
    pub fn marked(&mut self, config: &DcqcnConfig, now: Time) -> bool {
        let due = self
            .last
            .is_none_or(|last| now.since(last) >= config.cnp_interval);
        if due {
            self.last = Some(now);
        }
        due
    }
}

/// The rate of a queue pair.
#[derive(Clone, Copy, Debug)]
pub struct ReactionPoint {
    rate_kbps: u64,
    target_kbps: u64,
    line_kbps: u64,
    alpha: f64,
    /// Of the last step of alpha.
    alpha_at: Time,
    /// Of the last cut or step of the timer; none before the first CNP, until which there is no limit.
    timer_at: Option<Time>,
    cut_at: Time,
    bytes: u64,
    timer_steps: u32,
    byte_steps: u32,
}

impl ReactionPoint {
    /// At line rate, with alpha at 1.
    #[must_use]
    pub const fn new(line_mbps: u64) -> Self {
        Self {
            rate_kbps: line_mbps * 1_000,
            target_kbps: line_mbps * 1_000,
            line_kbps: line_mbps * 1_000,
            alpha: 1.0,
            alpha_at: Time::ZERO,
            timer_at: None,
            cut_at: Time::ZERO,
            bytes: 0,
            timer_steps: 0,
            byte_steps: 0,
        }
    }

    /// The current rate R_C, kbit/s.
    #[must_use]
    pub const fn rate_kbps(&self) -> u64 {
        self.rate_kbps
    }

    /// The target rate R_T, kbit/s.
    #[must_use]
    pub const fn target_kbps(&self) -> u64 {
        self.target_kbps
    }

    /// The estimate of congestion, 0 to 1, as of the last CNP.
    #[must_use]
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Whether the rate is below that of the line.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.rate_kbps < self.line_kbps
    }

    /// How long `bytes` take at the current rate.
    #[must_use]
    pub const fn time_for(&self, bytes: u32) -> Time {
        Time::from_ps(bytes as u64 * 8_000_000_000 / self.rate_kbps)
    }

    /// Works off the timer of increases.
    pub fn advance(&mut self, config: &DcqcnConfig, now: Time) {
        let Some(mut at) = self.timer_at else {
            return;
        };
        let period = config.increase_interval.ps();
        while now.since(at).ps() >= period {
            if !self.is_limited() && self.target_kbps == self.line_kbps {
                // Nothing more to gain: the steps left only count.
                let steps = now.since(at).ps() / period;
                self.timer_steps = self.timer_steps.saturating_add(steps as u32);
                at += Time::from_ps(steps * period);
                break;
            }
            at += Time::from_ps(period);
            self.increase(config);
            self.timer_steps += 1;
        }
        self.timer_at = Some(at);
    }

    /// A packet was sent.
    pub fn sent(&mut self, config: &DcqcnConfig, wire_bytes: u32) {
        let Some(most) = config.increase_bytes.filter(|_| self.timer_at.is_some()) else {
            return;
        };
        self.bytes += u64::from(wire_bytes);
        if self.bytes >= most {
            self.bytes -= most;
            self.increase(config);
            self.byte_steps += 1;
        }
    }

    /// A CNP has come (equation 1 of the paper; equation 2 for the time without one).
    pub fn notified(&mut self, config: &DcqcnConfig, now: Time) {
        self.advance(config, now);
        let first = self.timer_at.is_none();
        if !first {
            let idle = now.since(self.alpha_at).ps() / config.alpha_interval.ps();
            self.alpha *= power(1.0 - config.gain, idle);
        }
        self.alpha_at = now;
        if first || now.since(self.cut_at) >= config.decrease_interval {
            let raised = first || self.timer_steps > 0 || self.byte_steps > 0;
            if config.clamp_target || raised {
                self.target_kbps = self.rate_kbps;
            }
            let rate = self.rate_kbps as f64 * (1.0 - self.alpha / 2.0);
            self.rate_kbps = (rate as u64).max(config.minimum_mbps * 1_000);
            self.cut_at = now;
            self.timer_at = Some(now);
            self.bytes = 0;
            self.timer_steps = 0;
            self.byte_steps = 0;
        }
        self.alpha = (1.0 - config.gain) * self.alpha + config.gain;
    }

    /// One step up (equations 3 and 4, figure 7): the first F steps of a counter go half way to the target; after them the target
    /// rises by R_AI, and with both counters beyond F by R_HAI.
    fn increase(&mut self, config: &DcqcnConfig) {
        let f = config.recovery_steps;
        let most = self.timer_steps.max(self.byte_steps);
        let least = match config.increase_bytes {
            Some(_) => self.timer_steps.min(self.byte_steps),
            None => self.timer_steps,
        };
        let step_mbps = if most < f {
            0
        } else if least > f {
            let factor = if config.hyper_grows { least - f } else { 1 };
            config.hyper_mbps * u64::from(factor)
        } else {
            config.additive_mbps
        };
        self.target_kbps = (self.target_kbps + step_mbps * 1_000).min(self.line_kbps);
        // Rounded up, or the rate would stay one below the line for ever.
        self.rate_kbps = (self.target_kbps + self.rate_kbps).div_ceil(2);
    }
}

/// `base` to the power of `exponent`, by multiplications only, so that every machine agrees.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut result = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAPER: DcqcnConfig = DcqcnConfig::PAPER;

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn a_cut_is_the_papers() {
        let g = PAPER.gain;
        let mut point = ReactionPoint::new(40_000);
        point.notified(&PAPER, us(10));
        // R_T = R_C, R_C (1 - alpha/2), alpha = (1 - g) alpha + g: from 1 it stays at 1.
        assert_eq!(
            (point.target_kbps(), point.rate_kbps()),
            (40_000_000, 20_000_000)
        );
        assert!(close(point.alpha(), 1.0));
        // Two periods K without a CNP lower alpha twice; the timer T has raised the rate once, half way.
        point.notified(&PAPER, us(10 + 110));
        let alpha = (1.0 - g) * (1.0 - g);
        assert_eq!(point.target_kbps(), 35_000_000);
        let expected = (35_000_000.0 * (1.0 - alpha / 2.0)) as u64;
        assert_eq!(point.rate_kbps(), expected);
        assert!(close(point.alpha(), (1.0 - g) * alpha + g));
    }

    #[test]
    fn recovery_is_fast_then_additive_then_hyper() {
        let mut point = ReactionPoint::new(40_000);
        point.notified(&PAPER, us(0));
        point.notified(&PAPER, us(50));
        assert_eq!(
            (point.target_kbps(), point.rate_kbps()),
            (20_000_000, 10_000_000)
        );
        // Five steps of the timer halve the distance to the target, which stays.
        for step in 1..=5_u64 {
            point.advance(&PAPER, us(50 + 55 * step));
            assert_eq!(point.target_kbps(), 20_000_000);
            assert_eq!(point.rate_kbps(), 20_000_000 - (10_000_000 >> step));
        }
        // From then on R_AI each; the byte counter is at zero.
        point.advance(&PAPER, us(50 + 55 * 8));
        assert_eq!(point.target_kbps(), 20_000_000 + 3 * 40_000);
        // Six steps of the byte counter add R_AI too, the seventh, with both counters beyond F, R_HAI, the eighth twice that.
        let mut target = point.target_kbps();
        for step in 1..=8_u64 {
            for _ in 0..10 {
                point.sent(&PAPER, 1_000_000);
            }
            target += match step {
                7 => 200_000,
                8 => 400_000,
                _ => 40_000,
            };
            assert_eq!(point.target_kbps(), target, "step {step}");
        }
    }

    #[test]
    fn the_timer_alone_goes_through_all_phases() {
        let config = DcqcnConfig::CONNECTX_100G;
        let mut point = ReactionPoint::new(100_000);
        for at in [0, 4, 8] {
            point.notified(&config, us(at));
        }
        point.advance(&config, us(8 + 300));
        point.notified(&config, us(8 + 301));
        let target = point.target_kbps();
        assert!(target < 60_000_000);
        // Half way once, R_AI once, then R_HAI each.
        let steps = [0, 20_000, 220_000, 420_000];
        for (periods, raised) in (1..).zip(steps) {
            point.advance(&config, us(309 + 300 * periods));
            assert_eq!(point.target_kbps(), target + raised);
        }
    }

    #[test]
    fn a_rate_returns_to_the_line_and_stays_there() {
        let config = DcqcnConfig::CONNECTX_100G;
        let mut point = ReactionPoint::new(100_000);
        point.notified(&config, us(1));
        assert_eq!(point.rate_kbps(), 50_000_000);
        assert!(point.is_limited());
        point.advance(&config, us(300 * 40));
        assert_eq!(point.rate_kbps(), 100_000_000);
        assert!(!point.is_limited());
        // A year later it costs one step, and alpha is gone: the next CNP cuts next to nothing.
        let later = Time::from_ms(365 * 24 * 3_600_000 / 4);
        point.notified(&config, later);
        assert!(point.rate_kbps() > 99_999_000);
        assert!(close(point.alpha(), config.gain));
    }

    #[test]
    fn cuts_have_a_least_distance_and_rates_a_floor() {
        let config = DcqcnConfig::CONNECTX_100G;
        let mut point = ReactionPoint::new(100_000);
        point.notified(&config, us(10));
        point.notified(&config, us(12));
        assert_eq!(point.rate_kbps(), 50_000_000);
        point.notified(&config, us(14));
        assert!(point.rate_kbps() < 26_000_000);
        // No increase in between: the target stays where it was.
        assert_eq!(point.target_kbps(), 100_000_000);
        for i in 0..100 {
            point.notified(&PAPER, us(20 + i));
        }
        assert_eq!(point.rate_kbps(), 100_000);
    }

    #[test]
    fn one_cnp_per_interval() {
        let mut point = NotificationPoint::default();
        let answered = (0..1_000).filter(|&i| point.marked(&PAPER, us(i))).count();
        assert_eq!(answered, 20);
    }
}
