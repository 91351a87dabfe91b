//! One face for the core's endpoints, whose tables' sizes are in their types.

use metaroce_core::config::ConfigError;
use metaroce_core::memory::RegionError;
use metaroce_core::stats::{ConnectionStatistics, EndpointStatistics, PathStatistics};
use metaroce_core::work::{ConnectError, PostError};
use metaroce_core::{
    Access, CloseMode, ConnectionConfig, ConnectionEntry, ConnectionHandle, DropReason, Endpoint,
    EndpointConfig, Event, Instant, ReceiveMeta, ReceiveQueue, ReceiveRequest, Region, RegionIndex,
    Transmit, WorkRequest,
};
use metaroce_soft::memory::RegionMap;
use std::net::SocketAddr;

/// A table of connections on the heap.
type Entries<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize> =
    Vec<ConnectionEntry<PATHS, SLOTS, STREAMS, MESSAGES>>;

/// A connection of a small device: 4 regions, 8 receive buffers.
type Small = Endpoint<4, 32, 2, 2, 4, 8, Entries<4, 32, 2, 2>>;
/// Of a host: 64 regions, 1024 receive buffers.
type Large = Endpoint<64, 512, 32, 32, 64, 1024, Entries<64, 512, 32, 32>>;

/// An endpoint of some size.
pub trait Core: Send + Sync {
    fn register(&mut self, base: u64, length: u64, access: Access) -> Result<Region, RegionError>;
    fn deregister(&mut self, index: RegionIndex) -> Result<(), RegionError>;
    fn connect(
        &mut self,
        now: Instant,
        peer: &[SocketAddr],
        config: ConnectionConfig,
    ) -> Result<ConnectionHandle, ConnectError>;
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
        memory: &mut RegionMap,
    ) -> Result<(), DropReason>;
    fn poll_datagram(
        &mut self,
        now: Instant,
        memory: &RegionMap,
        buffer: &mut [u8],
    ) -> Option<Transmit>;
    fn poll_timeout(&mut self) -> Option<Instant>;
    fn handle_timeout(&mut self, now: Instant);
    fn poll_event(&mut self) -> Option<Event>;
    fn endpoint_statistics(&self) -> &EndpointStatistics;
    fn connection_statistics(&self, connection: ConnectionHandle) -> Option<ConnectionStatistics>;
    fn path_statistics(&self, connection: ConnectionHandle, path: u8) -> Option<PathStatistics>;
}

/// Every method is the endpoint's own of the same name.
macro_rules! forward {
    ($($name:ident(&mut self $(, $argument:ident: $kind:ty)*) $(-> $result:ty)?;)* @ $($read:ident(&self $(, $given:ident: $type:ty)*) -> $out:ty;)*) => {
        impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize, const REGIONS: usize, const RECEIVES: usize>
            Core for Endpoint<PATHS, SLOTS, STREAMS, MESSAGES, REGIONS, RECEIVES, Entries<PATHS, SLOTS, STREAMS, MESSAGES>>
        {
            $(fn $name(&mut self $(, $argument: $kind)*) $(-> $result)? {
                Endpoint::$name(self $(, $argument)*)
            })*
            $(fn $read(&self $(, $given: $type)*) -> $out {
                Endpoint::$read(self $(, $given)*)
            })*
        }
    };
}

forward! {
    register(&mut self, base: u64, length: u64, access: Access) -> Result<Region, RegionError>;
    deregister(&mut self, index: RegionIndex) -> Result<(), RegionError>;
    connect(&mut self, now: Instant, peer: &[SocketAddr], config: ConnectionConfig) -> Result<ConnectionHandle, ConnectError>;
    post(&mut self, now: Instant, connection: ConnectionHandle, stream: u16, work: &WorkRequest<'_>) -> Result<(), PostError>;
    post_receive(&mut self, queue: ReceiveQueue, receive: &ReceiveRequest) -> Result<(), PostError>;
    attach_shared_queue(&mut self, connection: ConnectionHandle, stream: u16, queue: u8) -> Result<(), PostError>;
    close(&mut self, now: Instant, connection: ConnectionHandle, mode: CloseMode) -> Result<(), PostError>;
    handle_datagram(&mut self, now: Instant, meta: &ReceiveMeta, bytes: &[u8], memory: &mut RegionMap) -> Result<(), DropReason>;
    poll_datagram(&mut self, now: Instant, memory: &RegionMap, buffer: &mut [u8]) -> Option<Transmit>;
    poll_timeout(&mut self) -> Option<Instant>;
    handle_timeout(&mut self, now: Instant);
    poll_event(&mut self) -> Option<Event>;
    @
    endpoint_statistics(&self) -> &EndpointStatistics;
    connection_statistics(&self, connection: ConnectionHandle) -> Option<ConnectionStatistics>;
    path_statistics(&self, connection: ConnectionHandle, path: u8) -> Option<PathStatistics>;
}

/// An endpoint of a small device.
pub fn small(
    config: EndpointConfig,
    default: ConnectionConfig,
    secret: [u8; 32],
    connections: usize,
) -> Result<Box<dyn Core>, ConfigError> {
    let entries = (0..connections).map(|_| ConnectionEntry::new()).collect();
    Ok(Box::new(Small::new(config, default, secret, entries)?))
}

/// An endpoint of a host.
pub fn large(
    config: EndpointConfig,
    default: ConnectionConfig,
    secret: [u8; 32],
    connections: usize,
) -> Result<Box<dyn Core>, ConfigError> {
    let entries = (0..connections).map(|_| ConnectionEntry::new()).collect();
    Ok(Box::new(Large::new(config, default, secret, entries)?))
}
