//! RoCEv2, IRN and InfiniBand against what is published of them.

use metaroce_sim::faults::{FaultConfig, Reordering};
use metaroce_sim::node::{Counters, Message, Node, Progress};
use metaroce_sim::packet::HostId;
use metaroce_sim::port::PortConfig;
use metaroce_sim::random::Probability;
use metaroce_sim::simulation::{Simulation, Station, Stop};
use metaroce_sim::time::Time;
use metaroce_sim::topology::{self, PairConfig, StarConfig};
use metaroce_sim::transport::infiniband::{InfinibandConfig, InfinibandHost, Routing};
use metaroce_sim::transport::roce::{
    Congestion, DcqcnConfig, IrnConfig, Recovery, RoceConfig, RoceHost,
};

/// A full packet in the middle of a message: 4096 bytes of payload, 82 of the rest.
const WIRE_BYTES: u64 = 4178;

/// A message to be posted at the start.
fn message(id: u32, peer: HostId, bytes: u64, flow: u32) -> Message {
    Message {
        id,
        peer,
        bytes,
        flow,
    }
}

/// What happened to messages, in order, with the time and the host.
#[derive(Default)]
struct Log {
    steps: Vec<(Time, HostId, Progress)>,
}

impl Log {
    /// When a message was delivered.
    fn delivered(&self, id: u32) -> Option<Time> {
        self.steps.iter().find_map(|&(at, _, step)| match step {
            Progress::Delivered { id: other, .. } if other == id => Some(at),
            _ => None,
        })
    }
}

/// Runs until nothing happens or the limit, and notes all progress.
fn run<N: Node>(sim: &mut Simulation<N>, limit: Time, log: &mut Log) -> Stop {
    loop {
        match sim.run(limit) {
            Stop::News(host) => {
                let now = sim.now();
                while let Some(step) = sim.host(host).poll_progress(now) {
                    log.steps.push((now, host, step));
                }
            }
            stop => return stop,
        }
    }
}

fn post<N: Node>(sim: &mut Simulation<N>, host: HostId, message: &Message) {
    let now = sim.now();
    sim.host(host).post(now, message);
    sim.kick(host);
}

/// Two RoCE hosts, faults on the way from 0 to 1.
fn pair(config: &RoceConfig, faults: FaultConfig, seed: u64) -> Simulation<RoceHost> {
    let mut topology = topology::pair(&PairConfig::default(), seed);
    let port = topology.network.host_port(0, 0);
    topology.network.set_faults(port, faults);
    let hosts = (0..2)
        .map(|id| RoceHost::new(id, config.clone(), seed))
        .collect();
    Simulation::new(topology.network, hosts)
}

fn loss(p: f64) -> FaultConfig {
    FaultConfig::loss(Probability::new(p))
}

/// The goodput of one long message, as a part of what the line could carry.
fn goodput(config: &RoceConfig, p: f64, packets: u64) -> (f64, Counters) {
    let mut sim = pair(config, loss(p), 7);
    post(&mut sim, 0, &message(0, 1, packets * 4096, 0));
    let mut log = Log::default();
    run(&mut sim, Time::from_ms(100_000), &mut log);
    let took = log.delivered(0).expect("delivered");
    let ideal = Time::to_send(packets * WIRE_BYTES, 100_000);
    (ideal.ps() as f64 / took.ps() as f64, sim.host(0).counters())
}

/// RoCE hosts around a switch, the last of which receives. The queue is large enough to lose nothing without PFC.
fn star(config: &RoceConfig, senders: u32, seed: u64) -> Simulation<RoceHost> {
    let mut star = StarConfig::new(senders);
    star.port = PortConfig {
        queue_bytes: 20_000_000,
        ..PortConfig::REFERENCE
    };
    let topology = topology::star(&star, seed);
    let hosts = (0..=senders)
        .map(|id| RoceHost::new(id, config.clone(), seed))
        .collect();
    Simulation::new(topology.network, hosts)
}

/// What each of the hosts puts on its line until a time, Mbit/s.
fn rates(sim: &mut Simulation<RoceHost>, senders: u32, until: Time) -> Vec<u64> {
    let began = sim.now();
    let sent = |sim: &Simulation<RoceHost>| -> Vec<u64> {
        let count = |host: &RoceHost| host.counters().data_packets;
        sim.hosts[..senders as usize].iter().map(count).collect()
    };
    let before = sent(sim);
    run(sim, until, &mut Log::default());
    let us = until.since(began).ps() / 1_000_000;
    let after = sent(sim);
    core::iter::zip(after, before)
        .map(|(after, before)| (after - before) * WIRE_BYTES * 8 / us)
        .collect()
}

fn with_dcqcn(dcqcn: DcqcnConfig) -> RoceConfig {
    RoceConfig {
        congestion: Congestion::Dcqcn(dcqcn),
        ..RoceConfig::default()
    }
}

const ENDLESS: u64 = 1 << 40;

/// Every flow has its fair share of the bottleneck, give or take `tolerance` percent, and together they fill 90 % of it.
fn assert_fair(rates: &[u64], tolerance: u64) {
    let fair = 100_000 / rates.len() as u64;
    let sum: u64 = rates.iter().sum();
    assert!((90_000..=100_100).contains(&sum), "{rates:?}");
    for &rate in rates {
        assert!(rate.abs_diff(fair) * 100 <= fair * tolerance, "{rates:?}");
    }
}

/// What the paper shows for 2 to 20 flows into one port: they share it evenly and fill it.
#[test]
fn dcqcn_converges_to_the_fair_share() {
    for (dcqcn, senders) in [
        (DcqcnConfig::PAPER, 2),
        (DcqcnConfig::PAPER, 8),
        (DcqcnConfig::CONNECTX_100G, 2),
        (DcqcnConfig::CONNECTX_100G, 8),
    ] {
        let mut sim = star(&with_dcqcn(dcqcn), senders, 3);
        for host in 0..senders {
            post(&mut sim, host, &message(host, senders, ENDLESS, 0));
        }
        rates(&mut sim, senders, Time::from_ms(40));
        assert_fair(&rates(&mut sim, senders, Time::from_ms(70)), 15);
    }
}

/// A flow that comes late, to one that has the whole line, gets its share too.
#[test]
fn dcqcn_makes_room_for_newcomers() {
    for dcqcn in [DcqcnConfig::PAPER, DcqcnConfig::default()] {
        let mut sim = star(&with_dcqcn(dcqcn), 2, 3);
        post(&mut sim, 0, &message(0, 2, ENDLESS, 0));
        let alone = rates(&mut sim, 2, Time::from_ms(5));
        assert!(alone[0] > 99_000);
        post(&mut sim, 1, &message(1, 2, ENDLESS, 0));
        rates(&mut sim, 2, Time::from_ms(60));
        assert_fair(&rates(&mut sim, 2, Time::from_ms(100)), 20);
        let now = sim.now();
        let paced: Vec<u64> = (0..2)
            .filter_map(|host| sim.host(host).rate_kbps(now, 2))
            .map(|kbps| kbps / 1_000)
            .collect();
        assert!(
            paced.iter().all(|mbps| (30_000..70_000).contains(mbps)),
            "{paced:?}"
        );
        assert_eq!(sim.host(2).rate_kbps(now, 0), None);
    }
}

/// With N packets from the sending of a lost packet to its retransmission and M from that to a timeout, a packet costs one slot, N more
/// with probability p, and M more for each further loss of the same packet, as the receiver sends one NAK per gap:
/// 1 / (1 + pN + p^2 M / (1 - p)).
fn go_back_n_efficiency(p: f64, timeout: Time) -> f64 {
    let slot = Time::to_send(WIRE_BYTES, 100_000).ps() as f64;
    // The lost packet and the one behind it, which makes the NAK; the wires; half a packet until the line is free.
    let wires = topology::BASE_RTT.ps()
        - Time::to_send(
            topology::DATA_WIRE_BYTES + topology::ACK_WIRE_BYTES,
            100_000,
        )
        .ps();
    let nak = Time::to_send(86, 100_000).ps();
    let n = 2.5 + (wires + nak) as f64 / slot;
    let m = timeout.ps() as f64 / slot;
    1.0 / (1.0 + p * n + p * p * m / (1.0 - p))
}

#[test]
fn go_back_n_is_as_efficient_as_theory_says() {
    let config = RoceConfig {
        timeout: Time::from_us(100),
        retries: None,
        ..RoceConfig::default()
    };
    for (p, packets) in [
        (0.000_1, 200_000),
        (0.001, 100_000),
        (0.01, 100_000),
        (0.05, 100_000),
    ] {
        let expected = go_back_n_efficiency(p, config.timeout);
        let (measured, counters) = goodput(&config, p, packets);
        println!("loss {p}: {measured:.4}, theory {expected:.4}, {counters:?}");
        assert!(
            (measured / expected - 1.0).abs() < 0.03,
            "{p}: {measured}, {expected}"
        );
    }
}

/// With the usual timeout of 67 ms go-back-N ends "nearly at zero when the loss rate exceeds 1 %" ("Error Recovery of RDMA Packets in Data
/// Center Networks"); IRN keeps most of the line, though its window stands still for a round trip per loss.
#[test]
fn irn_keeps_what_go_back_n_loses() {
    let usual = RoceConfig {
        retries: None,
        ..RoceConfig::default()
    };
    let (go_back_n, _) = goodput(&usual, 0.01, 200_000);
    let expected = go_back_n_efficiency(0.01, usual.timeout);
    assert!(
        (0.6..1.6).contains(&(go_back_n / expected)),
        "{go_back_n}, {expected}"
    );
    assert!(go_back_n < 0.08);
    let (irn, counters) = goodput(&RoceConfig::irn(), 0.01, 200_000);
    println!("go-back-N {go_back_n:.4} (theory {expected:.4}), IRN {irn:.4}");
    assert!(irn > 0.65 && irn > 8.0 * go_back_n, "{irn}, {go_back_n}");
    // Only what was lost is sent again, or (after a timeout) little more.
    let again = counters.retransmissions as f64 / 200_000.0;
    assert!((0.0095..0.0115).contains(&again), "{again}");
    assert_eq!(counters.out_of_order_drops, 0);
}

#[test]
fn a_flow_of_2_mb_reaches_line_rate() {
    let bytes = 2_000_000_u64;
    let packets = bytes.div_ceil(4096);
    let lines = Time::to_send(
        topology::DATA_WIRE_BYTES + topology::ACK_WIRE_BYTES,
        100_000,
    );
    let wires = Time::from_ps((topology::BASE_RTT.ps() - 2 * lines.ps()) / 2);
    // The first packet over the host's line, then all over that of the switch, which is never idle.
    let exactly = |around: u64, reth_first: u64, reth: u64| {
        let first = 4096 + around + reth_first + reth;
        let all = bytes + packets * (around + reth) + reth_first;
        Time::to_send(first + all, 100_000) + wires
    };
    let roce = [
        (RoceConfig::default(), exactly(82, 16, 0)),
        (RoceConfig::without_congestion_control(), exactly(82, 16, 0)),
        (RoceConfig::irn(), exactly(82, 0, 16)),
    ];
    for (config, expected) in roce {
        let mut sim = star(&config, 1, 1);
        post(&mut sim, 0, &message(0, 1, bytes, 0));
        let mut log = Log::default();
        run(&mut sim, Time::from_ms(10), &mut log);
        // IRN's window is the bandwidth-delay product exactly, and its packets wait for nothing.
        assert_eq!(log.delivered(0), Some(expected));
        let now = sim.now();
        assert_eq!(sim.host(0).deadline(now), None);
    }
    for (routing, expected) in [
        (Routing::Static, exactly(26, 16, 0)),
        (Routing::Adaptive, exactly(26, 0, 16)),
    ] {
        let config = InfinibandConfig {
            routing,
            ..InfinibandConfig::default()
        };
        let topology = topology::star(&StarConfig::new(1), 1);
        let hosts = (0..2)
            .map(|id| InfinibandHost::new(id, config.clone(), 1))
            .collect();
        let mut sim = Simulation::new(topology.network, hosts);
        post(&mut sim, 0, &message(0, 1, bytes, 0));
        let mut log = Log::default();
        run(&mut sim, Time::from_ms(10), &mut log);
        assert_eq!(log.delivered(0), Some(expected));
    }
}

/// One packet per queue pair in turn: messages of 1, 2 and 4 MB on three queue pairs, to two peers, end when 3, 5 and 7 MB have passed.
#[test]
fn queue_pairs_take_turns() {
    let config = RoceConfig {
        queue_pairs: 2,
        ..RoceConfig::without_congestion_control()
    };
    let mut sim = star(&config, 2, 1);
    let mb = 4096 * 256;
    let messages = [
        message(1, 2, mb, 0),
        message(2, 2, 2 * mb, 3),
        message(4, 1, 4 * mb, 0),
    ];
    for message in &messages {
        post(&mut sim, 0, message);
    }
    let mut log = Log::default();
    run(&mut sim, Time::from_ms(10), &mut log);
    for (id, passed) in [(1, 3), (2, 5), (4, 7)] {
        let expected = Time::to_send(passed * 256 * WIRE_BYTES, 100_000) + Time::from_us(7);
        let at = log.delivered(id).expect("delivered");
        let off = at.since(expected).ps() + expected.since(at).ps();
        assert!(off < 1_500_000, "message {id}: {at}, {expected}");
    }
}

/// Loss, duplication and reordering both ways: every byte is placed once, every message is delivered once, in the order of its queue pair.
#[test]
fn every_byte_is_placed_exactly_once() {
    let faults = FaultConfig {
        duplication: Probability::new(0.02),
        corruption: Probability::new(0.01),
        reordering: Some(Reordering {
            probability: Probability::new(0.05),
            max_delay: Time::from_us(20),
        }),
        ..loss(0.02)
    };
    let short = RoceConfig {
        timeout: Time::from_us(200),
        retries: None,
        ..RoceConfig::default()
    };
    let configs = [
        short.clone(),
        RoceConfig {
            window_packets: Some(16),
            ack_every: 8,
            ..short.clone()
        },
        RoceConfig::irn(),
        RoceConfig {
            recovery: Recovery::AnyOrder,
            ..short.clone()
        },
        RoceConfig {
            recovery: Recovery::Irn(IrnConfig::default()),
            queue_pairs: 4,
            ..short.clone()
        },
    ];
    for (config, seed) in configs.iter().zip(1..) {
        let mut sim = pair(config, faults.clone(), seed);
        let back = sim.network.host_port(1, 0);
        sim.network.set_faults(back, faults.clone());
        let count = 40;
        let mut bytes = 0;
        for id in 0..count {
            let size = 1 + u64::from(id) * 6_007;
            bytes += size;
            post(&mut sim, 0, &message(id, 1, size, id % 5));
            post(&mut sim, 1, &message(count + id, 0, size, id % 5));
        }
        let mut log = Log::default();
        assert_eq!(run(&mut sim, Time::from_ms(1_000), &mut log), Stop::Idle);
        for host in 0..2 {
            let counters = sim.host(host).counters();
            assert_eq!(counters.placed_bytes, bytes, "{config:?}");
            assert!(counters.duplicates > 0 && counters.retransmissions > 0);
        }
        for lane in 0..config.queue_pairs {
            let delivered: Vec<u32> = log
                .steps
                .iter()
                .filter_map(|&(_, host, step)| match step {
                    Progress::Delivered { id, lost_bytes: 0 } if host == 1 => Some(id),
                    _ => None,
                })
                .filter(|id| id % 5 % config.queue_pairs == lane)
                .collect();
            let posted = (0..count).filter(|id| id % 5 % config.queue_pairs == lane);
            assert_eq!(delivered, posted.collect::<Vec<_>>());
        }
        let mut acknowledged: Vec<u32> = log
            .steps
            .iter()
            .filter_map(|&(_, _, step)| match step {
                Progress::Acknowledged { id } => Some(id),
                _ => None,
            })
            .collect();
        acknowledged.sort_unstable();
        assert_eq!(acknowledged, (0..2 * count).collect::<Vec<_>>());
        assert_eq!(log.steps.len(), 4 * count as usize);
    }
}

/// Adaptive routing reorders; placement in any order does not mind, go-back-N does.
#[test]
fn reordering_costs_nothing_with_placement_in_any_order() {
    let faults = FaultConfig {
        reordering: Some(Reordering {
            probability: Probability::new(0.2),
            max_delay: Time::from_us(10),
        }),
        ..FaultConfig::default()
    };
    let took = |recovery| {
        let config = RoceConfig {
            recovery,
            ..RoceConfig::without_congestion_control()
        };
        let mut sim = pair(&config, faults.clone(), 5);
        post(&mut sim, 0, &message(0, 1, 4096 * 1_000, 0));
        let mut log = Log::default();
        run(&mut sim, Time::from_ms(10_000), &mut log);
        let at = log.delivered(0).expect("delivered");
        (at, sim.host(0).counters().retransmissions)
    };
    let (in_order, again) = took(Recovery::GoBackN);
    let (any_order, none) = took(Recovery::AnyOrder);
    assert_eq!(none, 0);
    assert!(any_order < Time::to_send(1_000 * 4_194, 100_000) + Time::from_us(20));
    assert!(
        again > 1_000 && in_order.ps() > 2 * any_order.ps(),
        "{in_order}"
    );
}

/// A link that is dead ends a queue pair after 1 + 7 timeouts, and says so.
#[test]
fn a_dead_link_fails_what_was_posted() {
    let config = RoceConfig::default();
    let mut sim = pair(&config, FaultConfig::loss(Probability::ONE), 1);
    post(&mut sim, 0, &message(0, 1, 10_000, 0));
    post(&mut sim, 0, &message(1, 1, 10_000, 0));
    let mut log = Log::default();
    assert_eq!(run(&mut sim, Time::from_ms(1_000), &mut log), Stop::Idle);
    post(&mut sim, 0, &message(2, 1, 10_000, 0));
    run(&mut sim, Time::from_ms(2_000), &mut log);
    let failed = |id| Progress::Failed { id };
    let steps: Vec<_> = log.steps.iter().map(|&(_, _, step)| step).collect();
    assert_eq!(steps, [failed(0), failed(1), failed(2)]);
    let ms = log.steps[0].0.ns() / 1_000_000;
    assert_eq!(ms, 536, "8 x 67.1 ms");
}

#[test]
fn settings_of_nothing_still_move_bytes() {
    let config = RoceConfig {
        payload_bytes: 0,
        queue_pairs: 0,
        ack_every: 0,
        window_packets: Some(0),
        timeout: Time::ZERO,
        congestion: Congestion::Dcqcn(DcqcnConfig {
            increase_interval: Time::ZERO,
            minimum_mbps: 0,
            ..DcqcnConfig::default()
        }),
        retries: None,
        ..RoceConfig::default()
    };
    let mut sim = pair(&config, FaultConfig::default(), 1);
    post(&mut sim, 0, &message(0, 1, 3, 7));
    let mut log = Log::default();
    run(&mut sim, Time::from_ms(1), &mut log);
    assert!(log.delivered(0).is_some());
    assert_eq!(sim.host(1).counters().placed_bytes, 3);
}

#[test]
fn a_run_repeats() {
    let trace = |seed| {
        let mut sim = star(&RoceConfig::default(), 4, seed);
        for host in 0..4 {
            post(&mut sim, host, &message(host, 4, 3_000_000, 0));
        }
        run(&mut sim, Time::from_ms(10), &mut Log::default());
        sim.network.trace_hash()
    };
    assert_eq!(trace(1), trace(1));
    assert_ne!(trace(1), trace(2));
}
