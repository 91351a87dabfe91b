//! The pages, one a file.

pub mod buffers;
pub mod by_load;
pub mod cloud;
pub mod collectives;
pub mod failure;
pub mod incast;
pub mod kv_cache;
pub mod loss;
pub mod permutation;
pub mod planes;
pub mod rivals;
pub mod scale_across;

use super::results::{Experiment, Results};
use metaroce_sim::scenario::Report;

/// The ready scenarios.
mod scenarios {
    macro_rules! scenario {
        ($name:ident, $file:literal) => {
            pub const $name: &str = include_str!(concat!("../../../../scenarios/", $file, ".toml"));
        };
    }
    scenario!(BUFFERS, "buffers");
    scenario!(CLOUD, "cloud");
    scenario!(COLLECTIVES, "collectives");
    scenario!(FAILURE, "failure");
    scenario!(INCAST, "incast");
    scenario!(KV_CACHE, "kv-cache");
    scenario!(LOSS, "loss");
    scenario!(PERMUTATION, "permutation");
    scenario!(PLANES, "planes");
    scenario!(SCALE_ACROSS, "scale-across");
}

/// When the last transfer was acknowledged, us.
fn last_us(report: &Report) -> f64 {
    report.summary.acknowledged_us.max
}

/// The middle transfer, us.
fn median_us(report: &Report) -> f64 {
    report.summary.acknowledged_us.p50
}

/// The longest queue of any port, kB.
fn queue_kb(report: &Report) -> f64 {
    report
        .ports
        .iter()
        .map(|port| port.max_queue_bytes)
        .max()
        .unwrap_or(0) as f64
        / 1e3
}
