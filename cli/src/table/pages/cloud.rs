//! A fabric that belongs to somebody else: no ECN, no say, no friends.

use super::by_load::ByLoad;
use super::figures::{busbw, group_bytes, sent_again};
use super::rivals::{
    self, CELERIS, IRN, METAROCE, METAROCE_8, METAROCE_TOLERANT, ROCE_LOSSY, ULTRA_ETHERNET,
};
use super::{Experiment, Results, scenarios};
use crate::table::page::Page;
use metaroce_sim::scenario::Report;
use metaroce_sim::scenario::report::Distribution;

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
    marked: false,
    quick: "workload.size_bytes=256KiB;background.duration_ns=1ms",
};

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    RUNS.experiments(quick)
}

/// The time of the last all-reduce, ms.
fn time_ms(report: &Report) -> Option<f64> {
    let group = report.groups.last()?;
    Some((group.ended_ns? - group.started_ns?) as f64 / 1e6)
}

/// The p99 of its transfers' times, us.
fn p99_us(report: &Report) -> Option<f64> {
    let group = report.groups.last()?.group;
    let flows = report.flows.iter().filter(|flow| flow.group == group);
    let times: Option<Vec<f64>> = flows
        .map(|flow| flow.fct_ns.map(|ns| ns as f64 / 1e3))
        .collect();
    Some(Distribution::of(times?).p99)
}

/// What it gave up of its bytes, percent.
fn given_up(report: &Report) -> Option<f64> {
    let (all, lost) = group_bytes(report, report.groups.last()?.group);
    (all > 0).then(|| lost as f64 / all as f64 * 100.0)
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "32 hosts under 4 leaves and 4 spines, oversubscribed 2:1, without ECN: links between switches lose 0.1 % of packets and delay 1 % of them by up to 5 us, one runs at a quarter of its rate, one goes down for 300 us in every \
         millisecond, and flows of other people (web search sizes, with the same transport) load the lines. Two ring all-reduces of 8 MiB, one after the other; the first is to warm up (best effort has to learn how long it may wait), and the figures are the second's.",
    );
    let table = RUNS.table(
        results,
        &[
            ("bus bandwidth, Gbit/s", 2, busbw),
            ("time, ms", 2, time_ms),
            ("p99 of transfers, us", 0, p99_us),
            ("given up, % of bytes", 3, given_up),
            ("sent again, with the load", 0, |report| {
                Some(sent_again(report))
            }),
        ],
    );
    let text = "*Bus bandwidth*: 2(n-1)/n times the bytes of a rank over the time, less what was given up. A word instead of a figure is how runs ended that were not complete after a second.";
    page.section("All-reduce", text, table);
    let title = "all-reduce in a foreign cloud: bus bandwidth";
    page.charts
        .push(RUNS.chart(results, title, "Gbit/s", busbw));
    page.transports("cloud", rivals::table(RUNS.rivals, RUNS.marked));
    page
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::report;
    use super::*;

    #[test]
    fn figures_are_those_of_the_second_collective() {
        let mut report = report(&[]);
        let group = &report.groups[1];
        let ms = (group.ended_ns.unwrap() - group.started_ns.unwrap()) as f64 / 1e6;
        assert_eq!(time_ms(&report), Some(ms));
        for (flow, ns) in report.flows.iter_mut().zip(1..) {
            flow.fct_ns = Some(if flow.group == 0 {
                1_000_000
            } else {
                ns * 1_000
            });
            flow.lost_bytes = if flow.group == 0 { 1_000 } else { 100 };
        }
        let last = report.flows.len() as f64;
        assert_eq!(p99_us(&report), Some(last));
        assert_eq!(given_up(&report), Some(10.0));
        report.groups[1].ended_ns = None;
        assert_eq!(time_ms(&report), None);
    }
}
