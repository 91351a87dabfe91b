//! `cargo xtask bench`.

mod callgrind;
mod cost;
mod wasm;

use anyhow::Result;

use crate::process;

#[derive(clap::Args)]
pub struct Args {
    /// One benchmark; without a name, all of them.
    name: Option<Name>,
    /// One JSON object per line instead of tables (only `cost`).
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Name {
    /// Instructions per data packet, both ends, in memory: this core beside other transports.
    Cost,
    /// The figures of the deterministic network, written to docs/results.
    Figures,
    /// The soft NIC on loopback beside raw UDP and quinn; fails if a target is missed.
    Loopback,
    /// The simulator in WebAssembly beside the host: packets that cross a link, per second.
    Wasm,
}

pub fn run(args: &Args) -> Result<()> {
    let each = match args.name {
        Some(name) => &[name][..],
        None => &[Name::Cost, Name::Figures, Name::Loopback, Name::Wasm][..],
    };
    for name in each {
        match name {
            Name::Cost => cost::run(args.json)?,
            Name::Figures => process::run(&mut process::cargo([
                "run",
                "--release",
                "-p",
                "metaroce-sim",
                "--example",
                "figures",
                "--",
                "all",
                "--write",
            ]))?,
            Name::Loopback => process::run(&mut process::cargo([
                "bench",
                "-p",
                "metaroce-soft",
                "--bench",
                "loopback",
                "--",
                "--repeats",
                "5",
                "--check",
            ]))?,
            Name::Wasm => wasm::run()?,
        }
    }
    Ok(())
}
