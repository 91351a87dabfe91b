//! The system's registers: serial line, timer, interrupts, switches.

use core::arch::asm;
use core::ptr::{
    read_volatile, with_exposed_provenance, with_exposed_provenance_mut, write_volatile,
};

use metaroce_riscv::clock::Counter;

include!(concat!(env!("METAROCE_SOC"), "/csr.rs"));

/// Cycles in a microsecond.
const MEGAHERTZ: u64 = CLOCK_HZ as u64 / 1_000_000;

/// Reads a register of this system.
pub fn read(address: usize) -> u32 {
    // SAFETY: only called with addresses of this system's registers and memories.
    unsafe { read_volatile(with_exposed_provenance(address)) }
}

/// Writes a register of this system.
pub fn write(address: usize, value: u32) {
    // SAFETY: only called with addresses of this system's registers and memories.
    unsafe { write_volatile(with_exposed_provenance_mut(address), value) }
}

/// Clock and alarm.
pub struct Soc;

fn uptime() -> u64 {
    write(TIMER0_UPTIME_LATCH, 1);
    // The high word comes first.
    let high = read(TIMER0_UPTIME_CYCLES);
    u64::from(high) << 32 | u64::from(read(TIMER0_UPTIME_CYCLES + 4))
}

impl Counter for Soc {
    fn now() -> u64 {
        uptime() / MEGAHERTZ
    }

    fn set_alarm(at: u64) {
        write(TIMER0_EN, 0);
        if at == u64::MAX {
            return;
        }
        // A far one goes off early, and is set anew.
        let cycles = at.saturating_sub(Self::now()).saturating_mul(MEGAHERTZ);
        write(
            TIMER0_LOAD,
            u32::try_from(cycles).unwrap_or(u32::MAX).max(1),
        );
        write(TIMER0_RELOAD, 0);
        write(TIMER0_EN, 1);
    }
}

/// The alarm has been heard.
pub fn acknowledge_alarm() {
    write(TIMER0_EV_PENDING, 1);
}

/// Interrupts of the alarm and of the MAC.
pub fn start() {
    write(TIMER0_EN, 0);
    acknowledge_alarm();
    write(TIMER0_EV_ENABLE, 1);
    write(ETHMAC_SRAM_WRITER_EV_ENABLE, 1);
    write(ETHMAC_SRAM_READER_EV_PENDING, 1);
    write(ETHMAC_SRAM_READER_EV_ENABLE, 1);
    set_mask(1 << TIMER0_INTERRUPT | 1 << ETHMAC_INTERRUPT);
    // SAFETY: the handler is in place, and nothing relies on it being off.
    unsafe {
        riscv::register::mie::set_mext();
        riscv::interrupt::enable();
    }
}

/// Which of the system's interrupts reach the processor: VexRiscv's own register.
fn set_mask(mask: u32) {
    // SAFETY: this processor has the register.
    unsafe { asm!("csrw 0xBC0, {}", in(reg) mask) }
}

/// Does this interrupt wait?
pub fn is_pending(interrupt: u32) -> bool {
    let pending: u32;
    // SAFETY: this processor has the register.
    unsafe { asm!("csrr {}, 0xFC0", out(reg) pending) }
    pending >> interrupt & 1 != 0
}

/// Writes to the serial line.
pub fn put(bytes: &[u8]) {
    for byte in bytes {
        while read(UART_TXFULL) != 0 {}
        write(UART_RXTX, u32::from(*byte));
    }
}

/// What the switches say: the last byte of the own address, and of the peer's.
pub fn straps() -> [u8; 2] {
    let value = read(STRAPS_VALUE);
    [value as u8, (value >> 8) as u8]
}

/// Cycles of the processor.
pub fn cycles() -> u32 {
    uptime() as u32
}

/// The system has no source of randomness: connections of this board can be guessed.
pub fn secret(own: u8) -> [u8; 32] {
    let seed = uptime();
    let mut secret = [own; 32];
    for (at, place) in secret.iter_mut().enumerate() {
        *place = place.wrapping_add((seed >> (at % 8 * 8)) as u8) ^ at as u8;
    }
    secret
}

/// The end.
pub fn stop() -> ! {
    set_mask(0);
    loop {
        riscv::asm::wfi();
    }
}
