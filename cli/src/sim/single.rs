//! One run.

use super::progress::Bar;
use super::watch::Watcher;
use super::{SimArgs, columns, document, show, system, usage};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;
use metaroce_sim::scenario::columns::tables;
use metaroce_sim::scenario::report::Report;
use metaroce_sim::scenario::{Scenario, execute};
use std::path::Path;

/// Runs the scenario once.
///
/// # Errors
/// If the scenario is wrong, its end was not reached, or a file cannot be written.
pub fn run(args: &SimArgs, text: &str, json: bool, interrupt: &Interrupt) -> Result<(), Failure> {
    let document = document(&args.file, text, &args.overrides)?;
    let scenario = &document.scenario;
    let seed = args.seed.unwrap_or(scenario.run.seed);
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).map_err(|error| system(folder, error))?;
    }
    let bar = Bar::new(args.quiet || json, interrupt);
    let mut watcher = Watcher::new(args, scenario, seed, bar);
    let report =
        execute(scenario, seed, &mut watcher).map_err(|error| usage(&document.place(error)))?;
    let seconds = watcher.finish()?.finish();
    if let Some(folder) = &args.out {
        write(&report, scenario, folder, args)?;
    }
    if json {
        output::json(&summary(&report)?);
    } else {
        show::report(&report, seconds);
    }
    match report.summary.end {
        "complete" | "stopped" => Ok(()),
        end => Err(Failure::Wrong(format!(
            "the workload was not completed: {end}"
        ))),
    }
}

/// The summary as JSON.
pub fn summary(report: &Report) -> Result<serde_json::Value, Failure> {
    serde_json::to_value(&report.summary)
        .map_err(|error| Failure::Wrong(format!("the summary cannot be written: {error}")))
}

fn write(
    report: &Report,
    scenario: &Scenario,
    folder: &Path,
    args: &SimArgs,
) -> Result<(), Failure> {
    let path = folder.join("summary.json");
    let text = format!("{:#}\n", summary(report)?);
    std::fs::write(&path, text).map_err(|error| system(&path, error))?;
    // What was run, with every default: enough to run it again.
    let path = folder.join("scenario.json");
    let text = serde_json::to_string_pretty(scenario).map_err(|error| system(&path, error))?;
    std::fs::write(&path, text + "\n").map_err(|error| system(&path, error))?;
    for table in tables(report, &scenario.run.queues) {
        columns::write(&table, folder, args.format)?;
    }
    Ok(())
}
