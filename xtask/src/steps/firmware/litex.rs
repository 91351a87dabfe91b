//! The firmware on a LiteX system on a chip, cycle by cycle under Verilator.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::board::Board;
use super::namespace::Namespace;
use super::{Limits, RISCV, visit};
use crate::process::{self, is_root};
use crate::{elf, setup, venv, workspace};

/// Code and constants were to fit into 64 KiB: they do not.
const LIMITS: Limits = Limits {
    rom: 108 << 10,
    ram: 48 << 10,
};
/// Of `soc.py`.
const ROM_BYTES: usize = 128 << 10;
/// VexRiscv's IMAC has load-reserved and store-conditional, and no other atomic instructions.
const FEATURES: &str = "-Ctarget-feature=-a,-zaamo,+zalrsc";

pub fn run() -> Result<()> {
    if !is_root() {
        bail!("network namespaces need root");
    }
    super::host()?;
    let folder = workspace::target_dir()?.join("soc");
    let system = generate(&folder)?;
    let bench = verilate(&folder, &system)?;
    let image = firmware(&folder, &system)?;
    super::sizes("LiteX", &image, &LIMITS)?;
    let run = folder.join("run");
    fs::create_dir_all(&run)?;
    let rom = elf::Firmware::read(&image)?.rom_words(ROM_BYTES)?;
    fs::write(run.join("soc_rom.init"), rom)?;
    fs::write(run.join("soc_sram.init"), "")?;
    alone(&run, &bench, &image)?;
    visit::LOSSES
        .iter()
        .try_for_each(|loss| pair(&run, &bench, &image, loss))
}

/// The system in Verilog, its registers in Rust, its linker script.
fn generate(folder: &Path) -> Result<PathBuf> {
    let soc = workspace::root().join("fpga-soc/soc");
    let venv = venv::pinned(folder, &soc.join("requirements.txt"))?;
    let system = folder.join("system");
    process::output(venv.python(&[]).arg(soc.join("soc.py")).arg(&system))?;
    let cpu = "import pythondata_cpu_vexriscv as cpu; print(cpu.data_location)";
    let cpu = process::output(&mut venv.python(&["-c", cpu]))?;
    let cpu = Path::new(cpu.trim()).join("VexRiscv_IMAC.v");
    fs::copy(&cpu, system.join("gateware/cpu.v"))
        .with_context(|| format!("copying {}", cpu.display()))?;
    Ok(system)
}

/// The program that runs it.
fn verilate(folder: &Path, system: &Path) -> Result<PathBuf> {
    let objects = folder.join("bench");
    let mut verilator = process::command("verilator");
    verilator
        .args(["--cc", "--exe", "--build", "-O3", "-Wno-fatal", "-Wno-lint"])
        .args([
            "--top-module",
            "soc",
            "-CFLAGS",
            "-O2 -std=c++17",
            "-o",
            "bench",
            "--Mdir",
        ])
        .arg(&objects)
        .arg(system.join("gateware/soc.v"))
        .arg(system.join("gateware/cpu.v"))
        .arg(workspace::root().join("fpga-soc/soc/bench.cpp"));
    process::output(&mut verilator)?;
    Ok(objects.join("bench"))
}

fn firmware(folder: &Path, system: &Path) -> Result<PathBuf> {
    let package = "metaroce-board-litex";
    let target = folder.join("firmware");
    let mut build = setup::build_command(RISCV);
    build
        .args(["--release", "--locked", "--quiet", "-p", package])
        .current_dir(workspace::root().join("fpga-soc"))
        .env("METAROCE_SOC", system)
        .env("DEFMT_LOG", "info")
        .env("RUSTFLAGS", FEATURES)
        .env("CARGO_TARGET_DIR", &target);
    process::run(&mut build)?;
    Ok(target.join(RISCV).join("release").join(package))
}

/// A soft NIC goes to one system over a TAP.
fn alone(run: &Path, bench: &Path, image: &Path) -> Result<()> {
    let namespace = Namespace::new()?;
    let mut command = namespace.command(bench);
    command
        .args(["--tap", namespace.tap(), "--straps", "2"])
        .current_dir(run);
    let mut board = Board::defmt("LiteX", command, image)?;
    // It takes no frames before.
    board.read_until(|line| line.contains("serves"))?;
    visit::all(&namespace, &board, &visit::SLOW)?;
    let figures = board.figures(visit::CONNECTIONS * visit::LOSSES.len())?;
    println!("LiteX: {figures}");
    Ok(())
}

/// One system goes to another over a wire that drops frames.
fn pair(run: &Path, bench: &Path, image: &Path, loss: &str) -> Result<()> {
    let log = run.join("frames.log");
    let mut command = process::command(bench);
    command
        .args(["--pair", "--loss", loss, "--seed", "3"])
        .current_dir(run)
        .stderr(File::create(&log)?);
    let mut board = Board::defmt("LiteX, the first of two", command, image)?;
    board.read_until(|line| line.contains("every byte good"))?;
    let figures = board.read_until(|line| line.contains("figures: "))?;
    drop(board);
    let frames = fs::read_to_string(log)?;
    let frames = frames.lines().last().context("no frame was sent")?;
    if loss != "0" && frames.ends_with(" 0") {
        bail!("no frame was dropped of those that were to be: {frames}");
    }
    println!("two LiteX systems, {loss} % dropped: every byte good, {frames}; {figures}");
    Ok(())
}
