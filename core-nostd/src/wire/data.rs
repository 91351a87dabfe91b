//! DATA: a part of a message.

use super::bytes::{put, u8_at, u16_at, u32_at, u64_at, zero};
use super::demand::Demand;
use super::error::{DecodeError, short};
use super::header::{Flags, HEADER_SIZE, Header, Kind};

/// Size of a DATA datagram without its payload and trailer, in bytes.
pub const DATA_SIZE: usize = 48;

/// Longest payload of a DATA datagram, in bytes.
pub const MAX_PAYLOAD: usize = 9000;

/// Longest message, in bytes.
pub const MAX_MESSAGE: u32 = (1 << 31) - 1;

/// Length of an ATOMIC_REQUEST's payload, in bytes.
pub const ATOMIC_REQUEST_SIZE: usize = 24;

/// Length of an ERROR's payload, in bytes.
pub const ERROR_SIZE: usize = 16;

/// What a message does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Opcode {
    /// Bytes for a region of the receiver.
    Write = 0,
    /// The same, and an immediate for its completion queue.
    WriteImm = 1,
    /// Bytes for the next buffer posted on the stream.
    Send = 2,
    /// The same with an immediate.
    SendImm = 3,
    /// Asks for bytes of a region of the receiver.
    ReadRequest = 4,
    /// The bytes asked for.
    ReadResponse = 5,
    /// Asks for an atomic operation on eight bytes of a region of the receiver.
    AtomicRequest = 6,
    /// What the eight bytes were before.
    AtomicResponse = 7,
    /// Tells that a message was refused, and why.
    Error = 8,
    /// Nothing: fills the PSN of a packet whose content was withdrawn.
    Nop = 9,
}

/// Which bits of a DATA header have no meaning for an opcode and must be zero.
struct Unused {
    address: u64,
    key: u32,
    immediate: u32,
}

impl Opcode {
    /// All opcodes, in the order of their numbers.
    pub const ALL: [Opcode; 10] = [
        Self::Write,
        Self::WriteImm,
        Self::Send,
        Self::SendImm,
        Self::ReadRequest,
        Self::ReadResponse,
        Self::AtomicRequest,
        Self::AtomicResponse,
        Self::Error,
        Self::Nop,
    ];

    /// The opcode with this number.
    #[inline]
    #[must_use]
    pub const fn from_u8(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Write,
            1 => Self::WriteImm,
            2 => Self::Send,
            3 => Self::SendImm,
            4 => Self::ReadRequest,
            5 => Self::ReadResponse,
            6 => Self::AtomicRequest,
            7 => Self::AtomicResponse,
            8 => Self::Error,
            9 => Self::Nop,
            _ => return None,
        })
    }

    /// Whether the message consumes a buffer posted at the receiver (SEND, SEND_IMM).
    #[inline]
    #[must_use]
    pub const fn is_send(self) -> bool {
        matches!(self, Self::Send | Self::SendImm)
    }

    /// Whether the message carries an immediate for the application (WRITE_IMM, SEND_IMM).
    #[inline]
    #[must_use]
    pub const fn has_immediate(self) -> bool {
        matches!(self, Self::WriteImm | Self::SendImm)
    }

    /// Whether the message may be SOLICITED (SEND, SEND_IMM, WRITE_IMM).
    #[inline]
    #[must_use]
    pub const fn may_solicit(self) -> bool {
        matches!(self, Self::Send | Self::SendImm | Self::WriteImm)
    }

    /// Whether the message is of any length and may take many packets (WRITE, WRITE_IMM, SEND,
    /// SEND_IMM, READ_RESPONSE).
    #[inline]
    #[must_use]
    pub const fn is_bulk(self) -> bool {
        matches!(
            self,
            Self::Write | Self::WriteImm | Self::Send | Self::SendImm | Self::ReadResponse
        )
    }

    #[inline(always)]
    const fn unused(self) -> Unused {
        let (address, key, immediate) = match self {
            Self::Write => (0, 0, u32::MAX),
            Self::WriteImm | Self::ReadRequest | Self::AtomicRequest => (0, 0, 0),
            Self::Send => (SendAddress::UNUSED, u32::MAX, u32::MAX),
            Self::SendImm => (SendAddress::UNUSED, u32::MAX, 0),
            Self::ReadResponse | Self::AtomicResponse => (u64::MAX, 0, u32::MAX),
            Self::Error | Self::Nop => (u64::MAX, u32::MAX, u32::MAX),
        };
        Unused {
            address,
            key,
            immediate,
        }
    }
}

/// The 32 bytes that DATA adds to the common header.
///
/// | offset | size | field |
/// |---|---|---|
/// | 16 | u8 | opcode |
/// | 17 | u8 | demand |
/// | 18 | u16 | stream |
/// | 20 | u32 | MSN |
/// | 24 | u32 | message length |
/// | 28 | u32 | offset of the payload in the message |
/// | 32 | u64 | remote address |
/// | 40 | u32 | key |
/// | 44 | u32 | immediate |
///
/// The payload follows. What a field means by opcode (fields not named are zero):
///
/// | opcode | address | key | immediate | length, offset, payload |
/// |---|---|---|---|---|
/// | WRITE | of the message's first byte | of the region | - | part of the message |
/// | WRITE_IMM | as WRITE | as WRITE | for the application | part of the message |
/// | SEND | [`SendAddress`] | - | - | part of the message |
/// | SEND_IMM | [`SendAddress`] | - | for the application | part of the message |
/// | READ_REQUEST | of the first byte wanted | of the region | requester's token | bytes wanted, 0, none |
/// | READ_RESPONSE | - | requester's token | - | part of the message |
/// | ATOMIC_REQUEST | of the eight bytes | of the region | requester's token | 8, 0, [`AtomicRequest`] |
/// | ATOMIC_RESPONSE | - | requester's token | - | 8, 0, the old value (u64) |
/// | ERROR | - | - | - | 16, 0, [`ErrorReport`] |
/// | NOP | - | - | - | 0, 0, none |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Data {
    /// What the message does.
    pub opcode: Opcode,
    /// Bytes still queued for this receiver.
    pub demand: Demand,
    /// Stream of the message.
    pub stream: u16,
    /// Sequence number of the message on its stream.
    pub msn: u32,
    /// Length of the message in bytes, at most [`MAX_MESSAGE`].
    pub length: u32,
    /// Offset of the payload in the message, in bytes.
    pub offset: u32,
    /// Remote address of the message's first byte, or [`SendAddress`].
    pub address: u64,
    /// Key of the remote region, or the requester's token in a response.
    pub key: u32,
    /// Immediate for the application, or the requester's token in a request.
    pub immediate: u32,
}

impl Data {
    /// Reads a DATA datagram whose header was read and whose trailer was taken off. What it
    /// returns is valid in itself: the payload lies inside the message and fields without
    /// meaning are zero. The second part of the result is the payload.
    ///
    /// # Errors
    /// [`DecodeError::Kind`] when the header is not of DATA; `Truncated`, `Opcode`,
    /// `MessageLength`, `Payload`, `Bounds`, `Reserved`, `Flags` (SOLICITED where it may not
    /// be), `AtomicOperation` and `ErrorCode` as they are described there.
    #[inline(always)]
    pub fn decode<'a>(header: &Header, body: &'a [u8]) -> Result<(Self, &'a [u8]), DecodeError> {
        header.expect(Kind::Data)?;
        let Some((fixed, payload)) = body.split_first_chunk::<DATA_SIZE>() else {
            return Err(DecodeError::Truncated {
                needed: DATA_SIZE as u16,
                got: short(body.len()),
            });
        };
        let number = u8_at::<16, 48>(fixed);
        // spec: MR-WIRE-013
        let Some(opcode) = Opcode::from_u8(number) else {
            return Err(DecodeError::Opcode { got: number });
        };
        let data = Self {
            opcode,
            demand: Demand(u8_at::<17, 48>(fixed)),
            stream: u16_at::<18, 48>(fixed),
            msn: u32_at::<20, 48>(fixed),
            length: u32_at::<24, 48>(fixed),
            offset: u32_at::<28, 48>(fixed),
            address: u64_at::<32, 48>(fixed),
            key: u32_at::<40, 48>(fixed),
            immediate: u32_at::<44, 48>(fixed),
        };
        data.check(header.flags, payload)?;
        Ok((data, payload))
    }

    /// Checks the fields against each other and against the payload.
    #[inline(always)]
    fn check(&self, flags: Flags, payload: &[u8]) -> Result<(), DecodeError> {
        // spec: MR-WIRE-006
        if flags.contains(Flags::SOLICITED) && !self.opcode.may_solicit() {
            return Err(DecodeError::Flags {
                kind: Kind::Data,
                got: flags.0,
            });
        }
        let unused = self.opcode.unused();
        zero(self.address & unused.address, 32)?;
        zero((self.key & unused.key).into(), 40)?;
        zero((self.immediate & unused.immediate).into(), 44)?;
        // spec: MR-WIRE-014
        if self.length > MAX_MESSAGE {
            return Err(DecodeError::MessageLength { got: self.length });
        }
        if self.opcode.is_bulk() {
            // A message has bytes exactly when each of its packets has some.
            // spec: MR-WIRE-015
            if payload.len() > MAX_PAYLOAD || payload.is_empty() != (self.length == 0) {
                return Err(DecodeError::Payload {
                    got: short(payload.len()),
                });
            }
            // Neither term reaches 2^33: the sum of u64 cannot overflow.
            if u64::from(self.offset) + payload.len() as u64 > u64::from(self.length) {
                return Err(DecodeError::Bounds {
                    offset: self.offset,
                    payload: short(payload.len()),
                    length: self.length,
                });
            }
            Ok(())
        } else {
            self.check_fixed(payload)
        }
    }

    /// Checks the opcodes that are one packet with a payload of one size.
    // spec: MR-WIRE-016
    fn check_fixed(&self, payload: &[u8]) -> Result<(), DecodeError> {
        zero(self.offset.into(), 28)?;
        let wrong_payload = DecodeError::Payload {
            got: short(payload.len()),
        };
        let length = match self.opcode {
            Opcode::AtomicRequest => {
                AtomicRequest::decode(payload)?;
                8
            }
            Opcode::AtomicResponse => {
                if payload.len() != 8 {
                    return Err(wrong_payload);
                }
                8
            }
            Opcode::Error => {
                ErrorReport::decode(payload)?;
                ERROR_SIZE as u32
            }
            Opcode::Nop => {
                if !payload.is_empty() {
                    return Err(wrong_payload);
                }
                0
            }
            _ => {
                if !payload.is_empty() {
                    return Err(wrong_payload);
                }
                self.length
            }
        };
        if self.length != length {
            return Err(DecodeError::MessageLength { got: self.length });
        }
        Ok(())
    }
}

/// Writes the 48 bytes in front of a payload. The fields are not checked against each other:
/// see [`Data`] for what a receiver accepts.
///
/// ```
/// use metaroce_core::wire::*;
/// let header = Header { psn: 5, tsn: 9, ..Header::new(Kind::Data, 0xc0ffee) };
/// let data = Data {
///     opcode: Opcode::Write,
///     demand: Demand::from_bytes(4),
///     stream: 1,
///     msn: 2,
///     length: 4,
///     offset: 0,
///     address: 0x1000,
///     key: 0xabcd,
///     immediate: 0,
/// };
/// let mut datagram = [0; 52];
/// encode_data(&header, &data, datagram.first_chunk_mut().unwrap());
/// datagram[48..].copy_from_slice(b"four");
/// assert_eq!(Data::decode(&header, &datagram), Ok((data, &b"four"[..])));
/// ```
#[inline]
// spec: MR-WIRE-013
pub fn encode_data(header: &Header, data: &Data, out: &mut [u8; DATA_SIZE]) {
    header.put(out);
    put::<16, 1, 48>(out, [data.opcode as u8]);
    put::<17, 1, 48>(out, [data.demand.0]);
    put::<18, 2, 48>(out, data.stream.to_be_bytes());
    put::<20, 4, 48>(out, data.msn.to_be_bytes());
    put::<24, 4, 48>(out, data.length.to_be_bytes());
    put::<28, 4, 48>(out, data.offset.to_be_bytes());
    put::<32, 8, 48>(out, data.address.to_be_bytes());
    put::<40, 4, 48>(out, data.key.to_be_bytes());
    put::<44, 4, 48>(out, data.immediate.to_be_bytes());
}

/// Writes the 48 bytes in front of another packet of a message: `common` is what [`encode_data`] wrote behind the common header for one
/// of its packets, of which demand and offset change.
#[inline(always)]
pub fn encode_data_again(
    header: &Header,
    common: &[u8; DATA_SIZE - HEADER_SIZE],
    demand: Demand,
    offset: u32,
    out: &mut [u8; DATA_SIZE],
) {
    header.put(out);
    put::<16, 32, 48>(out, *common);
    put::<17, 1, 48>(out, [demand.0]);
    put::<28, 4, 48>(out, offset.to_be_bytes());
}

/// What the address field of SEND and SEND_IMM holds: which posted buffer, and which attempt.
///
/// The high 32 bits are the receive sequence number, the low 8 the attempt, the others zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SendAddress {
    /// The how-manyth receive-consuming message of its stream this is, from 0, modulo 2^32.
    pub rsn: u32,
    /// The how-manyth attempt at this message, modulo 2^8.
    pub attempt: u8,
}

impl SendAddress {
    /// The bits between the attempt and the receive sequence number.
    const UNUSED: u64 = 0xffff_ff00;

    /// The address field.
    #[inline]
    #[must_use]
    // spec: MR-WIRE-017
    pub const fn to_bits(self) -> u64 {
        (self.rsn as u64) << 32 | self.attempt as u64
    }

    /// From the address field; the bits that [`Data::decode`] has found to be zero are ignored.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            rsn: (bits >> 32) as u32,
            attempt: bits as u8,
        }
    }
}

/// An atomic operation on eight bytes: the payload of an ATOMIC_REQUEST.
///
/// Three u64: the operation (0 fetch-add, 1 compare-swap), what to add or compare, and what to
/// swap in (0 for fetch-add).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum AtomicRequest {
    /// Add, modulo 2^64.
    FetchAdd {
        /// What is added.
        add: u64,
    },
    /// Swap if equal.
    CompareSwap {
        /// What the old value has to be.
        compare: u64,
        /// The new value.
        swap: u64,
    },
}

impl AtomicRequest {
    /// Reads the payload of an ATOMIC_REQUEST.
    ///
    /// # Errors
    /// [`DecodeError::Payload`] when it is not 24 bytes, [`DecodeError::AtomicOperation`] when
    /// the operation is unknown, [`DecodeError::Reserved`] when a fetch-add has a swap value.
    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let bytes: &[u8; ATOMIC_REQUEST_SIZE] = payload.try_into().map_err(|_| {
            let got = short(payload.len());
            DecodeError::Payload { got }
        })?;
        let operand = u64_at::<8, 24>(bytes);
        let swap = u64_at::<16, 24>(bytes);
        // spec: MR-WIRE-020
        match u64_at::<0, 24>(bytes) {
            0 => {
                zero(swap, DATA_SIZE as u16 + 16)?;
                Ok(Self::FetchAdd { add: operand })
            }
            1 => Ok(Self::CompareSwap {
                compare: operand,
                swap,
            }),
            got => Err(DecodeError::AtomicOperation { got }),
        }
    }

    /// The payload of the ATOMIC_REQUEST.
    #[must_use]
    pub fn encode(&self) -> [u8; ATOMIC_REQUEST_SIZE] {
        let (operation, operand, swap) = match *self {
            Self::FetchAdd { add } => (0u64, add, 0),
            Self::CompareSwap { compare, swap } => (1, compare, swap),
        };
        let mut out = [0; ATOMIC_REQUEST_SIZE];
        put::<0, 8, 24>(&mut out, operation.to_be_bytes());
        put::<8, 8, 24>(&mut out, operand.to_be_bytes());
        put::<16, 8, 24>(&mut out, swap.to_be_bytes());
        out
    }
}

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum ErrorCode {
    /// No buffer was posted for a SEND: it may be tried again.
    ReceiverNotReady = 1,
    /// No region has this key.
    InvalidKey = 2,
    /// Outside the region.
    OutOfBounds = 3,
    /// The region does not grant the right.
    AccessDenied = 4,
    /// A SEND longer than the buffer that is posted for it.
    LengthExceedsBuffer = 5,
    /// A request that cannot be carried out, such as a misaligned atomic.
    InvalidRequest = 6,
    /// The stream is in error because of an earlier message.
    StreamError = 7,
    /// The memory could not be read or written.
    MemoryFault = 8,
    /// The receiver has nothing left to carry it out with.
    ResourceExhausted = 9,
}

impl ErrorCode {
    /// All codes, in the order of their numbers.
    pub const ALL: [ErrorCode; 9] = [
        Self::ReceiverNotReady,
        Self::InvalidKey,
        Self::OutOfBounds,
        Self::AccessDenied,
        Self::LengthExceedsBuffer,
        Self::InvalidRequest,
        Self::StreamError,
        Self::MemoryFault,
        Self::ResourceExhausted,
    ];

    /// The code with this number.
    #[inline]
    #[must_use]
    pub const fn from_u8(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::ReceiverNotReady,
            2 => Self::InvalidKey,
            3 => Self::OutOfBounds,
            4 => Self::AccessDenied,
            5 => Self::LengthExceedsBuffer,
            6 => Self::InvalidRequest,
            7 => Self::StreamError,
            8 => Self::MemoryFault,
            9 => Self::ResourceExhausted,
            _ => return None,
        })
    }
}

/// A message that was refused, and why: the payload of an ERROR.
///
/// | offset in the payload | size | field |
/// |---|---|---|
/// | 0 | u8 | code |
/// | 1 | u8 | attempt |
/// | 2 | u16 | stream |
/// | 4 | u32 | MSN |
/// | 8 | u32 | token |
/// | 12 | u32 | zero |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ErrorReport {
    /// Why.
    pub code: ErrorCode,
    /// The attempt that was refused, for SEND and SEND_IMM.
    pub attempt: u8,
    /// Stream of the refused message.
    pub stream: u16,
    /// MSN of the refused message.
    pub msn: u32,
    /// The requester's token, for a request; 0 if none.
    pub token: u32,
}

impl ErrorReport {
    /// Reads the payload of an ERROR.
    ///
    /// # Errors
    /// [`DecodeError::Payload`] when it is not 16 bytes, [`DecodeError::ErrorCode`] when the
    /// code is unknown, [`DecodeError::Reserved`] when the last four bytes are not zero.
    pub fn decode(payload: &[u8]) -> Result<Self, DecodeError> {
        let bytes: &[u8; ERROR_SIZE] = payload.try_into().map_err(|_| {
            let got = short(payload.len());
            DecodeError::Payload { got }
        })?;
        let number = u8_at::<0, 16>(bytes);
        // spec: MR-WIRE-021
        let Some(code) = ErrorCode::from_u8(number) else {
            return Err(DecodeError::ErrorCode { got: number });
        };
        zero(u32_at::<12, 16>(bytes).into(), DATA_SIZE as u16 + 12)?;
        Ok(Self {
            code,
            attempt: u8_at::<1, 16>(bytes),
            stream: u16_at::<2, 16>(bytes),
            msn: u32_at::<4, 16>(bytes),
            token: u32_at::<8, 16>(bytes),
        })
    }

    /// The payload of the ERROR.
    #[must_use]
    pub fn encode(&self) -> [u8; ERROR_SIZE] {
        let mut out = [0; ERROR_SIZE];
        put::<0, 1, 16>(&mut out, [self.code as u8]);
        put::<1, 1, 16>(&mut out, [self.attempt]);
        put::<2, 2, 16>(&mut out, self.stream.to_be_bytes());
        put::<4, 4, 16>(&mut out, self.msn.to_be_bytes());
        put::<8, 4, 16>(&mut out, self.token.to_be_bytes());
        out
    }
}

#[cfg(test)]
#[path = "data_tests.rs"]
mod tests;
