//! `table`: the published tables, each from scenarios of its own.
//!
//! A table is two functions: the experiments that it needs, and the page that it makes of their reports. What is
//! between them, running every experiment for every seed on all processors, is the same for all.

mod chart;
mod page;
mod pages;
mod results;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::sim::system;
use clap::{Args, ValueEnum};
use page::Page;
use results::{Experiment, Results};
use std::path::PathBuf;

/// Measure a table of docs/results: the core beside other transports in the deterministic network
#[derive(Args, Debug)]
pub struct TableArgs {
    /// Which
    #[arg(value_enum)]
    pub name: Name,
    /// Seeds per row, from 1 on
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// Runs at a time [default: one per processor]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Small sizes and few rows: to see that it works, not for figures
    #[arg(long)]
    pub quick: bool,
    /// Where NAME.md and its plots are written; without, the page is printed
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// No progress bar
    #[arg(long)]
    pub quiet: bool,
}

/// The tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Name {
    /// One long flow, and a ring all-reduce, under random loss
    Loss,
    /// Many to one
    Incast,
    /// Everyone to someone else
    Permutation,
    /// All-reduce and all-to-all of 64 ranks, beside the other transports
    Collectives,
    /// 1 to 8 planes, one failing
    Planes,
    /// Links that go down, flap, lose, swallow or slow down
    Failure,
    /// Deep, shallow and shared buffers
    Buffers,
    /// Two sites, 5 ms apart
    ScaleAcross,
    /// Key-value caches from prefill to decode
    KvCache,
    /// A fabric without ECN and with other people's traffic
    Cloud,
}

/// How a table is made.
struct Table {
    experiments: fn(quick: bool) -> Vec<Experiment>,
    page: fn(results: &Results) -> Page,
}

impl Name {
    fn table(self) -> Table {
        match self {
            Self::Loss => Table {
                experiments: pages::loss::experiments,
                page: pages::loss::page,
            },
            Self::Incast => Table {
                experiments: pages::incast::experiments,
                page: pages::incast::page,
            },
            Self::Permutation => Table {
                experiments: pages::permutation::experiments,
                page: pages::permutation::page,
            },
            Self::Collectives => Table {
                experiments: pages::collectives::experiments,
                page: pages::collectives::page,
            },
            Self::Planes => Table {
                experiments: pages::planes::experiments,
                page: pages::planes::page,
            },
            Self::Failure => Table {
                experiments: pages::failure::experiments,
                page: pages::failure::page,
            },
            Self::Buffers => Table {
                experiments: pages::buffers::experiments,
                page: pages::buffers::page,
            },
            Self::ScaleAcross => Table {
                experiments: pages::scale_across::experiments,
                page: pages::scale_across::page,
            },
            Self::KvCache => Table {
                experiments: pages::kv_cache::experiments,
                page: pages::kv_cache::page,
            },
            Self::Cloud => Table {
                experiments: pages::cloud::experiments,
                page: pages::cloud::page,
            },
        }
    }

    fn text(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// Measures a table; nothing is written if it was interrupted.
///
/// # Errors
/// If an experiment cannot be run, a run breaks the conservation laws, or a file cannot be written.
pub fn run(args: &TableArgs, interrupt: &Interrupt) -> Result<(), Failure> {
    let table = args.name.table();
    let experiments = (table.experiments)(args.quick);
    let Some(results) = results::run(&experiments, args, interrupt)? else {
        return Ok(());
    };
    let page = (table.page)(&results);
    let name = args.name.text();
    let mut command = format!("cargo run --release -- table {name} --out docs/results");
    if args.seeds != 3 {
        command += &format!(" --seeds {}", args.seeds);
    }
    if args.quick {
        command += " --quick";
    }
    let text = page.markdown(&name, &command, args.seeds);
    let Some(folder) = &args.out else {
        print!("{text}");
        return Ok(());
    };
    std::fs::create_dir_all(folder).map_err(|error| system(folder, error))?;
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| system(&path, error))
    };
    write(&format!("{name}.md"), &text)?;
    for (index, chart) in page.charts.iter().enumerate() {
        write(
            &page::plot_name(&name, index),
            &chart.svg().map_err(Failure::Wrong)?,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quick(name: Name) -> TableArgs {
        TableArgs {
            name,
            seeds: 1,
            jobs: None,
            quick: true,
            out: None,
            quiet: true,
        }
    }

    #[test]
    fn every_table_has_figures_in_its_cells() {
        for &name in Name::value_variants() {
            let table = name.table();
            let experiments = (table.experiments)(true);
            let results = results::run(&experiments, &quick(name), &Interrupt::default());
            let page = (table.page)(&results.unwrap().unwrap());
            let text = page.markdown(&name.text(), "", 1);
            let rows = text.lines().filter(|line| line.starts_with('|'));
            let cells = rows.flat_map(|row| row.trim_matches('|').split('|'));
            let (mut figures, mut dashes) = (0, 0);
            for cell in cells.map(str::trim) {
                for part in cell.split([' ', '(', ')']) {
                    assert!(!matches!(part, "NaN" | "inf" | "-inf"), "{name:?}: {cell}");
                    let zero = part.parse() == Ok(0.0_f64);
                    assert!(!zero || !part.starts_with('-'), "{name:?}: {cell}");
                }
                figures += usize::from(cell.parse::<f64>().is_ok());
                dashes += usize::from(cell == "-");
            }
            // Rows that are left out where it is to be quick have dashes, but not all have.
            assert!(
                figures > dashes,
                "{name:?}: {figures} figures, {dashes} dashes"
            );
            for chart in &page.charts {
                chart.svg().unwrap();
            }
        }
    }

    #[test]
    fn settings_that_are_made_are_read_for_all_sizes() {
        let none = metaroce_sim::scenario::NoFiles;
        for &name in Name::value_variants() {
            for experiment in (name.table().experiments)(false) {
                metaroce_sim::scenario::Document::parse(
                    &experiment.key,
                    experiment.scenario,
                    &experiment.set,
                    &none,
                )
                .unwrap();
            }
        }
    }

    #[test]
    fn an_interrupt_ends_the_runs_and_leaves_no_table() {
        let interrupt = Interrupt::default();
        interrupt.request();
        let experiments = (Name::Permutation.table().experiments)(true);
        let results = results::run(&experiments, &quick(Name::Permutation), &interrupt);
        assert!(results.unwrap().is_none());
    }
}
