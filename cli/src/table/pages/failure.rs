//! What goes wrong with links, and what is left of goodput.

use super::figures::{Window, sent_again};
use super::rivals::{
    self, CELERIS, INFINIBAND_STATIC, METAROCE, METAROCE_8, ROCE_LOSSY, ROCE_PFC, Rival,
    ULTRA_ETHERNET,
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

/// Name, and what is wrong with the links to the first spine: the direction and effect, and what else is set.
const FAULTS: [(&str, &str, &str); 6] = [
    (
        "link down, rerouted after 200 us",
        "effect = \"down\"",
        "fabric.reroute_after=200us",
    ),
    (
        "flapping, not rerouted",
        "effect = { kind = \"flap\", period = \"300us\", down = \"100us\" }",
        "",
    ),
    (
        "1 % loss on a link",
        "effect = { kind = \"loss\", probability = \"1%\" }",
        "",
    ),
    (
        "blackhole, way there",
        "direction = \"up\", effect = \"blackhole\"",
        "",
    ),
    (
        "blackhole, way back",
        "direction = \"down\", effect = \"blackhole\"",
        "",
    ),
    (
        "slow link, 10 Gb/s",
        "effect = { kind = \"slow\", mbps = \"10Gb/s\" }",
        "",
    ),
];
/// While it lasts.
const DURING: Window = Window {
    from_us: 500.0,
    until_us: 1500.0,
};
/// When it is over and the first hundred microseconds have passed.
const AFTER: Window = Window {
    from_us: 1600.0,
    until_us: 2500.0,
};
const BIN_US: f64 = 10.0;
/// The experiments without a fault.
const FREE: &str = "no fault";

fn key(fault: &str, rival: &Rival) -> String {
    format!("{fault} {}", rival.name)
}

/// What the page needs.
pub fn experiments(quick: bool) -> Vec<Experiment> {
    let (hosts, spines) = if quick { (2, 4) } else { (4, 8) };
    let experiment = |name: &str, fault: &str, rival: &Rival| {
        // The links of a leaf to its spines carry together what its hosts can send.
        let set = format!(
            "fabric.shape={{ kind = \"leaf-spine\", leaves = 2, hosts_per_leaf = {hosts}, spines = {spines} }};fabric.tiers.leaf.mbps=50Gb/s;{fault};\
             workload.pattern={{ shift = {hosts} }};workload.size_bytes=40MiB;run.limit=3ms;run.series={BIN_US}us;{}",
            rival.set()
        );
        Experiment::new(key(name, rival), scenarios::FAILURE, &set)
    };
    let mut all: Vec<Experiment> = RIVALS
        .iter()
        .map(|rival| experiment(FREE, "fault=[]", rival))
        .collect();
    let (from, until) = (DURING.from_us, DURING.until_us);
    for (name, what, more) in FAULTS
        .into_iter()
        .take(if quick { 2 } else { FAULTS.len() })
    {
        let fault = format!(
            "fault=[{{ links = {{ tier = \"leaf\", nth = 0 }}, {what}, from = \"{from}us\", until = \"{until}us\" }}];{more}"
        );
        all.extend(RIVALS.iter().map(|rival| experiment(name, &fault, rival)));
    }
    all
}

/// Goodput of a run in percent of that of the same run without a fault, in the same time.
fn kept(report: &Report, free: &Report, window: Window) -> Option<f64> {
    Some(window.goodput(report)? / window.goodput(free)? * 100.0)
}

/// For how long, of the time that a fault lasts, goodput was below 90 % of that of the same run without it, us.
fn missing_us(report: &Report, free: &Report) -> Option<f64> {
    let pairs = DURING.bins(report).zip(DURING.bins(free));
    let (all, low) = pairs.fold((0, 0_u32), |(all, low), ((_, with), (_, without))| {
        (all + 1, low + u32::from(with < 0.9 * without))
    });
    (all > 0).then(|| f64::from(low) * BIN_US)
}

/// The page.
pub fn page(results: &Results) -> Page {
    let failed: u64 = results.all().map(|report| report.summary.failed).sum();
    let failed = if failed == 0 {
        "No transfer failed.".to_owned()
    } else {
        format!("{failed} transfers failed in all.")
    };
    let mut page = Page::new(&format!(
        "Two leaves with four hosts of 100 Gb/s each and eight spines, with links of 50 Gb/s between them: 400 Gb/s up and down for 400 Gb/s of hosts. Every host sends to one below the other leaf, for longer than the run. From 500 to 1,500 us something is \
         wrong with the link between the first leaf and the first spine, an eighth of what the leaf has (a flow of one path has at most 50 Gb/s anyway); if it carries nothing, 87.5 % are left each way, and 93.8 % of both ways together where only one is hit. \
         Goodput of all flows together at the receivers. *Kept*: of the goodput of the same run without the fault in the same time. {failed}"
    ));
    let mut table = Table::new(["transport", "500 to 1,500 us, Gbit/s", "1,600 to 2,500 us"]);
    for rival in &RIVALS {
        let goodput = |window: Window| {
            results.show_so_far(&key(FREE, rival), 0, |report| window.goodput(report))
        };
        table.row([rival.name.to_owned(), goodput(DURING), goodput(AFTER)]);
    }
    page.section("Without a fault", "", table);
    for (fault, ..) in FAULTS {
        if !results.has(&key(fault, &METAROCE)) {
            continue;
        }
        let mut table = Table::new([
            "transport",
            "during, Gbit/s",
            "kept, %",
            "kept from 100 us after on, %",
            "below 90 % for, us",
            "sent again",
        ]);
        for rival in &RIVALS {
            let (key, free) = (key(fault, rival), key(FREE, rival));
            let kept = |window| {
                results.show_beside(&key, &free, 1, |report, free| kept(report, free, window))
            };
            table.row([
                rival.name.to_owned(),
                results.show_so_far(&key, 0, |report| DURING.goodput(report)),
                kept(DURING),
                kept(AFTER),
                results.show_beside(&key, &free, 0, missing_us),
                results.show_so_far(&key, 0, sent_again),
            ]);
        }
        page.section(fault, "", table);
        let lines = RIVALS.iter().filter_map(|rival| {
            let report = results.of(&key(fault, rival)).first()?;
            let shown = Window {
                from_us: 300.0,
                until_us: AFTER.until_us,
            };
            Some(Line {
                name: rival.name.to_owned(),
                points: shown.bins(report).collect(),
            })
        });
        page.charts.push(Chart {
            title: format!("{fault} from 500 to 1,500 us"),
            axes: ("us".to_owned(), "Gbit/s, all flows".to_owned()),
            x: Scale::Linear,
            lines: lines.collect(),
        });
    }
    page.transports("failure", rivals::table(&RIVALS, true));
    page
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::report;
    use super::*;

    /// Bins up to 1,600 us: so many Gbit/s, and another figure in the bins that end after the first and up to the second time.
    fn run(gbps: f64, low: f64, from: u32, until: u32) -> Report {
        let bins = (1..=160_u32).map(|n| n * 10);
        let goodput: Vec<f64> = bins
            .map(|end| {
                if end > from && end <= until {
                    low
                } else {
                    gbps
                }
            })
            .collect();
        report(&goodput)
    }

    #[test]
    fn what_is_kept_is_reckoned_against_the_same_time() {
        let free = run(100.0, 50.0, 0, 1_000);
        let half = run(100.0, 25.0, 500, 1_000);
        // 25 and 100 instead of 50 and 100.
        let kept = kept(&half, &free, DURING).unwrap();
        assert!((kept - 125.0 / 1.5).abs() < 1e-9, "{kept}");
        assert_eq!(super::kept(&half, &free, AFTER), None);
        assert_eq!(super::kept(&report(&[]), &free, DURING), None);
    }

    #[test]
    fn time_is_missing_only_while_the_fault_lasts() {
        let free = run(100.0, 100.0, 0, 0);
        assert_eq!(missing_us(&run(100.0, 89.0, 400, 600), &free), Some(100.0));
        assert_eq!(missing_us(&run(100.0, 91.0, 500, 600), &free), Some(0.0));
        assert_eq!(
            missing_us(&run(100.0, 0.0, 1_400, 1_600), &free),
            Some(100.0)
        );
        assert_eq!(missing_us(&report(&[]), &free), None);
    }
}
