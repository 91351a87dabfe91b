//! What hosts let be seen of themselves.

use crate::endpoint::{PathStatistics, PathWindow, Transport};
use crate::inspect;
use crate::node::Node;
use crate::packet::{HostId, Packet};
use crate::transport::celeris::CelerisHost;
use crate::transport::infiniband::InfinibandHost;
use crate::transport::metaroce::MetaroceHost;
use crate::transport::roce::RoceHost;
use crate::transport::uec::UecHost;

/// Where the payload of a data packet belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// To the `number`-th message of a stream between two hosts.
    Stream {
        /// The stream.
        stream: u16,
        /// The message, from 0.
        number: u32,
        /// Where in it, bytes.
        offset: u64,
    },
    /// To a message of the workload.
    Message {
        /// The message.
        id: u32,
        /// Where in it, bytes.
        offset: u64,
    },
}

/// One path of a connection, or one queue pair, in the direction of its data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathView {
    /// What it does: 0 unused, 1 active, 2 draining, 3 suspect, 4 fencing, 5 reopening.
    pub state: u8,
    /// UDP source port, counted from the transport's first.
    pub entropy: u16,
    /// Share of the window, packets with 16 fraction bits.
    pub weight: u32,
    /// Packets in flight.
    pub inflight: u32,
    /// Smoothed round-trip time, ns; 0: not measured.
    pub srtt_ns: u32,
    /// Packets declared lost.
    pub losses: u32,
    /// Packets sent again.
    pub retransmissions: u32,
    /// Marks that the receiver reported.
    pub marks: u32,
    /// At the sender: the sequence number that is sent next.
    pub next: u32,
    /// At the receiver: everything before this has come.
    pub cumulative: u32,
    /// At the receiver, bit i: `cumulative + i` has come.
    pub vector: [u64; 4],
}

/// A connection in the direction of its data.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ConnectionView {
    /// Congestion window, packets with 16 fraction bits; 0: there is none.
    pub window: u32,
    /// Packets in flight.
    pub outstanding: u32,
    /// The receiver's hint, Mbit/s; 0: none.
    pub hint_mbps: u32,
    /// The rate of a transport that has one, Mbit/s; 0: none.
    pub rate_mbps: u32,
    /// Least round-trip time, ns; 0: not measured.
    pub min_rtt_ns: u32,
    /// Bytes posted and not sent.
    pub queued_bytes: u64,
    /// Its paths or queue pairs.
    pub paths: Vec<PathView>,
}

/// A host that lets something be seen. By default nothing is.
pub trait Peek: Node {
    /// Where the payload of a data packet belongs that comes to it.
    fn part(&self, packet: &Packet) -> Option<Part> {
        let _ = packet;
        None
    }

    /// The stream of a flow, if messages are told apart by [`Part::Stream`].
    fn stream(&self, flow: u32) -> u16 {
        let _ = flow;
        0
    }

    /// The path or queue pair of a packet, for its colour.
    fn path(&self, packet: &Packet) -> u8 {
        packet.source_port as u8
    }

    /// Its connection with another host: this one sends, `receiver` receives.
    fn connection(&self, id: HostId, peer: HostId, receiver: &Self) -> Option<ConnectionView> {
        let _ = (id, peer, receiver);
        None
    }
}

impl<T: Transport> Peek for MetaroceHost<T> {
    fn part(&self, packet: &Packet) -> Option<Part> {
        let part = inspect::message_part(&packet.bytes)?;
        Some(Part::Stream {
            stream: part.stream,
            number: part.number,
            offset: part.offset.into(),
        })
    }

    fn stream(&self, flow: u32) -> u16 {
        self.stream_of(flow)
    }

    fn path(&self, packet: &Packet) -> u8 {
        match inspect::path_use(&packet.bytes) {
            inspect::PathUse::Data(path) | inspect::PathUse::Acknowledgment(path) => path,
            inspect::PathUse::None => 0,
        }
    }

    fn connection(&self, id: HostId, peer: HostId, receiver: &Self) -> Option<ConnectionView> {
        let (from, to) = (self.connection(peer)?, receiver.connection(id)?);
        let statistics = self.host.endpoint.connection_statistics(from)?;
        let paths = (0..=u8::MAX).map_while(|path| {
            Some(metaroce_path(
                &self.host.endpoint.path_statistics(from, path)?,
                &self.host.endpoint.path_window(from, path)?,
                &receiver.host.endpoint.path_window(to, path)?,
            ))
        });
        Some(ConnectionView {
            window: statistics.window,
            outstanding: statistics.outstanding,
            hint_mbps: statistics.hint_mbps,
            rate_mbps: 0,
            min_rtt_ns: statistics.min_rtt_ns,
            queued_bytes: statistics.queued_bytes,
            paths: paths.collect(),
        })
    }
}

fn metaroce_path(statistics: &PathStatistics, own: &PathWindow, peer: &PathWindow) -> PathView {
    PathView {
        state: statistics.state as u8,
        entropy: statistics.entropy,
        weight: statistics.weight,
        inflight: statistics.inflight.into(),
        srtt_ns: statistics.srtt_ns,
        losses: statistics.losses,
        retransmissions: statistics.retransmissions,
        marks: statistics.ce_marks,
        next: own.next,
        cumulative: peer.cumulative,
        vector: peer.vector,
    }
}

impl Peek for RoceHost {
    fn part(&self, packet: &Packet) -> Option<Part> {
        let segment = &packet.segment;
        packet.is_data().then(|| Part::Message {
            id: segment.message,
            offset: u64::from(segment.offset) * u64::from(self.config().payload_bytes),
        })
    }

    fn path(&self, packet: &Packet) -> u8 {
        packet.segment.flow as u8
    }

    fn connection(&self, id: HostId, peer: HostId, receiver: &Self) -> Option<ConnectionView> {
        let mut view = ConnectionView::default();
        for lane in 0..self.config().queue_pairs {
            let from = self.requester(peer, lane)?;
            let (expected, early) = receiver.responder(id, lane).unwrap_or_default();
            let inflight = from.next.saturating_sub(from.base) as u32;
            view.outstanding += inflight;
            view.rate_mbps += (from.rate_kbps / 1_000) as u32;
            view.paths.push(PathView {
                state: 1,
                entropy: from.source_port & 0x3fff,
                inflight,
                next: from.next as u32,
                cumulative: expected as u32,
                vector: early,
                ..PathView::default()
            });
        }
        Some(view)
    }
}

impl Peek for InfinibandHost {}
impl Peek for UecHost {}
impl Peek for CelerisHost {}
