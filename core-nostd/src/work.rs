//! What an application asks for and what it is told: work requests, completions, events.

use crate::memory::{LocalSlice, RemoteAddress};

/// The most bytes that a work request may carry itself.
pub const INLINE_BYTES: usize = 32;

/// The longest message, in bytes.
pub const MAX_MESSAGE_BYTES: u32 = (1 << 31) - 1;

/// A connection at its own endpoint. A stale handle is answered with an error, never with another connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ConnectionHandle(pub(crate) u32);

impl ConnectionHandle {
    /// The handle as a number, e.g. to key a map or to cross a C ABI.
    #[must_use]
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The handle that [`Self::to_bits`] was taken of.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

/// Where the bytes of a send or write come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source<'a> {
    /// A slice of a registered region, which must stay as it is until the completion.
    Region(LocalSlice),
    /// At most [`INLINE_BYTES`] bytes, copied when posted.
    Inline(&'a [u8]),
}

/// An operation on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation<'a> {
    /// Write to the peer's memory; with an immediate, the peer's stream completes a receive too.
    Write {
        /// The bytes.
        local: Source<'a>,
        /// Where they go.
        remote: RemoteAddress,
        /// A value for the peer's completion.
        immediate: Option<u32>,
    },
    /// Send to the buffer that the peer posted for this message.
    Send {
        /// The bytes.
        local: Source<'a>,
        /// A value for the peer's completion.
        immediate: Option<u32>,
    },
    /// Read the peer's memory.
    Read {
        /// Where the bytes go; its length is the number of bytes.
        local: LocalSlice,
        /// Where they are.
        remote: RemoteAddress,
    },
    /// Add to a 64-bit word of the peer's memory. The word as it was is stored to `local`, 8 bytes, native-endian.
    FetchAdd {
        /// Where the old word goes.
        local: LocalSlice,
        /// The word, 8-byte aligned.
        remote: RemoteAddress,
        /// The addend.
        add: u64,
    },
    /// Replace a 64-bit word of the peer's memory if it equals `compare`. The word as it was is stored to `local`.
    CompareSwap {
        /// Where the old word goes.
        local: LocalSlice,
        /// The word, 8-byte aligned.
        remote: RemoteAddress,
        /// The expected word.
        compare: u64,
        /// The new word.
        swap: u64,
    },
}

/// How a work request is treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkFlags {
    /// Report success too. Failures are always reported.
    pub signaled: bool,
    /// Ask the peer to wake a waiter when it completes the receive.
    pub solicited: bool,
    /// Start only when every earlier READ and atomic of the stream has completed.
    pub fence: bool,
}

impl Default for WorkFlags {
    fn default() -> Self {
        Self {
            signaled: true,
            solicited: false,
            fence: false,
        }
    }
}

/// A work request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkRequest<'a> {
    /// The application's number, returned in the completion.
    pub id: u64,
    /// What to do.
    pub operation: Operation<'a>,
    /// How.
    pub flags: WorkFlags,
}

/// A buffer for a message to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveRequest {
    /// The application's number, returned in the completion.
    pub id: u64,
    /// Where the message goes.
    pub local: LocalSlice,
}

/// Which queue a receive buffer is posted to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ReceiveQueue {
    /// The stream's own queue: its k-th receive-consuming message goes to its k-th buffer.
    Stream(ConnectionHandle, u16),
    /// A queue shared by the streams that were attached to it.
    Shared(u8),
}

/// What kind of operation a completion is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum CompletionKind {
    /// A write of this side.
    Write,
    /// A send of this side.
    Send,
    /// A read of this side.
    Read,
    /// A fetch-add of this side.
    FetchAdd,
    /// A compare-swap of this side.
    CompareSwap,
    /// A message of the peer that went to a posted buffer.
    Receive,
    /// A write of the peer with an immediate, which used up a posted buffer without touching it.
    ReceiveWriteImmediate,
}

/// How an operation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Status {
    /// Done: every byte is in its place.
    Success,
    /// The local region was deregistered or its bytes could not be reached.
    LocalAccess,
    /// The peer does not know the key.
    RemoteInvalidKey,
    /// Outside of the peer's region.
    RemoteOutOfBounds,
    /// The peer's region does not grant this right.
    RemoteAccessDenied,
    /// The message is longer than the buffer posted for it.
    LengthExceedsBuffer,
    /// The peer posted no buffer in all the attempts that were allowed.
    ReceiverNotReady,
    /// The peer could not make sense of the request.
    RemoteInvalidRequest,
    /// The peer's memory failed.
    RemoteMemoryFault,
    /// An earlier operation of the stream failed, or the stream or connection was closed: this one was not tried
    /// or not finished, and may or may not have had an effect.
    Flushed,
    /// No path to the peer answers.
    ConnectionLost,
}

/// The end of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Completion {
    /// The connection.
    pub connection: ConnectionHandle,
    /// The stream.
    pub stream: u16,
    /// The application's number for the work request or buffer.
    pub id: u64,
    /// What it was.
    pub kind: CompletionKind,
    /// How it ended.
    pub status: Status,
    /// Bytes of the message.
    pub length: u32,
    /// The peer's immediate, for receives.
    pub immediate: Option<u32>,
    /// The peer asked to wake a waiter.
    pub solicited: bool,
}

/// Why a connection ended or was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum CloseReason {
    /// This side closed it.
    LocalClose,
    /// The peer closed it after everything was delivered.
    PeerClose,
    /// The peer aborted it; its code.
    PeerAbort(u16),
    /// No path answered for the failure time.
    Unreachable,
    /// The peer refused the connection; the wire's reason.
    Refused(crate::wire::RejectReason),
}

/// Something that happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Event {
    /// A connection is ready for work.
    Connected {
        /// The connection.
        connection: ConnectionHandle,
        /// The peer asked for it.
        incoming: bool,
        /// The application number that the initiator gave.
        service: u32,
    },
    /// A connection ended. Its handle is stale from now on; all its completions were reported before.
    Closed {
        /// The connection.
        connection: ConnectionHandle,
        /// Why.
        reason: CloseReason,
    },
    /// An operation ended.
    Completion(Completion),
    /// A stream of this connection failed: its open operations were flushed, other streams go on.
    StreamFailed {
        /// The connection.
        connection: ConnectionHandle,
        /// The stream.
        stream: u16,
        /// What was wrong.
        status: Status,
        /// The fault was found by this side in what the peer asked for.
        by_peer: bool,
    },
    /// All paths of a plane failed.
    PlaneDown {
        /// The connection.
        connection: ConnectionHandle,
        /// The plane.
        plane: u8,
    },
    /// A plane carries packets again.
    PlaneUp {
        /// The connection.
        connection: ConnectionHandle,
        /// The plane.
        plane: u8,
    },
}

/// Why a work request or buffer was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PostError {
    /// No such connection (any more).
    UnknownConnection,
    /// The connection is not established yet, or closing.
    NotEstablished,
    /// No such stream.
    UnknownStream,
    /// The stream has failed.
    StreamFailed,
    /// As many operations are open as the connection can hold: take completions first.
    QueueFull,
    /// Longer than [`MAX_MESSAGE_BYTES`], or than [`INLINE_BYTES`] for inline data, or not 8 bytes for an atomic.
    BadLength,
    /// The remote address of an atomic is not 8-byte aligned.
    Unaligned,
    /// The local slice was refused.
    Local(crate::memory::RegionError),
    /// The receive queue is of another kind than the stream uses, or does not exist.
    WrongQueue,
}

impl core::fmt::Display for PostError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::UnknownConnection => "no such connection",
            Self::NotEstablished => "the connection is not established, or is closing",
            Self::UnknownStream => "the connection has no such stream",
            Self::StreamFailed => "the stream has failed",
            Self::QueueFull => "as many operations are open as the queue holds",
            Self::BadLength => "the message is too long (or an atomic's slice is not 8 bytes)",
            Self::Unaligned => "the remote address of an atomic is not a multiple of 8",
            Self::Local(error) => return write!(f, "local slice: {error}"),
            Self::WrongQueue => "the stream does not use this receive queue",
        })
    }
}

impl core::error::Error for PostError {}

/// How a connection is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum CloseMode {
    /// Finish what was posted, on both sides, then end.
    Drain,
    /// End now; open operations complete as flushed. The peer is told the code.
    Abort(u16),
}

/// Why a connection could not be begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ConnectError {
    /// The connection table is full.
    TableFull,
    /// No address was given, more than eight, or one with port 0.
    BadAddress,
    /// `paths` is zero, or `run` is.
    BadConfiguration,
}

impl core::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::TableFull => "the connection table is full",
            Self::BadAddress => "peer addresses: one per plane, 1 to 8, with a port that is not 0",
            Self::BadConfiguration => "paths and run must not be zero",
        })
    }
}

impl core::error::Error for ConnectError {}
