//! A small generator (SplitMix64): fast, seedable, the same everywhere.

/// A sequence of pseudo-random numbers that its seed determines.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        (((self.next() as u128) * (bound as u128)) >> 64) as u64
    }
}
