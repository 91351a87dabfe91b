//! This project's core: two endpoints with one connection and one stream of large WRITEs.
//!
//! The payload is neither copied nor checksummed: the endpoints' memory only takes note, the CRC32C is left out by
//! agreement, and a datagram is a header written in front of a payload area that nobody fills. Time passes as on a link of
//! 100 Gbit/s with a round trip of about 14 microseconds, in steps: the time of one packet, as hardware would see it, or of several, as
//! a thread sees it that takes datagrams in batches. The pacer, the delayed acknowledgments and all timers run as they would.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use anyhow::{Context, Result, anyhow, bail};
use metaroce_core::memory::MemoryFault;
use metaroce_core::wire::{CRC_SIZE, Trailer, seal};
use metaroce_core::{
    Access, ConnectionConfig, ConnectionEntry, ConnectionHandle, Ecn, Endpoint, EndpointConfig,
    Event, HEADER_BUFFER, Instant, LocalSlice, Memory, Operation, ReceiveMeta, Region, RegionIndex,
    RemoteAddress, Source, Status, WorkFlags, WorkRequest,
};

use crate::{Case, Pair};

const PAYLOAD: u16 = 4096;
const MESSAGE_BYTES: u64 = 1 << 20;
const BASE: u64 = 1 << 20;
/// UDP, IP, Ethernet with preamble and gap, beside the datagram itself.
const OVERHEAD_BYTES: u64 = 66;
/// A full data packet on the wire.
const PACKET_NS: u64 = 337;
/// One way, without the time on the wire.
const ONE_WAY_NS: u64 = 6_700;

pub fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "metaroce-8-paths",
            remarks: "no checksum, no copy; as the soft NIC: runs of 15 packets (one segmented send), steps of 10 us as the peers",
            connect: || connect(&Shape::software(8)),
        },
        Case {
            name: "metaroce-64-paths",
            remarks: "no checksum, no copy; as the soft NIC: runs of 15 packets (one segmented send), steps of 10 us as the peers",
            connect: || connect(&Shape::software(64)),
        },
        Case {
            name: "metaroce-8-paths-single",
            remarks: "no checksum, no copy; as hardware: steps of one packet, one block an ACK",
            connect: || connect(&Shape::hardware(8)),
        },
        Case {
            name: "metaroce-64-paths-single",
            remarks: "no checksum, no copy; as hardware: steps of one packet, one block an ACK",
            connect: || connect(&Shape::hardware(64)),
        },
    ]
}

/// How the endpoints are used.
struct Shape {
    paths: u8,
    /// Packets in a row on one path.
    run: u8,
    /// Most blocks in an ACK.
    ack_blocks: u8,
    /// Time from one look at the datagrams that came in to the next.
    step_ns: u64,
}

impl Shape {
    const fn hardware(paths: u8) -> Self {
        Self {
            paths,
            run: 1,
            ack_blocks: 1,
            step_ns: PACKET_NS,
        }
    }

    const fn software(paths: u8) -> Self {
        Self {
            paths,
            run: 15,
            ack_blocks: 8,
            step_ns: 10_000,
        }
    }
}

type Host = Endpoint<64, 512, 32, 32, 8, 32, Vec<ConnectionEntry<64, 512, 32, 32>>>;

/// Memory whose bytes nobody looks at.
struct Nowhere;

impl Memory for Nowhere {
    fn place(&mut self, _: RegionIndex, _: u64, _: &[u8]) -> Result<(), MemoryFault> {
        Ok(())
    }
    fn gather(&self, _: RegionIndex, _: u64, _: &mut [u8]) -> Result<(), MemoryFault> {
        Ok(())
    }
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, host), 4791))
}

fn connect(shape: &Shape) -> Result<Box<dyn Pair>> {
    let settings = ConnectionConfig {
        paths: shape.paths,
        run: shape.run,
        ..ConnectionConfig::default()
    };
    let mut pair = CorePair {
        now: 1_000_000,
        step_ns: shape.step_ns,
        client: Side::new(1, shape.ack_blocks, settings)?,
        server: Side::new(2, shape.ack_blocks, settings)?,
    };
    let handle = pair
        .client
        .host
        .connect(Instant::from_nanos(pair.now), &[address(2)], settings)
        .map_err(|error| anyhow!("connect: {error:?}"))?;
    for _ in 0..1000 {
        pair.step()?;
        if pair.client.connected && pair.server.connected {
            pair.client.connection = Some(handle);
            return Ok(Box::new(pair));
        }
    }
    bail!("the connection was not made")
}

struct CorePair {
    now: u64,
    step_ns: u64,
    client: Side,
    server: Side,
}

impl CorePair {
    /// Each side takes in what has arrived, lets its timers fire, and sends what it may.
    fn step(&mut self) -> Result<()> {
        self.now += self.step_ns;
        self.client.take_in(self.now);
        self.client.send(self.now, &mut self.server.inbound)?;
        self.server.take_in(self.now);
        self.server.send(self.now, &mut self.client.inbound)
    }
}

impl Pair for CorePair {
    fn transfer(&mut self, bytes: u64) -> Result<u64> {
        let before = self.client.data_sent;
        let messages = bytes / MESSAGE_BYTES;
        let done = self.client.completed + messages;
        let key = self.server.region.key;
        for id in 0..messages {
            self.client.post_write(self.now, id, key)?;
        }
        let end = self.now + 1_000_000_000;
        while self.client.completed < done {
            self.step()?;
            if self.now > end {
                bail!("stalled");
            }
        }
        Ok(self.client.data_sent - before)
    }
}

/// An endpoint and the wire to it.
struct Side {
    host: Host,
    region: Region,
    inbound: Wire,
    connection: Option<ConnectionHandle>,
    connected: bool,
    completed: u64,
    data_sent: u64,
    meta: ReceiveMeta,
}

impl Side {
    fn new(number: u8, ack_blocks: u8, default: ConnectionConfig) -> Result<Self> {
        let mut config = EndpointConfig {
            payload_bytes: PAYLOAD,
            omit_checksum: true,
            ack_blocks,
            ..EndpointConfig::default()
        };
        config.addresses[0] = address(number);
        let mut host = Host::new(
            config,
            default,
            [number; 32],
            vec![ConnectionEntry::new(), ConnectionEntry::new()],
        )
        .map_err(|error| anyhow!("{error}"))?;
        let region = host
            .register(BASE, MESSAGE_BYTES, Access::ALL)
            .map_err(|error| anyhow!("{error}"))?;
        Ok(Self {
            host,
            region,
            inbound: Wire::new(),
            connection: None,
            connected: false,
            completed: 0,
            data_sent: 0,
            meta: ReceiveMeta {
                source: address(3 - number),
                plane: 0,
                ecn: Ecn::Ect0,
                checksum_verified: false,
            },
        })
    }

    fn post_write(&mut self, now: u64, id: u64, key: u32) -> Result<()> {
        let work = WorkRequest {
            id,
            operation: Operation::Write {
                local: Source::Region(LocalSlice {
                    region: self.region.index,
                    offset: 0,
                    length: MESSAGE_BYTES as u32,
                }),
                remote: RemoteAddress { address: BASE, key },
                immediate: None,
            },
            flags: WorkFlags::default(),
        };
        let connection = self.connection.context("not connected")?;
        self.host
            .post(Instant::from_nanos(now), connection, 0, &work)
            .map_err(|error| anyhow!("post: {error:?}"))
    }

    /// Takes in the datagrams that have arrived and lets the timers fire whose time has come.
    fn take_in(&mut self, now: u64) {
        let at = Instant::from_nanos(now);
        while let Some(bytes) = self.inbound.receive(now) {
            // What is dropped shows as a stall.
            let _ = self
                .host
                .handle_datagram(at, &self.meta, bytes, &mut Nowhere);
        }
        if self.host.poll_timeout().is_some_and(|due| due <= at) {
            self.host.handle_timeout(at);
        }
    }

    /// Sends what may be sent and takes note of events.
    fn send(&mut self, now: u64, to: &mut Wire) -> Result<()> {
        let at = Instant::from_nanos(now);
        while let Some(transmit) = self.host.poll_transmit(at, to.header()) {
            if transmit.trailer {
                let body = transmit.length - CRC_SIZE;
                seal(to.header(), body, Trailer::Crc32c).map_err(|error| anyhow!("{error:?}"))?;
            }
            self.data_sent += u64::from(transmit.payload.is_some());
            to.send(now, transmit.length)?;
        }
        while let Some(event) = self.host.poll_event() {
            match event {
                Event::Connected { .. } => self.connected = true,
                Event::Completion(done) if done.status == Status::Success => self.completed += 1,
                other => bail!("unexpected: {other:?}"),
            }
        }
        Ok(())
    }
}

/// Frames that a wire holds; more than a round trip's worth.
const FRAMES: usize = 512;

struct Frame {
    arrival: u64,
    length: usize,
    bytes: [u8; HEADER_BUFFER + PAYLOAD as usize],
}

/// A link in one direction: one frame after the other, in order, in buffers that are used again and again.
struct Wire {
    frames: Box<[Frame]>,
    sent: usize,
    received: usize,
    free_at: u64,
}

impl Wire {
    fn new() -> Self {
        let frame = || Frame {
            arrival: 0,
            length: 0,
            bytes: [0; HEADER_BUFFER + PAYLOAD as usize],
        };
        Self {
            frames: (0..FRAMES).map(|_| frame()).collect(),
            sent: 0,
            received: 0,
            free_at: 0,
        }
    }

    /// Where the next frame's header goes.
    fn header(&mut self) -> &mut [u8; HEADER_BUFFER] {
        let frame = &mut self.frames[self.sent % FRAMES];
        let (header, _) = frame.bytes.split_first_chunk_mut().expect("it is longer");
        header
    }

    fn send(&mut self, now: u64, length: usize) -> Result<()> {
        if self.sent - self.received >= FRAMES - 1 {
            bail!("too much on the wire");
        }
        // 8 bits a byte, 100 bits a nanosecond.
        self.free_at = self.free_at.max(now) + (length as u64 + OVERHEAD_BYTES) * 2 / 25;
        let frame = &mut self.frames[self.sent % FRAMES];
        frame.arrival = self.free_at + ONE_WAY_NS;
        frame.length = length;
        self.sent += 1;
        Ok(())
    }

    fn receive(&mut self, now: u64) -> Option<&[u8]> {
        let frame = &self.frames[self.received % FRAMES];
        if self.sent == self.received || frame.arrival > now {
            return None;
        }
        self.received += 1;
        Some(&frame.bytes[..frame.length])
    }
}
