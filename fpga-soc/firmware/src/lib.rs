//! A small device: a region of RAM that peers write, read and add to over Ethernet, and (if told so) a peer that does that to another device.
//!
//! | file | what is in it |
//! |---|---|
//! | [`frame`] | Ethernet, IPv4 and UDP around a datagram, to bytes and back |
//! | [`neighbours`] | who has which Ethernet address |
//! | [`ram`] | the region |
//! | [`device`] | the core's endpoint over frames: no I/O, no clock, no allocation, no panic |
//! | [`initiator`] | the script of a device that goes to another |
//! | [`figures`] | what a packet costs |
//! | [`task`] | the embassy task that serves a device on a network port, beside embassy-net |
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod say;

pub mod device;
pub mod figures;
pub mod frame;
pub mod initiator;
pub mod neighbours;
pub mod ram;
#[cfg(feature = "task")]
pub mod task;
