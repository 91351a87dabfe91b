//! The core on processors without an operating system.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::{elf, process, setup, workspace};

/// Release build of the core, without default features.
pub fn build() -> Result<()> {
    for target in setup::TARGETS {
        let mut command = setup::build_command(target);
        command.args([
            "-p",
            "metaroce-core",
            "--no-default-features",
            "--release",
            "--locked",
            "--quiet",
        ]);
        process::run(command.env("CARGO_TARGET_DIR", target_dir()?))?;
    }
    Ok(())
}

/// Links `targets/linkcheck` and looks for what must not be in it, then makes sure that the same
/// look finds panics and an allocator that are put in on purpose.
pub fn linkcheck() -> Result<()> {
    for target in setup::TARGETS {
        for small in [false, true] {
            nothing_forbidden(target, small)?;
        }
        for (feature, symbol) in SELF_TESTS {
            let found = link(target, Some(feature))?.forbidden()?;
            if !found.iter().any(|line| line.contains(symbol)) {
                bail!("{target}: the check does not see what `{feature}` puts in");
            }
        }
        println!(
            "{target}: no panic and no allocator; each of {} put in was seen",
            SELF_TESTS.len()
        );
    }
    Ok(())
}

/// As the core is, or as small as it can be: what a panic needs may be gone only because of what is inlined.
fn nothing_forbidden(target: &str, small: bool) -> Result<()> {
    let firmware = link(target, small.then_some(SMALL))?;
    let sizes = firmware.sizes()?;
    println!("{target}{}: {sizes}", if small { ", small" } else { "" });
    if sizes.text < LEAST_TEXT {
        bail!(
            "targets/linkcheck/src/datagram_path.rs calls too little of the core to say anything"
        );
    }
    let found = firmware.forbidden()?;
    for line in &found {
        println!("  {line}");
    }
    if let Some(last) = found.last() {
        bail!("{target}: {last} (all of them above)");
    }
    Ok(())
}

/// A datagram path cannot be smaller than this, in bytes.
const LEAST_TEXT: u64 = 2048;

/// The feature of `targets/linkcheck` with which the core is small.
const SMALL: &str = "small";

/// (feature of `targets/linkcheck`, what the check must then find)
const SELF_TESTS: [(&str, &str); 3] = [
    ("selftest-panic", "panicking"),
    ("selftest-index", "panic_bounds_check"),
    ("selftest-alloc", "__rust_alloc"),
];

fn link(target: &str, feature: Option<&str>) -> Result<elf::Firmware> {
    let mut command: Command = setup::build_command(target);
    command.args(["--release", "--locked", "--quiet"]);
    if let Some(feature) = feature {
        command.args(["--features", feature]);
    }
    if feature == Some(SMALL) {
        command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "z");
    }
    let folder = target_dir()?;
    command
        .env("CARGO_TARGET_DIR", &folder)
        .current_dir(workspace::root().join("targets/linkcheck"));
    process::run(&mut command)?;
    elf::Firmware::read(&folder.join(target).join("release/linkcheck"))
}

/// Apart from the host's: another compiler may have written here.
pub fn target_dir() -> Result<PathBuf> {
    Ok(workspace::target_dir()?.join("bare"))
}
