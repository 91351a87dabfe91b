//! How tests look at a program: in every order in which it might run, and as if the network were ideal.

use super::program::{Action, After, Program, TaskId};
use crate::random::{Purpose, Stream};
use crate::time::Time;

/// What happens to a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Happening {
    /// It starts.
    Start(TaskId),
    /// A pause ends, or a transfer is delivered.
    Done(TaskId),
    /// A transfer is acknowledged.
    Acknowledged(TaskId),
}

/// Runs a program in a random order that its dependencies allow; no order is kept within a flow.
pub fn in_some_order(program: &Program, seed: u64, mut see: impl FnMut(Happening)) {
    let mut stream = Stream::new(seed, Purpose::Plan, 0);
    let tasks = program.tasks();
    let mut missing: Vec<usize> = vec![0; tasks.len()];
    let mut waiting = [vec![Vec::new(); tasks.len()], vec![Vec::new(); tasks.len()]];
    let mut possible = Vec::new();
    for (id, task) in (0..).zip(tasks) {
        missing[id as usize] = program.dependencies(task).len();
        for after in program.dependencies(task) {
            match *after {
                After::Done(on) => waiting[0][on as usize].push(id),
                After::Acknowledged(on) => waiting[1][on as usize].push(id),
            }
        }
        if missing[id as usize] == 0 {
            possible.push(Happening::Start(id));
        }
    }
    let mut started = 0;
    while !possible.is_empty() {
        let next = possible.swap_remove(stream.below(possible.len() as u64) as usize);
        see(next);
        let released = match next {
            Happening::Start(id) => {
                started += 1;
                possible.push(Happening::Done(id));
                continue;
            }
            Happening::Done(id) => {
                if let Action::Transfer { .. } = tasks[id as usize].action {
                    possible.push(Happening::Acknowledged(id));
                }
                &waiting[0][id as usize]
            }
            Happening::Acknowledged(id) => &waiting[1][id as usize],
        };
        for &id in released {
            missing[id as usize] -= 1;
            if missing[id as usize] == 0 {
                possible.push(Happening::Start(id));
            }
        }
    }
    assert_eq!(started, tasks.len(), "some tasks never started");
}

/// When each task ends if a transfer of so many bytes takes so long, whatever else goes on, and acknowledgments no time.
pub fn ends(program: &Program, transfer: impl Fn(u64) -> Time) -> Vec<Time> {
    let mut ends: Vec<Time> = Vec::new();
    for task in program.tasks() {
        let start = program
            .dependencies(task)
            .iter()
            .map(|&(After::Done(on) | After::Acknowledged(on))| ends[on as usize])
            .fold(task.not_before, Time::max);
        ends.push(match task.action {
            Action::Transfer { bytes, .. } => start + transfer(bytes),
            Action::Pause { span, .. } => start + span,
        });
    }
    ends
}

/// When the last task ends; see [`ends`].
pub fn makespan(program: &Program, transfer: impl Fn(u64) -> Time) -> Time {
    ends(program, transfer)
        .into_iter()
        .fold(Time::ZERO, Time::max)
}

/// Bytes that each host sends, and receives.
pub fn bytes_by_host(program: &Program) -> (Vec<u64>, Vec<u64>) {
    let none = vec![0; program.hosts() as usize];
    let mut counts = (none.clone(), none);
    for task in program.tasks() {
        if let Action::Transfer {
            from, to, bytes, ..
        } = task.action
        {
            counts.0[from as usize] += bytes;
            counts.1[to as usize] += bytes;
        }
    }
    counts
}
