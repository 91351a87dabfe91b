//! The core's self-test on bare processors: the conversation of `docs/conversation.md`. Prints the outcome; ends with status 0 if it was
//! carried out. Whoever runs it compares the hash.
#![no_std]
#![no_main]

use metaroce_conformance::conversation::{REFERENCE, run};
use semihosting::{print, println, process};

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    print!("conversation: ");
    match run(&REFERENCE) {
        Ok(outcome) => {
            println!(
                "hash {:#018x}, {} datagrams, {} lost, over at {} ns",
                outcome.hash, outcome.datagrams, outcome.lost, outcome.ended_ns
            );
            process::exit(0)
        }
        Err(failure) => {
            println!("{failure:?}");
            process::exit(1)
        }
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    println!("{info}");
    process::exit(2)
}
