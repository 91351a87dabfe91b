//! Large and small endpoints on one network.

use std::net::SocketAddr;

use metaroce_core::config::{ConfigError, ConnectionConfig, EndpointConfig};
use metaroce_core::memory::{Access, Memory, Region, RegionError, RegionIndex};
use metaroce_core::time::Instant;
use metaroce_core::work::{
    ConnectionHandle, Event, PostError, ReceiveQueue, ReceiveRequest, WorkRequest,
};
use metaroce_sim::endpoint::{
    CloseMode, ConnectionStatistics, DropReason, HEADER_BUFFER, LargeEndpoint, PathStatistics,
    PathWindow, ReceiveMeta, SmallEndpoint, Transmit, Transport,
};

/// One or the other.
pub enum AnyEndpoint {
    Large(Box<LargeEndpoint>),
    Small(Box<SmallEndpoint>),
}

impl AnyEndpoint {
    pub fn small(
        config: EndpointConfig,
        default: ConnectionConfig,
        secret: [u8; 32],
        connections: usize,
    ) -> Result<Self, ConfigError> {
        Ok(Self::Small(Box::new(Transport::create(
            config,
            default,
            secret,
            connections,
        )?)))
    }
}

macro_rules! both {
    ($self:expr, $endpoint:ident => $call:expr) => {
        match $self {
            AnyEndpoint::Large($endpoint) => $call,
            AnyEndpoint::Small($endpoint) => $call,
        }
    };
}

impl Transport for AnyEndpoint {
    fn create(
        config: EndpointConfig,
        default: ConnectionConfig,
        secret: [u8; 32],
        connections: usize,
    ) -> Result<Self, ConfigError> {
        Ok(Self::Large(Box::new(Transport::create(
            config,
            default,
            secret,
            connections,
        )?)))
    }
    fn register(&mut self, base: u64, length: u64, access: Access) -> Result<Region, RegionError> {
        both!(self, e => e.register(base, length, access))
    }
    fn deregister(&mut self, index: RegionIndex) -> Result<(), RegionError> {
        both!(self, e => e.deregister(index))
    }
    fn connect(
        &mut self,
        now: Instant,
        peer: &[SocketAddr],
        config: ConnectionConfig,
    ) -> Option<ConnectionHandle> {
        both!(self, e => e.connect(now, peer, config).ok())
    }
    fn post(
        &mut self,
        now: Instant,
        connection: ConnectionHandle,
        stream: u16,
        work: &WorkRequest<'_>,
    ) -> Result<(), PostError> {
        both!(self, e => e.post(now, connection, stream, work))
    }
    fn post_receive(
        &mut self,
        queue: ReceiveQueue,
        receive: &ReceiveRequest,
    ) -> Result<(), PostError> {
        both!(self, e => e.post_receive(queue, receive))
    }
    fn attach_shared_queue(
        &mut self,
        connection: ConnectionHandle,
        stream: u16,
        queue: u8,
    ) -> Result<(), PostError> {
        both!(self, e => e.attach_shared_queue(connection, stream, queue))
    }
    fn set_busy_planes(&mut self, busy: u8) {
        both!(self, e => e.set_busy_planes(busy))
    }
    fn announce(&mut self, connection: ConnectionHandle) -> Result<(), PostError> {
        both!(self, e => e.announce(connection))
    }
    fn close(
        &mut self,
        now: Instant,
        connection: ConnectionHandle,
        mode: CloseMode,
    ) -> Result<(), PostError> {
        both!(self, e => e.close(now, connection, mode))
    }
    fn handle_datagram(
        &mut self,
        now: Instant,
        meta: &ReceiveMeta,
        bytes: &[u8],
        memory: &mut impl Memory,
    ) -> Result<(), DropReason> {
        both!(self, e => e.handle_datagram(now, meta, bytes, memory))
    }
    fn poll_transmit(
        &mut self,
        now: Instant,
        header: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        both!(self, e => e.poll_transmit(now, header))
    }
    fn poll_datagram(
        &mut self,
        now: Instant,
        memory: &impl Memory,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        both!(self, e => e.poll_datagram(now, memory, buffer))
    }
    fn poll_timeout(&mut self) -> Option<Instant> {
        both!(self, e => e.poll_timeout())
    }
    fn handle_timeout(&mut self, now: Instant) {
        both!(self, e => e.handle_timeout(now));
    }
    fn poll_event(&mut self) -> Option<Event> {
        both!(self, e => e.poll_event())
    }
    fn connection_statistics(&self, connection: ConnectionHandle) -> Option<ConnectionStatistics> {
        both!(self, e => e.connection_statistics(connection))
    }
    fn path_window(&self, connection: ConnectionHandle, path: u8) -> Option<PathWindow> {
        both!(self, e => e.path_window(connection, path))
    }
    fn path_statistics(&self, connection: ConnectionHandle, path: u8) -> Option<PathStatistics> {
        both!(self, e => e.path_statistics(connection, path))
    }
}
