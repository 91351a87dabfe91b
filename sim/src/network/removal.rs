//! Packets that somebody takes out of the network.

use super::{Event, Network};
use crate::faults::Drop;
use crate::packet::PacketId;
use crate::port::{Node, Place};

impl Network {
    /// Loses a packet that waits at a port or is on its wire (one that a fault delays or doubles is not found). Whether there was one.
    pub fn drop_packet(&mut self, id: PacketId) -> bool {
        if id.0 as usize >= self.packets.slots() {
            return false;
        }
        for port in 0..self.ports.len() {
            let packet = self.packets.get(id);
            let at = &mut self.ports[port];
            let Some(place) = at.remove(id, packet) else {
                continue;
            };
            at.count(Drop::Loss, packet);
            let (owner, bytes, port) = (at.owner, u64::from(packet.wire_bytes), port as u32);
            match place {
                Place::Queue => {
                    if let Node::Switch(switch) = owner {
                        self.switches[switch as usize].give(bytes);
                    }
                    self.discard(port, id, Drop::Loss);
                }
                Place::Wire(next) => {
                    // The arrival that was to come finds nothing of its time, and brings no other.
                    if let Some(next) = next {
                        self.events.push(next, Event::Arrive(port));
                    }
                    self.lose(port, id, Drop::Loss);
                }
            }
            return true;
        }
        false
    }
}
