//! Several planes: do they add up, and what if one fails?

use super::{Experiment, Results, scenarios};
use crate::table::chart::{Chart, Line, Scale};
use crate::table::page::Page;
use metaroce_sim::report::Table;
use metaroce_sim::scenario::Report;

const PLANES: [u32; 4] = [1, 2, 4, 8];
/// Name, fabric and workload: so many connections.
const LOADS: [(&str, &str); 2] = [
    (
        "64 connections",
        "workload.kind=permutation;workload.pattern={ shift = 8 };workload.size_bytes=BYTES",
    ),
    (
        "4,032 connections",
        "workload.kind=collective;workload.operation=all-to-all;workload.size_bytes=BYTES",
    ),
];
const FABRIC: &str =
    "fabric.shape={ kind = \"leaf-spine\", leaves = 8, hosts_per_leaf = 8, spines = 8 }";

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    let (fabric, bytes) = if quick {
        (
            "fabric.shape={ kind = \"leaf-spine\", leaves = 2, hosts_per_leaf = 2, spines = 2 };workload.pattern={ shift = 2 }",
            "4MiB",
        )
    } else {
        (FABRIC, "128MiB")
    };
    let mut all = Vec::new();
    for planes in PLANES.into_iter().rev() {
        for (name, load) in LOADS {
            let load = load.replace("BYTES", bytes);
            let load = if quick {
                load.replace("shift = 8", "shift = 2")
            } else {
                load
            };
            let fabric = fabric.split(';').next().unwrap_or(fabric);
            all.push(Experiment::new(
                format!("{name} {planes}"),
                scenarios::PLANES,
                &format!("{fabric};fabric.planes={planes};{load}"),
            ));
        }
    }
    for planes in [2, 4, 8] {
        let set = format!(
            "fabric.shape={{ kind = \"leaf-spine\", leaves = 2, hosts_per_leaf = 4, spines = 4 }};fabric.planes={planes};workload.pattern={{ shift = 4 }};workload.size_bytes={};\
             fault=[{{ links = {{ plane = 1 }}, effect = \"blackhole\", from = \"300us\", until = \"900us\" }}];run.series=10us",
            if quick { "8MiB" } else { "64MiB" }
        );
        all.push(Experiment::new(
            format!("fails {planes}"),
            scenarios::PLANES,
            &set,
        ));
    }
    all
}

fn goodput(report: &Report) -> f64 {
    report.summary.goodput_gbps
}

/// When goodput is back at 95 % of `share` of the best for good, after a time, us; `until` ends the search.
fn recovered(report: &Report, after_us: f64, until_us: f64, gbps: f64) -> f64 {
    let bins = report
        .series
        .iter()
        .map(|bin| (bin.time_ns as f64 / 1e3, bin.goodput_gbps));
    let low = bins
        .filter(|&(at, goodput)| at > after_us && at <= until_us && goodput < 0.95 * gbps)
        .map(|(at, _)| at);
    low.fold(after_us, f64::max) - after_us
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "64 hosts under 8 leaves and 8 spines, each plane a fabric of its own of 100 Gb/s, base round trip 14.09 us, one connection between two hosts, 64 paths. 64 connections: each host sends 128 MiB to the host 8 further on. \
         4,032: an all-to-all of 128 MiB.",
    );
    let mut table = Table::new([
        "planes",
        "64 connections, Gbit/s",
        "times one plane",
        "4,032 connections, Gbit/s",
        "times one plane",
        "at least",
    ]);
    for (planes, limit) in PLANES.into_iter().zip(["-", "1.95", "3.85", "7.6"]) {
        let cells = LOADS.iter().flat_map(|(name, _)| {
            let key = format!("{name} {planes}");
            let one = results.spread(&format!("{name} 1"), goodput).median;
            [
                results.show(&key, 1, goodput),
                results.show(&key, 2, |report| goodput(report) / one),
            ]
        });
        table.row(
            std::iter::once(planes.to_string())
                .chain(cells)
                .chain([limit.to_owned()]),
        );
    }
    page.section(
        "Total goodput",
        "Delivered bytes over the time to the last delivery, all hosts.",
        table,
    );

    let mut table = Table::new([
        "planes",
        "all again without it after, us",
        "all again with it after, us",
        "sent again",
        "transfers failed",
        "bytes lost",
    ]);
    let mut lines = Vec::new();
    for planes in [2_u32, 4, 8] {
        let key = format!("fails {planes}");
        let all = 8.0 * 97.2 * f64::from(planes);
        let rest = all * f64::from(planes - 1) / f64::from(planes);
        let end = |report: &Report| report.summary.fct_us.min - 20.0;
        table.row([
            planes.to_string(),
            results.show(&key, 0, |report| recovered(report, 300.0, 900.0, rest)),
            results.show(&key, 0, |report| recovered(report, 900.0, end(report), all)),
            results.show(&key, 0, |report| {
                report.summary.counters.retransmissions as f64
            }),
            results.show(&key, 0, |report| report.summary.failed as f64),
            results.show(&key, 0, |report| report.summary.lost_bytes as f64),
        ]);
        if let Some(report) = results.of(&key).first() {
            lines.push(Line {
                name: format!("{planes} planes"),
                points: report
                    .series
                    .iter()
                    .map(|bin| (bin.time_ns as f64 / 1e3, bin.goodput_gbps / all * 100.0))
                    .collect(),
            });
        }
    }
    page.section(
        "A plane fails and returns",
        "8 hosts, long flows; at 300 us all packets of plane 1 vanish and nobody is told, at 900 us it is back. Goodput is counted at the receivers in bins of 10 us; *all again*: from when on it is never below 95 % of what the planes \
         that are left can carry.",
        table,
    );
    page.charts.push(Chart {
        title: "a plane fails at 300 us and returns at 900 us".to_owned(),
        axes: ("us".to_owned(), "% of all planes".to_owned()),
        x: Scale::Linear,
        lines,
    });
    page
}
