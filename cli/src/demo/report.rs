//! What the demo shows in the end.

use super::receiver::Received;
use super::sender::Sent;
use super::{DemoArgs, Transfer};
use crate::args::NicArgs;
use crate::failure::Failure;
use crate::output;
use crate::units::{gbit_per_second, show_count, show_size};
use metaroce_soft::core::DropReason;
use serde_json::{Value, json};

/// Both ends' findings.
pub struct Outcome<'a> {
    pub arguments: &'a DemoArgs,
    pub transfer: Transfer,
    pub sent: Sent,
    pub received: Received,
    pub interrupted: bool,
}

/// What is about to happen.
pub fn announcement(arguments: &DemoArgs, transfer: &Transfer, settings: &NicArgs) -> String {
    let faults = if arguments.nic.faults.is_empty() {
        format!("{} % of all packets lost each way", arguments.loss * 100.0)
    } else {
        "the faults you asked for".to_owned()
    };
    let planes = settings.planes.len().max(1);
    format!(
        "{} in {} messages over {} paths on {planes} plane{}, {faults}.",
        show_size(transfer.total),
        show_count(transfer.messages()),
        arguments.connection.paths,
        if planes == 1 { "" } else { "s" },
    )
}

impl Outcome<'_> {
    fn goodput(&self) -> f64 {
        gbit_per_second(self.received.verified, self.received.elapsed)
    }

    fn duplicates(&self) -> u64 {
        self.received
            .connection
            .map_or(0, |statistics| statistics.duplicates_received)
    }

    fn dropped(&self, outgoing: bool) -> (u64, u64) {
        let counts = if outgoing {
            &self.sent.nic.faults_outgoing
        } else {
            &self.sent.nic.faults_incoming
        };
        (counts.dropped(), counts.packets)
    }

    /// The outcome as a failure, if it is one.
    pub fn failure(&self) -> Option<Failure> {
        if let Some(wrong) = &self.received.wrong {
            return Some(Failure::Wrong(format!(
                "{wrong} (seed {})",
                self.arguments.seed
            )));
        }
        if self.interrupted {
            return None;
        }
        if let Some(failed) = &self.sent.failed {
            return Some(Failure::Connection(failed.clone()));
        }
        (self.received.verified != self.transfer.total).then(|| {
            Failure::Wrong(format!(
                "only {} of {} bytes were checked",
                self.received.verified, self.transfer.total
            ))
        })
    }

    pub fn to_json(&self) -> Value {
        let statistics = self.sent.connection.unwrap_or_default();
        let share = |(dropped, packets): (u64, u64)| dropped as f64 / packets.max(1) as f64;
        let paths: Vec<_> = self
            .sent
            .paths
            .iter()
            .enumerate()
            .map(|(number, path)| {
                json!({
                    "path": number, "plane": path.plane, "state": format!("{:?}", path.state), "generation": path.generation,
                    "packets": path.packets_sent, "bytes": path.bytes_sent, "losses": path.losses,
                    "retransmissions": path.retransmissions, "spurious_retransmissions": path.spurious_retransmissions,
                    "srtt_us": f64::from(path.srtt_ns) / 1e3,
                })
            })
            .collect();
        json!({
            "command": "demo",
            "goodput_gbit": self.goodput(),
            "seconds": self.received.elapsed.as_secs_f64(),
            "verified_bytes": self.received.verified,
            "total_bytes": self.transfer.total,
            "message_bytes": self.transfer.message,
            "seed": self.arguments.seed,
            "interrupted": self.interrupted,
            "loss": {
                "injected_forward": share(self.dropped(true)), "injected_backward": share(self.dropped(false)),
                "dropped_forward": self.dropped(true).0, "dropped_backward": self.dropped(false).0,
                "seen": statistics.losses,
                "seen_share": statistics.losses as f64 / statistics.packets_sent.max(1) as f64,
            },
            "packets_sent": statistics.packets_sent,
            "retransmissions": statistics.retransmissions,
            "spurious_retransmissions": statistics.spurious_retransmissions,
            "duplicates_dropped": self.duplicates(),
            "probes": statistics.probes_sent,
            "fences": statistics.fences,
            "wrong": self.received.wrong,
            "paths": paths,
        })
    }

    pub fn show(&self) {
        let statistics = self.sent.connection.unwrap_or_default();
        let mut table = output::table(&[
            "path",
            "plane",
            "packets",
            "MiB",
            "lost",
            "loss %",
            "sent again",
            "in vain",
            "srtt us",
        ]);
        for (number, path) in self.sent.paths.iter().enumerate() {
            let all = u64::from(path.packets_sent) + u64::from(path.retransmissions);
            table.add_row(vec![
                number.to_string(),
                path.plane.to_string(),
                show_count(u64::from(path.packets_sent)),
                format!("{:.1}", path.bytes_sent as f64 / 1_048_576.0),
                show_count(u64::from(path.losses)),
                format!("{:.2}", f64::from(path.losses) * 100.0 / all.max(1) as f64),
                show_count(u64::from(path.retransmissions)),
                show_count(u64::from(path.spurious_retransmissions)),
                format!("{:.0}", f64::from(path.srtt_ns) / 1e3),
            ]);
        }
        output::line(table);
        let loss = |(dropped, packets): (u64, u64)| {
            format!(
                "{} of {} ({:.2} %)",
                show_count(dropped),
                show_count(packets),
                dropped as f64 * 100.0 / packets.max(1) as f64
            )
        };
        let refused: u64 = [DropReason::Malformed(
            metaroce_soft::core::wire::DecodeError::Checksum {
                expected: 0,
                got: 0,
            },
        )]
        .iter()
        .map(|reason| self.received.nic.endpoint.dropped(*reason))
        .sum();
        output::line(output::facts(&[
            (
                "Goodput",
                format!(
                    "{:.2} Gbit/s ({:.2} s)",
                    self.goodput(),
                    self.received.elapsed.as_secs_f64()
                ),
            ),
            (
                "Bytes checked",
                format!(
                    "{} of {}",
                    show_count(self.received.verified),
                    show_count(self.transfer.total)
                ),
            ),
            ("Datagrams dropped on the way out", loss(self.dropped(true))),
            (
                "Datagrams dropped on the way back",
                loss(self.dropped(false)),
            ),
            ("Losses the sender saw", show_count(statistics.losses)),
            ("Packets sent again", show_count(statistics.retransmissions)),
            (
                "  of these in vain",
                show_count(statistics.spurious_retransmissions),
            ),
            (
                "Duplicates dropped by the receiver",
                show_count(self.duplicates()),
            ),
            ("Datagrams with a wrong checksum", show_count(refused)),
        ]));
        if self.interrupted {
            output::line("Interrupted: these are the figures so far.");
        } else if self.failure().is_none() {
            output::line("Every byte was in its place, once.");
        }
    }
}
