//! Collective operations as messages between ranks.
//!
//! [`schedule`] is what the algorithms ([`ring`], [`tree`], [`halving`], [`all_to_all`]) make, and what becomes tasks.

use serde::{Deserialize, Serialize};

pub mod all_to_all;
pub mod halving;
pub mod ring;
pub mod schedule;
pub mod tree;

use self::schedule::{Schedule, part};
use super::error::{WorkloadError, require};
use super::placement::{Placement, ranks_or_all};
use super::program::{After, Group, Program};
use crate::time::Time;

/// How an all-reduce is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllReduce {
    /// Reduce-scatter and all-gather on a ring: 2(n-1) steps of 1/n of the buffer.
    #[default]
    Ring,
    /// Up and down one binary tree.
    Tree,
    /// Up and down two binary trees, half of the buffer each.
    DoubleTree,
    /// Recursive halving and doubling: 2 log2 n steps.
    HalvingDoubling,
}

/// How a broadcast is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Broadcast {
    /// From rank to rank around the ring.
    #[default]
    Ring,
    /// Down one binary tree.
    Tree,
}

/// What is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Every rank ends with the sum of all buffers.
    AllReduce(AllReduce),
    /// Every rank ends with all of the buffer, one n-th of which it had (on a ring).
    AllGather,
    /// Every rank ends with the sum of its n-th of all buffers (on a ring).
    ReduceScatter,
    /// Every rank ends with the buffer of rank 0.
    Broadcast(Broadcast),
    /// Every rank ends with its n-th of every buffer: all at once.
    AllToAll,
    /// The same with so many peers at a time, at least 1.
    AllToAllInRounds(u32),
}

/// The configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Collective {
    /// What is done.
    pub operation: Operation,
    /// The buffer of a rank, at least 1: all of it for the operations that gather or scatter, as nccl-tests count.
    pub size_bytes: u64,
    /// The longest message that rings, trees and halving send, at least 1 (an all-to-all sends what goes to a peer as one).
    pub chunk_bytes: u64,
    /// A chunk goes on as soon as it has come. If not, a ring sends a segment when the whole of the last one has come, and a tree
    /// or a chain does not cut its buffer. Halving and doubling is never pipelined.
    pub pipelined: bool,
    /// How often it is done in turn: a rank begins again when it has sent and received everything. At least 1.
    pub repeat: u32,
    /// How many ranks take part, at least 2; without: all hosts.
    pub ranks: Option<u32>,
    /// Which hosts they are.
    pub placement: Placement,
    /// When it begins.
    pub start_ns: u64,
}

impl Default for Collective {
    fn default() -> Self {
        Self {
            operation: Operation::AllReduce(AllReduce::Ring),
            size_bytes: 64 << 20,
            chunk_bytes: 64 << 10,
            pipelined: true,
            repeat: 1,
            ranks: None,
            placement: Placement::InOrder,
            start_ns: 0,
        }
    }
}

impl Operation {
    /// A name for reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AllReduce(AllReduce::Ring) => "all-reduce (ring)",
            Self::AllReduce(AllReduce::Tree) => "all-reduce (tree)",
            Self::AllReduce(AllReduce::DoubleTree) => "all-reduce (double tree)",
            Self::AllReduce(AllReduce::HalvingDoubling) => "all-reduce (halving-doubling)",
            Self::AllGather => "all-gather",
            Self::ReduceScatter => "reduce-scatter",
            Self::Broadcast(Broadcast::Ring) => "broadcast (ring)",
            Self::Broadcast(Broadcast::Tree) => "broadcast (tree)",
            Self::AllToAll => "all-to-all",
            Self::AllToAllInRounds(_) => "all-to-all (rounds)",
        }
    }

    /// Bus bandwidth is this ratio times algorithm bandwidth (nccl-tests, `doc/PERFORMANCE.md`).
    #[must_use]
    pub fn bus_factor(self, ranks: u32) -> (u64, u64) {
        let n = u64::from(ranks);
        match self {
            Self::AllReduce(_) => (2 * (n - 1), n),
            Self::AllGather | Self::ReduceScatter | Self::AllToAll | Self::AllToAllInRounds(_) => {
                (n - 1, n)
            }
            Self::Broadcast(_) => (1, 1),
        }
    }

    /// The messages, for at least 2 ranks, with chunks of at least 1 byte.
    pub(crate) fn schedule(self, ranks: u32, size: u64, chunk: u64, pipelined: bool) -> Schedule {
        let whole = if pipelined { chunk } else { u64::MAX };
        let in_ring = |phases| ring::ring(phases, ranks, size, chunk, pipelined);
        let on_trees = |trees: &[_], ways| tree::trees(trees, ways, ranks, size, whole);
        let single = || [tree::Tree::binary(ranks)];
        let block = |_, to: u32| part(&(0..size), u64::from(to), u64::from(ranks));
        match self {
            Self::AllReduce(AllReduce::Ring) => in_ring(ring::Phases::AllReduce),
            Self::AllGather => in_ring(ring::Phases::AllGather),
            Self::ReduceScatter => in_ring(ring::Phases::ReduceScatter),
            Self::AllReduce(AllReduce::Tree) => on_trees(&single(), tree::Ways::UpAndDown),
            Self::AllReduce(AllReduce::DoubleTree) => {
                on_trees(&tree::Tree::double(ranks), tree::Ways::UpAndDown)
            }
            Self::AllReduce(AllReduce::HalvingDoubling) => {
                halving::halving_doubling(ranks, size, chunk)
            }
            Self::Broadcast(Broadcast::Ring) => ring::chain(0, ranks, size, whole),
            Self::Broadcast(Broadcast::Tree) => on_trees(&single(), tree::Ways::Down),
            Self::AllToAll => all_to_all::all_to_all(ranks, None, block),
            Self::AllToAllInRounds(window) => all_to_all::all_to_all(ranks, Some(window), block),
        }
    }
}

impl Collective {
    /// The program for so many hosts; each repetition is a group.
    ///
    /// # Errors
    /// If there are too few hosts, or a field is 0 that must not be.
    pub fn program(&self, hosts: u32, seed: u64) -> Result<Program, WorkloadError> {
        let ranks = ranks_or_all(self.ranks, 2, hosts)?;
        require(self.size_bytes >= 1, "size_bytes", 0, "at least 1")?;
        require(self.chunk_bytes >= 1, "chunk_bytes", 0, "at least 1")?;
        require(self.repeat >= 1, "repeat", 0, "at least 1")?;
        if let Operation::AllToAllInRounds(window) = self.operation {
            require(
                window >= 1,
                "operation.all-to-all-in-rounds",
                0,
                "at least 1",
            )?;
        }
        let placed = self.placement.place(ranks, hosts, seed)?;
        let (size, chunk) = (self.size_bytes, self.chunk_bytes);
        let schedule = self.operation.schedule(ranks, size, chunk, self.pipelined);
        let start = Time::from_ns(self.start_ns);
        let mut program = Program::new(hosts);
        let mut gates: Vec<Vec<After>> = Vec::new();
        for turn in 1..=self.repeat {
            program.begin_group(Group {
                name: format!("{} {turn}", self.operation.name()),
                bytes: self.size_bytes,
                bus_factor: self.operation.bus_factor(ranks),
            });
            if turn == self.repeat {
                schedule.add_to(&mut program, &placed, &gates, start)?;
                break;
            }
            let ends = schedule.add_with_ends(&mut program, &placed, &gates, start)?;
            gates = ends.into_iter().map(|end| vec![After::Done(end)]).collect();
        }
        Ok(program)
    }
}

#[cfg(test)]
mod tests;
