//! What the fault injector promises, whatever the plan, the seed and the packets.

use metaroce_core::Ecn;
use metaroce_core::time::{Duration, Instant};
use metaroce_soft::fault::{
    Burst, DelayQueue, Direction, DropCause, FaultPlan, Faults, Injector, Packet, Probability,
    Queue, Target, Timed, Verdict, Window,
};
use proptest::prelude::*;

const START: Instant = Instant::from_nanos(1_000);

fn at(nanos: u64) -> Instant {
    START + Duration::from_nanos(nanos)
}

fn packet(port: u16, bytes: &[u8]) -> Packet<'_> {
    Packet {
        direction: Direction::Outgoing,
        plane: 0,
        port,
        ecn: Ecn::Ect0,
        bytes,
    }
}

fn data(path: u8) -> Vec<u8> {
    let mut bytes = vec![0; 100];
    bytes[0] = 0x14;
    bytes[2] = path;
    bytes
}

fn injector(faults: Faults, seed: u64) -> Injector {
    Injector::new(
        &FaultPlan {
            seed,
            outgoing: faults,
            incoming: Faults::default(),
        },
        START,
    )
}

fn anything() -> impl Strategy<Value = Faults> {
    let share =
        || (0.0f64..0.5).prop_map(|share| vec![Timed::always(Probability::from_share(share))]);
    let time =
        || (0u64..100_000).prop_map(|nanos| vec![Timed::always(Duration::from_nanos(nanos))]);
    let burst = (0.0f64..0.3, 1.0f64..20.0)
        .prop_map(|(rate, length)| vec![Timed::always(Burst::average(rate, length))]);
    let link = (1_000_000u64..10_000_000_000, 100u64..100_000, 0u64..100_000).prop_map(
        |(rate_bps, limit_bytes, mark_bytes)| {
            vec![Timed::always(Queue {
                rate_bps,
                limit_bytes,
                mark_bytes,
                overhead: 66,
            })]
        },
    );
    (
        share(),
        burst,
        time(),
        time(),
        share(),
        share(),
        share(),
        link,
    )
        .prop_map(
            |(loss, burst, delay, jitter, duplicate, corrupt, ce, queue)| Faults {
                loss,
                burst,
                delay,
                jitter,
                duplicate,
                corrupt,
                ce,
                queue,
                ..Faults::default()
            },
        )
}

proptest! {
    #[test]
    fn the_same_seed_gives_the_same_fate(faults in anything(), seed: u64, gaps in proptest::collection::vec(0u64..10_000, 1..200)) {
        let mut one = injector(faults.clone(), seed);
        let mut two = injector(faults, seed);
        let mut now = 0;
        for (number, gap) in gaps.iter().enumerate() {
            now += gap;
            let bytes = data((number % 8) as u8);
            let shown = packet((number % 8) as u16, &bytes);
            prop_assert_eq!(one.judge(at(now), &shown), two.judge(at(now), &shown));
        }
        prop_assert_eq!(one.counts(Direction::Outgoing), two.counts(Direction::Outgoing));
    }

    #[test]
    fn every_packet_is_accounted_for_and_none_travels_back_in_time(
        faults in anything(), seed: u64, gaps in proptest::collection::vec(0u64..10_000, 1..200),
    ) {
        let mut injector = injector(faults, seed);
        let (mut now, mut delivered, mut dropped, mut copies, mut flips) = (0, 0u64, 0u64, 0u64, 0u64);
        for gap in &gaps {
            now += gap;
            let bytes = data(0);
            match injector.judge(at(now), &packet(1, &bytes)) {
                Verdict::Drop(_) => dropped += 1,
                Verdict::Deliver(delivery) => {
                    delivered += 1;
                    prop_assert!(delivery.at >= at(now));
                    prop_assert!(delivery.ecn == Ecn::Ect0 || delivery.ecn == Ecn::Ce);
                    if let Some(copy_at) = delivery.copy_at {
                        copies += 1;
                        prop_assert!(copy_at >= at(now));
                    }
                    if let Some(bit) = delivery.flip {
                        flips += 1;
                        prop_assert!(bit < bytes.len() * 8);
                    }
                }
            }
        }
        let counts = injector.counts(Direction::Outgoing);
        prop_assert_eq!(counts.packets, gaps.len() as u64);
        prop_assert_eq!(counts.packets, delivered + dropped);
        prop_assert_eq!(counts.dropped(), dropped);
        prop_assert_eq!((counts.duplicated, counts.corrupted), (copies, flips));
        prop_assert_eq!(injector.counts(Direction::Incoming).packets, 0);
    }

    #[test]
    fn a_route_keeps_its_order_unless_told_to_reorder(
        faults in anything(), seed: u64, gaps in proptest::collection::vec((0u64..5_000, 0u16..4), 1..300),
    ) {
        let mut injector = injector(faults, seed);
        let mut now = 0;
        let mut latest = [Instant::ZERO; 4];
        for (gap, port) in gaps {
            now += gap;
            if let Verdict::Deliver(delivery) = injector.judge(at(now), &packet(port, &data(0))) {
                let latest = &mut latest[usize::from(port)];
                prop_assert!(delivery.at >= *latest);
                *latest = delivery.at;
            }
        }
    }

    #[test]
    fn a_link_never_carries_more_than_its_rate(rate_mbit in 1u64..1_000, seed: u64, sizes in proptest::collection::vec(64usize..9_000, 2..200)) {
        let queue = Queue { rate_bps: rate_mbit * 1_000_000, limit_bytes: 60_000, mark_bytes: u64::MAX, overhead: 66 };
        let faults = Faults { queue: vec![Timed::always(queue)], ..Faults::default() };
        let mut injector = injector(faults, seed);
        let (mut bytes, mut last) = (0u64, at(0));
        for size in sizes {
            let content = vec![0; size];
            if let Verdict::Deliver(delivery) = injector.judge(at(0), &packet(1, &content)) {
                bytes += size as u64 + 66;
                last = delivery.at;
            }
        }
        prop_assert!(bytes <= 60_000);
        let least = u128::from(bytes) * 8_000_000_000 / u128::from(queue.rate_bps);
        let took = u128::from(last.since(at(0)).as_nanos());
        prop_assert!(took >= least && took <= least + 200, "{} bytes took {} ns, at least {}", bytes, took, least);
    }

    #[test]
    fn a_delay_queue_releases_in_time_order_and_ties_in_order_of_entry(times in proptest::collection::vec(0u64..50, 0..100)) {
        let mut queue = DelayQueue::default();
        for (number, time) in times.iter().enumerate() {
            queue.push(at(*time), (*time, number));
        }
        let mut model: Vec<_> = times.iter().copied().enumerate().map(|(number, time)| (time, number)).collect();
        model.sort_unstable();
        let mut seen = Vec::new();
        for now in 0..50 {
            while let Some(item) = queue.pop_due(at(now)) {
                prop_assert_eq!(item.0, now);
                seen.push(item);
            }
        }
        prop_assert_eq!(seen, model);
        prop_assert!(queue.is_empty());
    }
}

#[test]
fn loss_comes_at_the_rate_that_was_asked_for() {
    for (share, seed) in [(0.001, 1), (0.01, 2), (0.1, 3)] {
        let mut injector = injector(Faults::with_loss(share), seed);
        for _ in 0..1_000_000 {
            injector.judge(at(0), &packet(1, &[]));
        }
        let lost = injector.counts(Direction::Outgoing).lost as f64 / 1e6;
        // Six standard deviations of a binomial.
        assert!(
            (lost - share).abs() < 6.0 * (share / 1e6).sqrt(),
            "{lost} instead of {share}"
        );
    }
}

#[test]
fn bursts_have_the_rate_and_the_length_that_were_asked_for() {
    let faults = Faults {
        burst: vec![Timed::always(Burst::average(0.02, 8.0))],
        ..Faults::default()
    };
    let mut injector = injector(faults, 11);
    let (mut bursts, mut lost, mut last) = (0u32, 0u32, false);
    for _ in 0..2_000_000 {
        let drop = injector.judge(at(0), &packet(1, &[])) == Verdict::Drop(DropCause::Burst);
        bursts += u32::from(drop && !last);
        lost += u32::from(drop);
        last = drop;
    }
    let (rate, length) = (f64::from(lost) / 2e6, f64::from(lost) / f64::from(bursts));
    assert!((rate - 0.02).abs() < 0.002, "rate {rate}");
    assert!((length - 8.0).abs() < 0.5, "length {length}");
}

#[test]
fn reordering_lets_later_packets_pass() {
    let faults = Faults {
        reorder: vec![Timed::always((
            Probability::from_share(0.5),
            Duration::from_micros(10),
        ))],
        ..Faults::default()
    };
    let mut injector = injector(faults, 5);
    let times: Vec<_> = (0..100)
        .filter_map(
            |number| match injector.judge(at(number), &packet(1, &[0])) {
                Verdict::Deliver(delivery) => Some(delivery.at),
                Verdict::Drop(_) => None,
            },
        )
        .collect();
    assert!(times.windows(2).any(|pair| pair[0] > pair[1]));
    assert!(injector.counts(Direction::Outgoing).reordered > 20);
}

fn blackhole(target: Target, start: u64, end: u64) -> Injector {
    let window = Window {
        start: Duration::from_nanos(start),
        end: Duration::from_nanos(end),
    };
    injector(
        Faults {
            blackhole: vec![Timed {
                fault: target,
                window,
            }],
            ..Faults::default()
        },
        0,
    )
}

#[test]
fn a_path_blackhole_swallows_the_route_and_not_the_number() {
    let mut injector = blackhole(Target::Path(3), 100, 200);
    let passes = |injector: &mut Injector, now, port, path| {
        matches!(
            injector.judge(at(now), &packet(port, &data(path))),
            Verdict::Deliver(_)
        )
    };
    assert!(passes(&mut injector, 0, 40, 3));
    assert!(passes(&mut injector, 1, 41, 4));
    assert!(!passes(&mut injector, 100, 40, 3));
    assert!(
        !passes(&mut injector, 110, 40, 4),
        "whatever else uses the route dies with it"
    );
    assert!(passes(&mut injector, 120, 41, 4));
    assert!(
        passes(&mut injector, 130, 55, 3),
        "moved to another port, the path is out of it"
    );
    assert!(!passes(&mut injector, 140, 40, 3));
    assert!(passes(&mut injector, 200, 40, 3), "over");
}

#[test]
fn a_path_blackhole_that_is_always_there_swallows_the_path_s_first_route() {
    let mut injector = blackhole(Target::Path(3), 0, u64::MAX);
    let mut passes = |port, bytes: &[u8]| {
        matches!(
            injector.judge(at(0), &packet(port, bytes)),
            Verdict::Deliver(_)
        )
    };
    assert!(passes(39, &[0x10; 100]), "before the path is known");
    assert!(!passes(40, &data(3)));
    assert!(passes(41, &data(4)) && passes(42, &data(3)) && !passes(40, &data(4)));
}

#[test]
fn of_faults_that_overlap_the_last_counts() {
    let plan: FaultPlan = "loss=0%,100%@10ns-20ns,rate=1gbit".parse().unwrap();
    let mut injector = Injector::new(&plan, START);
    let mut lost = |now| injector.judge(at(now), &packet(1, &[])) == Verdict::Drop(DropCause::Loss);
    assert!(!lost(9) && lost(10) && lost(19) && !lost(20));
}

#[test]
fn planes_ports_and_everything_can_be_swallowed_for_a_time() {
    let drops = |injector: &mut Injector, now, plane, port| {
        let shown = Packet {
            direction: Direction::Outgoing,
            plane,
            port,
            ecn: Ecn::NotEct,
            bytes: &[],
        };
        injector.judge(at(now), &shown) == Verdict::Drop(DropCause::Blackhole)
    };
    let mut plane = blackhole(Target::Plane(1), 10, 20);
    assert!(
        !drops(&mut plane, 9, 1, 5)
            && drops(&mut plane, 10, 1, 5)
            && !drops(&mut plane, 10, 0, 5)
            && !drops(&mut plane, 20, 1, 5)
    );
    let mut port = blackhole(Target::Port(5), 0, u64::MAX);
    assert!(drops(&mut port, 0, 0, 5) && !drops(&mut port, 0, 0, 6));
    let mut all = blackhole(Target::All, 0, 1);
    assert!(drops(&mut all, 0, 0, 5) && !drops(&mut all, 1, 0, 5));
}

#[test]
fn only_ecn_capable_packets_are_marked() {
    let faults = Faults {
        ce: vec![Timed::always(Probability::ALWAYS)],
        ..Faults::default()
    };
    let mut injector = injector(faults, 0);
    for (before, after) in [
        (Ecn::NotEct, Ecn::NotEct),
        (Ecn::Ect0, Ecn::Ce),
        (Ecn::Ect1, Ecn::Ce),
        (Ecn::Ce, Ecn::Ce),
    ] {
        let shown = Packet {
            direction: Direction::Outgoing,
            plane: 0,
            port: 1,
            ecn: before,
            bytes: &[],
        };
        let Verdict::Deliver(delivery) = injector.judge(at(0), &shown) else {
            panic!("dropped")
        };
        assert_eq!(delivery.ecn, after);
    }
    assert_eq!(injector.counts(Direction::Outgoing).marked, 2);
}
