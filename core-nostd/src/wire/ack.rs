//! ACK and FENCE_ACK: what was received, on one or more paths.

use super::bytes::{put, take, u8_at, u16_at, u32_at, zero};
use super::error::{DecodeError, short};
use super::header::{Flags, Header, Kind};

/// Largest size of an ACK with one block and of a FENCE_ACK, without trailer, in bytes.
pub const ACK_SIZE: usize = ACK_LEAST + SACK_WORDS * 8;

/// Largest size of every further block of an ACK, in bytes.
pub const ACK_BLOCK_SIZE: usize = ACK_BLOCK_LEAST + SACK_WORDS * 8;

/// The first block without its vector.
const ACK_LEAST: usize = 32;
/// A further block without its vector.
const ACK_BLOCK_LEAST: usize = 28;
/// Numbers that make up a whole vector.
const SACK_WORDS: usize = 4;

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
/// | 1, bits 4 to 6 | 2 | u8 | length of the vector in numbers of 8 bytes, 0..=4 |
/// | - | 3 | u8 | zero |
/// | 8 | 4 | u32 | cumulative PSN |
/// | 12 | 8 | u32 | newest TSN |
/// | 16 | 12 | u32 | newest PSN |
/// | 20 | 16 | u16 | delay |
/// | 22 | 18 | u16 | CE count |
/// | 24 | 20 | u32 | packets received |
/// | 28 | 24 | u32 | rate hint |
/// | 32 | 28 | u64 each | SACK vector up to its last number that is not 0 |
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

    /// How many numbers of the vector are sent: up to the last that is not 0.
    #[inline(always)]
    fn words(&self) -> usize {
        let last = self.sack.iter().rposition(|word| *word != 0);
        last.map_or(0, |last| last + 1)
    }

    /// The 16 bytes in front of the vector, which both kinds of block have in common.
    #[inline(always)]
    fn middle(&self) -> [u8; 16] {
        let mut out = [0; 16];
        put::<0, 4, 16>(&mut out, self.newest_psn.to_be_bytes());
        put::<4, 2, 16>(&mut out, self.delay.to_be_bytes());
        put::<6, 2, 16>(&mut out, self.ce_count.to_be_bytes());
        put::<8, 4, 16>(&mut out, self.received.to_be_bytes());
        put::<12, 4, 16>(&mut out, self.hint_mbps.to_be_bytes());
        out
    }

    /// The whole vector.
    #[inline(always)]
    fn vector(&self) -> [u8; 32] {
        let [a, b, c, d] = self.sack;
        let mut out = [0; 32];
        put::<0, 8, 32>(&mut out, a.to_be_bytes());
        put::<8, 8, 32>(&mut out, b.to_be_bytes());
        put::<16, 8, 32>(&mut out, c.to_be_bytes());
        put::<24, 8, 32>(&mut out, d.to_be_bytes());
        out
    }

    #[inline(always)]
    fn from_parts(
        path: u8,
        generation: u8,
        cumulative: u32,
        newest_tsn: u32,
        middle: &[u8; 16],
    ) -> Self {
        Self {
            path,
            generation,
            cumulative,
            newest_tsn,
            newest_psn: u32_at::<0, 16>(middle),
            delay: u16_at::<4, 16>(middle),
            ce_count: u16_at::<6, 16>(middle),
            received: u32_at::<8, 16>(middle),
            hint_mbps: u32_at::<12, 16>(middle),
            sack: [0; SACK_WORDS],
        }
    }

    #[inline(always)]
    fn from_first(bytes: &[u8; ACK_LEAST]) -> Self {
        Self::from_parts(
            u8_at::<2, 32>(bytes),
            u8_at::<3, 32>(bytes),
            u32_at::<8, 32>(bytes),
            u32_at::<12, 32>(bytes),
            &take::<16, 16, 32>(bytes),
        )
    }

    #[inline(always)]
    fn from_further(bytes: &[u8; ACK_BLOCK_LEAST]) -> Self {
        Self::from_parts(
            u8_at::<0, 28>(bytes),
            u8_at::<1, 28>(bytes),
            u32_at::<4, 28>(bytes),
            u32_at::<8, 28>(bytes),
            &take::<12, 16, 28>(bytes),
        )
    }

    /// Takes the numbers of the vector off what follows the block.
    #[inline(always)]
    fn take_vector<'a>(&mut self, words: u8, mut rest: &'a [u8]) -> &'a [u8] {
        for word in self.sack.iter_mut().take(usize::from(words)) {
            let Some((bytes, more)) = rest.split_first_chunk() else {
                break;
            };
            *word = u64::from_be_bytes(*bytes);
            rest = more;
        }
        rest
    }
}

/// Checks the vector of so many words that `rest` begins with; returns what follows it.
#[inline(always)]
// spec: MR-WIRE-022, MR-WIRE-023
fn check_vector(words: u8, rest: &[u8]) -> Result<&[u8], VectorError> {
    let words = usize::from(words);
    if words > SACK_WORDS {
        return Err(VectorError::Content);
    }
    let (vector, rest) = rest.split_at_checked(words * 8).ok_or(VectorError::Short)?;
    let (numbers, _) = vector.as_chunks::<8>();
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else {
        return Ok(rest);
    };
    // Bit 0 is the last bit of the first big-endian number.
    if first[7] & 1 != 0 || *last == [0; 8] {
        return Err(VectorError::Content);
    }
    Ok(rest)
}

enum VectorError {
    Short,
    Content,
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

/// Writes an ACK or FENCE_ACK with its first block and returns how many bytes it has: [`ACK_SIZE`] less
/// 8 for each number of the vector that need not be sent. Of the flags only [`Flags::REDIRECT`] is written.
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
/// let first = datagram.first_chunk_mut().unwrap();
/// let length = encode_ack(AckKind::Ack, Flags::NONE, 0xc0ffee, &block, first);
/// let more = datagram[length..].first_chunk_mut().unwrap();
/// let length = length + append_ack_block(&block, more);
/// assert_eq!(length, 40 + 36);
/// let header = Header::decode(&datagram).unwrap();
/// let blocks = AckBlocks::decode(&header, &datagram[..length]).unwrap();
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
) -> usize {
    let words = block.words();
    let header = Header {
        kind: kind.into(),
        flags: flags.and(Flags::REDIRECT).with_sack_words(words as u8),
        path: block.path,
        generation: block.generation,
        connection,
        psn: block.cumulative,
        tsn: block.newest_tsn,
    };
    header.put(out);
    put::<16, 16, 64>(out, block.middle());
    if words != 0 {
        put::<32, 32, 64>(out, block.vector());
    }
    ACK_LEAST + words * 8
}

/// Writes a further block, to follow an ACK, and returns how many bytes it has: [`ACK_BLOCK_SIZE`] less 8 for
/// each number of the vector that need not be sent.
#[inline]
pub fn append_ack_block(block: &AckBlock, out: &mut [u8; ACK_BLOCK_SIZE]) -> usize {
    let words = block.words();
    put::<0, 4, 60>(out, [block.path, block.generation, words as u8, 0]);
    put::<4, 4, 60>(out, block.cumulative.to_be_bytes());
    put::<8, 4, 60>(out, block.newest_tsn.to_be_bytes());
    put::<12, 16, 60>(out, block.middle());
    if words != 0 {
        put::<28, 32, 60>(out, block.vector());
    }
    ACK_BLOCK_LEAST + words * 8
}

/// The blocks of an ACK or FENCE_ACK, read from the datagram one by one. There is always one
/// at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckBlocks<'a> {
    /// The first without its vector, and the length of that.
    first: Option<(&'a [u8; ACK_LEAST], u8)>,
    rest: &'a [u8],
    left: u16,
}

impl<'a> AckBlocks<'a> {
    /// Checks a whole ACK or FENCE_ACK whose header was read and whose trailer was taken off.
    /// All its blocks are checked before the first is given out.
    ///
    /// # Errors
    /// [`DecodeError::Kind`] when the header is of neither kind; [`DecodeError::Truncated`] and
    /// [`DecodeError::Length`] when the datagram is not made of whole blocks, or a FENCE_ACK of
    /// more than one; [`DecodeError::Sack`] when a vector is not as it has to be;
    /// [`DecodeError::Reserved`].
    #[inline]
    pub fn decode(header: &Header, body: &'a [u8]) -> Result<Self, DecodeError> {
        let fence = match header.kind {
            Kind::Ack => false,
            Kind::FenceAck => true,
            other => return Err(DecodeError::Kind { got: other as u8 }),
        };
        let Some((first, rest)) = body.split_first_chunk::<ACK_LEAST>() else {
            return Err(DecodeError::Truncated {
                needed: ACK_LEAST as u16,
                got: short(body.len()),
            });
        };
        let error = |error: VectorError, block: u16| match error {
            VectorError::Content => DecodeError::Sack { block },
            VectorError::Short => DecodeError::Length {
                kind: header.kind,
                got: short(body.len()),
            },
        };
        let words = header.flags.sack_words();
        let mut left = check_vector(words, rest).map_err(|what| error(what, 0))?;
        let mut further = 0;
        // spec: MR-WIRE-025
        while !left.is_empty() {
            further += 1;
            let at = body.len() - left.len();
            let block = left.split_first_chunk::<ACK_BLOCK_LEAST>();
            // spec: MR-WIRE-022
            let Some((block, vector)) = block.filter(|_| !fence) else {
                return Err(error(VectorError::Short, further));
            };
            zero(u8_at::<3, 28>(block).into(), short(at + 3))?;
            let words = u8_at::<2, 28>(block);
            left = check_vector(words, vector).map_err(|what| error(what, further))?;
        }
        Ok(Self {
            first: Some((first, words)),
            rest,
            left: further + 1,
        })
    }
}

impl Iterator for AckBlocks<'_> {
    type Item = AckBlock;

    #[inline]
    fn next(&mut self) -> Option<AckBlock> {
        let (mut block, words) = if let Some((first, words)) = self.first.take() {
            (AckBlock::from_first(first), words)
        } else {
            let (further, rest) = self.rest.split_first_chunk::<ACK_BLOCK_LEAST>()?;
            self.rest = rest;
            (AckBlock::from_further(further), u8_at::<2, 28>(further))
        };
        self.rest = block.take_vector(words, self.rest);
        self.left -= 1;
        Some(block)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::from(self.left);
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
        let length = encode_ack(AckKind::Ack, Flags(0xff), 0x0405_0607, &BLOCK, first);
        assert_eq!(length, ACK_SIZE);
        let length = append_ack_block(&BLOCK, more.first_chunk_mut().unwrap());
        assert_eq!(length, ACK_BLOCK_SIZE);
        bytes
    }

    /// An ACK of these blocks.
    fn encoded(blocks: &[AckBlock]) -> Vec<u8> {
        let mut bytes = Vec::from([0xee; ACK_SIZE]);
        let first = bytes.first_chunk_mut().unwrap();
        let length = encode_ack(AckKind::Ack, Flags::NONE, 1, &blocks[0], first);
        bytes.truncate(length);
        for block in &blocks[1..] {
            let mut more = [0xee; ACK_BLOCK_SIZE];
            let length = append_ack_block(block, &mut more);
            bytes.extend(&more[..length]);
        }
        bytes
    }

    // spec: MR-WIRE-022
    #[test]
    fn what_is_zero_at_the_end_of_a_vector_is_not_sent() {
        let with = |sack| AckBlock { sack, ..BLOCK };
        let all = [
            (with([0; 4]), 0),
            (with([2, 0, 0, 0]), 1),
            (with([0, 1, 0, 0]), 2),
            (with([2, 0, 1 << 63, 0]), 3),
            (with([0, 0, 0, 1]), 4),
        ];
        for (first, words) in all {
            for (second, more) in all {
                let bytes = encoded(&[first, second]);
                assert_eq!(bytes.len(), 32 + 28 + 8 * (words + more));
                assert_eq!(blocks(&bytes), Ok([first, second].into()));
            }
        }
    }

    // spec: MR-WIRE-022, MR-WIRE-025
    #[test]
    fn a_vector_has_at_most_four_numbers_and_none_too_many() {
        let plain = AckBlock {
            sack: [0; 4],
            ..BLOCK
        };
        for block in 0..2 {
            let at = [1, 32 + 2][usize::from(block)];
            for words in 1..8 {
                let mut bytes = encoded(&[plain, plain]);
                bytes[at] = if block == 0 { words << 4 } else { words };
                let zeros = core::iter::repeat_n(0, 8 * usize::from(words));
                let end = 32 + 28 * usize::from(block);
                bytes.splice(end..end, zeros);
                assert_eq!(blocks(&bytes), Err(DecodeError::Sack { block }), "{words}");
            }
        }
    }

    fn blocks(bytes: &[u8]) -> Result<Vec<AckBlock>, DecodeError> {
        Ok(AckBlocks::decode(&Header::decode(bytes)?, bytes)?.collect())
    }

    // spec: MR-WIRE-022
    #[test]
    fn exact_bytes() {
        // The offsets count up, but for the byte with bit 0 of the vector.
        let mut expected: [u8; 124] = core::array::from_fn(|i| i as u8);
        (expected[0], expected[1], expected[39]) = (0x15, 0x48, 0x26);
        let common: [u8; 48] = expected[16..64].try_into().unwrap();
        expected[64..76].copy_from_slice(&[2, 3, 4, 0, 8, 9, 10, 11, 12, 13, 14, 15]);
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
        assert_eq!(fence[..2], [0x18, 0x40]);
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
                0..32 => Some(DecodeError::Truncated {
                    needed: 32,
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
        let mut bytes = two_blocks();
        bytes[67] = 1;
        assert_eq!(blocks(&bytes), Err(DecodeError::Reserved { offset: 67 }));
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
