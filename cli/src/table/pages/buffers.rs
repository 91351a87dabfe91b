//! How much buffer is needed?

use super::figures::{busbw, queue_kb, sent_again};
use super::rivals::{self, METAROCE, ROCE_LOSSY, Rival, ULTRA_ETHERNET};
use super::{Experiment, Results, scenarios};
use crate::table::chart::{Chart, Line, Scale};
use crate::table::page::Page;
use metaroce_sim::report::Table;

const RIVALS: [Rival; 3] = [METAROCE, ULTRA_ETHERNET, ROCE_LOSSY];
const QUEUES: [u64; 5] = [50_000, 100_000, 178_450, 446_125, 892_250];
/// Buffers of a switch, MiB.
const SHARED: [u64; 3] = [1, 2, 16];

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    let bytes = if quick { "1MiB" } else { "8MiB" };
    let mut all = Vec::new();
    for rival in RIVALS {
        for queue in QUEUES {
            let set = format!(
                "fabric.buffer=none;fabric.queue_bytes={queue};workload.size_bytes={bytes};run.limit=2s;{};{}",
                rival.unmarked(),
                rival.marks.set(queue)
            );
            all.push(Experiment::new(
                format!("{queue} {}", rival.name),
                scenarios::BUFFERS,
                &set,
            ));
        }
        for shared in SHARED {
            let set = format!(
                "fabric.buffer.bytes={shared}MiB;workload.size_bytes={bytes};run.limit=2s;{};{}",
                rival.unmarked(),
                // At alpha 1 a queue that is alone gets half of the buffer.
                rival.marks.set(shared << 19)
            );
            all.push(Experiment::new(
                format!("{shared} MiB {}", rival.name),
                scenarios::BUFFERS,
                &set,
            ));
        }
        let set = format!(
            "fabric.ecn=false;fabric.buffer=none;fabric.queue_bytes=892250;workload.size_bytes={bytes};run.limit=2s;{}",
            rival.unmarked()
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
        "fullest switch, kB",
    ];
    let row = |buffer: &str, key: &str, rival: &Rival| {
        let key = format!("{key} {}", rival.name);
        [
            buffer.to_owned(),
            rival.name.to_owned(),
            results.show(&key, 2, busbw),
            results.show(&key, 0, |report| report.summary.fct_us.p99),
            results.show(&key, 0, sent_again),
            results.show(&key, 0, queue_kb),
            results.show(&key, 0, |report| {
                report.summary.network.max_buffer_bytes as f64 / 1e3
            }),
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
        "Marks from 37,350 to 145,250 B, or from a quarter to three quarters of a shorter queue, for all transports.",
        table,
    );
    let mut table = Table::new(head);
    for shared in SHARED {
        for rival in &RIVALS {
            let name = format!("{shared} MiB");
            table.row(row(&name, &name, rival));
        }
    }
    page.section(
        "A buffer shared by the ports of a switch",
        "Dynamic thresholds, alpha 1. Marks as for a queue of half the buffer, the most that one alone gets.",
        table,
    );
    let lines = RIVALS.iter().map(|rival| Line {
        name: rival.name.to_owned(),
        points: QUEUES
            .iter()
            .filter_map(|queue| {
                let y = results.median(&format!("{queue} {}", rival.name), busbw)?;
                Some((*queue as f64 / 1e3, y))
            })
            .collect(),
    });
    page.charts.push(Chart {
        title: "all-to-all: bus bandwidth by queue length".to_owned(),
        axes: ("kB for each port".to_owned(), "Gbit/s".to_owned()),
        x: Scale::Logarithmic,
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
    });
    page.transports("buffers", rivals::table(&RIVALS, false));
    page
}
