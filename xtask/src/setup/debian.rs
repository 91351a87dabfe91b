//! Programs from Debian's packages.

use anyhow::{Result, bail};

use super::Need;
use crate::process;

const WHAT: &str = "Debian package ";

/// (package, a program in it, what for)
const PROGRAMS: &[(&str, &str, &str)] = &[
    ("gcc", "cc", "linking, C parts of dependencies"),
    ("g++", "c++", "libFuzzer (step fuzz)"),
    ("valgrind", "valgrind", "instruction counts (bench cost)"),
    ("iproute2", "ip", "network namespaces (step netns)"),
    ("nftables", "nft", "random loss and CE marks (step netns)"),
    (
        "ethtool",
        "ethtool",
        "offloads of veth devices (step netns)",
    ),
    ("nodejs", "node", "running WebAssembly (step wasm)"),
    ("npm", "npm", "the explorer's page (step explorer)"),
    (
        "chromium",
        "chromium",
        "the explorer in a browser (step explorer)",
    ),
    ("tshark", "tshark", "the dissector (step wireshark)"),
];

pub fn needs() -> Vec<Need> {
    let need = |&(package, program, why): &(&str, &str, &'static str)| Need {
        what: format!("{WHAT}{package}"),
        why,
        present: process::which(program).is_some(),
        root: true,
        by_hand: String::new(),
        install: Box::new(|| Ok(())),
    };
    PROGRAMS.iter().map(need).collect()
}

/// Is this a Debian package? They are installed together, by [`install`].
pub fn is_package(need: &Need) -> bool {
    need.what.starts_with(WHAT)
}

/// The packages among these needs.
pub fn packages(needs: &[&Need]) -> Vec<String> {
    needs
        .iter()
        .filter_map(|need| need.what.strip_prefix(WHAT))
        .map(str::to_owned)
        .collect()
}

pub fn by_hand(packages: &[String]) -> String {
    format!(
        "sudo apt-get update && sudo apt-get install --no-install-recommends {}",
        packages.join(" ")
    )
}

/// Installs packages; needs root.
pub fn install<S: AsRef<std::ffi::OsStr>>(packages: &[S]) -> Result<()> {
    if process::which("apt-get").is_none() {
        bail!("this system has no apt-get: install what these Debian packages hold by other means");
    }
    let apt = || {
        let mut command = process::command("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    process::run(apt().args(["-qq", "update"]))?;
    process::run(
        apt()
            .args(["-qq", "-y", "--no-install-recommends", "install"])
            .args(packages),
    )
}
