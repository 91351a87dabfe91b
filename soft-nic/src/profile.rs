//! How large this NIC's tables are.

use metaroce_core::{ConnectionEntry, Endpoint};

/// Paths of a connection, at most.
pub const PATHS: usize = 64;
/// Packets of a connection that may be unacknowledged at one time.
pub const SLOTS: usize = 512;
/// Streams of a connection.
pub const STREAMS: usize = 64;
/// Operations of a connection that may be open at one time.
pub const MESSAGES: usize = 64;
/// Registered regions.
pub const REGIONS: usize = 1024;
/// Posted receive buffers, of all queues together.
pub const RECEIVES: usize = 4096;

pub(crate) type Entry = ConnectionEntry<PATHS, SLOTS, STREAMS, MESSAGES>;
pub(crate) type Core = Endpoint<PATHS, SLOTS, STREAMS, MESSAGES, REGIONS, RECEIVES, Vec<Entry>>;
