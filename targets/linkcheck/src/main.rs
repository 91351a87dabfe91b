//! A firmware that calls every entry of the core's datagram path and does nothing else.
//!
//! It is linked, not run. `cargo xtask test --only linkcheck` then looks whether a panic or an
//! allocator is in the file, and prints its size. Everything that a packet or a timer can reach
//! has to be called from [`datagram_path`]; inputs come through `black_box`, so that the compiler
//! can prove nothing about them.

#![no_std]
#![no_main]

mod datagram_path;
mod selftest;

use core::panic::PanicInfo;

/// Where execution would begin.
#[unsafe(no_mangle)]
pub extern "C" fn _start() -> ! {
    datagram_path::run();
    selftest::run();
    loop {
        core::hint::spin_loop();
    }
}

/// In the file only if something can panic: the check looks for it by name.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn metaroce_panic_path_reached() -> ! {
    loop {
        core::hint::black_box(());
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    metaroce_panic_path_reached()
}
