//! Why a datagram was refused, and why one could not be written.

use core::fmt;

use super::header::Kind;

/// Why a datagram was refused.
///
/// A refused datagram changes nothing; it is counted under its reason. [`DecodeError::index`]
/// gives the counter and [`DecodeError::name`] its name.
///
/// ```
/// use metaroce_core::wire::{DecodeError, decode};
/// let error = decode(&[0x2f; 16]).unwrap_err();
/// assert_eq!(error, DecodeError::Version { got: 2 });
/// assert_eq!(DecodeError::name(error.index()), "version");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum DecodeError {
    /// Shorter than what every datagram of its kind begins with.
    Truncated {
        /// Bytes that were needed at least.
        needed: u16,
        /// Bytes that there were (saturating).
        got: u16,
    },
    /// Not a length that a datagram of this kind can have.
    Length {
        /// Kind of the datagram.
        kind: Kind,
        /// Its length in bytes without the trailer (saturating).
        got: u16,
    },
    /// The CRC32C in the trailer is not that of the bytes before it.
    Checksum {
        /// The CRC32C of the bytes.
        expected: u32,
        /// The CRC32C that came with them.
        got: u32,
    },
    /// A version of the wire format that is not ours.
    Version {
        /// The version in the datagram, 0..=15.
        got: u8,
    },
    /// No such kind of datagram, or not the kind that was asked for.
    Kind {
        /// The kind in the datagram, 0..=15.
        got: u8,
    },
    /// A flag that this kind (or this opcode) may not carry.
    Flags {
        /// Kind of the datagram.
        kind: Kind,
        /// All flags of the datagram.
        got: u8,
    },
    /// A field without meaning here is not zero.
    Reserved {
        /// Offset of the field from the first byte of the datagram.
        offset: u16,
    },
    /// No such opcode.
    Opcode {
        /// The opcode in the datagram.
        got: u8,
    },
    /// A message longer than 2^31-1 bytes, or not of the one length that its opcode has.
    MessageLength {
        /// The message length in the datagram, in bytes.
        got: u32,
    },
    /// The payload does not lie inside the message.
    Bounds {
        /// Offset of the payload in the message, in bytes.
        offset: u32,
        /// Length of the payload, in bytes (saturating).
        payload: u16,
        /// Length of the message, in bytes.
        length: u32,
    },
    /// A payload that is too long, empty where it may not be, or not of its opcode's size.
    Payload {
        /// Length of the payload, in bytes (saturating).
        got: u16,
    },
    /// No such atomic operation.
    AtomicOperation {
        /// The operation in the payload.
        got: u64,
    },
    /// No such error code in an ERROR message.
    ErrorCode {
        /// The code in the payload.
        got: u8,
    },
    /// A SACK vector that has a bit for the next expected PSN, more than four numbers, or a last one of 0.
    Sack {
        /// Number of the block in the datagram, from 0.
        block: u16,
    },
    /// A number that is outside the range of its field.
    OutOfRange {
        /// The field.
        field: Field,
        /// The number in the datagram.
        got: u32,
    },
    /// No such reason for a REJECT.
    RejectReason {
        /// The reason in the datagram.
        got: u16,
    },
}

/// A field with a range of its own, for [`DecodeError::OutOfRange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Field {
    /// The sender's own connection id: not 0.
    SourceConnection,
    /// Lowest version offered: 1..=highest.
    LowestVersion,
    /// Highest version offered: 1..=15.
    HighestVersion,
    /// Version chosen: 1..=15.
    ChosenVersion,
    /// Length of the cookie: 0 or 20.
    CookieLength,
    /// Number of paths: 1..=255.
    Paths,
    /// Number of planes: 1..=8.
    Planes,
    /// Window of a path in packets: 1..=256.
    Window,
    /// Number of streams: at least 1.
    Streams,
    /// Number of open messages: at least 1.
    OpenMessages,
    /// Number of open responses: at least 1.
    OpenResponses,
    /// UDP port of a plane: not 0.
    Port,
    /// Largest payload on a plane: 256..=9000 bytes.
    MaxPayload,
    /// How to close: 0 or 1.
    CloseMode,
}

/// The names of the reasons, in the order of [`DecodeError::index`].
const NAMES: [&str; DecodeError::REASONS] = [
    "truncated",
    "length",
    "checksum",
    "version",
    "kind",
    "flags",
    "reserved",
    "opcode",
    "message_length",
    "bounds",
    "payload",
    "atomic_operation",
    "error_code",
    "sack",
    "out_of_range",
    "reject_reason",
];

impl DecodeError {
    /// How many reasons there are: the size of an array of counters.
    pub const REASONS: usize = 16;

    /// The number of the reason, `0..REASONS`: an index into an array of counters.
    #[must_use]
    pub const fn index(&self) -> usize {
        match self {
            Self::Truncated { .. } => 0,
            Self::Length { .. } => 1,
            Self::Checksum { .. } => 2,
            Self::Version { .. } => 3,
            Self::Kind { .. } => 4,
            Self::Flags { .. } => 5,
            Self::Reserved { .. } => 6,
            Self::Opcode { .. } => 7,
            Self::MessageLength { .. } => 8,
            Self::Bounds { .. } => 9,
            Self::Payload { .. } => 10,
            Self::AtomicOperation { .. } => 11,
            Self::ErrorCode { .. } => 12,
            Self::Sack { .. } => 13,
            Self::OutOfRange { .. } => 14,
            Self::RejectReason { .. } => 15,
        }
    }

    /// The name of the reason with this number, in `snake_case`; `"unknown"` from `REASONS` on.
    #[must_use]
    pub fn name(index: usize) -> &'static str {
        NAMES.get(index).copied().unwrap_or("unknown")
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { needed, got } => {
                write!(f, "{got} bytes where at least {needed} are needed")
            }
            Self::Length { kind, got } => write!(f, "no {kind:?} datagram has {got} bytes"),
            Self::Checksum { expected, got } => {
                write!(f, "CRC32C is {got:#010x}, the bytes have {expected:#010x}")
            }
            Self::Version { got } => write!(f, "wire format version {got}"),
            Self::Kind { got } => write!(f, "kind {got} is unknown or not expected here"),
            Self::Flags { kind, got } => write!(f, "flags {got:#04x} on {kind:?}"),
            Self::Reserved { offset } => write!(f, "the field at byte {offset} is not zero"),
            Self::Opcode { got } => write!(f, "opcode {got}"),
            Self::MessageLength { got } => write!(f, "message length {got}"),
            Self::Bounds {
                offset,
                payload,
                length,
            } => write!(
                f,
                "{payload} bytes at {offset} are outside a message of {length}"
            ),
            Self::Payload { got } => write!(f, "a payload of {got} bytes"),
            Self::AtomicOperation { got } => write!(f, "atomic operation {got}"),
            Self::ErrorCode { got } => write!(f, "error code {got}"),
            Self::Sack { block } => {
                write!(f, "block {block} received what it calls the next expected")
            }
            Self::OutOfRange { field, got } => write!(f, "{field:?} is {got}"),
            Self::RejectReason { got } => write!(f, "reject reason {got}"),
        }
    }
}

impl core::error::Error for DecodeError {}

/// The buffer is shorter than the datagram; nothing useful was written into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BufferTooSmall {
    /// Bytes that the datagram takes.
    pub needed: usize,
    /// Bytes that the buffer has.
    pub got: usize,
}

impl fmt::Display for BufferTooSmall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { needed, got } = self;
        write!(f, "a buffer of {got} bytes for {needed}")
    }
}

impl core::error::Error for BufferTooSmall {}

/// A length as errors carry it: saturating at 65,535.
#[inline]
pub(super) fn short(length: usize) -> u16 {
    u16::try_from(length).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn every_reason_has_a_name_and_a_text() {
        let all = [
            DecodeError::Truncated { needed: 1, got: 0 },
            DecodeError::Length {
                kind: Kind::Ack,
                got: 65,
            },
            DecodeError::Checksum {
                expected: 1,
                got: 2,
            },
            DecodeError::Version { got: 2 },
            DecodeError::Kind { got: 15 },
            DecodeError::Flags {
                kind: Kind::Probe,
                got: 1,
            },
            DecodeError::Reserved { offset: 3 },
            DecodeError::Opcode { got: 9 },
            DecodeError::MessageLength { got: 1 << 31 },
            DecodeError::Bounds {
                offset: 1,
                payload: 1,
                length: 1,
            },
            DecodeError::Payload { got: 9001 },
            DecodeError::AtomicOperation { got: 2 },
            DecodeError::ErrorCode { got: 0 },
            DecodeError::Sack { block: 1 },
            DecodeError::OutOfRange {
                field: Field::Paths,
                got: 0,
            },
            DecodeError::RejectReason { got: 0 },
        ];
        assert_eq!(all.len(), DecodeError::REASONS);
        for (index, error) in all.iter().enumerate() {
            assert_eq!(error.index(), index);
            assert_ne!(DecodeError::name(index), "unknown");
            assert!(!error.to_string().is_empty());
        }
        assert_eq!(DecodeError::name(DecodeError::REASONS), "unknown");
        assert!(core::mem::size_of::<DecodeError>() <= 16);
        assert_eq!(short(70_000), u16::MAX);
    }
}
