//! MetaRoCE: the core itself, its messages WRITE_IMM to one region of the peer.
//!
//! Two hosts share one connection, whoever sends; the one with the lower number asks for it. A flow is a stream. What the
//! connection has no room for waits here, in order.

use serde::{Deserialize, Serialize};

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use metaroce_core::config::{ConnectionConfig, ControllerChoice, EndpointConfig};
use metaroce_core::memory::{Access, LocalSlice, Region, RemoteAddress};
use metaroce_core::time::Duration;
use metaroce_core::work::{
    CompletionKind, ConnectionHandle, Event, Operation, ReceiveQueue, ReceiveRequest, Source,
    Status, WorkFlags, WorkRequest,
};

use crate::endpoint::{DropReason, Transport, address};
use crate::host::{Host, Payload};
use crate::inspect;
use crate::memory::VirtualMemory;
use crate::node::{Counters, Message, Node, Progress};
use crate::packet::{HostId, Packet};
use crate::simulation::Station;
use crate::time::Time;

/// The settings of the hosts of a run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetaroceConfig {
    /// Paths of a connection.
    pub paths: u8,
    /// Planes of a host.
    pub planes: u8,
    /// Rate of a plane, Mbit/s.
    pub mbps: u32,
    /// Most payload bytes in a packet.
    pub payload_bytes: u16,
    /// The receiver gives senders their shares.
    pub hints: bool,
    /// A burst is announced.
    pub announce: bool,
    /// Packets by which a path may reorder before a gap is a loss.
    pub reorder_tolerance: u8,
    /// Data packets of a path before an ACK is due.
    pub ack_packets: u8,
    /// Longest time before an ACK is sent.
    pub ack_delay: Time,
    /// Blocks in one ACK.
    pub ack_blocks: u8,
    /// First round-trip time to assume.
    pub initial_rtt: Time,
    /// Least packets that may be outstanding: which build of the core is used, see [`crate::endpoint`]. 0: as the fabric needs.
    pub slots: u16,
    /// Congestion control; without, the window is all that holds back.
    pub congestion_control: bool,
}

impl Default for MetaroceConfig {
    fn default() -> Self {
        let (endpoint, connection) = (EndpointConfig::default(), ConnectionConfig::default());
        Self {
            paths: 64,
            planes: endpoint.planes,
            mbps: endpoint.plane_mbps,
            payload_bytes: endpoint.payload_bytes,
            hints: endpoint.hints,
            announce: connection.announce,
            reorder_tolerance: connection.reorder_tolerance,
            ack_packets: endpoint.ack_packets,
            // A quarter of the bytes of acknowledgments with one block each after 1 us, which both directions feel when both are full.
            ack_delay: Time::from_ns(1500),
            ack_blocks: 8,
            initial_rtt: Time::from_ns(connection.initial_rtt.as_nanos()),
            slots: 0,
            congestion_control: true,
        }
    }
}

impl MetaroceConfig {
    fn endpoint(&self) -> EndpointConfig {
        EndpointConfig {
            planes: self.planes,
            plane_mbps: self.mbps,
            payload_bytes: self.payload_bytes,
            hints: self.hints,
            ack_packets: self.ack_packets,
            ack_delay: Duration::from_nanos(self.ack_delay.ns()),
            ack_blocks: self.ack_blocks,
            ..EndpointConfig::default()
        }
    }

    fn connection(&self) -> ConnectionConfig {
        ConnectionConfig {
            paths: self.paths,
            announce: self.announce,
            reorder_tolerance: self.reorder_tolerance,
            initial_rtt: Duration::from_nanos(self.initial_rtt.ns()),
            keep_alive: Duration::ZERO,
            controller: if self.congestion_control {
                ControllerChoice::Coupled
            } else {
                ControllerChoice::None
            },
            ..ConnectionConfig::default()
        }
    }
}

/// Every host's region begins at this address and is as long as it can be.
const REGION_BYTES: u64 = 1 << 40;
/// Buffers of the shared queue, which the immediates of messages use up.
const RECEIVES: u64 = 256;
const QUEUE: u8 = 0;

struct Peer {
    connection: Option<ConnectionHandle>,
    waiting: VecDeque<Message>,
}

/// A host.
pub struct MetaroceHost<T> {
    /// The endpoint, its memory and its counters.
    pub host: Host<T, VirtualMemory>,
    config: MetaroceConfig,
    region: Region,
    /// The keys of all hosts' regions, as their applications would tell each other.
    keys: Arc<[u32]>,
    /// By number; hosts without business with this one are not there.
    peers: BTreeMap<HostId, Peer>,
    names: BTreeMap<u32, HostId>,
    streams: u16,
    connected: usize,
    failed: VecDeque<u32>,
}

/// The hosts of a run, each with room for so many connections.
///
/// # Errors
/// What is wrong with the settings.
pub fn hosts<T: Transport>(
    config: &MetaroceConfig,
    seed: u64,
    connections: &[usize],
) -> Result<Vec<MetaroceHost<T>>, String> {
    let mut hosts = connections
        .iter()
        .enumerate()
        .map(|(id, &connections)| MetaroceHost::new(id as HostId, config, seed, connections))
        .collect::<Result<Vec<_>, _>>()?;
    let keys: Arc<[u32]> = hosts.iter().map(|host| host.region.key).collect();
    for host in &mut hosts {
        host.keys = Arc::clone(&keys);
    }
    Ok(hosts)
}

impl<T: Transport> MetaroceHost<T> {
    fn new(
        id: HostId,
        config: &MetaroceConfig,
        seed: u64,
        connections: usize,
    ) -> Result<Self, String> {
        let mut host = Host::<T, VirtualMemory>::new(
            id,
            config.endpoint(),
            config.connection(),
            connections.max(1),
            Payload::Virtual,
            VirtualMemory::default(),
            seed,
        );
        let region = host
            .endpoint
            .register(0, REGION_BYTES, Access::ALL)
            .map_err(|error| format!("host {id}: {error:?}"))?;
        for id in 0..RECEIVES {
            Self::post_receive(&mut host, region, id);
        }
        Ok(Self {
            host,
            config: *config,
            region,
            keys: Arc::new([]),
            peers: BTreeMap::new(),
            names: BTreeMap::new(),
            streams: 32,
            connected: 0,
            failed: VecDeque::new(),
        })
    }

    fn post_receive(host: &mut Host<T, VirtualMemory>, region: Region, id: u64) {
        let local = LocalSlice {
            region: region.index,
            offset: 0,
            length: 0,
        };
        let receive = ReceiveRequest { id, local };
        // As many as completed: there is room.
        let posted = host
            .endpoint
            .post_receive(ReceiveQueue::Shared(QUEUE), &receive);
        debug_assert_eq!(posted, Ok(()));
    }

    /// The connection with a peer.
    #[must_use]
    pub fn connection(&self, peer: HostId) -> Option<ConnectionHandle> {
        self.peers.get(&peer)?.connection
    }

    /// The stream of a flow.
    #[must_use]
    pub fn stream_of(&self, flow: u32) -> u16 {
        stream_of(flow, self.streams)
    }

    /// Posts what waits, as far as there is room.
    fn flush(&mut self, now: Time, peer: HostId) {
        let at = self.host.instant(now);
        let Some(entry) = self.peers.get_mut(&peer) else {
            return;
        };
        let Some(connection) = entry.connection else {
            return;
        };
        while let Some(message) = entry.waiting.front() {
            // Streams share a connection, whoever's they are, and take turns.
            let stream = stream_of(message.flow, self.streams);
            let local = LocalSlice {
                region: self.region.index,
                offset: 0,
                length: message.bytes as u32,
            };
            let remote = RemoteAddress {
                address: 0,
                key: self.keys[peer as usize],
            };
            let work = WorkRequest {
                id: u64::from(message.id),
                operation: Operation::Write {
                    local: Source::Region(local),
                    remote,
                    immediate: Some(message.id),
                },
                flags: WorkFlags::default(),
            };
            if u32::try_from(message.bytes).is_err() {
                self.failed.push_back(message.id);
            } else if self
                .host
                .endpoint
                .post(at, connection, stream, &work)
                .is_err()
            {
                break;
            }
            entry.waiting.pop_front();
        }
    }
}

const fn stream_of(flow: u32, streams: u16) -> u16 {
    (flow % streams as u32) as u16
}

impl<T: Transport> Station for MetaroceHost<T> {
    fn receive(&mut self, now: Time, packet: &Packet) {
        self.host.receive(now, packet);
    }
    fn set_busy_planes(&mut self, busy: u8) {
        self.host.set_busy_planes(busy);
    }
    fn transmit(&mut self, now: Time, packet: &mut Packet) -> bool {
        self.host.transmit(now, packet)
    }
    fn deadline(&mut self, now: Time) -> Option<Time> {
        self.host.deadline(now)
    }
    fn timeout(&mut self, now: Time) {
        self.host.timeout(now);
    }
    fn has_news(&self) -> bool {
        self.host.has_news() || !self.failed.is_empty()
    }
}

impl<T: Transport> Node for MetaroceHost<T> {
    fn prepare(&mut self, now: Time, peers: &[HostId]) {
        let at = self.host.instant(now);
        for &peer in peers {
            let id = self.host.id();
            if id < peer {
                let addresses: Vec<_> = (0..self.config.planes)
                    .map(|plane| address(peer, plane))
                    .collect();
                let config = ConnectionConfig {
                    service: id,
                    ..self.config.connection()
                };
                if let Some(handle) = self.host.endpoint.connect(at, &addresses, config) {
                    self.names.insert(handle.to_bits(), peer);
                }
            }
            self.peers.insert(
                peer,
                Peer {
                    connection: None,
                    waiting: VecDeque::new(),
                },
            );
        }
    }

    fn is_ready(&self) -> bool {
        self.connected == self.peers.len()
    }

    fn post(&mut self, now: Time, message: &Message) {
        match self.peers.get_mut(&message.peer) {
            Some(peer) => {
                peer.waiting.push_back(*message);
                self.flush(now, message.peer);
            }
            None => self.failed.push_back(message.id),
        }
    }

    fn poll_progress(&mut self, now: Time) -> Option<Progress> {
        if let Some(id) = self.failed.pop_front() {
            return Some(Progress::Failed { id });
        }
        loop {
            match self.host.next_event()? {
                Event::Connected {
                    connection,
                    incoming,
                    service,
                } => {
                    if incoming {
                        self.names.insert(connection.to_bits(), service);
                    }
                    let id = self.names.get(&connection.to_bits()).copied();
                    if let Some(id) = id
                        && let Some(peer) = self.peers.get_mut(&id)
                    {
                        peer.connection = Some(connection);
                        self.connected += 1;
                        for stream in 0..self.streams {
                            let _ = self
                                .host
                                .endpoint
                                .attach_shared_queue(connection, stream, QUEUE);
                        }
                        self.flush(now, id);
                    }
                }
                Event::Completion(completion) => {
                    if completion.kind == CompletionKind::ReceiveWriteImmediate {
                        Self::post_receive(&mut self.host, self.region, completion.id);
                        return completion
                            .immediate
                            .map(|id| Progress::Delivered { id, lost_bytes: 0 });
                    }
                    if let Some(&peer) = self.names.get(&completion.connection.to_bits()) {
                        self.flush(now, peer);
                    }
                    let id = completion.id as u32;
                    return Some(if completion.status == Status::Success {
                        Progress::Acknowledged { id }
                    } else {
                        Progress::Failed { id }
                    });
                }
                Event::Closed { connection, .. } => {
                    if let Some(peer) = self.names.get(&connection.to_bits())
                        && let Some(peer) = self.peers.get_mut(peer)
                    {
                        peer.connection = None;
                        self.failed
                            .extend(peer.waiting.drain(..).map(|message| message.id));
                    }
                    if let Some(id) = self.failed.pop_front() {
                        return Some(Progress::Failed { id });
                    }
                }
                Event::StreamFailed { .. } | Event::PlaneDown { .. } | Event::PlaneUp { .. } => {}
            }
        }
    }

    fn counters(&self) -> Counters {
        let (sent, received) = (&self.host.sent, &self.host.received);
        let all: u64 = sent.packets.iter().sum();
        Counters {
            data_packets: sent.packets[inspect::DATA],
            retransmissions: sent.retransmissions,
            duplicates: received.dropped(DropReason::Duplicate),
            out_of_order_drops: 0,
            timeouts: sent.packets[inspect::PROBE],
            control_packets: all - sent.packets[inspect::DATA],
            marked: received.marked,
            trimmed: received.trimmed,
            fences: sent.packets[inspect::FENCE],
            placed_bytes: self.host.memory.placed(self.region.index),
        }
    }
}
