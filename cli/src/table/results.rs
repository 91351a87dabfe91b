//! Experiments, and their reports for every seed.

use super::TableArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::sim::pool;
use metaroce_sim::report::Spread;
use metaroce_sim::scenario::{Document, NoFiles, Report, Unwatched, execute};
use std::collections::BTreeMap;

/// A scenario that a table needs.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What the page calls it.
    pub key: String,
    /// The text of the scenario file.
    pub scenario: &'static str,
    /// What is set in it.
    pub set: Vec<String>,
    /// Only so many seeds are run, where one takes long.
    pub seeds: Option<u64>,
}

impl Experiment {
    /// A scenario with these settings, one a line or between semicolons.
    pub fn new(key: impl Into<String>, scenario: &'static str, set: &str) -> Self {
        Self {
            key: key.into(),
            scenario,
            set: set
                .split(';')
                .map(str::trim)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
                .collect(),
            seeds: None,
        }
    }
}

/// The reports of all experiments.
#[derive(Debug, Default)]
pub struct Results {
    reports: BTreeMap<String, Vec<Report>>,
}

impl Results {
    /// The reports of an experiment, by seed; none if it was not made.
    pub fn of(&self, key: &str) -> &[Report] {
        self.reports.get(key).map_or(&[], Vec::as_slice)
    }

    /// Whether an experiment was made.
    pub fn has(&self, key: &str) -> bool {
        self.reports.contains_key(key)
    }

    /// A figure of an experiment over its seeds.
    pub fn spread(&self, key: &str, figure: impl Fn(&Report) -> f64) -> Spread {
        Spread::of(self.of(key).iter().map(figure))
    }

    /// The same, to be shown; a dash if the experiment was not made, and the way a run ended if one did not complete.
    pub fn show(&self, key: &str, decimals: usize, figure: impl Fn(&Report) -> f64) -> String {
        let reports = self.of(key);
        if reports.is_empty() {
            return "-".to_owned();
        }
        match reports
            .iter()
            .find(|report| report.summary.end != "complete")
        {
            Some(report) => report.summary.end.to_owned(),
            None => self.spread(key, figure).show(decimals),
        }
    }
}

/// Runs every experiment for every seed.
///
/// # Errors
/// If a scenario is wrong or a run does not keep the conservation laws.
pub fn run(
    experiments: &[Experiment],
    args: &TableArgs,
    interrupt: &Interrupt,
) -> Result<Results, Failure> {
    let mut runs = Vec::new();
    for experiment in experiments {
        let document = Document::parse(
            &experiment.key,
            experiment.scenario,
            &experiment.set,
            &NoFiles,
        )
        .map_err(|error| Failure::Wrong(error.to_string()))?;
        for seed in 1..=args.seeds.min(experiment.seeds.unwrap_or(u64::MAX)) {
            runs.push((experiment, document.clone(), seed));
        }
    }
    let reports = pool::run(0, runs.len(), args.jobs, args.quiet, |index| {
        if interrupt.requested() {
            return Ok(None);
        }
        let (experiment, document, seed) = &runs[index];
        let report = execute(&document.scenario, *seed, &mut Unwatched)
            .map_err(|error| Failure::Wrong(document.place(error).to_string()))?;
        if !report.summary.conserved {
            return Err(Failure::Wrong(format!(
                "{}, seed {seed}: a packet or byte was lost count of",
                experiment.key
            )));
        }
        Ok(Some(report))
    })?;
    let mut results = Results::default();
    for ((experiment, _, _), report) in runs.iter().zip(reports) {
        let report = report.ok_or_else(|| {
            Failure::Wrong("interrupted: a table is whole or not at all".to_owned())
        })?;
        results
            .reports
            .entry(experiment.key.clone())
            .or_default()
            .push(report);
    }
    Ok(results)
}
