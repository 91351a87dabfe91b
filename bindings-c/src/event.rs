//! Events and completions.

use metaroce_core::wire::RejectReason;
use metaroce_core::work::CloseReason;
use metaroce_core::{Completion, CompletionKind, Event, Status};

/// What an operation was (`kind` of `mr_completion`).
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum mr_completion_kind {
    /// A write of this side.
    MR_COMPLETION_WRITE = 0,
    /// A send of this side.
    MR_COMPLETION_SEND = 1,
    /// A read of this side.
    MR_COMPLETION_READ = 2,
    /// A fetch-add of this side.
    MR_COMPLETION_FETCH_ADD = 3,
    /// A compare-swap of this side.
    MR_COMPLETION_COMPARE_SWAP = 4,
    /// A message of the peer that went to a posted buffer.
    MR_COMPLETION_RECEIVE = 5,
    /// A write of the peer with an immediate, which used up a posted buffer without touching it.
    MR_COMPLETION_RECEIVE_WRITE_IMM = 6,
}

/// How an operation ended (`status` of `mr_completion` and `mr_event`).
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum mr_status {
    /// Done: every byte is in its place.
    MR_STATUS_SUCCESS = 0,
    /// The local region was deregistered or its bytes could not be reached.
    MR_STATUS_LOCAL_ACCESS = 1,
    /// The peer does not know the key.
    MR_STATUS_REMOTE_INVALID_KEY = 2,
    /// Outside of the peer's region.
    MR_STATUS_REMOTE_OUT_OF_BOUNDS = 3,
    /// The peer's region does not grant this right.
    MR_STATUS_REMOTE_ACCESS_DENIED = 4,
    /// The message is longer than the buffer posted for it.
    MR_STATUS_LENGTH_EXCEEDS_BUFFER = 5,
    /// The peer posted no buffer in all the attempts that were allowed.
    MR_STATUS_RECEIVER_NOT_READY = 6,
    /// The peer could not make sense of the request.
    MR_STATUS_REMOTE_INVALID_REQUEST = 7,
    /// The peer's memory failed.
    MR_STATUS_REMOTE_MEMORY_FAULT = 8,
    /// Not tried or not finished, since an earlier operation failed or the stream or connection was closed.
    MR_STATUS_FLUSHED = 9,
    /// No path to the peer answers.
    MR_STATUS_CONNECTION_LOST = 10,
}

/// Why a connection ended (`reason` of `mr_event`).
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum mr_close_reason {
    /// This side closed it.
    MR_CLOSED_LOCALLY = 0,
    /// The peer closed it after everything was delivered.
    MR_CLOSED_BY_PEER = 1,
    /// The peer aborted it; `code` is its code.
    MR_ABORTED_BY_PEER = 2,
    /// No path answered for the failure time.
    MR_UNREACHABLE = 3,
    /// The peer refused the connection; `code` is one of `enum mr_reject_reason`.
    MR_REFUSED = 4,
}

/// Why a peer refused a connection (`code` of `mr_event` with `MR_REFUSED`).
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum mr_reject_reason {
    /// No common version.
    MR_REJECT_VERSION = 1,
    /// Nobody listens for this service.
    MR_REJECT_NOT_LISTENING = 2,
    /// No room for another connection.
    MR_REJECT_BUSY = 3,
    /// The parameters cannot be met.
    MR_REJECT_PARAMETERS = 4,
    /// The cookie is wrong or too old.
    MR_REJECT_COOKIE = 5,
    /// The addresses are not acceptable.
    MR_REJECT_ADDRESS = 6,
}
const _: () = assert!(
    RejectReason::Version as u16 == mr_reject_reason::MR_REJECT_VERSION as u16
        && RejectReason::NotListening as u16 == mr_reject_reason::MR_REJECT_NOT_LISTENING as u16
        && RejectReason::Busy as u16 == mr_reject_reason::MR_REJECT_BUSY as u16
        && RejectReason::Parameters as u16 == mr_reject_reason::MR_REJECT_PARAMETERS as u16
        && RejectReason::Cookie as u16 == mr_reject_reason::MR_REJECT_COOKIE as u16
        && RejectReason::Address as u16 == mr_reject_reason::MR_REJECT_ADDRESS as u16
);

/// The end of an operation.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct mr_completion {
    /// The application's number for the work request or buffer.
    pub id: u64,
    /// The connection.
    pub connection: u32,
    /// Bytes of the message.
    pub length: u32,
    /// The peer's immediate, if `has_immediate`.
    pub immediate: u32,
    /// The stream.
    pub stream: u16,
    /// One of `enum mr_completion_kind`.
    pub kind: u8,
    /// One of `enum mr_status`.
    pub status: u8,
    /// 1 if the peer gave an immediate.
    pub has_immediate: u8,
    /// 1 if the peer asked to wake a waiter.
    pub solicited: u8,
}

/// What happened (`kind` of `mr_event`).
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum mr_event_kind {
    /// A connection is ready for work: `incoming`, `service`.
    MR_EVENT_CONNECTED = 0,
    /// A connection ended, and its handle is stale from now on: `reason`, `code`.
    MR_EVENT_CLOSED = 1,
    /// An operation ended: `completion`.
    MR_EVENT_COMPLETION = 2,
    /// A stream failed, its open operations were flushed: `stream`, `status`, `by_peer`.
    MR_EVENT_STREAM_FAILED = 3,
    /// All paths of a plane failed: `plane`.
    MR_EVENT_PLANE_DOWN = 4,
    /// A plane carries packets again: `plane`.
    MR_EVENT_PLANE_UP = 5,
}

/// Something that happened. Fields that its kind does not name are 0.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct mr_event {
    /// The completion of `MR_EVENT_COMPLETION`.
    pub completion: mr_completion,
    /// The connection.
    pub connection: u32,
    /// The application number that the initiator gave.
    pub service: u32,
    /// The stream.
    pub stream: u16,
    /// The peer's abort code, or one of `enum mr_reject_reason`.
    pub code: u16,
    /// One of `enum mr_event_kind`.
    pub kind: u8,
    /// 1 if the peer asked for the connection.
    pub incoming: u8,
    /// One of `enum mr_close_reason`.
    pub reason: u8,
    /// One of `enum mr_status`.
    pub status: u8,
    /// 1 if this side found the fault in what the peer asked for.
    pub by_peer: u8,
    /// The plane.
    pub plane: u8,
}

pub(crate) fn status(status: Status) -> u8 {
    use mr_status::*;
    let status = match status {
        Status::Success => MR_STATUS_SUCCESS,
        Status::LocalAccess => MR_STATUS_LOCAL_ACCESS,
        Status::RemoteInvalidKey => MR_STATUS_REMOTE_INVALID_KEY,
        Status::RemoteOutOfBounds => MR_STATUS_REMOTE_OUT_OF_BOUNDS,
        Status::RemoteAccessDenied => MR_STATUS_REMOTE_ACCESS_DENIED,
        Status::LengthExceedsBuffer => MR_STATUS_LENGTH_EXCEEDS_BUFFER,
        Status::ReceiverNotReady => MR_STATUS_RECEIVER_NOT_READY,
        Status::RemoteInvalidRequest => MR_STATUS_REMOTE_INVALID_REQUEST,
        Status::RemoteMemoryFault => MR_STATUS_REMOTE_MEMORY_FAULT,
        Status::Flushed => MR_STATUS_FLUSHED,
        Status::ConnectionLost => MR_STATUS_CONNECTION_LOST,
    };
    status as u8
}

pub(crate) fn close_reason(reason: CloseReason) -> (u8, u16) {
    use mr_close_reason::*;
    let (reason, code) = match reason {
        CloseReason::LocalClose => (MR_CLOSED_LOCALLY, 0),
        CloseReason::PeerClose => (MR_CLOSED_BY_PEER, 0),
        CloseReason::PeerAbort(code) => (MR_ABORTED_BY_PEER, code),
        CloseReason::Unreachable => (MR_UNREACHABLE, 0),
        CloseReason::Refused(reason) => (MR_REFUSED, reason as u16),
    };
    (reason as u8, code)
}

impl mr_completion {
    pub(crate) fn of(completion: &Completion) -> Self {
        use mr_completion_kind::*;
        let kind = match completion.kind {
            CompletionKind::Write => MR_COMPLETION_WRITE,
            CompletionKind::Send => MR_COMPLETION_SEND,
            CompletionKind::Read => MR_COMPLETION_READ,
            CompletionKind::FetchAdd => MR_COMPLETION_FETCH_ADD,
            CompletionKind::CompareSwap => MR_COMPLETION_COMPARE_SWAP,
            CompletionKind::Receive => MR_COMPLETION_RECEIVE,
            CompletionKind::ReceiveWriteImmediate => MR_COMPLETION_RECEIVE_WRITE_IMM,
        };
        Self {
            id: completion.id,
            connection: completion.connection.to_bits(),
            length: completion.length,
            immediate: completion.immediate.unwrap_or(0),
            stream: completion.stream,
            kind: kind as u8,
            status: status(completion.status),
            has_immediate: completion.immediate.is_some().into(),
            solicited: completion.solicited.into(),
        }
    }
}

impl mr_event {
    pub(crate) fn of(event: &Event) -> Self {
        use mr_event_kind::*;
        let base = |kind: mr_event_kind, connection: metaroce_core::ConnectionHandle| Self {
            kind: kind as u8,
            connection: connection.to_bits(),
            ..Self::default()
        };
        match *event {
            Event::Connected {
                connection,
                incoming,
                service,
            } => Self {
                incoming: incoming.into(),
                service,
                ..base(MR_EVENT_CONNECTED, connection)
            },
            Event::Closed { connection, reason } => {
                let (reason, code) = close_reason(reason);
                Self {
                    reason,
                    code,
                    ..base(MR_EVENT_CLOSED, connection)
                }
            }
            Event::Completion(completion) => Self {
                completion: mr_completion::of(&completion),
                ..base(MR_EVENT_COMPLETION, completion.connection)
            },
            Event::StreamFailed {
                connection,
                stream,
                status: why,
                by_peer,
            } => Self {
                stream,
                status: status(why),
                by_peer: by_peer.into(),
                ..base(MR_EVENT_STREAM_FAILED, connection)
            },
            Event::PlaneDown { connection, plane } => Self {
                plane,
                ..base(MR_EVENT_PLANE_DOWN, connection)
            },
            Event::PlaneUp { connection, plane } => Self {
                plane,
                ..base(MR_EVENT_PLANE_UP, connection)
            },
        }
    }
}
