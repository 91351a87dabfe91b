//! Steps on the workspace's code as a whole.

use anyhow::Result;

use crate::process::{cargo, run, run_quoting_its_end};
use crate::workspace;

/// The manifests of all workspaces in the tree.
fn manifests() -> Vec<String> {
    [
        "Cargo.toml",
        "targets/linkcheck/Cargo.toml",
        "fuzz/Cargo.toml",
        "fpga-soc/Cargo.toml",
    ]
    .into_iter()
    .filter(|manifest| workspace::root().join(manifest).exists())
    .map(str::to_owned)
    .collect()
}

pub fn fmt() -> Result<()> {
    for manifest in manifests() {
        run(&mut cargo([
            "fmt",
            "--all",
            "--check",
            "--manifest-path",
            &manifest,
        ]))?;
    }
    Ok(())
}

pub fn clippy() -> Result<()> {
    let features = workspace::all_features()?;
    let mut clippy = cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--quiet",
    ]);
    clippy.args(["--features", &features, "--", "-Dwarnings"]);
    run(&mut clippy)
}

pub fn deny() -> Result<()> {
    for manifest in manifests() {
        run(&mut cargo([
            "deny",
            "--manifest-path",
            &manifest,
            "--workspace",
            "--all-features",
            "--locked",
            "check",
            // Not every workspace has what an exception is for.
            "--allow",
            "license-exception-not-encountered",
            "licenses",
            "bans",
            "sources",
        ]))?;
    }
    Ok(())
}

/// Runs tests. An error has what they said last.
pub fn nextest(arguments: &[&str]) -> Result<()> {
    let every = ["nextest", "run", "--locked", "--cargo-profile", "test-fast"];
    run_quoting_its_end(cargo(every).args(arguments))
}

pub fn tests() -> Result<()> {
    let features = workspace::test_features()?;
    // Benchmarks have no tests; `cargo xtask bench` runs them.
    let targets = ["--workspace", "--lib", "--bins", "--tests", "--examples"];
    nextest(&[&targets[..], &["--features", &features]].concat())
}

pub fn doctests() -> Result<()> {
    let features = workspace::test_features()?;
    run(&mut cargo([
        "test",
        "--doc",
        "--workspace",
        "--locked",
        "--features",
        &features,
    ]))
}

pub fn docs() -> Result<()> {
    let features = workspace::all_features()?;
    let mut doc = cargo(["doc", "--workspace", "--no-deps", "--locked", "--quiet"]);
    run(doc
        .args(["--features", &features])
        .env("RUSTDOCFLAGS", "-Dwarnings"))
}
