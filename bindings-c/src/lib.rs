//! The C ABI of the MetaRoCE transport. `include/metaroce.h` is made of this crate by cbindgen; `README.md` says how it is used.
//!
//! Bindings only: the protocol is [`metaroce_core`]'s. Everything here reads what a caller of unknown care hands over, calls the core,
//! and writes plain structs.
//!
//! | file | what is in it |
//! |---|---|
//! | [`error`] | error codes and their texts |
//! | [`boundary`] | pointers that are checked, panics that go no further |
//! | [`address`], [`config`], [`work`], [`event`], [`statistics`] | plain structs and their translation |
//! | [`memory`] | callbacks and base pointers as the core's memory |
//! | [`endpoint`] | the sans-IO core in memory of the caller's |
//! | [`codec`], [`psn_set`] | datagrams as structs; which PSNs a path has received |
//! | [`nic`], [`sim`] | with an operating system: the software NIC; scenarios |
//!
//! # Safety
//! All functions take raw pointers. Each pointer must be NULL (which is answered with an error, or means "not wanted" where it says so) or
//! valid for what its type and the length beside it say until the function returns; misaligned ones are refused.
#![cfg_attr(not(feature = "std"), no_std)]
#![allow(non_camel_case_types, reason = "these are C's names")]
#![allow(
    clippy::missing_safety_doc,
    reason = "the crate's documentation says it once for all functions"
)]
#![deny(unsafe_op_in_unsafe_fn)]

pub mod address;
#[macro_use]
pub mod boundary;
pub mod codec;
pub mod config;
pub mod endpoint;
pub mod error;
pub mod event;
pub mod memory;
#[cfg(feature = "nic")]
pub mod nic;
pub mod psn_set;
#[cfg(feature = "sim")]
pub mod sim;
pub mod statistics;
pub mod work;

/// Reached only by a bug: the step `bindings-c` makes sure that firmware holds no way to it.
#[cfg(not(feature = "std"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    metaroce_panic_path_reached()
}

#[cfg(not(feature = "std"))]
#[inline(never)]
fn metaroce_panic_path_reached() -> ! {
    loop {
        core::hint::black_box(());
    }
}
