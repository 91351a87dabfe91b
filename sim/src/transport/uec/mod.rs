//! Ultra Ethernet as a rival: the transport of the UE specification 1.0, as far as it decides about speed.
//!
//! What is modelled: reliable unordered delivery (RUD) over packet delivery contexts, with packet sequence numbers, a
//! cumulative acknowledgment and 64 selective bits, coalesced acknowledgments (`receiver`); retransmission on a NACK
//! for a trimmed packet, on a timeout, and (optionally) by the SLEEK rules (`sender`); packets sprayed over entropy
//! values ([`entropy`]); congestion control at the sender, [`nscc`], at the receiver, [`rccc`], or both.
//!
//! Sources are the specification (ultraethernet.org) and the simulator that its authors published (htsim,
//! `sim/uec*.cpp`, BSD licence), which settles what the specification leaves open. All header sizes are those of the
//! core's packets, so that rules are compared and not bytes.
//!
//! What is not: ordered delivery (ROD), security, the set-up and close of contexts (they begin with the first packet,
//! which costs UE no round trip either), the penalty by which a slow receiver narrows windows, several planes, the
//! failure of a context, and whether a packet was trimmed at the last hop (all count as trimmed elsewhere).
//!
//! | kind | `sequence` | `cumulative` | `vector` | `value` | others |
//! |---|---|---|---|---|---|
//! | data | PSN | number of the message in its flow | credit target | length of the message | `flow`, `message`, `offset`, `payload`, `lane` |
//! | ACK | PSN answered | next PSN expected | bits from `cumulative + message` on | bytes received | `offset`: packets out of order |
//! | NACK | PSN trimmed | | | bytes received | |
//! | grant | | | | credit | |
//! | probe | its number | | | | |
//! | request | | | credit target | | |
//!
//! In all but data packets `flow` is the context; `lane` is the entropy value of the packet, or of that answered.

pub mod entropy;
mod flight;
mod host;
pub mod nscc;
mod outbox;
mod psn;
pub mod rccc;
mod receiver;
mod sender;
mod sleek;

use serde::{Deserialize, Serialize};

use crate::node::lane;
use crate::packet::{Class, Ecn, HostId, Packet, Segment};
use crate::port::PortConfig;
use crate::time::Time;
use crate::topology::{ACK_WIRE_BYTES, BASE_RTT, DATA_WIRE_BYTES};

pub use entropy::Spraying;
pub use host::UecHost;
pub use nscc::NsccConfig;
pub use rccc::RcccConfig;

/// Data.
pub(crate) const DATA: u8 = 0;
/// An acknowledgment.
pub(crate) const ACK: u8 = 1;
/// A packet came trimmed.
pub(crate) const NACK: u8 = 2;
/// Credit.
pub(crate) const GRANT: u8 = 3;
/// Is what was sent before this still on its way?
pub(crate) const PROBE: u8 = 4;
/// There is something to send and no credit.
pub(crate) const REQUEST: u8 = 5;

/// The sender would like an acknowledgment at once.
pub(crate) const ACK_REQUEST: u8 = 1;
/// The packet (or that answered) was sent before.
pub(crate) const RETRANSMISSION: u8 = 2;
/// The packet answered was marked.
pub(crate) const MARKED: u8 = 4;
/// The answer is to a probe.
pub(crate) const PROBE_ANSWER: u8 = 8;

/// Source ports from here on carry entropy values.
const FIRST_PORT: u16 = 0x8000;
/// Ethernet, IPv4 and UDP around a datagram, with preamble and gap.
const AROUND_UDP: u32 = 66;

/// Who controls congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Control {
    /// The sender: NSCC.
    #[default]
    Sender,
    /// The receiver: RCCC.
    Receiver,
    /// Both: a packet needs room in the window and credit. Switches should not mark on the last hop then.
    Both,
}

impl Control {
    /// Whether senders have a window.
    #[must_use]
    pub const fn has_window(self) -> bool {
        matches!(self, Self::Sender | Self::Both)
    }

    /// Whether receivers give credit.
    #[must_use]
    pub const fn has_credit(self) -> bool {
        matches!(self, Self::Receiver | Self::Both)
    }
}

/// The settings of a [`UecHost`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UecConfig {
    /// Who controls congestion.
    pub control: Control,
    /// Payload of a full packet, bytes.
    pub payload_bytes: u32,
    /// What a data packet takes on the line besides its payload, bytes.
    pub overhead_bytes: u32,
    /// What any other packet takes on the line, bytes.
    pub control_bytes: u32,
    /// Delivery contexts between two hosts; flows share them in turn.
    pub contexts: u32,
    /// Entropy values of a context, a power of two: 128 (the figures of htsim).
    pub entropies: u16,
    /// How they are chosen.
    pub spraying: Spraying,
    /// Bytes after which a receiver acknowledges unasked: 16 KiB (`ACK_Gen_Trigger`, specification).
    pub ack_bytes: u64,
    /// After this time without an answer a packet is lost: see [`UecConfig::timeout_for`].
    pub timeout: Time,
    /// Losses are also inferred from packets out of order and from probes (SLEEK): for fabrics that do not trim.
    pub sleek: bool,
    /// The window.
    pub nscc: NsccConfig,
    /// The credit.
    pub rccc: RcccConfig,
}

impl UecConfig {
    /// The published settings for a network of this rate, round trip and queue, whose switches trim or drop.
    #[must_use]
    pub fn new(line_mbps: u64, network_rtt: Time, queue_bytes: u64, trimming: bool) -> Self {
        let nscc = NsccConfig::new(line_mbps, network_rtt, DATA_WIRE_BYTES, trimming);
        Self {
            control: Control::Sender,
            payload_bytes: 4096,
            overhead_bytes: (DATA_WIRE_BYTES - 4096) as u32,
            control_bytes: ACK_WIRE_BYTES as u32,
            contexts: 1,
            entropies: 128,
            spraying: Spraying::Mixed,
            ack_bytes: 16_384,
            timeout: Self::timeout_for(queue_bytes, line_mbps),
            sleek: !trimming,
            nscc,
            rccc: RcccConfig {
                line_mbps,
                grant_bytes: 4 * DATA_WIRE_BYTES,
                rate: (99, 100),
                max_credit: nscc.max_window(network_rtt) as u64,
                idle_bytes: 1024,
            },
        }
    }

    /// 15 us and the time that six full queues take to drain (htsim, `main_uec.cpp`).
    #[must_use]
    pub fn timeout_for(queue_bytes: u64, line_mbps: u64) -> Time {
        let drain = Time::to_send(queue_bytes.saturating_mul(6), line_mbps);
        // Longer than a second nothing waits, whatever a queue without an end might hold.
        Time::from_us(15) + drain.min(Time::from_ms(1_000))
    }

    /// The settings for the reference network with switches that trim at one bandwidth-delay product.
    #[must_use]
    pub fn trimming() -> Self {
        Self::new(100_000, BASE_RTT, 178_450, true)
    }

    /// Bytes on the line of a packet with this payload.
    #[must_use]
    pub(crate) fn wire_bytes(&self, payload: u32) -> u64 {
        u64::from(payload + self.overhead_bytes)
    }

    /// Bytes on the line of all packets of a message.
    #[must_use]
    pub(crate) fn message_wire_bytes(&self, bytes: u64) -> u64 {
        let packets = bytes.div_ceil(u64::from(self.payload_bytes));
        bytes + packets * u64::from(self.overhead_bytes)
    }

    /// The context of a flow.
    #[must_use]
    pub(crate) fn context(&self, flow: u32) -> u32 {
        lane(flow, self.contexts)
    }
}

impl Default for UecConfig {
    /// The reference network of all figures, whose switches drop.
    fn default() -> Self {
        Self::new(100_000, BASE_RTT, PortConfig::REFERENCE.queue_bytes, false)
    }
}

/// A small packet that waits for the line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    /// Where it goes.
    pub to: HostId,
    /// What it says.
    pub segment: Segment,
}

impl Reply {
    /// Makes the packet of it.
    pub fn write(&self, config: &UecConfig, packet: &mut Packet) {
        packet.length = config.control_bytes.saturating_sub(AROUND_UDP);
        packet.wire_bytes = config.control_bytes;
        packet.destination = self.to;
        packet.plane = 0;
        packet.source_port = FIRST_PORT | self.segment.lane;
        // A probe that overtook data would find them lost.
        packet.class = if self.segment.kind == PROBE {
            Class::Data
        } else {
            Class::Control
        };
        packet.ecn = Ecn::NotEct;
        packet.segment = self.segment;
    }
}
