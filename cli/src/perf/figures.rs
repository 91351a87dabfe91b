//! What a measurement found out, and how it is shown.

use crate::failure::Failure;
use crate::output;
use crate::session::Session;
use crate::units::{gbit_per_second, show_count, show_size};
use hdrhistogram::Histogram;
use metaroce_soft::Nic;
use metaroce_soft::core::work::Status;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The result of one size.
#[derive(Debug)]
pub struct Outcome {
    pub size: u64,
    pub operations: u64,
    pub elapsed: Duration,
    pub latency: Option<Histogram<u64>>,
    pub tally: Tally,
    pub verified_bytes: Option<u64>,
    pub wrong: Option<String>,
}

/// How operations ended that did not succeed.
#[derive(Debug, Default)]
pub struct Tally {
    pub posted: u64,
    pub succeeded: u64,
    pub failed: BTreeMap<String, u64>,
    /// Between the last success (or the start) and the first failure.
    pub silence: Option<Duration>,
    pub refused: Option<String>,
    pub closed: Option<String>,
}

impl Tally {
    /// Counts a completion.
    pub fn count(&mut self, status: Status, since_progress: Duration) {
        if status == Status::Success {
            self.succeeded += 1;
        } else {
            *self.failed.entry(format!("{status:?}")).or_default() += 1;
            self.silence.get_or_insert(since_progress);
        }
    }

    /// Operations that ended badly.
    pub fn failures(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Operations of which nothing has been heard.
    pub fn open(&self) -> u64 {
        self.posted - self.succeeded - self.failures()
    }

    /// Nothing more can be expected of the connection.
    pub fn is_over(&self) -> bool {
        !self.failed.is_empty() || self.refused.is_some() || self.closed.is_some()
    }
}

impl Outcome {
    pub fn ended_early(&self) -> bool {
        self.tally.is_over() || self.wrong.is_some()
    }

    /// The result as a failure, if it is one.
    pub fn failure(&self) -> Option<Failure> {
        if let Some(wrong) = &self.wrong {
            return Some(Failure::Wrong(wrong.clone()));
        }
        if !self.tally.is_over() {
            return None;
        }
        let mut said: Vec<_> = self
            .tally
            .failed
            .iter()
            .map(|(status, count)| format!("{count} x {status}"))
            .collect();
        said.extend(
            self.tally
                .closed
                .iter()
                .map(|reason| format!("connection ended: {reason}")),
        );
        said.extend(self.tally.refused.clone());
        let text = format!(
            "operations of {} failed: {}; {} of {} had succeeded, {} were never reported",
            show_size(self.size),
            said.join(", "),
            self.tally.succeeded,
            self.tally.posted,
            self.tally.open()
        );
        let lost = self.tally.closed.is_some() || self.tally.failed.contains_key("ConnectionLost");
        Some(if lost {
            Failure::Connection(text)
        } else {
            Failure::Wrong(text)
        })
    }

    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("size".to_owned(), json!(self.size));
        object.insert("operations".to_owned(), json!(self.operations));
        object.insert("seconds".to_owned(), json!(self.elapsed.as_secs_f64()));
        object.insert("goodput_gbit".to_owned(), json!(self.gbit()));
        object.insert("operations_per_second".to_owned(), json!(self.rate()));
        if let Some(latency) = &self.latency {
            let micros = |nanos: u64| nanos as f64 / 1e3;
            object.insert(
                "latency_us".to_owned(),
                json!({
                    "min": micros(latency.min()), "mean": latency.mean() / 1e3, "max": micros(latency.max()),
                    "p50": micros(latency.value_at_quantile(0.5)), "p90": micros(latency.value_at_quantile(0.9)),
                    "p99": micros(latency.value_at_quantile(0.99)), "p99.9": micros(latency.value_at_quantile(0.999)),
                }),
            );
        }
        if let Some(bytes) = self.verified_bytes {
            object.insert("verified_bytes".to_owned(), json!(bytes));
        }
        object.insert("posted".to_owned(), json!(self.tally.posted));
        object.insert("failed".to_owned(), json!(self.tally.failed));
        object.insert("unreported".to_owned(), json!(self.tally.open()));
        object.insert(
            "silence_seconds".to_owned(),
            json!(self.tally.silence.map(|silence| silence.as_secs_f64())),
        );
        object.insert("closed".to_owned(), json!(self.tally.closed));
        if let Some(wrong) = &self.wrong {
            object.insert("wrong".to_owned(), json!(wrong));
        }
        Value::Object(object)
    }

    fn gbit(&self) -> f64 {
        gbit_per_second(self.operations * self.size, self.elapsed)
    }

    fn rate(&self) -> f64 {
        if self.elapsed.is_zero() {
            0.0
        } else {
            self.operations as f64 / self.elapsed.as_secs_f64()
        }
    }

    /// Prints one line, with a heading before the first.
    pub fn show(&self, first: bool) {
        let size = show_size(self.size);
        match &self.latency {
            Some(latency) => {
                if first {
                    output::line(format_args!(
                        "{:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
                        "size", "operations", "min us", "p50", "p90", "p99", "p99.9", "max"
                    ));
                }
                let at = |quantile| latency.value_at_quantile(quantile) as f64 / 1e3;
                let (min, max) = (latency.min() as f64 / 1e3, latency.max() as f64 / 1e3);
                output::line(format_args!(
                    "{size:>10} {:>10} {min:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {max:>9.1}",
                    self.operations,
                    at(0.5),
                    at(0.9),
                    at(0.99),
                    at(0.999)
                ));
            }
            None => {
                if first {
                    output::line(format_args!(
                        "{:>10} {:>12} {:>9} {:>10} {:>12}",
                        "size", "operations", "seconds", "Gbit/s", "operations/s"
                    ));
                }
                let (seconds, gbit) = (self.elapsed.as_secs_f64(), self.gbit());
                output::line(format_args!(
                    "{size:>10} {:>12} {seconds:>9.3} {gbit:>10.3} {:>12}",
                    show_count(self.operations),
                    show_count(self.rate() as u64)
                ));
            }
        }
        if let Some(bytes) = self.verified_bytes {
            output::line(format_args!("{:>10} {} verified", "", show_size(bytes)));
        }
    }
}

/// The connection's figures.
pub fn connection_json(nic: &Nic, session: &Session) -> Value {
    let sockets = nic.statistics();
    let mut object = Map::new();
    if let Some(statistics) = session.connection.statistics() {
        let lost = statistics.losses as f64 / statistics.packets_sent.max(1) as f64;
        object.insert("packets_sent".to_owned(), json!(statistics.packets_sent));
        object.insert("losses".to_owned(), json!(statistics.losses));
        object.insert("loss_share".to_owned(), json!(lost));
        object.insert(
            "retransmissions".to_owned(),
            json!(statistics.retransmissions),
        );
        object.insert(
            "spurious_retransmissions".to_owned(),
            json!(statistics.spurious_retransmissions),
        );
        object.insert(
            "duplicates_received".to_owned(),
            json!(statistics.duplicates_received),
        );
        object.insert("ce_marks".to_owned(), json!(statistics.ce_marks));
        object.insert("probes_sent".to_owned(), json!(statistics.probes_sent));
        object.insert("fences".to_owned(), json!(statistics.fences));
        object.insert(
            "min_rtt_us".to_owned(),
            json!(f64::from(statistics.min_rtt_ns) / 1e3),
        );
        object.insert("hint_mbps".to_owned(), json!(statistics.hint_mbps));
    }
    object.insert(
        "faults_dropped".to_owned(),
        json!(sockets.faults_outgoing.dropped() + sockets.faults_incoming.dropped()),
    );
    object.insert(
        "datagrams_per_send".to_owned(),
        json!(sockets.sockets.sent_datagrams as f64 / sockets.sockets.sends.max(1) as f64),
    );
    object.insert(
        "sends_refused".to_owned(),
        json!(sockets.sockets.send_refused),
    );
    Value::Object(object)
}

/// The same for people.
pub fn show_connection(statistics: &Value) {
    let Value::Object(object) = statistics else {
        return;
    };
    let shown: Vec<_> = object
        .iter()
        .map(|(name, value)| format!("{} {value}", name.replace('_', " ")))
        .collect();
    output::line(format_args!("\n{}", shown.join(", ")));
}
