//! What came of a run. Times are in nanoseconds after the start of the workload.

use std::collections::BTreeMap;

use serde::Serialize;

pub use super::statistics::{Distribution, jain};
use super::transport::REFERENCE_FRAME;
use crate::fabric::{Fabric, Tier};
use crate::faults::{DROP_REASONS, Drop};
use crate::node::Counters;
use crate::observer::reason_name;
use crate::packet::HostId;
use crate::port::{Node, PortId};
use crate::time::Time;
use crate::workload::program::{Action, Program};
use crate::workload::run::{End, Record};

/// All figures of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The run as a whole.
    pub summary: Summary,
    /// Every transfer.
    pub flows: Vec<Flow>,
    /// Every collective, step or request.
    pub groups: Vec<GroupFigures>,
    /// Every port, with what it has seen.
    pub ports: Vec<PortFigures>,
    /// The time series, if one was asked for.
    pub series: Vec<Bin>,
}

/// The run as a whole.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// The scenario.
    pub name: String,
    /// The transport.
    pub transport: &'static str,
    /// The seed that repeats it.
    pub seed: u64,
    /// How it ended: `complete`, `not-ready`, `time-limit`, `stuck` or `stopped`.
    pub end: &'static str,
    /// Hosts of the fabric.
    pub hosts: u32,
    /// The base round trip of the fabric.
    pub round_trip_ns: u64,
    /// When the workload began, after the hosts got ready.
    pub begin_ns: u64,
    /// How long the workload took.
    pub elapsed_ns: u64,
    /// Events of the simulation.
    pub events: u64,
    /// Packets that crossed a link, summed over links.
    pub packet_hops: u64,
    /// Of every hop: equal for equal runs.
    pub hash: String,
    /// No packet and no byte was lost count of.
    pub conserved: bool,
    /// Transfers.
    pub transfers: u64,
    /// Those delivered and acknowledged.
    pub completed: u64,
    /// Those given up.
    pub failed: u64,
    /// Bytes of all that were delivered.
    pub delivered_bytes: u64,
    /// Bytes given up (best effort).
    pub lost_bytes: u64,
    /// Delivered bytes over the time from the first start to the last delivery, Gbit/s.
    pub goodput_gbps: f64,
    /// From start to delivery, us.
    pub fct_us: Distribution,
    /// The same of the background's transfers that were delivered while the workload lasted.
    pub background_fct_us: Distribution,
    /// From start to acknowledgment at the sender, us.
    pub acknowledged_us: Distribution,
    /// Time to delivery over that in the empty fabric.
    pub slowdown: Distribution,
    /// Time of groups, us.
    pub group_us: Distribution,
    /// Bus bandwidth of groups that have one, Gbit/s.
    pub busbw_gbps: Distribution,
    /// Fairness of the transfers' rates.
    pub jain: f64,
    /// What the hosts counted, with background traffic.
    pub counters: Counters,
    /// What the network counted.
    pub network: NetworkFigures,
}

/// What the network counted, summed over ports.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct NetworkFigures {
    /// Packets dropped, by reason.
    pub drops: BTreeMap<String, u64>,
    /// Packets marked.
    pub marked: u64,
    /// Packets trimmed.
    pub trimmed: u64,
    /// Pauses of links.
    pub pauses: u64,
    /// Time that links had data and might not send it.
    pub blocked_ns: u64,
    /// The longest queue of a switch port.
    pub max_queue_bytes: u64,
    /// The most that the queues of a switch held together.
    pub max_buffer_bytes: u64,
    /// Packets for which there was no way.
    pub unroutable: u64,
    /// Packets that came though a pause was asked for in time.
    pub overrun: u64,
}

/// A transfer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Flow {
    /// The task of the program.
    pub task: u32,
    /// Its group.
    pub group: u32,
    /// The sender.
    pub from: HostId,
    /// The receiver.
    pub to: HostId,
    /// How many bytes.
    pub bytes: u64,
    /// Its start; none: it never started.
    pub started_ns: Option<u64>,
    /// All of it was there.
    pub delivered_ns: Option<u64>,
    /// The sender knew.
    pub acknowledged_ns: Option<u64>,
    /// From start to delivery.
    pub fct_ns: Option<u64>,
    /// The same in the empty fabric, with the framing of the reference figures.
    pub ideal_ns: u64,
    /// The ratio of both.
    pub slowdown: Option<f64>,
    /// Bytes given up (best effort).
    pub lost_bytes: u64,
    /// It was given up.
    pub failed: bool,
}

/// A group of tasks.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GroupFigures {
    /// Its number.
    pub group: u32,
    /// Its name.
    pub name: String,
    /// Its tasks.
    pub tasks: u64,
    /// Those that are over.
    pub done: u64,
    /// The first start.
    pub started_ns: Option<u64>,
    /// The last end, if all are over.
    pub ended_ns: Option<u64>,
    /// Bytes over time, Gbit/s.
    pub algbw_gbps: Option<f64>,
    /// The same times the factor of the collective.
    pub busbw_gbps: Option<f64>,
}

/// A port.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PortFigures {
    /// Its number.
    pub port: PortId,
    /// Its name: plane, owner and where it leads.
    pub name: String,
    /// Its tier.
    pub tier: &'static str,
    /// Its plane.
    pub plane: u8,
    /// It leads away from the hosts.
    pub up: bool,
    /// Rate at the end of the run, Mbit/s.
    pub mbps: u64,
    /// Packets put on the line.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Time the line was busy.
    pub busy_ns: u64,
    /// The longest queue.
    pub max_queue_bytes: u64,
    /// Drops by reason, in the order of [`DROP_NAMES`].
    pub drops: [u64; DROP_REASONS],
    /// Packets marked.
    pub marked: u64,
    /// Packets trimmed.
    pub trimmed: u64,
    /// Packets damaged.
    pub corrupted: u64,
    /// Pauses.
    pub pauses: u64,
    /// Time that it had data and might not send it.
    pub blocked_ns: u64,
}

/// The reasons of drops, in the order of [`crate::port::PortStatistics::dropped`].
pub const DROP_NAMES: [Drop; DROP_REASONS] = [
    Drop::QueueFull,
    Drop::LinkDown,
    Drop::Loss,
    Drop::Burst,
    Drop::Blackhole,
    Drop::NoRoute,
];

/// A bin of the time series.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bin {
    /// Its end.
    pub time_ns: u64,
    /// Payload placed during it, with background traffic, Gbit/s.
    pub goodput_gbps: f64,
    /// Data packets sent again during it.
    pub retransmissions: u64,
    /// Bytes queued at its end, by the ports that are watched.
    pub queues: Vec<u64>,
}

/// The name of an end.
pub(super) const fn end_name(end: End) -> &'static str {
    match end {
        End::Complete => "complete",
        End::NotReady => "not-ready",
        End::TimeLimit => "time-limit",
        End::Stuck => "stuck",
        End::Stopped => "stopped",
    }
}

/// The name of a port: `p0:h3>s1` is that of host 3 towards switch 1 on plane 0.
#[must_use]
pub fn port_name(port: &crate::port::Port) -> String {
    let node = |node| match node {
        Node::Host(host) => format!("h{host}"),
        Node::Switch(switch) => format!("s{switch}"),
    };
    format!("p{}:{}>{}", port.plane, node(port.owner), node(port.to))
}

fn after(time: Time, begin: Time) -> Option<u64> {
    (time != Time::NEVER).then(|| (time - begin).ns())
}

/// Bytes over a time, Gbit/s.
pub(super) fn gbps(bytes: u64, span: Time) -> f64 {
    if span == Time::ZERO {
        0.0
    } else {
        bytes as f64 * 8_000.0 / span.ps() as f64
    }
}

/// How long a transfer takes where nothing else is.
pub(super) struct Ideal {
    planes: u64,
}

impl Ideal {
    pub fn new(planes: u8) -> Self {
        Self {
            planes: planes.into(),
        }
    }

    /// All bytes at the rate of the slowest link of the way times the number of planes, then the last packet over the other links.
    pub fn time(&self, fabric: &Fabric, from: HostId, to: HostId, bytes: u64) -> Time {
        let (frame, payload) = REFERENCE_FRAME;
        let packets = bytes.div_ceil(payload).max(1);
        let wire = bytes + packets * (frame - payload);
        let last = (wire / packets).min(frame);
        let mut slowest = u64::MAX;
        let mut way = Time::ZERO;
        let mut port = fabric.network.host_port(from, 0);
        // A way has at most six links; more would be a loop.
        for _ in 0..16 {
            let at = &fabric.network.ports[port as usize];
            slowest = slowest.min(at.config.mbps);
            way += at.config.delay + Time::to_send(last, at.config.mbps);
            match at.to {
                Node::Host(_) => break,
                Node::Switch(switch) => match fabric.network.choices(switch, to).first() {
                    Some(&next) => port = next,
                    None => break,
                },
            }
        }
        let rest = wire.saturating_sub(last);
        way + Time::from_ps(Time::to_send(rest, slowest).ps() / self.planes.max(1))
    }
}

/// The transfers of a program's first tasks.
pub(super) fn flows(
    program: &Program,
    records: &[Record],
    begin: Time,
    ideal: &[Time],
) -> Vec<Flow> {
    let tasks = program.tasks().iter().zip(records).enumerate();
    tasks
        .filter_map(|(task, (what, record))| {
            let Action::Transfer {
                from, to, bytes, ..
            } = what.action
            else {
                return None;
            };
            let delivered = record.done != Time::NEVER;
            let fct = delivered.then(|| record.done - record.started);
            let ideal = ideal[task];
            Some(Flow {
                task: task as u32,
                group: what.group,
                from,
                to,
                bytes,
                started_ns: after(record.started, begin),
                delivered_ns: after(record.done, begin),
                acknowledged_ns: after(record.acknowledged, begin),
                fct_ns: fct.map(Time::ns),
                ideal_ns: ideal.ns(),
                slowdown: fct.map(|fct| fct.ps() as f64 / ideal.ps().max(1) as f64),
                lost_bytes: record.lost_bytes,
                failed: record.failed,
            })
        })
        .collect()
}

/// The groups of a program, of which the first tasks count.
pub(super) fn groups(program: &Program, records: &[Record], begin: Time) -> Vec<GroupFigures> {
    struct Sums {
        tasks: u64,
        done: u64,
        started: Time,
        ended: Time,
    }
    let none = || Sums {
        tasks: 0,
        done: 0,
        started: Time::NEVER,
        ended: Time::ZERO,
    };
    let mut sums: Vec<Sums> = program.groups().iter().map(|_| none()).collect();
    for (task, record) in program.tasks().iter().zip(records) {
        let sum = &mut sums[task.group as usize];
        sum.tasks += 1;
        sum.started = sum.started.min(record.started);
        if record.done != Time::NEVER {
            sum.done += 1;
            sum.ended = sum.ended.max(record.done);
        }
    }
    let groups = program.groups().iter().zip(sums).enumerate();
    groups
        .filter(|(_, (_, sum))| sum.tasks > 0)
        .map(|(index, (group, sum))| {
            let over = sum.done == sum.tasks;
            let span = sum.ended - sum.started;
            let algbw = (over && group.bytes > 0).then(|| gbps(group.bytes, span));
            let (numerator, denominator) = group.bus_factor;
            GroupFigures {
                group: index as u32,
                name: group.name.clone(),
                tasks: sum.tasks,
                done: sum.done,
                started_ns: after(sum.started, begin),
                ended_ns: over.then(|| (sum.ended - begin).ns()),
                algbw_gbps: algbw,
                busbw_gbps: algbw.map(|bw| bw * numerator as f64 / denominator.max(1) as f64),
            }
        })
        .collect()
}

/// All ports.
pub(super) fn ports(
    links: &[crate::fabric::Link],
    network: &crate::network::Network,
) -> Vec<PortFigures> {
    let mut ports: Vec<PortFigures> = links
        .iter()
        .flat_map(|link| [(link.up, link.tier, true), (link.down, link.tier, false)])
        .map(|(id, tier, up): (PortId, Tier, bool)| {
            let port = &network.ports[id as usize];
            let seen = &port.statistics;
            let now = network.now();
            PortFigures {
                port: id,
                name: port_name(port),
                tier: tier.name(),
                plane: port.plane,
                up,
                mbps: port.config.mbps,
                sent: seen.sent,
                sent_bytes: seen.sent_bytes,
                busy_ns: seen.busy.ns(),
                max_queue_bytes: seen.max_backlog_bytes,
                drops: seen.dropped,
                marked: seen.marked,
                trimmed: seen.trimmed,
                corrupted: seen.corrupted,
                pauses: seen.pauses,
                blocked_ns: port.blocked(now).ns(),
            }
        })
        .collect();
    ports.sort_by_key(|port| port.port);
    ports
}

/// The sums over ports.
pub(super) fn network(ports: &[PortFigures], network: &crate::network::Network) -> NetworkFigures {
    let mut sum = NetworkFigures {
        unroutable: network.unroutable(),
        overrun: network.overrun(),
        max_buffer_bytes: (0..network.switches() as u32)
            .map(|switch| network.max_used_bytes(switch))
            .max()
            .unwrap_or(0),
        ..NetworkFigures::default()
    };
    for reason in DROP_NAMES {
        sum.drops.insert(reason_name(reason), 0);
    }
    for port in ports {
        for (reason, drops) in DROP_NAMES.into_iter().zip(port.drops) {
            *sum.drops.entry(reason_name(reason)).or_default() += drops;
        }
        sum.marked += port.marked;
        sum.trimmed += port.trimmed;
        sum.pauses += port.pauses;
        sum.blocked_ns += port.blocked_ns;
        if matches!(network.ports[port.port as usize].owner, Node::Switch(_)) {
            sum.max_queue_bytes = sum.max_queue_bytes.max(port.max_queue_bytes);
        }
    }
    sum
}
