//! The MetaRoCE transport as a library without I/O, clock or heap.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod wire;
