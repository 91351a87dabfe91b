//! The machine's registers: serial line, clock, interrupt controller, test device.

use core::ptr::{
    read_volatile, with_exposed_provenance, with_exposed_provenance_mut, write_volatile,
};

use metaroce_firmware::frame::Mac;
use metaroce_riscv::clock::Counter;
use riscv::register::{mcycle, mie};

const TEST: usize = 0x0010_0000;
const ALARM: usize = 0x0200_4000;
const TIME: usize = 0x0200_bff8;
const PLIC: usize = 0x0c00_0000;
const SERIAL: usize = 0x1000_0000;
/// A value of the test device: ends QEMU with status 1.
const FAILED: u32 = 1 << 16 | 0x3333;
/// The clock has 10 MHz.
const TICKS_PER_MICROSECOND: u64 = 10;
/// Interrupts of the machine that the virtio devices have: those from here on, one each.
pub const FIRST_VIRTIO: u32 = 1;
/// How many virtio devices the machine has place for.
pub const VIRTIO_PLACES: u32 = 8;

/// Reads a register of this machine.
pub fn read(address: usize) -> u32 {
    // SAFETY: only called with addresses of this machine's registers.
    unsafe { read_volatile(with_exposed_provenance(address)) }
}

/// Writes a register of this machine.
pub fn write(address: usize, value: u32) {
    // SAFETY: only called with addresses of this machine's registers.
    unsafe { write_volatile(with_exposed_provenance_mut(address), value) }
}

/// Clock and alarm.
pub struct Machine;

impl Counter for Machine {
    fn now() -> u64 {
        let ticks = loop {
            let high = read(TIME + 4);
            let low = read(TIME);
            if read(TIME + 4) == high {
                break u64::from(high) << 32 | u64::from(low);
            }
        };
        ticks / TICKS_PER_MICROSECOND
    }

    fn set_alarm(at: u64) {
        let ticks = at.saturating_mul(TICKS_PER_MICROSECOND);
        // Never early in between.
        write(ALARM + 4, u32::MAX);
        write(ALARM, ticks as u32);
        write(ALARM + 4, (ticks >> 32) as u32);
    }
}

/// Interrupts of the alarm and of virtio devices.
pub fn start() {
    Machine::set_alarm(u64::MAX);
    for source in FIRST_VIRTIO..FIRST_VIRTIO + VIRTIO_PLACES {
        write(PLIC + 4 * source as usize, 1);
    }
    write(PLIC + 0x2000, ((1 << VIRTIO_PLACES) - 1) << FIRST_VIRTIO);
    write(PLIC + 0x20_0000, 0);
    // SAFETY: the handlers are in place, and nothing relies on them being off.
    unsafe {
        mie::set_mtimer();
        mie::set_mext();
        riscv::interrupt::enable();
    }
}

/// Answers the interrupt controller; `handle` is called with the virtio device's number.
pub fn on_external(handle: fn(u32)) {
    let claim = PLIC + 0x20_0004;
    let source = read(claim);
    if source >= FIRST_VIRTIO {
        handle(source - FIRST_VIRTIO);
    }
    write(claim, source);
}

/// Writes to the serial line.
pub fn put(bytes: &[u8]) {
    for byte in bytes {
        // SAFETY: the serial line's registers: bytes, as this machine has them.
        unsafe {
            let status: *const u8 = with_exposed_provenance(SERIAL + 5);
            while read_volatile(status) & 0x20 == 0 {}
            write_volatile(with_exposed_provenance_mut(SERIAL), *byte);
        }
    }
}

/// Cycles of the processor; with `-icount`, instructions.
pub fn cycles() -> u32 {
    mcycle::read() as u32
}

/// The machine has no source of randomness: connections of this board can be guessed by whoever knows when it started.
pub fn secret(mac: Mac) -> [u8; 32] {
    let mut secret = [0; 32];
    let seed = mcycle::read64() ^ Machine::now() << 32;
    for (at, place) in secret.iter_mut().enumerate() {
        *place = (seed >> (at % 8 * 8)) as u8 ^ mac[at % 6] ^ at as u8;
    }
    secret
}

/// Ends QEMU with status 1.
pub fn fail() -> ! {
    write(TEST, FAILED);
    loop {
        riscv::asm::wfi();
    }
}
