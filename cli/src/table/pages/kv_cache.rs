//! Key-value caches from prefill to decode, beside other traffic.

use super::by_load::ByLoad;
use super::figures::sent_again;
use super::rivals::{self, CELERIS, INFINIBAND, METAROCE, ROCE_LOSSY, ROCE_PFC, ULTRA_ETHERNET};
use super::{Experiment, Results, scenarios};
use crate::table::page::Page;
use metaroce_sim::scenario::Report;
use metaroce_sim::scenario::report::Distribution;

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
    marked: true,
    quick: "workload.requests=10;background.duration_ns=1ms",
};

/// The first requests do not count: best effort learns from them how long it may wait.
const WARM_UP: u32 = 8;

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    RUNS.experiments(quick)
}

/// The times of the requests that count, us.
fn requests(report: &Report) -> Option<Distribution> {
    let groups = report.groups.iter().filter(|group| group.group >= WARM_UP);
    let times: Option<Vec<f64>> = groups
        .map(|group| Some((group.ended_ns? - group.started_ns?) as f64 / 1e3))
        .collect();
    some(times?)
}

/// The slowdown of their transfers.
fn slowdown(report: &Report) -> Option<Distribution> {
    let flows = report.flows.iter().filter(|flow| flow.group >= WARM_UP);
    some(flows.map(|flow| flow.slowdown).collect::<Option<_>>()?)
}

fn some(values: Vec<f64>) -> Option<Distribution> {
    (!values.is_empty()).then(|| Distribution::of(values))
}

/// Bytes that were given up, of all requests, percent.
fn given_up(report: &Report) -> Option<f64> {
    let (summary, all) = (&report.summary, report.flows.iter());
    let all: u64 = all.map(|flow| flow.bytes).sum();
    (all > 0).then(|| summary.lost_bytes as f64 / all as f64 * 100.0)
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "8 prefill and 8 decode workers under 4 leaves and 4 spines (100 Gb/s); 40 requests arrive as a Poisson process, one in 500 us, each of 64 to 256 tokens in 16 layers of 4 KiB a token, whose keys and values go to the decode worker layer by layer: alone they \
         load the lines of the prefill workers to about 21 %. The first 8 requests are to warm up and do not count. Beside them flows of other people (sizes as in Facebook's Hadoop clusters) load all lines. Slowdown: time to delivery over that in the empty fabric. What requests gain where others lose is no gain: see the mean time of other people's flows beside it.",
    );
    let table = RUNS.table(
        results,
        &[
            ("request, median us", 0, |report| {
                Some(requests(report)?.p50)
            }),
            ("request, max us", 0, |report| Some(requests(report)?.max)),
            ("transfer slowdown, p50", 2, |report| {
                Some(slowdown(report)?.p50)
            }),
            ("p99", 2, |report| Some(slowdown(report)?.p99)),
            ("other people's flows, mean us", 0, |report| {
                Some(report.summary.background_fct_us.mean)
            }),
            ("given up, % of bytes", 3, given_up),
            ("sent again, with the load", 0, |report| {
                Some(sent_again(report))
            }),
        ],
    );
    page.section("Requests", "", table);
    let title = "key-value cache transfers: p99 slowdown";
    let chart = RUNS.chart(results, title, "times the empty fabric", |report| {
        Some(slowdown(report)?.p99)
    });
    page.charts.push(chart);
    page.transports("kv-cache", rivals::table(RUNS.rivals, RUNS.marked));
    page
}
