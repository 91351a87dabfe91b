//! Ultra Ethernet and best effort against published figures, and what must hold whatever happens.

use std::ops::ControlFlow;

use metaroce_sim::fabric::{Fabric, FabricConfig, Shape};
use metaroce_sim::faults::{FaultConfig, Reordering, Selector};
use metaroce_sim::node::Node;
use metaroce_sim::packet::HostId;
use metaroce_sim::random::{Probability, Purpose, Stream};
use metaroce_sim::simulation::Simulation;
use metaroce_sim::time::Time;
use metaroce_sim::transport::celeris::{CelerisConfig, CelerisHost, Completion};
use metaroce_sim::transport::uec::{Control, UecConfig, UecHost};
use metaroce_sim::workload::program::{Action, After, Program};
use metaroce_sim::workload::run::{End, Run, RunConfig};

/// Lets the hosts of a fabric carry out a program.
fn carry_out<N: Node>(fabric: Fabric, host: impl Fn(HostId) -> N, program: Program) -> Run<N> {
    let hosts = (0..fabric.network.hosts() as HostId).map(host).collect();
    let mut run = Run::new(Simulation::new(fabric.network, hosts), program);
    let end = run.run(&RunConfig::default(), |_, _| ControlFlow::Continue(()));
    assert_eq!(end, End::Complete, "{:?}", run.counters());
    run
}

/// Transfers that all begin at once.
fn run<N: Node>(
    fabric: Fabric,
    host: impl Fn(HostId) -> N,
    transfers: &[(HostId, HostId, u64)],
) -> Run<N> {
    let mut program = Program::new(fabric.network.hosts() as u32);
    for &(from, to, bytes) in transfers {
        let action = Action::Transfer {
            from,
            to,
            bytes,
            flow: 0,
        };
        program.add(action, Time::ZERO, &[]).unwrap();
    }
    carry_out(fabric, host, program)
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

/// Links on which everything goes wrong now and then.
fn bad_links() -> FaultConfig {
    FaultConfig {
        duplication: Probability::ratio(2, 100),
        corruption: Probability::ratio(1, 100),
        reordering: Some(Reordering {
            probability: Probability::ratio(5, 100),
            max_delay: Time::from_us(60),
        }),
        ..FaultConfig::loss(Probability::ratio(2, 100))
    }
}

fn spoil(fabric: &mut Fabric, faults: &FaultConfig) {
    for port in 0..fabric.network.ports.len() {
        fabric.network.set_faults(port as u32, faults.clone());
    }
}

/// Messages of all sizes between five hosts, and the sum of their bytes.
fn random_program(random: &mut Stream) -> (Program, u64) {
    let mut program = Program::new(5);
    let mut sum = 0;
    for _ in 0..60 {
        let from = random.below(5) as HostId;
        let to = (from + 1 + random.below(4) as HostId) % 5;
        let magnitude = random.between(1, 18);
        let bytes = 1 + random.below(1 << magnitude);
        sum += bytes;
        let flow = random.below(5) as u32;
        let action = Action::Transfer {
            from,
            to,
            bytes,
            flow,
        };
        let start = Time::from_us(random.below(300));
        program.add(action, start, &[]).unwrap();
    }
    (program, sum)
}

#[test]
fn uec_places_every_byte_once_whatever_the_links_do() {
    for seed in 0..24 {
        let control = [Control::Sender, Control::Receiver, Control::Both][seed as usize % 3];
        let trim = seed % 2 == 0;
        let mut random = Stream::new(seed, Purpose::Plan, 0);
        let mut fabric = fabric(Shape::Star { hosts: 5 }, trim, seed);
        spoil(&mut fabric, &bad_links());
        let (program, bytes_posted) = random_program(&mut random);
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
        let run = carry_out(fabric, |id| UecHost::new(id, config, seed), program);
        let counters = run.counters();
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

fn lost<N: Node>(run: &Run<N>) -> u64 {
    run.records().iter().map(|record| record.lost_bytes).sum()
}

fn celeris(fabric: Fabric, config: CelerisConfig, program: Program) -> Run<CelerisHost> {
    carry_out(fabric, |id| CelerisHost::new(id, config, 1), program)
}

/// Two hosts that send messages of `bytes` to each other in turn, `rounds` times.
fn ping_pong(bytes: u64, rounds: u32) -> Program {
    let mut program = Program::new(2);
    let mut before = None;
    for round in 0..2 * rounds {
        let (from, to) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
        let after: Vec<After> = before.map(After::Done).into_iter().collect();
        let action = Action::Transfer {
            from,
            to,
            bytes,
            flow: 0,
        };
        before = Some(program.add(action, Time::ZERO, &after).unwrap());
    }
    program
}

#[test]
fn celeris_reports_exactly_what_was_not_placed() {
    for seed in 0..24 {
        let mut random = Stream::new(seed, Purpose::Plan, 1);
        let trim = seed % 3 == 0;
        let mut fabric = fabric(Shape::Star { hosts: 5 }, trim, seed);
        spoil(&mut fabric, &bad_links());
        let (program, posted) = random_program(&mut random);
        let config = CelerisConfig {
            queue_pairs: 1 + seed as u32 % 3,
            preempt: seed % 2 == 0,
            completion: if seed % 4 < 2 {
                Completion::Sent
            } else {
                Completion::Notice
            },
            ..CelerisConfig::default()
        };
        let run = celeris(fabric, config, program);
        let counters = run.counters();
        assert_eq!(lost(&run), posted - counters.placed_bytes, "seed {seed}");
        assert_eq!(counters.retransmissions, 0);
        assert!(lost(&run) > 0 && counters.duplicates > 0);
        in_order(&run);
    }
}

#[test]
fn celeris_loses_what_the_network_loses_and_waits_no_longer_than_it_should() {
    let run = |loss| {
        let mut fabric = fabric(Shape::Pair, false, 1);
        spoil(
            &mut fabric,
            &FaultConfig::loss(Probability::ratio(loss, 100)),
        );
        celeris(fabric, CelerisConfig::default(), ping_pong(1 << 20, 100))
    };
    let clean = run(0);
    assert_eq!(lost(&clean), 0);
    // The first messages are the warm-up.
    let took = |run: &Run<CelerisHost>| {
        (run.records()[199].done - run.records()[19].done).us_f64() / 180.0
    };
    // 256 packets on the line and half a round trip, each way.
    let message = 256.0 * 0.337_12 + 14.0 / 2.0;
    assert!((took(&clean) / message - 1.0).abs() < 0.01);
    for loss in [1, 5] {
        let lossy = run(loss);
        let share = lost(&lossy) as f64 / (200.0 * 1_048_576.0);
        assert!((share * 100.0 / loss as f64 - 1.0).abs() < 0.1, "{share}");
        // Nearly every message waits for its time: a quarter more than it should take (per byte that comes), and 50 us.
        let longest = 1.25 * message / (1.0 - loss as f64 / 100.0) + 50.0;
        assert!(took(&lossy) < longest * 1.02, "{}", took(&lossy));
        assert!(lossy.counters().timeouts > 150);
    }
}

#[test]
fn celeris_adapts_its_patience_to_how_long_bytes_take() {
    let cost = |senders: u32| {
        let mut program = Program::new(5);
        for from in 0..senders {
            for _ in 0..40 {
                let action = Action::Transfer {
                    from,
                    to: 4,
                    bytes: 1 << 20,
                    flow: 0,
                };
                program.add(action, Time::ZERO, &[]).unwrap();
            }
        }
        let run = celeris(
            fabric(Shape::Star { hosts: 5 }, false, 1),
            CelerisConfig::default(),
            program,
        );
        let hosts = &run.sim.hosts;
        (hosts[4].patience().cost(), hosts[0].patience().cost())
    };
    // A byte takes 80 ps on the line, 82.3 with headers.
    let (receiver, sender) = cost(1);
    assert!((82.0..83.0).contains(&receiver), "{receiver}");
    // Who only sends is told by notices.
    assert!((82.0..83.0).contains(&sender), "{sender}");
    let (receiver, _) = cost(4);
    assert!((3.0 * 82.3..8.0 * 82.3).contains(&receiver), "{receiver}");
}

#[test]
fn celeris_ends_messages_of_which_nothing_came() {
    let mut fabric = fabric(Shape::Pair, false, 1);
    let until = Time::from_us(500);
    let hole = FaultConfig::default().with_blackhole(Selector::All, Time::ZERO, until);
    fabric.network.set_faults(0, hole);
    let mut program = Program::new(2);
    for flow in 0..3 {
        let action = Action::Transfer {
            from: 0,
            to: 1,
            bytes: 10_000,
            flow,
        };
        program.add(action, Time::ZERO, &[]).unwrap();
    }
    let run = celeris(fabric, CelerisConfig::default(), program);
    assert_eq!(lost(&run), 30_000);
    // Described every 200 us, and known after the third time.
    let done = run.records()[2].done;
    assert!(
        (Time::from_us(600)..Time::from_us(620)).contains(&done),
        "{done}"
    );
}
