//! The MetaRoCE transport: RDMA over a lossy, ordinary Ethernet.
//!
//! `#![no_std]`, no allocation, no floating point, no clock, no sockets: datagrams, events and time go in and out of an
//! [`Endpoint`], bytes are moved through [`Memory`]. The same code is in a NIC's firmware, behind a C ABI, in
//! Python and in a browser. The protocol is in `docs/spec.md`; the wire layout is our own and provisional.
//!
//! | room | what is in it |
//! |---|---|
//! | [`wire`] | bytes to typed headers and back; knows no state |
//! | [`path`] | one path at each end: PSN set, slots, loss rule, round-trip times |
//! | [`spray`] | which path carries the next packet |
//! | [`rate`] | the receiver's shares, the sender's windows and pacer |
//! | [`message`] | streams, open messages, posted buffers |
//! | [`memory`] | regions, keys, rights, and where the bytes are |
//! | [`handshake`] | cookies and parameters |
//! | [`connection`], [`endpoint`] | the parts put together |
//! | [`service`] | how a server of memory tells where it is |
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod config;
pub mod connection;
pub mod endpoint;
pub mod handshake;
pub mod memory;
pub mod message;
pub mod path;
pub mod planted;
pub mod rate;
pub mod schedule;
pub mod service;
pub mod spray;
pub mod stats;
pub mod storage;
pub mod time;
pub mod transmit;
pub mod wire;
pub mod work;

pub use config::{ConnectionConfig, ControllerChoice, EndpointConfig};
pub use connection::Connection;
pub use endpoint::{ConnectionEntry, Endpoint};
pub use memory::{Access, LocalSlice, Memory, Region, RegionIndex, RemoteAddress};
pub use stats::DropReason;
pub use time::{Duration, Instant};
pub use transmit::{Class, Ecn, HEADER_BUFFER, ReceiveMeta, Transmit};
pub use work::{
    CloseMode, Completion, CompletionKind, ConnectionHandle, Event, Operation, ReceiveQueue,
    ReceiveRequest, Source, Status, WorkFlags, WorkRequest,
};

/// A connection of a host: 64 paths, 512 outstanding packets, 32 streams, 32 open messages each way.
pub type LargeConnection = Connection<64, 512, 32, 32>;

/// A connection of a small device: 4 paths, 32 outstanding packets, 2 streams, 2 open messages each way: in 3 KiB.
pub type SmallConnection = Connection<4, 32, 2, 2>;
