//! Tests with real processes in network namespaces.

use anyhow::{Result, bail};

use super::code::nextest;
use crate::process::is_root;

/// The tests whose names begin with `netns_`, one at a time (`.config/nextest.toml` has the
/// profile; the ordinary profile leaves them out).
pub fn run() -> Result<()> {
    if !is_root() {
        bail!("network namespaces need root");
    }
    nextest(&[
        "--profile",
        "netns",
        "-p",
        "metaroce-soft",
        "-p",
        "metaroce",
    ])
}
