//! Which path carries the next packet.
//!
//! Stride scheduling: each packet moves its path's virtual time by 1/weight, and the path that is furthest behind goes next. Paths
//! that may carry wait in a wheel of 32 buckets of virtual time with a bitmap of the occupied ones, so the choice is one
//! find-first-set and does not depend on the number of paths. Equal paths get equal shares; a path that carries
//! twice the window gets twice the packets.

use crate::storage::Table;

const BUCKETS: u32 = 32;
/// Fraction bits of virtual time below one bucket.
const FRACTION: u32 = 8;
const NONE: u8 = u8::MAX;

/// The wheel. Path numbers are below `PATHS`, at most 255. A bucket's paths are in a circle, of which `tail` is the last.
#[derive(Debug)]
pub struct Wheel<const PATHS: usize> {
    virtual_time: Table<u32, PATHS>,
    /// The path behind it in its bucket; NONE: it does not wait.
    next: Table<u8, PATHS>,
    tail: Table<u8, { BUCKETS as usize }>,
    /// Bit b: bucket b (modulo 32) has paths.
    occupied: u32,
    /// Virtual time of the bucket that is served, in buckets.
    now: u32,
}

impl<const PATHS: usize> Default for Wheel<PATHS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const PATHS: usize> Wheel<PATHS> {
    /// No path waits.
    #[must_use]
    pub const fn new() -> Self {
        const { assert!(PATHS <= 255, "path numbers are 8 bits, 255 is none") };
        Self {
            virtual_time: Table::filled(0),
            next: Table::filled(NONE),
            tail: Table::filled(NONE),
            occupied: 0,
            now: 0,
        }
    }

    /// Whether the path is in the wheel.
    #[inline(always)]
    #[must_use]
    pub fn is_waiting(&self, path: u8) -> bool {
        *self.next.at(u16::from(path)) != NONE
    }

    /// Whether no path waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.occupied == 0
    }

    /// Lets a path wait for its turn, if it does not already. One that was away starts at the present.
    #[inline]
    pub fn insert(&mut self, path: u8) {
        if self.is_waiting(path) {
            return;
        }
        let index = u16::from(path);
        let present = self.now << FRACTION;
        let time = self.virtual_time.at_mut(index);
        let ahead = time.wrapping_sub(present);
        if ahead >= 1 << 31 {
            *time = present;
        } else if ahead >= BUCKETS << FRACTION {
            *time = present.wrapping_add((BUCKETS << FRACTION) - 1);
        }
        let bucket = (*time >> FRACTION) % BUCKETS;
        let tail = self.tail.at_mut(bucket as u16);
        let last = core::mem::replace(tail, path);
        let first = if self.occupied >> bucket & 1 == 0 {
            self.occupied |= 1 << bucket;
            path
        } else {
            core::mem::replace(self.next.at_mut(u16::from(last)), path)
        };
        *self.next.at_mut(index) = first;
    }

    /// Puts a path back that was taken and carried nothing: its turn comes first again, before those that are put back already.
    #[inline]
    pub fn put_back(&mut self, path: u8) {
        let index = u16::from(path);
        *self.virtual_time.at_mut(index) = self.now << FRACTION;
        let bucket = self.now % BUCKETS;
        let tail = self.tail.at_mut(bucket as u16);
        if self.occupied >> bucket & 1 == 0 {
            self.occupied |= 1 << bucket;
            *tail = path;
            *self.next.at_mut(index) = path;
        } else {
            let last = u16::from(*tail);
            *self.next.at_mut(index) = core::mem::replace(self.next.at_mut(last), path);
        }
    }

    /// Takes the path out whose turn it is.
    #[inline]
    pub fn take(&mut self) -> Option<u8> {
        if self.occupied == 0 {
            return None;
        }
        let current = self.now % BUCKETS;
        let distance = self.occupied.rotate_right(current).trailing_zeros();
        self.now = self.now.wrapping_add(distance) & (u32::MAX >> FRACTION);
        let bucket = (current + distance) % BUCKETS;
        let last = u16::from(*self.tail.at(bucket as u16));
        let path = *self.next.at(last);
        let next = core::mem::replace(self.next.at_mut(u16::from(path)), NONE);
        if last == u16::from(path) {
            self.occupied &= !(1 << bucket);
        } else {
            *self.next.at_mut(last) = next;
        }
        Some(path)
    }

    /// Moves a path's virtual time on for `packets` that it carries. `window` is the sum of the weights of `count` paths, in any unit:
    /// a path of mean weight moves by four buckets a packet.
    #[inline]
    // spec: MR-PATH-018
    pub fn charge(&mut self, path: u8, packets: u32, weight: u32, window: u32, count: u16) {
        let (window, count) = (u64::from(window), u64::from(count));
        let scaled = u64::from(weight) * count;
        let stride = if window.wrapping_sub(scaled) < count {
            4 << FRACTION
        } else {
            let stride = (window << (2 + FRACTION)) / scaled.max(1);
            stride.clamp(1 << (FRACTION - 4), 31 << FRACTION) as u32
        };
        let present = self.now << FRACTION;
        let time = self.virtual_time.at_mut(u16::from(path));
        if time.wrapping_sub(present) >= 1 << 31 {
            *time = present;
        }
        *time = time.wrapping_add(stride.saturating_mul(packets).min(31 << FRACTION));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run<const P: usize>(weights: [u32; P], rounds: u32) -> [u32; P] {
        let mut wheel = Wheel::<P>::new();
        let window = weights.iter().sum();
        let mut carried = [0; P];
        for path in 0..P as u8 {
            wheel.insert(path);
        }
        for _ in 0..rounds {
            let path = wheel.take().unwrap();
            carried[path as usize] += 1;
            wheel.charge(path, 1, weights[path as usize], window, P as u16);
            wheel.insert(path);
        }
        carried
    }

    // spec: MR-PATH-018
    #[test]
    fn equal_paths_get_equal_shares() {
        let carried = run([7; 64], 64 * 100);
        assert!(carried.iter().all(|&packets| packets == 100), "{carried:?}");
    }

    #[test]
    fn shares_follow_the_weights() {
        let weights = [1000, 2000, 4000, 500];
        let carried = run(weights, 75_000);
        for (packets, weight) in carried.iter().zip(weights) {
            let share = f64::from(weight) * 10.0;
            assert!(
                (f64::from(*packets) - share).abs() < share * 0.03,
                "{carried:?}"
            );
        }
    }

    proptest! {
        /// Whatever is inserted and taken, each waiting path comes out once, and time never runs into a wall.
        #[test]
        fn nothing_is_lost_or_doubled(start: u32, steps in proptest::collection::vec((0u8..10, 1u32..100_000, any::<bool>()), 1..500)) {
            let mut wheel = Wheel::<10>::new();
            wheel.now = start & (u32::MAX >> FRACTION);
            let mut waiting = std::collections::BTreeSet::new();
            for (path, weight, take) in steps {
                if take {
                    let taken = wheel.take();
                    prop_assert_eq!(taken.is_none(), waiting.is_empty());
                    if let Some(path) = taken {
                        if weight % 3 == 0 {
                            wheel.put_back(path);
                            prop_assert_eq!(wheel.take(), Some(path));
                        }
                        prop_assert!(waiting.remove(&path));
                        wheel.charge(path, 1, weight, 1000, 1);
                    }
                } else { wheel.insert(path); waiting.insert(path); }
                for path in 0..10 { prop_assert_eq!(wheel.is_waiting(path), waiting.contains(&path)); }
            }
            while let Some(path) = wheel.take() { prop_assert!(waiting.remove(&path)); }
            prop_assert!(waiting.is_empty());
        }
    }
}
