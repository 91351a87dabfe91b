//! The explorer: its page is built, served by the command, and driven in Chromium.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{explorer, process, workspace};

/// Builds the page; compares the scenario's hash on the host with that of `metaroce sim`; then `wasm-viz/web/tests` in Chromium, on the page as
/// `metaroce explore` has it within itself.
pub fn run() -> Result<()> {
    let dist = explorer::build()?;
    let bytes = explorer::transfer_bytes(&dist)?;
    println!("the page's files, compressed: {} kB", bytes / 1000);
    let folder = workspace::target_dir()?.join("explorer");
    fs::create_dir_all(&folder)?;
    let native = folder.join("native.json");
    let example = [
        "run",
        "--release",
        "--locked",
        "--quiet",
        "-p",
        "metaroce-explorer",
    ];
    let printed = process::output(process::cargo(example).args(["--example", "native"]))?;
    fs::write(&native, &printed)?;
    // In the profile in which its tests have built most of it.
    let command = ["build", "--profile", "test-fast", "--locked", "--quiet"];
    process::run(process::cargo(command).args(["-p", "metaroce", "--bin", "metaroce"]))?;
    let metaroce = workspace::target_dir()?.join("test-fast/metaroce");
    same_hash(&metaroce, &printed)?;
    let mut server = process::command(&metaroce);
    server.args(["--json", "explore", "--no-open", "--port", "0"]);
    println!("$ {}", process::shown(&server));
    let mut served = Served(server.stdout(Stdio::piped()).spawn()?);
    let url = served.url()?;
    let mut tests = process::command("node");
    tests.current_dir(workspace::root().join("wasm-viz/web"));
    tests
        .arg("tests/run.mjs")
        .arg(url)
        .arg(&native)
        .arg(&folder);
    let result = process::run(&mut tests);
    println!("what the page looked like is in {}", folder.display());
    result
}

/// Whether a run of the command comes to what the stepped one came to.
fn same_hash(metaroce: &std::path::Path, printed: &str) -> Result<()> {
    let mut sim = process::command(metaroce);
    sim.args(["--json", "sim", "scenarios/collectives.toml", "--seed", "1"]);
    sim.args([
        "--set",
        "workload.size_bytes=256KiB",
        "--set",
        "workload.repeat=1",
    ]);
    let whole: Value = serde_json::from_str(&process::output(&mut sim)?)?;
    let stepped: Value = serde_json::from_str(printed)?;
    let hash = |value: &Value| {
        value
            .pointer("/hash")
            .or(value.pointer("/summary/hash"))
            .cloned()
    };
    match (hash(&whole), hash(&stepped)) {
        (Some(one), Some(other)) if one == other => Ok(()),
        (one, other) => {
            bail!("`metaroce sim` came to {one:?}, the explorer on the host to {other:?}")
        }
    }
}

/// The command that serves, until this is dropped.
struct Served(Child);

impl Served {
    fn url(&mut self) -> Result<String> {
        let output = self.0.stdout.take().context("no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let said: Value = serde_json::from_str(&line).context("`metaroce explore` said nothing")?;
        Ok(said["url"].as_str().context("no address")?.to_owned())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
