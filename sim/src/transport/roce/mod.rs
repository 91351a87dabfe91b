//! RoCEv2: reliable connections over Ethernet, as NICs of today do them and as IRN proposed.
//!
//! [`RoceHost`] is a host with queue pairs; [`config`] has its settings and where each comes from; [`dcqcn`] is the congestion control.
//! A queue pair has one UDP source port and so one route (IBTA, Annex A17). What an RDMA WRITE does is modelled, posted when a message
//! is: no RNR, no reads, no 24-bit wrap of sequence numbers, no time in the NIC. Acknowledgments, NAKs and CNPs travel in the
//! control class (operators give CNPs, and many also acknowledgments, a queue of their own).
//!
//! Fields of [`Segment`](crate::packet::Segment): `kind` 0 data, 1 acknowledgment, 2 NAK or NACK, 3 CNP; `flow` is the number of the queue
//! pair among those to the peer; data: `message`, `offset`, `payload`, `sequence`, `flags` bit 0 the last of its message, bit 1
//! asks for an acknowledgment; answers: `cumulative` the packet expected next, `sequence` the one that made a NACK.

pub mod config;
pub mod dcqcn;
mod host;
mod look;
mod receiver;
mod selective;
mod sender;

pub use config::{Congestion, Framing, IrnConfig, Recovery, RoceConfig, bdp_packets};
pub use dcqcn::DcqcnConfig;
pub use host::RoceHost;
pub use look::QueuePair;
