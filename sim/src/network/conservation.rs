//! What must hold of a network at any time.

use super::Network;
use crate::port::{FlowControl, Node, Port};

impl Network {
    /// Whether no port and no switch lost count of a packet or byte, and no packet is in the slab that is at no port.
    #[must_use]
    pub fn is_conserved(&self) -> bool {
        let mut at_ports = 0;
        let mut queued_bytes = vec![0; self.switches.len()];
        for port in &self.ports {
            at_ports += port.queued() as usize + port.wire.len() + port.astray as usize;
            if let Node::Switch(switch) = port.owner {
                queued_bytes[switch as usize] += port.queued_bytes();
            }
        }
        self.ports.iter().all(Port::is_conserved)
            && self.is_held_conserved()
            && at_ports == self.packets.live()
            && self
                .switches
                .iter()
                .zip(queued_bytes)
                .all(|(switch, bytes)| switch.is_conserved(bytes))
    }

    /// Whether what flow control reckons with is there: at each link that may be paused the data that it brought and that waits in the switch,
    /// and nothing at all once nothing is on its way.
    fn is_held_conserved(&self) -> bool {
        let mut waiting = vec![0; self.ports.len()];
        for port in &self.ports {
            if let Node::Switch(_) = port.owner {
                for (link, bytes) in port.waiting_data(&self.packets) {
                    waiting[link as usize] += bytes;
                }
            }
        }
        let idle = self.packets.live() == 0 && self.events.is_empty();
        self.ports
            .iter()
            .zip(waiting)
            .all(|(port, waiting)| match port.config.flow {
                FlowControl::None => true,
                FlowControl::Pause { .. } => port.held_bytes() == waiting,
                FlowControl::Credit { .. } => !idle || port.held_bytes() == 0,
            })
    }
}
