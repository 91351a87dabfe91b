//! The pages, one a file.

pub mod buffers;
pub mod by_load;
pub mod cloud;
pub mod collectives;
pub mod failure;
pub mod figures;
pub mod incast;
pub mod kv_cache;
pub mod loss;
pub mod permutation;
pub mod planes;
pub mod rivals;
pub mod scale_across;

use super::results::{Experiment, Results};

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
