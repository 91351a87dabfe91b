//! Which UDP source port a path uses next: values not in use, not lately failed, spread by a hash.

use crate::storage::Table;

const REMEMBERED: usize = 8;
const NO_PLANE: u8 = u8::MAX;

/// Chooses entropy indices and avoids those that failed.
#[derive(Debug)]
pub struct EntropyChooser {
    state: u32,
    /// Of plane and value; NO_PLANE: none.
    failed_planes: Table<u8, REMEMBERED>,
    failed: Table<u16, REMEMBERED>,
    next_failed: u16,
}

impl EntropyChooser {
    /// A chooser whose sequence depends on `seed`.
    #[must_use]
    pub const fn new(seed: u32) -> Self {
        Self {
            state: seed,
            failed_planes: Table::filled(NO_PLANE),
            failed: Table::filled(0),
            next_failed: 0,
        }
    }

    /// Remembers that `entropy` failed on `plane`; the oldest of eight memories gives way.
    pub fn avoid(&mut self, plane: u8, entropy: u16) {
        *self.failed_planes.at_mut(self.next_failed) = plane;
        *self.failed.at_mut(self.next_failed) = entropy;
        self.next_failed = (self.next_failed + 1) % REMEMBERED as u16;
    }

    /// A value below `count` that is neither remembered as failed nor `taken`. If none is found in a bounded number of
    /// tries, any value.
    // spec: MR-PATH-021
    pub fn choose(&mut self, plane: u8, count: u16, taken: impl Fn(u16) -> bool) -> u16 {
        let mut candidate = 0;
        let tries = u32::from(count).min(64);
        for _ in 0..=tries {
            candidate = self.random(count);
            if !taken(candidate)
                && !self
                    .failed_planes
                    .iter()
                    .zip(self.failed.iter())
                    .any(|(failed, value)| *failed == plane && *value == candidate)
            {
                break;
            }
        }
        candidate
    }

    /// Any other value than `current`, if there is one.
    pub fn other(&mut self, current: u16, count: u16) -> u16 {
        let step = 1 + self.random(count.max(2) - 1);
        ((u32::from(current) + u32::from(step)) % u32::from(count.max(1))) as u16
    }

    /// Uniform below `count` (Lehmer-style multiply of a Weyl sequence, as in splitmix; spread is all that is needed here).
    pub fn random(&mut self, count: u16) -> u16 {
        self.state = self.state.wrapping_add(0x9e37_79b9);
        let mut x = self.state;
        x = (x ^ x >> 16).wrapping_mul(0x85eb_ca6b);
        x = (x ^ x >> 13).wrapping_mul(0xc2b2_ae35);
        x ^= x >> 16;
        ((u64::from(x) * u64::from(count)) >> 32) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: MR-PATH-021
    #[test]
    fn failed_and_taken_values_are_avoided() {
        let mut chooser = EntropyChooser::new(1);
        for failed in 0..8 {
            chooser.avoid(0, failed);
        }
        for _ in 0..500 {
            let value = chooser.choose(0, 16, |value| value == 9);
            assert!(value >= 8 && value != 9 && value < 16, "{value}");
        }
        // Another plane is another fabric.
        assert!((0..200).any(|_| chooser.choose(1, 16, |_| false) < 8));
    }

    #[test]
    fn it_always_answers() {
        let mut chooser = EntropyChooser::new(2);
        assert_eq!(chooser.choose(0, 1, |_| true), 0);
        assert_eq!(chooser.other(0, 1), 0);
        for current in 0..5 {
            assert_ne!(chooser.other(current, 5), current);
        }
    }
}
