//! Many runs: a grid of values times seeds, over all processors, that can be stopped and taken up again.

use super::progress::Bar;
use super::{SimArgs, document, pool, single, system, usage};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;
use metaroce_sim::scenario::{Document, Moment, Watch, execute};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A key and its values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    key: String,
    values: Vec<String>,
}

impl FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, values) = text
            .split_once('=')
            .ok_or("write KEY=VALUE,VALUE,..., such as fabric.planes=1,2,4")?;
        let values = split(values);
        if key.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err("write KEY=VALUE,VALUE,..., such as fabric.planes=1,2,4".to_owned());
        }
        Ok(Self {
            key: key.trim().to_owned(),
            values,
        })
    }
}

/// Splits at commas outside of brackets and quotes, so that values may be tables and lists.
fn split(text: &str) -> Vec<String> {
    let (mut depth, mut quoted) = (0_usize, false);
    let mut parts = vec![String::new()];
    for letter in text.chars() {
        match letter {
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(letter);
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

/// What a run is, and what came of it: a file of its own for each.
#[derive(Clone, Serialize, Deserialize)]
struct Done {
    values: Vec<String>,
    seed: u64,
    summary: Value,
}

/// A run of the grid.
struct Cell {
    values: Vec<String>,
    seed: u64,
    document: Document,
    key: String,
}

impl Cell {
    fn file(&self, folder: &Path) -> PathBuf {
        folder.join("runs").join(&self.key).with_extension("json")
    }

    /// The result that is there, as a run of the present grid: the axes may have been others when it was stored.
    fn load(&self, folder: &Path) -> Option<Done> {
        let text = std::fs::read(self.file(folder)).ok()?;
        let done = serde_json::from_slice::<Done>(&text).ok()?;
        Some(Done {
            values: self.values.clone(),
            ..done
        })
    }

    /// Writes a result so that it is there entirely or not at all.
    fn store(&self, folder: &Path, done: &Done) -> Result<(), Failure> {
        let path = self.file(folder);
        let draft = path.with_extension("draft");
        let text = serde_json::to_vec(done).map_err(|error| system(&path, error))?;
        std::fs::write(&draft, text)
            .and_then(|()| std::fs::rename(&draft, &path))
            .map_err(|error| system(&path, error))
    }
}

/// Runs the grid.
///
/// # Errors
/// If a scenario of it is wrong, or a file cannot be written.
pub fn run(args: &SimArgs, text: &str, json: bool, interrupt: &Interrupt) -> Result<(), Failure> {
    if args.trace || !args.pcap.is_empty() {
        return Err(Failure::Usage(
            "--trace and --pcap are for a single run, not for --sweep or --seeds".to_owned(),
        ));
    }
    let cells = cells(args, text)?;
    if let Some(folder) = &args.out {
        let runs = folder.join("runs");
        std::fs::create_dir_all(&runs).map_err(|error| system(&runs, error))?;
    }
    let mut results: Vec<Option<Done>> = cells
        .iter()
        .map(|cell| args.out.as_deref().and_then(|folder| cell.load(folder)))
        .collect();
    let open: Vec<usize> = (0..cells.len())
        .filter(|&index| results[index].is_none())
        .collect();
    let done = pool::run(
        cells.len() - open.len(),
        open.len(),
        args.sweep.jobs,
        args.quiet || json,
        |index| run_cell(&cells[open[index]], args.out.as_deref(), interrupt),
    )?;
    for (index, done) in open.into_iter().zip(done) {
        results[index] = done;
    }
    let done: Vec<Done> = results.into_iter().flatten().collect();
    report(args, &done, cells.len(), json)
}

/// All runs, in the order of the axes; seeds are the innermost.
fn cells(args: &SimArgs, text: &str) -> Result<Vec<Cell>, Failure> {
    let mut grid: Vec<Vec<String>> = vec![Vec::new()];
    for axis in &args.sweep.axes {
        grid = grid
            .iter()
            .flat_map(|row| {
                axis.values.iter().map(move |value| {
                    let mut row = row.clone();
                    row.push(value.clone());
                    row
                })
            })
            .collect();
    }
    let mut cells = Vec::new();
    for values in grid {
        let mut overrides = args.overrides.clone();
        let set = args.sweep.axes.iter().zip(&values);
        overrides.extend(set.map(|(axis, value)| format!("{}={value}", axis.key)));
        let document = document(&args.file, text, &overrides)?;
        let seeds = match (&args.sweep.seeds, args.seed) {
            (Some(seeds), _) => seeds.clone(),
            (None, Some(seed)) => seed..=seed,
            (None, None) => document.scenario.run.seed..=document.scenario.run.seed,
        };
        for seed in seeds {
            cells.push(Cell {
                key: key(&document, seed)?,
                values: values.clone(),
                seed,
                document: document.clone(),
            });
        }
    }
    Ok(cells)
}

/// A name for a run that no other run has: a hash of all that decides what comes of it.
fn key(document: &Document, seed: u64) -> Result<String, Failure> {
    let scenario = serde_json::to_string(&document.scenario)
        .map_err(|error| Failure::Wrong(format!("the scenario cannot be written: {error}")))?;
    let version = env!("CARGO_PKG_VERSION");
    let hash = Sha256::digest(format!("{version}\n{seed}\n{scenario}"));
    Ok(hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// Stops when the user wants an end.
struct Stoppable(Bar);

impl Watch for Stoppable {
    fn progress(&mut self, moment: &Moment) -> ControlFlow<()> {
        self.0.show(moment)
    }
}

/// One run; none if it was interrupted.
fn run_cell(
    cell: &Cell,
    folder: Option<&Path>,
    interrupt: &Interrupt,
) -> Result<Option<Done>, Failure> {
    if interrupt.requested() {
        return Ok(None);
    }
    let mut watch = Stoppable(Bar::new(true, interrupt));
    let report = execute(&cell.document.scenario, cell.seed, &mut watch)
        .map_err(|error| usage(&cell.document.place(error)))?;
    if report.summary.end == "stopped" {
        return Ok(None);
    }
    let done = Done {
        values: cell.values.clone(),
        seed: cell.seed,
        summary: single::summary(&report)?,
    };
    if let Some(folder) = folder {
        cell.store(folder, &done)?;
    }
    Ok(Some(done))
}

fn report(args: &SimArgs, done: &[Done], all: usize, json: bool) -> Result<(), Failure> {
    if let Some(folder) = &args.out {
        let path = folder.join("sweep.csv");
        write_csv(args, done, &path).map_err(|error| system(&path, error))?;
        let path = folder.join("sweep.md");
        std::fs::write(&path, markdown(args, done)).map_err(|error| system(&path, error))?;
    }
    if json {
        let runs: Vec<Value> = done
            .iter()
            .map(|run| {
                let axes = args.sweep.axes.iter().zip(&run.values);
                let set: serde_json::Map<String, Value> = axes
                    .map(|(axis, value)| (axis.key.clone(), Value::from(value.as_str())))
                    .collect();
                serde_json::json!({ "set": set, "seed": run.seed, "summary": run.summary })
            })
            .collect();
        output::json(&Value::from(runs));
    } else {
        output::line(markdown(args, done));
        if done.len() < all {
            output::line(format_args!("{} of {all} runs are done.", done.len()));
        }
    }
    Ok(())
}

/// The numbers and texts of a summary, by the names of their keys.
fn flat(prefix: &str, value: &Value, into: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let name = if prefix.is_empty() {
                    key.clone()
                } else {
                    format!("{prefix}.{key}")
                };
                flat(&name, value, into);
            }
        }
        Value::String(text) => into.push((prefix.to_owned(), text.clone())),
        other => into.push((prefix.to_owned(), other.to_string())),
    }
}

fn write_csv(args: &SimArgs, done: &[Done], path: &Path) -> csv::Result<()> {
    let mut writer = csv::Writer::from_path(path)?;
    for (index, run) in done.iter().enumerate() {
        let mut columns: Vec<(String, String)> = args
            .sweep
            .axes
            .iter()
            .zip(&run.values)
            .map(|(axis, value)| (axis.key.clone(), value.clone()))
            .collect();
        flat("", &run.summary, &mut columns);
        if index == 0 {
            writer.write_record(columns.iter().map(|(name, _)| name))?;
        }
        writer.write_record(columns.iter().map(|(_, value)| value))?;
    }
    Ok(writer.flush()?)
}

/// The figures of the table: a heading, where it is in a summary, and decimals.
const FIGURES: [(&str, &str, usize); 9] = [
    ("p50 us", "/acknowledged_us/p50", 1),
    ("p99 us", "/acknowledged_us/p99", 1),
    ("max us", "/acknowledged_us/max", 1),
    ("slowdown p99", "/slowdown/p99", 2),
    ("goodput Gbit/s", "/goodput_gbps", 2),
    ("busbw Gbit/s", "/busbw_gbps/p50", 2),
    ("Jain", "/jain", 3),
    ("sent again", "/counters/retransmissions", 0),
    ("lost bytes", "/lost_bytes", 0),
];

/// A table with a row for each point of the grid: means over seeds.
fn markdown(args: &SimArgs, done: &[Done]) -> String {
    let axes: Vec<&str> = args
        .sweep
        .axes
        .iter()
        .map(|axis| axis.key.as_str())
        .collect();
    let shown: Vec<_> = FIGURES
        .iter()
        .filter(|(_, at, _)| {
            // Columns that say nothing are left out.
            !at.contains("busbw") && !at.contains("lost")
                || done.iter().any(|run| number(&run.summary, at) > 0.0)
        })
        .collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut heading: Vec<String> = axes.iter().map(|&axis| axis.to_owned()).collect();
    heading.extend(["runs".to_owned(), "complete".to_owned()]);
    heading.extend(shown.iter().map(|(name, ..)| (*name).to_owned()));
    let mut rest = done;
    while let Some(first) = rest.first() {
        let count = rest
            .iter()
            .take_while(|run| run.values == first.values)
            .count();
        let (runs, others) = rest.split_at(count);
        rest = others;
        let complete = runs.iter().filter(|run| run.summary["end"] == "complete");
        let mut row = first.values.clone();
        row.extend([count.to_string(), complete.count().to_string()]);
        for &&(_, at, decimals) in &shown {
            let sum: f64 = runs.iter().map(|run| number(&run.summary, at)).sum();
            row.push(format!("{:.decimals$}", sum / count as f64));
        }
        rows.push(row);
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(&heading);
    text += &line(&vec!["---".to_owned(); heading.len()]);
    for row in rows {
        text += &line(&row);
    }
    text
}

fn number(summary: &Value, at: &str) -> f64 {
    summary.pointer(at).and_then(Value::as_f64).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_may_have_lists_and_tables() {
        let axis: Axis = "a.b = 1, {kind=\"x\", y=[1,2]},\"p,q\"".parse().unwrap();
        assert_eq!(axis.key, "a.b");
        assert_eq!(axis.values, ["1", "{kind=\"x\", y=[1,2]}", "\"p,q\""]);
        assert!("a".parse::<Axis>().is_err() && "a=1,,2".parse::<Axis>().is_err());
    }
}
