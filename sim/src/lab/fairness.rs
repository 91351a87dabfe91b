//! Two connections with different numbers of paths through one port: does each get half?

use metaroce_core::config::ConnectionConfig;

use super::setup::{Failure, Happening, Lab, Settings};
use crate::fabric::{Fabric, FabricConfig, Shape, Tier};
use crate::time::Time;
use crate::topology::{StarConfig, Topology, star};

/// Where the connections meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meeting {
    /// At their receiver, which gives each its share.
    Receiver,
    /// On the only link between two switches, on their way to receivers of their own: marks alone divide it.
    Spine,
}

impl Meeting {
    /// The network, and the receiver of each connection.
    fn network(self, seed: u64) -> Result<(Topology, [u32; 2]), Failure> {
        match self {
            Self::Receiver => Ok((star(&StarConfig::new(2), seed), [2, 2])),
            Self::Spine => {
                let config = FabricConfig {
                    shape: Shape::leaf_spine(2, 2, 1),
                    ..FabricConfig::default()
                };
                let fabric = Fabric::new(&config, seed).map_err(Failure::Fabric)?;
                let bottleneck = fabric
                    .tier(Tier::Leaf)
                    .map(|link| link.up)
                    .take(1)
                    .collect();
                let topology = Topology {
                    bottleneck,
                    network: fabric.network,
                };
                Ok((topology, [2, 3]))
            }
        }
    }
}

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
pub fn run(
    meeting: Meeting,
    paths: [u8; 2],
    span: Time,
    hints: bool,
    seed: u64,
) -> Result<FairnessResult, Failure> {
    let (topology, receivers) = meeting.network(seed)?;
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
    for ((host, paths), receiver) in (0..).zip(paths).zip(receivers) {
        connections.push(lab.connect(
            host,
            receiver,
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
            receivers[host as usize],
            connections[host as usize],
            host as usize,
            2_000_000_000,
            1,
        )?;
    }
    let placed = |lab: &Lab| [lab.placed(receivers[0], 0), lab.placed(receivers[1], 1)];
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
