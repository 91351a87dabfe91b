//! Deterministic simulation: real endpoints under a seeded network that does all it can to confuse them, judged by a
//! model that knows only the promises.
//!
//! - `METAROCE_SEEDS=n` runs n seeds (default 4,000), `METAROCE_FIRST_SEED=s` from s on.
//! - `METAROCE_SEED=s` runs only seed s, and prints what happens; with `METAROCE_PACKETS=1` every packet too.
//! - `METAROCE_SECONDS=t` goes on with more seeds for t seconds.
//! - `METAROCE_FAILURES=n` stops after n failed seeds (default 12).

#![forbid(unsafe_code)]

mod arrival;
mod content;
mod effect;
mod ending;
mod endpoint;
mod fabric;
mod faults;
mod judge;
mod memory;
mod operations;
mod plan;
#[cfg(feature = "planted")]
mod planted;
mod posting;
mod verdict;
mod wireshark;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use metaroce_sim::endpoint::DropReason;
use world::{Outcome, World};

fn variable(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| match text.trim().parse() {
            Ok(number) => number,
            Err(_) => panic!("{name}: {text:?} is not a number"),
        })
}

fn run(seed: u64, verbose: bool) -> Outcome {
    let plan = plan::plan(seed);
    if verbose {
        eprintln!("{plan:#?}");
    }
    World::new(&plan, verbose).run()
}

fn print_drops(dropped: &[u64]) {
    for (index, count) in dropped.iter().enumerate().filter(|(_, count)| **count > 0) {
        println!(
            "  {count} datagrams dropped by endpoints: {}",
            DropReason::name(index)
        );
    }
}

/// Runs a seed; what went wrong, panics included.
fn judge(seed: u64, verbose: bool) -> Result<Outcome, String> {
    let result = catch_unwind(AssertUnwindSafe(|| run(seed, verbose)));
    match result {
        Ok(outcome) if outcome.violations.is_empty() => Ok(outcome),
        Ok(outcome) => Err(outcome.violations.join("\n  ")),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text =
                text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_string()));
            Err(format!("panic: {}", text.unwrap_or_default()))
        }
    }
}

#[test]
fn dst_promises_are_kept_under_every_fault() {
    if let Some(seed) = variable("METAROCE_SEED") {
        match judge(seed, true) {
            Ok(outcome) => {
                eprintln!(
                    "seed {seed}: fine, {} events, {} completions",
                    outcome.events, outcome.completions
                );
                print_drops(&outcome.dropped);
            }
            Err(error) => panic!("seed {seed}:\n  {error}"),
        }
        return;
    }
    let count = variable("METAROCE_SEEDS").unwrap_or(4_000);
    let first = variable("METAROCE_FIRST_SEED").unwrap_or(1);
    let most = variable("METAROCE_FAILURES").unwrap_or(12) as usize;
    let seconds = variable("METAROCE_SECONDS").map(Duration::from_secs);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let began = Instant::now();
    let next = AtomicU64::new(first);
    let (events, completions, runs) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let failures = std::sync::Mutex::new(Vec::new());
    let dropped = std::sync::Mutex::new([0; DropReason::COUNT]);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let more =
                        seconds.map_or(seed < first + count, |limit| began.elapsed() < limit);
                    if !more
                        || failures.lock().is_ok_and(
                            |failures: std::sync::MutexGuard<'_, Vec<_>>| failures.len() >= most,
                        )
                    {
                        break;
                    }
                    match judge(seed, false) {
                        Ok(outcome) => {
                            events.fetch_add(outcome.events, Ordering::Relaxed);
                            completions.fetch_add(outcome.completions, Ordering::Relaxed);
                            runs.fetch_add(1, Ordering::Relaxed);
                            if let Ok(mut dropped) = dropped.lock() {
                                dropped
                                    .iter_mut()
                                    .zip(&outcome.dropped)
                                    .for_each(|(sum, count)| *sum += count);
                            }
                        }
                        Err(error) => {
                            if let Ok(mut failures) = failures.lock() {
                                failures.push((seed, error));
                            }
                        }
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap_or_default();
    failures.sort();
    println!(
        "{} seeds fine, {} events, {} completions, {:.1} s",
        runs.into_inner(),
        events.into_inner(),
        completions.into_inner(),
        began.elapsed().as_secs_f64()
    );
    print_drops(&dropped.into_inner().unwrap_or([0; DropReason::COUNT]));
    for (seed, error) in &failures {
        println!(
            "seed {seed}:\n  {error}\n  replay: METAROCE_SEED={seed} cargo test -p metaroce-sim --test dst -- --nocapture"
        );
    }
    assert!(failures.is_empty(), "{} seeds failed", failures.len());
}

#[test]
fn dst_the_same_seed_is_the_same_run() {
    for seed in 1..=20 {
        let (one, two) = (run(seed, false), run(seed, false));
        assert_eq!(one.hash, two.hash, "seed {seed}");
        assert_eq!(one.events, two.events, "seed {seed}");
    }
}

#[test]
fn plans_are_sound() {
    for seed in 1..=2_000 {
        let plan = plan::plan(seed);
        let mut places: Vec<(u32, plan::Range)> = Vec::new();
        for connection in &plan.connections {
            for side in 0..2 {
                let (here, there) = (connection.hosts[side], connection.hosts[1 - side]);
                for stream in &connection.directions[side].streams {
                    places.extend(stream.receives.iter().map(|receive| (there, receive.place)));
                    for op in &stream.ops {
                        places.extend(op.source.map(|source| (here, source)));
                        match op.kind {
                            plan::Kind::Write { cell: true, .. } | plan::Kind::Send { .. } => {}
                            plan::Kind::Write { target, .. } => places.push((there, target)),
                            plan::Kind::Read { into, .. }
                            | plan::Kind::FetchAdd { into, .. }
                            | plan::Kind::CompareSwap { into, .. } => places.push((here, into)),
                        }
                    }
                }
            }
        }
        for (host, receives) in
            (0..).zip(plan.hosts.iter().map(|host| host.shared.iter().flatten()))
        {
            places.extend(receives.map(|receive| (host, receive.place)));
        }
        places.sort_by_key(|(host, place)| (*host, place.region, place.offset));
        for pair in places.windows(2) {
            let ((host, one), (other_host, other)) = (pair[0], pair[1]);
            let apart = (host, one.region) != (other_host, other.region)
                || one.offset + u64::from(one.length) < other.offset;
            assert!(apart, "seed {seed}: {one:?} and {other:?} of host {host}");
            assert!(
                other.offset + u64::from(other.length)
                    < plan.hosts[other_host as usize].lengths[other.region]
            );
        }
    }
}
