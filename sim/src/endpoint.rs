//! The core's endpoints as the simulator uses them: one trait over all capacities.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use metaroce_core::config::{ConfigError, ConnectionConfig, EndpointConfig};
use metaroce_core::endpoint::{ConnectionEntry, Endpoint};
use metaroce_core::memory::{Access, Memory, Region, RegionError, RegionIndex};
pub use metaroce_core::stats::{ConnectionStatistics, DropReason, PathStatistics, PathWindow};
use metaroce_core::time::Instant;
pub use metaroce_core::transmit::{Class, Ecn, HEADER_BUFFER, ReceiveMeta, Transmit};
pub use metaroce_core::work::CloseMode;
use metaroce_core::work::{
    ConnectionHandle, Event, PostError, ReceiveQueue, ReceiveRequest, WorkRequest,
};

use crate::packet::HostId;

/// Endpoints for servers: 64 paths, 512 slots, 32 streams, 32 open messages.
pub type LargeEndpoint = Endpoint<64, 512, 32, 32, 32, 512, Vec<ConnectionEntry<64, 512, 32, 32>>>;
/// Endpoints for fat links and many planes: 128 paths, 1,024 slots.
pub type WideEndpoint =
    Endpoint<128, 1024, 32, 32, 32, 512, Vec<ConnectionEntry<128, 1024, 32, 32>>>;
/// Endpoints for long ways: 128 paths, 32,768 slots (1.3 times the product of 400 Gb/s and 2 ms).
pub type LongHaulEndpoint =
    Endpoint<128, 32_768, 32, 32, 32, 512, Vec<ConnectionEntry<128, 32_768, 32, 32>>>;
/// Endpoints for microcontrollers: 4 paths, 32 slots, 2 streams, 4 open messages.
pub type SmallEndpoint = Endpoint<4, 32, 2, 4, 32, 64, Vec<ConnectionEntry<4, 32, 2, 4>>>;

/// The UDP port at which every simulated endpoint listens.
pub const SERVICE_PORT: u16 = 4_791;
/// The source port of entropy 0.
pub const FIRST_SOURCE_PORT: u16 = 49_152;

/// The address of a host on a plane.
#[must_use]
pub fn address(host: HostId, plane: u8) -> SocketAddr {
    let ip = Ipv4Addr::new(10, plane, (host >> 8) as u8, host as u8);
    SocketAddr::new(IpAddr::V4(ip), SERVICE_PORT)
}

/// The host of an address.
#[must_use]
pub fn host_of(address: SocketAddr) -> HostId {
    match address.ip() {
        IpAddr::V4(ip) => u32::from(ip) & 0xffff,
        IpAddr::V6(_) => HostId::MAX,
    }
}

/// An endpoint of any capacity. The methods are those of the core's `Endpoint`.
#[expect(missing_docs, reason = "documented at the core's Endpoint")]
#[expect(
    clippy::missing_errors_doc,
    reason = "documented at the core's Endpoint"
)]
pub trait Transport: Sized {
    fn create(
        config: EndpointConfig,
        default: ConnectionConfig,
        secret: [u8; 32],
        connections: usize,
    ) -> Result<Self, ConfigError>;
    fn register(&mut self, base: u64, length: u64, access: Access) -> Result<Region, RegionError>;
    fn deregister(&mut self, index: RegionIndex) -> Result<(), RegionError>;
    fn connect(
        &mut self,
        now: Instant,
        peer: &[SocketAddr],
        config: ConnectionConfig,
    ) -> Option<ConnectionHandle>;
    fn post(
        &mut self,
        now: Instant,
        connection: ConnectionHandle,
        stream: u16,
        work: &WorkRequest<'_>,
    ) -> Result<(), PostError>;
    fn post_receive(
        &mut self,
        queue: ReceiveQueue,
        receive: &ReceiveRequest,
    ) -> Result<(), PostError>;
    fn attach_shared_queue(
        &mut self,
        connection: ConnectionHandle,
        stream: u16,
        queue: u8,
    ) -> Result<(), PostError>;
    fn announce(&mut self, connection: ConnectionHandle) -> Result<(), PostError>;
    fn close(
        &mut self,
        now: Instant,
        connection: ConnectionHandle,
        mode: CloseMode,
    ) -> Result<(), PostError>;
    fn handle_datagram(
        &mut self,
        now: Instant,
        meta: &ReceiveMeta,
        bytes: &[u8],
        memory: &mut impl Memory,
    ) -> Result<(), DropReason>;
    fn set_busy_planes(&mut self, busy: u8);
    fn poll_transmit(&mut self, now: Instant, header: &mut [u8; HEADER_BUFFER])
    -> Option<Transmit>;
    fn poll_datagram(
        &mut self,
        now: Instant,
        memory: &impl Memory,
        buffer: &mut [u8],
    ) -> Option<Transmit>;
    fn poll_timeout(&mut self) -> Option<Instant>;
    fn handle_timeout(&mut self, now: Instant);
    fn poll_event(&mut self) -> Option<Event>;
    fn connection_statistics(&self, connection: ConnectionHandle) -> Option<ConnectionStatistics>;
    fn path_statistics(&self, connection: ConnectionHandle, path: u8) -> Option<PathStatistics>;
    fn path_window(&self, connection: ConnectionHandle, path: u8) -> Option<PathWindow>;
}

impl<
    const PATHS: usize,
    const SLOTS: usize,
    const STREAMS: usize,
    const MESSAGES: usize,
    const REGIONS: usize,
    const RECEIVES: usize,
> Transport
    for Endpoint<
        PATHS,
        SLOTS,
        STREAMS,
        MESSAGES,
        REGIONS,
        RECEIVES,
        Vec<ConnectionEntry<PATHS, SLOTS, STREAMS, MESSAGES>>,
    >
{
    fn create(
        config: EndpointConfig,
        default: ConnectionConfig,
        secret: [u8; 32],
        connections: usize,
    ) -> Result<Self, ConfigError> {
        let table = (0..connections).map(|_| ConnectionEntry::new()).collect();
        Self::new(config, default, secret, table)
    }
    fn register(&mut self, base: u64, length: u64, access: Access) -> Result<Region, RegionError> {
        self.register(base, length, access)
    }
    fn deregister(&mut self, index: RegionIndex) -> Result<(), RegionError> {
        self.deregister(index)
    }
    fn connect(
        &mut self,
        now: Instant,
        peer: &[SocketAddr],
        config: ConnectionConfig,
    ) -> Option<ConnectionHandle> {
        self.connect(now, peer, config).ok()
    }
    fn post(
        &mut self,
        now: Instant,
        connection: ConnectionHandle,
        stream: u16,
        work: &WorkRequest<'_>,
    ) -> Result<(), PostError> {
        self.post(now, connection, stream, work)
    }
    fn post_receive(
        &mut self,
        queue: ReceiveQueue,
        receive: &ReceiveRequest,
    ) -> Result<(), PostError> {
        self.post_receive(queue, receive)
    }
    fn attach_shared_queue(
        &mut self,
        connection: ConnectionHandle,
        stream: u16,
        queue: u8,
    ) -> Result<(), PostError> {
        self.attach_shared_queue(connection, stream, queue)
    }
    fn announce(&mut self, connection: ConnectionHandle) -> Result<(), PostError> {
        self.announce(connection)
    }
    fn close(
        &mut self,
        now: Instant,
        connection: ConnectionHandle,
        mode: CloseMode,
    ) -> Result<(), PostError> {
        self.close(now, connection, mode)
    }
    #[inline]
    fn handle_datagram(
        &mut self,
        now: Instant,
        meta: &ReceiveMeta,
        bytes: &[u8],
        memory: &mut impl Memory,
    ) -> Result<(), DropReason> {
        self.handle_datagram(now, meta, bytes, memory)
    }
    fn set_busy_planes(&mut self, busy: u8) {
        self.set_busy_planes(busy);
    }
    #[inline]
    fn poll_transmit(
        &mut self,
        now: Instant,
        header: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        self.poll_transmit(now, header)
    }
    fn poll_datagram(
        &mut self,
        now: Instant,
        memory: &impl Memory,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        self.poll_datagram(now, memory, buffer)
    }
    #[inline]
    fn poll_timeout(&mut self) -> Option<Instant> {
        self.poll_timeout()
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }
    fn poll_event(&mut self) -> Option<Event> {
        self.poll_event()
    }
    fn connection_statistics(&self, connection: ConnectionHandle) -> Option<ConnectionStatistics> {
        self.connection_statistics(connection)
    }
    fn path_statistics(&self, connection: ConnectionHandle, path: u8) -> Option<PathStatistics> {
        self.path_statistics(connection, path)
    }
    fn path_window(&self, connection: ConnectionHandle, path: u8) -> Option<PathWindow> {
        self.path_window(connection, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_hosts() {
        for host in [0, 1, 255, 256, 1023, 65_535] {
            for plane in [0, 3] {
                assert_eq!(host_of(address(host, plane)), host);
            }
        }
        assert_ne!(address(1, 0), address(1, 1));
    }
}
