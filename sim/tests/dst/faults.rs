//! What goes wrong in a run, until it is healed.

use metaroce_core::time::Duration;
use metaroce_sim::faults::{Blackhole, Burst, FaultConfig, Reordering, Selector};
use metaroce_sim::random::{Probability, Stream};
use metaroce_sim::time::Time;

#[derive(Clone, Debug)]
pub struct FaultPlan {
    /// Faults of the links there and back, by plane.
    pub links: Vec<[FaultConfig; 2]>,
    /// A plane's link goes down and comes back: plane, when, until.
    pub flaps: Vec<(u8, Time, Time)>,
    pub clock_jumps: bool,
    pub corruption: bool,
    /// Every path keeps its order and nothing is copied.
    pub orderly: bool,
    /// Connections may legitimately be lost: everything was dark for long.
    pub may_lose: bool,
}

fn link(random: &mut Stream, kinds: &[bool; 5], heal: Time) -> FaultConfig {
    let mut config = FaultConfig {
        until: heal,
        ..FaultConfig::default()
    };
    if kinds[0] {
        config.loss = Probability::ratio(*random.pick(&[1, 10, 10, 50, 100, 200]), 1000);
    }
    if kinds[1] {
        config.burst = Some(Burst {
            to_bad: Probability::ratio(random.between(1, 20), 1000),
            to_good: Probability::ratio(random.between(20, 300), 1000),
            loss_good: Probability::ZERO,
            loss_bad: Probability::ratio(random.between(300, 1000), 1000),
        });
    }
    if kinds[2] {
        config.corruption = Probability::ratio(random.between(1, 50), 1000);
    }
    if kinds[3] {
        config.duplication = Probability::ratio(random.between(1, 100), 1000);
    }
    if kinds[4] {
        config.reordering = Some(Reordering {
            probability: Probability::ratio(random.between(1, 300), 1000),
            max_delay: Time::from_us(*random.pick(&[1, 10, 100, 1000])),
        });
    }
    config
}

pub fn plan(
    random: &mut Stream,
    span: Time,
    heal: Time,
    planes: u8,
    failure_timeout: Duration,
) -> FaultPlan {
    let calm = random.one_in(1, 12);
    let kinds = [
        !calm && random.one_in(3, 5),
        !calm && random.one_in(1, 5),
        !calm && random.one_in(1, 5),
        !calm && random.one_in(1, 4),
        !calm && random.one_in(1, 4),
    ];
    let mut links: Vec<[FaultConfig; 2]> = (0..planes)
        .map(|_| [link(random, &kinds, heal), link(random, &kinds, heal)])
        .collect();
    let mut may_lose = false;
    let mut held = false;
    if !calm && random.one_in(2, 5) {
        for _ in 0..random.between(1, 4) {
            let from = Time::from_ps(random.below(span.ps()));
            let length = Time::from_us(*random.pick(&[20, 200, 2_000, 10_000]));
            let selector = match random.below(5) {
                0 => Selector::DataPath(random.below(8) as u8),
                1 => Selector::AckPath(random.below(8) as u8),
                2 => Selector::All,
                _ => {
                    let of = random.between(2, 8) as u16;
                    Selector::Bucket {
                        index: random.below(u64::from(of)) as u16,
                        of,
                    }
                }
            };
            let plane = random.below(u64::from(planes)) as usize;
            let way = random.below(3);
            let until = (from + length).min(heal);
            let holds = random.one_in(1, 3);
            held |= holds;
            for (side, config) in links[plane].iter_mut().enumerate() {
                if way == 2 || way == side as u64 {
                    config.blackholes.push(Blackhole {
                        selector,
                        from,
                        until,
                        holds,
                    });
                }
            }
        }
    }
    let mut flaps = Vec::new();
    if !calm && random.one_in(1, 8) {
        let from = Time::from_ps(random.below(span.ps()));
        let until = from + Time::from_us(*random.pick(&[10, 300, 3_000]));
        flaps.push((random.below(u64::from(planes)) as u8, from, until));
    }
    if !calm && random.one_in(1, 20) {
        // Everything is dark for longer than a connection waits.
        may_lose = true;
        let from = Time::from_ps(random.below(span.ps()));
        let until = from + Time::from_ns(failure_timeout.as_nanos() * 3 / 2);
        let way = random.below(3);
        for sides in &mut links {
            for (side, config) in sides.iter_mut().enumerate() {
                if way == 2 || way == side as u64 {
                    config.blackholes.push(Blackhole {
                        selector: Selector::All,
                        from,
                        until,
                        holds: false,
                    });
                }
            }
        }
    }
    FaultPlan {
        links,
        flaps,
        clock_jumps: !calm && random.one_in(1, 8),
        corruption: kinds[2],
        // What is held may be sent again over other paths before it arrives.
        orderly: !kinds[3] && !kinds[4] && !held,
        may_lose,
    }
}
