//! The firmware of `fpga-soc`, on the boards that this machine can be: its tests, its sizes, the core's self-test, and a soft NIC that uses
//! its memory over a network that drops frames.

mod board;
pub mod litex;
mod namespace;
mod visit;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::process::{self, cargo, is_root};
use crate::{elf, setup, workspace};

use board::Board;
use namespace::Namespace;

const MANIFEST: &str = "fpga-soc/Cargo.toml";
const RISCV: &str = setup::TARGETS[0];
const ARM: &str = setup::TARGETS[1];
/// What `docs/conversation.md` says comes out.
const CONVERSATION: &str = "hash 0xdb529ab9fbab2b66, 964 datagrams, 52 lost, over at 3660192 ns";

pub fn run() -> Result<()> {
    if !is_root() {
        bail!("network namespaces need root");
    }
    host()?;
    selftests()?;
    let namespace = Namespace::new()?;
    linux(&namespace)?;
    virt(&namespace)
}

/// What is built and tested on the host, the program for Linux among it.
fn host() -> Result<()> {
    let dir = host_dir()?;
    let run = |arguments: &[&str], last: &[&str]| {
        let mut command = cargo(arguments);
        command.args(["--locked", "--quiet", "--manifest-path", MANIFEST]);
        process::run(command.args(last).env("CARGO_TARGET_DIR", &dir))
    };
    run(&["clippy", "--all-targets"], &["--", "-Dwarnings"])?;
    run(&["test"], &[])?;
    run(&["build"], &[])
}

fn host_dir() -> Result<PathBuf> {
    Ok(workspace::target_dir()?.join("fpga-soc"))
}

/// Builds a package for a bare processor.
fn bare(package: &str, target: &str) -> Result<PathBuf> {
    let folder = super::targets::target_dir()?.join("fpga-soc");
    let mut command = setup::build_command(target);
    command
        .args(["--release", "--locked", "--quiet", "-p", package])
        .current_dir(workspace::root().join("fpga-soc"))
        .env("DEFMT_LOG", "info")
        .env("CARGO_TARGET_DIR", &folder);
    process::run(&mut command)?;
    Ok(folder.join(target).join("release").join(package))
}

/// The conversation on a RISC-V and on a Cortex-M must be the one that is written down, byte by byte.
fn selftests() -> Result<()> {
    let machines: [(&str, &str, &[&str]); 2] = [
        (
            "qemu-system-riscv32",
            RISCV,
            &["-M", "virt", "-bios", "none"],
        ),
        ("qemu-system-arm", ARM, &["-M", "mps2-an386"]),
    ];
    for (qemu, target, machine) in machines {
        let image = bare("metaroce-selftest", target)?;
        let mut command = process::command(qemu);
        command
            .args(machine)
            .args(["-nographic", "-monitor", "none", "-serial", "none"])
            .args(["-semihosting-config", "enable=on,target=native"])
            .arg("-kernel")
            .arg(image);
        let said = process::output(&mut command)?;
        println!("{target}: {}", said.trim());
        if !said.contains(CONVERSATION) {
            bail!(
                "{target}: the conversation is not the one of docs/conversation.md: {CONVERSATION}"
            );
        }
    }
    Ok(())
}

/// The firmware as a program on a TAP.
fn linux(namespace: &Namespace) -> Result<()> {
    let program = host_dir()?.join("debug/metaroce-board-linux");
    let mut command = namespace.command(program);
    command.args([namespace.tap(), "192.0.2.2"]);
    let board = Board::program("Linux", command)?;
    visit::all(namespace, &board, &visit::FAST)
}

/// The firmware in QEMU, with the figures that it says of itself.
fn virt(namespace: &Namespace) -> Result<()> {
    let image = bare("metaroce-board-virt", RISCV)?;
    sizes("riscv32 virt", &image, &VIRT)?;
    let mut command = namespace.command("qemu-system-riscv32");
    command
        .args([
            "-M",
            "virt",
            "-bios",
            "none",
            "-nographic",
            "-monitor",
            "none",
            "-serial",
            "stdio",
        ])
        // One instruction is one nanosecond: its counter of cycles counts instructions.
        .args(["-icount", "shift=0"])
        .args(["-global", "virtio-mmio.force-legacy=false"])
        .args([
            "-netdev",
            &format!(
                "tap,id=n,ifname={},script=no,downscript=no",
                namespace.tap()
            ),
        ])
        .args([
            "-device",
            "virtio-net-device,netdev=n,mac=52:54:00:00:00:02",
        ])
        .arg("-kernel")
        .arg(&image);
    let mut board = Board::defmt("riscv32 virt in QEMU", command, &image)?;
    visit::all(namespace, &board, &visit::FAST)?;
    let figures = board.figures(visit::CONNECTIONS * visit::LOSSES.len())?;
    println!("riscv32 virt, cycles are instructions: {figures}");
    Ok(())
}

/// The most that a board's firmware may take, bytes.
struct Limits {
    /// Code and constants.
    rom: u64,
    /// Variables, without stack.
    ram: u64,
}

/// Code and constants were to fit into 64 KiB: they do not. 16 KiB of the variables are QEMU's: four pages for virtio's queues.
const VIRT: Limits = Limits {
    rom: 100 << 10,
    ram: 48 << 10,
};

fn sizes(what: &str, image: &std::path::Path, limits: &Limits) -> Result<()> {
    let firmware = elf::Firmware::read(image)?;
    let sizes = firmware.sizes()?;
    println!(
        "{what}: {sizes}: ROM {} B of {}, static RAM {} B of {}",
        sizes.rom(),
        limits.rom,
        sizes.ram(),
        limits.ram
    );
    if sizes.rom() > limits.rom || sizes.ram() > limits.ram {
        bail!("{what}: the firmware has grown beyond its limit");
    }
    let allocators: Vec<String> = firmware
        .forbidden()?
        .into_iter()
        .filter(|line| line.contains("__rust_alloc") || line.contains("__rust_realloc"))
        .collect();
    allocators
        .is_empty()
        .then_some(())
        .with_context(|| format!("{what}: {}", allocators.join(", ")))
}
