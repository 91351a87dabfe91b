//! Small writes, one at a time, on a network that loses packets: how long does each take?

use metaroce_core::config::ConnectionConfig;

use super::setup::{Failure, Lab, Settings};
use crate::faults::FaultConfig;
use crate::random::{Probability, Purpose, Stream};
use crate::time::Time;
use crate::topology::{BASE_RTT, PairConfig, pair};

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct LatencyConfig {
    /// Loss of every kind of packet, each way.
    pub loss: f64,
    /// Paths.
    pub paths: u8,
    /// Bytes of a write.
    pub bytes: u32,
    /// Writes.
    pub writes: u32,
    /// Longest pause between a completion and the next write (uniform from 0).
    pub pause: Time,
    /// Seed.
    pub seed: u64,
}

/// Times from posting to completion, in base round trips.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LatencyResult {
    /// Median.
    pub p50: f64,
    /// One in a hundred is slower.
    pub p99: f64,
    /// One in a thousand is slower.
    pub p999: f64,
    /// The slowest.
    pub max: f64,
    /// Packets of any kind that were lost, both ways.
    pub lost: u64,
    /// Probes sent.
    pub probes: u64,
}

/// Runs the writes.
///
/// # Errors
/// If one does not complete in 100 ms.
pub fn run(config: &LatencyConfig) -> Result<LatencyResult, Failure> {
    let mut topology = pair(&PairConfig::default(), config.seed);
    for port in 0..topology.network.ports.len() as u32 {
        topology
            .network
            .set_faults(port, FaultConfig::loss(Probability::new(config.loss)));
    }
    let mut lab = Lab::new(
        topology,
        &Settings {
            seed: config.seed,
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
    let mut random = Stream::new(config.seed, Purpose::Scenario, 0);
    let mut times = Vec::with_capacity(config.writes as usize);
    for id in 0..config.writes {
        lab.idle(Time::from_ps(random.below(config.pause.ps() + 1)))?;
        let start = lab.sim.now();
        lab.write(0, 1, connection, 0, config.bytes, u64::from(id))?;
        lab.completion(start + Time::from_ms(100))?;
        times.push(lab.sim.now() - start);
    }
    lab.check_conservation()?;
    times.sort();
    let at = |share: f64| {
        let index = ((times.len() as f64 * share).ceil() as usize).clamp(1, times.len()) - 1;
        times[index].ps() as f64 / BASE_RTT.ps() as f64
    };
    Ok(LatencyResult {
        p50: at(0.5),
        p99: at(0.99),
        p999: at(0.999),
        max: at(1.0),
        lost: lab
            .sim
            .network
            .ports
            .iter()
            .map(|port| port.statistics.drops())
            .sum(),
        probes: lab.sim.hosts[0].sent.packets[crate::inspect::PROBE],
    })
}
