//! The simulator in WebAssembly.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use super::targets;
use crate::{process, setup, workspace};

/// Seeds with which every case is run.
const SEEDS: [&str; 3] = ["1", "2", "18446744073709551615"];

/// Runs `targets/wasm` on the host and in Node.js, with overflow checks and assertions on, and compares what they print. They may
/// be built by different compilers.
pub fn run() -> Result<()> {
    let programs = Programs::build("test-fast")?;
    let [host, wasm] = programs.both("check", &SEEDS);
    let (host, wasm) = (output(host)?, output(wasm)?);
    if let Some([host, wasm]) = difference(&host, &wasm) {
        println!("host: {host}\nwasm: {wasm}");
        bail!("the first that differs: {host}");
    }
    let cases = host.lines().count();
    if cases == 0 {
        bail!("no case was run");
    }
    println!("{cases} runs, the same on the host and in WebAssembly");
    Ok(())
}

fn output(mut command: Command) -> Result<String> {
    println!("$ {}", process::shown(&command));
    process::output(&mut command)
}

/// `targets/wasm` as a program of the host and as a module.
pub struct Programs {
    host: PathBuf,
    module: PathBuf,
}

impl Programs {
    /// Builds both in a cargo profile.
    pub fn build(profile: &str) -> Result<Self> {
        let arguments = [
            "-p",
            "wasmcheck",
            "--locked",
            "--quiet",
            "--profile",
            profile,
        ];
        process::run(process::cargo(["build", "--bin", "wasmcheck"]).args(arguments))?;
        let folder = targets::target_dir()?;
        let mut build = setup::build_command(setup::WASM);
        build.arg("--lib").args(arguments);
        process::run(build.env("CARGO_TARGET_DIR", &folder))?;
        let module = folder
            .join(setup::WASM)
            .join(profile)
            .join("wasmcheck.wasm");
        let host = workspace::target_dir()?.join(profile).join("wasmcheck");
        Ok(Self { host, module })
    }

    /// The commands that run all cases with these seeds: on the host, and in WebAssembly.
    pub fn both(&self, mode: &str, seeds: &[&str]) -> [Command; 2] {
        let mut host = process::command(&self.host);
        host.arg(mode).args(seeds);
        let mut wasm = process::command("node");
        wasm.arg("targets/wasm/run.mjs")
            .arg(&self.module)
            .arg(mode)
            .args(seeds);
        [host, wasm]
    }
}

/// The first line in which two texts differ, as each has it.
fn difference<'a>(host: &'a str, wasm: &'a str) -> Option<[&'a str; 2]> {
    let (mut host, mut wasm) = (host.lines(), wasm.lines());
    loop {
        match [host.next(), wasm.next()] {
            [None, None] => return None,
            [one, other] if one == other => {}
            lines => return Some(lines.map(|line| line.unwrap_or("(nothing)"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(difference("a\nb\nc\n", "a\nx\ny\n"), Some(["b", "x"]));
        assert_eq!(difference("a\nb\n", "a\n"), Some(["b", "(nothing)"]));
    }
}
