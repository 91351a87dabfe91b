//! The datagram that stands for a packet of a transport that is a model ([`Segment`](crate::packet::Segment)), and so has no bytes of its own.
//!
//! It is this project's own format, and goes to a UDP port of its own, since 4791 is that of the real datagrams beside it. All
//! numbers are unsigned and big-endian:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 bytes | `MRsm` |
//! | 4 | u8 | version of the format: 1 |
//! | 5 | u8 | kind, by the transport's numbers; 0 is data |
//! | 6 | u8 | flags, by the transport's meaning |
//! | 7 | u8 | 1: trimmed, 2: damaged |
//! | 8 | u16 | lane |
//! | 10 | u16 | zero |
//! | 12 | u32 | flow |
//! | 16 | u32 | message |
//! | 20 | u32 | offset in the message, in packets |
//! | 24 | u32 | payload, in bytes |
//! | 28 | u32 | length of the modelled datagram, in bytes |
//! | 32 | u64 | sequence number |
//! | 40 | u64 | cumulative |
//! | 48 | u64 | vector |
//! | 56 | u64 | value |
//! | 64 | u64 | stamp, in picoseconds |
//!
//! The payload does not exist. A capture tells the modelled datagram's length as that of the whole packet, but no less than these 72 bytes.

use crate::packet::Packet;

/// The UDP port of these datagrams.
pub const PORT: u16 = 14_791;
/// Their size, in bytes.
pub const SIZE: usize = 72;
/// What they begin with.
pub const MAGIC: [u8; 4] = *b"MRsm";

/// The datagram of a packet.
#[must_use]
pub fn encode(packet: &Packet) -> [u8; SIZE] {
    let segment = &packet.segment;
    let mut out = [0; SIZE];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(&MAGIC);
    let state = u8::from(packet.trimmed) | u8::from(packet.corrupted) << 1;
    put(&[1, segment.kind, segment.flags, state]);
    put(&segment.lane.to_be_bytes());
    put(&[0; 2]);
    for word in [
        segment.flow,
        segment.message,
        segment.offset,
        segment.payload,
        packet.length,
    ] {
        put(&word.to_be_bytes());
    }
    for word in [
        segment.sequence,
        segment.cumulative,
        segment.vector,
        segment.value,
        segment.stamp.ps(),
    ] {
        put(&word.to_be_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Segment;
    use crate::time::Time;

    #[test]
    fn every_field_is_in_its_place() {
        let segment = Segment {
            kind: 1,
            flags: 2,
            lane: 0x0304,
            flow: 5,
            message: 6,
            offset: 7,
            payload: 8,
            sequence: 9,
            cumulative: 10,
            vector: 11,
            value: 12,
            stamp: Time::from_ps(13),
        };
        let packet = Packet {
            length: 4_200,
            trimmed: true,
            corrupted: true,
            segment,
            ..Packet::default()
        };
        let bytes = encode(&packet);
        assert_eq!(bytes[..12], *b"MRsm\x01\x01\x02\x03\x03\x04\x00\x00");
        let u32s: Vec<u32> = bytes[12..32]
            .chunks_exact(4)
            .map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        assert_eq!(u32s, [5, 6, 7, 8, 4_200]);
        let u64s: Vec<u8> = bytes[32..].chunks_exact(8).map(|b| b[7]).collect();
        assert_eq!(u64s, [9, 10, 11, 12, 13]);
    }
}
