//! `cargo xtask bench`.

mod callgrind;
mod cost;

use anyhow::Result;

#[derive(clap::Args)]
pub struct Args {
    /// One benchmark; without a name, all of them.
    name: Option<Name>,
    /// One JSON object per line instead of tables.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Name {
    /// Instructions per data packet, both ends, in memory: this core beside other transports.
    Cost,
}

pub fn run(args: &Args) -> Result<()> {
    match args.name {
        Some(Name::Cost) | None => cost::run(args.json),
    }
}
