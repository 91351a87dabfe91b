//! The observer that traces packets.

use std::io;

use super::event::Event;
use super::record::PacketRecord;
use super::{Header, Writer};
use crate::network::Network;
use crate::observer::{Observer, PacketEvent, reason_name};
use crate::packet::{Class, HostId, Packet};
use crate::port::{Node, PortId};
use crate::time::Time;

/// Writes what happens to packets: sent and received by hosts; dropped, marked and trimmed anywhere; links paused, up and down.
pub struct NetworkTrace<W: io::Write> {
    writer: Writer<W>,
    /// By port: the host that it belongs to, and the host that it leads to.
    ends: Vec<[Option<HostId>; 2]>,
    /// Write packets that hosts send and receive, too.
    packets: bool,
    scratch: Vec<u8>,
    error: Option<io::Error>,
}

impl<W: io::Write> NetworkTrace<W> {
    /// Begins a trace of a network. Without `packets` it has only what goes wrong.
    ///
    /// # Errors
    /// If the header cannot be written.
    pub fn new(out: W, header: Header, network: &Network, packets: bool) -> io::Result<Self> {
        let host = |node| match node {
            Node::Host(host) => Some(host),
            Node::Switch(_) => None,
        };
        let ends = network.ports.iter();
        Ok(Self {
            writer: Writer::new(out, &header.with_ports(network))?,
            ends: ends.map(|port| [host(port.owner), host(port.to)]).collect(),
            packets,
            scratch: Vec::new(),
            error: None,
        })
    }

    /// Writes an event that the caller knows of. Nothing is written after an error, which [`finish`](Self::finish) tells.
    pub fn event(&mut self, now: Time, host: Option<HostId>, event: &Event) {
        if self.error.is_none() {
            self.error = self.writer.event(now, host, event).err();
        }
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// The first error that there was.
    pub fn finish(self) -> io::Result<W> {
        match self.error {
            Some(error) => Err(error),
            None => self.writer.finish(),
        }
    }

    fn ends(&self, port: PortId) -> [Option<HostId>; 2] {
        self.ends.get(port as usize).copied().unwrap_or_default()
    }
}

impl<W: io::Write + Send> Observer for NetworkTrace<W> {
    fn packet(&mut self, now: Time, port: PortId, packet: &Packet, event: PacketEvent) {
        let [from, to] = self.ends(port);
        let host = match event {
            PacketEvent::Queued if self.packets && from.is_some() => from,
            PacketEvent::Delivered if self.packets && to.is_some() => to,
            PacketEvent::Queued | PacketEvent::Delivered | PacketEvent::Sent => return,
            PacketEvent::Trimmed | PacketEvent::Marked | PacketEvent::Dropped(_) => None,
        };
        let packet = PacketRecord::new(packet, &mut self.scratch);
        let event = match event {
            PacketEvent::Queued | PacketEvent::Sent => Event::PacketSent(packet),
            PacketEvent::Delivered => Event::PacketReceived(packet),
            PacketEvent::Trimmed => Event::Trimmed { port, packet },
            PacketEvent::Marked => Event::Marked { port, packet },
            PacketEvent::Dropped(reason) => Event::Dropped {
                port,
                reason: reason_name(reason),
                packet,
            },
        };
        self.event(now, host, &event);
    }

    fn paused(&mut self, now: Time, port: PortId, class: Class, paused: bool) {
        let class = match class {
            Class::Data => "data",
            Class::Control => "control",
        };
        let event = Event::Paused {
            port,
            class: class.into(),
            paused,
        };
        self.event(now, None, &event);
    }

    fn link(&mut self, now: Time, port: PortId, up: bool) {
        self.event(now, None, &Event::Link { port, up });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use metaroce_core::config::ConnectionConfig;

    use super::*;
    use crate::capture::Capture;
    use crate::faults::FaultConfig;
    use crate::lab::setup::{Lab, Settings};
    use crate::observer::Watch;
    use crate::random::Probability;
    use crate::topology::{PairConfig, pair};
    use crate::trace::{Line, PacketRecord, Snapshots, VERSION};

    /// A write of 1 MB under 5 % loss, traced and captured.
    fn run(planes: u8) -> (Lab, Vec<Line>, Vec<u8>) {
        let mut topology = pair(
            &PairConfig {
                planes,
                ..PairConfig::default()
            },
            1,
        );
        for port in 0..topology.network.ports.len() as u32 {
            let faults = FaultConfig::loss(Probability::new(0.05));
            topology.network.set_faults(port, faults);
        }
        let header = Header::new("test", 1);
        let trace = NetworkTrace::new(Vec::new(), header, &topology.network, true).unwrap();
        let mut capture = Capture::new(Vec::new(), "test").unwrap();
        capture.watch_host(&topology.network, 0).unwrap();
        let (trace, capture) = (Arc::new(Mutex::new(trace)), Arc::new(Mutex::new(capture)));
        topology.network.observer = Watch(Some(Box::new((trace.clone(), capture.clone()))));
        let settings = Settings {
            planes,
            ..Settings::default()
        };
        let mut lab = Lab::new(topology, &settings);
        let connection = lab.connect(0, 1, ConnectionConfig::default()).unwrap();
        let mut snapshots = Snapshots::default();
        let mut snap = |lab: &Lab| {
            let endpoint = &lab.sim.hosts[0].endpoint;
            for event in snapshots.take(0, 0, connection, endpoint) {
                trace.lock().unwrap().event(lab.sim.now(), Some(0), &event);
            }
        };
        snap(&lab);
        lab.write(0, 1, connection, 0, 1_000_000, 1).unwrap();
        lab.completion(Time::from_ms(100)).unwrap();
        snap(&lab);
        lab.sim.network.observer = Watch(None);
        let bytes = Arc::into_inner(trace).unwrap().into_inner().unwrap();
        let text = String::from_utf8(bytes.finish().unwrap()).unwrap();
        let (first, lines) = text.split_once('\n').unwrap();
        let header: Header = serde_json::from_str(first).unwrap();
        assert_eq!((header.metaroce_trace, header.seed), (VERSION, 1));
        assert_eq!(header.ports.len(), 2 * usize::from(planes));
        assert_eq!(header.ports[1].to_host, Some(0));
        let lines = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let lines = lines.collect();
        let capture = Arc::into_inner(capture).unwrap().into_inner().unwrap();
        (lab, lines, capture.finish().unwrap())
    }

    fn packets(lines: &[Line]) -> impl Iterator<Item = (&Line, &PacketRecord)> {
        lines.iter().filter_map(|line| match &line.event {
            Event::PacketSent(packet) | Event::PacketReceived(packet) => Some((line, packet)),
            Event::Dropped { packet, .. } => Some((line, packet)),
            _ => None,
        })
    }

    #[test]
    fn a_trace_counts_what_the_network_counts() {
        let (lab, lines, _) = run(2);
        assert!(lines.is_sorted_by_key(|line| line.time));
        assert!(packets(&lines).all(|(_, packet)| packet.kind != "malformed"));
        for host in 0..2 {
            let sent = |kind: &str| {
                let of = |(line, packet): &(&Line, &PacketRecord)| {
                    matches!(line.event, Event::PacketSent(_))
                        && line.host == Some(host)
                        && packet.kind == kind
                };
                packets(&lines).filter(of).count() as u64
            };
            let counted = lab.sim.hosts[host as usize].sent.packets;
            assert_eq!(sent("data"), counted[crate::inspect::DATA]);
            assert_eq!(sent("ack"), counted[crate::inspect::ACK]);
            assert_eq!(sent("probe"), counted[crate::inspect::PROBE]);
        }
        let dropped = lines.iter().filter(
            |line| matches!(&line.event, Event::Dropped { reason, .. } if reason == "loss"),
        );
        let drops: u64 = lab
            .sim
            .network
            .ports
            .iter()
            .map(|p| p.statistics.drops())
            .sum();
        assert_eq!(dropped.count() as u64, drops);
        assert!(drops > 10);
        let new_bytes: u64 = packets(&lines)
            .filter(|(line, packet)| {
                matches!(line.event, Event::PacketSent(_)) && !packet.retransmission
            })
            .filter_map(|(_, packet)| packet.payload)
            .map(u64::from)
            .sum();
        assert_eq!(new_bytes, 1_000_000);
    }

    #[test]
    fn snapshots_tell_what_changed() {
        let (lab, lines, _) = run(1);
        let lost: u32 = lines
            .iter()
            .filter_map(|line| match line.event {
                Event::PacketLost { packets, .. } => Some(packets),
                _ => None,
            })
            .sum();
        let last = lines.iter().rev().find_map(|line| match &line.event {
            Event::MetricsUpdated(metrics) => Some(metrics),
            _ => None,
        });
        let last = last.unwrap();
        assert_eq!(u64::from(lost), last.losses);
        assert_eq!(last.retransmissions, lab.sim.hosts[0].sent.retransmissions);
        assert!(last.losses > 0 && last.window > 1.0, "{last:?}");
        assert!(last.srtt_ns > 0 && last.min_rtt_ns > 0, "{last:?}");
        let active = lines
            .iter()
            .filter(|line| matches!(&line.event, Event::PathState(path) if path.state == "active"));
        assert_eq!(
            active.count(),
            usize::from(ConnectionConfig::default().paths)
        );
    }

    #[test]
    fn a_run_makes_the_same_files_again() {
        let ((_, one, capture), (_, two, again)) = (run(1), run(1));
        assert!(one == two && capture == again);
        assert!(capture.len() > 10_000);
    }
}
