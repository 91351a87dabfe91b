//! Fixed-size storage that cannot panic: tables addressed by small indices, and sets of bits.
//!
//! Indices held by the core always come from the table they are used on. [`Table::at`] checks that in
//! debug builds; in release builds a wrong one would give some entry and never a panic.

/// `N` entries, addressed by `u16`.
#[derive(Debug, Clone)]
pub struct Table<T, const N: usize>([T; N]);

impl<T: Copy, const N: usize> Table<T, N> {
    /// Every entry a copy of `value`.
    #[must_use]
    pub const fn filled(value: T) -> Self {
        const { assert!(N >= 1 && N <= 0xffff, "a table has 1 to 65535 entries") };
        Self([value; N])
    }
}

impl<T, const N: usize> Table<T, N> {
    /// An index below `N`: the one given, if it is.
    #[cfg_attr(not(feature = "small"), inline(always))]
    const fn inside(index: u16) -> usize {
        debug_assert!((index as usize) < N, "an index of another table");
        if N.is_power_of_two() {
            index as usize & (N - 1)
        } else if (index as usize) < N {
            index as usize
        } else {
            0
        }
    }

    /// The entry at an index of the table's own making.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[must_use]
    #[allow(
        clippy::indexing_slicing,
        reason = "the index is below N, which the compiler sees"
    )]
    pub fn at(&self, index: u16) -> &T {
        &self.0[Self::inside(index)]
    }

    /// The entry at an index of the table's own making, to be changed.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[allow(
        clippy::indexing_slicing,
        reason = "the index is below N, which the compiler sees"
    )]
    pub fn at_mut(&mut self, index: u16) -> &mut T {
        &mut self.0[Self::inside(index)]
    }

    /// The entry at an index that somebody else supplied.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[must_use]
    pub fn get(&self, index: u16) -> Option<&T> {
        self.0.get(usize::from(index))
    }

    /// The entry at an index that somebody else supplied, to be changed.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub fn get_mut(&mut self, index: u16) -> Option<&mut T> {
        self.0.get_mut(usize::from(index))
    }

    /// All entries.
    pub fn iter(&self) -> core::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// All entries, to be changed.
    pub fn iter_mut(&mut self) -> core::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }
}

/// Copies `from` to `to`, as far as both reach. (`copy_from_slice` is a panic where the compiler does not inline it.)
#[cfg_attr(not(feature = "small"), inline(always))]
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    for (place, byte) in to.iter_mut().zip(from) {
        *place = *byte;
    }
}

/// Which of `N` records of a table are free. The links are in the records: a freed one holds the next free one. Records that were
/// never used are in no list, so that a new table needs no preparation.
#[derive(Debug)]
pub struct FreeList<const N: usize> {
    first: u16,
    fresh: u16,
    used: u16,
}

impl<const N: usize> Default for FreeList<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> FreeList<N> {
    /// The link of the last free record.
    pub const END: u16 = u16::MAX;

    /// All are free.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            first: Self::END,
            fresh: 0,
            used: 0,
        }
    }

    /// Records in use.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[must_use]
    pub const fn used(&self) -> u16 {
        self.used
    }

    /// Records that were ever used: those from here on never were.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[must_use]
    pub const fn touched(&self) -> u16 {
        self.fresh
    }

    /// Takes a record; `link` reads a free one's link.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub fn take(&mut self, link: impl FnOnce(u16) -> u16) -> Option<u16> {
        let index = if self.first != Self::END {
            let index = self.first;
            self.first = link(index);
            index
        } else if (self.fresh as usize) < N {
            self.fresh += 1;
            self.fresh - 1
        } else {
            return None;
        };
        self.used += 1;
        Some(index)
    }

    /// Gives a record back. Returns the link that is to be stored in it.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[must_use]
    pub fn give(&mut self, index: u16) -> u16 {
        self.used -= 1;
        core::mem::replace(&mut self.first, index)
    }
}

/// A set of numbers below [`Bits::CAPACITY`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bits([u64; WORDS]);

const WORDS: usize = 2;

impl Bits {
    /// The empty set.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// Members are below this.
    pub const CAPACITY: usize = 64 * WORDS;

    #[cfg_attr(not(feature = "small"), inline(always))]
    const fn word(bit: u8) -> usize {
        (bit >> 6) as usize % WORDS
    }

    /// Adds `bit` (modulo the capacity).
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub fn insert(&mut self, bit: u8) {
        self.0[Self::word(bit)] |= 1 << (bit & 63);
    }

    /// Takes `bit` (modulo the capacity) away.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub fn remove(&mut self, bit: u8) {
        self.0[Self::word(bit)] &= !(1 << (bit & 63));
    }

    /// Whether `bit` is in the set.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[must_use]
    pub fn contains(&self, bit: u8) -> bool {
        self.0[Self::word(bit)] >> (bit & 63) & 1 != 0
    }

    /// Whether nothing is in the set.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// The smallest member.
    #[cfg_attr(not(feature = "small"), inline(always))]
    #[must_use]
    pub fn first(&self) -> Option<u8> {
        let mut base = 0;
        for word in self.0 {
            if word != 0 {
                return Some(base + word.trailing_zeros() as u8);
            }
            base = base.wrapping_add(64);
        }
        None
    }

    /// The smallest member that is at least `from`, else the smallest of all.
    #[inline]
    #[must_use]
    pub fn next_from(&self, from: u8) -> Option<u8> {
        let mut word_index = Self::word(from);
        let mut word = self.0[word_index] & u64::MAX << (from & 63);
        loop {
            if word != 0 {
                return Some((word_index as u8) << 6 | word.trailing_zeros() as u8);
            }
            word_index += 1;
            match self.0.get(word_index) {
                Some(next) => word = *next,
                None => return self.first(),
            }
        }
    }

    /// Takes the smallest member out.
    #[inline]
    pub fn pop_first(&mut self) -> Option<u8> {
        let bit = self.first()?;
        self.remove(bit);
        Some(bit)
    }

    /// The members, smallest first.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let mut rest = self;
        core::iter::from_fn(move || rest.pop_first())
    }

    /// Adds all of `other`.
    #[inline]
    pub fn union(&mut self, other: Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine |= theirs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn bits_are_a_set(adds in proptest::collection::vec(0u8..128, 0..40), removes in proptest::collection::vec(0u8..128, 0..20), from in 0u8..128) {
            let mut bits = Bits::EMPTY;
            let mut model = BTreeSet::new();
            for bit in adds { bits.insert(bit); model.insert(bit); }
            for bit in removes { bits.remove(bit); model.remove(&bit); }
            prop_assert_eq!(bits.first(), model.first().copied());
            prop_assert_eq!(bits.next_from(from), model.range(from..).next().or(model.first()).copied());
            prop_assert_eq!(bits.iter().collect::<Vec<_>>(), model.iter().copied().collect::<Vec<_>>());
            for bit in 0..128 { prop_assert_eq!(bits.contains(bit), model.contains(&bit)); }
        }
    }

    #[test]
    fn a_foreign_index_is_answered_with_none() {
        let table = Table::<u8, 3>::filled(9);
        assert_eq!(table.get(2), Some(&9));
        assert_eq!(table.get(3), None);
    }
}
