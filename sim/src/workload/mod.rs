//! What hosts are to do: [`program`] is the graph that every workload becomes.
//!
//! [`Workload`] is the front door: a description that can be written in a file, and what makes a program of it.

use serde::{Deserialize, Serialize};

#[cfg(test)]
mod check;

pub mod chance;
pub mod collective;
pub mod error;
pub mod goal;
pub mod goal_parse;
pub mod htsim;
pub mod htsim_program;
pub mod htsim_topology;
mod htsim_triggers;
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

pub use self::error::WorkloadError;

/// A workload of any kind.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// Every host sends to one host and receives from one.
    Permutation(permutation::Permutation),
    /// Many hosts send to one.
    Incast(incast::Incast),
    /// One host sends to many.
    Outcast(outcast::Outcast),
    /// A collective operation.
    Collective(collective::Collective),
    /// Flows that arrive at random.
    Poisson(poisson::Poisson),
    /// Data-parallel training.
    Training(training::Training),
    /// Pipeline-parallel training.
    Pipeline(pipeline::Pipeline),
    /// Layers of a mixture of experts.
    Moe(moe::Moe),
    /// Disaggregated inference.
    KvCache(kv_cache::KvCache),
    /// Striped storage.
    Storage(storage::Storage),
    /// A connection matrix of htsim.
    Htsim(htsim_program::Htsim),
    /// A GOAL trace.
    Goal(goal::GoalTrace),
}

impl Workload {
    /// The program for so many hosts. What is left to chance depends on the seed only.
    ///
    /// # Errors
    /// If the description makes no sense, or needs more hosts.
    pub fn program(&self, hosts: u32, seed: u64) -> Result<program::Program, WorkloadError> {
        match self {
            Self::Permutation(config) => config.program(hosts, seed),
            Self::Incast(config) => config.program(hosts, seed),
            Self::Outcast(config) => config.program(hosts, seed),
            Self::Collective(config) => config.program(hosts, seed),
            Self::Poisson(config) => config.program(hosts, seed),
            Self::Training(config) => config.program(hosts, seed),
            Self::Pipeline(config) => config.program(hosts, seed),
            Self::Moe(config) => config.program(hosts, seed),
            Self::KvCache(config) => config.program(hosts, seed),
            Self::Storage(config) => config.program(hosts, seed),
            Self::Htsim(config) => config.program(hosts, seed),
            Self::Goal(config) => config.program(hosts, seed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check::in_some_order;
    use super::*;

    const KINDS: [&str; 12] = [
        "permutation",
        "incast",
        "outcast",
        "collective",
        "poisson",
        "training",
        "pipeline",
        "moe",
        "kv-cache",
        "storage",
        "htsim",
        "goal",
    ];

    fn read(text: &str) -> Result<Workload, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn every_kind_has_defaults_that_run_and_can_be_written() {
        for kind in KINDS {
            let workload = read(&format!("[{kind}]")).unwrap();
            let program = workload.program(16, 1).unwrap();
            assert_eq!(Ok(&program), workload.program(16, 1).as_ref(), "{kind}");
            assert!(!program.pairs().is_empty());
            in_some_order(&program, 3, |_| {});
            let written = toml::to_string(&workload).unwrap();
            assert_eq!(read(&written).unwrap(), workload);
            let unknown = format!("[{kind}]\nsise = 1");
            assert!(read(&unknown).is_err(), "{kind}");
        }
        assert!(read("[permutations]").is_err());
    }

    #[test]
    fn a_description_is_read_as_it_is_meant() {
        let text = r#"
            [collective]
            operation = { all-reduce = "double-tree" }
            size_bytes = 1000
            placement = { stride = 4 }
            ranks = 8
        "#;
        let expected = collective::Collective {
            operation: collective::Operation::AllReduce(collective::AllReduce::DoubleTree),
            size_bytes: 1000,
            placement: placement::Placement::Stride(4),
            ranks: Some(8),
            ..collective::Collective::default()
        };
        assert_eq!(read(text), Ok(Workload::Collective(expected)));
        for text in [
            "[collective]\noperation = { all-to-all-in-rounds = 2 }",
            "[collective]\noperation = \"all-gather\"",
            "[poisson]\nload_percent = 1\nsizes = { points = [[100, 5000], [200, 10000]] }",
            "[training]\nstragglers = { seldom = [1, 50] }\nplacement = \"random\"",
        ] {
            assert!(read(text).unwrap().program(4, 0).is_ok(), "{text}");
        }
    }
}
