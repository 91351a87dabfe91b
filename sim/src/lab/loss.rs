//! One long flow on a network that loses packets of every kind: what is left of the line's rate?
//!
//! The bound is the payload rate of the line times (1 - p): every lost packet has to be sent again.

use metaroce_core::config::ConnectionConfig;

use super::payload_limit_bps;
use super::setup::{Failure, Lab, Settings};
use crate::faults::{Drop, FaultConfig, Reordering};
use crate::inspect;
use crate::random::Probability;
use crate::time::Time;
use crate::topology::{DATA_WIRE_BYTES, PairConfig, pair};

/// The settings of a run.
#[derive(Clone, Copy, Debug)]
pub struct LossConfig {
    /// Loss of every kind of packet, each way.
    pub loss: f64,
    /// Paths.
    pub paths: u8,
    /// Bytes of the one write.
    pub bytes: u32,
    /// Packets that take longer, and so are overtaken.
    pub reordering: Option<Reordering>,
    /// Packets by which the sender lets a path reorder before a gap is a loss.
    pub tolerance: u8,
    /// Seed.
    pub seed: u64,
}

/// What came of it. Shares are of the completion time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LossResult {
    /// From posting to completion.
    pub completion: Time,
    /// Goodput over the bound.
    pub efficiency: f64,
    /// Line time of data that was sent for the first time.
    pub new_data: f64,
    /// Line time of data that was sent again.
    pub again: f64,
    /// Line time of all else the sender sent (probes, fences, announcements).
    pub control: f64,
    /// Line idle before the last new packet.
    pub idle: f64,
    /// Time after the last new packet.
    pub tail: Time,
    /// Packets of data sent again.
    pub retransmissions: u64,
    /// Packets of all kinds lost on the way there.
    pub lost: u64,
    /// Data sent again though it had arrived: copies that reached the receiver.
    pub spurious: i64,
    /// Data sent again though it had arrived, as the sender counts it.
    pub spurious_counted: u64,
    /// Data packets that the receiver dropped because it had them.
    pub duplicates_dropped: u64,
    /// Bytes placed beyond those of the message.
    pub duplicate_bytes: i64,
    /// Packets of acknowledgments.
    pub acknowledgments: u64,
    /// Probes.
    pub probes: u64,
    /// Fences (on this network no path fails: each is a mistake).
    pub fences: u64,
}

/// Runs the flow.
///
/// # Errors
/// If it does not complete in fifty times its ideal time.
pub fn run(config: &LossConfig) -> Result<LossResult, Failure> {
    let network = PairConfig::default();
    let mut topology = pair(&network, config.seed);
    for port in 0..topology.network.ports.len() as u32 {
        topology.network.set_faults(
            port,
            FaultConfig {
                reordering: config.reordering,
                ..FaultConfig::loss(Probability::new(config.loss))
            },
        );
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
            reorder_tolerance: config.tolerance,
            ..ConnectionConfig::default()
        },
    )?;
    lab.idle(Time::from_us(200))?;
    let start = lab.sim.now();
    let before = lab.sim.hosts[0].sent;
    let port = lab.sim.network.host_port(0, 0) as usize;
    let lost_before = lab.sim.network.ports[port].statistics.dropped[Drop::Loss as usize];
    let ideal_s =
        f64::from(config.bytes) * 8.0 / payload_limit_bps(network.mbps) / (1.0 - config.loss);
    let limit = start + Time::from_ps((ideal_s * 50e12) as u64) + Time::from_ms(10);
    lab.write(0, 1, connection, 0, config.bytes, 1)?;
    lab.completion(limit)?;
    let completion = lab.sim.now() - start;
    lab.check_conservation()?;

    let sent = lab.sim.hosts[0].sent;
    let back = lab.sim.hosts[1].sent;
    let line = |bytes: u64| Time::to_send(bytes, network.mbps);
    let share = |time: Time| time.ps() as f64 / completion.ps() as f64;
    let data = sent.wire_bytes[inspect::DATA] - before.wire_bytes[inspect::DATA];
    let again = sent.retransmitted_bytes - before.retransmitted_bytes;
    let all: u64 = sent.wire_bytes.iter().sum::<u64>() - before.wire_bytes.iter().sum::<u64>();
    let last_new = sent.last_new + line(DATA_WIRE_BYTES) - start;
    let busy_at_last_new = line(sent.bytes_at_last_new - before.wire_bytes.iter().sum::<u64>());
    let packets = sent.packets[inspect::DATA] - before.packets[inspect::DATA];
    // Data that reached the receiver, less those it needed: copies of what it had.
    let needed = u64::from(config.bytes).div_ceil(super::PAYLOAD_BYTES);
    // What is still on its way tells of the last copies.
    lab.idle(Time::from_us(200))?;
    let statistics = |host: usize, connection| {
        lab.sim.hosts[host]
            .endpoint
            .connection_statistics(connection)
            .unwrap_or_default()
    };
    let spurious_counted = statistics(0, connection).spurious_retransmissions;
    let duplicates_dropped = lab.sim.hosts[1]
        .endpoint
        .endpoint_statistics()
        .dropped(metaroce_core::DropReason::Duplicate);
    let lost_data = lab.sim.network.ports[port].statistics.dropped_data;
    Ok(LossResult {
        completion,
        efficiency: ideal_s * 1e12 / completion.ps() as f64,
        new_data: share(line(data - again)),
        again: share(line(again)),
        control: share(line(all - data)),
        idle: share(last_new - busy_at_last_new),
        tail: completion - last_new,
        retransmissions: sent.retransmissions - before.retransmissions,
        lost: lab.sim.network.ports[port].statistics.dropped[Drop::Loss as usize] - lost_before,
        spurious_counted,
        duplicates_dropped,
        spurious: packets as i64 - lost_data as i64 - needed as i64,
        duplicate_bytes: lab.placed(1, 0) as i64 - i64::from(config.bytes),
        acknowledgments: back.packets[inspect::ACK],
        probes: sent.packets[inspect::PROBE] - before.packets[inspect::PROBE],
        fences: sent.packets[inspect::FENCE] - before.packets[inspect::FENCE],
    })
}
