//! UDP sockets: one that receives per plane, many that send, and the batches they carry.

mod inbox;
mod outbox;
mod senders;
mod udp;

pub(crate) use inbox::Inbox;
pub(crate) use outbox::{Label, Outbox};
pub(crate) use senders::Senders;
pub(crate) use udp::UdpPort;

/// The largest datagram that the protocol sends: a header, 9000 bytes of payload, a trailer, rounded up.
pub(crate) const MAX_DATAGRAM: usize = 9_216;

/// The most bytes of one send, with the headers of IPv6 in a 16-bit length.
pub(crate) const MAX_SEND: usize = 65_487;

/// What the sockets did so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SocketCounts {
    /// Send calls that succeeded.
    pub sends: u64,
    /// Datagrams in them.
    pub sent_datagrams: u64,
    /// Bytes in them.
    pub sent_bytes: u64,
    /// Times a send had to be tried again because the socket's buffer was full.
    pub send_blocked: u64,
    /// Datagrams that the system refused to send (no route, link down, no buffers, too long, filtered): lost.
    pub send_refused: u64,
    /// The last error number of those.
    pub last_send_error: Option<i32>,
    /// Receive calls that brought something.
    pub receives: u64,
    /// Datagrams in them.
    pub received_datagrams: u64,
    /// Bytes in them.
    pub received_bytes: u64,
    /// Receive calls that failed.
    pub receive_errors: u64,
    /// Source ports that could not be opened, so that paths share one.
    pub ports_shared: u64,
}
