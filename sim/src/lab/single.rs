//! One write on an idle network: how long does it take?

use metaroce_core::config::ConnectionConfig;

use super::setup::{Failure, Lab, Settings};
use crate::time::Time;
use crate::topology::{StarConfig, star};

/// The time from posting a write of `bytes` to its completion, on an idle star of two hosts.
///
/// # Errors
/// If it does not complete.
pub fn run(bytes: u32, paths: u8, seed: u64) -> Result<Time, Failure> {
    let topology = star(&StarConfig::new(1), seed);
    let mut lab = Lab::new(
        topology,
        &Settings {
            seed,
            ..Settings::default()
        },
    );
    let connection = lab.connect(
        0,
        1,
        ConnectionConfig {
            paths,
            ..ConnectionConfig::default()
        },
    )?;
    lab.idle(Time::from_us(200))?;
    let start = lab.sim.now();
    lab.write(0, 1, connection, 0, bytes, 1)?;
    lab.completion(start + Time::from_ms(100))?;
    let took = lab.sim.now() - start;
    lab.check_conservation()?;
    Ok(took)
}
