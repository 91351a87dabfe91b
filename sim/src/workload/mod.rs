//! What hosts are to do: [`program`] is the graph that every workload becomes.

#[cfg(test)]
mod check;

pub mod chance;
pub mod collective;
pub mod error;
pub mod incast;
pub mod outcast;
pub mod permutation;
pub mod placement;
pub mod program;
pub mod run;
