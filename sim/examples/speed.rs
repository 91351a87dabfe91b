//! How fast the simulator is on one core: packet-hops a second, with the whole core at every host.
//!
//! `cargo run --release -p metaroce-sim --example speed`

use clap::Parser;
use metaroce_sim::report::{Spread, Table};
use metaroce_sim::scenario::{Document, NoFiles, Unwatched, execute};
use std::process::ExitCode;
use std::time::Instant;

/// Packet-hops a second on one core (permutation in a three-tier fat tree, the whole core at every host)
#[derive(Parser)]
struct Args {
    /// Repeats of each row
    #[arg(long, default_value_t = 5)]
    repeats: u64,
    /// The 1,024 hosts, too
    #[arg(long)]
    large: bool,
}

const SCENARIO: &str = include_str!("../../scenarios/permutation.toml");

fn main() -> ExitCode {
    let args = Args::parse();
    let mut rows = vec![
        (8, 8, 2),
        (8, 8, 8),
        (8, 8, 32),
        (8, 64, 2),
        (8, 64, 8),
        (8, 64, 32),
    ];
    if args.large {
        rows.extend([(16, 8, 2), (16, 64, 2)]);
    }
    let mut table = Table::new([
        "hosts",
        "paths",
        "MB each",
        "packet-hops",
        "seconds",
        "million packet-hops/s",
        "ns/packet-hop",
    ]);
    for (k, paths, megabytes) in rows {
        let set = [
            format!("fabric.shape.k={k}"),
            format!("transport.paths={paths}"),
            format!("workload.size_bytes={}", megabytes * 1_000_000),
        ];
        let document = match Document::parse("permutation", SCENARIO, &set, &NoFiles) {
            Ok(document) => document,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        };
        let mut hops = 0;
        let mut seconds = Vec::new();
        for _ in 0..args.repeats {
            let start = Instant::now();
            match execute(&document.scenario, 1, &mut Unwatched) {
                Ok(report) if report.summary.end == "complete" => hops = report.summary.packet_hops,
                other => {
                    eprintln!("{other:?}");
                    return ExitCode::FAILURE;
                }
            }
            seconds.push(start.elapsed().as_secs_f64());
        }
        let of = |figure: &dyn Fn(f64) -> f64| Spread::of(seconds.iter().map(|&time| figure(time)));
        table.row([
            (k * k * k / 4).to_string(),
            paths.to_string(),
            megabytes.to_string(),
            hops.to_string(),
            of(&|time| time).show(2),
            of(&|time| hops as f64 / time / 1e6).show(2),
            of(&|time| time * 1e9 / hops as f64).show(0),
        ]);
    }
    print!("{}", table.markdown());
    ExitCode::SUCCESS
}
