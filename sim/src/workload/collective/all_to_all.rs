//! All-to-all: every rank has something for every other one.
//!
//! In rounds, rank r sends to r + k in round k, so that nobody receives from two at once (the ring order of the pairwise exchange in
//! R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of collective communication operations in MPICH", 2005).

use core::ops::Range;

use super::schedule::{Schedule, Step};
use crate::workload::program::{After, TaskId};

/// The schedule in which `bytes(from, to)` go from each rank to each other one, each as one message. Without a window all start at
/// once; with one of w, a rank starts round k when its sending and its receiving of round k - w are done.
pub fn all_to_all(
    ranks: u32,
    window: Option<u32>,
    bytes: impl Fn(u32, u32) -> Range<u64>,
) -> Schedule {
    let mut schedule = Schedule::new(ranks);
    // By round and sender; where there was nothing to send, there is nothing to wait for.
    let mut rounds: Vec<Vec<Option<TaskId>>> = Vec::new();
    for distance in 1..ranks {
        let before = window
            .and_then(|window| rounds.len().checked_sub(window as usize))
            .map(|index| (&rounds[index], index as u32 + 1));
        let mut round = Vec::new();
        for from in 0..ranks {
            let to = (from + distance) % ranks;
            let mut after = Vec::new();
            if let Some((sent, distance)) = before {
                let source = (from + ranks - distance) % ranks;
                after.extend(sent[from as usize].map(After::Acknowledged));
                after.extend(sent[source as usize].map(After::Done));
            }
            let bytes = bytes(from, to);
            round.push((!bytes.is_empty()).then(|| {
                let step = Step {
                    from,
                    to,
                    bytes,
                    reduce: false,
                    flow: 0,
                };
                schedule.send(step, &after)
            }));
        }
        rounds.push(round);
    }
    schedule
}
