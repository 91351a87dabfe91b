//! Seeded randomness with one independent stream per purpose.
//!
//! A stream depends only on the seed, the purpose and an index: a fault that is added to a run draws from
//! a stream of its own and shifts nobody else's numbers. Integers only, so a run is the same everywhere.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The probability of something, as a threshold on 64 random bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Probability(u64);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0);
    /// (Very nearly) always.
    pub const ONE: Self = Self(u64::MAX);

    /// `p` from 0 to 1; outside of it, the nearer end.
    #[must_use]
    pub fn new(p: f64) -> Self {
        // Exact on every platform: a multiplication by a power of two and a saturating conversion.
        Self((p * 18_446_744_073_709_551_616.0) as u64)
    }

    /// `numerator` in `denominator`.
    #[must_use]
    pub const fn ratio(numerator: u64, denominator: u64) -> Self {
        if numerator >= denominator {
            return Self::ONE;
        }
        Self((((numerator as u128) << 64) / denominator as u128) as u64)
    }

    /// As a number from 0 to 1.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 18_446_744_073_709_551_616.0
    }

    /// That of one or the other of two independent things.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        // 1 - (1 - p)(1 - q), on 64 bits.
        let neither = ((!self.0 as u128) * (!other.0 as u128)) >> 64;
        if self.0 == 0 {
            other
        } else if other.0 == 0 {
            self
        } else {
            Self(!(neither as u64))
        }
    }

    /// Whether it can happen at all.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// What a stream of random numbers is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u64)]
pub enum Purpose {
    /// Independent loss.
    Loss = 1,
    /// The state of a bursty channel.
    Burst,
    /// Corruption.
    Corruption,
    /// Duplication.
    Duplication,
    /// Extra delay.
    Reordering,
    /// ECN marking between the thresholds.
    Marking,
    /// The secret of an endpoint.
    Secret,
    /// What a scenario leaves to chance (times, sizes).
    Scenario,
    /// The plan of a randomised test.
    Plan,
    /// The operations of a randomised test.
    Workload,
    /// The contents of memory.
    Contents,
    /// ECMP hash salt of a switch.
    Salt,
    /// Ports chosen by chance.
    Spray,
    /// The source ports of queue pairs.
    QueuePair,
    /// Which host plays which part of a workload.
    Placement,
    /// Times, sizes and peers of a workload.
    Traffic,
    /// The order in which a sender takes entropy values.
    Entropy,
    /// The links that a fault hits.
    FaultPlace,
    /// The seed of background traffic.
    Background,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

/// The finaliser of SplitMix64: every bit of the number changes every bit of the result half of the time.
pub(crate) const fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Stream {
    /// The stream of `seed` for the `index`-th thing of a `purpose`.
    #[must_use]
    pub fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        let state = mix(mix(mix(seed) ^ purpose as u64) ^ index);
        Self(Xoshiro256PlusPlus::seed_from_u64(state))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Whether something of this probability happens now.
    pub fn chance(&mut self, p: Probability) -> bool {
        self.bits() < p.0
    }

    /// Whether something that happens `numerator` times in `denominator` happens now.
    pub fn one_in(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// An integer below `bound` (0 for a bound of 0), uniform but for a bias below 2^-32 at small bounds.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// An integer from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// One of the items.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.bits().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_stable_and_independent() {
        let mut loss = Stream::new(1, Purpose::Loss, 0);
        let mut again = Stream::new(1, Purpose::Loss, 0);
        let mut other = Stream::new(1, Purpose::Loss, 1);
        let first = loss.bits();
        assert_eq!(first, again.bits());
        assert_ne!(first, other.bits());
        // The stream is part of what makes a run repeatable: it must not change with a dependency.
        assert_eq!(
            Stream::new(7, Purpose::Plan, 3).bits(),
            9_562_217_346_102_477_256
        );
    }

    #[test]
    fn probabilities_hold() {
        let mut stream = Stream::new(3, Purpose::Loss, 0);
        let p = Probability::new(0.1);
        let hits = (0..100_000).filter(|_| stream.chance(p)).count();
        assert!((9_600..10_400).contains(&hits), "{hits}");
        assert!(!stream.chance(Probability::ZERO));
        assert!(stream.chance(Probability::ONE));
        assert_eq!(Probability::ratio(1, 2), Probability::new(0.5));
        assert!((0..1000).all(|_| (5..=9).contains(&stream.between(5, 9))));
    }
}
