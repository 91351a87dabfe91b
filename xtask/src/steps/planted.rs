//! Bugs planted on purpose: does the deterministic simulation see each of them?

use anyhow::{Result, bail};

use super::code::nextest;
use crate::process::{cargo, status};
use crate::workspace;

/// The packages that hold deterministic simulation tests.
const PACKAGES: [&str; 4] = ["-p", "metaroce-core", "-p", "metaroce-sim"];
/// Seeds for each bug, unless `METAROCE_SEEDS` says otherwise: the rarest shows in one of several hundred.
const SEEDS: &str = "2500";
/// nextest: at least one test failed (and everything was built and run).
const TESTS_FAILED: i32 = 100;

/// Every feature of `metaroce-core` that begins with `planted-` is a bug. Without any, the tests
/// of nextest's profile `planted` (names beginning with `dst_`) must pass; with each, fail.
pub fn run() -> Result<()> {
    let core = workspace::packages()?
        .into_iter()
        .find(|package| package.name == "metaroce-core");
    let features = core.map(|package| package.features).unwrap_or_default();
    let bugs: Vec<String> = features
        .into_iter()
        .filter(|f| f.starts_with("planted-"))
        .collect();
    if bugs.is_empty() {
        bail!("core-nostd/Cargo.toml lists no `planted-` feature");
    }
    match simulate(None, true)? {
        0 => {}
        code => bail!("without a planted bug the simulation does not pass (status {code})"),
    }
    let mut missed = Vec::new();
    for bug in &bugs {
        if simulate(Some(bug), false)? != 0 {
            bail!("{bug}: does not compile");
        }
        match simulate(Some(bug), true)? {
            TESTS_FAILED => println!("{bug}: caught"),
            0 => {
                println!("{bug}: MISSED");
                missed.push(bug.as_str());
            }
            code => bail!("{bug}: the tests could not be run (status {code})"),
        }
    }
    println!(
        "{} of {} planted bugs caught",
        bugs.len() - missed.len(),
        bugs.len()
    );
    if !missed.is_empty() {
        bail!("not caught: {}", missed.join(", "));
    }
    Ok(())
}

/// Builds, and if told runs, the simulation tests; nextest's status.
fn simulate(bug: Option<&str>, run: bool) -> Result<i32> {
    let mut command = cargo(nextest());
    command.args(["--profile", "planted"]).args(PACKAGES);
    if let Some(bug) = bug {
        // The variable is there for tests that want to say which bug they run with.
        command
            .args(["--features", &format!("metaroce-core/{bug}")])
            .env("METAROCE_PLANTED", bug);
        if std::env::var_os("METAROCE_SEEDS").is_none() {
            command.env("METAROCE_SEEDS", SEEDS);
        }
    }
    if !run {
        command.args(["--no-run", "--cargo-quiet"]);
    }
    status(&mut command)
}
