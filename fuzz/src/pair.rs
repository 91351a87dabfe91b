//! Two endpoints, and datagrams on their way between them.

use std::collections::{BTreeSet, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use metaroce_core::wire::{CRC_SIZE, Trailer, seal};
use metaroce_core::{
    Access, CloseMode, Completion, CompletionKind, ConnectionConfig, ConnectionEntry,
    ConnectionHandle, Duration, Ecn, Endpoint, EndpointConfig, Event, Instant, ReceiveMeta, Region,
};

use crate::memory::{Bytes, Guarded};

/// An endpoint with few of everything, so that limits are met.
pub type Host = Endpoint<4, 16, 2, 4, 3, 6, Vec<ConnectionEntry<4, 16, 2, 4>>>;

/// Bytes of a region.
pub const REGION: usize = 4096;
/// Where regions begin for the peer.
pub const BASE: u64 = 1 << 32;
/// Datagrams on their way in one direction; the oldest is lost if there are more.
const ON_THE_WAY: usize = 64;
/// So much a single call may cause, and no more.
const BOUND: usize = 2_000;

/// The service address of a host on a plane.
pub fn address(host: usize, plane: u8) -> SocketAddr {
    SocketAddr::V4(SocketAddrV4::new(
        Ipv4Addr::new(10, plane, 0, host as u8 + 1),
        4791,
    ))
}

/// An endpoint, its memory, and what it owes.
pub struct Side {
    /// The endpoint.
    pub host: Host,
    /// Its memory.
    pub memory: Guarded,
    /// Its regions: everything allowed, to be read only, local only.
    pub regions: [Region; 3],
    /// Its newest connection.
    pub connection: Option<ConnectionHandle>,
    /// Work requests that were taken and not completed.
    pub work: BTreeSet<u64>,
    /// Buffers that were taken and not completed.
    pub receives: BTreeSet<u64>,
    /// Datagrams on their way to it: plane and bytes.
    pub inbound: VecDeque<(u8, Vec<u8>)>,
}

impl Side {
    fn new(number: usize) -> Self {
        let mut config = EndpointConfig {
            planes: 2,
            payload_bytes: 256,
            entropies: 8,
            ack_blocks: 1 + number as u8,
            ..EndpointConfig::default()
        };
        for plane in 0..2 {
            config.addresses[plane] = address(number, plane as u8);
        }
        let entries = vec![ConnectionEntry::new(), ConnectionEntry::new()];
        let secret = [number as u8 + 1; 32];
        let mut host = Host::new(config, settings(), secret, entries).expect("it is sound");
        let mut memory = Guarded::default();
        let regions = [Access::ALL, Access::REMOTE_READ, Access::LOCAL_WRITE].map(|access| {
            memory.regions.push(Some(Bytes {
                bytes: vec![number as u8; REGION],
                writable: access != Access::REMOTE_READ,
            }));
            host.register(BASE, REGION as u64, access)
                .expect("there is room")
        });
        Self {
            host,
            memory,
            regions,
            connection: None,
            work: BTreeSet::new(),
            receives: BTreeSet::new(),
            inbound: VecDeque::new(),
        }
    }

    fn completed(&mut self, completion: &Completion) {
        let receive = matches!(
            completion.kind,
            CompletionKind::Receive | CompletionKind::ReceiveWriteImmediate
        );
        let known = if receive {
            self.receives.remove(&completion.id)
        } else {
            self.work.remove(&completion.id)
        };
        assert!(known, "completed once, and posted before: {completion:?}");
    }
}

/// Settings of every connection.
pub fn settings() -> ConnectionConfig {
    ConnectionConfig {
        paths: 4,
        failure_timeout: Duration::from_millis(20),
        keep_alive: Duration::from_millis(5),
        rnr_attempts: 2,
        ..ConnectionConfig::default()
    }
}

/// Two hosts.
pub struct Pair {
    /// Both.
    pub sides: [Side; 2],
    /// The time, nanoseconds.
    pub now: u64,
}

impl Pair {
    /// Not connected.
    pub fn new() -> Self {
        Self {
            sides: [Side::new(0), Side::new(1)],
            now: 1_000_000,
        }
    }

    /// Connected over a wire without faults.
    pub fn connected() -> Self {
        let mut pair = Self::new();
        pair.connect();
        for _ in 0..40 {
            pair.now += 1_000;
            for to in 0..2 {
                while let Some((plane, bytes)) = pair.sides[to].inbound.pop_front() {
                    pair.deliver(to, plane, &bytes, Ecn::Ect0);
                }
                pair.let_time_pass(to);
            }
        }
        assert!(pair.sides.iter().all(|side| side.connection.is_some()));
        pair
    }

    /// The present.
    pub fn at(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    /// Side 0 asks side 1.
    pub fn connect(&mut self) {
        let peers = [address(1, 0), address(1, 1)];
        let now = self.at();
        if let Ok(handle) = self.sides[0].host.connect(now, &peers, settings()) {
            self.sides[0].connection = Some(handle);
        }
        self.settle(0);
    }

    /// A datagram comes in.
    pub fn deliver(&mut self, to: usize, plane: u8, bytes: &[u8], ecn: Ecn) {
        let meta = ReceiveMeta {
            source: address(1 - to, plane),
            plane,
            ecn,
            checksum_verified: false,
        };
        let now = self.at();
        let side = &mut self.sides[to];
        let before = *side.host.endpoint_statistics();
        let result = side
            .host
            .handle_datagram(now, &meta, bytes, &mut side.memory);
        let after = side.host.endpoint_statistics();
        let dropped = after.drops.iter().sum::<u64>() - before.drops.iter().sum::<u64>();
        assert_eq!(dropped, u64::from(result.is_err()), "drops are counted");
        self.settle(to);
    }

    /// Timers that have fired.
    pub fn let_time_pass(&mut self, side: usize) {
        let now = self.at();
        let host = &mut self.sides[side].host;
        if host.poll_timeout().is_some_and(|due| due <= now) {
            host.handle_timeout(now);
        }
        self.settle(side);
    }

    /// Takes out all that a side wants to send and to say.
    pub fn settle(&mut self, from: usize) {
        let now = self.at();
        let mut buffer = [0; 2048];
        for round in 0.. {
            assert!(round < BOUND, "it does not stop sending");
            let side = &mut self.sides[from];
            let Some(transmit) = side.host.poll_datagram(now, &side.memory, &mut buffer) else {
                break;
            };
            let to = &mut self.sides[1 - from].inbound;
            to.push_back((transmit.plane, buffer[..transmit.length].to_vec()));
            if to.len() > ON_THE_WAY {
                to.pop_front();
            }
        }
        let side = &mut self.sides[from];
        for round in 0.. {
            assert!(round < BOUND, "it does not stop telling");
            let Some(event) = side.host.poll_event() else {
                break;
            };
            match event {
                Event::Completion(completion) => side.completed(&completion),
                Event::Connected { connection, .. } => side.connection = Some(connection),
                Event::Closed { connection, .. } => {
                    if side.connection == Some(connection) {
                        side.connection = None;
                    }
                }
                _ => {}
            }
        }
        if let Some(due) = side.host.poll_timeout()
            && due <= now
        {
            // Due at once is allowed, for ever is not.
            side.host.handle_timeout(now);
        }
    }

    /// Takes a datagram off the wire.
    pub fn taken(&mut self, side: usize, place: u8) -> Option<(u8, Vec<u8>)> {
        let inbound = &mut self.sides[side].inbound;
        let place = usize::from(place) % inbound.len().max(1);
        inbound.remove(place)
    }

    /// Every operation that was taken ends, and once the connections are gone nothing is left to be done.
    pub fn finish(mut self) {
        for side in 0..2 {
            let now = self.at();
            if let Some(connection) = self.sides[side].connection {
                let _ = self.sides[side]
                    .host
                    .close(now, connection, CloseMode::Abort(1));
            }
            self.settle(side);
        }
        // Nothing is carried any more: what is still connected finds that out by itself.
        for _ in 0..5_000 {
            let due = self
                .sides
                .iter_mut()
                .filter_map(|side| side.host.poll_timeout())
                .min();
            let Some(due) = due else {
                break;
            };
            self.now = self.now.max(due.as_nanos());
            for side in 0..2 {
                self.let_time_pass(side);
            }
        }
        for side in &mut self.sides {
            assert_eq!(side.host.poll_timeout(), None, "all has ended");
            assert!(side.work.is_empty(), "without an end: {:?}", side.work);
        }
    }
}

impl Default for Pair {
    fn default() -> Self {
        Self::new()
    }
}

/// Gives changed bytes a checksum that fits.
pub fn seal_again(bytes: &mut Vec<u8>) {
    let body = bytes.len().saturating_sub(CRC_SIZE);
    bytes.resize(body + CRC_SIZE, 0);
    seal(bytes, body, Trailer::Crc32c).expect("there is room");
}
