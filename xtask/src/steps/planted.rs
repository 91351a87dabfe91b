//! Bugs planted on purpose: does the deterministic simulation see each of them?

use anyhow::Result;

use super::code::nextest;

/// One test plants them one after the other, and each must turn a seed red. That none does without a planted bug is for
/// the step `tests`.
pub fn run() -> Result<()> {
    nextest(&[
        "--profile",
        "planted",
        "-p",
        "metaroce-sim",
        "--features",
        "metaroce-sim/planted",
    ])
}
