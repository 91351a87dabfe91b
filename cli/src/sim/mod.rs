//! `sim`: scenarios in the deterministic network.

mod columns;
#[cfg(feature = "parquet")]
mod parquet;
pub mod pool;
mod progress;
mod show;
mod single;
mod sweep;
mod watch;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use clap::{Args, ValueEnum};
use metaroce_sim::scenario::{Document, Files, ScenarioError};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// Run a scenario file in the deterministic network (docs/scenarios.md lists every key)
#[derive(Args, Debug)]
pub struct SimArgs {
    /// The scenario, a TOML file
    pub file: PathBuf,
    /// Set a key of the scenario, such as fabric.planes=4; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub overrides: Vec<String>,
    /// The seed [default: run.seed of the scenario]
    #[arg(long, conflicts_with = "seeds")]
    pub seed: Option<u64>,
    /// Write all figures into this folder
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Format of the tables in --out
    #[arg(long, value_enum, default_value = "csv", requires = "out")]
    pub format: Format,
    /// Write what happens to packets to trace.ndjson in --out
    #[arg(long, requires = "out")]
    pub trace: bool,
    /// Capture what these ports send to capture.pcapng in --out, by name such as p0:h3>s1 (or p0:h3 for both ways of a host's link)
    #[arg(long, value_name = "PORT", value_delimiter = ',', requires = "out")]
    pub pcap: Vec<String>,
    /// No progress bar
    #[arg(long)]
    pub quiet: bool,
    #[command(flatten)]
    pub sweep: SweepArgs,
}

/// Many runs of one scenario.
#[derive(Args, Debug)]
#[command(next_help_heading = "Sweeps")]
pub struct SweepArgs {
    /// Run once for each of these values of a key; several keys make a grid
    #[arg(long = "sweep", value_name = "KEY=VALUE,...")]
    pub axes: Vec<sweep::Axis>,
    /// Run once for each of these seeds, such as 1..5 (both included)
    #[arg(long, value_name = "FIRST..LAST", value_parser = parse_seeds)]
    pub seeds: Option<RangeInclusive<u64>>,
    /// Runs at a time [default: one per processor]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
}

/// The format of tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// Comma-separated values
    Csv,
    /// Apache Parquet
    #[cfg(feature = "parquet")]
    Parquet,
}

fn parse_seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.trim().trim_start_matches('=').parse::<u64>().ok();
    match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => Ok(first..=last),
        _ => Err("write the first and the last seed, such as 1..5".to_owned()),
    }
}

/// Files beside the scenario.
struct Beside<'a>(&'a Path);

impl Files for Beside<'_> {
    fn read(&self, path: &str) -> Result<String, String> {
        let folder = self.0.parent().unwrap_or(Path::new(""));
        std::fs::read_to_string(folder.join(path)).map_err(|error| error.to_string())
    }
}

/// Reads the scenario with overrides.
fn document(file: &Path, text: &str, overrides: &[String]) -> Result<Document, Failure> {
    let name = file.display().to_string();
    Document::parse(&name, text, overrides, &Beside(file)).map_err(|error| usage(&error))
}

fn usage(error: &ScenarioError) -> Failure {
    Failure::Usage(error.to_string())
}

pub(crate) fn system(path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::System(format!("cannot write {}: {error}", path.display()))
}

/// Runs the command.
///
/// # Errors
/// If the scenario is wrong, or a file cannot be read or written.
pub fn run(args: &SimArgs, json: bool, interrupt: &Interrupt) -> Result<(), Failure> {
    let text = std::fs::read_to_string(&args.file).map_err(|error| {
        Failure::System(format!("cannot read {}: {error}", args.file.display()))
    })?;
    if args.sweep.axes.is_empty() && args.sweep.seeds.is_none() {
        single::run(args, &text, json, interrupt)
    } else {
        sweep::run(args, &text, json, interrupt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_or_one() {
        assert_eq!(parse_seeds("1..5"), Ok(1..=5));
        assert_eq!(parse_seeds("7"), Ok(7..=7));
        assert!(parse_seeds("5..1").is_err() && parse_seeds("a").is_err());
    }
}
