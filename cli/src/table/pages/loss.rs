//! Random loss: one long flow, and a ring all-reduce.

use super::rivals::{
    CELERIS, INFINIBAND_STATIC, IRN, METAROCE, METAROCE_8, ROCE_LOSSY, Rival, ULTRA_ETHERNET,
};
use super::{Experiment, Results, scenarios};
use crate::table::chart::{Chart, Line, Scale};
use crate::table::page::Page;
use metaroce_sim::report::{Spread, Table};
use metaroce_sim::scenario::Report;

const LOSSES: [&str; 6] = ["0", "0.1", "1", "2", "5", "10"];
const RIVALS: [Rival; 6] = [
    METAROCE,
    ULTRA_ETHERNET,
    IRN,
    ROCE_LOSSY,
    INFINIBAND_STATIC,
    CELERIS,
];
/// Each packet crosses one lossy link each way: that to the receiving host.
const LAST_LINK: &str = "fault.0.links={ tier = \"host\" };fault.0.direction=down";
const RINGS: [(&str, &str); 2] = [
    ("pipelined", "workload.pipelined=true"),
    ("not pipelined", "workload.pipelined=false"),
];
const RING: &str = "fabric.shape={ kind = \"fat-tree\", pods = 4, edges = 4, hosts_per_edge = 4, aggregations = 4, cores_per_aggregation = 4 }";

/// One link has half of the round trip on its wire: what credits there must cover is twice what it is in a fabric.
const LONG_WIRE: &str = "fabric.flow={ kind = \"credit\", bytes = \"512KiB\" }";

fn flow_set(loss: &str, rival: Rival, bytes: &str) -> String {
    let credit = if rival.name == INFINIBAND_STATIC.name {
        LONG_WIRE
    } else {
        ""
    };
    format!(
        "fabric.shape={{ kind = \"pair\" }};fault.0.effect.probability={loss}%;{LAST_LINK};workload.kind=permutation;workload.pattern={{ shift = 1 }};workload.size_bytes={bytes};{};{credit}",
        rival.set()
    )
}

fn ring_set(loss: &str, pipelined: &str, rival: Rival, bytes: &str) -> String {
    format!(
        "{RING};fault.0.effect.probability={loss}%;{LAST_LINK};workload.size_bytes={bytes};{pipelined};{}",
        rival.set()
    )
}

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    let (flow, ring) = if quick {
        ("2MiB", "1MiB")
    } else {
        ("64MiB", "64MiB")
    };
    let mut all = Vec::new();
    for loss in LOSSES {
        for rival in RIVALS.into_iter().chain([METAROCE_8]) {
            all.push(Experiment::new(
                format!("flow {loss} {}", rival.name),
                scenarios::LOSS,
                &flow_set(loss, rival, flow),
            ));
        }
        for (name, pipelined) in RINGS {
            all.push(Experiment::new(
                format!("ring {loss} {name}"),
                scenarios::LOSS,
                &ring_set(loss, pipelined, METAROCE_8, ring),
            ));
        }
    }
    for loss in ["0", "0.1", "1"] {
        let small = if quick { "256KiB" } else { "4MiB" };
        let set = ring_set(loss, "workload.pipelined=true", ROCE_LOSSY, small);
        all.push(Experiment::new(
            format!("ring {loss} roce"),
            scenarios::LOSS,
            &format!("{set};run.limit=5s"),
        ));
    }
    all
}

fn last_us(report: &Report) -> f64 {
    report.summary.elapsed_ns as f64 / 1e3
}

/// Goodput each way over the payload rate of the line, in percent.
fn kept(report: &Report) -> f64 {
    let placed = (report.summary.delivered_bytes - report.summary.lost_bytes) as f64;
    let line = f64::from(report.summary.hosts) * 100e9 * 4096.0 / 4214.0 / 8.0;
    placed / (report.summary.elapsed_ns as f64 / 1e9) / line * 100.0
}

/// The loss-free time over that with loss, seed by seed, in percent.
fn against(results: &Results, key: &str, free: &str) -> Spread {
    let times = results.of(key).iter().zip(results.of(free));
    Spread::of(times.map(|(lossy, free)| last_us(free) / last_us(lossy) * 100.0))
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "Every packet of every kind is lost with the given probability on the link to the receiving host, both ways, so once on its way and its acknowledgment once on its own (100 Gb/s, 14.09 us, \
         4,096-byte payloads). Nothing can keep more than 1 - p.",
    );
    let mut table = Table::new(
        ["loss, %"]
            .into_iter()
            .chain([METAROCE_8.name])
            .chain(RIVALS.iter().map(|rival| rival.name)),
    );
    for loss in LOSSES {
        let cell = |rival: &Rival| results.show(&format!("flow {loss} {}", rival.name), 1, kept);
        table.row(
            std::iter::once(loss.to_owned())
                .chain([cell(&METAROCE_8)])
                .chain(RIVALS.iter().map(cell)),
        );
    }
    page.section(
        "Two long flows, one each way",
        "64 MiB from each of two hosts to the other over one link: goodput each way in percent of the line's payload rate (97.2 Gbit/s). The acknowledgments share the line with the data of \
         the other direction. Best effort gives up what is lost: its figure counts what came. InfiniBand presupposes links that lose nothing.",
        table,
    );

    let mut table = Table::new([
        "loss, %",
        "pipelined, ms",
        "of loss-free, %",
        "at least",
        "not pipelined, ms",
        "of loss-free, %",
        "at least",
        "RoCEv2 (4 MiB), ms",
    ]);
    for (loss, limit, other) in [
        ("0", "-", "-"),
        ("0.1", "-", "-"),
        ("1", "98.5", "92"),
        ("2", "97.5", "-"),
        ("5", "94.5", "-"),
        ("10", "88", "-"),
    ] {
        let ms = |key: String| results.show(&key, 3, |report| last_us(report) / 1e3);
        let share = |kind: &str| {
            against(
                results,
                &format!("ring {loss} {kind}"),
                &format!("ring 0 {kind}"),
            )
            .show(1)
        };
        table.row([
            loss.to_owned(),
            ms(format!("ring {loss} pipelined")),
            share("pipelined"),
            limit.to_owned(),
            ms(format!("ring {loss} not pipelined")),
            share("not pipelined"),
            other.to_owned(),
            ms(format!("ring {loss} roce")),
        ]);
    }
    page.section(
        "Ring all-reduce",
        "64 ranks in a three-tier fat tree, 64 MiB, chunks of 64 KiB, 8 paths, against its own loss-free time. *Pipelined*: a chunk goes on as soon as it has come; if not, a step begins when the whole last \
         segment has come (Meta published about 86 % at 1 %, without saying which). RoCEv2 (go-back-N, DCQCN) is shown with 4 MiB, as it takes longest: it waits for timeouts of 67 ms.",
        table,
    );
    let lines = RIVALS.iter().map(|rival| Line {
        name: rival.name.to_owned(),
        points: LOSSES[1..]
            .iter()
            .map(|loss| {
                (
                    loss.parse().unwrap_or(0.0),
                    results
                        .spread(&format!("flow {loss} {}", rival.name), kept)
                        .median,
                )
            })
            .collect(),
    });
    page.charts.push(Chart {
        title: "goodput under random loss".to_owned(),
        axes: ("loss, %".to_owned(), "% of the line".to_owned()),
        x: Scale::Logarithmic,
        lines: lines.collect(),
    });
    page
}
