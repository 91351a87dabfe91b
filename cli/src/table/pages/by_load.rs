//! Transports beside each other while other traffic loads the fabric more and more.

use super::rivals::Rival;
use super::{Experiment, Results};
use crate::table::chart::{Chart, Line, Scale};
use metaroce_sim::report::Table;
use metaroce_sim::scenario::Report;

/// A scenario with a background, at several loads for several transports.
pub struct ByLoad {
    /// The scenario.
    pub scenario: &'static str,
    /// Loads of the background in percent.
    pub loads: &'static [&'static str],
    /// The transports.
    pub rivals: &'static [Rival],
    /// Switches mark; if not, no transport has marks of its own.
    pub marked: bool,
    /// What is set where it is to be quick, between semicolons.
    pub quick: &'static str,
}

fn key(load: &str, rival: &Rival) -> String {
    format!("{load} {}", rival.name)
}

/// A figure of a run.
pub type Figure = fn(&Report) -> Option<f64>;
/// A column: its head, decimals and figure.
pub type Column = (&'static str, usize, Figure);

impl ByLoad {
    /// The runs: where it is to be quick only the first load.
    pub fn experiments(&self, quick: bool) -> Vec<Experiment> {
        let loads = if quick { &self.loads[..1] } else { self.loads };
        let less = if quick { self.quick } else { "" };
        let one = |load: &&'static str, rival: &Rival| {
            let set = if self.marked {
                rival.set()
            } else {
                rival.unmarked()
            };
            let set = format!("background.load_percent={load}%;run.limit=1s;{set};{less}");
            Experiment::new(key(load, rival), self.scenario, &set)
        };
        loads
            .iter()
            .flat_map(|load| self.rivals.iter().map(move |rival| one(load, rival)))
            .collect()
    }

    /// A row for each load and transport.
    pub fn table(&self, results: &Results, columns: &[Column]) -> Table {
        let heads = columns.iter().map(|column| column.0);
        let mut table = Table::new(["load beside, %", "transport"].into_iter().chain(heads));
        for load in self.loads {
            for rival in self.rivals {
                let key = key(load, rival);
                if results.has(&key) {
                    let cells = columns
                        .iter()
                        .map(|&(_, decimals, figure)| results.show(&key, decimals, figure));
                    let names = [(*load).to_owned(), rival.name.to_owned()];
                    table.row(names.into_iter().chain(cells));
                }
            }
        }
        table
    }

    /// A line for each transport, as far as its runs were complete.
    pub fn chart(&self, results: &Results, title: &str, unit: &str, figure: Figure) -> Chart {
        let point = |load: &&'static str, rival: &Rival| {
            let y = results.median(&key(load, rival), figure)?;
            Some((load.parse().ok()?, y))
        };
        let line = |rival: &Rival| Line {
            name: rival.name.to_owned(),
            points: self
                .loads
                .iter()
                .filter_map(|load| point(load, rival))
                .collect(),
        };
        Chart {
            title: title.to_owned(),
            axes: ("load beside, %".to_owned(), unit.to_owned()),
            x: Scale::Linear,
            lines: self
                .rivals
                .iter()
                .map(line)
                .filter(|line| !line.points.is_empty())
                .collect(),
        }
    }
}
