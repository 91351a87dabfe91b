//! Random loss: one long flow, and a ring all-reduce.

use super::figures::{PAYLOAD_GBPS, elapsed_us, is_complete};
use super::rivals::{
    self, INFINIBAND_STATIC, IRN, METAROCE, METAROCE_8, ROCE_LOSSY, Rival, ULTRA_ETHERNET,
};
use super::{Experiment, Results, scenarios};
use crate::table::chart::{Chart, Line, Scale};
use crate::table::page::Page;
use metaroce_sim::report::Table;
use metaroce_sim::scenario::Report;

const LOSSES: [&str; 6] = ["0", "0.1", "1", "2", "5", "10"];
const RIVALS: [Rival; 6] = [
    METAROCE_8,
    METAROCE,
    ULTRA_ETHERNET,
    IRN,
    ROCE_LOSSY,
    INFINIBAND_LONG,
];
/// The only link of two hosts loses both ways: each packet crosses it once, and so does its acknowledgment.
const ONLY_LINK: &str = "fault.0.links={ tier = \"host\" };fault.0.direction=both";
/// The same in a fabric: what goes to a host is lost on its link, and what it sends is not, or it would cross two links that lose.
const LAST_LINK: &str = "fault.0.links={ tier = \"host\" };fault.0.direction=down";
/// Acknowledgments of two blocks, so that what a lost one said is not much.
const RINGS: [(&str, &str); 3] = [
    (
        "pipelined",
        "workload.pipelined=true;transport.ack_blocks=2;transport.ack_delay=1us",
    ),
    (
        "not pipelined",
        "workload.pipelined=false;transport.ack_blocks=2;transport.ack_delay=1us",
    ),
    ("eight blocks", "workload.pipelined=true"),
];
const RING: &str = "fabric.shape={ kind = \"fat-tree\", pods = 4, edges = 4, hosts_per_edge = 4, aggregations = 4, cores_per_aggregation = 4 }";

/// One link has half of the round trip on its wire, and credits must cover it.
const INFINIBAND_LONG: Rival = Rival {
    fabric: "fabric.flow={ kind = \"credit\", bytes = \"512KiB\" };fabric.queue_bytes=unlimited",
    ..INFINIBAND_STATIC
};

fn flow_set(loss: &str, rival: Rival, bytes: &str) -> String {
    format!(
        "fabric.shape={{ kind = \"pair\" }};fault.0.effect.probability={loss}%;{ONLY_LINK};workload.kind=permutation;workload.pattern={{ shift = 1 }};workload.size_bytes={bytes};{}",
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
        for rival in RIVALS {
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

/// Goodput each way over the payload rate of the line, in percent.
fn kept(report: &Report) -> f64 {
    let bits = report.summary.delivered_bytes as f64 * 8.0;
    let line = f64::from(report.summary.hosts) * PAYLOAD_GBPS;
    bits / report.summary.elapsed_ns as f64 / line * 100.0
}

/// The loss-free time over that with loss, in percent.
fn share(lossy: &Report, free: &Report) -> Option<f64> {
    (is_complete(lossy) && is_complete(free)).then(|| elapsed_us(free) / elapsed_us(lossy) * 100.0)
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "Every packet of every kind is lost with the given probability on one link of its way, that to the host it goes to; its acknowledgment on one link of its own (100 Gb/s, 14.09 us, \
         4,096-byte payloads). Nothing can keep more than 1 - p. Best effort is not shown: it sends nothing again, and 1 - p is what it keeps.",
    );
    let mut table = Table::new(
        ["loss, %"]
            .into_iter()
            .chain(RIVALS.iter().map(|rival| rival.name)),
    );
    for loss in LOSSES {
        let cell = |rival: &Rival| results.show(&format!("flow {loss} {}", rival.name), 1, kept);
        table.row(std::iter::once(loss.to_owned()).chain(RIVALS.iter().map(cell)));
    }
    page.section(
        "Two long flows, one each way",
        "64 MiB from each of two hosts to the other over one link: goodput each way in percent of 97.2 Gbit/s, which frames as MetaRoCE's leave of the line (smaller headers may leave more than 100 %). The acknowledgments share the line with the data of \
         the other direction. InfiniBand presupposes links that lose nothing.",
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
        "pipelined, 8 blocks an ACK, ms",
        "of loss-free, %",
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
        let ms = |key: String| results.show(&key, 3, |report| elapsed_us(report) / 1e3);
        let share = |kind: &str| {
            let (key, free) = (format!("ring {loss} {kind}"), format!("ring 0 {kind}"));
            results.show_beside(&key, &free, 1, share)
        };
        table.row([
            loss.to_owned(),
            ms(format!("ring {loss} pipelined")),
            share("pipelined"),
            limit.to_owned(),
            ms(format!("ring {loss} not pipelined")),
            share("not pipelined"),
            other.to_owned(),
            ms(format!("ring {loss} eight blocks")),
            share("eight blocks"),
            ms(format!("ring {loss} roce")),
        ]);
    }
    page.section(
        "Ring all-reduce",
        "64 ranks in a three-tier fat tree, 64 MiB, chunks of 64 KiB, 8 paths, two blocks an ACK, against its own loss-free time. With the eight that simulations have otherwise all is a little faster, most of all without loss. *Pipelined*: a chunk goes on as soon as it has come; if not, a step begins when the whole last \
         segment has come (Meta published about 86 % at 1 %, without saying which). RoCEv2 (go-back-N, DCQCN) is shown with 4 MiB, as it takes longest: it waits for timeouts of 67 ms.",
        table,
    );
    let lines = RIVALS.iter().map(|rival| Line {
        name: rival.name.to_owned(),
        points: LOSSES[1..]
            .iter()
            .filter_map(|loss| {
                let y = results.median(&format!("flow {loss} {}", rival.name), kept)?;
                Some((loss.parse().ok()?, y))
            })
            .collect(),
    });
    page.charts.push(Chart {
        title: "goodput under random loss".to_owned(),
        axes: ("loss, %".to_owned(), "% of the line".to_owned()),
        x: Scale::Logarithmic,
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
    });
    page.transports("loss", rivals::table(&RIVALS, true));
    page
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::report;
    use super::*;

    #[test]
    fn shares_are_of_the_line_and_of_the_loss_free_time() {
        let mut lossy = report(&[]);
        (lossy.summary.hosts, lossy.summary.elapsed_ns) = (2, 1_000);
        lossy.summary.delivered_bytes = (PAYLOAD_GBPS * 1_000.0 / 8.0) as u64;
        assert!((kept(&lossy) - 50.0).abs() < 0.01, "{}", kept(&lossy));
        let mut free = lossy.clone();
        free.summary.elapsed_ns = 900;
        let ninety = share(&lossy, &free).unwrap();
        assert!((ninety - 90.0).abs() < 1e-9, "{ninety}");
        lossy.summary.end = "stuck";
        assert_eq!(share(&lossy, &free), None);
    }
}
