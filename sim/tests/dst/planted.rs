//! Does this test see bugs? Each that can be planted in the core must turn a seed red.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use metaroce_core::planted::{Bug, plant};

use super::judge;

/// Seeds for each bug: the rarest shows in one of several hundred.
const SEEDS: u64 = 6_000;

/// The first seed found that a planted bug turns red, on all cores.
fn caught_by() -> Option<u64> {
    let (next, done, found) = (AtomicU64::new(1), AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > SEEDS {
                        return;
                    }
                    if judge(seed, false).is_err() {
                        done.store(true, Ordering::Relaxed);
                        found.store(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    Some(found.into_inner()).filter(|seed| *seed != 0)
}

#[test]
fn dst_every_planted_bug_is_caught() {
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        plant(Some(bug));
        match caught_by() {
            Some(seed) => println!("{bug:?}: caught by seed {seed}"),
            None => missed.push(bug),
        }
    }
    plant(None);
    assert!(missed.is_empty(), "missed: {missed:?}");
}
