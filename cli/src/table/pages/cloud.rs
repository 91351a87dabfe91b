//! A fabric that belongs to somebody else: no ECN, no say, no friends.

use super::rivals::{
    CELERIS, IRN, METAROCE, METAROCE_8, METAROCE_TOLERANT, ROCE_LOSSY, Rival, ULTRA_ETHERNET,
};
use super::{Experiment, Results, scenarios};
use crate::table::chart::{Chart, Line, Scale};
use crate::table::page::Page;
use metaroce_sim::report::Table;
use metaroce_sim::scenario::Report;

const RIVALS: [Rival; 7] = [
    METAROCE,
    METAROCE_TOLERANT,
    METAROCE_8,
    ULTRA_ETHERNET,
    IRN,
    ROCE_LOSSY,
    CELERIS,
];
const LOADS: [&str; 4] = ["1", "15", "30", "45"];

fn key(load: &str, rival: &Rival) -> String {
    format!("{load} {}", rival.name)
}

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    let mut all = Vec::new();
    for load in LOADS.into_iter().take(if quick { 1 } else { LOADS.len() }) {
        for rival in RIVALS {
            let less = if quick {
                ";workload.size_bytes=256KiB;background.duration_ns=1ms"
            } else {
                ""
            };
            let set = format!(
                "background.load_percent={load}%;run.limit=1s;{}{less}",
                rival.set()
            );
            all.push(Experiment::new(key(load, &rival), scenarios::CLOUD, &set));
        }
    }
    all
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "32 hosts under 4 leaves and 4 spines, oversubscribed 2:1, without ECN: links between switches lose 0.1 % of packets and delay 1 % of them by up to 5 us, one runs at a quarter of its rate, one goes down for 300 us in every \
         millisecond, and flows of other people (web search sizes, with the same transport) load the lines. Two ring all-reduces of 8 MiB, one after the other.",
    );
    let mut table = Table::new([
        "load beside, %",
        "transport",
        "busbw, Gbit/s",
        "time of both, ms",
        "p99 of transfers, us",
        "sent again",
        "given up, bytes",
    ]);
    for load in LOADS {
        for rival in &RIVALS {
            let key = key(load, rival);
            if !results.has(&key) {
                continue;
            }
            let show = |decimals, figure: fn(&Report) -> f64| results.show(&key, decimals, figure);
            table.row([
                load.to_owned(),
                rival.name.to_owned(),
                show(2, |report| report.summary.busbw_gbps.p50),
                show(2, |report| report.summary.elapsed_ns as f64 / 1e6),
                show(0, |report| report.summary.fct_us.p99),
                show(0, |report| report.summary.counters.retransmissions as f64),
                show(0, |report| report.summary.lost_bytes as f64),
            ]);
        }
    }
    page.section(
        "All-reduce",
        "A word instead of a figure is how runs ended that were not complete after a second.",
        table,
    );
    let lines = RIVALS.iter().map(|rival| Line {
        name: rival.name.to_owned(),
        points: LOADS
            .iter()
            .filter(|load| {
                results
                    .of(&key(load, rival))
                    .iter()
                    .any(|report| report.summary.end == "complete")
            })
            .map(|load| {
                (
                    load.parse().unwrap_or(0.0),
                    results
                        .spread(&key(load, rival), |report| report.summary.busbw_gbps.p50)
                        .median,
                )
            })
            .collect(),
    });
    page.charts.push(Chart {
        title: "all-reduce in a foreign cloud: bus bandwidth".to_owned(),
        axes: ("load beside, %".to_owned(), "Gbit/s".to_owned()),
        x: Scale::Linear,
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
    });
    page
}
