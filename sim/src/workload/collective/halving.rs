//! All-reduce by recursive halving and doubling: log2 n steps down in which pairs exchange halves of what they still sum, and
//! as many up in which they exchange results.
//!
//! R. Rabenseifner, "Optimization of collective reduction operations", ICCS 2004; the treatment of a number of ranks that is no power of
//! two is MPICH's: R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of collective communication operations in MPICH", 2005.

use core::ops::Range;

use super::schedule::{Schedule, Step, chunks, part};
use crate::workload::program::After;

/// The schedule for a buffer of so many bytes, in chunks; a step starts at a rank when all of the one before is there.
#[must_use]
pub fn halving_doubling(ranks: u32, size: u64, chunk: u64) -> Schedule {
    let mut run = Run {
        schedule: Schedule::new(ranks),
        ready: vec![Vec::new(); ranks as usize],
        came: vec![Vec::new(); ranks as usize],
        chunk,
    };
    let core = 1 << ranks.ilog2();
    let spare = ranks - core;
    // Of the first 2 x spare ranks the even ones hand their data to the odd ones and wait for the result.
    for pair in 0..spare {
        run.send(2 * pair, 2 * pair + 1, 0..size, true);
    }
    run.end_step();
    let rank = |member: u32| {
        if member < spare {
            2 * member + 1
        } else {
            member + spare
        }
    };
    // What a member still sums after it has exchanged with partners at a distance of `core / 2` to `distance`: of `core / distance`
    // parts the one whose number, from the top, is made of its bits.
    let kept = |member: u32, distance: u32| {
        let parts = core / distance;
        let index = member / distance;
        range_of(size, index, parts)
    };
    let distances: Vec<u32> = (0..core.ilog2()).rev().map(|bit| 1 << bit).collect();
    for &distance in &distances {
        for member in 0..core {
            let partner = member ^ distance;
            run.send(rank(member), rank(partner), kept(partner, distance), true);
        }
        run.end_step();
    }
    for &distance in distances.iter().rev() {
        for member in 0..core {
            let partner = member ^ distance;
            run.send(rank(member), rank(partner), kept(member, distance), false);
        }
        run.end_step();
    }
    for pair in 0..spare {
        run.send(2 * pair + 1, 2 * pair, 0..size, false);
    }
    run.schedule
}

/// Part `index` of a power of two of parts, cut as halves of halves: the parts of twice as many are halves of these.
fn range_of(size: u64, index: u32, parts: u32) -> Range<u64> {
    let mut range = 0..size;
    for bit in (0..parts.ilog2()).rev() {
        range = part(&range, u64::from(index >> bit & 1), 2);
    }
    range
}

struct Run {
    schedule: Schedule,
    /// By rank: what is to be waited for to have all that came in the steps before.
    ready: Vec<Vec<After>>,
    /// By rank: what comes in this step.
    came: Vec<Vec<After>>,
    chunk: u64,
}

impl Run {
    fn send(&mut self, from: u32, to: u32, bytes: Range<u64>, reduce: bool) {
        for bytes in chunks(bytes, self.chunk) {
            let step = Step {
                from,
                to,
                bytes,
                reduce,
                flow: 0,
            };
            let id = self.schedule.send(step, &self.ready[from as usize]);
            self.came[to as usize].push(After::Done(id));
        }
    }

    fn end_step(&mut self) {
        for (rank, (ready, came)) in (0..).zip(self.ready.iter_mut().zip(&mut self.came)) {
            ready.append(came);
            *ready = self.schedule.join(rank, ready);
        }
    }
}
