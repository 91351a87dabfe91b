//! A MetaRoCE NIC in software, on ordinary Linux UDP sockets.
#![deny(unsafe_op_in_unsafe_fn)]

mod clock;
pub mod fault;
pub mod memory;
mod socket;
