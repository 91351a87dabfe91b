//! A MetaRoCE NIC in software, on ordinary Linux UDP sockets.
#![deny(unsafe_op_in_unsafe_fn)]

mod builder;
mod clock;
mod completion;
mod connection;
mod driver;
mod error;
pub mod fault;
mod faulty;
mod host;
mod interface;
pub mod memory;
mod nic;
mod profile;
mod region;
mod shared;
mod socket;
mod statistics;

pub use builder::{NicBuilder, default_connection};
pub use completion::{Armed, CompletionQueue, QUEUE_CAPACITY};
pub use connection::{Connection, Phase};
pub use error::Error;
pub use host::{HostCapabilities, host_capabilities};
pub use memory::Buffer;
pub use nic::{ABORT_SHUT_DOWN, Nic};
pub use profile::{MESSAGES, PATHS, RECEIVES, REGIONS, SLOTS, STREAMS};
pub use region::MemoryRegion;
pub use socket::SocketCounts;
pub use statistics::NicStatistics;

/// The protocol core that the NIC drives.
pub use metaroce_core as core;
