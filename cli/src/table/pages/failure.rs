//! What goes wrong with links, and what is left of goodput.

use super::rivals::{
    CELERIS, INFINIBAND_STATIC, METAROCE, METAROCE_8, ROCE_LOSSY, ROCE_PFC, Rival, ULTRA_ETHERNET,
};
use super::{Experiment, Results, scenarios};
use crate::table::chart::{Chart, Line, Scale};
use crate::table::page::Page;
use metaroce_sim::report::Table;
use metaroce_sim::scenario::Report;

const RIVALS: [Rival; 7] = [
    METAROCE,
    METAROCE_8,
    ULTRA_ETHERNET,
    ROCE_PFC,
    ROCE_LOSSY,
    INFINIBAND_STATIC,
    CELERIS,
];

/// Of the links to the first spine; name and what is set.
const FAULTS: [(&str, &str); 6] = [
    (
        "link down, rerouted after 200 us",
        "fault=[{ links = { tier = \"leaf\", nth = 0 }, effect = \"down\", from = \"500us\", until = \"1500us\" }];fabric.reroute_after=200us",
    ),
    (
        "flapping, not rerouted",
        "fault=[{ links = { tier = \"leaf\", nth = 0 }, effect = { kind = \"flap\", period = \"300us\", down = \"100us\" }, from = \"500us\", until = \"1500us\" }]",
    ),
    (
        "1 % loss on a link",
        "fault=[{ links = { tier = \"leaf\", nth = 0 }, effect = { kind = \"loss\", probability = \"1%\" }, from = \"500us\", until = \"1500us\" }]",
    ),
    (
        "blackhole, way there",
        "fault=[{ links = { tier = \"leaf\", nth = 0 }, direction = \"up\", effect = \"blackhole\", from = \"500us\", until = \"1500us\" }]",
    ),
    (
        "blackhole, way back",
        "fault=[{ links = { tier = \"leaf\", nth = 0 }, direction = \"down\", effect = \"blackhole\", from = \"500us\", until = \"1500us\" }]",
    ),
    (
        "slow link, 10 Gb/s",
        "fault=[{ links = { tier = \"leaf\", nth = 0 }, effect = { kind = \"slow\", mbps = \"10Gb/s\" }, from = \"500us\", until = \"1500us\" }]",
    ),
];

fn key(fault: &str, rival: &Rival) -> String {
    format!("{fault} {}", rival.name)
}

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    let mut all = Vec::new();
    for (fault, set) in FAULTS
        .into_iter()
        .take(if quick { 2 } else { FAULTS.len() })
    {
        for rival in RIVALS {
            // Four hosts below a leaf and half of the line each through eight spines of half the rate: no plenty of room, and none lacking.
            let set = format!(
                "fabric.shape={{ kind = \"leaf-spine\", leaves = 2, hosts_per_leaf = 4, spines = 8 }};{set};workload.size_bytes={};run.limit=3ms;run.series=10us;{}",
                if quick { "4MiB" } else { "40MiB" },
                rival.set()
            );
            all.push(Experiment::new(
                key(fault, &rival),
                scenarios::FAILURE,
                &set,
            ));
        }
    }
    all
}

fn goodput(report: &Report, from_us: f64, until_us: f64) -> f64 {
    let bins = report
        .series
        .iter()
        .filter(|bin| (from_us..until_us).contains(&(bin.time_ns as f64 / 1e3)));
    let rates: Vec<f64> = bins.map(|bin| bin.goodput_gbps).collect();
    rates.iter().sum::<f64>() / rates.len().max(1) as f64
}

/// Bins with less than 90 % of what it was before, after the fault began and while it lasts, as a time in us.
fn missing(report: &Report) -> f64 {
    let before = goodput(report, 300.0, 500.0);
    let low = report.series.iter().filter(|bin| {
        let at = bin.time_ns as f64 / 1e3;
        (500.0..1500.0).contains(&at) && bin.goodput_gbps < 0.9 * before
    });
    low.count() as f64 * 10.0
}

/// The page.
pub fn page(results: &Results) -> Page {
    let mut page = Page::new(
        "Two leaves with four hosts each and eight spines: every host sends to one below the other leaf, for longer than the run. From 500 to 1,500 us something is wrong with the link between the first leaf and the first spine. \
         Goodput of all flows together at the receivers.",
    );
    for (fault, _) in FAULTS {
        if !results.has(&key(fault, &METAROCE)) {
            continue;
        }
        let mut table = Table::new([
            "transport",
            "before, Gbit/s",
            "during, Gbit/s",
            "after, Gbit/s",
            "below 90 % for, us",
            "sent again",
            "failed",
        ]);
        for rival in &RIVALS {
            let spread = |decimals, figure: &dyn Fn(&Report) -> f64| {
                results.spread(&key(fault, rival), figure).show(decimals)
            };
            table.row([
                rival.name.to_owned(),
                spread(0, &|report| goodput(report, 300.0, 500.0)),
                spread(0, &|report| goodput(report, 500.0, 1500.0)),
                spread(0, &|report| goodput(report, 1600.0, 2500.0)),
                spread(0, &missing),
                spread(0, &|report| report.summary.counters.retransmissions as f64),
                spread(0, &|report| report.summary.failed as f64),
            ]);
        }
        page.section(fault, "", table);
        let lines = RIVALS.iter().filter_map(|rival| {
            let report = results.of(&key(fault, rival)).first()?;
            Some(Line {
                name: rival.name.to_owned(),
                points: report
                    .series
                    .iter()
                    .map(|bin| (bin.time_ns as f64 / 1e3, bin.goodput_gbps))
                    .filter(|point| point.0 > 300.0 && point.0 < 2500.0)
                    .collect(),
            })
        });
        page.charts.push(Chart {
            title: format!("{fault} from 500 to 1,500 us"),
            axes: ("us".to_owned(), "Gbit/s, all flows".to_owned()),
            x: Scale::Linear,
            lines: lines.collect(),
        });
    }
    page
}
