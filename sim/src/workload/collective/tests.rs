//! Every algorithm computes what it should, in whatever order its messages go.

use super::schedule::{Node, Schedule, Step};
use super::*;
use crate::workload::check::{Happening, bytes_by_host, in_some_order, makespan};
use crate::workload::program::Action;

/// A byte of a buffer: how often each rank's original is in it.
type Cell = Vec<u32>;

const RANKS: [u32; 9] = [2, 3, 4, 5, 7, 8, 12, 13, 16];

const ALL: [Operation; 11] = [
    Operation::AllReduce(AllReduce::Ring),
    Operation::AllReduce(AllReduce::Tree),
    Operation::AllReduce(AllReduce::DoubleTree),
    Operation::AllReduce(AllReduce::HalvingDoubling),
    Operation::AllGather,
    Operation::ReduceScatter,
    Operation::Broadcast(Broadcast::Ring),
    Operation::Broadcast(Broadcast::Tree),
    Operation::AllToAll,
    Operation::AllToAllInRounds(1),
    Operation::AllToAllInRounds(3),
];

fn only(ranks: u32, rank: u32) -> Cell {
    (0..ranks).map(|other| u32::from(other == rank)).collect()
}

/// Runs the tasks of a schedule in some order on symbolic buffers. What is read may be read at any time between the start of a
/// transfer and its delivery, so it must not change in between.
fn compute(schedule: &Schedule, size: u64, seed: u64) -> Vec<Vec<Cell>> {
    let ranks = schedule.ranks();
    let hosts: Vec<_> = (0..ranks).collect();
    let mut program = Program::new(ranks);
    schedule
        .add_to(&mut program, &hosts, &[], Time::ZERO)
        .unwrap();
    let nodes: Vec<_> = schedule.nodes().cloned().collect();
    let mut buffers: Vec<Vec<Cell>> = (0..ranks)
        .map(|rank| vec![only(ranks, rank); size as usize])
        .collect();
    let mut in_flight: Vec<Vec<Cell>> = vec![Vec::new(); nodes.len()];
    let read = |buffers: &[Vec<Cell>], step: &Step| {
        buffers[step.from as usize][step.bytes.start as usize..step.bytes.end as usize].to_vec()
    };
    in_some_order(&program, seed, |happening| match happening {
        Happening::Start(id) => {
            if let Node::Send(step) = &nodes[id as usize] {
                in_flight[id as usize] = read(&buffers, step);
            }
        }
        Happening::Done(id) => {
            let Node::Send(step) = &nodes[id as usize] else {
                return;
            };
            let data = core::mem::take(&mut in_flight[id as usize]);
            assert_eq!(
                data,
                read(&buffers, step),
                "changed while it was sent: {step:?}"
            );
            for (at, cell) in (step.bytes.start as usize..).zip(data) {
                let place = &mut buffers[step.to as usize][at];
                if step.reduce {
                    place
                        .iter_mut()
                        .zip(cell)
                        .for_each(|(sum, more)| *sum += more);
                } else {
                    *place = cell;
                }
            }
        }
        Happening::Acknowledged(_) => {}
    });
    buffers
}

/// What a byte of a rank's buffer must be at the end, if it matters.
fn expected(operation: Operation, ranks: u32, size: u64, rank: u32, at: u64) -> Option<Cell> {
    let owner = (0..ranks)
        .find(|&rank| part(&(0..size), u64::from(rank), u64::from(ranks)).contains(&at))
        .unwrap();
    match operation {
        Operation::AllReduce(_) => Some(vec![1; ranks as usize]),
        Operation::AllGather => Some(only(ranks, owner)),
        Operation::ReduceScatter => (rank == owner).then(|| vec![1; ranks as usize]),
        Operation::Broadcast(_) => Some(only(ranks, 0)),
        Operation::AllToAll | Operation::AllToAllInRounds(_) => None,
    }
}

#[test]
fn every_rank_ends_with_the_right_data_in_any_order() {
    for operation in ALL {
        for ranks in RANKS {
            for (size, chunk, pipelined) in [
                (1, 1, true),
                (11, 2, true),
                (48, 5, false),
                (41, 100, true),
                (37, 1, true),
            ] {
                let schedule = operation.schedule(ranks, size, chunk, pipelined);
                for seed in 0..3 {
                    let buffers = compute(&schedule, size, seed);
                    for (rank, buffer) in (0..).zip(&buffers) {
                        for (at, cell) in (0..).zip(buffer) {
                            if let Some(right) = expected(operation, ranks, size, rank, at) {
                                assert_eq!(
                                    cell, &right,
                                    "{operation:?} of {ranks}: rank {rank}, byte {at} of {size}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn an_all_to_all_brings_each_block_once_and_keeps_to_its_window() {
    for ranks in RANKS {
        for window in [None, Some(1), Some(3)] {
            let operation = window.map_or(Operation::AllToAll, Operation::AllToAllInRounds);
            let schedule = operation.schedule(ranks, 1000, 1, true);
            let mut blocks = vec![0; (ranks * ranks) as usize];
            for node in schedule.nodes() {
                if let Node::Send(step) = node {
                    blocks[(step.from * ranks + step.to) as usize] += 1;
                    assert_eq!(
                        step.bytes,
                        part(&(0..1000), u64::from(step.to), u64::from(ranks))
                    );
                }
            }
            for from in 0..ranks {
                for to in 0..ranks {
                    assert_eq!(blocks[(from * ranks + to) as usize], u32::from(from != to));
                }
            }
            let config = Collective {
                operation,
                size_bytes: 1000,
                ..Collective::default()
            };
            let program = config.program(ranks, 0).unwrap();
            let mut open = vec![0_u32; ranks as usize];
            let mut most = 0;
            for seed in 0..20 {
                in_some_order(&program, seed, |happening| {
                    let (Happening::Start(id) | Happening::Done(id) | Happening::Acknowledged(id)) =
                        happening;
                    let Action::Transfer { from, .. } = program.tasks()[id as usize].action else {
                        return;
                    };
                    match happening {
                        Happening::Start(_) => open[from as usize] += 1,
                        Happening::Done(_) => {}
                        Happening::Acknowledged(_) => open[from as usize] -= 1,
                    }
                    most = most.max(open[from as usize]);
                });
            }
            assert!(most <= window.unwrap_or(ranks - 1), "{most}");
            assert!(
                window.is_none() || most == (ranks - 1).min(window.unwrap()),
                "{most}"
            );
        }
    }
}

/// For operations that use all ranks alike, bus bandwidth is bytes sent by a rank over time: what `PERFORMANCE.md` defines it for.
#[test]
fn as_many_bytes_go_as_theory_says() {
    for ranks in [2, 4, 8, 16, 32] {
        let size = 960 * u64::from(ranks);
        for operation in ALL {
            let config = Collective {
                operation,
                size_bytes: size,
                chunk_bytes: 64,
                ..Collective::default()
            };
            let program = config.program(ranks, 0).unwrap();
            let group = &program.groups()[0];
            let (numerator, denominator) = group.bus_factor;
            let (sent, received) = bytes_by_host(&program);
            let total: u64 = sent.iter().sum();
            let n = u64::from(ranks);
            match operation {
                Operation::Broadcast(_) => assert_eq!(total, size * (n - 1)),
                Operation::AllReduce(AllReduce::Tree | AllReduce::DoubleTree) => {
                    assert_eq!(total, 2 * size * (n - 1));
                }
                _ => {
                    let each = vec![size * numerator / denominator; ranks as usize];
                    assert_eq!((sent, received), (each.clone(), each), "{operation:?}");
                }
            }
        }
    }
}

#[test]
fn two_trees_spread_what_one_does_not() {
    let most = |algorithm| {
        let config = Collective {
            operation: Operation::AllReduce(algorithm),
            size_bytes: 1 << 20,
            ..Collective::default()
        };
        let (sent, _) = bytes_by_host(&config.program(64, 0).unwrap());
        *sent.iter().max().unwrap()
    };
    // An inner rank of one tree sends its buffer up and to two children; of two trees it does so for half, and half goes up.
    assert_eq!(most(AllReduce::Tree), 3 << 20);
    assert_eq!(most(AllReduce::DoubleTree), 2 << 20);
}

#[test]
fn steps_take_the_time_that_theory_says() {
    let time = |operation, pipelined, chunk_bytes| {
        let config = Collective {
            operation,
            pipelined,
            chunk_bytes,
            size_bytes: 1600,
            ..Collective::default()
        };
        makespan(&config.program(16, 0).unwrap(), |_| Time::from_us(1))
    };
    // Latencies: 2(n-1) on a ring, 2 log2 n by halving, n - 1 along a chain, a round each one by one.
    assert_eq!(
        time(Operation::AllReduce(AllReduce::Ring), true, 10),
        Time::from_us(30)
    );
    assert_eq!(
        time(Operation::AllReduce(AllReduce::Ring), false, 10),
        Time::from_us(30)
    );
    assert_eq!(
        time(Operation::AllReduce(AllReduce::HalvingDoubling), false, 10),
        Time::from_us(8)
    );
    assert_eq!(
        time(Operation::Broadcast(Broadcast::Ring), true, 10),
        Time::from_us(15)
    );
    assert_eq!(
        time(Operation::AllToAllInRounds(1), true, 10),
        Time::from_us(15)
    );
    assert_eq!(
        time(Operation::AllToAllInRounds(4), true, 10),
        Time::from_us(4)
    );
    assert_eq!(time(Operation::AllToAll, true, 10), Time::from_us(1));
    // Up four levels and the single child of the root, and down again.
    assert_eq!(
        time(Operation::AllReduce(AllReduce::Tree), true, 10),
        Time::from_us(8)
    );
}

/// Without pipelining, a step starts only when the whole segment of the last one is there.
#[test]
fn a_ring_without_pipelining_waits_for_whole_segments() {
    let lead = |pipelined| {
        let config = Collective {
            size_bytes: 400,
            chunk_bytes: 10,
            pipelined,
            ..Collective::default()
        };
        let program = config.program(4, 0).unwrap();
        let chunks = 10;
        let mut delivered = [0_u32; 4];
        let mut started = [0_u32; 4];
        let mut lead = 0;
        for seed in 0..10 {
            delivered.fill(0);
            started.fill(0);
            in_some_order(&program, seed, |happening| match happening {
                Happening::Start(id) => {
                    if let Action::Transfer { from, .. } = program.tasks()[id as usize].action {
                        started[from as usize] += 1;
                        // Beyond the first step, so much was started before its step's segment was there.
                        let step = (started[from as usize] - 1) / chunks;
                        lead = lead.max((step * chunks).saturating_sub(delivered[from as usize]));
                    }
                }
                Happening::Done(id) => {
                    if let Action::Transfer { to, .. } = program.tasks()[id as usize].action {
                        delivered[to as usize] += 1;
                    }
                }
                Happening::Acknowledged(_) => {}
            });
        }
        lead
    };
    assert_eq!(lead(false), 0);
    assert!(lead(true) > 0);
}

#[test]
fn a_repetition_starts_at_a_rank_when_the_last_one_is_over_there() {
    let config = Collective {
        size_bytes: 64,
        chunk_bytes: 4,
        repeat: 3,
        placement: Placement::Random,
        ranks: Some(4),
        ..Collective::default()
    };
    let program = config.program(6, 9).unwrap();
    assert_eq!(program.groups().len(), 3);
    let mut open = [[0_i32; 6]; 3];
    for task in program.tasks() {
        if let Action::Transfer { from, to, .. } = task.action {
            open[task.group as usize][from as usize] += 1;
            open[task.group as usize][to as usize] += 1;
        }
    }
    for seed in 0..20 {
        let mut open = open;
        in_some_order(&program, seed, |happening| {
            let (Happening::Start(id) | Happening::Done(id) | Happening::Acknowledged(id)) =
                happening;
            let task = &program.tasks()[id as usize];
            let Action::Transfer { from, to, .. } = task.action else {
                return;
            };
            let turn = task.group as usize;
            match happening {
                Happening::Start(_) => {
                    assert!(turn == 0 || open[turn - 1][from as usize] == 0);
                }
                Happening::Done(_) => open[turn][to as usize] -= 1,
                Happening::Acknowledged(_) => open[turn][from as usize] -= 1,
            }
        });
    }
}

#[test]
fn nonsense_is_refused() {
    let refused = |config: Collective| config.program(8, 0).unwrap_err().to_string();
    assert_eq!(
        refused(Collective {
            size_bytes: 0,
            ..Collective::default()
        }),
        "`size_bytes` is 0: it must be at least 1"
    );
    assert_eq!(
        refused(Collective {
            ranks: Some(9),
            ..Collective::default()
        }),
        "9 hosts are needed, there are 8"
    );
    assert_eq!(
        refused(Collective {
            ranks: Some(1),
            ..Collective::default()
        }),
        "`ranks` is 1: it must be enough for the operation"
    );
    assert!(
        Collective {
            operation: Operation::AllToAllInRounds(0),
            ..Collective::default()
        }
        .program(8, 0)
        .is_err()
    );
    assert!(Collective::default().program(1, 0).is_err());
}
