//! What pages make of reports: figures that several have.

use metaroce_sim::scenario::Report;

/// What MetaRoCE's frames of 4,214 bytes with 4,096 of payload leave of a line of 100 Gbit/s.
pub const PAYLOAD_GBPS: f64 = 100.0 * 4096.0 / 4214.0;

/// Whether the workload came to its end.
pub fn is_complete(report: &Report) -> bool {
    report.summary.end == "complete"
}

/// When the last transfer was acknowledged, us.
pub fn last_us(report: &Report) -> f64 {
    report.summary.acknowledged_us.max
}

/// When the transfer in the middle was acknowledged, us.
pub fn median_us(report: &Report) -> f64 {
    report.summary.acknowledged_us.p50
}

/// How long the workload took, us.
pub fn elapsed_us(report: &Report) -> f64 {
    report.summary.elapsed_ns as f64 / 1e3
}

/// The longest queue of a switch port, kB.
pub fn queue_kb(report: &Report) -> f64 {
    report.summary.network.max_queue_bytes as f64 / 1e3
}

/// Packets sent again, those of other people's flows included.
pub fn sent_again(report: &Report) -> f64 {
    report.summary.counters.retransmissions as f64
}

/// Bytes of a group, and those of them that best effort gave up.
pub fn group_bytes(report: &Report, group: u32) -> (u64, u64) {
    let flows = report.flows.iter().filter(|flow| flow.group == group);
    flows.fold((0, 0), |(all, lost), flow| {
        (all + flow.bytes, lost + flow.lost_bytes)
    })
}

/// Bus bandwidth of the last collective, Gbit/s; bytes that were given up moved nothing.
pub fn busbw(report: &Report) -> Option<f64> {
    let group = report.groups.last()?;
    let (bytes, lost) = group_bytes(report, group.group);
    Some(group.busbw_gbps? * (1.0 - lost as f64 / bytes.max(1) as f64))
}

/// A span of a time series: bins, which have the name of their end, that lie after one time and not beyond another.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// From when, us.
    pub from_us: f64,
    /// Until when, us.
    pub until_us: f64,
}

impl Window {
    /// Its bins: their ends in us, and goodput in Gbit/s.
    pub fn bins(self, report: &Report) -> impl Iterator<Item = (f64, f64)> {
        let bins = report.series.iter();
        bins.map(|bin| (bin.time_ns as f64 / 1e3, bin.goodput_gbps))
            .filter(move |&(at, _)| at > self.from_us && at <= self.until_us)
    }

    /// The mean goodput in it, Gbit/s; none if there are no bins.
    pub fn goodput(self, report: &Report) -> Option<f64> {
        let (count, sum) = self
            .bins(report)
            .fold((0_u32, 0.0), |(count, sum), (_, gbps)| {
                (count + 1, sum + gbps)
            });
        (count > 0).then(|| sum / f64::from(count))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use metaroce_sim::scenario::report::Bin;
    use metaroce_sim::scenario::{Document, NoFiles, Unwatched, execute};

    /// A report of a small all-to-all, done twice, with this goodput in bins of 10 us instead of its own.
    pub fn report(goodput: &[f64]) -> Report {
        let text = r#"
            schema = 1
            fabric.shape = { kind = "star", hosts = 3 }
            transport = "metaroce"
            workload = { kind = "collective", operation = "all-to-all", size_bytes = 3_000, repeat = 2 }
        "#;
        let none: [&str; 0] = [];
        let document = Document::parse("test", text, &none, &NoFiles).unwrap();
        let mut report = execute(&document.scenario, 1, &mut Unwatched).unwrap();
        let bins = goodput.iter().zip(1..);
        report.series = bins
            .map(|(&goodput_gbps, n)| Bin {
                time_ns: n * 10_000,
                goodput_gbps,
                retransmissions: 0,
                queues: Vec::new(),
            })
            .collect();
        report
    }

    #[test]
    fn a_window_has_the_bins_that_lie_in_it() {
        let report = report(&[1.0, 2.0, 4.0, 8.0]);
        let window = |from_us, until_us| Window { from_us, until_us }.goodput(&report);
        // The bin named 20 us lies from 10 to 20 us.
        assert_eq!(window(10.0, 30.0), Some(3.0));
        assert_eq!(window(0.0, 40.0), Some(3.75));
        assert_eq!(window(15.0, 20.0), Some(2.0));
        assert_eq!(window(40.0, 90.0), None);
    }

    #[test]
    fn bytes_that_were_given_up_are_no_bandwidth() {
        let mut report = report(&[]);
        let whole = report.groups[1].busbw_gbps.unwrap();
        assert_eq!(busbw(&report), Some(whole));
        for flow in &mut report.flows {
            // All of the first collective, a quarter of the second.
            flow.lost_bytes = if flow.group == 0 { 1_000 } else { 250 };
        }
        assert_eq!(busbw(&report), Some(whole * 0.75));
    }
}
