//! Bugs planted on purpose: does the deterministic simulation see each of them?

use anyhow::Result;

use super::code::nextest;
use crate::process::{cargo, run as run_command};

/// One test plants them one after the other, and each must turn a seed red. That none does without a planted bug is for
/// the step `tests`.
pub fn run() -> Result<()> {
    let mut command = cargo(nextest());
    command.args([
        "--profile",
        "planted",
        "-p",
        "metaroce-sim",
        "--features",
        "metaroce-sim/planted",
    ]);
    run_command(&mut command)
}
