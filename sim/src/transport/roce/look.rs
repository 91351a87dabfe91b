//! Queue pairs, to be looked at.

use super::{Congestion, RoceHost};
use crate::node;
use crate::packet::HostId;

/// Where a queue pair is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueuePair {
    /// Its UDP source port.
    pub source_port: u16,
    /// The first packet that is not acknowledged.
    pub base: u64,
    /// The next that is sent.
    pub next: u64,
    /// Its rate, kbit/s; 0: none.
    pub rate_kbps: u64,
}

impl RoceHost {
    /// The requester of a queue pair with a peer, if it was used.
    #[must_use]
    pub fn requester(&self, peer: HostId, lane: u32) -> Option<QueuePair> {
        let first = self.first_sender.find(peer as usize)?;
        let sender = self.senders.get(first + lane as usize)?;
        let (base, next) = sender.window();
        let is_paced = matches!(self.config.congestion, Congestion::Dcqcn(_));
        let rate = sender.reaction.as_ref().filter(|_| is_paced);
        Some(QueuePair {
            source_port: sender.source_port,
            base,
            next,
            rate_kbps: rate.map_or(0, |reaction| reaction.rate_kbps()),
        })
    }

    /// Of the responder: the packet that it expects, and which have arrived ahead of their turn (bit i: the i-th from there).
    #[must_use]
    pub fn responder(&self, peer: HostId, lane: u32) -> Option<(u64, [u64; 4])> {
        let first = self.first_receiver.find(peer as usize)?;
        let receiver = self.receivers.get(first + lane as usize)?;
        Some((receiver.expected(), receiver.early()))
    }

    /// The queue pair of a flow, among those to a peer.
    #[must_use]
    pub fn queue_pair(&self, flow: u32) -> u32 {
        node::lane(flow, self.config.queue_pairs)
    }
}
