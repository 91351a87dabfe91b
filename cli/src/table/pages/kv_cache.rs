//! Key-value caches from prefill to decode, beside other traffic.

use super::by_load::ByLoad;
use super::rivals::{CELERIS, INFINIBAND, METAROCE, ROCE_LOSSY, ROCE_PFC, ULTRA_ETHERNET};
use super::{Experiment, Results, scenarios};
use crate::table::page::Page;

const RUNS: ByLoad = ByLoad {
    scenario: scenarios::KV_CACHE,
    loads: &["5", "20", "40", "60"],
    rivals: &[
        METAROCE,
        ULTRA_ETHERNET,
        INFINIBAND,
        ROCE_PFC,
        ROCE_LOSSY,
        CELERIS,
    ],
    quick: "workload.requests=4;background.duration_ns=1ms",
};

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    RUNS.experiments(quick)
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "8 prefill and 8 decode workers under 4 leaves and 4 spines (100 Gb/s); 32 requests arrive as a Poisson process, each of 256 to 1,024 tokens in 16 layers, whose keys and values go to the decode worker layer by layer. Beside them flows of \
         other people (sizes as in Facebook's Hadoop clusters) load all lines. Slowdown: time to delivery over that in the empty fabric.",
    );
    let table = RUNS.table(
        results,
        &[
            ("request, median us", 0, |report| {
                report.summary.group_us.p50
            }),
            ("request, max us", 0, |report| report.summary.group_us.max),
            ("transfer slowdown, p50", 2, |report| {
                report.summary.slowdown.p50
            }),
            ("p99", 2, |report| report.summary.slowdown.p99),
            ("sent again", 0, |report| {
                report.summary.counters.retransmissions as f64
            }),
        ],
    );
    page.section("Requests", "", table);
    let title = "key-value cache transfers: p99 slowdown";
    let chart = RUNS.chart(results, title, "times the empty fabric", |report| {
        report.summary.slowdown.p99
    });
    page.charts.push(chart);
    page
}
