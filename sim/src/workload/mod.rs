//! What hosts are to do: [`program`] is the graph that every workload becomes.

pub mod program;
pub mod run;
