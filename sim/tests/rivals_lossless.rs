//! RoCEv2 and InfiniBand on fabrics with flow control, static and adaptive routing.

use std::ops::ControlFlow;

use metaroce_sim::fabric::{Fabric, FabricConfig, Shape};
use metaroce_sim::node::{Counters, Node};
use metaroce_sim::packet::HostId;
use metaroce_sim::port::FlowControl;
use metaroce_sim::random::{Purpose, Stream};
use metaroce_sim::simulation::Simulation;
use metaroce_sim::switch::Spray;
use metaroce_sim::time::Time;
use metaroce_sim::topology;
use metaroce_sim::transport::infiniband::{InfinibandConfig, InfinibandHost, Routing};
use metaroce_sim::transport::roce::{Recovery, RoceConfig, RoceHost};
use metaroce_sim::workload::program::{Action, Program};
use metaroce_sim::workload::run::{End, Run, RunConfig};

const PAUSE: FlowControl = FlowControl::Pause {
    xoff_bytes: 100_000,
    xon_bytes: 90_000,
    headroom_bytes: 60_000,
};
const CREDIT: FlowControl = FlowControl::Credit { bytes: 100_000 };

/// What came of a workload.
struct Outcome {
    /// When the last transfer was acknowledged.
    took: Time,
    counters: Counters,
    drops: u64,
    pauses: u64,
    marked: u64,
}

/// A fat tree of 16 hosts on which every transfer moves 2 MB.
fn run<N: Node>(
    flow: FlowControl,
    spray: Spray,
    transfers: &[(HostId, HostId)],
    seed: u64,
    host: impl Fn(HostId) -> N,
) -> Outcome {
    let config = FabricConfig {
        shape: Shape::fat_tree(4),
        flow,
        spray,
        ..FabricConfig::default()
    };
    let fabric = Fabric::new(&config, seed).expect("a fabric");
    let mut program = Program::new(16);
    for &(from, to) in transfers {
        let action = Action::Transfer {
            from,
            to,
            bytes: 2_000_000,
            flow: 0,
        };
        program.add(action, Time::ZERO, &[]).expect("a task");
    }
    let hosts = (0..16).map(host).collect();
    let mut run = Run::new(Simulation::new(fabric.network, hosts), program);
    let end = run.run(&RunConfig::default(), |_, _| ControlFlow::Continue(()));
    assert_eq!(end, End::Complete);
    let last = run.records().iter().map(|record| record.acknowledged).max();
    let network = &run.sim.network;
    assert!(network.is_conserved());
    Outcome {
        took: last.unwrap_or_default() - run.begin(),
        counters: run.counters(),
        drops: network
            .ports
            .iter()
            .map(|port| port.statistics.drops())
            .sum(),
        pauses: network
            .ports
            .iter()
            .map(|port| port.statistics.pauses)
            .sum(),
        marked: network
            .ports
            .iter()
            .map(|port| port.statistics.marked)
            .sum(),
    }
}

fn incast() -> Vec<(HostId, HostId)> {
    (0..15).map(|host| (host, 15)).collect()
}

/// Every host sends to another one and receives from another one.
fn permutation(seed: u64) -> Vec<(HostId, HostId)> {
    let mut stream = Stream::new(seed, Purpose::Scenario, 0);
    let mut to: Vec<HostId> = (0..16).collect();
    while (0..16).zip(&to).any(|(from, &to)| from == to) {
        for i in (1..16).rev() {
            to.swap(i, stream.below(i as u64 + 1) as usize);
        }
    }
    (0..16).zip(to).collect()
}

fn roce(config: &RoceConfig, seed: u64) -> impl Fn(HostId) -> RoceHost {
    let config = config.clone();
    move |id| RoceHost::new(id, config.clone(), seed)
}

fn infiniband(routing: Routing, seed: u64) -> impl Fn(HostId) -> InfinibandHost {
    move |id| {
        let config = InfinibandConfig {
            routing,
            ..InfinibandConfig::default()
        };
        InfinibandHost::new(id, config, seed)
    }
}

/// 15 x 489 packets over one line, none idle, and a round trip.
fn incast_bound(around: u64) -> Time {
    let packets = 2_000_000_u64.div_ceil(4096);
    Time::to_send(15 * (2_000_000 + packets * around), 100_000) + topology::BASE_RTT
}

/// An incast of 15 to 1 loses nothing where links have flow control, and fills the receiver's line.
#[test]
fn flow_control_makes_an_incast_lossless() {
    let none = RoceConfig::without_congestion_control();
    let roce_bound = incast_bound(82);
    let infiniband_bound = incast_bound(26);
    let with_pause = run(PAUSE, Spray::Ecmp, &incast(), 1, roce(&none, 1));
    let with_credit = run(
        CREDIT,
        Spray::Ecmp,
        &incast(),
        1,
        infiniband(Routing::Static, 1),
    );
    for (outcome, bound) in [(&with_pause, roce_bound), (&with_credit, infiniband_bound)] {
        assert_eq!((outcome.drops, outcome.counters.retransmissions), (0, 0));
        assert!(
            outcome.took.ps() * 100 < bound.ps() * 101,
            "{}",
            outcome.took
        );
    }
    assert!(with_pause.pauses > 1_000);
    // Nobody marks what does not react.
    assert_eq!(with_pause.marked + with_credit.marked, 0);
    // DCQCN pauses less, and leaves some of the line unused while rates recover.
    let dcqcn = run(
        PAUSE,
        Spray::Ecmp,
        &incast(),
        1,
        roce(&RoceConfig::default(), 1),
    );
    assert_eq!((dcqcn.drops, dcqcn.counters.retransmissions), (0, 0));
    assert!(dcqcn.pauses < with_pause.pauses && dcqcn.counters.marked > 1_000);
    assert!(
        dcqcn.took.ps() * 10 < roce_bound.ps() * 14,
        "{}",
        dcqcn.took
    );
}

/// Without it go-back-N waits for timeouts, DCQCN or not; IRN does not care (Mittal et al., section 4.2: better without PFC than RoCE with it).
#[test]
fn an_incast_without_flow_control_needs_selective_repeat() {
    let lossy = |config: &RoceConfig| {
        run(
            FlowControl::None,
            Spray::Ecmp,
            &incast(),
            1,
            roce(config, 1),
        )
    };
    let bound = incast_bound(98);
    let go_back_n = lossy(&RoceConfig::default());
    assert!(go_back_n.drops > 1_000 && go_back_n.counters.timeouts > 0);
    assert!(go_back_n.took.ps() > 20 * bound.ps());
    let irn = lossy(&RoceConfig::irn());
    assert!(irn.drops > 500);
    assert!(irn.took.ps() * 100 < bound.ps() * 102, "{}", irn.took);
    assert_eq!(irn.counters.retransmissions, irn.drops);
}

/// The slowest flow of a permutation: with one route per flow, flows collide on links, two or three to one, and
/// Ultra Ethernet's htsim has 527.8 and 515.2 us for 16 hosts and one path, and 194 for 128 paths.
#[test]
fn adaptive_routing_ends_collisions() {
    let none = RoceConfig::without_congestion_control();
    let mut single = Vec::new();
    for seed in 1..=8 {
        let flows = permutation(seed);
        let ecmp = run(PAUSE, Spray::Ecmp, &flows, seed, roce(&none, seed));
        assert_eq!((ecmp.drops, ecmp.counters.retransmissions), (0, 0));
        single.push(ecmp.took.ns() / 1_000);
        let adaptive = run(
            CREDIT,
            Spray::Adaptive,
            &flows,
            seed,
            infiniband(Routing::Adaptive, seed),
        );
        assert_eq!((adaptive.drops, adaptive.counters.timeouts), (0, 0));
        assert_eq!(adaptive.counters.retransmissions, 0);
        let us = adaptive.took.ns() / 1_000;
        assert!((175..240).contains(&us), "{us} us");
    }
    single.sort_unstable();
    println!("{single:?}");
    assert!((470..560).contains(&single[4]), "{single:?}");
}

/// What keeps adaptive routing from RoCE with go-back-N: every packet that overtakes costs a round trip.
#[test]
fn go_back_n_cannot_be_sprayed() {
    let flows = permutation(1);
    let none = RoceConfig::without_congestion_control();
    let go_back_n = run(PAUSE, Spray::Random, &flows, 1, roce(&none, 1));
    assert!(go_back_n.counters.out_of_order_drops > 10_000);
    assert!(go_back_n.took > Time::from_us(1_000));
    let placed = RoceConfig {
        recovery: Recovery::AnyOrder,
        ..none
    };
    let any_order = run(PAUSE, Spray::Random, &flows, 1, roce(&placed, 1));
    assert_eq!(any_order.counters.retransmissions, 0);
    assert!(any_order.took < Time::from_us(300), "{}", any_order.took);
}
