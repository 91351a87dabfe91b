//! A fabric that belongs to somebody else: no ECN, no say, no friends.

use super::by_load::ByLoad;
use super::rivals::{
    CELERIS, IRN, METAROCE, METAROCE_8, METAROCE_TOLERANT, ROCE_LOSSY, ULTRA_ETHERNET,
};
use super::{Experiment, Results, scenarios};
use crate::table::page::Page;

const RUNS: ByLoad = ByLoad {
    scenario: scenarios::CLOUD,
    loads: &["1", "15", "30", "45"],
    rivals: &[
        METAROCE,
        METAROCE_TOLERANT,
        METAROCE_8,
        ULTRA_ETHERNET,
        IRN,
        ROCE_LOSSY,
        CELERIS,
    ],
    quick: "workload.size_bytes=256KiB;background.duration_ns=1ms",
};

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    RUNS.experiments(quick)
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "32 hosts under 4 leaves and 4 spines, oversubscribed 2:1, without ECN: links between switches lose 0.1 % of packets and delay 1 % of them by up to 5 us, one runs at a quarter of its rate, one goes down for 300 us in every \
         millisecond, and flows of other people (web search sizes, with the same transport) load the lines. Two ring all-reduces of 8 MiB, one after the other.",
    );
    let table = RUNS.table(
        results,
        &[
            ("busbw, Gbit/s", 2, |report| report.summary.busbw_gbps.p50),
            ("time of both, ms", 2, |report| {
                report.summary.elapsed_ns as f64 / 1e6
            }),
            ("p99 of transfers, us", 0, |report| {
                report.summary.fct_us.p99
            }),
            ("sent again", 0, |report| {
                report.summary.counters.retransmissions as f64
            }),
            ("given up, bytes", 0, |report| {
                report.summary.lost_bytes as f64
            }),
        ],
    );
    let text =
        "A word instead of a figure is how runs ended that were not complete after a second.";
    page.section("All-reduce", text, table);
    let title = "all-reduce in a foreign cloud: bus bandwidth";
    let chart = RUNS.chart(results, title, "Gbit/s", |report| {
        report.summary.busbw_gbps.p50
    });
    page.charts.push(chart);
    page
}
