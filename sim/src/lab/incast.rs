//! Many senders, one receiver's port: is it full, fair and calm?

use metaroce_core::config::ConnectionConfig;

use super::setup::{Failure, Happening, Lab, Settings};
use crate::time::Time;
use crate::topology::{StarConfig, star};

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct IncastConfig {
    /// Senders.
    pub senders: u32,
    /// Bytes that each writes.
    pub bytes: u32,
    /// Paths of each connection.
    pub paths: u8,
    /// An announcement before the burst.
    pub announce: bool,
    /// Rate hints.
    pub hints: bool,
    /// Seed.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IncastResult {
    /// The first completion.
    pub first: Time,
    /// The last completion.
    pub last: Time,
    /// Jain's index of the completion times.
    pub jain: f64,
    /// Data packets sent again.
    pub retransmissions: u64,
    /// Packets dropped at the receiver's port.
    pub dropped: u64,
    /// Packets marked there.
    pub marked: u64,
    /// The longest queue there, in bytes.
    pub max_queue_bytes: u64,
    /// From the start until every sender holds a hint within 10 % of its share until the ideal half-time.
    pub settled: Option<Time>,
    /// Fences sent (each is a mistake here).
    pub fences: u64,
    /// Bytes placed beyond those sent.
    pub duplicate_bytes: i64,
}

/// How often the hints are looked at.
const SAMPLE: Time = Time::from_us(1);

/// Runs the incast: connections made and idle, then all start at once.
///
/// # Errors
/// If it does not complete in twenty times its ideal time.
pub fn run(config: &IncastConfig) -> Result<IncastResult, Failure> {
    let senders = config.senders;
    let mut network = StarConfig::new(senders);
    network.port.priority = true;
    let topology = star(&network, config.seed);
    let bottleneck = topology.bottleneck[0] as usize;
    let mut lab = Lab::new(
        topology,
        &Settings {
            seed: config.seed,
            connections: senders as usize,
            hints: config.hints,
            ..Settings::default()
        },
    );
    let connection = ConnectionConfig {
        paths: config.paths,
        announce: config.announce,
        ..ConnectionConfig::default()
    };
    let mut connections = Vec::new();
    for host in 0..senders {
        connections.push(lab.connect(host, senders, connection)?);
    }
    lab.idle(Time::from_us(500))?;

    let start = lab.sim.now();
    let ideal_us = f64::from(senders) * f64::from(config.bytes) * 8.0
        / super::payload_limit_bps(network.port.mbps)
        * 1e6;
    let half = start + Time::from_us((ideal_us / 2.0) as u64);
    let limit = start + Time::from_us((ideal_us * 20.0) as u64) + Time::from_ms(10);
    for host in 0..senders {
        lab.write(
            host,
            senders,
            connections[host as usize],
            0,
            config.bytes,
            1,
        )?;
    }
    let share = network.port.mbps as f64 / f64::from(senders);
    let mut completions = Vec::new();
    let mut unsettled = Some(start);
    let mut sampled = start;
    lab.sim.set_alarm(start + SAMPLE, 0);
    while completions.len() < senders as usize {
        match lab.next(limit)? {
            Happening::Completion(..) => completions.push(lab.sim.now() - start),
            Happening::Limit => return Err(Failure::TimeLimit(limit)),
            Happening::Alarm(_) => {
                let now = lab.sim.now();
                sampled = now;
                let off = |host: u32| {
                    let hint = f64::from(lab.hint_mbps(host, connections[host as usize]));
                    (hint - share).abs() > share * 0.1
                };
                if (0..senders).any(off) {
                    unsettled = Some(now);
                }
                if now < half {
                    lab.sim.set_alarm(now + SAMPLE, 0);
                }
            }
            Happening::Plane(..) => {}
        }
    }
    lab.check_conservation()?;
    let statistics = lab.sim.network.ports[bottleneck].statistics;
    let times: Vec<f64> = completions.iter().map(|time| time.us_f64()).collect();
    Ok(IncastResult {
        first: completions[0],
        last: completions[completions.len() - 1],
        jain: jain(&times),
        retransmissions: lab
            .sim
            .hosts
            .iter()
            .map(|host| host.sent.retransmissions)
            .sum(),
        dropped: statistics.drops(),
        marked: statistics.marked,
        max_queue_bytes: statistics.max_backlog_bytes,
        settled: unsettled
            .filter(|&at| at < sampled)
            .map(|at| at + SAMPLE - start),
        fences: lab
            .sim
            .hosts
            .iter()
            .map(|host| host.sent.packets[crate::inspect::FENCE])
            .sum(),
        duplicate_bytes: lab.placed(senders, 0) as i64
            - i64::from(senders) * i64::from(config.bytes),
    })
}

/// Jain's index of fairness: 1 if all are equal, 1/n if one has all.
#[must_use]
pub fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    if squares > 0.0 {
        sum * sum / (values.len() as f64 * squares)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_index() {
        assert!((jain(&[3.0, 3.0, 3.0]) - 1.0).abs() < 1e-12);
        assert!((jain(&[1.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
    }
}
