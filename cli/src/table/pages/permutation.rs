//! Everyone sends to someone else: how even are the paths used?

use super::figures::{last_us, median_us};
use super::rivals::{
    self, INFINIBAND, INFINIBAND_STATIC, METAROCE, ROCE_PFC, Rival, ULTRA_ETHERNET,
    ULTRA_ETHERNET_TRIM,
};
use super::{Experiment, Results, scenarios};
use crate::table::chart::{Chart, Line, Scale};
use crate::table::page::Page;
use metaroce_sim::report::Table;

/// Hosts, and ports of a switch.
const SIZES: [(u32, u32); 3] = [(16, 4), (128, 8), (1024, 16)];
const PATHS: [u32; 6] = [4, 8, 16, 32, 64, 128];
const RIVALS: [Rival; 5] = [
    ULTRA_ETHERNET,
    ULTRA_ETHERNET_TRIM,
    INFINIBAND,
    INFINIBAND_STATIC,
    ROCE_PFC,
];

/// Flows begin as soon as the connections are there, as in the published runs.
const FRESH: &str = "run.settle=0";

fn special(idle: &str) -> Vec<(&'static str, String)> {
    let slow = |k, links| {
        format!(
            "fabric.shape.k={k};fault=[{{ links = {{ tier = \"core\", random = {links} }}, effect = {{ kind = \"slow\", mbps = \"25Gb/s\" }} }}];{idle}"
        )
    };
    vec![
        ("16, one core link at 25 %", slow(4, 1)),
        ("1,024, 8 core links at 25 %", slow(16, 8)),
        (
            "1,024, 4:1 oversubscribed",
            format!(
                "fabric.shape={{ kind = \"fat-tree\", pods = 8, edges = 4, hosts_per_edge = 32, aggregations = 8, cores_per_aggregation = 4 }};{idle}"
            ),
        ),
    ]
}

const SINGLE: &str = "fabric.shape.k=4;workload.kind=outcast;workload.receivers=1;workload.placement={ hosts = [0, 15] };workload.size_bytes=2000000";

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    let mut all = Vec::new();
    for (name, settle) in [("fresh", FRESH), ("idle", "run.settle=500us")] {
        all.push(Experiment::new(
            format!("single {name}"),
            scenarios::PERMUTATION,
            &format!("{SINGLE};{settle}"),
        ));
        for (hosts, k) in SIZES.into_iter().take(if quick { 1 } else { 3 }) {
            all.push(Experiment::new(
                format!("{hosts} 64 {name}"),
                scenarios::PERMUTATION,
                &format!("fabric.shape.k={k};transport.paths=64;{settle}"),
            ));
        }
    }
    for (hosts, k) in SIZES.into_iter().take(if quick { 1 } else { 2 }) {
        for paths in PATHS.into_iter().filter(|&paths| paths != 64) {
            all.push(Experiment::new(
                format!("{hosts} {paths} fresh"),
                scenarios::PERMUTATION,
                &format!("fabric.shape.k={k};transport.paths={paths};{FRESH}"),
            ));
        }
        for rival in RIVALS {
            all.push(Experiment::new(
                format!("{hosts} {}", rival.name),
                scenarios::PERMUTATION,
                &format!("fabric.shape.k={k};{};{FRESH}", rival.set()),
            ));
        }
    }
    if !quick {
        for paths in [8, 128] {
            all.push(Experiment::new(
                format!("1024 {paths} fresh"),
                scenarios::PERMUTATION,
                &format!("fabric.shape.k=16;transport.paths={paths};{FRESH}"),
            ));
        }
        for (name, set) in special(FRESH) {
            all.push(Experiment::new(name, scenarios::PERMUTATION, &set));
        }
    }
    all
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "Every host of a three-tier fat tree (100 Gb/s, 14.09 us, queues of 892,250 B marked from 37,350 to 145,250 B, no trimming) sends 2,000,000 bytes to another and receives \
         from one. Times are from the start to the last acknowledgment at the sender, in microseconds. *Fresh*: flows begin when the connections were just made, as in the \
         published runs; *idle*: after 500 us of silence, when what the receiver said is stale and a burst begins with 8 packets.",
    );
    let show = |key: &str, figure: fn(&_) -> f64| results.show(key, 1, figure);
    let mut table = Table::new([
        "case",
        "last, fresh",
        "median, fresh",
        "last, idle",
        "at most",
    ]);
    table.row([
        "single flow",
        &show("single fresh", last_us),
        &show("single fresh", median_us),
        &show("single idle", last_us),
        "180",
    ]);
    for (hosts, limit) in [("16", "199"), ("128", "207"), ("1024", "210")] {
        let key = |state| format!("{hosts} 64 {state}");
        if !results.has(&key("fresh")) {
            continue;
        }
        table.row([
            format!("{hosts} hosts").as_str(),
            &show(&key("fresh"), last_us),
            &show(&key("fresh"), median_us),
            &show(&key("idle"), last_us),
            limit,
        ]);
    }
    for ((name, _), limit) in special("").iter().zip(["240", "215", "740"]) {
        if !results.has(name) {
            continue;
        }
        table.row([
            *name,
            &show(name, last_us),
            &show(name, median_us),
            "-",
            limit,
        ]);
    }
    page.section(
        "64 paths",
        "*At most* is what the project asks of itself.",
        table,
    );

    let mut table = Table::new([
        "paths",
        "16 hosts, last",
        "median",
        "128 hosts, last",
        "median",
        "1,024 hosts, last",
        "median",
    ]);
    for paths in PATHS {
        let key = |hosts: &str| format!("{hosts} {paths} fresh");
        let cells = ["16", "128", "1024"]
            .map(|hosts| [show(&key(hosts), last_us), show(&key(hosts), median_us)]);
        table.row(std::iter::once(paths.to_string()).chain(cells.into_iter().flatten()));
    }
    page.section(
        "Paths",
        "A flow of the 16 ways through the core needs many to use them evenly.",
        table,
    );

    let mut table = Table::new(["transport", "16 hosts, last", "128 hosts, last"]);
    table.row([
        "MetaRoCE, 64 paths",
        &show("16 64 fresh", last_us),
        &show("128 64 fresh", last_us),
    ]);
    for rival in RIVALS {
        let key = |hosts: &str| format!("{hosts} {}", rival.name);
        table.row([
            rival.name,
            &show(&key("16"), last_us),
            &show(&key("128"), last_us),
        ]);
    }
    table.row([
        "published: htsim, Ultra Ethernet, 128 paths, trimming",
        "197.0",
        "205.1",
    ]);
    table.row(["published: the same, one path", "535.9", "-"]);
    page.section(
        "Other transports",
        "Published figures are converted from frames of 4,150 to 4,214 bytes (1.0154).",
        table,
    );

    let line = |hosts: &str| Line {
        name: format!("{hosts} hosts"),
        points: PATHS
            .into_iter()
            .filter_map(|paths| {
                let y = results.median(&format!("{hosts} {paths} fresh"), last_us)?;
                Some((f64::from(paths), y))
            })
            .collect(),
    };
    page.charts.push(Chart {
        title: "permutation of 2 MB: the last flow".to_owned(),
        axes: ("paths".to_owned(), "us".to_owned()),
        x: Scale::Logarithmic,
        lines: ["16", "128", "1024"]
            .into_iter()
            .map(line)
            .filter(|line| !line.points.is_empty())
            .collect(),
    });
    let all: Vec<Rival> = [METAROCE].into_iter().chain(RIVALS).collect();
    page.transports("permutation", rivals::table(&all, true));
    page
}
