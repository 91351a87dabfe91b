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
    ("verilator", "verilator", "a system on a chip (step litex)"),
    (
        "qemu-system-misc",
        "qemu-system-riscv32",
        "a riscv32 machine (steps firmware, bindings-c)",
    ),
    (
        "qemu-system-arm",
        "qemu-system-arm",
        "a Cortex-M (steps firmware, bindings-c)",
    ),
    ("tshark", "tshark", "the dissector (step wireshark)"),
    ("cmake", "cmake", "package files (step bindings-c)"),
    (
        "pkg-config",
        "pkg-config",
        "package files (step bindings-c)",
    ),
    (
        "gcc-arm-none-eabi",
        "arm-none-eabi-gcc",
        "C on a Cortex-M (step bindings-c)",
    ),
    (
        "gcc-riscv64-unknown-elf",
        "riscv64-unknown-elf-gcc",
        "C on RISC-V (step bindings-c)",
    ),
];

/// (package, a file in it, what for)
const FILES: &[(&str, &str, &str)] = &[
    (
        "picolibc-arm-none-eabi",
        "/usr/lib/picolibc/arm-none-eabi/picolibc.specs",
        "C library of a Cortex-M (step bindings-c)",
    ),
    (
        "picolibc-riscv64-unknown-elf",
        "/usr/lib/picolibc/riscv64-unknown-elf/picolibc.specs",
        "C library of RISC-V (step bindings-c)",
    ),
];

pub fn needs() -> Vec<Need> {
    let need = |package: &str, why: &'static str, present: bool| Need {
        what: format!("{WHAT}{package}"),
        why,
        present,
        root: true,
        by_hand: String::new(),
        install: Box::new(|| Ok(())),
    };
    let programs = PROGRAMS
        .iter()
        .map(|(package, program, why)| need(package, why, process::which(program).is_some()));
    let files = FILES
        .iter()
        .map(|(package, file, why)| need(package, why, std::path::Path::new(file).exists()));
    programs.chain(files).chain([python_venv()]).collect()
}

/// Python alone may come without what makes virtual environments.
fn python_venv() -> Need {
    let modules = ["-c", "import ensurepip, venv"];
    Need {
        what: format!("{WHAT}python3-venv"),
        why: "the Python package's tests; its tools come from PyPI (steps python, litex)",
        present: process::succeeds(process::command("python3").args(modules)),
        root: true,
        by_hand: String::new(),
        install: Box::new(|| Ok(())),
    }
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
