//! metaroce-core
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod wire;
