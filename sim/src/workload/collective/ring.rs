//! Collectives on a ring: each rank sends to the next only.
//!
//! Reduce-scatter and all-gather, which make an all-reduce together, are as in P. Patarasuk and X. Yuan, "Bandwidth optimal
//! all-reduce algorithms for clusters of workstations", JPDC 69 (2009); the pipelined broadcast is a chain.

use core::ops::Range;

use super::schedule::{Schedule, Step, chunks, part};
use crate::workload::program::{After, TaskId};

/// What the ring does with the segments: one n-th of the buffer belongs to each of the n ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phases {
    /// Each rank ends with the sum of its segment.
    ReduceScatter,
    /// Each rank begins with its segment and ends with all.
    AllGather,
    /// Both in turn.
    AllReduce,
}

/// The schedule for a buffer of so many bytes. Segments go in chunks; a chunk goes on as soon as it has come (`pipelined`), or
/// when its whole segment has.
#[must_use]
pub fn ring(phases: Phases, ranks: u32, size: u64, chunk: u64, pipelined: bool) -> Schedule {
    let mut schedule = Schedule::new(ranks);
    // In each step rank r sends the segment of rank r - lag: what it received (and added to) in the step before.
    let reduce = (1..ranks).map(|lag| (lag, true));
    let gather = (0..ranks - 1).map(|lag| (lag, false));
    let steps: Vec<(u32, bool)> = match phases {
        Phases::ReduceScatter => reduce.collect(),
        Phases::AllGather => gather.collect(),
        Phases::AllReduce => reduce.chain(gather).collect(),
    };
    let mut arrived: Vec<Vec<After>> = vec![Vec::new(); ranks as usize];
    for (lag, reduce) in steps {
        let mut arrivals: Vec<Vec<After>> = vec![Vec::new(); ranks as usize];
        for from in 0..ranks {
            let to = (from + 1) % ranks;
            let owner = (from + ranks - lag) % ranks;
            let segment = part(&(0..size), u64::from(owner), u64::from(ranks));
            let before = &arrived[from as usize];
            let whole = if pipelined {
                Vec::new()
            } else {
                schedule.join(from, before)
            };
            for (index, bytes) in chunks(segment, chunk).enumerate() {
                let after = if pipelined {
                    before.get(index..=index).unwrap_or_default()
                } else {
                    &whole
                };
                let step = Step {
                    from,
                    to,
                    bytes,
                    reduce,
                    // Chunks do not wait for each other.
                    flow: index as u32,
                };
                let id = schedule.send(step, after);
                arrivals[to as usize].push(After::Done(id));
            }
        }
        arrived = arrivals;
    }
    schedule
}

/// The schedule of a broadcast along the ring from `root`, in chunks that go on as soon as they have come.
#[must_use]
pub fn chain(root: u32, ranks: u32, size: u64, chunk: u64) -> Schedule {
    let mut schedule = Schedule::new(ranks);
    for bytes in chunks(0..size, chunk) {
        let mut came: Option<TaskId> = None;
        for hop in 0..ranks - 1 {
            let step = Step {
                from: (root + hop) % ranks,
                to: (root + hop + 1) % ranks,
                bytes: Range::clone(&bytes),
                reduce: false,
                flow: 0,
            };
            let after = came.map(After::Done);
            came = Some(schedule.send(step, after.as_slice()));
        }
    }
    schedule
}
