//! A collective operation as steps between ranks that say which bytes of the buffer they carry.
//!
//! A [`Program`] knows only how many bytes go where. Here it is still known which, so that a test can compute with them.

use core::ops::Range;

use crate::packet::HostId;
use crate::time::Time;
use crate::workload::program::{Action, After, Program, ProgramError, TaskId};

/// What a node of a schedule does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Node {
    /// A range of the sender's buffer goes to the receiver's.
    Send(Step),
    /// A rank waits for several things.
    Join(u32),
}

/// A range of bytes that goes from one rank to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The sending rank.
    pub from: u32,
    /// The receiving rank.
    pub to: u32,
    /// Which bytes of the buffer, not empty.
    pub bytes: Range<u64>,
    /// They are added to what the receiver has there, instead of replacing it.
    pub reduce: bool,
    /// See [`Action::Transfer`].
    pub flow: u32,
}

/// The nodes of one collective operation, each behind those it waits for.
#[derive(Clone, Debug)]
pub struct Schedule {
    ranks: u32,
    nodes: Vec<(Node, Range<usize>)>,
    after: Vec<After>,
}

impl Schedule {
    /// No step yet, between so many ranks.
    #[must_use]
    pub fn new(ranks: u32) -> Self {
        Self {
            ranks,
            nodes: Vec::new(),
            after: Vec::new(),
        }
    }

    /// How many ranks take part.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The nodes; the index of one is its number in [`After`], and its place among the tasks made of the schedule.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().map(|(node, _)| node)
    }

    fn push(&mut self, node: Node, after: &[After]) -> TaskId {
        let first = self.after.len();
        self.after.extend_from_slice(after);
        self.nodes.push((node, first..self.after.len()));
        // A schedule too long for its numbers does not fit into a program either, which reports it.
        self.nodes.len() as TaskId - 1
    }

    /// Adds a step.
    pub fn send(&mut self, step: Step, after: &[After]) -> TaskId {
        self.push(Node::Send(step), after)
    }

    /// What a rank has to wait for to have waited for all of these.
    pub fn join(&mut self, rank: u32, after: &[After]) -> Vec<After> {
        match after {
            [] | [_] => after.to_vec(),
            _ => vec![After::Done(self.push(Node::Join(rank), after))],
        }
    }

    /// Adds the tasks to a program: rank i on `hosts[i]`, where no step starts before `gates[i]` (which that host sees) nor
    /// before the time.
    ///
    /// # Errors
    /// If the program does not take them.
    pub fn add_to(
        &self,
        program: &mut Program,
        hosts: &[HostId],
        gates: &[Vec<After>],
        not_before: Time,
    ) -> Result<(), ProgramError> {
        let base = program.tasks().len() as TaskId;
        let mut after = Vec::new();
        for (node, range) in &self.nodes {
            let (action, rank) = match node {
                Node::Send(step) => (
                    Action::Transfer {
                        from: hosts[step.from as usize],
                        to: hosts[step.to as usize],
                        bytes: step.bytes.end - step.bytes.start,
                        flow: step.flow,
                    },
                    step.from,
                ),
                &Node::Join(rank) => (
                    Action::Pause {
                        host: hosts[rank as usize],
                        span: Time::ZERO,
                    },
                    rank,
                ),
            };
            after.clear();
            after.extend(self.after[range.clone()].iter().map(|after| match after {
                After::Done(id) => After::Done(base + id),
                After::Acknowledged(id) => After::Acknowledged(base + id),
            }));
            after.extend_from_slice(gates.get(rank as usize).map_or(&[], Vec::as_slice));
            program.add(action, not_before, &after)?;
        }
        Ok(())
    }

    /// Like [`Self::add_to`], and then for each rank a task that ends when all that was sent to it is there and all that it sent
    /// is acknowledged: its buffers are its own again.
    ///
    /// # Errors
    /// If the program does not take them.
    pub fn add_with_ends(
        &self,
        program: &mut Program,
        hosts: &[HostId],
        gates: &[Vec<After>],
        not_before: Time,
    ) -> Result<Vec<TaskId>, ProgramError> {
        let base = program.tasks().len() as TaskId;
        self.add_to(program, hosts, gates, not_before)?;
        let mut last = gates.to_vec();
        last.resize(hosts.len(), Vec::new());
        for (id, node) in (base..).zip(self.nodes()) {
            if let Node::Send(step) = node {
                last[step.to as usize].push(After::Done(id));
                last[step.from as usize].push(After::Acknowledged(id));
            }
        }
        hosts
            .iter()
            .zip(&last)
            .map(|(&host, after)| {
                let span = Time::ZERO;
                program.add(Action::Pause { host, span }, not_before, after)
            })
            .collect()
    }
}

/// Part `index` of a range cut into `parts` (at least 1) that differ by at most a byte; some are empty if there are too few bytes.
#[must_use]
pub fn part(bytes: &Range<u64>, index: u64, parts: u64) -> Range<u64> {
    let at = |index: u64| {
        let share = u128::from(bytes.end - bytes.start) * u128::from(index) / u128::from(parts);
        bytes.start + share as u64
    };
    at(index)..at(index + 1)
}

/// A range cut into chunks of so many bytes (at least 1), the last of which may be shorter.
pub fn chunks(bytes: Range<u64>, chunk: u64) -> impl Iterator<Item = Range<u64>> {
    let mut next = bytes.start;
    core::iter::from_fn(move || {
        let first = next;
        next = bytes.end.min(first.saturating_add(chunk));
        (first < bytes.end).then_some(first..next)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_chunks_cover_a_range() {
        for (bytes, parts) in [(0..0, 3), (5..6, 4), (7..1007, 7), (0..u64::MAX, 11)] {
            let parts: Vec<_> = (0..parts).map(|i| part(&bytes, i, parts)).collect();
            assert_eq!(
                (parts[0].start, parts[parts.len() - 1].end),
                (bytes.start, bytes.end)
            );
            assert!(parts.windows(2).all(|two| two[0].end == two[1].start));
            let lengths = parts.iter().map(|part| part.end - part.start);
            assert!(lengths.clone().max().unwrap() - lengths.min().unwrap() <= 1);
        }
        let cut = |bytes, chunk| chunks(bytes, chunk).collect::<Vec<_>>();
        assert_eq!(cut(3..10, 3), [3..6, 6..9, 9..10]);
        assert_eq!(cut(3..10, 6), [3..9, 9..10]);
        assert_eq!(cut(3..10, u64::MAX).len(), 1);
        assert_eq!(cut(3..3, 1), []);
    }
}
