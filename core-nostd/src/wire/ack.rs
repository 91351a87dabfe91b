//! ACK and FENCE_ACK: what was received, on one or more paths.

use super::bytes::{put, take, u8_at, u16_at, u32_at, u64_at, zero};
use super::error::{DecodeError, short};
use super::header::{Flags, Header, Kind};

/// Size of an ACK with one block and of a FENCE_ACK, without trailer, in bytes.
pub const ACK_SIZE: usize = 64;

/// Size of every further block of an ACK, in bytes.
pub const ACK_BLOCK_SIZE: usize = 60;

/// [`AckBlock::newest_psn`] when the newest transmission was a PROBE, which has no PSN.
pub const PSN_OF_PROBE: u32 = u32::MAX;

/// Nanoseconds in a unit of [`AckBlock::delay`].
pub const ACK_DELAY_UNIT_NS: u32 = 16;

/// What was received of one generation of one path.
///
/// | offset in the first block | in a further block | size | field |
/// |---|---|---|---|
/// | 2 | 0 | u8 | path |
/// | 3 | 1 | u8 | generation |
/// | - | 2 | u16 | zero |
/// | 8 | 4 | u32 | cumulative PSN |
/// | 12 | 8 | u32 | newest TSN |
/// | 16 | 12 | u32 | newest PSN |
/// | 20 | 16 | u16 | delay |
/// | 22 | 18 | u16 | CE count |
/// | 24 | 20 | u32 | packets received |
/// | 28 | 24 | u32 | rate hint |
/// | 32 | 28 | 4 x u64 | SACK vector |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct AckBlock {
    /// Path slot.
    pub path: u8,
    /// Incarnation of the path slot.
    pub generation: u8,
    /// The next PSN expected: all before it were received, it was not.
    pub cumulative: u32,
    /// Newest TSN received on the path.
    pub newest_tsn: u32,
    /// PSN of the packet that carried the newest TSN; [`PSN_OF_PROBE`] when it was a PROBE.
    pub newest_psn: u32,
    /// Time from the newest packet's arrival to this acknowledgment, in units of
    /// [`ACK_DELAY_UNIT_NS`], saturating (at 1.05 ms).
    pub delay: u16,
    /// CE-marked packets received in this generation, modulo 2^16.
    pub ce_count: u16,
    /// Packets received in this generation, modulo 2^32.
    pub received: u32,
    /// Rate hint for the sender in Mbit/s; 0 = none.
    pub hint_mbps: u32,
    /// Bit `i % 64` of number `i / 64` says that PSN `cumulative + i` was received; bit 0 of
    /// number 0 is never set.
    pub sack: [u64; 4],
}

impl AckBlock {
    /// Whether the receiver has accepted `psn`.
    #[inline]
    #[must_use]
    pub fn acknowledges(&self, psn: u32) -> bool {
        let distance = psn.wrapping_sub(self.cumulative);
        if distance >= 1 << 31 {
            return true;
        }
        let word = self.sack.get((distance / 64) as usize).copied();
        word.unwrap_or(0) >> (distance % 64) & 1 == 1
    }

    /// Converts a delay in nanoseconds to the units of [`AckBlock::delay`], rounding down and
    /// saturating.
    #[inline]
    #[must_use]
    pub fn delay_from_ns(ns: u64) -> u16 {
        u16::try_from(ns / u64::from(ACK_DELAY_UNIT_NS)).unwrap_or(u16::MAX)
    }

    /// The delay in nanoseconds; `u16::MAX` units mean this or more.
    #[inline]
    #[must_use]
    pub fn delay_ns(&self) -> u32 {
        u32::from(self.delay) * ACK_DELAY_UNIT_NS
    }

    /// The 48 bytes that both kinds of block end with.
    #[inline(always)]
    fn tail(&self) -> [u8; 48] {
        let [a, b, c, d] = self.sack;
        let mut out = [0; 48];
        put::<0, 4, 48>(&mut out, self.newest_psn.to_be_bytes());
        put::<4, 2, 48>(&mut out, self.delay.to_be_bytes());
        put::<6, 2, 48>(&mut out, self.ce_count.to_be_bytes());
        put::<8, 4, 48>(&mut out, self.received.to_be_bytes());
        put::<12, 4, 48>(&mut out, self.hint_mbps.to_be_bytes());
        put::<16, 8, 48>(&mut out, a.to_be_bytes());
        put::<24, 8, 48>(&mut out, b.to_be_bytes());
        put::<32, 8, 48>(&mut out, c.to_be_bytes());
        put::<40, 8, 48>(&mut out, d.to_be_bytes());
        out
    }

    #[inline(always)]
    fn from_parts(
        path: u8,
        generation: u8,
        cumulative: u32,
        newest_tsn: u32,
        tail: &[u8; 48],
    ) -> Self {
        Self {
            path,
            generation,
            cumulative,
            newest_tsn,
            newest_psn: u32_at::<0, 48>(tail),
            delay: u16_at::<4, 48>(tail),
            ce_count: u16_at::<6, 48>(tail),
            received: u32_at::<8, 48>(tail),
            hint_mbps: u32_at::<12, 48>(tail),
            sack: [
                u64_at::<16, 48>(tail),
                u64_at::<24, 48>(tail),
                u64_at::<32, 48>(tail),
                u64_at::<40, 48>(tail),
            ],
        }
    }

    #[inline(always)]
    fn from_first(bytes: &[u8; ACK_SIZE]) -> Self {
        Self::from_parts(
            u8_at::<2, 64>(bytes),
            u8_at::<3, 64>(bytes),
            u32_at::<8, 64>(bytes),
            u32_at::<12, 64>(bytes),
            &take::<16, 48, 64>(bytes),
        )
    }

    #[inline(always)]
    fn from_further(bytes: &[u8; ACK_BLOCK_SIZE]) -> Self {
        Self::from_parts(
            u8_at::<0, 60>(bytes),
            u8_at::<1, 60>(bytes),
            u32_at::<4, 60>(bytes),
            u32_at::<8, 60>(bytes),
            &take::<12, 48, 60>(bytes),
        )
    }
}

/// The two kinds that are made of [`AckBlock`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum AckKind {
    /// What was received so far, on one or more paths.
    Ack,
    /// What was received at last, on the one path that was frozen.
    FenceAck,
}

impl From<AckKind> for Kind {
    #[inline]
    fn from(kind: AckKind) -> Self {
        match kind {
            AckKind::Ack => Self::Ack,
            AckKind::FenceAck => Self::FenceAck,
        }
    }
}

/// Writes an ACK or FENCE_ACK with its first block. Of the flags only
/// [`Flags::REDIRECT`] is written.
///
/// ```
/// use metaroce_core::wire::*;
/// let block = AckBlock {
///     path: 1,
///     generation: 0,
///     cumulative: 10,
///     newest_tsn: 13,
///     newest_psn: 12,
///     delay: AckBlock::delay_from_ns(800),
///     ce_count: 0,
///     received: 12,
///     hint_mbps: 100_000,
///     sack: [0b110, 0, 0, 0],
/// };
/// let mut datagram = [0; ACK_SIZE + ACK_BLOCK_SIZE];
/// let (first, more) = datagram.split_first_chunk_mut().unwrap();
/// encode_ack(AckKind::Ack, Flags::NONE, 0xc0ffee, &block, first);
/// append_ack_block(&block, more.first_chunk_mut().unwrap());
/// let header = Header::decode(&datagram).unwrap();
/// let blocks = AckBlocks::decode(&header, &datagram).unwrap();
/// assert!(blocks.eq([block, block]));
/// ```
#[inline]
// spec: MR-WIRE-022
pub fn encode_ack(
    kind: AckKind,
    flags: Flags,
    connection: u32,
    block: &AckBlock,
    out: &mut [u8; ACK_SIZE],
) {
    let header = Header {
        kind: kind.into(),
        flags: flags.and(Flags::REDIRECT),
        path: block.path,
        generation: block.generation,
        connection,
        psn: block.cumulative,
        tsn: block.newest_tsn,
    };
    header.put(out);
    put::<16, 48, 64>(out, block.tail());
}

/// Writes a further block, to follow an ACK.
#[inline]
pub fn append_ack_block(block: &AckBlock, out: &mut [u8; ACK_BLOCK_SIZE]) {
    put::<0, 4, 60>(out, [block.path, block.generation, 0, 0]);
    put::<4, 4, 60>(out, block.cumulative.to_be_bytes());
    put::<8, 4, 60>(out, block.newest_tsn.to_be_bytes());
    put::<12, 48, 60>(out, block.tail());
}

/// The blocks of an ACK or FENCE_ACK, read from the datagram one by one. There is always one
/// at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckBlocks<'a> {
    first: Option<&'a [u8; ACK_SIZE]>,
    further: &'a [[u8; ACK_BLOCK_SIZE]],
}

impl<'a> AckBlocks<'a> {
    /// Checks a whole ACK or FENCE_ACK whose header was read and whose trailer was taken off.
    /// All its blocks are checked before the first is given out.
    ///
    /// # Errors
    /// [`DecodeError::Kind`] when the header is of neither kind; [`DecodeError::Truncated`] and
    /// [`DecodeError::Length`] when the datagram is not made of whole blocks, or a FENCE_ACK of
    /// more than one; [`DecodeError::Sack`] when bit 0 of a vector is set;
    /// [`DecodeError::Reserved`].
    #[inline]
    pub fn decode(header: &Header, body: &'a [u8]) -> Result<Self, DecodeError> {
        let fence = match header.kind {
            Kind::Ack => false,
            Kind::FenceAck => true,
            other => return Err(DecodeError::Kind { got: other as u8 }),
        };
        let Some((first, rest)) = body.split_first_chunk::<ACK_SIZE>() else {
            return Err(DecodeError::Truncated {
                needed: ACK_SIZE as u16,
                got: short(body.len()),
            });
        };
        let (further, odd) = rest.as_chunks::<ACK_BLOCK_SIZE>();
        // spec: MR-WIRE-022
        if !odd.is_empty() || (fence && !further.is_empty()) {
            return Err(DecodeError::Length {
                kind: header.kind,
                got: short(body.len()),
            });
        }
        // Bit 0 is the last bit of the first big-endian number.
        // spec: MR-WIRE-023
        if u8_at::<39, 64>(first) & 1 != 0 {
            return Err(DecodeError::Sack { block: 0 });
        }
        // spec: MR-WIRE-025
        for (index, block) in further.iter().enumerate() {
            let at = ACK_SIZE + index * ACK_BLOCK_SIZE;
            zero(u16_at::<2, 60>(block).into(), short(at + 2))?;
            if u8_at::<35, 60>(block) & 1 != 0 {
                return Err(DecodeError::Sack {
                    block: short(index + 1),
                });
            }
        }
        Ok(Self {
            first: Some(first),
            further,
        })
    }
}

impl Iterator for AckBlocks<'_> {
    type Item = AckBlock;

    #[inline]
    fn next(&mut self) -> Option<AckBlock> {
        if let Some(first) = self.first.take() {
            return Some(AckBlock::from_first(first));
        }
        let (block, rest) = self.further.split_first()?;
        self.further = rest;
        Some(AckBlock::from_further(block))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::from(self.first.is_some()) + self.further.len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for AckBlocks<'_> {}
impl core::iter::FusedIterator for AckBlocks<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const BLOCK: AckBlock = AckBlock {
        path: 2,
        generation: 3,
        cumulative: 0x0809_0a0b,
        newest_tsn: 0x0c0d_0e0f,
        newest_psn: 0x1011_1213,
        delay: 0x1415,
        ce_count: 0x1617,
        received: 0x1819_1a1b,
        hint_mbps: 0x1c1d_1e1f,
        sack: [
            0x2021_2223_2425_2626,
            0x2829_2a2b_2c2d_2e2f,
            0x3031_3233_3435_3637,
            0x3839_3a3b_3c3d_3e3f,
        ],
    };

    fn two_blocks() -> [u8; 124] {
        let mut bytes = [0xee; 124];
        let (first, more) = bytes.split_first_chunk_mut().unwrap();
        encode_ack(AckKind::Ack, Flags(0xff), 0x0405_0607, &BLOCK, first);
        append_ack_block(&BLOCK, more.first_chunk_mut().unwrap());
        bytes
    }

    fn blocks(bytes: &[u8]) -> Result<Vec<AckBlock>, DecodeError> {
        Ok(AckBlocks::decode(&Header::decode(bytes)?, bytes)?.collect())
    }

    // spec: MR-WIRE-022
    #[test]
    fn exact_bytes() {
        // The offsets count up, but for the byte with bit 0 of the vector.
        let mut expected: [u8; 124] = core::array::from_fn(|i| i as u8);
        (expected[0], expected[1], expected[39]) = (0x15, 0x08, 0x26);
        let common: [u8; 48] = expected[16..64].try_into().unwrap();
        expected[64..76].copy_from_slice(&[2, 3, 0, 0, 8, 9, 10, 11, 12, 13, 14, 15]);
        expected[76..].copy_from_slice(&common);
        assert_eq!(two_blocks(), expected);
        assert_eq!(blocks(&expected), Ok([BLOCK, BLOCK].into()));
        let mut fence = [0; 64];
        encode_ack(
            AckKind::FenceAck,
            Flags::NONE,
            0x0405_0607,
            &BLOCK,
            &mut fence,
        );
        assert_eq!(fence[..2], [0x18, 0]);
        assert_eq!(fence[2..], expected[2..64]);
        assert_eq!(blocks(&fence), Ok([BLOCK].into()));
    }

    #[test]
    fn counts_its_blocks() {
        let bytes = two_blocks();
        let header = Header::decode(&bytes).unwrap();
        let mut blocks = AckBlocks::decode(&header, &bytes).unwrap();
        for left in [2, 1] {
            assert_eq!(blocks.len(), left);
            assert!(blocks.next().is_some());
        }
        assert_eq!((blocks.len(), blocks.next()), (0, None));
    }

    // spec: MR-WIRE-022
    #[test]
    fn only_whole_blocks() {
        let bytes = two_blocks();
        for length in 16..124 {
            let expected = match length {
                64 => None,
                0..64 => Some(DecodeError::Truncated {
                    needed: 64,
                    got: length as u16,
                }),
                _ => Some(DecodeError::Length {
                    kind: Kind::Ack,
                    got: length as u16,
                }),
            };
            assert_eq!(blocks(&bytes[..length]).err(), expected);
        }
    }

    // spec: MR-WIRE-022
    #[test]
    fn a_fence_ack_is_one_block() {
        let mut bytes = two_blocks();
        bytes[0] = 0x18;
        let error = DecodeError::Length {
            kind: Kind::FenceAck,
            got: 124,
        };
        assert_eq!(blocks(&bytes), Err(error));
        bytes[0] = 0x14;
        bytes[1] = 0;
        assert_eq!(blocks(&bytes), Err(DecodeError::Kind { got: 4 }));
    }

    // spec: MR-WIRE-023
    #[test]
    fn the_next_expected_is_not_received() {
        for (at, block) in [(39, 0), (99, 1)] {
            let mut bytes = two_blocks();
            bytes[at] |= 1;
            assert_eq!(blocks(&bytes), Err(DecodeError::Sack { block }));
        }
        for at in [66, 67] {
            let mut bytes = two_blocks();
            bytes[at] = 1;
            assert_eq!(blocks(&bytes), Err(DecodeError::Reserved { offset: 66 }));
        }
    }

    #[test]
    fn bits_of_the_vector() {
        let block = AckBlock {
            sack: [2, 1 << 63, 0, 1 << 63],
            ..BLOCK
        };
        let held: Vec<u8> = (0..=255)
            .filter(|&i| block.acknowledges(block.cumulative.wrapping_add(i.into())))
            .collect();
        assert_eq!(held, [1, 127, 255]);
    }

    // spec: MR-WIRE-024
    #[test]
    fn delay_saturates() {
        assert_eq!(AckBlock::delay_from_ns(31), 1);
        assert_eq!(AckBlock::delay_from_ns(u64::MAX), u16::MAX);
        let block = AckBlock { delay: 3, ..BLOCK };
        assert_eq!(block.delay_ns(), 48);
    }
}
