//! Two endpoints in memory, joined by a wire whose every packet a test may look at, drop, delay or change.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use metaroce_core::config::{ConnectionConfig, EndpointConfig, MAX_PLANES};
use metaroce_core::endpoint::{ConnectionEntry, Endpoint};
use metaroce_core::memory::MemoryFault;
use metaroce_core::wire::{Header, Kind};
use metaroce_core::*;

pub type Host = Endpoint<16, 128, 4, 16, 8, 32, Vec<ConnectionEntry<16, 128, 4, 16>>>;

pub fn address(host: u8, plane: u8) -> SocketAddr {
    SocketAddr::V4(SocketAddrV4::new(
        Ipv4Addr::new(10, plane, 0, host + 1),
        4791,
    ))
}

/// Regions are byte vectors.
#[derive(Default)]
pub struct Bytes(pub Vec<Vec<u8>>);

impl Memory for Bytes {
    fn place(&mut self, region: RegionIndex, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let region = self.0.get_mut(usize::from(region.0)).ok_or(MemoryFault)?;
        region[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
    fn gather(
        &self,
        region: RegionIndex,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), MemoryFault> {
        let region = self.0.get(usize::from(region.0)).ok_or(MemoryFault)?;
        bytes.copy_from_slice(&region[offset as usize..offset as usize + bytes.len()]);
        Ok(())
    }
}

pub struct Side {
    pub host: Host,
    pub memory: Bytes,
    pub region: Region,
    pub events: Vec<Event>,
    pub connection: Option<ConnectionHandle>,
}

#[derive(PartialEq, Eq)]
struct Flight {
    at: std::cmp::Reverse<(u64, u64)>,
    to: usize,
    plane: u8,
    bytes: Vec<u8>,
}

impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Flight {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// What the wire does with a packet.
pub enum Fate {
    Deliver,
    Drop,
    Delay(u64),
    Mark,
}

/// One packet as the wire sees it.
pub struct Seen<'a> {
    pub from: usize,
    pub now: u64,
    pub transmit: &'a Transmit,
    pub header: Header,
    pub bytes: &'a mut Vec<u8>,
}

pub struct Pair {
    pub sides: [Side; 2],
    pub now: u64,
    pub one_way_ns: u64,
    sequence: u64,
    flights: BinaryHeap<Flight>,
    pub filter: Box<dyn FnMut(&mut Seen<'_>) -> Fate>,
    marked: std::collections::HashSet<u64>,
}

pub const BASE: u64 = 0x1_0000;
pub const REGION: usize = 1 << 20;

impl Pair {
    pub fn new(change: impl Fn(usize, &mut EndpointConfig, &mut ConnectionConfig)) -> Self {
        let side = |which: usize| {
            let mut config = EndpointConfig {
                payload_bytes: 1024,
                entropies: 64,
                ..EndpointConfig::default()
            };
            let mut default = ConnectionConfig::default();
            for plane in 0..MAX_PLANES as u8 {
                config.addresses[usize::from(plane)] = address(which as u8, plane);
            }
            change(which, &mut config, &mut default);
            let entries = (0..4).map(|_| ConnectionEntry::new()).collect();
            let mut host = Host::new(config, default, [which as u8 + 1; 32], entries).unwrap();
            let region = host.register(BASE, REGION as u64, Access::ALL).unwrap();
            let bytes = (0..REGION)
                .map(|i| {
                    if which == 0 {
                        (i * 31 + i / 251) as u8
                    } else {
                        0
                    }
                })
                .collect();
            Side {
                host,
                memory: Bytes(vec![bytes]),
                region,
                events: vec![],
                connection: None,
            }
        };
        Self {
            sides: [side(0), side(1)],
            now: 1_000_000,
            one_way_ns: 5_000,
            sequence: 0,
            flights: BinaryHeap::new(),
            filter: Box::new(|_| Fate::Deliver),
            marked: Default::default(),
        }
    }

    /// A connected pair.
    pub fn connected(change: impl Fn(usize, &mut EndpointConfig, &mut ConnectionConfig)) -> Self {
        let mut pair = Self::new(&change);
        pair.connect(&change);
        pair
    }

    pub fn connect(&mut self, change: impl Fn(usize, &mut EndpointConfig, &mut ConnectionConfig)) {
        let (mut config, mut connection) =
            (*self.sides[0].host.config(), ConnectionConfig::default());
        change(0, &mut config, &mut connection);
        let peers: Vec<_> = (0..config.planes).map(|plane| address(1, plane)).collect();
        let handle = self.sides[0]
            .host
            .connect(self.at(), &peers, connection)
            .unwrap();
        self.sides[0].connection = Some(handle);
        self.run_until(|pair| {
            pair.sides.iter().all(|side| {
                side.events
                    .iter()
                    .any(|event| matches!(event, Event::Connected { .. }))
            })
        });
        for side in &mut self.sides {
            side.connection = side.events.iter().find_map(|event| match event {
                Event::Connected { connection, .. } => Some(*connection),
                _ => None,
            });
        }
    }

    pub fn at(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    pub fn post(&mut self, side: usize, stream: u16, id: u64, operation: Operation<'_>) {
        self.try_post(side, stream, id, operation, WorkFlags::default())
            .unwrap();
    }

    pub fn try_post(
        &mut self,
        side: usize,
        stream: u16,
        id: u64,
        operation: Operation<'_>,
        flags: WorkFlags,
    ) -> Result<(), work::PostError> {
        let now = self.at();
        let side = &mut self.sides[side];
        side.host.post(
            now,
            side.connection.unwrap(),
            stream,
            &WorkRequest {
                id,
                operation,
                flags,
            },
        )
    }

    pub fn post_receive(&mut self, side: usize, stream: u16, id: u64, offset: u64, length: u32) {
        let side = &mut self.sides[side];
        let local = LocalSlice {
            region: side.region.index,
            offset,
            length,
        };
        side.host
            .post_receive(
                ReceiveQueue::Stream(side.connection.unwrap(), stream),
                &ReceiveRequest { id, local },
            )
            .unwrap();
    }

    pub fn local(&self, side: usize, offset: u64, length: u32) -> LocalSlice {
        LocalSlice {
            region: self.sides[side].region.index,
            offset,
            length,
        }
    }

    pub fn remote(&self, side: usize, offset: u64) -> RemoteAddress {
        RemoteAddress {
            address: BASE + offset,
            key: self.sides[1 - side].region.key,
        }
    }

    /// Sends all that may be sent, then lets the next thing happen. False if nothing ever will.
    pub fn step(&mut self) -> bool {
        self.flush();
        let timers = self
            .sides
            .iter_mut()
            .filter_map(|side| side.host.poll_timeout())
            .map(|at| at.as_nanos())
            .min();
        let arrival = self.flights.peek().map(|flight| flight.at.0.0);
        let Some(next) = timers.into_iter().chain(arrival).min() else {
            return false;
        };
        self.now = self.now.max(next);
        let now = self.at();
        if arrival == Some(next) {
            let flight = self.flights.pop().unwrap();
            let ecn = if self.marked.remove(&flight.at.0.1) {
                Ecn::Ce
            } else {
                Ecn::Ect0
            };
            let meta = ReceiveMeta {
                source: address(1 - flight.to as u8, flight.plane),
                plane: flight.plane,
                ecn,
                checksum_verified: false,
            };
            let side = &mut self.sides[flight.to];
            let _ = side
                .host
                .handle_datagram(now, &meta, &flight.bytes, &mut side.memory);
        } else {
            for side in &mut self.sides {
                side.host.handle_timeout(now);
            }
        }
        true
    }

    fn flush(&mut self) {
        for from in 0..2 {
            let now = self.at();
            let mut buffer = vec![0; 10_000];
            while let Some(transmit) =
                self.sides[from]
                    .host
                    .poll_datagram(now, &self.sides[from].memory, &mut buffer)
            {
                let mut bytes = buffer[..transmit.length].to_vec();
                let header = Header::decode(&bytes).unwrap();
                let mut seen = Seen {
                    from,
                    now: self.now,
                    transmit: &transmit,
                    header,
                    bytes: &mut bytes,
                };
                let delay = match (self.filter)(&mut seen) {
                    Fate::Drop => continue,
                    Fate::Deliver => 0,
                    Fate::Delay(ns) => ns,
                    Fate::Mark => {
                        self.marked.insert(self.sequence);
                        0
                    }
                };
                let at = std::cmp::Reverse((self.now + self.one_way_ns + delay, self.sequence));
                self.sequence += 1;
                self.flights.push(Flight {
                    at,
                    to: 1 - from,
                    plane: transmit.plane,
                    bytes,
                });
            }
            while let Some(event) = self.sides[from].host.poll_event() {
                self.sides[from].events.push(event);
            }
        }
    }

    pub fn run_until(&mut self, done: impl Fn(&Self) -> bool) {
        for _ in 0..2_000_000 {
            self.flush();
            if done(self) {
                return;
            }
            assert!(
                self.step(),
                "nothing will ever happen any more: {:?} {:?}",
                self.sides[0].events,
                self.sides[1].events
            );
        }
        panic!("too many steps");
    }

    pub fn run_for(&mut self, ns: u64) {
        let end = self.now + ns;
        loop {
            self.flush();
            let timers = self
                .sides
                .iter_mut()
                .filter_map(|side| side.host.poll_timeout())
                .map(|at| at.as_nanos())
                .min();
            let arrival = self.flights.peek().map(|flight| flight.at.0.0);
            match timers.into_iter().chain(arrival).min() {
                Some(next) if next <= end => {
                    self.step();
                }
                _ => break,
            }
        }
        self.now = end;
    }

    pub fn completions(&self, side: usize) -> Vec<Completion> {
        self.sides[side]
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Completion(completion) => Some(*completion),
                _ => None,
            })
            .collect()
    }

    pub fn run_until_completions(&mut self, side: usize, count: usize) {
        self.run_until(|pair| pair.completions(side).len() >= count);
    }

    pub fn statistics(&self, side: usize) -> stats::ConnectionStatistics {
        self.sides[side]
            .host
            .connection_statistics(self.sides[side].connection.unwrap())
            .unwrap()
    }
}

pub fn is_data(header: &Header) -> bool {
    header.kind == Kind::Data
}

/// The settings as they are.
pub fn plain(_: usize, _: &mut EndpointConfig, _: &mut ConnectionConfig) {}

/// A filter that drops with a probability, repeatably.
pub fn lossy(percent: u64, seed: u64) -> Box<dyn FnMut(&mut Seen<'_>) -> Fate> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    Box::new(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state % 100 < percent {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    })
}
