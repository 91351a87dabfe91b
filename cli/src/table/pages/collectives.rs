//! All-reduce and all-to-all of 64 ranks.

use super::figures::busbw;
use super::rivals::{
    self, INFINIBAND, INFINIBAND_STATIC, METAROCE, ROCE_LOSSY, ROCE_PFC, ROCE_PFC_4, Rival,
    ULTRA_ETHERNET,
};
use super::{Experiment, Results, scenarios};
use crate::table::chart::{Chart, Line, Scale};
use crate::table::page::Page;
use metaroce_sim::report::Table;
use metaroce_sim::scenario::Report;

const RIVALS: [Rival; 7] = [
    METAROCE,
    INFINIBAND,
    INFINIBAND_STATIC,
    ULTRA_ETHERNET,
    ROCE_PFC,
    ROCE_PFC_4,
    ROCE_LOSSY,
];
const SIZES: [(&str, f64); 5] = [
    ("64KiB", 65_536.0),
    ("1MiB", 1_048_576.0),
    ("8MiB", 8_388_608.0),
    ("64MiB", 67_108_864.0),
    ("256MiB", 268_435_456.0),
];
/// From this size on one seed must do: what is left to chance are hashes of routes, and runs take minutes.
const ONE_SEED: f64 = 67_108_864.0;
/// Name, heading and settings.
const OPERATIONS: [(&str, &str, &str); 3] = [
    (
        "all-reduce",
        "All-reduce (ring, chunks of 64 KiB)",
        "workload.operation={ all-reduce = \"ring\" }",
    ),
    (
        "all-reduce across",
        "All-reduce (ring, neighbours in rank below different switches)",
        "workload.operation={ all-reduce = \"ring\" };workload.placement={ stride = 4 }",
    ),
    (
        "all-to-all",
        "All-to-all (all at once)",
        "workload.operation=all-to-all",
    ),
];

/// The transports for an operation: where each peer is sent one message, there is nothing to divide among several queue pairs.
fn rivals(operation: &str) -> impl Iterator<Item = Rival> {
    RIVALS
        .into_iter()
        .filter(move |rival| operation != "all-to-all" || rival.name != ROCE_PFC_4.name)
}

fn key(operation: &str, size: &str, rival: &Rival) -> String {
    format!("{operation} {size} {}", rival.name)
}

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    let fabric = if quick {
        "fabric.shape={ kind = \"fat-tree\", k = 4 }"
    } else {
        "fabric.shape={ kind = \"fat-tree\", pods = 4, edges = 4, hosts_per_edge = 4, aggregations = 4, cores_per_aggregation = 4 }"
    };
    let mut all = Vec::new();
    // The longest first, so that no processor is left with one at the end.
    for (size, bytes) in SIZES
        .into_iter()
        .take(if quick { 2 } else { SIZES.len() })
        .rev()
    {
        for (operation, _, set) in OPERATIONS {
            for rival in rivals(operation) {
                let limit = if rival.name == ROCE_LOSSY.name {
                    "run.limit=1s"
                } else {
                    "run.limit=10s"
                };
                let set = format!(
                    "{fabric};{set};workload.size_bytes={size};workload.repeat=1;{limit};{}",
                    rival.set()
                );
                let mut experiment =
                    Experiment::new(key(operation, size, &rival), scenarios::COLLECTIVES, &set);
                experiment.seeds = (bytes >= ONE_SEED).then_some(1);
                all.push(experiment);
            }
        }
    }
    all
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "64 ranks in a three-tier fat tree of full bisection (100 Gb/s, 14.09 us, queues of 892,250 B marked from 37,350 to 145,250 B, no trimming), once, after 500 us of silence. Bus bandwidth as nccl-tests reckon: \
         2(n-1)/n times the algorithm's for all-reduce, (n-1)/n for all-to-all; the most that 4,096-byte payloads leave of a line is 97.2 Gbit/s in frames as MetaRoCE's and Ultra Ethernet's (4,214 bytes), 97.7 to 98.0 in RoCEv2's and 98.9 to 99.4 in InfiniBand's, less what acknowledgments take that go the same way. MetaRoCE and Ultra Ethernet run on the \
         lossy fabric, RoCEv2 with PFC or without, InfiniBand with credits. With 4 QPs messages to a peer use four queue pairs in turn. One seed for 64 MiB and more.",
    );
    for (operation, heading, _) in OPERATIONS {
        let head = || std::iter::once("bytes").chain(rivals(operation).map(|rival| rival.name));
        let mut bandwidth = Table::new(head());
        let mut times = Table::new(head());
        let mut tails = Table::new(head());
        for (size, _) in SIZES {
            if !results.has(&key(operation, size, &METAROCE)) {
                continue;
            }
            let row = |decimals, figure: fn(&Report) -> Option<f64>| {
                std::iter::once(size.to_owned()).chain(rivals(operation).map(move |rival| {
                    results.show(&key(operation, size, &rival), decimals, figure)
                }))
            };
            bandwidth.row(row(2, busbw));
            times.row(row(1, |report| Some(report.summary.group_us.max)));
            tails.row(row(1, |report| Some(report.summary.fct_us.p99)));
        }
        page.section(&format!("{heading}: bus bandwidth, Gbit/s"), "", bandwidth);
        page.section(&format!("{heading}: time, us"), "", times);
        page.section(
            &format!("{heading}: p99 of the transfers' completion time, us"),
            "",
            tails,
        );
        let lines = rivals(operation).map(|rival| Line {
            name: rival.name.to_owned(),
            points: SIZES
                .iter()
                .filter_map(|(size, bytes)| {
                    let y = results.median(&key(operation, size, &rival), busbw)?;
                    Some((*bytes, y))
                })
                .collect(),
        });
        page.charts.push(Chart {
            title: format!("{operation} of 64 ranks: bus bandwidth"),
            axes: ("bytes".to_owned(), "Gbit/s".to_owned()),
            x: Scale::Logarithmic,
            lines: lines.filter(|line| !line.points.is_empty()).collect(),
        });
    }
    page.transports("collectives", rivals::table(&RIVALS, true));
    page
}
