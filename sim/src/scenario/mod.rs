//! Scenarios: what is simulated, as a file says it, and what came of it.
//!
//! A scenario is a fabric, what goes wrong in it, a transport for its hosts and what they are to do. [`Document`] reads one from
//! TOML (`docs/scenarios.md` lists every key), [`execute`] runs it for a seed, and the [`Report`] has all figures. Equal scenarios
//! and seeds give equal reports, to the last byte.
//!
//! ```
//! use metaroce_sim::scenario::{Document, NoFiles, Unwatched, execute};
//!
//! let text = r#"
//! schema = 1
//! fabric.shape = { kind = "star", hosts = 4 }
//! transport = { kind = "metaroce", paths = 8 }
//! workload = { kind = "incast", size_bytes = "64KiB" }
//! "#;
//! let document = Document::parse("incast.toml", text, &["fabric.shape.hosts=3"], &NoFiles).unwrap();
//! let report = execute(&document.scenario, 1, &mut Unwatched).unwrap();
//! assert_eq!(report.flows.len(), 2);
//! assert!(report.summary.conserved);
//! ```

pub mod columns;
mod document;
mod error;
mod execute;
pub mod fault;
mod read;
pub mod report;
mod statistics;
pub mod transport;
mod tree;

pub use document::{Document, Files, NoFiles};
pub use error::ScenarioError;
pub use execute::{Moment, Unwatched, Watch, execute};
pub(crate) use execute::{Plan, Setting, with_hosts};
pub use report::Report;
pub use transport::Transport;

use serde::{Deserialize, Serialize};

use crate::fabric::FabricConfig;
use crate::time::Time;
use crate::workload::Workload;
use crate::workload::poisson::Poisson;
use crate::workload::run::RunConfig;
use fault::Fault;

/// The version of the format. It changes when files have to.
pub const SCHEMA: u32 = 1;

/// A scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The version of the format: 1.
    pub schema: u32,
    /// A name for reports.
    #[serde(default)]
    pub name: String,
    /// What it is about, for readers.
    #[serde(default)]
    pub description: String,
    /// Hosts, switches and links.
    #[serde(default)]
    pub fabric: FabricConfig,
    /// What goes wrong, and when.
    #[serde(default)]
    pub fault: Vec<Fault>,
    /// What hosts speak.
    pub transport: Transport,
    /// What hosts are to do.
    pub workload: Workload,
    /// Flows that arrive at random besides, over the same hosts. They are in no result, and the run does not wait for them.
    #[serde(default)]
    pub background: Option<Poisson>,
    /// Limits, and what is watched.
    #[serde(default)]
    pub run: RunSettings,
}

/// Limits of a run, and what is watched.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunSettings {
    /// What is left to chance follows from it.
    pub seed: u64,
    /// Simulated time for hosts to get ready.
    pub ready_limit: Time,
    /// Idle time before the workload begins.
    pub settle: Time,
    /// Time for the workload.
    pub limit: Time,
    /// How often whoever watches is told where the run is, in simulated time, at least 100 ns.
    pub watch: Time,
    /// A time series has bins of this length, at least 100 ns; without, there is none.
    pub series: Option<Time>,
    /// Ports, by name, whose queues are in the time series.
    pub queues: Vec<String>,
}

/// Looks that are closer together than this would be all that a run does.
const LEAST_WATCH: Time = Time::from_ns(100);

impl Default for RunSettings {
    fn default() -> Self {
        let run = RunConfig::default();
        Self {
            seed: 1,
            ready_limit: run.ready_limit,
            settle: run.settle,
            limit: run.limit,
            watch: run.watch,
            series: None,
            queues: Vec::new(),
        }
    }
}

impl RunSettings {
    pub(crate) fn config(&self) -> RunConfig {
        RunConfig {
            ready_limit: self.ready_limit,
            settle: self.settle,
            limit: self.limit,
            watch: self.series.unwrap_or(self.watch).max(LEAST_WATCH),
        }
    }
}
