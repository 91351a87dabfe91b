//! Two connections with different numbers of paths into one port: does each get half?

use metaroce_core::config::ConnectionConfig;

use super::setup::{Failure, Happening, Lab, Settings};
use crate::time::Time;
use crate::topology::{StarConfig, star};

/// Goodput of the two connections, in Gbit/s.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FairnessResult {
    /// Of each.
    pub gbps: [f64; 2],
    /// The first over the second.
    pub ratio: f64,
    /// The longest queue at the port, in bytes.
    pub max_queue_bytes: u64,
}

/// Both write for `span` after a start-up of `span / 10` that does not count.
///
/// # Errors
/// If an operation fails.
pub fn run(paths: [u8; 2], span: Time, hints: bool, seed: u64) -> Result<FairnessResult, Failure> {
    let topology = star(&StarConfig::new(2), seed);
    let bottleneck = topology.bottleneck[0] as usize;
    let mut lab = Lab::new(
        topology,
        &Settings {
            seed,
            connections: 2,
            regions: 2,
            hints,
            ..Settings::default()
        },
    );
    let mut connections = Vec::new();
    for (host, paths) in (0..).zip(paths) {
        connections.push(lab.connect(
            host,
            2,
            ConnectionConfig {
                paths,
                ..ConnectionConfig::default()
            },
        )?);
    }
    lab.idle(Time::from_us(500))?;
    let start = lab.sim.now();
    for host in 0..2 {
        // More than they can send in this time.
        lab.write(
            host,
            2,
            connections[host as usize],
            host as usize,
            2_000_000_000,
            1,
        )?;
    }
    let placed = |lab: &Lab| [lab.placed(2, 0), lab.placed(2, 1)];
    pass(&mut lab, start + Time::from_ps(span.ps() / 10))?;
    let before = placed(&lab);
    let from = lab.sim.now();
    pass(&mut lab, from + span)?;
    let after = placed(&lab);
    lab.check_conservation()?;
    let gbps = [0, 1].map(|i| (after[i] - before[i]) as f64 * 8.0 / (span.us_f64() * 1e3));
    Ok(FairnessResult {
        gbps,
        ratio: gbps[0] / gbps[1],
        max_queue_bytes: lab.sim.network.ports[bottleneck]
            .statistics
            .max_backlog_bytes,
    })
}

fn pass(lab: &mut Lab, until: Time) -> Result<(), Failure> {
    while !matches!(lab.next(until)?, Happening::Limit) {}
    Ok(())
}
