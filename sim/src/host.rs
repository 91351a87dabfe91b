//! A core endpoint as a host of the simulation.

use std::collections::VecDeque;

use metaroce_core::config::{ConnectionConfig, EndpointConfig};
use metaroce_core::time::Instant;
use metaroce_core::work::Event;

use crate::endpoint::{
    self as core, DropReason, FIRST_SOURCE_PORT, HEADER_BUFFER, ReceiveMeta, Transmit, Transport,
    address, host_of,
};
use crate::inspect;
use crate::memory::SimMemory;
use crate::packet::{Class, Ecn, HostId, Packet};
use crate::random::{Purpose, Stream};
use crate::simulation::Station;
use crate::time::Time;

/// Whether payloads exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Payload {
    /// Every datagram carries its bytes and its CRC, and both are checked.
    Real,
    /// Only headers travel; the line is occupied for the whole length. A damaged datagram is dropped at the
    /// receiver, as a CRC would.
    Virtual,
}

/// Sets the addresses of a host.
pub fn set_addresses(config: &mut EndpointConfig, id: HostId) {
    for plane in 0..config.planes {
        config.addresses[usize::from(plane)] = address(id, plane);
    }
}

/// The secret of a host's endpoint in a run.
#[must_use]
pub fn secret(seed: u64, id: HostId) -> [u8; 32] {
    let mut secret = [0; 32];
    Stream::new(seed, Purpose::Secret, u64::from(id)).fill(&mut secret);
    secret
}

/// What a host sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Packets by kind.
    pub packets: [u64; inspect::KINDS],
    /// Wire bytes by kind.
    pub wire_bytes: [u64; inspect::KINDS],
    /// Data packets that were sent before (in `packets` too).
    pub retransmissions: u64,
    /// Their wire bytes.
    pub retransmitted_bytes: u64,
    /// When the last data packet that was new was handed to the line.
    pub last_new: Time,
    /// All wire bytes up to and with that packet.
    pub bytes_at_last_new: u64,
    total_bytes: u64,
}

/// What a host did with the packets that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Packets.
    pub packets: u64,
    /// Data packets that came marked.
    pub marked: u64,
    /// Dropped because a switch cut off the payload.
    pub trimmed: u64,
    /// Dropped because damaged (virtual payloads only; else the endpoint finds out itself).
    pub damaged: u64,
    /// Dropped by the endpoint, by [`DropReason::index`].
    pub dropped: [u64; DropReason::COUNT],
}

impl Default for Received {
    fn default() -> Self {
        Self {
            packets: 0,
            marked: 0,
            trimmed: 0,
            damaged: 0,
            dropped: [0; DropReason::COUNT],
        }
    }
}

impl Received {
    /// How many packets the endpoint dropped for a reason.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason.index()]
    }
}

/// An endpoint on the network.
pub struct Host<T, M> {
    /// The endpoint.
    pub endpoint: T,
    /// Its memory.
    pub memory: M,
    /// What it sent.
    pub sent: Sent,
    /// What came.
    pub received: Received,
    /// Print every datagram that the endpoint drops.
    pub verbose: bool,
    id: HostId,
    payload: Payload,
    overhead_bytes: u32,
    header: [u8; HEADER_BUFFER],
    scratch: Vec<u8>,
    /// Its clock minus the simulation's, in ns.
    clock_offset_ns: i64,
    news: VecDeque<Event>,
}

impl<T: Transport, M: SimMemory> Host<T, M> {
    /// The host of this number. Its addresses are set here; `connections` is the size of its table.
    ///
    /// # Panics
    /// If the endpoint refuses the configuration.
    pub fn new(
        id: HostId,
        mut config: EndpointConfig,
        default: ConnectionConfig,
        connections: usize,
        payload: Payload,
        memory: M,
        seed: u64,
    ) -> Self {
        set_addresses(&mut config, id);
        let endpoint = match T::create(config, default, secret(seed, id), connections) {
            Ok(endpoint) => endpoint,
            Err(error) => panic!("endpoint configuration: {error}"),
        };
        Self::with_endpoint(id, &config, endpoint, payload, memory)
    }

    /// A host of an endpoint that was made with this configuration.
    pub fn with_endpoint(
        id: HostId,
        config: &EndpointConfig,
        endpoint: T,
        payload: Payload,
        memory: M,
    ) -> Self {
        Self {
            endpoint,
            memory,
            sent: Sent::default(),
            received: Received::default(),
            verbose: false,
            id,
            payload,
            overhead_bytes: u32::from(config.overhead_bytes),
            header: [0; HEADER_BUFFER],
            scratch: vec![0; (usize::from(config.payload_bytes) + 64).max(HEADER_BUFFER)],
            clock_offset_ns: 1_000_000_000,
            news: VecDeque::new(),
        }
    }

    /// The host's number.
    #[must_use]
    pub fn id(&self) -> HostId {
        self.id
    }

    /// The time on the host's clock.
    #[must_use]
    pub fn instant(&self, now: Time) -> Instant {
        Instant::from_nanos(now.ns().saturating_add_signed(self.clock_offset_ns))
    }

    /// Sets the host's clock forward or back.
    pub fn jump_clock(&mut self, ns: i64) {
        self.clock_offset_ns = self.clock_offset_ns.saturating_add(ns);
    }

    /// The next thing that happened at the endpoint.
    pub fn next_event(&mut self) -> Option<Event> {
        self.collect();
        self.news.pop_front()
    }

    fn collect(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            self.news.push_back(event);
        }
    }

    fn count_sent(&mut self, now: Time, bytes: &[u8], wire_bytes: u64) {
        let sent = &mut self.sent;
        let kind = inspect::kind(bytes);
        sent.packets[kind] += 1;
        sent.wire_bytes[kind] += wire_bytes;
        sent.total_bytes += wire_bytes;
        if inspect::is_retransmission(bytes) {
            sent.retransmissions += 1;
            sent.retransmitted_bytes += wire_bytes;
        } else if kind == inspect::DATA {
            sent.last_new = now;
            sent.bytes_at_last_new = sent.total_bytes;
        }
    }
}

impl<T: Transport, M: SimMemory> Station for Host<T, M> {
    fn receive(&mut self, now: Time, packet: &Packet) {
        self.received.packets += 1;
        if packet.trimmed {
            // Its CRC went with its payload.
            self.received.trimmed += 1;
            return;
        }
        self.received.marked += u64::from(packet.ecn == Ecn::Ce && packet.is_data());
        let mut source = address(packet.source, packet.plane);
        source.set_port(packet.source_port);
        let ecn = match packet.ecn {
            Ecn::NotEct => core::Ecn::NotEct,
            Ecn::Ect0 => core::Ecn::Ect0,
            Ecn::Ect1 => core::Ecn::Ect1,
            Ecn::Ce => core::Ecn::Ce,
        };
        self.memory.set_now(now);
        let at = self.instant(now);
        let plane = packet.plane;
        let result = match self.payload {
            Payload::Real => {
                let meta = ReceiveMeta {
                    source,
                    plane,
                    ecn,
                    checksum_verified: false,
                };
                self.endpoint
                    .handle_datagram(at, &meta, &packet.bytes, &mut self.memory)
            }
            Payload::Virtual if packet.corrupted => {
                self.received.damaged += 1;
                return;
            }
            Payload::Virtual => {
                let meta = ReceiveMeta {
                    source,
                    plane,
                    ecn,
                    checksum_verified: true,
                };
                self.scratch[..packet.bytes.len()].copy_from_slice(&packet.bytes);
                let bytes = &self.scratch[..packet.length as usize];
                self.endpoint
                    .handle_datagram(at, &meta, bytes, &mut self.memory)
            }
        };
        if let Err(reason) = result {
            self.received.dropped[reason.index()] += 1;
            if self.verbose {
                eprintln!("{now} host {}: dropped, {reason:?}", self.id);
            }
        }
        self.collect();
    }

    fn set_busy_planes(&mut self, busy: u8) {
        self.endpoint.set_busy_planes(busy);
    }

    fn transmit(&mut self, now: Time, packet: &mut Packet) -> bool {
        self.memory.set_now(now);
        let at = self.instant(now);
        let transmit: Option<Transmit> = match self.payload {
            Payload::Real => {
                let room = self.scratch.len();
                packet.bytes.resize(room, 0);
                let transmit = self
                    .endpoint
                    .poll_datagram(at, &self.memory, &mut packet.bytes);
                packet
                    .bytes
                    .truncate(transmit.as_ref().map_or(0, |transmit| transmit.length));
                transmit
            }
            Payload::Virtual => {
                let transmit = self.endpoint.poll_transmit(at, &mut self.header);
                if let Some(transmit) = &transmit {
                    packet
                        .bytes
                        .extend_from_slice(&self.header[..transmit.header_length]);
                }
                transmit
            }
        };
        let Some(transmit) = transmit else {
            self.collect();
            return false;
        };
        packet.length = transmit.length as u32;
        packet.wire_bytes = packet.length + self.overhead_bytes;
        packet.destination = host_of(transmit.destination());
        packet.plane = transmit.plane;
        packet.source_port = FIRST_SOURCE_PORT + transmit.entropy;
        packet.class = match transmit.class {
            core::Class::Data => Class::Data,
            core::Class::Control => Class::Control,
        };
        packet.ecn = match transmit.ecn {
            core::Ecn::NotEct => Ecn::NotEct,
            core::Ecn::Ect0 => Ecn::Ect0,
            core::Ecn::Ect1 => Ecn::Ect1,
            core::Ecn::Ce => Ecn::Ce,
        };
        self.count_sent(now, &packet.bytes, u64::from(packet.wire_bytes));
        true
    }

    fn deadline(&mut self, _: Time) -> Option<Time> {
        let at = self.endpoint.poll_timeout()?;
        if at == Instant::FAR_FUTURE {
            return None;
        }
        Some(Time::from_ns(at.as_nanos().saturating_add_signed(
            self.clock_offset_ns.saturating_neg(),
        )))
    }

    fn timeout(&mut self, now: Time) {
        self.memory.set_now(now);
        let at = self.instant(now);
        self.endpoint.handle_timeout(at);
        self.collect();
    }

    fn has_news(&self) -> bool {
        !self.news.is_empty()
    }
}
