//! Which packet sequence numbers have arrived: a cumulative number and bits beyond it.

use std::collections::VecDeque;

/// A set of sequence numbers that fills up from below.
#[derive(Clone, Debug, Default)]
pub struct PsnSet {
    next: u64,
    /// Bits from `next` rounded down to a multiple of 64.
    words: VecDeque<u64>,
    beyond: u32,
}

impl PsnSet {
    /// The lowest number that is not in the set.
    #[must_use]
    pub fn cumulative(&self) -> u64 {
        self.next
    }

    /// How many numbers above the lowest missing one are in it.
    #[must_use]
    pub fn out_of_order(&self) -> u32 {
        self.beyond
    }

    /// Whether it holds a number.
    #[must_use]
    pub fn contains(&self, psn: u64) -> bool {
        psn < self.next || self.word(psn / 64) >> (psn % 64) & 1 == 1
    }

    /// Adds a number; says whether it is new.
    pub fn insert(&mut self, psn: u64) -> bool {
        if self.contains(psn) {
            return false;
        }
        let index = (psn / 64 - self.next / 64) as usize;
        if self.words.len() <= index {
            self.words.resize(index + 1, 0);
        }
        self.words[index] |= 1 << (psn % 64);
        self.beyond += 1;
        while let Some(&word) = self.words.front() {
            let run = u64::from((word >> (self.next % 64)).trailing_ones());
            self.beyond -= run as u32;
            let whole = self.next % 64 + run == 64;
            self.next += run;
            if !whole {
                break;
            }
            self.words.pop_front();
        }
        true
    }

    /// 64 bits: bit i says whether `from + i` is in the set; `from` is at least the cumulative number.
    #[must_use]
    pub fn window(&self, from: u64) -> u64 {
        let (word, shift) = (from / 64, from % 64);
        let low = self.word(word) >> shift;
        if shift == 0 {
            low
        } else {
            low | self.word(word + 1) << (64 - shift)
        }
    }

    /// The word with a number divided by 64; bits below the cumulative number may be set or not.
    fn word(&self, number: u64) -> u64 {
        let index = number.saturating_sub(self.next / 64) as usize;
        self.words.get(index).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Stream};
    use std::collections::BTreeSet;

    #[test]
    fn it_agrees_with_a_plain_set_in_any_order() {
        for seed in 0..50 {
            let mut random = Stream::new(seed, Purpose::Plan, 0);
            let (mut set, mut plain) = (PsnSet::default(), BTreeSet::new());
            for _ in 0..600 {
                let psn = set.cumulative().saturating_sub(3) + random.below(150);
                assert_eq!(set.insert(psn), plain.insert(psn));
                let cumulative = (0..).find(|psn| !plain.contains(psn)).unwrap();
                assert_eq!(set.cumulative(), cumulative);
                let beyond = plain.range(cumulative..).count() as u32;
                assert_eq!(set.out_of_order(), beyond);
                let from = cumulative + random.below(80);
                let expected = (0..64)
                    .filter(|i| plain.contains(&(from + i)))
                    .fold(0, |bits, i| bits | 1 << i);
                assert_eq!(set.window(from), expected, "seed {seed}");
            }
        }
    }
}
