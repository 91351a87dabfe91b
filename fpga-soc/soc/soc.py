#!/usr/bin/env python3
"""The small device's system on a chip: VexRiscv (rv32imac) and LiteEth, for simulation.

`soc.py FOLDER` writes into FOLDER: `gateware/soc.v` and what it needs, and for the firmware `csr.rs` (registers) and `memory.x`
(linker script). The ROM is read from `soc_rom.init` in the folder where the simulation runs.
"""

import argparse
import json
from pathlib import Path

from litex.build.generic_platform import Pins, Subsignal
from litex.build.sim import SimPlatform
from litex.gen import LiteXModule
from litex.soc.cores.clock import *  # noqa: F403 (LiteX's modules expect it)
from litex.soc.integration.builder import Builder
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect.csr import CSRStatus
from liteeth.phy.gmii import LiteEthPHYGMII
from migen import ClockDomain

CLOCK_HZ = 50_000_000
ROM_BYTES = 128 * 1024
SRAM_BYTES = 64 * 1024
# Frames that may wait in the MAC, 2 KiB each: enough for what two peers send before they are answered.
RECEIVE_SLOTS = 16
SEND_SLOTS = 2

IO = [
    ("sys_clk", 0, Pins(1)),
    ("sys_rst", 0, Pins(1)),
    (
        "serial",
        0,
        Subsignal("source_valid", Pins(1)),
        Subsignal("source_ready", Pins(1)),
        Subsignal("source_data", Pins(8)),
        Subsignal("sink_valid", Pins(1)),
        Subsignal("sink_ready", Pins(1)),
        Subsignal("sink_data", Pins(8)),
    ),
    (
        "gmii",
        0,
        Subsignal("rx_data", Pins(8)),
        Subsignal("rx_dv", Pins(1)),
        Subsignal("rx_er", Pins(1)),
        Subsignal("tx_data", Pins(8)),
        Subsignal("tx_en", Pins(1)),
        Subsignal("tx_er", Pins(1)),
    ),
    ("straps", 0, Pins(16)),
]


class Clock(LiteXModule):
    """One clock for everything: on a board the PHY has its own."""

    def __init__(self, platform):
        self.cd_sys = ClockDomain()
        self.comb += [
            self.cd_sys.clk.eq(platform.request("sys_clk")),
            self.cd_sys.rst.eq(platform.request("sys_rst")),
        ]


class Straps(LiteXModule):
    """What a board's switches say: the last byte of its address, and above it that of the peer to go to (0: none)."""

    def __init__(self, pads):
        self.value = CSRStatus(16)
        self.comb += self.value.status.eq(pads)


class Soc(SoCCore):
    def __init__(self):
        platform = SimPlatform("SIM", IO, name="soc")
        self.crg = Clock(platform)
        super().__init__(
            platform,
            clk_freq=CLOCK_HZ,
            cpu_type="vexriscv",
            cpu_variant="imac",
            integrated_rom_size=ROM_BYTES,
            # One word: the file is replaced by the firmware.
            integrated_rom_init=[0x6F],
            integrated_sram_size=SRAM_BYTES,
            uart_name="sim",
            timer_uptime=True,
            ident="",
        )
        self.straps = Straps(platform.request("straps"))
        self.ethphy = LiteEthPHYGMII(None, platform.request("gmii"), model=True)
        self.add_ethernet(
            phy=self.ethphy, nrxslots=RECEIVE_SLOTS, ntxslots=SEND_SLOTS, with_timing_constraints=False
        )


def firmware_files(folder: Path, csr: dict) -> None:
    """The registers as Rust, and where ROM and RAM are."""
    lines = ["// Written by soc.py.\n"]

    def constant(name: str, kind: str, value: int) -> None:
        lines.append(f"#[allow(dead_code)]\npub const {name.upper()}: {kind} = {value:#x};\n")

    for name, register in csr["csr_registers"].items():
        constant(name, "usize", register["addr"])
    for name in ("timer0_interrupt", "ethmac_interrupt"):
        constant(name, "u32", csr["constants"][name])
    constant("clock_hz", "u32", CLOCK_HZ)
    constant("mac_slot_bytes", "usize", csr["constants"]["ethmac_slot_size"])
    constant("mac_receive_slots", "usize", RECEIVE_SLOTS)
    constant("mac_send_slots", "usize", SEND_SLOTS)
    constant("mac_base", "usize", csr["memories"]["ethmac"]["base"])
    (folder / "csr.rs").write_text("".join(lines))
    rom, sram = csr["memories"]["rom"], csr["memories"]["sram"]
    regions = {"TEXT": "ROM", "RODATA": "ROM", "DATA": "RAM", "BSS": "RAM", "HEAP": "RAM", "STACK": "RAM"}
    aliases = "".join(f'REGION_ALIAS("REGION_{name}", {place});\n' for name, place in regions.items())
    (folder / "memory.x").write_text(
        "MEMORY\n{\n"
        f"    ROM : ORIGIN = {rom['base']:#x}, LENGTH = {rom['size']:#x}\n"
        f"    RAM : ORIGIN = {sram['base']:#x}, LENGTH = {sram['size']:#x}\n"
        "}\n" + aliases
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    registers = folder / "csr.json"
    builder = Builder(
        Soc(),
        output_dir=str(folder),
        compile_software=False,
        compile_gateware=False,
        csr_json=str(registers),
    )
    builder.build(run=False, build_name="soc")
    firmware_files(folder, json.loads(registers.read_text()))


if __name__ == "__main__":
    main()
