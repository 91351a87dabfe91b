//! The Wireshark dissector, run by tshark.

use anyhow::Result;

use super::code::nextest;

/// The tests whose names begin with `wireshark_` (`.config/nextest.toml` has the profile; the ordinary profile leaves
/// them out).
pub fn run() -> Result<()> {
    nextest(&["--profile", "wireshark", "-p", "metaroce-sim"])
}
