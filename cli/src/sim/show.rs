//! A report for people.

use crate::output;
use crate::units::{show_count, show_size};
use metaroce_sim::scenario::report::{Distribution, Report};

/// Prints what matters of a report.
pub fn report(report: &Report, seconds: f64) {
    let summary = &report.summary;
    let title = if summary.name.is_empty() {
        String::new()
    } else {
        format!("{}: ", summary.name)
    };
    output::line(format_args!(
        "{title}{} on {} hosts, seed {}: {} after {}\n",
        summary.transport,
        show_count(summary.hosts.into()),
        summary.seed,
        summary.end,
        time(summary.elapsed_ns as f64 / 1e3)
    ));
    let mut table = output::table(&["", "min", "mean", "p50", "p99", "p99.9", "max"]);
    let mut row = |name: &str, all: &Distribution, show: &dyn Fn(f64) -> String| {
        if all.count > 0 {
            let values = [all.min, all.mean, all.p50, all.p99, all.p999, all.max];
            let mut cells = vec![name.to_owned()];
            cells.extend(values.into_iter().map(show));
            table.add_row(cells);
        }
    };
    row("Delivered", &summary.fct_us, &time);
    row("Acknowledged", &summary.acknowledged_us, &time);
    row("Slowdown", &summary.slowdown, &|value| {
        format!("{value:.3}")
    });
    if report.groups.len() > 1 {
        row("Group", &summary.group_us, &time);
    }
    row("Bus bandwidth, Gbit/s", &summary.busbw_gbps, &|value| {
        format!("{value:.2}")
    });
    output::line(&table);
    let (counters, network) = (&summary.counters, &summary.network);
    let drops: Vec<String> = network
        .drops
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(reason, count)| format!("{} {}", show_count(*count), reason.replace('_', " ")))
        .collect();
    let mut facts = vec![
        (
            "Transfers",
            format!(
                "{} of {} completed, {} given up",
                show_count(summary.completed),
                show_count(summary.transfers),
                show_count(summary.failed)
            ),
        ),
        (
            "Goodput",
            format!(
                "{:.2} Gbit/s ({})",
                summary.goodput_gbps,
                show_size(summary.delivered_bytes)
            ),
        ),
        ("Fairness (Jain)", format!("{:.4}", summary.jain)),
        (
            "Sent again",
            format!(
                "{} of {} data packets",
                show_count(counters.retransmissions),
                show_count(counters.data_packets)
            ),
        ),
        (
            "Dropped",
            if drops.is_empty() {
                "nothing".to_owned()
            } else {
                drops.join(", ")
            },
        ),
        ("Longest queue", show_size(network.max_queue_bytes)),
        ("Fullest switch", show_size(network.max_buffer_bytes)),
        ("Marked", show_count(network.marked)),
    ];
    if summary.lost_bytes > 0 {
        facts.push(("Given up", show_size(summary.lost_bytes)));
    }
    if network.trimmed > 0 {
        facts.push(("Trimmed", show_count(network.trimmed)));
    }
    if network.pauses > 0 || network.blocked_ns > 0 {
        facts.push((
            "Held back",
            format!(
                "{} pauses, {} in all",
                show_count(network.pauses),
                time(network.blocked_ns as f64 / 1e3)
            ),
        ));
    }
    let speed = summary.packet_hops as f64 / seconds.max(1e-3);
    facts.push((
        "Simulation",
        format!(
            "{} packet hops in {seconds:.2} s ({} a second), hash {}",
            show_count(summary.packet_hops),
            show_count(speed as u64),
            summary.hash
        ),
    ));
    output::line(output::facts(&facts));
    if !summary.conserved {
        output::line("Packets or bytes were lost count of: this is a bug of the simulator.");
    }
}

/// Microseconds for people.
fn time(us: f64) -> String {
    if us < 1e3 {
        format!("{us:.2} us")
    } else if us < 1e6 {
        format!("{:.3} ms", us / 1e3)
    } else {
        format!("{:.3} s", us / 1e6)
    }
}
