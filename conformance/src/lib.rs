//! What every build of the core must show.
//!
//! [`conversation`] is one conversation of two endpoints over a wire that loses and reorders, told in `docs/conversation.md` so that it can be driven
//! from any language: its hash covers every datagram and when it was sent. No allocation, no clock: it runs on a host, in a browser and in firmware.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

pub mod conversation;
mod script;
mod wire;
