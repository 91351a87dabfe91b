//! What hosts are to do: [`program`] is the graph that every workload becomes.

#[cfg(test)]
mod check;

pub mod chance;
pub mod collective;
pub mod error;
pub mod htsim;
pub mod htsim_program;
pub mod incast;
pub mod kv_cache;
pub mod moe;
pub mod outcast;
pub mod permutation;
pub mod pipeline;
pub mod placement;
pub mod poisson;
pub mod program;
pub mod run;
pub mod sizes;
pub mod storage;
pub mod text;
pub mod training;
