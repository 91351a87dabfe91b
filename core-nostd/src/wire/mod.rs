//! Bytes and typed datagrams, and nothing else: no state, no clock, no I/O.
//!
//! A datagram is the payload of a UDP packet in network byte order: a common header of 16 bytes
//! ([`Header`]), what its [`Kind`] adds, and a [`Trailer`]. Reading one takes three steps:
//!
//! 1. [`Header::decode`] finds the kind and the connection, without trusting anything else;
//! 2. [`check`] takes off and verifies the trailer that this connection (or, for INIT, RETRY,
//!    ACCEPT and REJECT, everybody) uses;
//! 3. [`decode`], or the `decode` of the type for the kind, reads the rest.
//!
//! There is one encoding of everything: what is accepted is, when it is written again, the same
//! bytes. Whatever has no meaning is zero and is refused when it is not (capability bits apart,
//! which are kept). Sizes are those without the trailer unless said otherwise.
//!
//! ```
//! use metaroce_core::wire::*;
//! let hint = Hint { path: 0, generation: 0, connection: 7, number: 1, rate_mbps: 100_000 };
//! let mut buffer = [0; 64];
//! let length = hint.encode(&mut buffer).unwrap();
//! let length = seal(&mut buffer, length, Trailer::Crc32c).unwrap();
//!
//! let body = check(&buffer[..length], Trailer::Crc32c).unwrap();
//! assert_eq!(decode(body), Ok(Packet::Hint(hint)));
//! ```

mod ack;
mod bytes;
mod checksum;
mod control;
mod data;
mod demand;
mod error;
mod header;
mod parameters;
mod setup;
#[cfg(test)]
mod tests;

pub use ack::{
    ACK_BLOCK_SIZE, ACK_DELAY_UNIT_NS, ACK_SIZE, AckBlock, AckBlocks, AckKind, PSN_OF_PROBE,
    append_ack_block, encode_ack,
};
pub use checksum::{CRC_SIZE, Trailer, check, crc32c, crc32c_append, seal};
pub use control::{
    ANNOUNCE_SIZE, Announce, CLOSE_ACK_SIZE, CLOSE_SIZE, Close, CloseAck, CloseMode, FENCE_SIZE,
    Fence, HINT_SIZE, Hint, PROBE_SIZE, Probe,
};
pub use data::{
    ATOMIC_REQUEST_SIZE, AtomicRequest, DATA_SIZE, Data, ERROR_SIZE, ErrorCode, ErrorReport,
    MAX_MESSAGE, MAX_PAYLOAD, Opcode, SendAddress, encode_data, encode_data_again,
};
pub use demand::Demand;
pub use error::{BufferTooSmall, DecodeError, Field};
pub use header::{Flags, HEADER_SIZE, Header, Kind, VERSION};
pub use parameters::{
    Capabilities, MAX_PLANES, MAX_WINDOW, MIN_MAX_PAYLOAD, Parameters, PlaneAddress, Planes,
};
pub use setup::{
    Accept, COOKIE_SIZE, Cookie, INIT_SIZE, Init, MAX_ACCEPT_SIZE, REJECT_SIZE, RETRY_SIZE, Reject,
    RejectReason, Retry,
};

/// Longest datagram without trailer, in bytes: DATA with the longest payload.
pub const MAX_DATAGRAM: usize = DATA_SIZE + MAX_PAYLOAD;

/// Any datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Asks for a connection.
    Init(Init),
    /// Asks to repeat an INIT with a cookie.
    Retry(Retry),
    /// Opens the connection.
    Accept(Accept),
    /// Refuses the connection.
    Reject(Reject),
    /// A part of a message.
    Data {
        /// The common header.
        header: Header,
        /// What DATA adds to it.
        data: Data,
        /// The payload, 0..=9000 bytes.
        payload: &'a [u8],
    },
    /// What was received, on one or more paths.
    Ack {
        /// The common header; path, generation, PSN and TSN are those of the first block.
        header: Header,
        /// The blocks.
        blocks: AckBlocks<'a>,
    },
    /// Asks for an ACK at once.
    Probe(Probe),
    /// Asks to freeze a generation of a path.
    Fence(Fence),
    /// The final state of a frozen generation.
    FenceAck {
        /// The common header; path, generation, PSN and TSN are those of the block.
        header: Header,
        /// The one block.
        blocks: AckBlocks<'a>,
    },
    /// Tells how much is about to be sent.
    Announce(Announce),
    /// A rate for the sender.
    Hint(Hint),
    /// Ends the connection.
    Close(Close),
    /// Confirms the end.
    CloseAck(CloseAck),
}

impl Packet<'_> {
    /// Writes the datagram without a trailer and returns its length. What [`decode`] returned is
    /// written as the bytes that it came from.
    ///
    /// # Errors
    /// [`BufferTooSmall`] when it does not fit.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        match self {
            Self::Init(init) => init.encode(out),
            Self::Retry(retry) => retry.encode(out),
            Self::Accept(accept) => accept.encode(out),
            Self::Reject(reject) => reject.encode(out),
            Self::Data {
                header,
                data,
                payload,
            } => encode_whole_data(header, data, payload, out),
            Self::Ack { header, blocks } => encode_blocks(AckKind::Ack, header, *blocks, out),
            Self::Probe(probe) => probe.encode(out),
            Self::Fence(fence) => fence.encode(out),
            Self::FenceAck { header, blocks } => {
                encode_blocks(AckKind::FenceAck, header, *blocks, out)
            }
            Self::Announce(announce) => announce.encode(out),
            Self::Hint(hint) => hint.encode(out),
            Self::Close(close) => close.encode(out),
            Self::CloseAck(ack) => ack.encode(out),
        }
    }
}

fn encode_whole_data(
    header: &Header,
    data: &Data,
    payload: &[u8],
    out: &mut [u8],
) -> Result<usize, BufferTooSmall> {
    let needed = DATA_SIZE + payload.len();
    let error = BufferTooSmall {
        needed,
        got: out.len(),
    };
    let out = out.get_mut(..needed).ok_or(error)?;
    let (fixed, rest) = out.split_first_chunk_mut().ok_or(error)?;
    encode_data(header, data, fixed);
    for (place, byte) in rest.iter_mut().zip(payload) {
        *place = *byte;
    }
    Ok(needed)
}

fn encode_blocks(
    kind: AckKind,
    header: &Header,
    blocks: AckBlocks<'_>,
    out: &mut [u8],
) -> Result<usize, BufferTooSmall> {
    let got = out.len();
    let mut needed = 0;
    for block in blocks {
        let mut bytes = [0; ACK_SIZE];
        let length = if needed == 0 {
            encode_ack(kind, header.flags, header.connection, &block, &mut bytes)
        } else {
            let mut further = [0; ACK_BLOCK_SIZE];
            let length = append_ack_block(&block, &mut further);
            for (byte, from) in bytes.iter_mut().zip(further) {
                *byte = from;
            }
            length
        };
        // Beyond the end only the length is reckoned, for the error.
        if let Some(place) = out.get_mut(needed..needed + length) {
            for (byte, from) in place.iter_mut().zip(bytes) {
                *byte = from;
            }
        }
        needed += length;
    }
    if needed > got {
        return Err(BufferTooSmall { needed, got });
    }
    Ok(needed)
}

/// Reads a datagram whose trailer was taken off by [`check`].
///
/// # Errors
/// The [`DecodeError`] that says what is wrong and where.
#[inline]
pub fn decode(datagram: &[u8]) -> Result<Packet<'_>, DecodeError> {
    let header = Header::decode(datagram)?;
    Ok(match header.kind {
        Kind::Data => {
            let (data, payload) = Data::decode(&header, datagram)?;
            Packet::Data {
                header,
                data,
                payload,
            }
        }
        Kind::Ack => Packet::Ack {
            header,
            blocks: AckBlocks::decode(&header, datagram)?,
        },
        Kind::FenceAck => Packet::FenceAck {
            header,
            blocks: AckBlocks::decode(&header, datagram)?,
        },
        Kind::Probe => Packet::Probe(Probe::decode(&header, datagram)?),
        Kind::Fence => Packet::Fence(Fence::decode(&header, datagram)?),
        Kind::Announce => Packet::Announce(Announce::decode(&header, datagram)?),
        Kind::Hint => Packet::Hint(Hint::decode(&header, datagram)?),
        Kind::Close => Packet::Close(Close::decode(&header, datagram)?),
        Kind::CloseAck => Packet::CloseAck(CloseAck::decode(&header, datagram)?),
        Kind::Init => Packet::Init(Init::decode(&header, datagram)?),
        Kind::Retry => Packet::Retry(Retry::decode(&header, datagram)?),
        Kind::Accept => Packet::Accept(Accept::decode(&header, datagram)?),
        Kind::Reject => Packet::Reject(Reject::decode(&header, datagram)?),
    })
}
