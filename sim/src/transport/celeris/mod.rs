//! Best-effort RDMA for machine learning, after Celeris (Warraich et al., "Reimagining RDMA Through the Lens of ML",
//! arXiv 2510.16606) and its longer version OptiNIC (arXiv 2512.22743).
//!
//! Nothing is sent again, nothing is put in order. Every packet says where its payload goes, so the receiver places it
//! as it comes; a message is over when all of it came, when its time is up, or when a later message of its queue pair
//! begins. What is missing then is given up and reported, and packets that come later are dropped. The time allowed
//! adapts ([`patience`]). Congestion control stays as it is in NICs: DCQCN ([`super::roce::dcqcn`]), which the first
//! paper names, and whose notifications may be lost like anything else.
//!
//! What the papers do not settle, or presuppose:
//! - A sender's message is complete when its last packet is on the line: the papers use feedback for congestion only.
//!   [`Completion::Notice`] waits for a notice instead.
//! - The papers' receivers know of a message before it comes, because a receive is posted. Here they learn of it from
//!   its first packet; if none came, from a small message of the sender, which travels on the control class and is
//!   repeated until it is answered (the papers keep a reliable channel for such).
//! - Packets that the network doubles are placed and counted once (a NIC without a bitmap would count them twice).
//!
//! | kind | `sequence` | `message` | `value` | others |
//! |---|---|---|---|---|
//! | data | number of the message | its id | its length | `flow`, `offset`, `payload` |
//! | notification of congestion | | | | `flow` |
//! | notice: over | number of the message | | time per byte at the receiver, ps/1024 | `flow` |
//! | description | number of the message | its id | its length | `flow` |
//!
//! `flow` is the queue pair; numbers of messages count within it.

mod host;
pub mod patience;
mod receiver;
mod sender;

use serde::{Deserialize, Serialize};

use super::roce::dcqcn::DcqcnConfig;
use crate::node::lane;
use crate::packet::{Class, Ecn, HostId, Packet, Segment};
use crate::time::Time;
use crate::topology::{ACK_WIRE_BYTES, DATA_WIRE_BYTES};

pub use host::CelerisHost;
pub use patience::PatienceConfig;

/// Data.
pub(crate) const DATA: u8 = 0;
/// Congestion notification packet.
pub(crate) const CONGESTION: u8 = 1;
/// A message is over.
pub(crate) const NOTICE: u8 = 2;
/// A message of which nothing was heard.
pub(crate) const DESCRIPTION: u8 = 3;

/// Source ports of queue pairs begin here.
const FIRST_PORT: u16 = 0xc000;
/// Ethernet, IPv4 and UDP around a datagram, with preamble and gap.
const AROUND_UDP: u32 = 66;

/// When a message is complete at its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Completion {
    /// Its last packet was put on the line.
    #[default]
    Sent,
    /// The receiver has said that it is over.
    Notice,
}

/// The settings of a [`CelerisHost`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CelerisConfig {
    /// Rate of the host's line, Mbit/s.
    pub line_mbps: u64,
    /// Payload of a full packet, bytes.
    pub payload_bytes: u32,
    /// What a data packet takes on the line besides its payload, bytes.
    pub overhead_bytes: u32,
    /// What any other packet takes on the line, bytes.
    pub control_bytes: u32,
    /// Queue pairs between two hosts; flows share them in turn.
    pub queue_pairs: u32,
    /// Congestion control; none: every queue pair may use the whole line.
    pub dcqcn: Option<DcqcnConfig>,
    /// How long a receiver waits.
    pub patience: PatienceConfig,
    /// A packet of a later message ends all earlier ones of its queue pair (OptiNIC). Right where a queue pair keeps to
    /// one path; where packets are sprayed, it loses those that were overtaken.
    pub preempt: bool,
    /// When a message is complete at its sender.
    pub completion: Completion,
    /// So long after its last packet, a message that is not known to be over is described to the receiver, again and
    /// again. The model's own: 200 us, well above a loaded round trip.
    pub describe_after: Time,
}

impl Default for CelerisConfig {
    fn default() -> Self {
        Self {
            line_mbps: 100_000,
            payload_bytes: 4096,
            overhead_bytes: (DATA_WIRE_BYTES - 4096) as u32,
            control_bytes: ACK_WIRE_BYTES as u32,
            queue_pairs: 1,
            dcqcn: Some(DcqcnConfig::default()),
            patience: PatienceConfig::default(),
            preempt: true,
            completion: Completion::Sent,
            describe_after: Time::from_us(200),
        }
    }
}

impl CelerisConfig {
    /// The queue pair of a flow.
    pub(crate) fn pair(&self, flow: u32) -> u32 {
        lane(flow, self.queue_pairs)
    }

    /// The source port of a queue pair.
    fn port(pair: u32) -> u16 {
        FIRST_PORT | (pair & 0x3fff) as u16
    }

    /// Sets what the network asks of a packet.
    pub(crate) fn address(&self, packet: &mut Packet, to: HostId, segment: &Segment) {
        let data = segment.kind == DATA;
        packet.wire_bytes = if data {
            segment.payload + self.overhead_bytes
        } else {
            self.control_bytes
        };
        packet.length = packet.wire_bytes.saturating_sub(AROUND_UDP);
        packet.destination = to;
        packet.plane = 0;
        packet.source_port = Self::port(segment.flow);
        (packet.class, packet.ecn) = if data {
            (Class::Data, Ecn::Ect0)
        } else {
            (Class::Control, Ecn::NotEct)
        };
        packet.segment = *segment;
    }
}
