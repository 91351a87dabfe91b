//! What a data packet costs in instructions, both ends and acknowledgments together.
//!
//! Each case joins two endpoints in memory and moves bytes from one to the other. Run it by
//! `cargo xtask bench cost`, which counts the instructions inside [`measured_transfer`] with
//! callgrind. By itself, `cost run CASE` only says how many packets there were.

#![forbid(unsafe_code)]

mod link;
mod metaroce;
mod quic;
mod tcp;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

/// Two connected endpoints.
trait Pair {
    /// Moves this many bytes from one to the other, until the sender knows that they arrived or
    /// the receiver has them all; the number of packets with payload that this took.
    fn transfer(&mut self, bytes: u64) -> Result<u64>;
}

/// Something to measure.
struct Case {
    name: &'static str,
    /// What a reader must know to compare.
    remarks: &'static str,
    /// Sets up and connects; not measured.
    connect: fn() -> Result<Box<dyn Pair>>,
}

/// Moved once before anything is counted, so that windows are open and buffers warm.
const WARM_UP_BYTES: u64 = 2 << 20;
const MEASURED_BYTES: u64 = 8 << 20;

fn cases() -> Vec<Case> {
    let mut cases = metaroce::cases();
    cases.extend(tcp::cases());
    cases.extend(quic::cases());
    cases
}

#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the names of the cases.
    List,
    /// Run one case.
    Run { case: String },
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::List => cases().iter().for_each(|case| println!("{}", case.name)),
        Command::Run { case } => {
            let cases = cases();
            let case = cases
                .iter()
                .find(|c| c.name == case)
                .context("no such case")?;
            let mut pair = (case.connect)()?;
            pair.transfer(WARM_UP_BYTES)?;
            let packets = measured_transfer(pair.as_mut(), MEASURED_BYTES)?;
            let report = serde_json::json!({
                "data_packets": packets,
                "bytes": MEASURED_BYTES,
                "remarks": case.remarks,
            });
            println!("{report}");
        }
    }
    Ok(())
}

/// callgrind counts from the entry of this function to its return.
#[inline(never)]
fn measured_transfer(pair: &mut dyn Pair, bytes: u64) -> Result<u64> {
    pair.transfer(bytes)
}
