//! A MetaRoCE NIC in software, on ordinary Linux UDP sockets.
//!
//! The protocol is [`metaroce_core`]'s; here it gets sockets, memory, time and threads:
//!
//! * one service socket per plane receives (batched, coalesced by the kernel, with the ECN field); a socket per UDP
//!   source port sends, so that each path has a route of its own; runs of packets leave in one segmented send;
//! * peers write into registered [`Buffer`]s, or memory of somebody else's making, while the application may use them;
//! * completions go to [`CompletionQueue`]s that are polled, waited for, or watched by an event loop;
//! * progress is made by the application's own calls, or by a background thread;
//! * a fault injector ([`fault`]) between the protocol and the sockets can lose, delay, reorder, duplicate, corrupt and
//!   mark packets, or swallow a path or a plane, reproducibly.
//!
//! ```
//! use metaroce_soft::core::{Access, Status};
//! use metaroce_soft::{Buffer, Nic};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Two NICs, one plane each. The peer makes progress on a thread of its own.
//! let peer = Nic::builder().plane("127.0.0.1:0".parse()?).background(true).build()?;
//! let nic = Nic::builder().plane("127.0.0.1:0".parse()?).listen(false).build()?;
//!
//! let theirs = Buffer::new(4096)?;
//! let window = peer.register(&theirs, Access::REMOTE_WRITE)?;
//! let mine = Buffer::from_bytes(b"over eight paths")?;
//! let source = nic.register(&mine, Access::LOCAL_READ)?;
//!
//! let timeout = Duration::from_secs(5);
//! let connection = nic.connect(peer.addresses(), nic.connection_config(), timeout)?;
//! connection.write(0, 1, source.slice(0, 16), window.remote(100))?;
//! let completion = nic.completions().wait(Some(timeout)).expect("in time");
//! assert_eq!(completion.status, Status::Success);
//! assert_eq!(theirs.to_vec(100, 16)?, b"over eight paths");
//! nic.shut_down(timeout);
//! # Ok(())
//! # }
//! ```
//!
//! # Times
//!
//! When a peer dies without a word, every open operation of its connections ends with an error within the connection's
//! failure timeout (2 s unless set) after its last datagram.
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
