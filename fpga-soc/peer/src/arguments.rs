//! The command line.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

const USAGE: &str = "usage: metaroce-device-peer LOCAL:PORT DEVICE:PORT [--loss PERCENT] [--rounds N] [--connections N] [--seed N] [--mbps N] [--timeout SECONDS]";

/// What it says.
#[derive(Debug)]
pub struct Arguments {
    /// Where this side is.
    pub local: SocketAddr,
    /// Where the device is.
    pub device: SocketAddr,
    /// Datagrams that are dropped each way, percent.
    pub loss: f64,
    /// Rounds of each connection.
    pub rounds: u32,
    /// Connections at one time.
    pub connections: usize,
    /// Of contents, lengths and drops.
    pub seed: u64,
    /// Rate of the line, Mbit/s.
    pub mbps: u32,
    /// After this without anything happening it is given up.
    pub timeout: Duration,
}

impl Arguments {
    /// From words.
    ///
    /// # Errors
    /// What is wrong.
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut this = Self {
            local: next(&mut words, "LOCAL:PORT")?,
            device: next(&mut words, "DEVICE:PORT")?,
            loss: 0.0,
            rounds: 50,
            connections: 2,
            seed: 1,
            mbps: 1_000,
            timeout: Duration::from_secs(30),
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--loss" => this.loss = next(&mut words, "PERCENT")?,
                "--rounds" => this.rounds = next(&mut words, "N")?,
                "--connections" => this.connections = next(&mut words, "N")?,
                "--seed" => this.seed = next(&mut words, "N")?,
                "--mbps" => this.mbps = next(&mut words, "N")?,
                "--timeout" => this.timeout = Duration::from_secs(next(&mut words, "SECONDS")?),
                other => return Err(format!("unknown option {other:?}\n{USAGE}")),
            }
        }
        if !(1..=2).contains(&this.connections) {
            return Err("--connections: a device has room for 1 or 2".to_owned());
        }
        if !(0.0..50.0).contains(&this.loss) {
            return Err("--loss: 0 to below 50 percent".to_owned());
        }
        Ok(this)
    }
}

fn next<T: FromStr>(words: &mut impl Iterator<Item = String>, what: &str) -> Result<T, String> {
    let word = words
        .next()
        .ok_or_else(|| format!("{what} is missing\n{USAGE}"))?;
    word.parse()
        .map_err(|_| format!("{word:?} is no {what}\n{USAGE}"))
}
