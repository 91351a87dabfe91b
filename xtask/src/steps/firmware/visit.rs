//! The soft NIC goes to a board.

use anyhow::{Context, Result};

use super::board::Board;
use super::host_dir;
use super::namespace::Namespace;
use crate::process;

/// Frames that are dropped each way, percent.
pub const LOSSES: [&str; 3] = ["0", "1", "5"];
/// Connections at one time: as many as a device has.
pub const CONNECTIONS: usize = 2;

/// How much is asked of a board.
pub struct Pace {
    rounds: &'static str,
    mbps: &'static str,
    /// Seconds without anything, after which the visitor gives up.
    patience: &'static str,
}

/// Of one that runs about as fast as this machine.
pub const FAST: Pace = Pace {
    rounds: "100",
    mbps: "100",
    patience: "60",
};

/// Of one that a simulator goes through cycle by cycle.
pub const SLOW: Pace = Pace {
    rounds: "4",
    mbps: "1",
    patience: "120",
};

/// Writes, reads and adds at each loss. The visitor checks every byte, and that frames were dropped.
pub fn all(namespace: &Namespace, board: &Board, pace: &Pace) -> Result<()> {
    for loss in LOSSES {
        let mut peer = namespace.command(host_dir()?.join("debug/metaroce-device-peer"));
        peer.args(["192.0.2.1:0", "192.0.2.2:4793", "--loss", loss])
            .args(["--connections", &CONNECTIONS.to_string()])
            .args(["--rounds", pace.rounds, "--mbps", pace.mbps])
            .args(["--timeout", pace.patience]);
        let name = board.name();
        let said =
            process::output(&mut peer).with_context(|| format!("{name}, {loss} % dropped"))?;
        println!("{name}, {loss} % dropped: {}", said.trim());
    }
    Ok(())
}
