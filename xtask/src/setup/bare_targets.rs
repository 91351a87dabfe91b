//! Compiling for processors without an operating system, and for WebAssembly.
//!
//! Two ways: rustup fetches the targets, or Debian's compiler builds its own copy of the library
//! once (see [`super::sysroot`]) and compiles for them. What is here already is used; else
//! rustup is asked first, then Debian. `METAROCE_BARE_TARGETS=debian` (or `rustup`) allows one
//! way only: with `debian`, nothing is fetched but Debian packages.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Need, debian, sysroot};
use crate::process;

/// The targets that the core is built and link-checked for.
pub const TARGETS: [&str; 2] = ["riscv32imac-unknown-none-elf", "thumbv7em-none-eabihf"];
/// The target that the simulator is built and run for besides the host.
pub const WASM: &str = "wasm32-unknown-unknown";
/// All of them.
pub const ALL: [&str; 3] = [TARGETS[0], TARGETS[1], WASM];

const VARIABLE: &str = "METAROCE_BARE_TARGETS";

/// Which ways may be gone.
#[derive(Clone, Copy, PartialEq)]
enum Allowed {
    Both,
    Rustup,
    Debian,
}

pub fn needs() -> Vec<Need> {
    vec![Need {
        what: "other targets".to_owned(),
        why: "riscv32imac, thumbv7em, wasm32 (steps targets, linkcheck, wasm, explorer)",
        present: rustup_is_ready() || debian_is_ready(),
        root: !debian_may_build(),
        by_hand: by_hand(),
        install: Box::new(install),
    }]
}

/// `cargo build` for one of [`ALL`], by whichever toolchain has it.
pub fn build_command(target: &str) -> Command {
    let mut command = if debian_is_ready() {
        sysroot::cargo_build()
    } else {
        process::cargo(["build"])
    };
    command.args(["--target", target]);
    command
}

fn allowed() -> Result<Allowed> {
    match std::env::var(VARIABLE).as_deref() {
        Err(_) => Ok(Allowed::Both),
        Ok("rustup") => Ok(Allowed::Rustup),
        Ok("debian") => Ok(Allowed::Debian),
        Ok(other) => bail!("{VARIABLE} is {other:?}; it can be \"rustup\" or \"debian\""),
    }
}

fn by_hand() -> String {
    let packages = sysroot::PACKAGES.join(" ");
    let debian =
        format!("sudo apt-get install --no-install-recommends {packages} && cargo xtask setup");
    if debian_may_build() {
        return "cargo xtask setup".to_owned();
    }
    match allowed().unwrap_or(Allowed::Both) {
        Allowed::Debian => debian,
        Allowed::Rustup => format!("rustup target add {}", ALL.join(" ")),
        Allowed::Both => format!("rustup target add {}    # or: {debian}", ALL.join(" ")),
    }
}

fn install() -> Result<()> {
    let allowed = allowed()?;
    if debian_may_build() {
        return sysroot::build();
    }
    if allowed != Allowed::Debian && process::which("rustup").is_some() {
        let mut add = process::command("rustup");
        add.args(["target", "add"])
            .args(ALL)
            .env("RUSTUP_MAX_RETRIES", "1");
        if process::run(&mut add).is_ok() && rustup_is_ready() {
            return Ok(());
        }
    }
    if allowed == Allowed::Rustup {
        bail!("rustup could not add the targets");
    }
    println!("using Debian's compiler and its source");
    debian::install(&sysroot::PACKAGES)?;
    sysroot::build()
}

fn debian_is_ready() -> bool {
    allowed().is_ok_and(|allowed| allowed != Allowed::Rustup) && sysroot::is_ready()
}

/// Debian's compiler is here: the libraries can be built without fetching anything.
fn debian_may_build() -> bool {
    allowed().is_ok_and(|allowed| allowed != Allowed::Rustup) && sysroot::debian_has_compiler()
}

fn rustup_is_ready() -> bool {
    let root = toolchain_root().unwrap_or_default();
    allowed().is_ok_and(|allowed| allowed != Allowed::Debian)
        && ALL
            .iter()
            .all(|target| root.join("lib/rustlib").join(target).join("lib").is_dir())
}

fn toolchain_root() -> Result<PathBuf> {
    let text = process::output(process::command("rustc").args(["--print", "sysroot"]))?;
    Ok(PathBuf::from(
        text.lines()
            .next()
            .context("rustc --print sysroot printed nothing")?,
    ))
}
