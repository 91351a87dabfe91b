//! What the RISC-V boards have in common.
#![no_std]

pub mod clock;
pub mod console;
pub mod report;
pub mod stack;
