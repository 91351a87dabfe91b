//! The figures of the deterministic network: runs the scenarios and prints markdown tables.
//!
//! `cargo run --release -p metaroce-sim --example figures -- all --write`

#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use metaroce_sim::faults::Reordering;
use metaroce_sim::lab::failure::{self, FailureConfig, What};
use metaroce_sim::lab::incast::{self, IncastConfig};
use metaroce_sim::lab::latency::{self, LatencyConfig};
use metaroce_sim::lab::loss::{self, LossConfig};
use metaroce_sim::lab::setup::Failure;
use metaroce_sim::lab::{fairness, single};
use metaroce_sim::random::Probability;
use metaroce_sim::report::{Spread, Table};
use metaroce_sim::time::Time;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Figure {
    Loss,
    Reordering,
    Failure,
    Incast,
    Fairness,
    Latency,
    Single,
    All,
}

impl Figure {
    const EACH: [Self; 7] = [
        Self::Single,
        Self::Loss,
        Self::Reordering,
        Self::Failure,
        Self::Incast,
        Self::Fairness,
        Self::Latency,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Reordering => "reordering",
            Self::Failure => "failure",
            Self::Incast => "incast",
            Self::Fairness => "fairness",
            Self::Latency => "latency",
            Self::Single => "single",
            Self::All => "all",
        }
    }
}

/// Figures of the MetaRoCE core in a deterministic network (100 Gb/s, 4096-byte payloads, 14.09 us round trip).
#[derive(Parser, Debug)]
struct Args {
    /// What to measure.
    figure: Figure,
    /// Seeds per row.
    #[arg(long, default_value_t = 5)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    /// Paths (several: a row each).
    #[arg(long, value_delimiter = ',', default_values_t = [8, 64])]
    paths: Vec<u8>,
    /// Loss in percent (several: a row each).
    #[arg(long, value_delimiter = ',', default_values_t = [0.0, 0.1, 1.0, 2.0, 5.0, 10.0])]
    loss: Vec<f64>,
    /// Bytes of the long flow.
    #[arg(long, default_value_t = 200_000_000)]
    bytes: u32,
    /// Senders of the incast (several: a row each).
    #[arg(long, value_delimiter = ',', default_values_t = [15, 127])]
    senders: Vec<u32>,
    /// Small writes per seed.
    #[arg(long, default_value_t = 20_000)]
    writes: u32,
    /// Print goodput over time after a failure.
    #[arg(long)]
    curve: bool,
    /// Write each table to this folder's NAME.md, with the command on top.
    #[arg(long, num_args = 0..=1, default_missing_value = "docs/results")]
    write: Option<PathBuf>,
}

impl Args {
    fn seeds(&self) -> std::ops::Range<u64> {
        self.first_seed..self.first_seed + self.seeds
    }

    /// Runs once per seed.
    fn each<R>(&self, mut run: impl FnMut(u64) -> Result<R, Failure>) -> Result<Vec<R>, String> {
        self.seeds()
            .map(|seed| run(seed).map_err(|error| format!("seed {seed}: {error}")))
            .collect()
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let figures = if args.figure == Figure::All {
        &Figure::EACH[..]
    } else {
        &[args.figure][..]
    };
    let mut failed = false;
    for &figure in figures {
        let began = Instant::now();
        let result = match figure {
            Figure::Loss => loss_table(&args),
            Figure::Reordering => reordering_table(&args),
            Figure::Failure => failure_table(&args),
            Figure::Incast => incast_table(&args),
            Figure::Fairness => fairness_table(&args),
            Figure::Latency => latency_table(&args),
            Figure::Single | Figure::All => single_table(&args),
        };
        let (text, problems) = result;
        println!("{text}");
        eprintln!(
            "({}: {:.1} s)",
            figure.name(),
            began.elapsed().as_secs_f64()
        );
        for problem in &problems {
            failed = true;
            eprintln!("{}: {problem}", figure.name());
        }
        if let Some(folder) = &args.write
            && problems.is_empty()
            && let Err(error) = write(folder, figure, &text)
        {
            failed = true;
            eprintln!("cannot write to {}: {error}", folder.display());
        }
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

fn write(folder: &PathBuf, figure: Figure, text: &str) -> std::io::Result<()> {
    let given: Vec<String> = std::env::args()
        .skip(2)
        .filter(|arg| !arg.starts_with("--write"))
        .collect();
    let mut command = format!(
        "cargo run --release -p metaroce-sim --example figures -- {}",
        figure.name()
    );
    for arg in given {
        let _ = write!(command, " {arg}");
    }
    std::fs::create_dir_all(folder)?;
    let body = format!("# lab-{}\n\n`{command} --write`\n\n{text}", figure.name());
    std::fs::write(folder.join(format!("lab-{}.md", figure.name())), body)
}

/// A table, and what went wrong.
type Output = (String, Vec<String>);

/// Adds a row of a run, or what went wrong.
fn add<R>(
    table: &mut Table,
    problems: &mut Vec<String>,
    name: &[String],
    runs: Result<Vec<R>, String>,
    cells: impl FnOnce(&[R]) -> Vec<String>,
) {
    match runs {
        Ok(runs) => {
            let row: Vec<String> = name.iter().cloned().chain(cells(&runs)).collect();
            table.row(row);
        }
        Err(error) => {
            problems.push(format!("{}: {error}", name.join(", ")));
            let mut row = name.to_vec();
            row.push(error);
            table.row(row);
        }
    }
}

fn spread<R>(runs: &[R], decimals: usize, value: impl Fn(&R) -> f64) -> String {
    Spread::of(runs.iter().map(value)).show(decimals)
}

fn single_table(args: &Args) -> Output {
    let mut table = Table::new(["paths", "2 MB write alone, us"]);
    let mut problems = Vec::new();
    for &paths in &args.paths {
        let runs = args.each(|seed| single::run(2_000_000, paths, seed));
        add(
            &mut table,
            &mut problems,
            &[paths.to_string()],
            runs,
            |runs| vec![spread(runs, 2, |time| time.us_f64())],
        );
    }
    let text = format!(
        "One write of 2,000,000 bytes between two hosts of an idle star on an established, idle connection; time from\n\
         posting to completion. Median (range) of {} seeds.\n\n{}",
        args.seeds,
        table.markdown()
    );
    (text, problems)
}

fn loss_table(args: &Args) -> Output {
    let mut kept = Table::new([
        "loss, %",
        "paths",
        "goodput / bound",
        "retransmitted",
        "spurious",
        "duplicate bytes",
        "fences",
    ]);
    let mut rest = Table::new([
        "loss, %",
        "paths",
        "new data, %",
        "sent again, %",
        "probes etc., %",
        "line idle, %",
        "tail, us",
        "probes",
        "acknowledgments",
    ]);
    let mut problems = Vec::new();
    for &percent in &args.loss {
        for &paths in &args.paths {
            let name = [percent.to_string(), paths.to_string()];
            let runs = args.each(|seed| {
                loss::run(&LossConfig {
                    loss: percent / 100.0,
                    paths,
                    bytes: args.bytes,
                    reordering: None,
                    tolerance: 0,
                    seed,
                })
            });
            if let Ok(runs) = &runs {
                let of =
                    |value: fn(&loss::LossResult) -> f64, decimals| spread(runs, decimals, value);
                rest.row([
                    name[0].clone(),
                    name[1].clone(),
                    of(|run| run.new_data * 100.0, 2),
                    of(|run| run.again * 100.0, 2),
                    of(|run| run.control * 100.0, 3),
                    of(|run| run.idle * 100.0, 3),
                    of(|run| run.tail.us_f64(), 1),
                    of(|run| run.probes as f64, 0),
                    of(|run| run.acknowledgments as f64, 0),
                ]);
            }
            add(&mut kept, &mut problems, &name, runs, |runs| {
                vec![
                    spread(runs, 4, |run| run.efficiency),
                    spread(runs, 0, |run| run.retransmissions as f64),
                    spread(runs, 0, |run| run.spurious as f64),
                    spread(runs, 0, |run| run.duplicate_bytes as f64),
                    spread(runs, 0, |run| run.fences as f64),
                ]
            });
        }
    }
    let text = format!(
        "One write of {} bytes over one 100 Gb/s link, 14.09 us round trip; every packet of every kind is lost with the\n\
         given probability, both ways. The bound is 97.2 Gb/s x (1 - loss). Median (range) of {} seeds. *Spurious*: data\n\
         that reached the receiver more often than once, counted by the network. *Duplicate bytes*: placed in memory\n\
         beyond those of the message.\n\n{}\n\
         Where the time goes, in shares of the completion time; *tail*: from the end of the last new packet to the\n\
         completion (at least one round trip).\n\n{}",
        args.bytes,
        args.seeds,
        kept.markdown(),
        rest.markdown()
    );
    (text, problems)
}

fn reordering_table(args: &Args) -> Output {
    let mut table = Table::new([
        "overtaken by up to, us",
        "tolerance",
        "loss, %",
        "paths",
        "goodput / bound",
        "retransmitted",
        "spurious",
        "counted by the sender",
        "dropped by the receiver",
        "duplicate bytes placed",
    ]);
    let mut problems = Vec::new();
    for (delay_us, tolerance, percent) in [
        (0, 0, 1.0),
        (2, 0, 0.0),
        (2, 0, 1.0),
        (2, 16, 1.0),
        (20, 0, 1.0),
    ] {
        for &paths in &args.paths {
            let name = [
                delay_us.to_string(),
                tolerance.to_string(),
                percent.to_string(),
                paths.to_string(),
            ];
            let runs = args.each(|seed| {
                loss::run(&LossConfig {
                    loss: percent / 100.0,
                    paths,
                    bytes: args.bytes / 10,
                    reordering: (delay_us != 0).then(|| Reordering {
                        probability: Probability::new(0.1),
                        max_delay: Time::from_us(delay_us),
                    }),
                    tolerance,
                    seed,
                })
            });
            add(&mut table, &mut problems, &name, runs, |runs| {
                vec![
                    spread(runs, 4, |run| run.efficiency),
                    spread(runs, 0, |run| run.retransmissions as f64),
                    spread(runs, 0, |run| run.spurious as f64),
                    spread(runs, 0, |run| run.spurious_counted as f64),
                    spread(runs, 0, |run| run.duplicates_dropped as f64),
                    spread(runs, 0, |run| run.duplicate_bytes as f64),
                ]
            });
        }
    }
    let text = format!(
        "One write of {} bytes as in `loss`; a tenth of all packets takes up to the given time longer, so that others of the same path\n\
         overtake it. *Tolerance*: packets by which the sender lets a path reorder. *Spurious*: copies that reached the receiver,\n\
         as the network counts them, as the sender does from acknowledgments, and as the receiver drops them. Median (range) of {} seeds.\n\n{}",
        args.bytes / 10,
        args.seeds,
        table.markdown()
    );
    (text, problems)
}

fn failure_table(args: &Args) -> Output {
    let mut table = Table::new([
        "fails",
        "paths",
        "95 % again after, us",
        "after return, us",
        "before, %",
        "data lost",
        "sent again",
        "fences",
        "duplicate bytes",
    ]);
    let mut problems = Vec::new();
    let mut curves = String::new();
    for (what, name) in [
        (What::Forward, "one path, way there"),
        (What::Back, "one path, way back"),
        (What::Both, "one path, both ways"),
        (What::Plane, "one of 4 planes"),
    ] {
        for &paths in &args.paths {
            let runs = args.each(|seed| {
                let path = (seed % u64::from(paths)) as u8;
                failure::run(&FailureConfig {
                    what,
                    paths,
                    path,
                    seed,
                })
            });
            if args.curve
                && let Ok(runs) = &runs
            {
                let curve: Vec<String> = runs[0]
                    .curve_gbps
                    .iter()
                    .take(60)
                    .map(|gbps| format!("{gbps:.0}"))
                    .collect();
                let _ = writeln!(
                    curves,
                    "\n{name}, {paths} paths, Gbit/s per 2 us: {}",
                    curve.join(" ")
                );
            }
            add(
                &mut table,
                &mut problems,
                &[name.to_string(), paths.to_string()],
                runs,
                |runs| {
                    let time = |value: Option<Time>| value.map_or(f64::INFINITY, Time::us_f64);
                    vec![
                        spread(runs, 0, |run| time(run.recovery)),
                        if what == What::Plane {
                            spread(runs, 0, |run| time(run.recovery_after_return))
                        } else {
                            String::from("-")
                        },
                        spread(runs, 1, |run| run.before * 100.0),
                        spread(runs, 0, |run| run.swallowed as f64),
                        spread(runs, 0, |run| run.retransmissions as f64),
                        spread(runs, 0, |run| run.fences as f64),
                        spread(runs, 0, |run| run.duplicate_bytes as f64),
                    ]
                },
            );
        }
    }
    let text = format!(
        "200 us into a long flow a path's packets vanish (those of its UDP source port), or all of one of four planes\n\
         of 100 Gb/s, which returns 600 us later. Goodput is counted at the receiver in bins of 2 us; recovered is the\n\
         first moment from which on the mean of 8 us is never below 95 % of the payload rate that is left. Median\n\
         (range) of {} seeds, each with another path.\n\n{}{curves}",
        args.seeds,
        table.markdown()
    );
    (text, problems)
}

fn incast_table(args: &Args) -> Output {
    let mut table = Table::new([
        "senders",
        "paths",
        "announced",
        "last, us",
        "first, us",
        "Jain",
        "sent again",
        "dropped",
        "queue, kB",
        "hints settled, us",
        "fences",
        "duplicate bytes",
    ]);
    let mut problems = Vec::new();
    for &senders in &args.senders {
        for &paths in &args.paths {
            for announce in [true, false] {
                let runs = args.each(|seed| {
                    incast::run(&IncastConfig {
                        senders,
                        bytes: 2_000_000,
                        paths,
                        announce,
                        hints: true,
                        seed,
                    })
                });
                let said = if announce { "yes" } else { "no" };
                let name = [senders.to_string(), paths.to_string(), said.to_string()];
                add(&mut table, &mut problems, &name, runs, |runs| {
                    let settled = |time: Option<Time>| time.map_or(f64::INFINITY, Time::us_f64);
                    vec![
                        spread(runs, 0, |run| run.last.us_f64()),
                        spread(runs, 0, |run| run.first.us_f64()),
                        spread(runs, 4, |run| run.jain),
                        spread(runs, 0, |run| run.retransmissions as f64),
                        spread(runs, 0, |run| run.dropped as f64),
                        spread(runs, 0, |run| run.max_queue_bytes as f64 / 1e3),
                        spread(runs, 0, |run| settled(run.settled)),
                        spread(runs, 0, |run| run.fences as f64),
                        spread(runs, 0, |run| run.duplicate_bytes as f64),
                    ]
                });
            }
        }
    }
    let text = format!(
        "Every sender writes 2,000,000 bytes to one host through one switch (queue 892,250 B, marks from 37,350 to\n\
         145,250 B, 100 Gb/s, 14.09 us); connections are made and idle before, all start at once. *Hints settled*: from then\n\
         on and until half of the ideal time every sender holds a hint within 10 % of its share (looked at every\n\
         microsecond). Median (range) of {} seeds.\n\n{}",
        args.seeds,
        table.markdown()
    );
    (text, problems)
}

fn fairness_table(args: &Args) -> Output {
    use fairness::Meeting::{Receiver, Spine};
    let mut table = Table::new([
        "where",
        "paths",
        "hints",
        "Gbit/s",
        "Gbit/s",
        "ratio",
        "queue, kB",
    ]);
    let mut problems = Vec::new();
    let rows = [
        (Receiver, [4, 32], true),
        (Receiver, [8, 8], true),
        (Receiver, [4, 32], false),
        (Spine, [4, 32], true),
        (Spine, [32, 32], true),
    ];
    for (meeting, paths, hints) in rows {
        let runs = args.each(|seed| fairness::run(meeting, paths, Time::from_ms(10), hints, seed));
        let name = [
            String::from(if meeting == Spine {
                "spine"
            } else {
                "receiver"
            }),
            format!("{} and {}", paths[0], paths[1]),
            String::from(if hints { "yes" } else { "no" }),
        ];
        add(&mut table, &mut problems, &name, runs, |runs| {
            vec![
                spread(runs, 2, |run| run.gbps[0]),
                spread(runs, 2, |run| run.gbps[1]),
                spread(runs, 4, |run| run.ratio),
                spread(runs, 0, |run| run.max_queue_bytes as f64 / 1e3),
            ]
        });
    }
    let text = format!(
        "Two hosts write to a third through one port, or (*spine*) to two others through the only link between two switches, for 10 ms (after 1 ms of\n\
         start-up). At the receiver its hints divide the port; on the way marks alone do. Median (range) of {} seeds.\n\n{}",
        args.seeds,
        table.markdown()
    );
    (text, problems)
}

fn latency_table(args: &Args) -> Output {
    let mut table = Table::new([
        "loss, %",
        "paths",
        "p50",
        "p99",
        "p99.9",
        "max",
        "lost packets",
        "probes",
    ]);
    let mut problems = Vec::new();
    for percent in [0.0, 1.0] {
        for &paths in &args.paths {
            let runs = args.each(|seed| {
                latency::run(&LatencyConfig {
                    loss: percent / 100.0,
                    paths,
                    bytes: 64,
                    writes: args.writes,
                    pause: Time::from_us(10),
                    seed,
                })
            });
            let name = [percent.to_string(), paths.to_string()];
            add(&mut table, &mut problems, &name, runs, |runs| {
                vec![
                    spread(runs, 2, |run| run.p50),
                    spread(runs, 2, |run| run.p99),
                    spread(runs, 2, |run| run.p999),
                    spread(runs, 2, |run| run.max),
                    spread(runs, 0, |run| run.lost as f64),
                    spread(runs, 0, |run| run.probes as f64),
                ]
            });
        }
    }
    let text = format!(
        "{} writes of 64 bytes per seed, one at a time, up to 10 us apart; every packet of every kind is lost with the\n\
         given probability, both ways. From posting to completion, in round trips of 14.09 us. Median (range) of {}\n\
         seeds.\n\n{}",
        args.writes,
        args.seeds,
        table.markdown()
    );
    (text, problems)
}
