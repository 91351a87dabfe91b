//! How much buffer is needed?

use super::rivals::{METAROCE, ROCE_LOSSY, Rival, ULTRA_ETHERNET};
use super::{Experiment, Results, queue_kb, scenarios};
use crate::table::chart::{Chart, Line, Scale};
use crate::table::page::Page;
use metaroce_sim::report::Table;
use metaroce_sim::scenario::Report;

const RIVALS: [Rival; 3] = [METAROCE, ULTRA_ETHERNET, ROCE_LOSSY];
const QUEUES: [u32; 5] = [50_000, 100_000, 178_450, 446_125, 892_250];
const SHARED: [&str; 3] = ["1MiB", "2MiB", "16MiB"];

/// Marks in the same ratio to the queue as the reference up to its own.
fn marks(queue: u32) -> (u32, u32) {
    (37_350.min(queue / 4), 145_250.min(queue * 3 / 4))
}

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    let bytes = if quick { "1MiB" } else { "8MiB" };
    let mut all = Vec::new();
    for rival in RIVALS {
        for queue in QUEUES {
            let (low, high) = marks(queue);
            let set = format!(
                "fabric.buffer=none;fabric.queue_bytes={queue};fabric.mark_low_bytes={low};fabric.mark_high_bytes={high};workload.size_bytes={bytes};run.limit=2s;{}",
                rival.set()
            );
            all.push(Experiment::new(
                format!("{queue} {}", rival.name),
                scenarios::BUFFERS,
                &set,
            ));
        }
        for shared in SHARED {
            let set = format!(
                "fabric.buffer.bytes={shared};workload.size_bytes={bytes};run.limit=2s;{}",
                rival.set()
            );
            all.push(Experiment::new(
                format!("{shared} {}", rival.name),
                scenarios::BUFFERS,
                &set,
            ));
        }
        let set = format!(
            "fabric.ecn=false;fabric.buffer=none;fabric.queue_bytes=892250;workload.size_bytes={bytes};run.limit=2s;{}",
            rival.set()
        );
        all.push(Experiment::new(
            format!("no ECN {}", rival.name),
            scenarios::BUFFERS,
            &set,
        ));
    }
    all
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "An all-to-all of 8 MiB between 32 hosts under 4 leaves and 8 spines (100 Gb/s, 14.09 us), after 500 us of silence: 31 transfers end at every host at once.",
    );
    let head = [
        "buffer",
        "transport",
        "busbw, Gbit/s",
        "p99 of transfers, us",
        "sent again",
        "longest queue, kB",
    ];
    let row = |buffer: &str, key: &str, rival: &Rival| {
        let key = format!("{key} {}", rival.name);
        let show = |decimals, figure: fn(&Report) -> f64| results.show(&key, decimals, figure);
        [
            buffer.to_owned(),
            rival.name.to_owned(),
            show(2, |report| report.summary.busbw_gbps.p50),
            show(0, |report| report.summary.fct_us.p99),
            show(0, |report| report.summary.counters.retransmissions as f64),
            show(0, queue_kb),
        ]
    };
    let mut table = Table::new(head);
    for queue in QUEUES {
        for rival in &RIVALS {
            table.row(row(&format!("{queue} B"), &queue.to_string(), rival));
        }
    }
    for rival in &RIVALS {
        table.row(row("892250 B, no ECN", "no ECN", rival));
    }
    page.section(
        "A queue for each port",
        "Marks from 37,350 to 145,250 B, or from a quarter to three quarters of a shorter queue.",
        table,
    );
    let mut table = Table::new(head);
    for shared in SHARED {
        for rival in &RIVALS {
            table.row(row(shared, shared, rival));
        }
    }
    page.section(
        "A buffer shared by the ports of a switch",
        "Dynamic thresholds, alpha 1.",
        table,
    );
    let lines = RIVALS.iter().map(|rival| Line {
        name: rival.name.to_owned(),
        points: QUEUES
            .iter()
            .map(|queue| {
                (
                    f64::from(*queue) / 1e3,
                    results
                        .spread(&format!("{queue} {}", rival.name), |report| {
                            report.summary.busbw_gbps.p50
                        })
                        .median,
                )
            })
            .collect(),
    });
    page.charts.push(Chart {
        title: "all-to-all: bus bandwidth by queue length".to_owned(),
        axes: ("kB for each port".to_owned(), "Gbit/s".to_owned()),
        x: Scale::Logarithmic,
        lines: lines.collect(),
    });
    page
}
