//! Several planes: do they add up, and what if one fails?

use super::figures::{PAYLOAD_GBPS, Window, sent_again};
use super::{Experiment, Results, scenarios};
use crate::table::chart::{Chart, Line, Scale};
use crate::table::page::Page;
use metaroce_sim::report::Table;
use metaroce_sim::scenario::Report;

/// Planes, and how many times the goodput of one the project asks of them.
const PLANES: [(u32, Option<f64>); 4] =
    [(1, None), (2, Some(1.95)), (4, Some(3.85)), (8, Some(7.6))];
/// So many planes of which one fails.
const FAILING: [u32; 3] = [2, 4, 8];
/// What runs on them: how many connections, and of how many paths.
struct Load {
    name: &'static str,
    /// One connection between any two hosts, or one for each.
    all_to_all: bool,
    paths: u32,
}

const LOADS: [Load; 3] = [
    Load {
        name: "64 connections of 64 paths",
        all_to_all: false,
        paths: 64,
    },
    Load {
        name: "64 connections of 128 paths",
        all_to_all: false,
        paths: 128,
    },
    Load {
        name: "4,032 connections of 64 paths",
        all_to_all: true,
        paths: 64,
    },
];
/// What each host sends, for each plane.
const MIB: u32 = 64;
/// What each host sends while a plane fails, for each plane: 2 ms at full rate, twice the time until it is back.
const FAILING_MIB: u32 = 24;
/// Hosts where a plane fails.
const FAILING_HOSTS: u32 = 8;
/// When flows are at their rate and all planes are there.
const BEFORE: Window = Window {
    from_us: 200.0,
    until_us: 300.0,
};
/// While a plane is gone.
const GONE: Window = Window {
    from_us: 300.0,
    until_us: 900.0,
};

fn leaf_spine(leaves: u32, hosts_per_leaf: u32, spines: u32) -> String {
    format!(
        "fabric.shape={{ kind = \"leaf-spine\", leaves = {leaves}, hosts_per_leaf = {hosts_per_leaf}, spines = {spines} }}"
    )
}

fn shift(hosts: u32) -> String {
    format!("workload.kind=permutation;workload.pattern={{ shift = {hosts} }}")
}

fn key(load: &Load, planes: u32) -> String {
    format!("{}, {planes} planes", load.name)
}

fn fails(planes: u32) -> String {
    format!("fails {planes}")
}

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    let (switches, mib) = if quick { (2, 2) } else { (8, MIB) };
    let mut all = Vec::new();
    for (planes, _) in PLANES.into_iter().rev() {
        for load in &LOADS {
            let workload = if load.all_to_all {
                "workload.kind=collective;workload.operation=all-to-all".to_owned()
            } else {
                shift(switches)
            };
            let set = format!(
                "{};fabric.planes={planes};transport.paths={};{workload};workload.size_bytes={}MiB",
                leaf_spine(switches, switches, switches),
                load.paths,
                planes * mib,
            );
            all.push(Experiment::new(key(load, planes), scenarios::PLANES, &set));
        }
    }
    for planes in FAILING.into_iter().take(if quick { 1 } else { 3 }) {
        let (from, until) = (GONE.from_us, GONE.until_us);
        let set = format!(
            "{};fabric.planes={planes};{};workload.size_bytes={}MiB;\
             fault=[{{ links = {{ plane = 1 }}, effect = \"blackhole\", from = \"{from}us\", until = \"{until}us\" }}];run.series=10us",
            leaf_spine(2, FAILING_HOSTS / 2, 4),
            shift(FAILING_HOSTS / 2),
            planes * FAILING_MIB,
        );
        all.push(Experiment::new(fails(planes), scenarios::PLANES, &set));
    }
    all
}

fn goodput(report: &Report) -> f64 {
    report.summary.goodput_gbps
}

/// How long it takes in a window until goodput is at 95 % of `gbps` for good, us; none if it is not at its end, or there are no bins.
fn recovered(report: &Report, window: Window, gbps: f64) -> Option<f64> {
    let is_low = |&(_, goodput): &(f64, f64)| goodput < 0.95 * gbps;
    let last = window.bins(report).last()?;
    if is_low(&last) {
        return None;
    }
    let low = window.bins(report).filter(is_low).last();
    Some(low.map_or(0.0, |(at, _)| at - window.from_us))
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "MetaRoCE over 8 leaves and 8 spines with 64 hosts, each plane a fabric of its own of 100 Gb/s, base round trip 14.09 us, one connection between two hosts. 64 connections: each host sends 64 MiB for each plane to the host 8 further on, \
         so that it takes equally long with any number of planes. 4,032: an all-to-all of as much.",
    );
    let columns = LOADS.iter().flat_map(|load| {
        [
            format!("{}, Gbit/s", load.name),
            "times one plane".to_owned(),
        ]
    });
    let mut table = Table::new(
        ["planes".to_owned()]
            .into_iter()
            .chain(columns)
            .chain(["at least".to_owned()]),
    );
    let mut text = "Delivered bytes over the time to the last delivery, all hosts. Paths are divided among the planes.".to_owned();
    for (planes, limit) in PLANES {
        let mut row = vec![planes.to_string()];
        for load in &LOADS {
            let this = key(load, planes);
            let one = results.median(&key(load, 1), goodput);
            let times = |report: &Report| Some(goodput(report) / one?);
            row.extend([
                results.show(&this, 1, goodput),
                results.show(&this, 2, times),
            ]);
            if let (Some(limit), Some(times)) = (limit, results.median(&this, times))
                && times < limit
            {
                text += &format!(
                    " {planes} planes with {} do not reach what the project asks: {times:.2} instead of {limit:.2} times one.",
                    load.name
                );
            }
        }
        row.push(limit.map_or_else(|| "-".to_owned(), |limit| format!("{limit:.2}")));
        table.row(row);
    }
    page.section("Total goodput", &text, table);

    let mut table = Table::new([
        "planes",
        "before, % of the lines",
        "all again without it after, us",
        "all again with it after, us",
        "sent again",
        "transfers failed",
        "bytes lost",
    ]);
    let mut lines = Vec::new();
    for planes in FAILING {
        let key = fails(planes);
        let lines_gbps = f64::from(FAILING_HOSTS * planes) * PAYLOAD_GBPS;
        let rest = f64::from(planes - 1) / f64::from(planes);
        // Up to when the first transfer ends, with a round trip to spare.
        let back = |report: &Report| Window {
            from_us: GONE.until_us,
            until_us: report.summary.fct_us.min - 20.0,
        };
        if !results.has(&key) {
            continue;
        }
        table.row([
            planes.to_string(),
            results.show(&key, 1, |report| {
                Some(BEFORE.goodput(report)? / lines_gbps * 100.0)
            }),
            results.show(&key, 0, |report| {
                recovered(report, GONE, BEFORE.goodput(report)? * rest)
            }),
            results.show(&key, 0, |report| {
                recovered(report, back(report), BEFORE.goodput(report)?)
            }),
            results.show(&key, 0, sent_again),
            results.show(&key, 0, |report| report.summary.failed as f64),
            results.show(&key, 0, |report| report.summary.lost_bytes as f64),
        ]);
        if let Some(report) = results.of(&key).first() {
            let run = Window {
                from_us: 0.0,
                until_us: f64::MAX,
            };
            lines.push(Line {
                name: format!("{planes} planes"),
                points: run
                    .bins(report)
                    .map(|(at, gbps)| (at, gbps / lines_gbps * 100.0))
                    .collect(),
            });
        }
    }
    page.section(
        "A plane fails and returns",
        "8 hosts, a long flow of 64 paths from each, 24 MiB for each plane; at 300 us all packets of plane 1 vanish and nobody is told, at 900 us it is back. Goodput is counted at the receivers in bins of 10 us; *before*: from 200 to 300 us; *all again*: from when on it is never below 95 % of that, in proportion to the planes \
         that are there, until the first flow ends; a dash: it is not before that.",
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

#[cfg(test)]
mod tests {
    use super::super::figures::tests::report;
    use super::*;

    #[test]
    fn recovered_is_what_stays() {
        let window = |from_us, until_us| Window { from_us, until_us };
        let recovered = |goodput: &[f64], window| recovered(&report(goodput), window, 100.0);
        let dip = [100.0, 10.0, 99.0, 94.0, 96.0, 100.0, 0.0];
        assert_eq!(recovered(&dip, window(10.0, 60.0)), Some(30.0));
        assert_eq!(recovered(&dip, window(40.0, 60.0)), Some(0.0));
        // Low at the end, and no bins at all.
        assert_eq!(recovered(&dip, window(10.0, 70.0)), None);
        assert_eq!(recovered(&dip, window(70.0, 60.0)), None);
    }
}
