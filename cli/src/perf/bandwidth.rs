//! As many operations as the connection takes.

use super::figures::{Outcome, Tally};
use super::verify::Check;
use super::{Bench, Limit};
use crate::failure::Failure;
use crate::output;
use crate::units::gbit_per_second;
use metaroce_soft::Phase;
use metaroce_soft::core::work::{Completion, PostError};
use std::time::{Duration, Instant};

/// Measures one size.
pub fn run(bench: &Bench<'_>, size: u64) -> Result<Outcome, Failure> {
    let limit = bench.arguments.limit(size);
    let mut check = if bench.arguments.verify {
        Some(Check::new(bench, size)?)
    } else {
        None
    };
    let mut tally = Tally::default();
    let mut elapsed = Duration::ZERO;
    let mut wrong = None;
    let spinner = output::spinner(bench.quiet);
    while tally.succeeded < limit.count
        && elapsed < limit.duration
        && !tally.is_over()
        && !bench.interrupt.requested()
        && wrong.is_none()
    {
        // Checked operations go in laps over the window, each of which is checked before the next overwrites it.
        let lap = match &mut check {
            Some(check) => {
                check.prepare(bench, &mut tally)?;
                Limit {
                    count: check.lap(limit.count - tally.succeeded),
                    duration: limit.duration - elapsed,
                }
            }
            None => Limit {
                count: limit.count,
                duration: limit.duration,
            },
        };
        let before = tally.succeeded;
        elapsed += lap_of(bench, size, lap, &mut tally, |done, time| {
            spinner.set_message(format!(
                "{size} bytes: {:.2} Gbit/s",
                gbit_per_second(done * size, time)
            ));
        });
        if let Some(check) = &mut check {
            if !tally.is_over() {
                wrong = check.check(bench, tally.succeeded - before, &mut tally)?;
            }
        } else {
            break;
        }
    }
    spinner.finish_and_clear();
    let verified_bytes = check.map(|check| check.verified());
    Ok(Outcome {
        size,
        operations: tally.succeeded,
        elapsed,
        latency: None,
        tally,
        verified_bytes,
        wrong,
    })
}

/// Keeps operations open until the limit, then waits for those still open; returns the time it took.
fn lap_of(
    bench: &Bench<'_>,
    size: u64,
    limit: Limit,
    tally: &mut Tally,
    mut show: impl FnMut(u64, Duration),
) -> Duration {
    let depth = u64::from(bench.arguments.depth);
    let queue = bench.nic.completions();
    let (first_posted, first_succeeded) = (tally.posted, tally.succeeded);
    let start = Instant::now();
    let mut progress_at = start;
    let mut end = start;
    let mut shown_at = start;
    let mut completions: Vec<Completion> = Vec::with_capacity(128);
    loop {
        let stopping = tally.is_over()
            || tally.posted - first_posted >= limit.count
            || start.elapsed() >= limit.duration
            || bench.interrupt.requested();
        while !stopping && tally.open() < depth && tally.posted - first_posted < limit.count {
            match bench.post(size, tally.posted) {
                Ok(()) => tally.posted += 1,
                Err(metaroce_soft::Error::Post(PostError::QueueFull)) if tally.open() > 0 => break,
                Err(error) => {
                    tally.refused = Some(error.to_string());
                    break;
                }
            }
        }
        if tally.open() == 0 {
            break;
        }
        if let Phase::Closed(reason) = bench.session.connection.phase() {
            tally.closed = Some(format!("{reason:?}"));
            // All completions were reported before the end.
            if queue.is_empty() {
                break;
            }
        }
        let deadline = Instant::now() + Duration::from_millis(100);
        bench.nic.progress_until(Some(deadline), || {
            !queue.is_empty() || matches!(bench.session.connection.phase(), Phase::Closed(_))
        });
        bench.watch.look(bench.nic);
        completions.clear();
        queue.poll_into(&mut completions, 128);
        let now = Instant::now();
        for completion in &completions {
            tally.count(completion.status, now - progress_at);
        }
        if !completions.is_empty() {
            end = now;
            if tally.failed.is_empty() {
                progress_at = now;
            }
        }
        if now - shown_at > Duration::from_millis(200) {
            shown_at = now;
            show(tally.succeeded - first_succeeded, now - start);
        }
    }
    end - start
}
