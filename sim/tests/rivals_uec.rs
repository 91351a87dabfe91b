//! Ultra Ethernet and best effort against published figures, and what must hold whatever happens.

use std::ops::ControlFlow;

use metaroce_sim::fabric::{Fabric, FabricConfig, Shape};
use metaroce_sim::faults::{FaultConfig, Reordering};
use metaroce_sim::node::Node;
use metaroce_sim::packet::HostId;
use metaroce_sim::random::{Probability, Purpose, Stream};
use metaroce_sim::simulation::Simulation;
use metaroce_sim::time::Time;
use metaroce_sim::transport::uec::{Control, UecConfig, UecHost};
use metaroce_sim::workload::program::{Action, Program};
use metaroce_sim::workload::run::{End, Run, RunConfig};

/// Transfers that all begin at once.
fn run<N: Node>(
    fabric: Fabric,
    host: impl Fn(HostId) -> N,
    transfers: &[(HostId, HostId, u64)],
) -> Run<N> {
    let hosts = fabric.network.hosts() as HostId;
    let stations = (0..hosts).map(host).collect();
    let mut program = Program::new(hosts);
    for &(from, to, bytes) in transfers {
        let action = Action::Transfer {
            from,
            to,
            bytes,
            flow: 0,
        };
        program.add(action, Time::ZERO, &[]).unwrap();
    }
    let mut run = Run::new(Simulation::new(fabric.network, stations), program);
    let end = run.run(&RunConfig::default(), |_, _| ControlFlow::Continue(()));
    assert_eq!(end, End::Complete, "{:?}", run.counters());
    run
}

/// Times until the sender knew, in microseconds, in order.
fn times<N: Node>(run: &Run<N>) -> Vec<f64> {
    let mut times: Vec<f64> = run
        .records()
        .iter()
        .map(|record| (record.acknowledged - run.begin()).us_f64())
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

fn fabric(shape: Shape, trim: bool, seed: u64) -> Fabric {
    let queue_bytes = if trim { 178_450 } else { 892_250 };
    Fabric::new(
        &FabricConfig {
            shape,
            trim,
            queue_bytes,
            ..FabricConfig::default()
        },
        seed,
    )
    .unwrap()
}

fn permutation(hosts: u32, seed: u64) -> Vec<(HostId, HostId, u64)> {
    let mut random = Stream::new(seed, Purpose::Scenario, 0);
    let mut order: Vec<HostId> = (0..hosts).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, random.below(i as u64 + 1) as usize);
    }
    (0..order.len())
        .map(|i| (order[i], order[(i + 1) % order.len()], 2_000_000))
        .collect()
}

/// What all packets of a transfer take more on the line here than in htsim: 4214 bytes for 4150.
const LARGER: f64 = 4214.0 / 4150.0;

/// Whether a time is within 5 % of one that htsim printed for the same case.
fn close(got: f64, published: f64) -> bool {
    let expected = published * LARGER;
    (got - expected).abs() < 0.05 * expected
}

fn uec(fabric: Fabric, config: UecConfig, transfers: &[(HostId, HostId, u64)]) -> Run<UecHost> {
    run(fabric, |id| UecHost::new(id, config, 1), transfers)
}

fn incast(senders: u32, control: Control, trim: bool) -> Run<UecHost> {
    // The published runs find losses by NACK and timeout alone.
    let config = UecConfig {
        control,
        sleek: false,
        ..if trim {
            UecConfig::trimming()
        } else {
            UecConfig::default()
        }
    };
    let transfers: Vec<_> = (0..senders)
        .map(|from| (from, senders, 2_000_000))
        .collect();
    let shape = Shape::Star { hosts: senders + 1 };
    uec(fabric(shape, trim, 1), config, &transfers)
}

#[test]
fn uec_single_flows_and_incasts_take_as_long_as_published() {
    for (senders, control, trim, published) in [
        (1, Control::Sender, true, 176.2),
        (1, Control::Receiver, true, 177.4),
        (15, Control::Sender, true, 2478.5),
        (15, Control::Receiver, true, 2464.4),
        (15, Control::Sender, false, 2737.8),
        (127, Control::Sender, true, 21_029.3),
        (127, Control::Receiver, true, 20_891.4),
        (127, Control::Sender, false, 20_839.0),
    ] {
        let run = incast(senders, control, trim);
        let got = times(&run)[senders as usize - 1];
        assert!(
            close(got, published),
            "{senders}:1 {control:?} trim {trim}: {got}, {published}"
        );
        assert_eq!(run.counters().placed_bytes, u64::from(senders) * 2_000_000);
        assert_eq!(run.counters().trimmed > 0, trim && senders > 1);
    }
}

#[test]
fn uec_permutations_over_many_paths_take_as_long_as_published() {
    for (k, control, median, last) in [
        (4, Control::Sender, None, 194.0),
        (4, Control::Receiver, None, 195.7),
        (8, Control::Sender, Some(193.7), 202.0),
        (8, Control::Receiver, Some(195.5), 204.8),
    ] {
        let hosts = k * k * k / 4;
        let config = UecConfig {
            control,
            ..UecConfig::trimming()
        };
        let fabric = fabric(Shape::fat_tree(k), true, 1);
        let times = times(&uec(fabric, config, &permutation(hosts, 1)));
        let (got, middle) = (times[times.len() - 1], times[times.len() / 2]);
        assert!(close(got, last), "{hosts} {control:?}: {got}, {last}");
        assert!(
            median.is_none_or(|published| close(middle, published)),
            "{middle}"
        );
    }
}

#[test]
fn uec_flows_that_start_together_share_a_line() {
    // Windows are fair in the long run only (published for 15 flows of 2 MB: the first ends after 1274 of 2479 us);
    // credit is given in turn.
    for (control, fair) in [
        (Control::Sender, 0.95),
        (Control::Receiver, 0.999),
        (Control::Both, 0.999),
    ] {
        let config = UecConfig {
            control,
            ..UecConfig::trimming()
        };
        let transfers: Vec<_> = (0..4).map(|from| (from, 4, 10_000_000)).collect();
        let run = uec(
            fabric(Shape::Star { hosts: 5 }, true, 1),
            config,
            &transfers,
        );
        let times = times(&run);
        let rates: Vec<f64> = times.iter().map(|time| 1.0 / time).collect();
        let (sum, squares) = rates
            .iter()
            .fold((0.0, 0.0), |(s, q), r| (s + r, q + r * r));
        let jain = sum * sum / (4.0 * squares);
        assert!(jain > fair, "{control:?}: {jain} {times:?}");
    }
}

#[test]
fn uec_places_every_byte_once_whatever_the_links_do() {
    let faults = FaultConfig {
        duplication: Probability::ratio(2, 100),
        corruption: Probability::ratio(1, 100),
        reordering: Some(Reordering {
            probability: Probability::ratio(5, 100),
            max_delay: Time::from_us(60),
        }),
        ..FaultConfig::loss(Probability::ratio(2, 100))
    };
    for seed in 0..24 {
        let control = [Control::Sender, Control::Receiver, Control::Both][seed as usize % 3];
        let trim = seed % 2 == 0;
        let mut random = Stream::new(seed, Purpose::Plan, 0);
        let mut fabric = fabric(Shape::Star { hosts: 5 }, trim, seed);
        for port in 0..fabric.network.ports.len() {
            fabric.network.set_faults(port as u32, faults.clone());
        }
        let mut program = Program::new(5);
        let mut bytes_posted = 0;
        for _ in 0..60 {
            let from = random.below(5) as HostId;
            let to = (from + 1 + random.below(4) as HostId) % 5;
            let magnitude = random.between(1, 18);
            let bytes = 1 + random.below(1 << magnitude);
            bytes_posted += bytes;
            let flow = random.below(5) as u32;
            let start = Time::from_us(random.below(300));
            program
                .add(
                    Action::Transfer {
                        from,
                        to,
                        bytes,
                        flow,
                    },
                    start,
                    &[],
                )
                .unwrap();
        }
        let config = UecConfig {
            control,
            contexts: 1 + seed as u32 % 4,
            sleek: !trim,
            ..if trim {
                UecConfig::trimming()
            } else {
                UecConfig::default()
            }
        };
        let hosts = (0..5).map(|id| UecHost::new(id, config, seed)).collect();
        let mut run = Run::new(Simulation::new(fabric.network, hosts), program);
        let end = run.run(&RunConfig::default(), |_, _| ControlFlow::Continue(()));
        let counters = run.counters();
        assert_eq!(end, End::Complete, "seed {seed}: {counters:?}");
        assert_eq!(counters.placed_bytes, bytes_posted, "seed {seed}");
        assert!(counters.duplicates > 0 && counters.retransmissions > 0);
        in_order(&run);
    }
}

/// Messages of a flow were delivered in the order of posting: here, of their starts and then of their numbers.
fn in_order<N: Node>(run: &Run<N>) {
    let mut flows = std::collections::BTreeMap::new();
    let mut order: Vec<usize> = (0..run.records().len()).collect();
    order.sort_by_key(|&id| (run.records()[id].started, id));
    for id in order {
        let Action::Transfer { from, to, flow, .. } = run.program().tasks()[id].action else {
            continue;
        };
        let done = run.records()[id].done;
        let before = flows.insert((from, to, flow), done);
        assert!(before.is_none_or(|before| before <= done), "message {id}");
    }
}

#[test]
fn uec_keeps_a_long_flow_going_under_loss_with_the_rules_for_losses() {
    let goodput = |loss, sleek| {
        let mut fabric = fabric(Shape::Pair, false, 1);
        for port in 0..2 {
            fabric
                .network
                .set_faults(port, FaultConfig::loss(Probability::ratio(loss, 1_000)));
        }
        let config = UecConfig {
            sleek,
            ..UecConfig::default()
        };
        let took = times(&uec(fabric, config, &[(0, 1, 50_000_000)]))[0];
        let line = 50_000_000.0 / 4096.0 * 0.337_12;
        line / took / (1.0 - loss as f64 / 1_000.0)
    };
    // Of the bound 1 - p. Timeouts alone are not enough where queues, and so timeouts, are long.
    assert!(goodput(1, true) > 0.99);
    assert!(goodput(10, true) > 0.98);
    assert!(goodput(10, false) < 0.92);
}

#[test]
fn uec_runs_repeat() {
    let hash = |seed| {
        let config = UecConfig {
            control: Control::Both,
            ..UecConfig::trimming()
        };
        let fabric = fabric(Shape::fat_tree(4), true, seed);
        let run = run(
            fabric,
            |id| UecHost::new(id, config, seed),
            &permutation(16, seed),
        );
        run.sim.network.trace_hash()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}
