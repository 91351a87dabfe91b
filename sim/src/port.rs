//! An output port: a queue with a limit and ECN marks, a line with a rate, a wire with a delay.

use std::collections::VecDeque;

use crate::faults::{DROP_REASONS, Drop, Faults};
use crate::inspect;
use crate::packet::{Class, Ecn, HostId, Packet, PacketId};
use crate::random::{Purpose, Stream};
use crate::time::Time;

/// The index of a port in its network.
pub type PortId = u32;

/// A host or a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Node {
    /// A host.
    Host(HostId),
    /// A switch.
    Switch(u32),
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
    /// Below this backlog nothing is marked; from here to `mark_high_bytes` the probability rises to 1.
    pub mark_low_bytes: u64,
    /// From this backlog on every ECN-capable packet is marked.
    pub mark_high_bytes: u64,
    /// The control class has a queue of its own that goes first.
    pub priority: bool,
}

impl PortConfig {
    /// The queue of the reference figures: 892,250 bytes, marks from 37,350 to 145,250.
    pub const REFERENCE: Self = Self {
        mbps: 100_000,
        delay: Time::ZERO,
        queue_bytes: 892_250,
        mark_low_bytes: 37_350,
        mark_high_bytes: 145_250,
        priority: true,
    };

    /// A host's port: no marks and no limit of its own, as the host puts in only what the line can take.
    pub const HOST: Self = Self {
        mbps: 100_000,
        delay: Time::ZERO,
        queue_bytes: u64::MAX,
        mark_low_bytes: u64::MAX,
        mark_high_bytes: u64::MAX,
        priority: true,
    };
}

/// What a port has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortStatistics {
    /// Packets that came.
    pub offered: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that left over the line, lost ones on the wire included.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets that arrived at the other end, copies included.
    pub delivered: u64,
    /// Copies made by the duplication fault.
    pub copies: u64,
    /// Packets dropped, by reason.
    pub dropped: [u64; DROP_REASONS],
    /// Data packets among the dropped.
    pub dropped_data: u64,
    /// Packets marked.
    pub marked: u64,
    /// Packets damaged.
    pub corrupted: u64,
    /// The largest backlog in bytes.
    pub max_backlog_bytes: u64,
    /// Time the line was busy.
    pub busy: Time,
}

impl PortStatistics {
    /// All drops.
    #[must_use]
    pub fn drops(&self) -> u64 {
        self.dropped.iter().sum()
    }
}

/// An output port.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its settings.
    pub config: PortConfig,
    /// Where it belongs.
    pub owner: Node,
    /// Where its wire leads.
    pub to: Node,
    /// Its plane.
    pub plane: u8,
    /// What goes wrong on its wire.
    pub faults: Option<Box<Faults>>,
    /// What it has seen.
    pub statistics: PortStatistics,
    queues: [VecDeque<PacketId>; 2],
    on_line: Option<PacketId>,
    backlog_bytes: u64,
    queued: u32,
    up: bool,
    marking: Stream,
    /// Packets on the wire that keep their order, with their times of arrival.
    pub(crate) wire: VecDeque<(Time, PacketId)>,
    /// Packets on the wire that do not keep it.
    pub(crate) astray: u32,
}

impl Port {
    /// The `index`-th port of a run.
    #[must_use]
    pub fn new(
        config: PortConfig,
        owner: Node,
        to: Node,
        plane: u8,
        seed: u64,
        index: u64,
    ) -> Self {
        Self {
            config,
            owner,
            to,
            plane,
            faults: None,
            statistics: PortStatistics::default(),
            queues: [VecDeque::new(), VecDeque::new()],
            on_line: None,
            backlog_bytes: 0,
            queued: 0,
            up: true,
            marking: Stream::new(seed, Purpose::Marking, index),
            wire: VecDeque::new(),
            astray: 0,
        }
    }

    /// Bytes in the queue and on the line.
    #[must_use]
    pub fn backlog_bytes(&self) -> u64 {
        self.backlog_bytes
    }

    /// Packets in the queue and on the line.
    #[must_use]
    pub fn backlog(&self) -> u32 {
        self.queued + u32::from(self.on_line.is_some())
    }

    /// Whether the line is free.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.on_line.is_none()
    }

    /// Whether the link is up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// Takes a packet into the queue, marks it if the queue is long, or says why not.
    ///
    /// # Errors
    /// The reason for which it is dropped.
    pub fn enqueue(&mut self, id: PacketId, packet: &mut Packet) -> Result<(), Drop> {
        let bytes = u64::from(packet.wire_bytes);
        self.statistics.offered += 1;
        self.statistics.offered_bytes += bytes;
        if !self.up {
            return Err(self.count(Drop::LinkDown, packet));
        }
        if self.backlog_bytes.saturating_add(bytes) > self.config.queue_bytes {
            return Err(self.count(Drop::QueueFull, packet));
        }
        if packet.ecn.is_capable() && self.marks() {
            packet.ecn = Ecn::Ce;
            self.statistics.marked += 1;
        }
        self.backlog_bytes += bytes;
        self.statistics.max_backlog_bytes =
            self.statistics.max_backlog_bytes.max(self.backlog_bytes);
        let lane = usize::from(!(self.config.priority && packet.class == Class::Control));
        self.queues[lane].push_back(id);
        self.queued += 1;
        Ok(())
    }

    /// If the line is free, the next packet, which is on the line from now on.
    pub fn start(&mut self) -> Option<PacketId> {
        if self.on_line.is_some() {
            return None;
        }
        let id = self.queues[0]
            .pop_front()
            .or_else(|| self.queues[1].pop_front())?;
        self.queued -= 1;
        self.on_line = Some(id);
        Some(id)
    }

    /// The packet on the line has left it.
    pub fn finish(&mut self, bytes: u64) -> Option<PacketId> {
        let id = self.on_line.take()?;
        self.backlog_bytes -= bytes;
        self.statistics.sent += 1;
        self.statistics.sent_bytes += bytes;
        Some(id)
    }

    /// The packet on the line, if there is one.
    #[must_use]
    pub fn on_line(&self) -> Option<PacketId> {
        self.on_line
    }

    /// Counts a drop.
    pub fn count(&mut self, reason: Drop, packet: &Packet) -> Drop {
        self.statistics.dropped[reason as usize] += 1;
        self.statistics.dropped_data += u64::from(inspect::kind(&packet.bytes) == inspect::DATA);
        reason
    }

    /// Takes the link up or down. Down: what is queued is handed out, to be dropped.
    pub fn set_up(&mut self, up: bool) -> Vec<PacketId> {
        self.up = up;
        if up {
            return Vec::new();
        }
        self.queued = 0;
        let (first, second) = self.queues.split_at_mut(1);
        first[0].drain(..).chain(second[0].drain(..)).collect()
    }

    /// Takes dropped bytes off the backlog.
    pub(crate) fn forget(&mut self, packet: &Packet) {
        self.backlog_bytes -= u64::from(packet.wire_bytes);
        self.count(Drop::LinkDown, packet);
    }

    /// Whether what came is what left, was dropped or is still here.
    #[must_use]
    pub fn is_conserved(&self) -> bool {
        let s = &self.statistics;
        let here = u64::from(self.backlog()) + self.wire.len() as u64 + u64::from(self.astray);
        s.offered + s.copies == s.delivered + s.drops() + here
            && (self.backlog_bytes == 0) == (self.backlog() == 0)
            && s.max_backlog_bytes <= self.config.queue_bytes
    }

    fn marks(&mut self) -> bool {
        let (low, high) = (self.config.mark_low_bytes, self.config.mark_high_bytes);
        if self.backlog_bytes < low {
            return false;
        }
        self.backlog_bytes >= high || self.marking.below(high - low) < self.backlog_bytes - low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(config: PortConfig) -> Port {
        Port::new(config, Node::Switch(0), Node::Host(0), 0, 1, 0)
    }

    fn packet(wire_bytes: u32, class: Class) -> Packet {
        Packet {
            wire_bytes,
            class,
            ecn: Ecn::Ect0,
            ..Packet::default()
        }
    }

    #[test]
    fn a_full_queue_drops_and_control_goes_first() {
        let mut port = port(PortConfig {
            queue_bytes: 2_500,
            ..PortConfig::HOST
        });
        assert!(
            port.enqueue(PacketId(0), &mut packet(1_000, Class::Data))
                .is_ok()
        );
        assert_eq!(port.start(), Some(PacketId(0)));
        assert!(
            port.enqueue(PacketId(1), &mut packet(1_000, Class::Data))
                .is_ok()
        );
        assert_eq!(
            port.enqueue(PacketId(2), &mut packet(1_000, Class::Data)),
            Err(Drop::QueueFull)
        );
        assert!(
            port.enqueue(PacketId(3), &mut packet(100, Class::Control))
                .is_ok()
        );
        assert_eq!(port.start(), None);
        assert_eq!(port.finish(1_000), Some(PacketId(0)));
        assert_eq!(port.start(), Some(PacketId(3)));
        assert_eq!((port.backlog(), port.backlog_bytes()), (2, 1_100));
        assert_eq!(port.statistics.drops(), 1);
    }

    #[test]
    fn marks_rise_between_the_thresholds() {
        let config = PortConfig {
            queue_bytes: 1_000_000,
            mark_low_bytes: 100_000,
            mark_high_bytes: 200_000,
            ..PortConfig::HOST
        };
        let mut port = port(config);
        let mut marked_by_decile = [0; 12];
        for i in 0..300 {
            let mut p = packet(1_000, Class::Data);
            assert!(port.enqueue(PacketId(i), &mut p).is_ok());
            if p.ecn == Ecn::Ce {
                marked_by_decile[(i as usize / 20).min(11)] += 1;
            }
        }
        assert_eq!(marked_by_decile[..5], [0; 5]);
        assert!(
            (1..20).contains(&marked_by_decile[7]),
            "{marked_by_decile:?}"
        );
        assert_eq!(marked_by_decile[10], 20);
        let mut deaf = packet(10, Class::Data);
        deaf.ecn = Ecn::NotEct;
        assert!(port.enqueue(PacketId(900), &mut deaf).is_ok());
        assert_eq!(deaf.ecn, Ecn::NotEct);
    }
}
