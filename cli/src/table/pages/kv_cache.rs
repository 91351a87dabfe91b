//! Key-value caches from prefill to decode, beside other traffic.

use super::rivals::{CELERIS, INFINIBAND, METAROCE, ROCE_LOSSY, ROCE_PFC, Rival, ULTRA_ETHERNET};
use super::{Experiment, Results, scenarios};
use crate::table::chart::{Chart, Line, Scale};
use crate::table::page::Page;
use metaroce_sim::report::Table;
use metaroce_sim::scenario::Report;

const RIVALS: [Rival; 6] = [
    METAROCE,
    ULTRA_ETHERNET,
    INFINIBAND,
    ROCE_PFC,
    ROCE_LOSSY,
    CELERIS,
];
const LOADS: [&str; 4] = ["5", "20", "40", "60"];

fn key(load: &str, rival: &Rival) -> String {
    format!("{load} {}", rival.name)
}

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    let mut all = Vec::new();
    for load in LOADS.into_iter().take(if quick { 1 } else { LOADS.len() }) {
        for rival in RIVALS {
            let less = if quick {
                ";workload.requests=4;background.duration_ns=1ms"
            } else {
                ""
            };
            let set = format!(
                "background.load_percent={load}%;run.limit=1s;{}{less}",
                rival.set()
            );
            all.push(Experiment::new(
                key(load, &rival),
                scenarios::KV_CACHE,
                &set,
            ));
        }
    }
    all
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "8 prefill and 8 decode workers under 4 leaves and 4 spines (100 Gb/s); 32 requests arrive as a Poisson process, each of 256 to 1,024 tokens in 16 layers, whose keys and values go to the decode worker layer by layer. Beside them flows of \
         other people (sizes as in Facebook's Hadoop clusters) load all lines. Slowdown: time to delivery over that in the empty fabric.",
    );
    let mut table = Table::new([
        "load beside, %",
        "transport",
        "request, median us",
        "request, max us",
        "transfer slowdown, p50",
        "p99",
        "sent again",
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
                show(0, |report| report.summary.group_us.p50),
                show(0, |report| report.summary.group_us.max),
                show(2, |report| report.summary.slowdown.p50),
                show(2, |report| report.summary.slowdown.p99),
                show(0, |report| report.summary.counters.retransmissions as f64),
            ]);
        }
    }
    page.section("Requests", "", table);
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
                        .spread(&key(load, rival), |report| report.summary.slowdown.p99)
                        .median,
                )
            })
            .collect(),
    });
    page.charts.push(Chart {
        title: "key-value cache transfers: p99 slowdown".to_owned(),
        axes: (
            "load beside, %".to_owned(),
            "times the empty fabric".to_owned(),
        ),
        x: Scale::Linear,
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
    });
    page
}
