//! Experiments, and their reports for every seed.

use super::TableArgs;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::sim::pool;
use metaroce_sim::report::Spread;
use metaroce_sim::scenario::{Document, Moment, NoFiles, Report, Watch, execute};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

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

    /// All reports.
    pub fn all(&self) -> impl Iterator<Item = &Report> {
        self.reports.values().flatten()
    }

    /// Whether an experiment was made.
    pub fn has(&self, key: &str) -> bool {
        self.reports.contains_key(key)
    }

    /// How a run of an experiment ended that did not complete.
    fn bad_end(&self, key: &str) -> Option<&'static str> {
        let ends = self.of(key).iter().map(|report| report.summary.end);
        ends.into_iter().find(|&end| end != "complete")
    }

    /// The median of a figure, if the experiment was made and complete for every seed.
    pub fn median<F: Into<Option<f64>>>(
        &self,
        key: &str,
        figure: impl Fn(&Report) -> F,
    ) -> Option<f64> {
        if self.bad_end(key).is_some() {
            return None;
        }
        Some(spread(self.of(key).iter().map(figure))?.median)
    }

    /// A figure to be shown; a dash if there is none, and the way a run ended if one did not complete.
    pub fn show<F: Into<Option<f64>>>(
        &self,
        key: &str,
        decimals: usize,
        figure: impl Fn(&Report) -> F,
    ) -> String {
        match self.bad_end(key) {
            Some(end) => end.to_owned(),
            None => self.show_so_far(key, decimals, figure),
        }
    }

    /// The same for runs that are cut off on purpose.
    pub fn show_so_far<F: Into<Option<f64>>>(
        &self,
        key: &str,
        decimals: usize,
        figure: impl Fn(&Report) -> F,
    ) -> String {
        shown(spread(self.of(key).iter().map(figure)), decimals)
    }

    /// A figure of each run beside that of another experiment with the same seed.
    pub fn show_beside<F: Into<Option<f64>>>(
        &self,
        key: &str,
        other: &str,
        decimals: usize,
        figure: impl Fn(&Report, &Report) -> F,
    ) -> String {
        let pairs = self.of(key).iter().zip(self.of(other));
        shown(
            spread(pairs.map(|(run, other)| figure(run, other))),
            decimals,
        )
    }
}

/// The spread of figures; none if one of them does not exist.
fn spread<F: Into<Option<f64>>>(figures: impl Iterator<Item = F>) -> Option<Spread> {
    let figures: Vec<f64> = figures.map(Into::into).collect::<Option<_>>()?;
    (!figures.is_empty()).then(|| Spread::of(figures))
}

fn shown(spread: Option<Spread>, decimals: usize) -> String {
    spread.map_or_else(|| "-".to_owned(), |spread| spread.show(decimals))
}

/// Stops when the user wants an end.
struct Stoppable<'a>(&'a Interrupt);

impl Watch for Stoppable<'_> {
    fn progress(&mut self, _: &Moment) -> ControlFlow<()> {
        if self.0.requested() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Runs every experiment for every seed; none if it was interrupted: a table is whole or not at all.
///
/// # Errors
/// If a scenario is wrong or a run does not keep the conservation laws.
pub fn run(
    experiments: &[Experiment],
    args: &TableArgs,
    interrupt: &Interrupt,
) -> Result<Option<Results>, Failure> {
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
        let report = execute(&document.scenario, *seed, &mut Stoppable(interrupt))
            .map_err(|error| Failure::Wrong(document.place(error).to_string()))?;
        if report.summary.end == "stopped" {
            return Ok(None);
        }
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
        let Some(report) = report else {
            return Ok(None);
        };
        results
            .reports
            .entry(experiment.key.clone())
            .or_default()
            .push(report);
    }
    Ok(Some(results))
}

#[cfg(test)]
mod tests {
    use super::super::pages::figures::tests::report;
    use super::*;

    fn results(goodput: &[f64]) -> Results {
        let mut results = Results::default();
        let runs = goodput.iter().map(|&gbps| report(&[gbps])).collect();
        results.reports.insert("runs".to_owned(), runs);
        results
    }

    fn first(report: &Report) -> Option<f64> {
        report.series.first().map(|bin| bin.goodput_gbps)
    }

    #[test]
    fn what_does_not_exist_is_a_dash() {
        let mut results = results(&[1.0, 3.0]);
        assert_eq!(results.show("runs", 1, first), "2.0 (1.0 to 3.0)");
        assert_eq!(results.median("runs", first), Some(2.0));
        assert_eq!(results.show("others", 1, first), "-");
        assert_eq!(results.median("others", first), None);
        results.reports.get_mut("runs").unwrap()[1].series.clear();
        assert_eq!(results.show("runs", 1, first), "-");
    }

    #[test]
    fn one_run_that_is_not_complete_says_so_for_all() {
        let mut results = results(&[1.0, 3.0]);
        results.reports.get_mut("runs").unwrap()[1].summary.end = "stuck";
        assert_eq!(results.show("runs", 1, first), "stuck");
        assert_eq!(results.median("runs", first), None);
        assert_eq!(results.show_so_far("runs", 0, first), "2 (1 to 3)");
    }

    #[test]
    fn a_run_that_is_under_way_is_stopped() {
        let text =
            "schema = 1\ntransport = \"rocev2\"\nworkload = \"permutation\"\nrun.watch = \"1us\"";
        let none: [&str; 0] = [];
        let document = Document::parse("test", text, &none, &NoFiles).unwrap();
        let interrupt = Interrupt::default();
        interrupt.request();
        let report = execute(&document.scenario, 1, &mut Stoppable(&interrupt)).unwrap();
        assert_eq!(report.summary.end, "stopped");
        assert!(report.summary.elapsed_ns < 10_000);
    }

    #[test]
    fn runs_are_compared_seed_by_seed() {
        let mut results = results(&[1.0, 3.0]);
        let others = vec![report(&[2.0]), report(&[3.0])];
        results.reports.insert("others".to_owned(), others);
        let ratio = |run: &Report, other: &Report| Some(first(run)? / first(other)?);
        let shown = results.show_beside("runs", "others", 2, ratio);
        assert_eq!(shown, "0.75 (0.50 to 1.00)");
    }
}
