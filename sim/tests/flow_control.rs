//! Links with flow control, shared buffers and trimming when things go wrong on them: nothing is lost count of, and traffic goes on.

use std::ops::ControlFlow;

use metaroce_sim::endpoint::LargeEndpoint;
use metaroce_sim::fabric::{Fabric, FabricConfig, Shape, Tier};
use metaroce_sim::faults::{FaultConfig, Reordering};
use metaroce_sim::node::Node;
use metaroce_sim::port::FlowControl;
use metaroce_sim::random::Probability;
use metaroce_sim::simulation::{Simulation, Stop};
use metaroce_sim::switch::{SharedBuffer, Spray};
use metaroce_sim::time::Time;
use metaroce_sim::transport::metaroce::{self, MetaroceConfig};
use metaroce_sim::transport::roce::{RoceConfig, RoceHost};
use metaroce_sim::workload::program::{Action, Program};
use metaroce_sim::workload::run::{End, Run, RunConfig};

const PAUSE: FlowControl = FlowControl::Pause {
    xoff_bytes: 50_000,
    xon_bytes: 40_000,
    headroom_bytes: 60_000,
};
const CREDIT: FlowControl = FlowControl::Credit { bytes: 100_000 };

/// Four leaves with two hosts each and two spines, oversubscribed so that links are held back.
fn fabric(flow: FlowControl) -> FabricConfig {
    let mut config = FabricConfig {
        shape: Shape::leaf_spine(4, 2, 2),
        flow,
        queue_bytes: u64::MAX,
        ..FabricConfig::default()
    };
    config.tiers[Tier::Leaf as usize].mbps = 50_000;
    config
}

/// Everybody sends to host 0, and host 0 to everybody.
fn all_to_one(hosts: u32, bytes: u64) -> Program {
    let mut program = Program::new(hosts);
    for host in 1..hosts {
        for (from, to) in [(host, 0), (0, host)] {
            let action = Action::Transfer {
                from,
                to,
                bytes,
                flow: 0,
            };
            program.add(action, Time::ZERO, &[]).unwrap();
        }
    }
    program
}

/// Runs it, looks at every account every 10 us, and lets everything run out.
fn run<N: Node>(fabric: Fabric, hosts: Vec<N>, limit: Time) -> (End, Run<N>) {
    let program = all_to_one(hosts.len() as u32, 300_000);
    let mut run = Run::new(Simulation::new(fabric.network, hosts), program);
    let config = RunConfig {
        limit,
        ..RunConfig::default()
    };
    let end = run.run(&config, |run, status| {
        assert!(run.sim.network.is_conserved(), "after {}", status.elapsed);
        ControlFlow::Continue(())
    });
    assert!(run.sim.network.is_conserved());
    (end, run)
}

fn roce_hosts(count: usize) -> Vec<RoceHost> {
    let config = RoceConfig {
        timeout: Time::from_us(300),
        retries: None,
        ..RoceConfig::default()
    };
    (0..count as u32)
        .map(|id| RoceHost::new(id, config.clone(), 1))
        .collect()
}

#[test]
fn faults_on_governed_links_lose_no_credit_and_no_count() {
    let some = Probability::new(0.02);
    let reordering = Reordering {
        probability: some,
        max_delay: Time::from_us(20),
    };
    let faults = [
        FaultConfig::loss(some),
        FaultConfig {
            duplication: some,
            ..FaultConfig::default()
        },
        FaultConfig {
            corruption: some,
            ..FaultConfig::default()
        },
        FaultConfig {
            reordering: Some(reordering),
            ..FaultConfig::default()
        },
    ];
    for flow in [PAUSE, CREDIT] {
        for fault in &faults {
            let mut fabric = Fabric::new(&fabric(flow), 1).unwrap();
            for port in 0..fabric.network.ports.len() as u32 {
                fabric.network.set_faults(port, fault.clone());
            }
            let (end, mut run) = run(fabric, roce_hosts(8), Time::from_ms(100));
            assert_eq!(end, End::Complete, "{flow:?} {fault:?}");
            // Until nothing happens any more: then nothing may be held.
            assert_eq!(run.sim.run(Time::from_ms(1_000)), Stop::Idle);
            assert!(run.sim.network.is_conserved(), "{flow:?} {fault:?}");
            assert_eq!(run.sim.network.overrun(), 0);
        }
    }
}

#[test]
fn a_governed_link_that_goes_down_gives_back_what_it_held() {
    for flow in [PAUSE, CREDIT] {
        let config = FabricConfig {
            reroute_after: Some(Time::from_us(30)),
            ..fabric(flow)
        };
        let mut fabric = Fabric::new(&config, 1).unwrap();
        let links: Vec<_> = fabric
            .tier(Tier::Leaf)
            .take(2)
            .map(|link| [link.up, link.down])
            .collect();
        for (i, port) in links.into_iter().flatten().enumerate() {
            let down = Time::from_us(530 + i as u64 * 40);
            fabric.network.schedule_link(down, port, false);
            fabric
                .network
                .schedule_link(down + Time::from_us(60), port, true);
        }
        let (end, mut run) = run(fabric, roce_hosts(8), Time::from_ms(100));
        assert_eq!(end, End::Complete, "{flow:?}");
        assert_eq!(run.sim.run(Time::from_ms(1_000)), Stop::Idle);
        assert!(run.sim.network.is_conserved(), "{flow:?}");
    }
}

#[test]
fn too_little_headroom_drops_and_goes_on() {
    let flow = FlowControl::Pause {
        xoff_bytes: 50_000,
        xon_bytes: 40_000,
        headroom_bytes: 0,
    };
    let (end, run) = run(
        Fabric::new(&fabric(flow), 1).unwrap(),
        roce_hosts(8),
        Time::from_ms(100),
    );
    assert_eq!(end, End::Complete);
    assert!(run.sim.network.overrun() > 0);
    assert!(
        run.sim
            .network
            .ports
            .iter()
            .any(|port| port.statistics.pauses > 0)
    );
}

#[test]
fn flow_control_drops_nothing_where_queues_alone_would() {
    let drops = |flow, queue_bytes| {
        let config = FabricConfig {
            queue_bytes,
            ..fabric(flow)
        };
        let (_, run) = run(
            Fabric::new(&config, 1).unwrap(),
            roce_hosts(8),
            Time::from_ms(100),
        );
        run.sim
            .network
            .ports
            .iter()
            .map(|port| port.statistics.drops())
            .sum::<u64>()
    };
    assert_eq!([drops(PAUSE, u64::MAX), drops(CREDIT, u64::MAX)], [0, 0]);
    assert!(drops(FlowControl::None, 50_000) > 0);
}

#[test]
fn what_a_switch_trimmed_is_no_data_to_the_core() {
    let buffer = SharedBuffer {
        bytes: 60_000,
        alpha_eighths: 8,
    };
    for buffer in [None, Some(buffer)] {
        let config = FabricConfig {
            queue_bytes: 30_000,
            trim: true,
            buffer,
            ..fabric(FlowControl::None)
        };
        let hosts =
            metaroce::hosts::<LargeEndpoint>(&MetaroceConfig::default(), 1, &[7; 8]).unwrap();
        let (end, run) = run(Fabric::new(&config, 1).unwrap(), hosts, Time::from_ms(100));
        assert_eq!(end, End::Complete);
        let counters = run.counters();
        assert!(
            counters.trimmed > 0 && counters.retransmissions > 0,
            "{counters:?}"
        );
        assert_eq!(counters.placed_bytes, 14 * 300_000);
    }
}

#[test]
fn adaptive_switches_shun_a_dead_link_at_once_and_routes_follow() {
    let reaches = |spray, reroute_after| {
        let config = FabricConfig {
            spray,
            reroute_after,
            ..fabric(FlowControl::None)
        };
        let mut fabric = Fabric::new(&config, 1).unwrap();
        // The first leaf's link to the first spine, only on its way up: the leaf itself can know.
        let up = fabric.tier(Tier::Leaf).next().unwrap().up;
        fabric.network.schedule_link(Time::from_us(1), up, false);
        let (_, run) = run(fabric, roce_hosts(8), Time::from_ms(20));
        run.sim.network.ports[up as usize].statistics.drops()
    };
    assert_eq!(reaches(Spray::Adaptive, None), 0);
    let (never, soon) = (
        reaches(Spray::Ecmp, None),
        reaches(Spray::Ecmp, Some(Time::from_us(50))),
    );
    assert!(never > 0 && soon == 0, "{never} {soon}");
}
