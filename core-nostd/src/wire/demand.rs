//! Bytes still queued for a peer, as one byte on a log scale.

/// Bytes still queued for a peer, on a log scale with four steps per octave.
///
/// Code 0 is 0 bytes, codes 1 to 8 are exact, and code `4 e + m` with `m` in 4..8 stands for
/// `m << e` bytes. Codes from 252 on stand for `u64::MAX`.
///
/// ```
/// use metaroce_core::wire::Demand;
/// assert_eq!(Demand::from_bytes(0).to_bytes(), 0);
/// assert_eq!(Demand::from_bytes(1_000_000).to_bytes(), 1_048_576);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Demand(pub u8);

impl Demand {
    /// Nothing is queued.
    pub const NONE: Self = Self(0);

    /// The least code that stands for at least this many bytes: never less than it, and at
    /// most a quarter more (but for the last step, to `u64::MAX`).
    #[inline]
    #[must_use]
    // spec: MR-WIRE-019
    pub const fn from_bytes(bytes: u64) -> Self {
        // The highest three bits are `m`; `e` is how far they are shifted.
        let e = (bytes | 4).ilog2() - 2;
        let m = bytes >> e;
        let up = (m << e != bytes) as u64;
        Self((4 * e as u64 + m + up) as u8)
    }

    /// The bytes that the code stands for, saturating at `u64::MAX`.
    #[inline]
    #[must_use]
    pub const fn to_bytes(self) -> u64 {
        match self.0 {
            code @ 0..4 => code as u64,
            code @ 4..252 => (4 + (code % 4) as u64) << (code / 4 - 1),
            252.. => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes_are_monotone_and_their_own_image() {
        for code in 0..252u8 {
            let bytes = Demand(code).to_bytes();
            assert_eq!(Demand::from_bytes(bytes), Demand(code));
            assert!(bytes < Demand(code + 1).to_bytes());
            assert_eq!(Demand::from_bytes(bytes + 1), Demand(code + 1));
        }
        for code in 252..=255 {
            assert_eq!(Demand(code).to_bytes(), u64::MAX);
        }
        assert_eq!(Demand::from_bytes(u64::MAX), Demand(252));
    }

    // spec: MR-WIRE-019
    #[test]
    fn known_codes() {
        let table = [
            (0, 0),
            (1, 1),
            (8, 8),
            (9, 9),
            (10, 9),
            (11, 10),
            (16, 12),
            (1024, 36),
            (1 << 20, 76),
        ];
        for (bytes, code) in table {
            assert_eq!(Demand::from_bytes(bytes), Demand(code), "{bytes}");
        }
    }

    proptest! {
        // spec: MR-WIRE-019
        #[test]
        fn rounds_up_by_a_quarter_at_most(bytes in any::<u64>(), shift in 0u32..64) {
            let bytes = bytes >> shift;
            let back = Demand::from_bytes(bytes).to_bytes();
            prop_assert!(back >= bytes);
            prop_assert!(back == u64::MAX || back - bytes <= bytes / 4);
        }
    }
}
