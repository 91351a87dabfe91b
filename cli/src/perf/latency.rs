//! One operation at a time.

use super::Bench;
use super::figures::{Outcome, Tally};
use crate::failure::Failure;
use hdrhistogram::Histogram;
use metaroce_soft::Phase;
use std::time::{Duration, Instant};

/// Operations that are not counted, so that everything is warm.
const WARM_UP: u64 = 100;

/// Measures one size: from posting to the completion, which a write has when the peer acknowledged it.
pub fn run(bench: &Bench<'_>, size: u64) -> Result<Outcome, Failure> {
    let limit = bench.arguments.limit(size);
    let mut histogram = Histogram::new_with_bounds(1, 60_000_000_000, 3)
        .map_err(|error| Failure::System(format!("histogram: {error}")))?;
    let mut tally = Tally::default();
    let queue = bench.nic.completions();
    let mut start = Instant::now();
    let mut measured = 0;
    while measured < limit.count
        && start.elapsed() < limit.duration
        && !tally.is_over()
        && !bench.interrupt.requested()
    {
        let posted_at = Instant::now();
        if let Err(error) = bench.post(size, tally.posted) {
            tally.refused = Some(error.to_string());
            break;
        }
        tally.posted += 1;
        let completion = loop {
            if let Some(completion) = queue.wait(Some(Duration::from_millis(100))) {
                break Some(completion);
            }
            if let Phase::Closed(reason) = bench.session.connection.phase() {
                tally.closed = Some(format!("{reason:?}"));
                break queue.poll();
            }
        };
        let took = posted_at.elapsed();
        let Some(completion) = completion else { break };
        bench.watch.look(bench.nic);
        tally.count(completion.status, took);
        if tally.succeeded == WARM_UP {
            start = Instant::now();
        } else if tally.succeeded > WARM_UP && tally.failed.is_empty() {
            measured += 1;
            histogram.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        }
    }
    Ok(Outcome {
        size,
        operations: measured,
        elapsed: start.elapsed(),
        latency: Some(histogram),
        tally,
        verified_bytes: None,
        wrong: None,
    })
}
