//! The wire format alone, as a reference model: datagrams to plain structs, and back.

mod packet;
mod parts;

pub use packet::*;
pub use parts::*;

use metaroce_core::wire::{self, Demand, Header, Packet, Trailer};

use crate::boundary::{guard, read, slice, slice_mut, writable, write};
use crate::error::mr_error;

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
