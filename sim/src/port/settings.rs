//! What a port is told, and what it has seen.

use crate::faults::DROP_REASONS;
use crate::random::Probability;
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// How a link keeps its sender from overrunning the switch at its end. It governs the data class alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FlowControl {
    /// It does not: what has no room is dropped.
    #[default]
    None,
    /// Priority flow control (IEEE 802.1Qbb): the switch says pause, and go on.
    Pause {
        /// More bytes of this link than this in the switch: pause.
        xoff_bytes: u64,
        /// Not more than this any longer: go on.
        xon_bytes: u64,
        /// What may still come after a pause was asked for: two wire delays' worth and two full packets. Beyond it packets are
        /// dropped.
        headroom_bytes: u64,
    },
    /// Credits (as InfiniBand): a packet starts only if the switch has room for it.
    Credit {
        /// Bytes of room at the far end for this link.
        bytes: u64,
    },
}

/// The settings of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortConfig {
    /// Rate of the line, Mbit/s.
    pub mbps: u64,
    /// Propagation delay of the wire.
    pub delay: Time,
    /// Most bytes in the queue, the packet on the line included.
    pub queue_bytes: u64,
    /// Below this backlog nothing is marked; from here to `mark_high_bytes` the probability rises to `mark_probability`.
    pub mark_low_bytes: u64,
    /// From this backlog on every ECN-capable packet is marked.
    pub mark_high_bytes: u64,
    /// How many are marked just below `mark_high_bytes`.
    pub mark_probability: Probability,
    /// The control class has a queue of its own that goes first.
    pub priority: bool,
    /// A data packet that finds no room loses its payload, and its header goes to the control queue, which then has a limit
    /// of its own of `queue_bytes`.
    pub trim: bool,
    /// Flow control of the link.
    pub flow: FlowControl,
}

/// What is left of a trimmed packet on the line.
pub const TRIMMED_WIRE_BYTES: u32 = 64 + 66;

impl PortConfig {
    /// The queue of the reference figures: 892,250 bytes, marks from 37,350 to 145,250.
    pub const REFERENCE: Self = Self {
        mbps: 100_000,
        delay: Time::ZERO,
        queue_bytes: 892_250,
        mark_low_bytes: 37_350,
        mark_high_bytes: 145_250,
        mark_probability: Probability::ONE,
        priority: true,
        trim: false,
        flow: FlowControl::None,
    };

    /// A host's port: no marks and no limit of its own, as the host puts in only what the line can take.
    pub const HOST: Self = Self {
        queue_bytes: u64::MAX,
        mark_low_bytes: u64::MAX,
        mark_high_bytes: u64::MAX,
        ..Self::REFERENCE
    };
}

/// What a port has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortStatistics {
    /// Packets that came.
    pub offered: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets put on the line, lost ones on the wire included.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that arrived at the other end, copies included.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Copies made by the duplication fault.
    pub copies: u64,
    /// Their bytes.
    pub copied_bytes: u64,
    /// Packets dropped, by reason.
    pub dropped: [u64; DROP_REASONS],
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Data packets among the dropped.
    pub dropped_data: u64,
    /// Packets marked.
    pub marked: u64,
    /// Packets damaged.
    pub corrupted: u64,
    /// Packets trimmed.
    pub trimmed: u64,
    /// Bytes cut off them.
    pub trimmed_bytes: u64,
    /// The largest backlog in bytes.
    pub max_backlog_bytes: u64,
    /// The most bytes of this link in the switch at its end (flow control only).
    pub max_held_bytes: u64,
    /// Time the line was busy.
    pub busy: Time,
    /// How often the link was paused.
    pub pauses: u64,
    /// For how long it was paused, or had data and no credit.
    pub blocked: Time,
}

impl PortStatistics {
    /// All drops.
    #[must_use]
    pub fn drops(&self) -> u64 {
        self.dropped.iter().sum()
    }
}
