//! Programs from crates.io, parts of the toolchain, and the nightly toolchain that fuzzing needs.

use super::Need;
use crate::process;

/// (crate and program, version installed when there is none, what for)
const TOOLS: &[(&str, &str, &str)] = &[
    (
        "cargo-nextest",
        "0.9.128",
        "test runner (steps tests, planted, netns)",
    ),
    (
        "cargo-deny",
        "0.20.2",
        "licences and sources of dependencies (step deny)",
    ),
    ("cargo-fuzz", "0.13.2", "fuzzing (step fuzz)"),
    ("defmt-print", "1.2.0", "what firmware logs (step firmware)"),
    ("duvet", "0.4.3", "requirements report (step traceability)"),
];

pub fn needs() -> Vec<Need> {
    let mut needs = vec![component("rustfmt", "fmt"), component("clippy", "clippy")];
    needs.extend(
        TOOLS
            .iter()
            .map(|&(name, version, why)| tool(name, version, why)),
    );
    needs.push(nightly());
    needs
}

/// `--debug`: these tools spend their time in rustc and the file system, and compile in a
/// quarter of the time this way.
fn tool(name: &'static str, version: &'static str, why: &'static str) -> Need {
    let crate_version = format!("{name}@{version}");
    Need {
        what: name.to_owned(),
        why,
        present: process::which(name).is_some(),
        root: false,
        by_hand: format!("cargo install --locked --debug {crate_version}"),
        install: Box::new(move || {
            let target = crate::workspace::target_dir()?.join("tools");
            let arguments = ["install", "--locked", "--debug", "--quiet", &crate_version];
            process::run(process::cargo(arguments).env("CARGO_TARGET_DIR", target))
        }),
    }
}

fn component(name: &'static str, subcommand: &'static str) -> Need {
    Need {
        what: name.to_owned(),
        why: "toolchain component (step of the same name)",
        present: process::succeeds(&mut process::cargo([subcommand, "--version"])),
        root: false,
        by_hand: format!("rustup component add {name}"),
        install: Box::new(move || {
            process::run(process::command("rustup").args(["component", "add", name]))
        }),
    }
}

fn nightly() -> Need {
    Need {
        what: "nightly toolchain".to_owned(),
        why: "sanitizer coverage (step fuzz)",
        // A rustc that is not rustup's ignores `+nightly` and says what it is.
        present: process::output(process::command("rustc").args(["+nightly", "--version"]))
            .is_ok_and(|version| version.contains("nightly")),
        root: false,
        by_hand: "rustup toolchain install nightly --profile minimal".to_owned(),
        install: Box::new(|| {
            let arguments = ["toolchain", "install", "nightly", "--profile", "minimal"];
            process::run(process::command("rustup").args(arguments))
        }),
    }
}
