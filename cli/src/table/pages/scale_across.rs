//! Two sites, and milliseconds between them.

use super::figures::{PAYLOAD_GBPS, Window, sent_again};
use super::{Experiment, Results, scenarios};
use crate::table::chart::{Chart, Line, Scale};
use crate::table::page::Page;
use metaroce_sim::report::Table;
use metaroce_sim::scenario::Report;

const PATHS: [u32; 4] = [16, 32, 64, 128];
const LOSSES: [&str; 3] = ["0", "0.01", "0.1"];

fn key(paths: u32, loss: &str) -> String {
    format!("{paths} {loss}")
}

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    let mut all = Vec::new();
    for paths in PATHS.into_iter().rev() {
        for loss in LOSSES {
            let set = format!(
                "fabric.shape={{ kind = \"two-sites\", leaves = 1, hosts_per_leaf = 1, borders = 8 }};fabric.tiers.site.mbps=100Gb/s;fabric.tiers.site.delay=2.49ms;transport.paths={paths};\
                 workload.kind=permutation;workload.pattern={{ shift = 1 }};workload.size_bytes={};fault.0.effect.probability={loss}%;run.series=100us;run.settle=0",
                if quick { "64MiB" } else { "1GiB" }
            );
            all.push(Experiment::new(
                key(paths, loss),
                scenarios::SCALE_ACROSS,
                &set,
            ));
        }
    }
    all
}

/// Goodput at the receivers over a span after the start, percent of the payload rate of the two lines.
fn share(report: &Report, from_ms: f64, until_ms: f64) -> Option<f64> {
    let window = Window {
        from_us: from_ms * 1e3,
        until_us: until_ms * 1e3,
    };
    Some(window.goodput(report)? / (2.0 * PAYLOAD_GBPS) * 100.0)
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "Two hosts at two sites, 8 links of 100 Gb/s and 2.49 ms between them (5 ms there and back), switches with deep buffers; each sends 1 GiB to the other. A sequence space of 256 packets on a path and 15,258 packets on the \
         way ask for at least 60 paths. Loss is on the long links, both ways.",
    );
    let mut table = Table::new([
        "paths",
        "loss, %",
        "round trip 2, %",
        "3, %",
        "4, %",
        "5 to 12, %",
        "sent again",
        "time, ms",
    ]);
    let mut lines = Vec::new();
    for paths in PATHS {
        for loss in LOSSES {
            let key = key(paths, loss);
            // The first byte arrives after half a round trip.
            let trip = |n: f64| {
                results.show(&key, 1, |report| {
                    share(report, 2.5 + (n - 1.0) * 5.0, 2.5 + n * 5.0)
                })
            };
            table.row([
                paths.to_string(),
                loss.to_owned(),
                trip(2.0),
                trip(3.0),
                trip(4.0),
                results.show(&key, 1, |report| share(report, 22.5, 62.5)),
                results.show(&key, 0, sent_again),
                results.show(&key, 1, |report| report.summary.fct_us.max / 1e3),
            ]);
        }
        if let Some(report) = results.of(&key(paths, "0")).first() {
            lines.push(Line {
                name: format!("{paths} paths"),
                points: report
                    .series
                    .iter()
                    .map(|bin| (bin.time_ns as f64 / 1e6, bin.goodput_gbps / 2.0))
                    .collect(),
            });
        }
    }
    page.section(
        "Goodput",
        "At the receivers, in percent of the payload rate, in the n-th round trip after the start.",
        table,
    );
    page.charts.push(Chart {
        title: "5 ms round trip: goodput of a flow from its start".to_owned(),
        axes: ("ms".to_owned(), "Gbit/s".to_owned()),
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
    fn a_share_is_that_of_both_lines() {
        let report = report(&[0.0, PAYLOAD_GBPS, 2.0 * PAYLOAD_GBPS]);
        let share = share(&report, 0.01, 0.03).unwrap();
        assert!((share - 75.0).abs() < 1e-9, "{share}");
        assert_eq!(super::share(&report, 0.03, 0.05), None);
    }
}
