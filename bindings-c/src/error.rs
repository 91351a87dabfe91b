//! Error codes and their texts.

use core::ffi::{CStr, c_char};

use metaroce_core::config::ConfigError;
use metaroce_core::memory::RegionError;
use metaroce_core::wire::DecodeError;
use metaroce_core::work::{ConnectError, PostError};

/// What functions return: 0 or a count if all went well, one of these (negative) if not.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum mr_error {
    /// All went well.
    MR_OK = 0,
    /// A pointer that is needed is NULL.
    MR_ERROR_NULL = -1,
    /// A pointer is not aligned as its type asks.
    MR_ERROR_ALIGNMENT = -2,
    /// The memory for an endpoint is too small: see `mr_endpoint_size`.
    MR_ERROR_SIZE = -3,
    /// No such profile, or this build of the library does not have it.
    MR_ERROR_PROFILE = -4,
    /// The pointer is not to an object of this kind (or one that was ended).
    MR_ERROR_NOT_AN_OBJECT = -5,
    /// The endpoint was copied or moved in memory: it must stay where it was made.
    MR_ERROR_MOVED = -6,
    /// The endpoint is in use: called from one of its own memory callbacks, or by two threads at once.
    MR_ERROR_BUSY = -7,
    /// A bug in this library; the object takes no further calls. Please report it.
    MR_ERROR_INTERNAL = -8,
    /// A buffer is too small for what is to be written to it.
    MR_ERROR_BUFFER_TOO_SMALL = -9,
    /// A number is none of those that its field or parameter may have.
    MR_ERROR_BAD_ARGUMENT = -10,
    /// A text is not UTF-8.
    MR_ERROR_NOT_UTF8 = -11,
    /// `planes` is not 1 to 8.
    MR_ERROR_CONFIG_PLANES = -20,
    /// `payload_bytes` is not 256 to 9000.
    MR_ERROR_CONFIG_PAYLOAD_BYTES = -21,
    /// `plane_mbps` is zero.
    MR_ERROR_CONFIG_RATE = -22,
    /// `entropies` is zero.
    MR_ERROR_CONFIG_ENTROPIES = -23,
    /// `ack_packets` or `ack_blocks` is zero.
    MR_ERROR_CONFIG_ACKNOWLEDGMENTS = -24,
    /// `run` of the connections that peers ask for is zero.
    MR_ERROR_CONFIG_RUN = -25,
    /// A plane in use has port zero.
    MR_ERROR_CONFIG_ADDRESS = -26,
    /// The number of connections is not 1 to 65,535.
    MR_ERROR_CONFIG_CONNECTIONS = -27,
    /// The connection table is full.
    MR_ERROR_TABLE_FULL = -40,
    /// Peer addresses: one per plane, 1 to 8, with a port that is not 0.
    MR_ERROR_BAD_ADDRESS = -41,
    /// `paths` or `run` of the connection is zero.
    MR_ERROR_BAD_CONFIGURATION = -42,
    /// No such connection (any more).
    MR_ERROR_UNKNOWN_CONNECTION = -50,
    /// The connection is not established yet, or closing.
    MR_ERROR_NOT_ESTABLISHED = -51,
    /// The connection has no such stream.
    MR_ERROR_UNKNOWN_STREAM = -52,
    /// The stream has failed.
    MR_ERROR_STREAM_FAILED = -53,
    /// As many operations or buffers are open as the queue holds: take completions first.
    MR_ERROR_QUEUE_FULL = -54,
    /// Longer than `MR_MAX_MESSAGE_BYTES`, than `MR_INLINE_BYTES` for inline data, or not 8 bytes for an atomic.
    MR_ERROR_BAD_LENGTH = -55,
    /// The remote address of an atomic is not a multiple of 8.
    MR_ERROR_UNALIGNED = -56,
    /// The stream does not use this receive queue, or it does not exist.
    MR_ERROR_WRONG_QUEUE = -57,
    /// Every region slot is taken.
    MR_ERROR_REGIONS_FULL = -60,
    /// The region's base plus its length does not fit in 64 bits.
    MR_ERROR_REGION_WRAPS = -61,
    /// No region is registered under this index.
    MR_ERROR_UNKNOWN_REGION = -62,
    /// The slice reaches outside of its region.
    MR_ERROR_OUT_OF_BOUNDS = -63,
    /// The region was not registered with the right that this operation needs.
    MR_ERROR_ACCESS_DENIED = -64,
    /// A region without bytes of its own at an endpoint without memory callbacks.
    MR_ERROR_NO_CALLBACKS = -65,
    /// A datagram is shorter than what its kind begins with, or has no room for its trailer.
    MR_ERROR_DECODE_TRUNCATED = -70,
    /// Not a length that a datagram of this kind can have.
    MR_ERROR_DECODE_LENGTH = -71,
    /// The CRC32C is not that of the bytes before it.
    MR_ERROR_DECODE_CHECKSUM = -72,
    /// A version of the wire format that is not ours.
    MR_ERROR_DECODE_VERSION = -73,
    /// No such kind of datagram.
    MR_ERROR_DECODE_KIND = -74,
    /// A flag that this kind or opcode may not carry.
    MR_ERROR_DECODE_FLAGS = -75,
    /// A field without meaning here is not zero.
    MR_ERROR_DECODE_RESERVED = -76,
    /// No such opcode.
    MR_ERROR_DECODE_OPCODE = -77,
    /// A message length that its opcode cannot have.
    MR_ERROR_DECODE_MESSAGE_LENGTH = -78,
    /// The payload does not lie inside of the message.
    MR_ERROR_DECODE_BOUNDS = -79,
    /// A payload that is too long, empty where it may not be, or not of its opcode's size.
    MR_ERROR_DECODE_PAYLOAD = -80,
    /// No such atomic operation.
    MR_ERROR_DECODE_ATOMIC = -81,
    /// No such error code in an ERROR message.
    MR_ERROR_DECODE_ERROR_CODE = -82,
    /// A SACK vector that cannot be.
    MR_ERROR_DECODE_SACK = -83,
    /// A number is outside of its field's range.
    MR_ERROR_DECODE_OUT_OF_RANGE = -84,
    /// No such reason for a REJECT.
    MR_ERROR_DECODE_REJECT_REASON = -85,
    /// Nothing happened in the time allowed.
    MR_ERROR_TIMED_OUT = -100,
    /// The connection was not made, or ended: `mr_error_detail` says why.
    MR_ERROR_CLOSED = -101,
    /// A system call failed: `mr_error_detail` says which and why.
    MR_ERROR_SYSTEM = -102,
    /// A plane's address names no interface, cannot be bound, or its interface does not carry the payload: see `mr_error_detail`.
    MR_ERROR_PLANE = -103,
    /// Completions wait to be taken before more can be posted.
    MR_ERROR_COMPLETIONS_FULL = -104,
    /// The fault plan cannot be read: `mr_error_detail` says what is wrong with it, and where.
    MR_ERROR_FAULTS = -106,
    /// The scenario or one of its settings is wrong: `mr_error_detail` says what and where.
    MR_ERROR_SCENARIO = -110,
}

/// The text of each code.
const TEXTS: &[(mr_error, &CStr)] = &[
    (mr_error::MR_OK, c"success"),
    (mr_error::MR_ERROR_NULL, c"a pointer that is needed is NULL"),
    (
        mr_error::MR_ERROR_ALIGNMENT,
        c"a pointer is not aligned as its type asks",
    ),
    (
        mr_error::MR_ERROR_SIZE,
        c"the memory for the endpoint is too small",
    ),
    (
        mr_error::MR_ERROR_PROFILE,
        c"this build of the library has no such profile",
    ),
    (
        mr_error::MR_ERROR_NOT_AN_OBJECT,
        c"the pointer is not to an object of this kind",
    ),
    (
        mr_error::MR_ERROR_MOVED,
        c"the endpoint was moved in memory",
    ),
    (
        mr_error::MR_ERROR_BUSY,
        c"the endpoint is in use by another call",
    ),
    (
        mr_error::MR_ERROR_INTERNAL,
        c"a bug in this library: the object takes no further calls",
    ),
    (
        mr_error::MR_ERROR_BUFFER_TOO_SMALL,
        c"a buffer is too small",
    ),
    (
        mr_error::MR_ERROR_BAD_ARGUMENT,
        c"a number is none of those that its field may have",
    ),
    (mr_error::MR_ERROR_NOT_UTF8, c"a text is not UTF-8"),
    (mr_error::MR_ERROR_CONFIG_PLANES, c"planes: must be 1 to 8"),
    (
        mr_error::MR_ERROR_CONFIG_PAYLOAD_BYTES,
        c"payload_bytes: must be 256 to 9000",
    ),
    (
        mr_error::MR_ERROR_CONFIG_RATE,
        c"plane_mbps: must not be zero",
    ),
    (
        mr_error::MR_ERROR_CONFIG_ENTROPIES,
        c"entropies: must not be zero",
    ),
    (
        mr_error::MR_ERROR_CONFIG_ACKNOWLEDGMENTS,
        c"ack_packets and ack_blocks: must not be zero",
    ),
    (mr_error::MR_ERROR_CONFIG_RUN, c"run: must not be zero"),
    (
        mr_error::MR_ERROR_CONFIG_ADDRESS,
        c"addresses: a plane in use has port 0",
    ),
    (
        mr_error::MR_ERROR_CONFIG_CONNECTIONS,
        c"connections: must be 1 to 65,535",
    ),
    (
        mr_error::MR_ERROR_TABLE_FULL,
        c"the connection table is full",
    ),
    (
        mr_error::MR_ERROR_BAD_ADDRESS,
        c"peer addresses: one per plane, 1 to 8, with a port that is not 0",
    ),
    (
        mr_error::MR_ERROR_BAD_CONFIGURATION,
        c"paths and run must not be zero",
    ),
    (
        mr_error::MR_ERROR_UNKNOWN_CONNECTION,
        c"no such connection (any more)",
    ),
    (
        mr_error::MR_ERROR_NOT_ESTABLISHED,
        c"the connection is not established, or is closing",
    ),
    (
        mr_error::MR_ERROR_UNKNOWN_STREAM,
        c"the connection has no such stream",
    ),
    (mr_error::MR_ERROR_STREAM_FAILED, c"the stream has failed"),
    (
        mr_error::MR_ERROR_QUEUE_FULL,
        c"as many operations are open as the queue holds: take completions first",
    ),
    (
        mr_error::MR_ERROR_BAD_LENGTH,
        c"the message is too long, or an atomic's slice is not 8 bytes",
    ),
    (
        mr_error::MR_ERROR_UNALIGNED,
        c"the remote address of an atomic is not a multiple of 8",
    ),
    (
        mr_error::MR_ERROR_WRONG_QUEUE,
        c"the stream does not use this receive queue",
    ),
    (
        mr_error::MR_ERROR_REGIONS_FULL,
        c"every region slot is taken",
    ),
    (
        mr_error::MR_ERROR_REGION_WRAPS,
        c"the region's base plus length does not fit in 64 bits",
    ),
    (
        mr_error::MR_ERROR_UNKNOWN_REGION,
        c"no region is registered under this index",
    ),
    (
        mr_error::MR_ERROR_OUT_OF_BOUNDS,
        c"the slice reaches outside of its region",
    ),
    (
        mr_error::MR_ERROR_ACCESS_DENIED,
        c"the region was not registered with the right this operation needs",
    ),
    (
        mr_error::MR_ERROR_NO_CALLBACKS,
        c"a region without bytes needs an endpoint with memory callbacks",
    ),
    (mr_error::MR_ERROR_DECODE_TRUNCATED, c"datagram: truncated"),
    (
        mr_error::MR_ERROR_DECODE_LENGTH,
        c"datagram: not a length of its kind",
    ),
    (
        mr_error::MR_ERROR_DECODE_CHECKSUM,
        c"datagram: wrong CRC32C",
    ),
    (
        mr_error::MR_ERROR_DECODE_VERSION,
        c"datagram: another version of the wire format",
    ),
    (mr_error::MR_ERROR_DECODE_KIND, c"datagram: no such kind"),
    (
        mr_error::MR_ERROR_DECODE_FLAGS,
        c"datagram: a flag that its kind may not carry",
    ),
    (
        mr_error::MR_ERROR_DECODE_RESERVED,
        c"datagram: a field without meaning is not zero",
    ),
    (
        mr_error::MR_ERROR_DECODE_OPCODE,
        c"datagram: no such opcode",
    ),
    (
        mr_error::MR_ERROR_DECODE_MESSAGE_LENGTH,
        c"datagram: a message length that its opcode cannot have",
    ),
    (
        mr_error::MR_ERROR_DECODE_BOUNDS,
        c"datagram: the payload is not inside of the message",
    ),
    (
        mr_error::MR_ERROR_DECODE_PAYLOAD,
        c"datagram: not a payload of its opcode",
    ),
    (
        mr_error::MR_ERROR_DECODE_ATOMIC,
        c"datagram: no such atomic operation",
    ),
    (
        mr_error::MR_ERROR_DECODE_ERROR_CODE,
        c"datagram: no such error code in an ERROR",
    ),
    (
        mr_error::MR_ERROR_DECODE_SACK,
        c"datagram: a SACK vector that cannot be",
    ),
    (
        mr_error::MR_ERROR_DECODE_OUT_OF_RANGE,
        c"datagram: a number is outside of its field's range",
    ),
    (
        mr_error::MR_ERROR_DECODE_REJECT_REASON,
        c"datagram: no such reason for a REJECT",
    ),
    (
        mr_error::MR_ERROR_TIMED_OUT,
        c"nothing happened in the time allowed",
    ),
    (
        mr_error::MR_ERROR_CLOSED,
        c"the connection was not made, or ended",
    ),
    (mr_error::MR_ERROR_SYSTEM, c"a system call failed"),
    (
        mr_error::MR_ERROR_PLANE,
        c"a plane's address cannot be used as asked",
    ),
    (
        mr_error::MR_ERROR_COMPLETIONS_FULL,
        c"completions wait to be taken before more can be posted",
    ),
    (mr_error::MR_ERROR_FAULTS, c"the fault plan cannot be read"),
    (
        mr_error::MR_ERROR_SCENARIO,
        c"the scenario or one of its settings is wrong",
    ),
];

/// The text of an error code: English, static, never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn mr_error_string(code: i32) -> *const c_char {
    let known = TEXTS.iter().find(|(error, _)| *error as i32 == code);
    let text = match known {
        Some((_, text)) => text,
        None if code > 0 => c"no error: a count, or what the function says",
        None => c"unknown error code",
    };
    text.as_ptr()
}

impl From<ConfigError> for mr_error {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Planes => Self::MR_ERROR_CONFIG_PLANES,
            ConfigError::PayloadBytes => Self::MR_ERROR_CONFIG_PAYLOAD_BYTES,
            ConfigError::Rate => Self::MR_ERROR_CONFIG_RATE,
            ConfigError::Entropies => Self::MR_ERROR_CONFIG_ENTROPIES,
            ConfigError::Acknowledgments => Self::MR_ERROR_CONFIG_ACKNOWLEDGMENTS,
            ConfigError::Run => Self::MR_ERROR_CONFIG_RUN,
            ConfigError::Address => Self::MR_ERROR_CONFIG_ADDRESS,
            ConfigError::Connections => Self::MR_ERROR_CONFIG_CONNECTIONS,
        }
    }
}

impl From<ConnectError> for mr_error {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::TableFull => Self::MR_ERROR_TABLE_FULL,
            ConnectError::BadAddress => Self::MR_ERROR_BAD_ADDRESS,
            ConnectError::BadConfiguration => Self::MR_ERROR_BAD_CONFIGURATION,
        }
    }
}

impl From<PostError> for mr_error {
    fn from(error: PostError) -> Self {
        match error {
            PostError::UnknownConnection => Self::MR_ERROR_UNKNOWN_CONNECTION,
            PostError::NotEstablished => Self::MR_ERROR_NOT_ESTABLISHED,
            PostError::UnknownStream => Self::MR_ERROR_UNKNOWN_STREAM,
            PostError::StreamFailed => Self::MR_ERROR_STREAM_FAILED,
            PostError::QueueFull => Self::MR_ERROR_QUEUE_FULL,
            PostError::BadLength => Self::MR_ERROR_BAD_LENGTH,
            PostError::Unaligned => Self::MR_ERROR_UNALIGNED,
            PostError::Local(error) => error.into(),
            PostError::WrongQueue => Self::MR_ERROR_WRONG_QUEUE,
        }
    }
}

impl From<RegionError> for mr_error {
    fn from(error: RegionError) -> Self {
        match error {
            RegionError::Full => Self::MR_ERROR_REGIONS_FULL,
            RegionError::Wraps => Self::MR_ERROR_REGION_WRAPS,
            RegionError::Unknown => Self::MR_ERROR_UNKNOWN_REGION,
            RegionError::OutOfBounds => Self::MR_ERROR_OUT_OF_BOUNDS,
            RegionError::AccessDenied => Self::MR_ERROR_ACCESS_DENIED,
        }
    }
}

impl From<DecodeError> for mr_error {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::Truncated { .. } => Self::MR_ERROR_DECODE_TRUNCATED,
            DecodeError::Length { .. } => Self::MR_ERROR_DECODE_LENGTH,
            DecodeError::Checksum { .. } => Self::MR_ERROR_DECODE_CHECKSUM,
            DecodeError::Version { .. } => Self::MR_ERROR_DECODE_VERSION,
            DecodeError::Kind { .. } => Self::MR_ERROR_DECODE_KIND,
            DecodeError::Flags { .. } => Self::MR_ERROR_DECODE_FLAGS,
            DecodeError::Reserved { .. } => Self::MR_ERROR_DECODE_RESERVED,
            DecodeError::Opcode { .. } => Self::MR_ERROR_DECODE_OPCODE,
            DecodeError::MessageLength { .. } => Self::MR_ERROR_DECODE_MESSAGE_LENGTH,
            DecodeError::Bounds { .. } => Self::MR_ERROR_DECODE_BOUNDS,
            DecodeError::Payload { .. } => Self::MR_ERROR_DECODE_PAYLOAD,
            DecodeError::AtomicOperation { .. } => Self::MR_ERROR_DECODE_ATOMIC,
            DecodeError::ErrorCode { .. } => Self::MR_ERROR_DECODE_ERROR_CODE,
            DecodeError::Sack { .. } => Self::MR_ERROR_DECODE_SACK,
            DecodeError::OutOfRange { .. } => Self::MR_ERROR_DECODE_OUT_OF_RANGE,
            DecodeError::RejectReason { .. } => Self::MR_ERROR_DECODE_REJECT_REASON,
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    /// A code without a text of its own would not be told from another, nor looked for by the tests in C, which know codes by their texts.
    #[test]
    fn every_code_has_a_text_of_its_own() {
        let mut texts = std::collections::BTreeMap::new();
        for line in include_str!("error.rs").lines() {
            let Some((name, code)) = line.trim().trim_end_matches(',').split_once(" = ") else {
                continue;
            };
            if !name.starts_with("MR_ERROR_") {
                continue;
            }
            let text = mr_error_string(code.parse().unwrap());
            // SAFETY: it is never NULL, and static.
            let text = unsafe { CStr::from_ptr(text) };
            assert_ne!(text, c"unknown error code", "{name} has no text");
            if let Some(other) = texts.insert(text, name) {
                panic!("{name} and {other} have the same text: {text:?}");
            }
        }
        assert_eq!(texts.len() + 1, TEXTS.len(), "and success");
    }
}
