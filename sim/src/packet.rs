//! Packets on their way, in a slab whose slots keep their buffers.

use crate::inspect;
use crate::time::Time;
use serde::{Deserialize, Serialize};

/// The traffic class of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Class {
    /// Data and probes.
    #[default]
    Data,
    /// Acknowledgments and other small messages that may overtake data.
    Control,
}

/// The ECN field of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Ecn {
    /// The sender does not understand marks.
    #[default]
    NotEct,
    /// May be marked.
    Ect0,
    /// May be marked (the other codepoint).
    Ect1,
    /// Congestion was experienced.
    Ce,
}

impl Ecn {
    /// Whether a queue may mark it.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// The index of a host.
pub type HostId = u32;

/// A packet in the slab.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PacketId(pub u32);

/// The header of a packet of a transport that is a model here, not an implementation: what such transports say to each
/// other, without a byte layout. Each uses the fields that it needs, and says in its module for what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Segment {
    /// What the packet is, by the transport's own numbers; 0 is data for all of them.
    pub kind: u8,
    /// Bits with a meaning of the transport's own.
    pub flags: u8,
    /// Entropy, virtual lane or whatever else is small.
    pub lane: u16,
    /// The flow (queue pair, delivery context) at both ends.
    pub flow: u32,
    /// The message.
    pub message: u32,
    /// Where in the message the payload begins, in packets.
    pub offset: u32,
    /// Length of the payload, in bytes.
    pub payload: u32,
    /// Packet sequence number.
    pub sequence: u64,
    /// Everything before this was received.
    pub cumulative: u64,
    /// Selective acknowledgments.
    pub vector: u64,
    /// A length, a credit or a rate.
    pub value: u64,
    /// When the packet, or that which it answers, was sent. Not part of traces.
    #[serde(skip)]
    pub stamp: Time,
}

/// A datagram with what the network needs to know of it.
#[derive(Clone, Debug, Default)]
pub struct Packet {
    /// The datagram, or only its header if the payload is virtual.
    pub bytes: Vec<u8>,
    /// Length of the whole datagram (UDP payload).
    pub length: u32,
    /// Bytes that it takes on a line: the datagram and all that is around it.
    pub wire_bytes: u32,
    /// The sending host.
    pub source: HostId,
    /// The host it goes to.
    pub destination: HostId,
    /// The plane it travels on.
    pub plane: u8,
    /// UDP source port.
    pub source_port: u16,
    /// Traffic class.
    pub class: Class,
    /// ECN field.
    pub ecn: Ecn,
    /// Bits were flipped on the way (in `bytes` too, where the payload is real).
    pub corrupted: bool,
    /// A full queue cut off its payload.
    pub trimmed: bool,
    /// The header, where the transport is a model; `bytes` are empty then.
    pub segment: Segment,
    /// The port over which it came to the switch that it is in.
    pub(crate) ingress: u32,
}

impl Packet {
    /// Something of its header, for a hash of a run.
    #[must_use]
    pub(crate) fn fingerprint(&self) -> u64 {
        let segment = &self.segment;
        match self.bytes.first_chunk::<16>() {
            Some(header) => {
                let whole = u128::from_be_bytes(*header);
                (whole >> 64) as u64 ^ (whole as u64).rotate_left(29)
            }
            None => {
                segment.sequence
                    ^ segment.cumulative.rotate_left(21)
                    ^ u64::from(segment.flow) << 40
            }
        }
    }

    /// Whether it carries data, or did before it was trimmed.
    #[must_use]
    pub fn is_data(&self) -> bool {
        if self.bytes.is_empty() {
            self.segment.kind == 0
        } else {
            inspect::kind(&self.bytes) == inspect::DATA
        }
    }
}

/// All packets in flight.
#[derive(Clone, Debug, Default)]
pub struct Packets {
    slots: Vec<Packet>,
    free: Vec<u32>,
}

impl Packets {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many packets there are.
    #[must_use]
    pub fn live(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// How many slots there are, free ones included.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// A new packet: every field as the last user of the slot left it, but `bytes`, which are empty.
    pub fn allocate(&mut self) -> PacketId {
        match self.free.pop() {
            Some(index) => {
                self.slots[index as usize].bytes.clear();
                self.slots[index as usize].corrupted = false;
                self.slots[index as usize].trimmed = false;
                PacketId(index)
            }
            None => {
                self.slots.push(Packet::default());
                PacketId(self.slots.len() as u32 - 1)
            }
        }
    }

    /// A copy of a packet.
    pub fn duplicate(&mut self, id: PacketId) -> PacketId {
        let copy = self.allocate();
        let (from, to) = (id.0 as usize, copy.0 as usize);
        let mut bytes = core::mem::take(&mut self.slots[to].bytes);
        bytes.extend_from_slice(&self.slots[from].bytes);
        let original = &self.slots[from];
        self.slots[to] = Packet {
            bytes,
            length: original.length,
            wire_bytes: original.wire_bytes,
            source: original.source,
            destination: original.destination,
            plane: original.plane,
            source_port: original.source_port,
            class: original.class,
            ecn: original.ecn,
            corrupted: original.corrupted,
            trimmed: original.trimmed,
            segment: original.segment,
            ingress: original.ingress,
        };
        copy
    }

    /// Ends a packet.
    pub fn release(&mut self, id: PacketId) {
        self.free.push(id.0);
    }

    /// The packet.
    #[must_use]
    pub fn get(&self, id: PacketId) -> &Packet {
        &self.slots[id.0 as usize]
    }

    /// The packet, to be changed.
    pub fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.slots[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again() {
        let mut packets = Packets::new();
        let a = packets.allocate();
        packets.get_mut(a).bytes.extend_from_slice(b"abc");
        packets.get_mut(a).length = 3;
        let b = packets.duplicate(a);
        assert_eq!(packets.get(b).bytes, b"abc");
        assert_eq!(packets.live(), 2);
        packets.release(a);
        let c = packets.allocate();
        assert_eq!(c, a);
        assert!(packets.get(c).bytes.is_empty());
        assert_eq!(packets.live(), 2);
    }
}
