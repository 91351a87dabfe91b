//! The events of a trace.

use serde::{Deserialize, Serialize};

use super::record::PacketRecord;
use crate::node::{Message, Progress};
use crate::packet::HostId;

/// Something that happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "name", content = "data")]
pub enum Event {
    /// A host put a packet into the queue of its port.
    #[serde(rename = "transport:packet_sent")]
    PacketSent(PacketRecord),
    /// A packet came to a host.
    #[serde(rename = "transport:packet_received")]
    PacketReceived(PacketRecord),
    /// Figures of a connection changed.
    #[serde(rename = "recovery:metrics_updated")]
    MetricsUpdated(Metrics),
    /// Packets of a path were declared lost since the snapshot before.
    #[serde(rename = "recovery:packet_lost")]
    PacketLost {
        /// The connection.
        connection: u32,
        /// The path.
        path: u8,
        /// How many.
        packets: u32,
    },
    /// A path is new, or changed its state, generation or entropy.
    #[serde(rename = "connectivity:path_state")]
    PathState(PathRecord),
    /// A message was posted.
    #[serde(rename = "workload:message_posted")]
    MessagePosted(MessageRecord),
    /// A message is at its receiver.
    #[serde(rename = "workload:message_delivered")]
    MessageDelivered {
        /// The message.
        message: u32,
        /// Bytes that were given up.
        lost_bytes: u64,
    },
    /// The sender knows that a message is at its receiver.
    #[serde(rename = "workload:message_acknowledged")]
    MessageAcknowledged {
        /// The message.
        message: u32,
    },
    /// A message was given up.
    #[serde(rename = "workload:message_failed")]
    MessageFailed {
        /// The message.
        message: u32,
    },
    /// A packet was dropped at a port.
    #[serde(rename = "network:dropped")]
    Dropped {
        /// The port.
        port: u32,
        /// Why: `queue_full`, `link_down`, `loss`, `burst`, `blackhole`.
        reason: String,
        /// The packet.
        packet: PacketRecord,
    },
    /// A queue marked a packet.
    #[serde(rename = "network:marked")]
    Marked {
        /// The port.
        port: u32,
        /// The packet.
        packet: PacketRecord,
    },
    /// A queue cut off the payload of a packet.
    #[serde(rename = "network:trimmed")]
    Trimmed {
        /// The port.
        port: u32,
        /// The packet.
        packet: PacketRecord,
    },
    /// A port was told not to send a class, or that it may again.
    #[serde(rename = "network:paused")]
    Paused {
        /// The port.
        port: u32,
        /// `data` or `control`.
        class: String,
        /// Whether it pauses.
        paused: bool,
    },
    /// A port's link went up or down.
    #[serde(rename = "network:link")]
    Link {
        /// The port.
        port: u32,
        /// Whether it is up.
        up: bool,
    },
}

impl From<Progress> for Event {
    fn from(progress: Progress) -> Self {
        match progress {
            Progress::Delivered { id, lost_bytes } => Self::MessageDelivered {
                message: id,
                lost_bytes,
            },
            Progress::Acknowledged { id } => Self::MessageAcknowledged { message: id },
            Progress::Failed { id } => Self::MessageFailed { message: id },
        }
    }
}

impl From<&Message> for Event {
    fn from(message: &Message) -> Self {
        Self::MessagePosted(MessageRecord {
            message: message.id,
            peer: message.peer,
            bytes: message.bytes,
            flow: message.flow,
        })
    }
}

/// A message that was posted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MessageRecord {
    /// Its number.
    pub message: u32,
    /// Where it goes.
    pub peer: HostId,
    /// Its length.
    pub bytes: u64,
    /// The flow in which it keeps its place.
    pub flow: u32,
}

/// Figures of a connection.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Metrics {
    /// The connection, by its handle at the host.
    pub connection: u32,
    /// Congestion window, packets (16 fraction bits, so exact).
    pub window: f64,
    /// Packets that count in it.
    pub outstanding: u32,
    /// Least round-trip time, nanoseconds; 0: not measured.
    pub min_rtt_ns: u32,
    /// Mean of the smoothed round-trip times of the paths that have one, nanoseconds; 0: none has.
    pub srtt_ns: u32,
    /// The receiver's rate hint, Mbit/s; 0: none.
    pub hint_mbps: u32,
    /// Bytes posted and not sent.
    pub queued_bytes: u64,
    /// Data packets sent so far, retransmissions included.
    pub packets_sent: u64,
    /// Data packets sent again so far.
    pub retransmissions: u64,
    /// Data packets declared lost so far.
    pub losses: u64,
    /// Marks told so far.
    pub ce_marks: u64,
}

/// State of a path.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PathRecord {
    /// The connection, by its handle at the host.
    pub connection: u32,
    /// The path.
    pub path: u8,
    /// `unused`, `active`, `draining`, `suspect`, `fencing` or `reopening`.
    pub state: String,
    /// Its plane.
    pub plane: u8,
    /// Its entropy.
    pub entropy: u16,
    /// Its generation.
    pub generation: u8,
    /// Its share of the window, packets.
    pub weight: f64,
    /// Packets in flight.
    pub inflight: u16,
    /// Smoothed round-trip time, nanoseconds; 0: not measured.
    pub srtt_ns: u32,
}
