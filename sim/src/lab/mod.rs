//! Scenarios: a network, connections, work and what came of it, as functions that return figures.

pub mod failure;
pub mod fairness;
pub mod incast;
pub mod latency;
pub mod loss;
pub mod setup;
pub mod single;

use crate::topology::DATA_WIRE_BYTES;

/// Payload bytes of a full data packet.
pub const PAYLOAD_BYTES: u64 = 4096;

/// The most payload per second that a line of `mbps` carries, in bit/s.
#[must_use]
pub fn payload_limit_bps(mbps: u64) -> f64 {
    mbps as f64 * 1e6 * PAYLOAD_BYTES as f64 / DATA_WIRE_BYTES as f64
}
