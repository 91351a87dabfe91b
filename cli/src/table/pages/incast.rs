//! Many senders, one receiver.

use super::figures::{last_us, queue_kb, sent_again};
use super::rivals::{
    self, INFINIBAND_STATIC, METAROCE, ROCE_PFC, Rival, ULTRA_ETHERNET, ULTRA_ETHERNET_TRIM,
};
use super::{Experiment, Results, scenarios};
use crate::table::chart::{Chart, Line, Scale};
use crate::table::page::Page;
use metaroce_sim::report::Table;
use metaroce_sim::scenario::Report;

const RIVALS: [Rival; 4] = [
    ULTRA_ETHERNET,
    ULTRA_ETHERNET_TRIM,
    INFINIBAND_STATIC,
    ROCE_PFC,
];

/// Name, ports of a switch, settings, what the project asks.
const CASES: [(&str, u32, &str, &str); 4] = [
    (
        "15:1, 2 MB",
        4,
        "workload.senders=15;workload.size_bytes=2000000",
        "2,495",
    ),
    (
        "127:1, 2 MB",
        8,
        "workload.senders=127;workload.size_bytes=2000000",
        "21,000",
    ),
    (
        "1023:1, 100 kB",
        16,
        "workload.senders=1023;workload.size_bytes=100000",
        "8,850",
    ),
    (
        "1023:1, 100 kB, queues of 178 kB",
        16,
        "workload.senders=1023;workload.size_bytes=100000;fabric.queue_bytes=178450",
        "9,800",
    ),
];

/// Variants of the core.
const VARIANTS: [(&str, &str); 5] = [
    ("64 paths", "transport.paths=64"),
    ("8 paths", "transport.paths=8"),
    (
        "64 paths, not announced",
        "transport.paths=64;transport.announce=false",
    ),
    (
        "64 paths, no hints",
        "transport.paths=64;transport.hints=false",
    ),
    (
        "64 paths, fresh connections",
        "transport.paths=64;run.settle=0",
    ),
];

const QUIET: &str = "run.series=none;run.queues=[];run.limit=100ms";

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    let mut all = Vec::new();
    for (case, k, set, _) in CASES.into_iter().take(if quick { 1 } else { CASES.len() }) {
        // What collapses with 1,023 senders takes too long to be measured.
        let variants = if k == 16 { 3 } else { VARIANTS.len() };
        for (variant, more) in VARIANTS.into_iter().take(variants) {
            all.push(Experiment::new(
                format!("{case} {variant}"),
                scenarios::INCAST,
                &format!("{QUIET};fabric.shape.k={k};{set};{more}"),
            ));
        }
    }
    for (case, k, set, _) in CASES.into_iter().take(if quick { 1 } else { 2 }) {
        for rival in RIVALS {
            all.push(Experiment::new(
                format!("{case} {}", rival.name),
                scenarios::INCAST,
                &format!("{QUIET};fabric.shape.k={k};{set};{}", rival.set()),
            ));
        }
    }
    all
}

fn first_us(report: &Report) -> Option<f64> {
    let first = report
        .flows
        .iter()
        .filter_map(|flow| {
            flow.acknowledged_ns
                .map(|at| at.saturating_sub(flow.started_ns.unwrap_or(0)))
        })
        .min()?;
    Some(first as f64 / 1e3)
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "Hosts of a three-tier fat tree (100 Gb/s, 14.09 us, queues of 892,250 B marked from 37,350 to 145,250 B, no trimming) write to one at the same time, after 500 us of silence on connections \
         that exist. The line alone needs 2,473 us for 15 times 2 MB, 20,936 us for 127 times, and 8,622 us for 1,023 times 100 kB. Times are from the start to acknowledgments at the senders. How soon every \
         sender holds its share, with and without an announcement, is in [lab-incast.md](lab-incast.md).",
    );
    let mut table = Table::new([
        "case",
        "MetaRoCE",
        "last, us",
        "at most",
        "first, us",
        "Jain",
        "sent again",
        "fences",
        "queue, kB",
    ]);
    for (case, _, _, limit) in CASES {
        for (variant, _) in VARIANTS {
            let key = format!("{case} {variant}");
            if !results.has(&key) {
                continue;
            }
            table.row([
                case,
                variant,
                &results.show(&key, 0, last_us),
                limit,
                &results.show(&key, 0, first_us),
                &results.show(&key, 4, |report| report.summary.jain),
                &results.show(&key, 0, sent_again),
                &results.show(&key, 0, |report| report.summary.counters.fences as f64),
                &results.show(&key, 0, queue_kb),
            ]);
        }
    }
    page.section(
        "MetaRoCE",
        "*Jain*: of the transfers' rates. *Fences* here would be mistakes: no path is dead.",
        table,
    );

    let mut table = Table::new([
        "case",
        "transport",
        "last, us",
        "first, us",
        "Jain",
        "sent again",
        "pauses",
    ]);
    for (case, _, _, _) in CASES.into_iter().take(2) {
        for name in std::iter::once("64 paths").chain(RIVALS.iter().map(|rival| rival.name)) {
            let key = format!("{case} {name}");
            if !results.has(&key) {
                continue;
            }
            table.row([
                case,
                if name == "64 paths" {
                    "MetaRoCE, 64 paths"
                } else {
                    name
                },
                &results.show(&key, 0, last_us),
                &results.show(&key, 0, first_us),
                &results.show(&key, 4, |report| report.summary.jain),
                &results.show(&key, 0, sent_again),
                &results.show(&key, 0, |report| report.summary.network.pauses as f64),
            ]);
        }
    }
    page.section("Other transports", "Published (htsim, converted by 1.0154): 15:1 2,780 us without trimming, 2,517 with; 127:1 21,160 and 21,353.", table);

    let lines = VARIANTS.iter().take(4).map(|(variant, _)| {
        let key = format!("15:1, 2 MB {variant}");
        let mut times: Vec<f64> = results.of(&key).first().map_or_else(Vec::new, |report| {
            report
                .flows
                .iter()
                .filter_map(|flow| flow.acknowledged_ns.map(|at| at as f64 / 1e3))
                .collect()
        });
        times.sort_by(f64::total_cmp);
        Line {
            name: (*variant).to_owned(),
            points: times
                .into_iter()
                .enumerate()
                .map(|(i, time)| (i as f64 + 1.0, time))
                .collect(),
        }
    });
    page.charts.push(Chart {
        title: "15:1 of 2 MB: when the n-th sender is done".to_owned(),
        axes: ("senders done".to_owned(), "us".to_owned()),
        x: Scale::Linear,
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
    });
    let all: Vec<Rival> = [METAROCE].into_iter().chain(RIVALS).collect();
    page.transports("incast", rivals::table(&all, true));
    page
}
