//! A path or a plane dies in the middle of a long flow: how long until what is left is used?
//!
//! Goodput is counted at the receiver's memory in bins of 2 us. A moment is recovered if the mean over the 8 us
//! that begin with it, and over every later 8 us of the observation, is at least 95 % of the payload rate that
//! is left. The recovery time is from the failure to the first such moment.

use metaroce_core::config::ConnectionConfig;

use super::payload_limit_bps;
use super::setup::{Failure, Happening, Lab, Settings};
use crate::faults::{FaultConfig, Selector};
use crate::inspect;
use crate::time::Time;
use crate::topology::{PairConfig, pair};

/// What dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// The way there of one path.
    Forward,
    /// The way back of one path.
    Back,
    /// Both ways of one path.
    Both,
    /// One of four planes, both ways.
    Plane,
}

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct FailureConfig {
    /// What dies.
    pub what: What,
    /// Paths (over all planes).
    pub paths: u8,
    /// Which path.
    pub path: u8,
    /// Seed.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, PartialEq, Debug)]
pub struct FailureResult {
    /// From the failure until 95 % of what is left for good.
    pub recovery: Option<Time>,
    /// For a plane: from its return until 95 % of all planes for good.
    pub recovery_after_return: Option<Time>,
    /// From the failure to the report that the plane is down, if one came.
    pub reported_down: Option<Time>,
    /// From the return to the report that the plane is up, if one came.
    pub reported_up: Option<Time>,
    /// Goodput before the failure over the payload limit.
    pub before: f64,
    /// Data packets swallowed by the failure.
    pub swallowed: u64,
    /// Data packets sent again.
    pub retransmissions: u64,
    /// Fences sent.
    pub fences: u64,
    /// Bytes placed twice (more than the message has).
    pub duplicate_bytes: i64,
    /// Goodput per bin of 2 us, in Gbit/s, from the failure on.
    pub curve_gbps: Vec<f64>,
}

const BIN: Time = Time::from_us(2);
const WINDOW_BINS: usize = 4;
/// The share of what is left that counts as recovered.
const ENOUGH: f64 = 0.95;
const PLANES: u8 = 4;
const FAILS_AFTER: Time = Time::from_us(200);
const RETURNS_AFTER: Time = Time::from_us(800);
const OBSERVED: Time = Time::from_us(600);

/// Runs the flow.
///
/// # Errors
/// If it does not complete.
pub fn run(config: &FailureConfig) -> Result<FailureResult, Failure> {
    let plane_dies = config.what == What::Plane;
    let planes = if plane_dies { PLANES } else { 1 };
    let network = PairConfig {
        planes,
        ..PairConfig::default()
    };
    let mut lab = Lab::new(
        pair(&network, config.seed),
        &Settings {
            seed: config.seed,
            planes,
            ..Settings::default()
        },
    );
    let connection = lab.connect(
        0,
        1,
        ConnectionConfig {
            paths: config.paths,
            ..ConnectionConfig::default()
        },
    )?;
    lab.idle(Time::from_us(200))?;
    // The failure begins with a bin.
    let begin = (lab.sim.now().ps() / BIN.ps() + 1) * BIN.ps();
    lab.idle(Time::from_ps(begin).since(lab.sim.now()))?;
    let start = lab.sim.now();
    let fails = start + FAILS_AFTER;
    let returns = if plane_dies {
        start + RETURNS_AFTER
    } else {
        Time::NEVER
    };
    inject(&mut lab, config, fails, returns);
    lab.sim.host(1).memory.record(BIN);

    let end = if plane_dies {
        returns + OBSERVED
    } else {
        fails + OBSERVED
    };
    let limit_bps = payload_limit_bps(network.mbps) * f64::from(planes);
    let bytes = (limit_bps / 8.0 * (end - start).us_f64() * 1e-6) as u32;
    lab.write(0, 1, connection, 0, bytes, 1)?;
    let (mut down, mut up) = (None, None);
    loop {
        match lab.next(end + Time::from_ms(100))? {
            Happening::Completion(..) => break,
            Happening::Limit => return Err(Failure::TimeLimit(lab.sim.now())),
            Happening::Plane(0, _, false) if down.is_none() => {
                down = Some(lab.sim.now().since(fails))
            }
            Happening::Plane(0, _, true) if up.is_none() => up = Some(lab.sim.now().since(returns)),
            Happening::Plane(..) | Happening::Alarm(_) => {}
        }
    }
    let finished = lab.sim.now();
    lab.check_conservation()?;

    let bins = lab.sim.hosts[1].memory.bins();
    let gbps: Vec<f64> = bins
        .iter()
        .map(|&bytes| bytes as f64 * 8e-9 / (BIN.us_f64() * 1e-6))
        .collect();
    let at = |time: Time| (time.ps() / BIN.ps()) as usize;
    let full = limit_bps * 1e-9;
    let left = if plane_dies {
        full * f64::from(planes - 1) / f64::from(planes)
    } else {
        full
    };
    let first_end = if plane_dies {
        at(returns)
    } else {
        at(finished).min(at(end))
    };
    // The last round trip belongs to the tail of the flow.
    let flow_end = at(finished).saturating_sub(12);
    let before: f64 = gbps[at(fails) - 75..at(fails)].iter().sum::<f64>() / 75.0;
    let swallowed = lab
        .sim
        .network
        .ports
        .iter()
        .map(|port| port.statistics.dropped_data)
        .sum();
    let sent = lab.sim.hosts[0].sent;
    Ok(FailureResult {
        recovery: recovery(&gbps, at(fails), first_end.min(flow_end), left * ENOUGH),
        recovery_after_return: if plane_dies {
            recovery(&gbps, at(returns), flow_end, full * ENOUGH)
        } else {
            None
        },
        reported_down: down,
        reported_up: up,
        before: before / full,
        swallowed,
        retransmissions: sent.retransmissions,
        fences: sent.packets[inspect::FENCE],
        duplicate_bytes: lab.placed(1, 0) as i64 - i64::from(bytes),
        curve_gbps: gbps[at(fails)..first_end.min(gbps.len())].to_vec(),
    })
}

fn inject(lab: &mut Lab, config: &FailureConfig, fails: Time, returns: Time) {
    let network = &mut lab.sim.network;
    let plane = if config.what == What::Plane { 1 } else { 0 };
    let (there, back) = (network.host_port(0, plane), network.host_port(1, plane));
    let hole = |selector| FaultConfig::default().with_blackhole(selector, fails, returns);
    match config.what {
        What::Forward => network.set_faults(there, hole(Selector::DataPath(config.path))),
        What::Back => network.set_faults(back, hole(Selector::AckPath(config.path))),
        What::Both => {
            network.set_faults(there, hole(Selector::DataPath(config.path)));
            network.set_faults(back, hole(Selector::AckPath(config.path)));
        }
        What::Plane => {
            network.set_faults(there, hole(Selector::All));
            network.set_faults(back, hole(Selector::All));
        }
    }
}

/// The time from bin `from` to the first bin from which on every window that ends before `to` reaches `enough`.
fn recovery(gbps: &[f64], from: usize, to: usize, enough: f64) -> Option<Time> {
    let last = to.min(gbps.len()).checked_sub(WINDOW_BINS)?;
    let mut recovered = None;
    for start in from..=last {
        let mean = gbps[start..start + WINDOW_BINS].iter().sum::<f64>() / WINDOW_BINS as f64;
        if mean < enough {
            recovered = None;
        } else if recovered.is_none() {
            recovered = Some(Time::from_ps((start - from) as u64 * BIN.ps()));
        }
    }
    recovered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_is_for_good() {
        let mut curve = vec![97.2; 40];
        assert_eq!(recovery(&curve, 10, 40, 92.0), Some(Time::ZERO));
        curve[12] = 0.0;
        assert_eq!(recovery(&curve, 10, 40, 92.0), Some(Time::from_us(6)));
        curve[20] = 0.0;
        assert_eq!(recovery(&curve, 10, 40, 92.0), Some(Time::from_us(22)));
        curve[39] = 0.0;
        assert_eq!(recovery(&curve, 10, 40, 92.0), None);
    }
}
