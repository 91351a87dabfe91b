//! A datagram as a plain struct, and back.

use metaroce_core::wire::{
    self, Accept, AckKind, Announce, Close, CloseAck, CloseMode, Cookie, Data, Demand, Fence,
    Flags, Header, Hint, Init, Kind, Opcode, Packet, Probe, Reject, RejectReason, Retry,
};

use super::parts::{mr_ack_block, mr_data, mr_parameters};
use crate::address::{MR_MAX_PLANES, mr_address};
use crate::boundary::slice;
use crate::error::mr_error;

/// What a datagram is (`kind` of `mr_packet`).
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum mr_kind {
    /// Asks for a connection: `source`, `version`, `highest_version`, `cookie`, `parameters`.
    MR_KIND_INIT = 0,
    /// Asks to repeat an INIT with the cookie that it brings: `cookie`.
    MR_KIND_RETRY = 1,
    /// Opens the connection: `source`, `rate_mbps`, `version`, `parameters`.
    MR_KIND_ACCEPT = 2,
    /// Refuses the connection: `reason`, `detail`.
    MR_KIND_REJECT = 3,
    /// A part of a message: `data`, `demand`, `payload`.
    MR_KIND_DATA = 4,
    /// What was received: blocks.
    MR_KIND_ACK = 5,
    /// Asks for an ACK at once (`psn` is the attempt).
    MR_KIND_PROBE = 6,
    /// Asks to freeze a generation of a path (`psn` is the attempt).
    MR_KIND_FENCE = 7,
    /// The final state of a frozen generation: one block.
    MR_KIND_FENCE_ACK = 8,
    /// Tells how much is about to be sent (`psn` is its number): `demand`.
    MR_KIND_ANNOUNCE = 9,
    /// A rate for the sender (`psn` is the announcement's number): `rate_mbps`.
    MR_KIND_HINT = 10,
    /// Ends the connection: `source`, `reason`, `mode`.
    MR_KIND_CLOSE = 11,
    /// Confirms the end: `source`.
    MR_KIND_CLOSE_ACK = 12,
}

/// Flag: acknowledge at once (DATA).
pub const MR_FLAG_ACK_REQUEST: u8 = 1;
/// Flag: was sent before (DATA).
pub const MR_FLAG_RETRANSMISSION: u8 = 2;
/// Flag: the completion is to raise an event (DATA).
pub const MR_FLAG_SOLICITED: u8 = 4;
/// Flag: answered over other reverse entropy (ACK, FENCE_ACK).
pub const MR_FLAG_REDIRECT: u8 = 8;
const _: () = assert!(
    MR_FLAG_ACK_REQUEST == Flags::ACK_REQUEST.0
        && MR_FLAG_RETRANSMISSION == Flags::RETRANSMISSION.0
        && MR_FLAG_SOLICITED == Flags::SOLICITED.0
        && MR_FLAG_REDIRECT == Flags::REDIRECT.0
);

/// Any datagram. Which fields have a meaning beside the common header (`kind` to `tsn`) is said at `enum mr_kind`; the others are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mr_packet {
    /// What a side can do and wants.
    pub parameters: mr_parameters,
    /// What DATA adds.
    pub data: mr_data,
    /// The payload of DATA, in the datagram it was decoded from.
    pub payload: *const u8,
    /// Its length, bytes.
    pub payload_length: usize,
    /// Acknowledgment blocks.
    pub block_count: usize,
    /// The cookie's proof.
    pub cookie_tag: [u8; 16],
    /// When the cookie was issued, milliseconds of the listener's clock.
    pub cookie_issued_ms: u32,
    /// Connection id that the receiver of the datagram has chosen; 0 in INIT.
    pub connection: u32,
    /// Packet sequence number, or the number of an attempt or announcement.
    pub psn: u32,
    /// Transmission sequence number.
    pub tsn: u32,
    /// The sender's own connection id.
    pub source: u32,
    /// A rate hint, Mbit/s; 0: none.
    pub rate_mbps: u32,
    /// Why: REJECT (`enum mr_reject_reason`) or CLOSE (the application's).
    pub reason: u16,
    /// More about why.
    pub detail: u16,
    /// One of `enum mr_kind`.
    pub kind: u8,
    /// `MR_FLAG_...`, and bits 4 to 6: the length of the first block's vector (ignored when encoding).
    pub flags: u8,
    /// Path slot, owned by the sender of the data.
    pub path: u8,
    /// Incarnation of the path slot.
    pub generation: u8,
    /// Bytes still queued, as a code (see `mr_demand_bytes`).
    pub demand: u8,
    /// Version chosen, or the lowest offered.
    pub version: u8,
    /// Highest version offered.
    pub highest_version: u8,
    /// 1 if an INIT brings a cookie.
    pub has_cookie: u8,
    /// One of `enum mr_close_mode`.
    pub mode: u8,
}

const EMPTY: mr_parameters = mr_parameters {
    addresses: [mr_address {
        ip: [0; 16],
        port: 0,
    }; MR_MAX_PLANES],
    max_payload: [0; MR_MAX_PLANES],
    capabilities: 0,
    ingress_mbps: 0,
    service: 0,
    window: 0,
    streams: 0,
    open_messages: 0,
    open_responses: 0,
    paths: 0,
    planes: 0,
};

impl mr_packet {
    fn new(header: &Header) -> Self {
        Self {
            parameters: EMPTY,
            data: mr_data::default(),
            payload: core::ptr::null(),
            payload_length: 0,
            block_count: 0,
            cookie_tag: [0; 16],
            cookie_issued_ms: 0,
            connection: header.connection,
            psn: header.psn,
            tsn: header.tsn,
            source: 0,
            rate_mbps: 0,
            reason: 0,
            detail: 0,
            kind: header.kind as u8,
            flags: header.flags.0,
            path: header.path,
            generation: header.generation,
            demand: 0,
            version: 0,
            highest_version: 0,
            has_cookie: 0,
            mode: 0,
        }
    }

    fn set_cookie(&mut self, cookie: &Cookie) {
        self.cookie_issued_ms = cookie.issued_ms;
        self.cookie_tag = cookie.tag;
    }

    pub(super) fn of(header: &Header, packet: &Packet<'_>) -> Self {
        let mut out = Self::new(header);
        match packet {
            Packet::Init(init) => {
                out.source = init.source;
                (out.version, out.highest_version) = (init.lowest_version, init.highest_version);
                if let Some(cookie) = &init.cookie {
                    out.has_cookie = 1;
                    out.set_cookie(cookie);
                }
                out.parameters = mr_parameters::of(&init.parameters);
            }
            Packet::Retry(retry) => out.set_cookie(&retry.cookie),
            Packet::Accept(accept) => {
                (out.source, out.version) = (accept.source, accept.version);
                out.rate_mbps = accept.hint_mbps;
                out.parameters = mr_parameters::of(&accept.parameters);
            }
            Packet::Reject(reject) => {
                (out.reason, out.detail) = (reject.reason as u16, reject.detail);
            }
            Packet::Data { data, payload, .. } => {
                out.demand = data.demand.0;
                out.data = mr_data {
                    address: data.address,
                    msn: data.msn,
                    length: data.length,
                    offset: data.offset,
                    key: data.key,
                    immediate: data.immediate,
                    stream: data.stream,
                    opcode: data.opcode as u8,
                };
                (out.payload, out.payload_length) = (payload.as_ptr(), payload.len());
            }
            Packet::Ack { blocks, .. } | Packet::FenceAck { blocks, .. } => {
                out.block_count = blocks.len();
            }
            Packet::Probe(_) | Packet::Fence(_) => {}
            Packet::Announce(announce) => out.demand = announce.demand.0,
            Packet::Hint(hint) => out.rate_mbps = hint.rate_mbps,
            Packet::Close(close) => {
                (out.source, out.reason) = (close.source, close.reason);
                out.mode = close.mode as u8;
            }
            Packet::CloseAck(ack) => out.source = ack.source,
        }
        out
    }

    fn cookie(&self) -> Cookie {
        Cookie {
            issued_ms: self.cookie_issued_ms,
            tag: self.cookie_tag,
        }
    }

    /// Writes it, without a trailer. The caller reads it again, which finds what cannot be.
    ///
    /// # Safety
    /// Its payload is readable.
    pub(super) unsafe fn encode(
        &self,
        blocks: &[mr_ack_block],
        out: &mut [u8],
    ) -> Result<usize, mr_error> {
        use mr_error::*;
        let kind = Kind::from_u8(self.kind).ok_or(MR_ERROR_DECODE_KIND)?;
        let (path, generation) = (self.path, self.generation);
        let (connection, source) = (self.connection, self.source);
        let (attempt, number) = (self.psn, self.psn);
        let demand = Demand(self.demand);
        let packet = match kind {
            Kind::Ack => return encode_blocks(AckKind::Ack, self, blocks, out),
            Kind::FenceAck => return encode_blocks(AckKind::FenceAck, self, blocks, out),
            Kind::Init => Packet::Init(Init {
                attempt: self.tsn,
                source,
                lowest_version: self.version,
                highest_version: self.highest_version,
                cookie: (self.has_cookie != 0).then(|| self.cookie()),
                parameters: self.parameters.to_core()?,
            }),
            Kind::Retry => Packet::Retry(Retry {
                connection,
                cookie: self.cookie(),
            }),
            Kind::Accept => Packet::Accept(Accept {
                connection,
                source,
                hint_mbps: self.rate_mbps,
                version: self.version,
                parameters: self.parameters.to_core()?,
            }),
            Kind::Reject => Packet::Reject(Reject {
                connection,
                reason: RejectReason::from_u16(self.reason).ok_or(MR_ERROR_DECODE_REJECT_REASON)?,
                detail: self.detail,
            }),
            Kind::Data => Packet::Data {
                header: Header {
                    kind,
                    flags: Flags(self.flags),
                    path,
                    generation,
                    connection,
                    psn: self.psn,
                    tsn: self.tsn,
                },
                data: Data {
                    opcode: Opcode::from_u8(self.data.opcode).ok_or(MR_ERROR_DECODE_OPCODE)?,
                    demand,
                    stream: self.data.stream,
                    msn: self.data.msn,
                    length: self.data.length,
                    offset: self.data.offset,
                    address: self.data.address,
                    key: self.data.key,
                    immediate: self.data.immediate,
                },
                // SAFETY: the caller's promise.
                payload: unsafe { slice(self.payload, self.payload_length) }?,
            },
            Kind::Probe => Packet::Probe(Probe {
                path,
                generation,
                connection,
                attempt,
                tsn: self.tsn,
            }),
            Kind::Fence => Packet::Fence(Fence {
                path,
                generation,
                connection,
                attempt,
            }),
            Kind::Announce => Packet::Announce(Announce {
                path,
                generation,
                connection,
                number,
                demand,
            }),
            Kind::Hint => Packet::Hint(Hint {
                path,
                generation,
                connection,
                number,
                rate_mbps: self.rate_mbps,
            }),
            Kind::Close => Packet::Close(Close {
                connection,
                source,
                reason: self.reason,
                mode: match self.mode {
                    0 => CloseMode::Drain,
                    1 => CloseMode::Abort,
                    _ => return Err(MR_ERROR_DECODE_OUT_OF_RANGE),
                },
            }),
            Kind::CloseAck => Packet::CloseAck(CloseAck { connection, source }),
        };
        packet.encode(out).map_err(|_| MR_ERROR_BUFFER_TOO_SMALL)
    }
}

fn encode_blocks(
    kind: AckKind,
    packet: &mr_packet,
    blocks: &[mr_ack_block],
    out: &mut [u8],
) -> Result<usize, mr_error> {
    let mut used = 0;
    for block in blocks {
        let block = block.to_core();
        let mut bytes = [0; wire::ACK_SIZE];
        let length = if used == 0 {
            let flags = Flags(packet.flags);
            wire::encode_ack(kind, flags, packet.connection, &block, &mut bytes)
        } else {
            let further = bytes.first_chunk_mut().ok_or(mr_error::MR_ERROR_INTERNAL)?;
            wire::append_ack_block(&block, further)
        };
        let place = out.get_mut(used..).and_then(|rest| rest.get_mut(..length));
        let (place, bytes) = place
            .zip(bytes.get(..length))
            .ok_or(mr_error::MR_ERROR_BUFFER_TOO_SMALL)?;
        for (place, byte) in place.iter_mut().zip(bytes) {
            *place = *byte;
        }
        used += length;
    }
    if used == 0 {
        return Err(mr_error::MR_ERROR_BAD_ARGUMENT);
    }
    Ok(used)
}
