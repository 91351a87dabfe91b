//! What the project needs on a machine: is it there, how does it get there.

mod bare_targets;
mod cargo_tools;
mod debian;
mod sysroot;

pub use bare_targets::{TARGETS, WASM, build_command};

use anyhow::{Result, bail};

use crate::process;

/// One thing that is needed.
pub struct Need {
    /// Its name.
    pub what: String,
    /// Which step or benchmark wants it.
    pub why: &'static str,
    /// Is it here?
    pub present: bool,
    /// Does installing it need root?
    pub root: bool,
    /// What a person would type to get it.
    pub by_hand: String,
    /// How it is installed.
    pub install: Box<dyn Fn() -> Result<()>>,
}

fn needs() -> Vec<Need> {
    let mut needs = debian::needs();
    needs.extend(cargo_tools::needs());
    needs.extend(bare_targets::needs());
    needs
}

/// Reports; an error when something is missing.
pub fn check() -> Result<()> {
    let needs = needs();
    let width = needs.iter().map(|need| need.what.len()).max().unwrap_or(0);
    for need in &needs {
        let state = if need.present { "ok     " } else { "MISSING" };
        println!("{state}  {:width$}  {}", need.what, need.why);
    }
    let missing: Vec<&Need> = needs.iter().filter(|need| !need.present).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("\nTo install what is missing, as root: cargo xtask setup\nOr by hand:");
    for line in by_hand(&missing) {
        println!("  {line}");
    }
    bail!("{} of {} things are missing", missing.len(), needs.len())
}

/// Installs what is missing; without root only what needs none, and says what is left.
pub fn install() -> Result<()> {
    let missing: Vec<Need> = needs().into_iter().filter(|need| !need.present).collect();
    if missing.is_empty() {
        println!("setup: nothing is missing");
        return Ok(());
    }
    let root = process::is_root();
    let (now, later): (Vec<&Need>, Vec<&Need>) =
        missing.iter().partition(|need| root || !need.root);
    let packages = debian::packages(&now);
    if !packages.is_empty() {
        debian::install(&packages)?;
    }
    let mut failed = Vec::new();
    for need in now {
        if debian::is_package(need) {
            continue;
        }
        println!("\nsetup: {} ({})", need.what, need.why);
        if let Err(error) = (need.install)() {
            eprintln!("setup: {}: {error:#}", need.what);
            failed.push(need.what.as_str());
        }
    }
    if !later.is_empty() {
        eprintln!("\nThese need root:");
        for line in by_hand(&later) {
            eprintln!("  {line}");
        }
        bail!(
            "{} things are missing that need root; run the commands above",
            later.len()
        );
    }
    if !failed.is_empty() {
        bail!("could not be installed: {}", failed.join(", "));
    }
    let left: Vec<String> = needs()
        .into_iter()
        .filter(|n| !n.present)
        .map(|n| n.what)
        .collect();
    if !left.is_empty() {
        bail!("installed, and still not found: {}", left.join(", "));
    }
    println!("\nsetup: everything is here");
    Ok(())
}

/// Before tests: as root installs, else an error that says exactly what is missing.
pub fn for_tests() -> Result<()> {
    if process::is_root() {
        install()
    } else {
        check()
    }
}

/// Commands for a person; Debian packages in one line.
fn by_hand(missing: &[&Need]) -> Vec<String> {
    let packages = debian::packages(missing);
    let mut lines = Vec::new();
    if !packages.is_empty() {
        lines.push(debian::by_hand(&packages));
    }
    for need in missing.iter().filter(|need| !debian::is_package(need)) {
        if !lines.contains(&need.by_hand) {
            lines.push(need.by_hand.clone());
        }
    }
    lines
}
