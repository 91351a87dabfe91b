//! The 16 bytes with which every datagram begins.

use core::ops::BitOr;

use super::bytes::{put, u8_at, u32_at, zero};
use super::error::{DecodeError, short};

/// Version of the wire format, in the high nibble of the first byte.
pub const VERSION: u8 = 1;

/// Size of the common header, in bytes.
pub const HEADER_SIZE: usize = 16;

/// What a datagram is, in the low nibble of the first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Kind {
    /// Asks for a connection.
    Init = 0,
    /// Asks to repeat an INIT with the cookie that it brings.
    Retry = 1,
    /// Opens the connection.
    Accept = 2,
    /// Refuses the connection.
    Reject = 3,
    /// A part of a message.
    Data = 4,
    /// What was received, on one or more paths.
    Ack = 5,
    /// Asks for an ACK at once.
    Probe = 6,
    /// Asks to freeze a generation of a path.
    Fence = 7,
    /// The final state of a frozen generation.
    FenceAck = 8,
    /// Tells how much is about to be sent.
    Announce = 9,
    /// A rate for the sender, in answer to ANNOUNCE.
    Hint = 10,
    /// Ends the connection.
    Close = 11,
    /// Confirms the end.
    CloseAck = 12,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Kind; 13] = [
        Self::Init,
        Self::Retry,
        Self::Accept,
        Self::Reject,
        Self::Data,
        Self::Ack,
        Self::Probe,
        Self::Fence,
        Self::FenceAck,
        Self::Announce,
        Self::Hint,
        Self::Close,
        Self::CloseAck,
    ];

    /// The kind with this number.
    #[inline]
    #[must_use]
    pub const fn from_u8(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Init,
            1 => Self::Retry,
            2 => Self::Accept,
            3 => Self::Reject,
            4 => Self::Data,
            5 => Self::Ack,
            6 => Self::Probe,
            7 => Self::Fence,
            8 => Self::FenceAck,
            9 => Self::Announce,
            10 => Self::Hint,
            11 => Self::Close,
            12 => Self::CloseAck,
            _ => return None,
        })
    }

    /// The flags that a datagram of this kind may carry.
    #[inline]
    #[must_use]
    pub const fn allowed_flags(self) -> Flags {
        // A nibble for each kind: no branch, no table in memory. Those with REDIRECT have a length in the bits above.
        const ALLOWED: u64 = {
            let data = Flags::ACK_REQUEST.0 | Flags::RETRANSMISSION.0 | Flags::SOLICITED.0;
            let ack = Flags::REDIRECT.0 as u64;
            (data as u64) << (4 * Kind::Data as u32)
                | ack << (4 * Kind::Ack as u32)
                | ack << (4 * Kind::FenceAck as u32)
        };
        let nibble = (ALLOWED >> (4 * self as u32)) as u8 & 0x0f;
        let length = (nibble & Flags::REDIRECT.0) * (Flags::SACK_WORDS / Flags::REDIRECT.0);
        Flags(nibble | length)
    }

    /// Whether the kind belongs to the setting up of a connection (INIT, RETRY, ACCEPT, REJECT)
    /// and therefore always carries a CRC32C.
    #[inline]
    #[must_use]
    pub const fn is_setup(self) -> bool {
        matches!(self, Self::Init | Self::Retry | Self::Accept | Self::Reject)
    }
}

/// The flags of a datagram.
///
/// ```
/// use metaroce_core::wire::Flags;
/// let flags = Flags::ACK_REQUEST | Flags::SOLICITED;
/// assert!(flags.contains(Flags::SOLICITED) && !flags.contains(Flags::RETRANSMISSION));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Flags(pub u8);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The receiver is asked to acknowledge at once (DATA).
    pub const ACK_REQUEST: Self = Self(1);
    /// This was sent before, under this PSN or under one of a generation that a FENCE ended (DATA).
    pub const RETRANSMISSION: Self = Self(2);
    /// The completion at the receiver is to raise an event (DATA: SEND, SEND_IMM, WRITE_IMM).
    pub const SOLICITED: Self = Self(4);
    /// Answered over other reverse entropy than before, since a PROBE was repeated (ACK, FENCE_ACK).
    pub const REDIRECT: Self = Self(8);
    /// The length of the first block's vector (ACK, FENCE_ACK).
    const SACK_WORDS: u8 = 0x70;

    /// How many numbers the vector of an acknowledgment's first block has, 0..=7.
    #[inline]
    #[must_use]
    pub const fn sack_words(self) -> u8 {
        (self.0 & Self::SACK_WORDS) >> Self::SACK_WORDS.trailing_zeros()
    }

    /// These flags with that length.
    #[inline]
    #[must_use]
    pub(super) const fn with_sack_words(self, words: u8) -> Self {
        let words = words << Self::SACK_WORDS.trailing_zeros();
        Self(self.0 & !Self::SACK_WORDS | words & Self::SACK_WORDS)
    }

    /// Whether all flags of `other` are set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These flags with those of `other` when `set`, without them when not.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self, set: bool) -> Self {
        if set {
            Self(self.0 | other.0)
        } else {
            Self(self.0 & !other.0)
        }
    }

    /// The flags that are set in both.
    #[inline]
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for Flags {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The common header.
///
/// | offset | size | field |
/// |---|---|---|
/// | 0 | u8 | version (high nibble), kind (low nibble) |
/// | 1 | u8 | flags |
/// | 2 | u8 | path |
/// | 3 | u8 | generation |
/// | 4 | u32 | destination connection id |
/// | 8 | u32 | PSN |
/// | 12 | u32 | TSN |
///
/// ```
/// use metaroce_core::wire::{Flags, Header, Kind};
/// let header = Header {
///     kind: Kind::Probe,
///     flags: Flags::NONE,
///     path: 3,
///     generation: 1,
///     connection: 0xc0ffee,
///     psn: 1,
///     tsn: 77,
/// };
/// let mut bytes = [0; 16];
/// header.encode(&mut bytes);
/// assert_eq!(Header::decode(&bytes), Ok(header));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Header {
    /// What the datagram is.
    pub kind: Kind,
    /// Its flags.
    pub flags: Flags,
    /// Path slot, owned by the sender of the data.
    pub path: u8,
    /// Incarnation of the path slot.
    pub generation: u8,
    /// Connection id that the receiver of the datagram has chosen; 0 in INIT.
    pub connection: u32,
    /// Packet sequence number, or the number of an attempt where the kind has no PSN.
    pub psn: u32,
    /// Transmission sequence number.
    pub tsn: u32,
}

impl Header {
    /// A header of this kind for this connection with all else zero.
    #[inline]
    #[must_use]
    pub const fn new(kind: Kind, connection: u32) -> Self {
        Self {
            kind,
            flags: Flags::NONE,
            path: 0,
            generation: 0,
            connection,
            psn: 0,
            tsn: 0,
        }
    }

    /// Reads the header of a datagram; what follows the header is not looked at, so that
    /// this may be done before the trailer is checked, to find the connection.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`], [`DecodeError::Version`], [`DecodeError::Kind`], and
    /// [`DecodeError::Flags`] for a flag that the kind may not carry.
    #[inline]
    pub fn decode(datagram: &[u8]) -> Result<Self, DecodeError> {
        // spec: MR-WIRE-003
        let Some(bytes) = datagram.first_chunk::<HEADER_SIZE>() else {
            return Err(DecodeError::Truncated {
                needed: HEADER_SIZE as u16,
                got: short(datagram.len()),
            });
        };
        let first = u8_at::<0, 16>(bytes);
        // spec: MR-WIRE-004
        if first >> 4 != VERSION {
            return Err(DecodeError::Version { got: first >> 4 });
        }
        let number = first & 0x0f;
        // spec: MR-WIRE-005
        let Some(kind) = Kind::from_u8(number) else {
            return Err(DecodeError::Kind { got: number });
        };
        let flags = u8_at::<1, 16>(bytes);
        // spec: MR-WIRE-006
        if flags & !kind.allowed_flags().0 != 0 {
            return Err(DecodeError::Flags { kind, got: flags });
        }
        Ok(Self {
            kind,
            flags: Flags(flags),
            path: u8_at::<2, 16>(bytes),
            generation: u8_at::<3, 16>(bytes),
            connection: u32_at::<4, 16>(bytes),
            psn: u32_at::<8, 16>(bytes),
            tsn: u32_at::<12, 16>(bytes),
        })
    }

    /// Writes the header.
    #[inline]
    pub fn encode(&self, out: &mut [u8; HEADER_SIZE]) {
        self.put(out);
    }

    /// Writes the header at the front of a larger array.
    #[inline(always)]
    // spec: MR-WIRE-002
    pub(super) fn put<const N: usize>(&self, out: &mut [u8; N]) {
        let first = [
            VERSION << 4 | self.kind as u8,
            self.flags.0,
            self.path,
            self.generation,
        ];
        put::<0, 4, N>(out, first);
        put::<4, 4, N>(out, self.connection.to_be_bytes());
        put::<8, 4, N>(out, self.psn.to_be_bytes());
        put::<12, 4, N>(out, self.tsn.to_be_bytes());
    }

    /// Refuses a header of another kind.
    #[inline(always)]
    pub(super) fn expect(&self, kind: Kind) -> Result<(), DecodeError> {
        if self.kind == kind {
            Ok(())
        } else {
            Err(DecodeError::Kind {
                got: self.kind as u8,
            })
        }
    }

    /// Refuses a path or generation in a kind that has none.
    pub(super) fn without_path(&self) -> Result<(), DecodeError> {
        zero(self.path.into(), 2)?;
        zero(self.generation.into(), 3)
    }

    /// Refuses a PSN in a kind that has none.
    pub(super) fn without_psn(&self) -> Result<(), DecodeError> {
        zero(self.psn.into(), 8)
    }

    /// Refuses a TSN in a kind that has none.
    pub(super) fn without_tsn(&self) -> Result<(), DecodeError> {
        zero(self.tsn.into(), 12)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 16] = [
        0x14, 0x03, 7, 9, 0xa1, 0xa2, 0xa3, 0xa4, 0xb1, 0xb2, 0xb3, 0xb4, 0xc1, 0xc2, 0xc3, 0xc4,
    ];

    // spec: MR-WIRE-002
    #[test]
    fn exact_bytes() {
        let header = Header {
            kind: Kind::Data,
            flags: Flags::ACK_REQUEST | Flags::RETRANSMISSION,
            path: 7,
            generation: 9,
            connection: 0xa1a2_a3a4,
            psn: 0xb1b2_b3b4,
            tsn: 0xc1c2_c3c4,
        };
        let mut bytes = [0; 16];
        header.encode(&mut bytes);
        assert_eq!(bytes, BYTES);
        assert_eq!(Header::decode(&bytes), Ok(header));
    }

    // spec: MR-WIRE-004, MR-WIRE-005, MR-WIRE-006
    #[test]
    fn every_first_byte_and_flag() {
        for first in 0..=255u8 {
            for flags in 0..=255u8 {
                let mut bytes = BYTES;
                bytes[0] = first;
                bytes[1] = flags;
                let kind = Kind::from_u8(first & 15);
                let expected = match (first >> 4, kind) {
                    (1, None) => Err(DecodeError::Kind { got: first & 15 }),
                    (1, Some(kind)) => {
                        let allowed = match kind {
                            Kind::Data => 0b0111,
                            Kind::Ack | Kind::FenceAck => 0b0111_1000,
                            _ => 0,
                        };
                        if flags & !allowed == 0 {
                            Ok(kind)
                        } else {
                            Err(DecodeError::Flags { kind, got: flags })
                        }
                    }
                    (got, _) => Err(DecodeError::Version { got }),
                };
                assert_eq!(Header::decode(&bytes).map(|h| h.kind), expected);
            }
        }
    }

    #[test]
    fn kinds_are_numbered_in_order() {
        for (number, kind) in (0u8..).zip(Kind::ALL) {
            assert_eq!(kind as u8, number);
            assert_eq!(Kind::from_u8(number), Some(kind));
            assert_eq!(kind.is_setup(), number < 4);
        }
        assert_eq!(Kind::from_u8(13), None);
    }

    #[test]
    fn flags_are_a_set() {
        let mut flags = Flags::NONE.with(Flags::SOLICITED, true);
        flags = flags | Flags::ACK_REQUEST;
        assert_eq!(flags, Flags(5));
        assert_eq!(flags.with(Flags::SOLICITED, false), Flags::ACK_REQUEST);
        assert_eq!(flags.and(Flags::SOLICITED), Flags::SOLICITED);
        assert!(!flags.contains(Flags::SOLICITED | Flags::REDIRECT));
    }
}
