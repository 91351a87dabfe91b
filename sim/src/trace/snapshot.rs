//! Events out of an endpoint's statistics: what changed since they were last looked at.

use std::collections::BTreeMap;

use super::event::{Event, Metrics, PathRecord};
use crate::endpoint::{ConnectionStatistics, PathStatistics, Transport};
use crate::packet::HostId;
use metaroce_core::work::ConnectionHandle;

/// A count of 16 fraction bits.
const ONE: f64 = 65_536.0;

/// What was last seen of the connections of a run.
#[derive(Clone, Debug, Default)]
pub struct Snapshots {
    metrics: BTreeMap<(HostId, u32), Metrics>,
    paths: BTreeMap<(HostId, u32, u8), (PathRecord, u32)>,
}

impl Snapshots {
    /// Looks at a connection of a host. `number` is what the trace calls the connection.
    pub fn take(
        &mut self,
        host: HostId,
        number: u32,
        connection: ConnectionHandle,
        endpoint: &impl Transport,
    ) -> Vec<Event> {
        let Some(statistics) = endpoint.connection_statistics(connection) else {
            return Vec::new();
        };
        let paths: Vec<PathStatistics> = (0..=u8::MAX)
            .map_while(|path| endpoint.path_statistics(connection, path))
            .collect();
        self.compare(host, number, &statistics, &paths)
    }

    /// The same with statistics that the caller took: those of the connection and of its paths by number.
    pub fn compare(
        &mut self,
        host: HostId,
        number: u32,
        statistics: &ConnectionStatistics,
        paths: &[PathStatistics],
    ) -> Vec<Event> {
        let mut events = Vec::new();
        for (path, now) in (0..=u8::MAX).zip(paths) {
            self.compare_path((host, number, path), now, &mut events);
        }
        let now = metrics(number, statistics, paths);
        if self.metrics.get(&(host, number)) != Some(&now) {
            self.metrics.insert((host, number), now.clone());
            events.push(Event::MetricsUpdated(now));
        }
        events
    }

    fn compare_path(
        &mut self,
        key: (HostId, u32, u8),
        now: &PathStatistics,
        events: &mut Vec<Event>,
    ) {
        let (_, connection, path) = key;
        let record = PathRecord {
            connection,
            path,
            state: format!("{:?}", now.state).to_lowercase(),
            plane: now.plane,
            entropy: now.entropy,
            generation: now.generation,
            weight: f64::from(now.weight) / ONE,
            inflight: now.inflight,
            srtt_ns: now.srtt_ns,
        };
        let before = self.paths.insert(key, (record.clone(), now.losses));
        let lost_before = before.as_ref().map_or(0, |(_, losses)| *losses);
        let lost = now.losses.wrapping_sub(lost_before);
        if lost > 0 {
            events.push(Event::PacketLost {
                connection,
                path,
                packets: lost,
            });
        }
        let essence = |r: &PathRecord| (r.state.clone(), r.plane, r.entropy, r.generation);
        let unused = before.is_none() && record.state == "unused";
        if !unused && before.is_none_or(|(old, _)| essence(&old) != essence(&record)) {
            events.push(Event::PathState(record));
        }
    }
}

fn metrics(number: u32, statistics: &ConnectionStatistics, paths: &[PathStatistics]) -> Metrics {
    let measured = paths.iter().map(|path| path.srtt_ns).filter(|ns| *ns > 0);
    let (sum, count) = measured.fold((0, 0), |(sum, count), ns| (sum + u64::from(ns), count + 1));
    Metrics {
        connection: number,
        window: f64::from(statistics.window) / ONE,
        outstanding: statistics.outstanding,
        min_rtt_ns: statistics.min_rtt_ns,
        srtt_ns: sum.checked_div(count).unwrap_or(0) as u32,
        hint_mbps: statistics.hint_mbps,
        queued_bytes: statistics.queued_bytes,
        packets_sent: statistics.packets_sent,
        retransmissions: statistics.retransmissions,
        losses: statistics.losses,
        ce_marks: statistics.ce_marks,
    }
}
