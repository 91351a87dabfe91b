//! Many runs on all processors, with a progress bar.

use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The largest connections of the core are megabytes, and are built on the stack.
const STACK: usize = 64 << 20;

/// Runs `run` for every number below `count`, `jobs` at a time (one per processor if not said), and returns what each gave.
/// One that gives nothing was interrupted: its thread takes no further ones. `known` more were done before, for the bar.
///
/// # Errors
/// The first failure; the other threads end after their present run.
pub fn run<T: Send>(
    known: usize,
    count: usize,
    jobs: Option<u16>,
    quiet: bool,
    run: impl Fn(usize) -> Result<Option<T>, Failure> + Sync,
) -> Result<Vec<Option<T>>, Failure> {
    let bar = bar(known, known + count, quiet);
    let results: Vec<Mutex<Option<T>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let failure = Mutex::new(None);
    let jobs = jobs.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        usize::from,
    );
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(count) {
            let builder = std::thread::Builder::new().stack_size(STACK);
            let spawned = builder.spawn_scoped(scope, || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(slot) = results.get(index) else {
                        return;
                    };
                    match run(index) {
                        Ok(None) => return,
                        Ok(done) => {
                            if let Ok(mut slot) = slot.lock() {
                                *slot = done;
                            }
                            bar.inc(1);
                        }
                        Err(error) => {
                            // The others end soon, too.
                            next.store(count, Ordering::Relaxed);
                            if let Ok(mut slot) = failure.lock() {
                                slot.get_or_insert(error);
                            }
                            return;
                        }
                    }
                }
            });
            if let Err(error) = spawned {
                let error = Failure::System(format!("no thread: {error}"));
                if let Ok(mut slot) = failure.lock() {
                    slot.get_or_insert(error);
                }
            }
        }
    });
    bar.finish_and_clear();
    match failure.into_inner().unwrap_or(None) {
        Some(failure) => Err(failure),
        None => Ok(results
            .into_iter()
            .map(|slot| slot.into_inner().unwrap_or(None))
            .collect()),
    }
}

fn bar(known: usize, all: usize, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(all as u64).with_position(known as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len} runs, about {eta} left");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.reset_eta();
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
