//! The core's endpoint over Ethernet frames: no I/O, no clock, no allocation, no panic.
//!
//! A frame that carries a datagram for the service is taken here, from the buffer of the port to its place in RAM; a datagram that
//! is sent is written from RAM into the buffer of the port, behind its headers. So the UDP source port, which is a path's, is a field like
//! any other: no socket, no buffer and no further copy per port.

use core::net::{Ipv4Addr, SocketAddr, SocketAddrV4};

use metaroce_core::config::ConfigError;
use metaroce_core::memory::RegionError;
use metaroce_core::service::{Hello, SERVICE};
use metaroce_core::{
    Access, CloseMode, ConnectionConfig, ConnectionEntry, ConnectionHandle, Duration, Endpoint,
    EndpointConfig, Event, HEADER_BUFFER, Instant, Memory, Operation, ReceiveMeta, Region, Source,
    Transmit, WorkFlags, WorkRequest, wire,
};

use crate::frame::{self, Envelope, Mac, OVERHEAD};
use crate::initiator::Initiator;
use crate::neighbours::Neighbours;
use crate::ram::{REGION_BYTES, Ram};
use crate::say::{info, warning};

/// Two connections as small as `SmallConnection`.
pub type Connections = [ConnectionEntry<4, 32, 2, 2>; 2];
/// The endpoint of a small device. Its connections are where their owner has put them: it is never moved with them over a small stack.
pub type Small<'a> = Endpoint<4, 32, 2, 2, 4, 8, &'a mut [ConnectionEntry<4, 32, 2, 2>]>;

/// The UDP port of the service.
pub const PORT: u16 = 4_793;
/// The first of the UDP source ports that paths send from, and how many there are.
pub const FIRST_SOURCE_PORT: u16 = 49_152;
/// See [`FIRST_SOURCE_PORT`].
pub const SOURCE_PORTS: u16 = 256;
/// Most payload of a packet, bytes.
pub const PAYLOAD_BYTES: u16 = 1_024;
/// The longest frame that is sent, bytes without FCS: an acknowledgment with as many blocks as its buffer takes, or data.
pub const FRAME_BYTES: usize = OVERHEAD + HEADER_BUFFER + wire::CRC_SIZE;
/// The address that peers know the region's first byte by.
const BASE: u64 = 0x1000_0000;
/// With this code a client of another kind is turned away.
const NOT_OUR_SERVICE: u16 = 2;

/// What a device is told at its start.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Its Ethernet address.
    pub mac: Mac,
    /// Its IPv4 address, in a network of 24 bits.
    pub address: Ipv4Addr,
    /// What its port carries, and what peers are told to share, Mbit/s.
    pub mbps: u32,
    /// 32 bytes that nobody can guess.
    pub secret: [u8; 32],
    /// The device to go to; `None`: peers come here.
    pub peer: Option<Ipv4Addr>,
}

/// Why there is no device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum StartError {
    /// The core refuses a setting.
    Config(ConfigError),
    /// The core does not register the region.
    Region(RegionError),
    /// The core does not ask the peer.
    Connect,
    /// embassy-net's task runs already.
    Task,
}

/// A datagram that is about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    transmit: Transmit,
    source_port: u16,
    destination: SocketAddrV4,
    /// The next hop, if it is known.
    next: Option<Mac>,
}

/// A device.
#[derive(Debug)]
pub struct Device<'a> {
    endpoint: Small<'a>,
    ram: Ram<'a>,
    region: Region,
    address: Ipv4Addr,
    mac: Mac,
    neighbours: Neighbours,
    initiator: Option<Initiator>,
    header: [u8; HEADER_BUFFER],
}

impl<'a> Device<'a> {
    /// A device with its region; one that goes to a peer has asked it for a connection.
    ///
    /// # Errors
    /// A [`StartError`].
    #[inline(never)]
    pub fn new(
        settings: &Settings,
        ram: &'a mut [u8; REGION_BYTES],
        connections: &'a mut Connections,
        now: Instant,
    ) -> Result<Self, StartError> {
        let mut config = EndpointConfig {
            plane_mbps: settings.mbps,
            payload_bytes: PAYLOAD_BYTES,
            entropies: SOURCE_PORTS,
            listen: settings.peer.is_none(),
            ack_blocks: 4,
            ack_packets: 4,
            ack_delay: Duration::from_micros(50),
            ..EndpointConfig::default()
        };
        config.addresses[0] = SocketAddr::V4(SocketAddrV4::new(settings.address, PORT));
        let connection = ConnectionConfig {
            paths: 4,
            min_probe_timeout: Duration::from_micros(500),
            failure_timeout: Duration::from_millis(10_000),
            initial_rtt: Duration::from_micros(200),
            least_rtt: Duration::from_micros(100),
            service: SERVICE,
            ..ConnectionConfig::default()
        };
        let mut endpoint = Small::new(config, connection, settings.secret, connections)
            .map_err(StartError::Config)?;
        let region = endpoint
            .register(BASE, REGION_BYTES as u64, Access::ALL)
            .map_err(StartError::Region)?;
        let mut initiator = None;
        if let Some(peer) = settings.peer {
            let peer = SocketAddr::V4(SocketAddrV4::new(peer, PORT));
            let asked = endpoint.connect(now, &[peer], connection);
            initiator = Some(Initiator::new(asked.map_err(|_| StartError::Connect)?));
        }
        Ok(Self {
            endpoint,
            ram: Ram(ram),
            region,
            address: settings.address,
            mac: settings.mac,
            neighbours: Neighbours::default(),
            initiator,
            header: [0; HEADER_BUFFER],
        })
    }

    /// The endpoint's address.
    #[must_use]
    pub const fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The core's counters.
    #[must_use]
    pub const fn endpoint(&self) -> &Small<'a> {
        &self.endpoint
    }

    /// A frame has come. Whether it was for the service: if not, it is the network stack's.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) -> bool {
        if frame::destination(bytes) != Some(self.mac) {
            return false;
        }
        if let Some((address, mac)) = frame::sender(bytes) {
            self.neighbours.learn(address, mac);
        }
        let Some(datagram) = frame::udp(bytes) else {
            return false;
        };
        if datagram.destination != SocketAddrV4::new(self.address, PORT) {
            return false;
        }
        let meta = ReceiveMeta {
            source: SocketAddr::V4(datagram.source),
            plane: 0,
            ecn: datagram.ecn,
            checksum_verified: false,
        };
        // What is dropped is counted by the core.
        let _ = self
            .endpoint
            .handle_datagram(now, &meta, datagram.bytes, &mut self.ram);
        true
    }

    /// The next datagram to send, which [`Self::write_frame`] or [`Self::write_datagram`] must write before anything else is done.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        let transmit = self.endpoint.poll_transmit(now, &mut self.header)?;
        let SocketAddr::V4(destination) = transmit.destination() else {
            return None;
        };
        Some(Outgoing {
            transmit,
            source_port: FIRST_SOURCE_PORT.wrapping_add(transmit.entropy),
            destination,
            next: self.neighbours.find(*destination.ip()),
        })
    }

    /// Writes a whole frame: headers, and the payload from where it is in RAM. Nothing if `place` is shorter than [`Outgoing::frame_length`], or
    /// the next hop is unknown.
    pub fn write_frame(&self, outgoing: &Outgoing, place: &mut [u8]) -> Option<()> {
        let envelope = Envelope {
            macs: (self.mac, outgoing.next?),
            source: SocketAddrV4::new(self.address, outgoing.source_port),
            destination: outgoing.destination,
            ecn: outgoing.transmit.ecn,
        };
        let (headers, rest) = place.split_first_chunk_mut::<OVERHEAD>()?;
        *headers = frame::header(&envelope, outgoing.transmit.length);
        self.write_datagram(outgoing, rest)
    }

    /// Writes the datagram alone.
    pub fn write_datagram(&self, outgoing: &Outgoing, place: &mut [u8]) -> Option<()> {
        let transmit = &outgoing.transmit;
        let header = self.header.get(..transmit.header_length)?;
        let (front, rest) = place.split_at_mut_checked(transmit.header_length)?;
        for (place, byte) in front.iter_mut().zip(header) {
            *place = *byte;
        }
        let mut body = transmit.header_length;
        if let Some(slice) = transmit.payload {
            let payload = rest.get_mut(..slice.length as usize)?;
            // The region is never withdrawn: its bytes are always there.
            self.ram.gather(slice.region, slice.offset, payload).ok()?;
            body += slice.length as usize;
        }
        if transmit.trailer {
            wire::seal(place, body, wire::Trailer::Crc32c).ok()?;
        }
        Some(())
    }

    /// When [`Self::handle_timeout`] has something to do.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    /// Lets the timers fire whose time has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    /// Answers everything that has happened.
    pub fn handle_events(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            if let Some(initiator) = &mut self.initiator {
                initiator.handle(now, &event, &mut self.endpoint, &mut self.ram, self.region);
                continue;
            }
            match event {
                Event::Connected {
                    connection,
                    service,
                    ..
                } => self.welcome(now, connection, service),
                Event::Closed { connection, reason } => {
                    info!("#{:x}: closed: {:?}", connection.to_bits(), reason);
                }
                Event::StreamFailed {
                    connection,
                    stream,
                    status,
                    ..
                } => warning!(
                    "#{:x}: stream {} failed: {:?}",
                    connection.to_bits(),
                    stream,
                    status
                ),
                _ => {}
            }
        }
    }

    /// Tells a client where the region is.
    fn welcome(&mut self, now: Instant, connection: ConnectionHandle, service: u32) {
        info!("#{:x}: connected", connection.to_bits());
        if service != SERVICE {
            warning!(
                "#{:x}: not our service: {:x}",
                connection.to_bits(),
                service
            );
            let mode = CloseMode::Abort(NOT_OUR_SERVICE);
            // The only error is that it is gone.
            let _ = self.endpoint.close(now, connection, mode);
            return;
        }
        let hello = Hello {
            base: BASE,
            length: REGION_BYTES as u64,
            key: self.region.key,
        };
        let work = WorkRequest {
            id: 0,
            operation: Operation::Send {
                local: Source::Inline(&hello.encode()),
                immediate: None,
            },
            flags: WorkFlags::default(),
        };
        if let Err(error) = self.endpoint.post(now, connection, 0, &work) {
            warning!("#{:x}: hello: {:?}", connection.to_bits(), error);
        }
    }
}

impl Outgoing {
    /// Bytes of the frame, without FCS.
    #[must_use]
    pub const fn frame_length(&self) -> usize {
        OVERHEAD + self.transmit.length
    }

    /// Bytes of the datagram.
    #[must_use]
    pub const fn datagram_length(&self) -> usize {
        self.transmit.length
    }

    /// Where to, if the Ethernet address of the next hop is not known.
    #[must_use]
    pub fn unresolved(&self) -> Option<SocketAddrV4> {
        self.next.is_none().then_some(self.destination)
    }
}
