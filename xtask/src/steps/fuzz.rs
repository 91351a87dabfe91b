//! Fuzz targets, briefly.

use std::fs;

use anyhow::{Result, bail};

use crate::process::{self, cargo, output};
use crate::workspace;

const SECONDS: u32 = 20;

/// Every target of `fuzz/` for [`SECONDS`], from the inputs in `fuzz/seeds/TARGET` if there are
/// any. What it finds on the way stays in the target folder; a failing input is kept in
/// `fuzz/artifacts`.
pub fn run() -> Result<()> {
    if !workspace::root().join("fuzz/Cargo.toml").exists() {
        bail!("there is no fuzz/Cargo.toml");
    }
    let names = output(&mut cargo(["+nightly", "fuzz", "list"]))?;
    let names: Vec<&str> = names
        .lines()
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    if names.is_empty() {
        bail!("fuzz/ has no fuzz target");
    }
    let target = workspace::target_dir()?.join("fuzz");
    for name in names {
        let corpus = target.join("corpus").join(name);
        fs::create_dir_all(&corpus)?;
        let mut fuzz = cargo(["+nightly", "fuzz", "run", "--target-dir"]);
        fuzz.arg(&target).arg(name).arg(corpus);
        let seeds = workspace::root().join("fuzz/seeds").join(name);
        if seeds.is_dir() {
            fuzz.arg(seeds);
        }
        fuzz.args([
            "--",
            &format!("-max_total_time={SECONDS}"),
            "-print_final_stats=1",
        ]);
        process::run(&mut fuzz)?;
    }
    Ok(())
}
