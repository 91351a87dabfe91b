//! Datagrams as plain structs, and back: the wire format alone, as a reference model.

use metaroce_core::wire::{
    self, Accept, AckBlock, AckKind, Announce, Capabilities, Close, CloseAck, CloseMode, Cookie,
    Data, Demand, Fence, Flags, Header, Hint, Init, Kind, Opcode, Packet, Parameters, PlaneAddress,
    Planes, Probe, Reject, RejectReason, Retry, Trailer,
};

use crate::address::{MR_MAX_PLANES, mr_address};
use crate::boundary::{guard, read, slice, slice_mut, writable, write};
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

/// What DATA adds to the common header. The opcodes are in docs/spec.md.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct mr_data {
    /// Remote address of the message's first byte; for SEND the receive number << 32 | the attempt.
    pub address: u64,
    /// Sequence number of the message on its stream.
    pub msn: u32,
    /// Length of the message, bytes.
    pub length: u32,
    /// Offset of the payload in the message, bytes.
    pub offset: u32,
    /// Key of the remote region, or the requester's token in a response.
    pub key: u32,
    /// Immediate for the application, or the requester's token in a request.
    pub immediate: u32,
    /// Stream of the message.
    pub stream: u16,
    /// What the message does, 0 (WRITE) to 9 (NOP).
    pub opcode: u8,
}

/// What a receiver has of a path.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct mr_ack_block {
    /// Bit i % 64 of number i / 64: PSN `cumulative` + i was received.
    pub sack: [u64; 4],
    /// The next PSN expected.
    pub cumulative: u32,
    /// TSN of the newest transmission received.
    pub newest_tsn: u32,
    /// Its PSN.
    pub newest_psn: u32,
    /// Data packets received, modulo 2^32.
    pub received: u32,
    /// Rate hint, Mbit/s; 0: none.
    pub hint_mbps: u32,
    /// CE marks received, modulo 2^16.
    pub ce_count: u16,
    /// Time since the newest arrived, units of 16 ns.
    pub delay: u16,
    /// The path.
    pub path: u8,
    /// Its generation.
    pub generation: u8,
}

impl mr_ack_block {
    pub(crate) fn of(block: &AckBlock) -> Self {
        Self {
            sack: block.sack,
            cumulative: block.cumulative,
            newest_tsn: block.newest_tsn,
            newest_psn: block.newest_psn,
            received: block.received,
            hint_mbps: block.hint_mbps,
            ce_count: block.ce_count,
            delay: block.delay,
            path: block.path,
            generation: block.generation,
        }
    }

    fn to_core(self) -> AckBlock {
        AckBlock {
            path: self.path,
            generation: self.generation,
            cumulative: self.cumulative,
            newest_tsn: self.newest_tsn,
            newest_psn: self.newest_psn,
            delay: self.delay,
            ce_count: self.ce_count,
            received: self.received,
            hint_mbps: self.hint_mbps,
            sack: self.sack,
        }
    }
}

/// What a side can do and wants, in INIT and ACCEPT.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct mr_parameters {
    /// Where the side is reached on each plane.
    pub addresses: [mr_address; MR_MAX_PLANES],
    /// Most payload bytes of a DATA datagram on each plane, 256 to 9000.
    pub max_payload: [u16; MR_MAX_PLANES],
    /// Capability bits; 1: willing to leave the checksum out.
    pub capabilities: u32,
    /// What one plane can take in, Mbit/s.
    pub ingress_mbps: u32,
    /// The application's number for what is asked for.
    pub service: u32,
    /// Packets between the oldest unacknowledged and the newest of a path, 1 to 256.
    pub window: u16,
    /// Streams each way.
    pub streams: u16,
    /// Messages that may be open at the receiver.
    pub open_messages: u16,
    /// Responses that may be open at the responder.
    pub open_responses: u16,
    /// Paths each way.
    pub paths: u8,
    /// Planes, 1 to `MR_MAX_PLANES`.
    pub planes: u8,
}

impl mr_parameters {
    fn of(from: &Parameters) -> Self {
        let mut addresses = [mr_address::default(); MR_MAX_PLANES];
        let mut max_payload = [0; MR_MAX_PLANES];
        let places = addresses.iter_mut().zip(&mut max_payload);
        for ((address, payload), plane) in places.zip(from.planes.as_slice()) {
            (address.ip, address.port) = (plane.ip.octets(), plane.port);
            *payload = plane.max_payload;
        }
        Self {
            addresses,
            max_payload,
            capabilities: from.capabilities.0,
            ingress_mbps: from.ingress_mbps,
            service: from.service,
            window: from.window,
            streams: from.streams,
            open_messages: from.open_messages,
            open_responses: from.open_responses,
            paths: from.paths,
            planes: from.planes.count() as u8,
        }
    }

    fn to_core(self) -> Result<Parameters, mr_error> {
        let mut list = [PlaneAddress::new(self.addresses[0].to_socket(), 0); MR_MAX_PLANES];
        for (plane, (address, payload)) in list
            .iter_mut()
            .zip(self.addresses.iter().zip(self.max_payload))
        {
            (plane.ip, plane.port, plane.max_payload) = (address.ip.into(), address.port, payload);
        }
        let planes = list
            .get(..usize::from(self.planes))
            .and_then(Planes::new)
            .ok_or(mr_error::MR_ERROR_DECODE_OUT_OF_RANGE)?;
        Ok(Parameters {
            paths: self.paths,
            window: self.window,
            streams: self.streams,
            open_messages: self.open_messages,
            open_responses: self.open_responses,
            capabilities: Capabilities(self.capabilities),
            ingress_mbps: self.ingress_mbps,
            service: self.service,
            planes,
        })
    }
}

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

    fn of(header: &Header, packet: &Packet<'_>) -> Self {
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
    unsafe fn encode(&self, blocks: &[mr_ack_block], out: &mut [u8]) -> Result<usize, mr_error> {
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

fn trailer(has: u8) -> Trailer {
    if has == 0 {
        Trailer::None
    } else {
        Trailer::Crc32c
    }
}

/// Reads a datagram of `length` bytes; `checksum` not 0: a CRC32C follows it, which is checked and taken off. The blocks of an ACK or FENCE_ACK
/// are stored to `blocks`, which has room for `capacity` (NULL and 0: not wanted).
///
/// Errors: `MR_ERROR_DECODE_...`; `MR_ERROR_BUFFER_TOO_SMALL` if it has more blocks than there is room for (`block_count` of the packet
/// says how many).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_decode(
    datagram: *const u8,
    length: usize,
    checksum: u8,
    packet: *mut mr_packet,
    blocks: *mut mr_ack_block,
    capacity: usize,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise (see the crate's documentation).
        let datagram = unsafe { slice(datagram, length) }?;
        let header = Header::decode(datagram)?;
        let body = wire::check(datagram, trailer(checksum))?;
        let decoded = wire::decode(body)?;
        // SAFETY: as above.
        unsafe { write(packet, mr_packet::of(&header, &decoded)) }?;
        if let Packet::Ack { blocks: found, .. } | Packet::FenceAck { blocks: found, .. } = decoded
            && !blocks.is_null()
        {
            if found.len() > capacity {
                return Err(mr_error::MR_ERROR_BUFFER_TOO_SMALL);
            }
            for (index, block) in found.enumerate() {
                // SAFETY: as above; there is room for so many.
                unsafe { write(blocks.wrapping_add(index), mr_ack_block::of(&block)) }?;
            }
        }
        Ok(0)
    })
}

/// Writes a datagram to `buffer`, which is `size` bytes, with a CRC32C behind it if `checksum` is not 0, and stores its length. Of an ACK the
/// blocks are at `blocks` (`block_count` of the packet says how many). What `mr_decode` gave is written as the bytes that it came from.
///
/// Errors: `MR_ERROR_BUFFER_TOO_SMALL`, and `MR_ERROR_DECODE_...` for what `mr_decode` would refuse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_encode(
    packet: *const mr_packet,
    blocks: *const mr_ack_block,
    checksum: u8,
    buffer: *mut u8,
    size: usize,
    length: *mut usize,
) -> i32 {
    guard(|| {
        writable(length)?;
        // SAFETY: the caller's promise (see the crate's documentation).
        let (packet, out) = unsafe { (read(packet)?, slice_mut(buffer, size)?) };
        let is_ack = [mr_kind::MR_KIND_ACK as u8, mr_kind::MR_KIND_FENCE_ACK as u8];
        let blocks = if is_ack.contains(&packet.kind) {
            // SAFETY: as above.
            unsafe { slice(blocks, packet.block_count) }?
        } else {
            &[]
        };
        // SAFETY: as above.
        let body = unsafe { packet.encode(blocks, out) }?;
        // What is out of range, or does not fit its opcode, shows when it is read.
        wire::decode(out.get(..body).unwrap_or_default())?;
        let whole = wire::seal(out, body, trailer(checksum))
            .map_err(|_| mr_error::MR_ERROR_BUFFER_TOO_SMALL)?;
        // SAFETY: as above.
        unsafe { write(length, whole) }?;
        Ok(0)
    })
}

/// The CRC32C (Castagnoli) of bytes whose CRC32C is `crc`, followed by these; 0 is that of no bytes. It is stored to `result`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_crc32c(
    crc: u32,
    bytes: *const u8,
    length: usize,
    result: *mut u32,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise (see the crate's documentation).
        let bytes = unsafe { slice(bytes, length) }?;
        // SAFETY: as above.
        unsafe { write(result, wire::crc32c_append(crc, bytes)) }?;
        Ok(0)
    })
}

/// The bytes that a demand code stands for.
#[unsafe(no_mangle)]
pub extern "C" fn mr_demand_bytes(code: u8) -> u64 {
    Demand(code).to_bytes()
}

/// The least demand code that stands for at least so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn mr_demand_code(bytes: u64) -> u8 {
    Demand::from_bytes(bytes).0
}
