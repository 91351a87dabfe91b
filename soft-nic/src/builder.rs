//! Settings of a NIC, and how it is made from them.

use crate::clock::Clock;
use crate::completion::CompletionQueue;
use crate::driver::Driver;
use crate::error::Error;
use crate::fault::FaultPlan;
use crate::faulty::Faulty;
use crate::interface::{mtu_of, payload_for, rate_of};
use crate::memory::RegionMap;
use crate::nic::Nic;
use crate::profile::{Core, Entry};
use crate::shared::Shared;
use crate::socket::{Inbox, MAX_SEND, Outbox, Senders, SocketCounts, UdpPort};
use metaroce_core::config::{ConnectionConfig, EndpointConfig, MAX_PLANES};
use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Bytes that a plane's service socket may hold (as far as the system allows).
const RECEIVE_BUFFER: usize = 32 << 20;
/// The same for each sending socket.
const SEND_BUFFER: usize = 4 << 20;
/// The service socket sends nothing.
const NO_SEND_BUFFER: usize = 4_096;
/// Payload of a packet if the interfaces carry it.
const USUAL_PAYLOAD: u16 = 4_096;

/// Settings of a [`Nic`].
#[derive(Clone, Debug)]
pub struct NicBuilder {
    planes: Vec<SocketAddr>,
    payload_bytes: Option<u16>,
    rate_mbps: Option<u32>,
    entropies: u16,
    first_source_port: Option<u16>,
    connections: usize,
    listen: bool,
    omit_checksum: bool,
    ack_packets: u8,
    ack_delay: Duration,
    background: bool,
    spin: Duration,
    faults: FaultPlan,
    acceptor: Option<ConnectionConfig>,
}

impl Default for NicBuilder {
    fn default() -> Self {
        Self {
            planes: Vec::new(),
            payload_bytes: None,
            rate_mbps: None,
            entropies: 64,
            first_source_port: None,
            connections: 64,
            listen: true,
            omit_checksum: false,
            ack_packets: 32,
            ack_delay: Duration::from_micros(20),
            background: false,
            spin: Duration::from_micros(20),
            faults: FaultPlan::default(),
            acceptor: None,
        }
    }
}

/// Settings of a connection that suit UDP sockets and packets of the usual size: runs of packets on a path, so that one
/// system call sends several, and times that allow for a scheduler and for batches.
#[must_use]
pub fn default_connection() -> ConnectionConfig {
    connection_for(USUAL_PAYLOAD)
}

/// The same for packets of another size.
pub(crate) fn connection_for(payload_bytes: u16) -> ConnectionConfig {
    use metaroce_core::time::Duration;
    let datagram =
        usize::from(payload_bytes) + metaroce_core::wire::DATA_SIZE + metaroce_core::wire::CRC_SIZE;
    ConnectionConfig {
        run: (MAX_SEND / datagram).clamp(1, LONGEST_RUN) as u8,
        min_probe_timeout: Duration::from_micros(500),
        initial_rtt: Duration::from_micros(200),
        least_rtt: Duration::from_micros(100),
        ..ConnectionConfig::default()
    }
}

/// Mbit/s of a plane whose interface does not say.
const USUAL_RATE: u32 = 100_000;
/// Longer runs gain little, and make paths lumpy.
const LONGEST_RUN: usize = 32;

impl NicBuilder {
    /// Adds a plane: a local address and the UDP port on which it receives (0: any free one).
    #[must_use]
    pub fn plane(mut self, address: SocketAddr) -> Self {
        self.planes.push(address);
        self
    }

    /// Most payload of a packet, 256 to 9000. Default: 4096 or what the interfaces' MTU carries, whichever is less.
    #[must_use]
    pub fn payload_bytes(mut self, bytes: u16) -> Self {
        self.payload_bytes = Some(bytes);
        self
    }

    /// Rate of one plane in Mbit/s, both ways: what the NIC shares out to senders. Default: the rate of the slowest
    /// plane's interface, or 100,000 where none has one (loopback).
    #[must_use]
    pub fn rate_mbps(mut self, rate: u32) -> Self {
        self.rate_mbps = Some(rate);
        self
    }

    /// UDP source ports per plane that paths may use. Default: 64.
    #[must_use]
    pub fn entropies(mut self, count: u16) -> Self {
        self.entropies = count;
        self
    }

    /// The first of consecutive source ports. Default: whatever ports the system gives.
    #[must_use]
    pub fn first_source_port(mut self, port: u16) -> Self {
        self.first_source_port = Some(port);
        self
    }

    /// Connections at one time. Default: 64.
    #[must_use]
    pub fn connections(mut self, count: usize) -> Self {
        self.connections = count;
        self
    }

    /// Whether peers may connect. Default: yes.
    #[must_use]
    pub fn listen(mut self, listen: bool) -> Self {
        self.listen = listen;
        self
    }

    /// Leaves the checksum out where the peer agrees: for networks that check enough themselves. Default: no.
    #[must_use]
    pub fn omit_checksum(mut self, omit: bool) -> Self {
        self.omit_checksum = omit;
        self
    }

    /// Packets of a path, and time, after which an acknowledgment is due. Default: 32 and 20 us.
    #[must_use]
    pub fn acknowledge_after(mut self, packets: u8, delay: Duration) -> Self {
        self.ack_packets = packets;
        self.ack_delay = delay;
        self
    }

    /// Makes progress on a thread of its own. Default: no, the application's calls do.
    #[must_use]
    pub fn background(mut self, background: bool) -> Self {
        self.background = background;
        self
    }

    /// How long to look for work before sleeping. Long: lower latency, a busy core. Default: 20 us.
    #[must_use]
    pub fn spin(mut self, spin: Duration) -> Self {
        self.spin = spin;
        self
    }

    /// Makes the network misbehave.
    #[must_use]
    pub fn faults(mut self, plan: FaultPlan) -> Self {
        self.faults = plan;
        self
    }

    /// Settings of connections that peers make to this NIC.
    #[must_use]
    pub fn acceptor(mut self, config: ConnectionConfig) -> Self {
        self.acceptor = Some(config);
        self
    }

    /// Makes the NIC: binds its service ports, and starts its thread if it has one.
    ///
    /// # Errors
    /// An [`Error`] that says which setting or which system call it was.
    pub fn build(self) -> Result<Nic, Error> {
        if self.planes.is_empty() || self.planes.len() > MAX_PLANES {
            return Err(Error::Planes {
                count: self.planes.len(),
            });
        }
        for (plane, address) in self.planes.iter().enumerate() {
            if address.ip().is_unspecified() {
                return Err(Error::UnspecifiedAddress {
                    plane,
                    address: *address,
                });
            }
        }
        let payload_bytes = self.payload()?;
        let mut services = Vec::new();
        let mut senders = Vec::new();
        let mut addresses = [SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)); MAX_PLANES];
        for ((plane, address), known) in self.planes.iter().enumerate().zip(&mut addresses) {
            let service =
                UdpPort::bind(*address, NO_SEND_BUFFER, RECEIVE_BUFFER).map_err(|source| {
                    Error::Bind {
                        plane,
                        address: *address,
                        source,
                    }
                })?;
            *known = service.address();
            senders.push(Senders::new(
                *address,
                self.entropies,
                self.first_source_port,
                SEND_BUFFER,
            ));
            services.push(Arc::new(service));
        }
        raise_descriptor_limit();
        let nanos = |time: Duration| {
            metaroce_core::time::Duration::from_nanos(
                u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
            )
        };
        let endpoint = EndpointConfig {
            planes: self.planes.len() as u8,
            addresses,
            plane_mbps: self.rate(),
            payload_bytes,
            entropies: self.entropies,
            listen: self.listen,
            omit_checksum: self.omit_checksum,
            ack_blocks: 8,
            ack_packets: self.ack_packets,
            ack_delay: nanos(self.ack_delay),
            ..EndpointConfig::default()
        };
        let table = (0..self.connections).map(|_| Entry::new()).collect();
        let core = Core::new(
            endpoint,
            self.acceptor
                .unwrap_or_else(|| connection_for(payload_bytes)),
            random()?,
            table,
        )
        .map_err(Error::Config)?;
        let clock = Clock::new();
        let mut outbox = Outbox::new();
        outbox.set_max_segments(
            services
                .iter()
                .map(|service| service.max_segments())
                .min()
                .unwrap_or(1),
        );
        let completions = CompletionQueue::new().map_err(Error::system("eventfd"))?;
        let driver = Driver {
            faulty: Faulty::new(&self.faults, clock.now()),
            clock,
            core,
            memory: RegionMap::default(),
            services,
            senders,
            inbox: Inbox::new(),
            outbox,
            counts: SocketCounts::default(),
            links: HashMap::new(),
            accepted: VecDeque::new(),
            events: VecDeque::new(),
            events_lost: 0,
            reports: 0,
            completions: completions.clone(),
        };
        let shared = Arc::new(Shared::new(driver, self.spin).map_err(Error::system("eventfd"))?);
        completions.attach(&shared);
        Nic::start(
            shared,
            completions,
            addresses[..self.planes.len()].to_vec(),
            payload_bytes,
            self.background,
        )
    }

    fn rate(&self) -> u32 {
        let slowest = self
            .planes
            .iter()
            .filter_map(|plane| rate_of(plane.ip()))
            .min();
        self.rate_mbps.or(slowest).unwrap_or(USUAL_RATE)
    }

    fn payload(&self) -> Result<u16, Error> {
        let mut most = u16::MAX;
        for (plane, address) in self.planes.iter().enumerate() {
            let Some(mtu) = mtu_of(address.ip()) else {
                continue;
            };
            let fits = payload_for(mtu, address.ip());
            if let Some(payload) = self.payload_bytes.filter(|payload| *payload > fits) {
                return Err(Error::PayloadTooLarge {
                    payload,
                    plane,
                    mtu,
                    most: fits,
                });
            }
            most = most.min(fits);
        }
        Ok(self.payload_bytes.unwrap_or(USUAL_PAYLOAD.min(most)))
    }
}

/// A secret that makes connection ids, keys and cookies unguessable.
fn random() -> Result<[u8; 32], Error> {
    let mut secret = [0; 32];
    let filled = rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Error::system("getrandom")(error.into()))?;
    // The system never gives less for so few bytes.
    if filled == secret.len() {
        Ok(secret)
    } else {
        Err(Error::system("getrandom")(
            std::io::ErrorKind::UnexpectedEof.into(),
        ))
    }
}

/// A socket per source port needs more descriptors than the usual soft limit allows.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If not, paths share ports.
    let _ = setrlimit(Resource::Nofile, limit);
}
