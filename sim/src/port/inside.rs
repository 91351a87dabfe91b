//! What is in a port: to be looked at, and to take a packet out.

use super::{CONTROL, DATA, Port};
use crate::packet::{Packet, PacketId};
use crate::time::Time;

/// Where in a port a packet was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// It waited.
    Queue,
    /// It was on the line or the wire. The arrival of the packet that is first now, if it was another.
    Wire(Option<Time>),
}

impl Port {
    /// The packets on the line and the wire that keep their order, the first to arrive first, with the times at which their last bits do.
    pub fn flying(&self) -> impl ExactSizeIterator<Item = (Time, PacketId)> + '_ {
        self.wire.iter().copied()
    }

    /// The packets that wait, the next to go first.
    pub fn waiting(&self) -> impl Iterator<Item = PacketId> + '_ {
        self.queues[CONTROL]
            .iter()
            .chain(&self.queues[DATA])
            .copied()
    }

    /// Whether routing reckons with the link.
    #[must_use]
    pub fn is_routed(&self) -> bool {
        self.routed
    }

    /// Takes a packet out, wherever it is.
    pub(crate) fn remove(&mut self, id: PacketId, packet: &Packet) -> Option<Place> {
        let bytes = u64::from(packet.wire_bytes);
        for lane in [CONTROL, DATA] {
            if let Some(at) = self.queues[lane].iter().position(|&other| other == id) {
                self.queues[lane].remove(at);
                self.waiting_bytes[lane] -= bytes;
                return Some(Place::Queue);
            }
        }
        let at = self.wire.iter().position(|&(_, other)| other == id)?;
        self.wire.remove(at);
        self.flying_bytes -= bytes;
        let first = self.wire.front().map(|&(time, _)| time);
        Some(Place::Wire(first.filter(|_| at == 0)))
    }
}
