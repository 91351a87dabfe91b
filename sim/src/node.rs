//! What a workload asks of a host, whatever its transport: move a message, and say how far it is.

use crate::packet::HostId;
use crate::simulation::Station;
use crate::time::Time;
use serde::Serialize;

/// A message to be moved to another host's memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Message {
    /// Its number, unique in a run.
    pub id: u32,
    /// Where it goes.
    pub peer: HostId,
    /// Its length, at least 1.
    pub bytes: u64,
    /// Messages of one flow to one peer arrive in the order in which they were posted (an ordered stream, or a queue pair);
    /// others need not.
    pub flow: u32,
}

/// The bit of a flow's number that says that it belongs to other people: it shares no queue pair or context with flows without it.
pub const OTHERS: u32 = 1 << 31;

/// The queue pair or context of a flow, between two hosts that have `own` (at least 1) and one more for other people's flows.
#[must_use]
pub const fn lane(flow: u32, own: u32) -> u32 {
    let own = if own == 0 { 1 } else { own };
    if flow & OTHERS == 0 { flow % own } else { own }
}

/// How many there are with that one.
#[must_use]
pub const fn lanes(own: u32) -> u32 {
    if own == 0 { 2 } else { own + 1 }
}

/// How far a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// At the receiver: all of it that will come is in its place, and earlier messages of the flow are too.
    Delivered {
        /// The message.
        id: u32,
        /// Bytes that were given up (best-effort transports only).
        lost_bytes: u64,
    },
    /// At the sender: the receiver has said so.
    Acknowledged {
        /// The message.
        id: u32,
    },
    /// At the sender: it was given up, as its connection failed.
    Failed {
        /// The message.
        id: u32,
    },
}

/// What every transport counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counters {
    /// Data packets sent, retransmissions included.
    pub data_packets: u64,
    /// Data packets sent again.
    pub retransmissions: u64,
    /// Data packets that arrived though they were there already.
    pub duplicates: u64,
    /// Data packets dropped at the receiver because they were not the next one (go-back-N).
    pub out_of_order_drops: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Acknowledgments, negative ones and notifications of congestion sent.
    pub control_packets: u64,
    /// Data packets that arrived marked.
    pub marked: u64,
    /// Data packets that arrived trimmed.
    pub trimmed: u64,
    /// Fences sent, or what else a transport does to give up a path.
    pub fences: u64,
    /// Payload bytes placed.
    pub placed_bytes: u64,
}

impl Counters {
    /// The sum of two.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            data_packets: self.data_packets + other.data_packets,
            retransmissions: self.retransmissions + other.retransmissions,
            duplicates: self.duplicates + other.duplicates,
            out_of_order_drops: self.out_of_order_drops + other.out_of_order_drops,
            timeouts: self.timeouts + other.timeouts,
            control_packets: self.control_packets + other.control_packets,
            marked: self.marked + other.marked,
            trimmed: self.trimmed + other.trimmed,
            fences: self.fences + other.fences,
            placed_bytes: self.placed_bytes + other.placed_bytes,
        }
    }
}

/// A host that moves messages.
pub trait Node: Station {
    /// Makes ready for messages to these peers, before the clock of the workload starts: connections are set up, queue pairs
    /// exist. Each call names every peer of the host once.
    fn prepare(&mut self, now: Time, peers: &[HostId]);
    /// Whether all that was prepared is ready.
    fn is_ready(&self) -> bool;
    /// Takes a message. It is never refused: what does not fit yet waits in the host.
    fn post(&mut self, now: Time, message: &Message);
    /// The next step of a message. [`Station::has_news`] says whether there is one.
    fn poll_progress(&mut self, now: Time) -> Option<Progress>;
    /// What was counted so far.
    fn counters(&self) -> Counters;
}
