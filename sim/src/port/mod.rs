//! An output port: a queue with a limit and ECN marks, a line with a rate, a wire with a delay.

mod flow;
mod inside;
mod settings;

pub(crate) use inside::Place;
pub use settings::{FlowControl, PortConfig, PortStatistics, TRIMMED_WIRE_BYTES};

use std::collections::VecDeque;

use crate::faults::{Drop, Faults};
use crate::packet::{Class, Ecn, HostId, Packet, PacketId, Packets};
use crate::random::{Probability, Purpose, Stream};
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

/// What a packet that starts needs to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    pub id: PacketId,
    pub bytes: u32,
    pub data: bool,
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
    waiting_bytes: [u64; 2],
    /// The packet on the line leaves it then.
    line_until: Time,
    line_bytes: u32,
    /// An event will come when the line is free.
    pub(crate) line_event: bool,
    up: bool,
    /// Routing reckons with it. It learns later than the link that it is down.
    pub(crate) routed: bool,
    /// The far end said pause.
    paused: bool,
    /// Since when it could not send data that it had, if it cannot now.
    blocked_since: Option<Time>,
    /// Data bytes of this link in the switch at its end; with credits those on the wire too.
    held_bytes: u64,
    /// A pause was asked for.
    asked: bool,
    marking: Stream,
    /// Packets on the line and the wire that keep their order, with their times of arrival.
    pub(crate) wire: VecDeque<(Time, PacketId)>,
    /// Packets on the wire that do not keep it.
    pub(crate) astray: u32,
    /// Bytes on the line and the wire.
    pub(crate) flying_bytes: u64,
}

/// The queue of the control class, and that of data.
const CONTROL: usize = 0;
const DATA: usize = 1;

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
            waiting_bytes: [0; 2],
            line_until: Time::ZERO,
            line_bytes: 0,
            line_event: false,
            up: true,
            routed: true,
            paused: false,
            blocked_since: None,
            held_bytes: 0,
            asked: false,
            marking: Stream::new(seed, Purpose::Marking, index),
            wire: VecDeque::new(),
            astray: 0,
            flying_bytes: 0,
        }
    }

    /// Bytes in the queue and on the line.
    #[must_use]
    pub fn backlog_bytes(&self, now: Time) -> u64 {
        let on_line = if self.is_busy(now) {
            self.line_bytes
        } else {
            0
        };
        self.queued_bytes() + u64::from(on_line)
    }

    /// Bytes in the queue alone.
    #[must_use]
    pub fn queued_bytes(&self) -> u64 {
        self.waiting_bytes[CONTROL] + self.waiting_bytes[DATA]
    }

    /// Packets in the queue and on the line.
    #[must_use]
    pub fn backlog(&self, now: Time) -> u32 {
        self.queued() + u32::from(self.is_busy(now))
    }

    /// Packets in the queue alone.
    #[must_use]
    pub fn queued(&self) -> u32 {
        (self.queues[CONTROL].len() + self.queues[DATA].len()) as u32
    }

    /// Whether a packet is on the line.
    #[must_use]
    pub fn is_busy(&self, now: Time) -> bool {
        now < self.line_until
    }

    /// When the line is free.
    #[must_use]
    pub fn line_until(&self) -> Time {
        self.line_until
    }

    /// Whether the link is up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up
    }

    /// Whether the line is free and data waits that may not go.
    #[must_use]
    pub fn is_held_back(&self, now: Time) -> bool {
        !self.is_busy(now) && self.queues[CONTROL].is_empty() && !self.queues[DATA].is_empty()
    }

    /// Takes a packet into the queue, of which at most `limit_bytes` may be used now (`trimmed_limit_bytes` for what is left of a trimmed
    /// one), marks it if the queue is long, trims it if there is no room and the port does that, or says why not.
    ///
    /// # Errors
    /// The reason for which it is dropped.
    pub(crate) fn enqueue(
        &mut self,
        now: Time,
        id: PacketId,
        packet: &mut Packet,
        limit_bytes: u64,
        trimmed_limit_bytes: u64,
    ) -> Result<(), Drop> {
        let bytes = u64::from(packet.wire_bytes);
        self.statistics.offered += 1;
        self.statistics.offered_bytes += bytes;
        // A host's NIC sends into a dead link, a switch knows better.
        if !self.up && matches!(self.owner, Node::Switch(_)) {
            return Err(self.count(Drop::LinkDown, packet));
        }
        let backlog = self.backlog_bytes(now);
        let mut lane = if self.config.priority && packet.class == Class::Control {
            CONTROL
        } else {
            DATA
        };
        let limit = limit_bytes.min(self.config.queue_bytes);
        let control_limit = trimmed_limit_bytes.min(self.config.queue_bytes);
        if self.config.trim {
            if lane == DATA && backlog - self.waiting_bytes[CONTROL] + bytes > limit {
                let cut = packet.wire_bytes.saturating_sub(TRIMMED_WIRE_BYTES);
                packet.trimmed = true;
                packet.class = Class::Control;
                packet.wire_bytes -= cut;
                self.statistics.trimmed += 1;
                self.statistics.trimmed_bytes += u64::from(cut);
                lane = CONTROL;
            }
            let control = self.waiting_bytes[CONTROL] + u64::from(packet.wire_bytes);
            if lane == CONTROL && control > control_limit {
                return Err(self.count(Drop::QueueFull, packet));
            }
        } else if backlog.saturating_add(bytes) > limit {
            return Err(self.count(Drop::QueueFull, packet));
        }
        if packet.ecn.is_capable() && self.marks(backlog) {
            packet.ecn = Ecn::Ce;
            self.statistics.marked += 1;
        }
        let bytes = u64::from(packet.wire_bytes);
        self.statistics.max_backlog_bytes = self.statistics.max_backlog_bytes.max(backlog + bytes);
        self.waiting_bytes[lane] += bytes;
        self.queues[lane].push_back(id);
        Ok(())
    }

    /// If the line is free, the next packet that may go, which is on the line from now on.
    pub(crate) fn start(&mut self, now: Time, packets: &Packets) -> Option<Started> {
        if self.is_busy(now) {
            return None;
        }
        let lane = if !self.queues[CONTROL].is_empty() {
            CONTROL
        } else if let Some(&id) = self.queues[DATA].front() {
            let packet = packets.get(id);
            if packet.class == Class::Data && !self.may_send(packet.wire_bytes) {
                self.blocked_since.get_or_insert(now);
                return None;
            }
            DATA
        } else {
            return None;
        };
        if lane == DATA {
            self.end_block(now);
        }
        let id = self.queues[lane].pop_front()?;
        let packet = packets.get(id);
        let bytes = packet.wire_bytes;
        let data = packet.class == Class::Data;
        if data {
            self.take_credit(bytes);
        }
        self.waiting_bytes[lane] -= u64::from(bytes);
        let takes = Time::to_send(u64::from(bytes), self.config.mbps);
        self.line_until = now + takes;
        self.line_bytes = bytes;
        self.statistics.busy += takes;
        self.statistics.sent += 1;
        self.statistics.sent_bytes += u64::from(bytes);
        Some(Started { id, bytes, data })
    }

    /// Data packets in the queue, with their bytes, by the port over which they came.
    pub(crate) fn waiting_data<'a>(
        &'a self,
        packets: &'a Packets,
    ) -> impl Iterator<Item = (PortId, u64)> + 'a {
        let waiting = self.queues.iter().flatten().map(|&id| packets.get(id));
        waiting
            .filter(|packet| packet.class == Class::Data)
            .map(|packet| (packet.ingress, u64::from(packet.wire_bytes)))
    }

    /// Counts a drop.
    pub fn count(&mut self, reason: Drop, packet: &Packet) -> Drop {
        self.statistics.dropped[reason as usize] += 1;
        self.statistics.dropped_bytes += u64::from(packet.wire_bytes);
        self.statistics.dropped_data += u64::from(packet.is_data());
        reason
    }

    /// Takes the link up or down. Down: what is queued is handed out, to be dropped, and so is the packet on the line.
    pub(crate) fn set_up(&mut self, now: Time, up: bool) -> Vec<PacketId> {
        self.up = up;
        if up {
            return Vec::new();
        }
        self.waiting_bytes = [0; 2];
        self.end_block(now);
        let mut lost: Vec<PacketId> = Vec::new();
        if self.is_busy(now)
            && self
                .wire
                .back()
                .is_some_and(|&(arrival, _)| arrival == self.line_until + self.config.delay)
            && let Some((_, id)) = self.wire.pop_back()
        {
            self.flying_bytes -= u64::from(self.line_bytes);
            lost.push(id);
        }
        for queue in &mut self.queues {
            lost.extend(queue.drain(..));
        }
        lost
    }

    /// Whether what came is what left, was dropped, cut off or is still here, in packets and in bytes.
    #[must_use]
    pub fn is_conserved(&self) -> bool {
        let s = &self.statistics;
        let here = u64::from(self.queued()) + self.wire.len() as u64 + u64::from(self.astray);
        let here_bytes = self.queued_bytes() + self.flying_bytes;
        let lanes = 1 + u64::from(self.config.trim);
        s.offered + s.copies == s.delivered + s.drops() + here
            && s.offered_bytes + s.copied_bytes
                == s.delivered_bytes + s.dropped_bytes + s.trimmed_bytes + here_bytes
            && (self.queued_bytes() == 0) == (self.queued() == 0)
            && s.max_backlog_bytes <= self.config.queue_bytes.saturating_mul(lanes)
            && self.kept_to_flow_control()
    }

    fn marks(&mut self, backlog: u64) -> bool {
        let (low, high) = (self.config.mark_low_bytes, self.config.mark_high_bytes);
        if backlog < low {
            return false;
        }
        if backlog >= high {
            return true;
        }
        // Two draws only where both decide: what is certain must not move the stream.
        let rises = self.marking.below(high - low) < backlog - low;
        let most = self.config.mark_probability;
        rises && (most == Probability::ONE || self.marking.chance(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn port(config: PortConfig) -> Port {
        Port::new(config, Node::Switch(0), Node::Host(0), 0, 1, 0)
    }

    pub(super) fn put(
        port: &mut Port,
        packets: &mut Packets,
        wire_bytes: u32,
        class: Class,
    ) -> (PacketId, Result<(), Drop>) {
        let id = packets.allocate();
        let packet = packets.get_mut(id);
        packet.wire_bytes = wire_bytes;
        packet.class = class;
        packet.ecn = Ecn::Ect0;
        (id, port.enqueue(Time::ZERO, id, packet, u64::MAX, u64::MAX))
    }

    #[test]
    fn a_full_queue_drops_and_control_goes_first() {
        let mut port = port(PortConfig {
            queue_bytes: 2_500,
            ..PortConfig::HOST
        });
        let mut packets = Packets::new();
        let (first, taken) = put(&mut port, &mut packets, 1_000, Class::Data);
        assert_eq!(taken, Ok(()));
        assert_eq!(port.start(Time::ZERO, &packets).map(|s| s.id), Some(first));
        assert_eq!(put(&mut port, &mut packets, 1_000, Class::Data).1, Ok(()));
        assert_eq!(
            put(&mut port, &mut packets, 1_000, Class::Data).1,
            Err(Drop::QueueFull)
        );
        let (control, taken) = put(&mut port, &mut packets, 100, Class::Control);
        assert_eq!(taken, Ok(()));
        assert!(port.start(Time::from_ns(79), &packets).is_none());
        let now = Time::from_ns(80);
        assert_eq!(port.backlog_bytes(Time::from_ns(79)), 2_100);
        assert_eq!(port.start(now, &packets).map(|s| s.id), Some(control));
        assert_eq!((port.backlog(now), port.backlog_bytes(now)), (2, 1_100));
        assert_eq!(port.statistics.drops(), 1);
    }

    #[test]
    fn marks_rise_between_the_thresholds() {
        let mut port = port(PortConfig {
            queue_bytes: 1_000_000,
            mark_low_bytes: 100_000,
            mark_high_bytes: 200_000,
            ..PortConfig::HOST
        });
        let mut packets = Packets::new();
        let mut marked_by_decile = [0; 12];
        for i in 0..300 {
            let (id, taken) = put(&mut port, &mut packets, 1_000, Class::Data);
            assert_eq!(taken, Ok(()));
            if packets.get(id).ecn == Ecn::Ce {
                marked_by_decile[(i / 20).min(11)] += 1;
            }
        }
        assert_eq!(marked_by_decile[..5], [0; 5]);
        assert!(
            (1..20).contains(&marked_by_decile[7]),
            "{marked_by_decile:?}"
        );
        assert_eq!(marked_by_decile[10], 20);
        let deaf = packets.allocate();
        let packet = packets.get_mut(deaf);
        packet.wire_bytes = 10;
        packet.ecn = Ecn::NotEct;
        assert!(
            port.enqueue(Time::ZERO, deaf, packet, u64::MAX, u64::MAX)
                .is_ok()
        );
        assert_eq!(packets.get(deaf).ecn, Ecn::NotEct);
    }

    #[test]
    fn marks_rise_to_a_share_before_they_are_certain() {
        let mut port = port(PortConfig {
            mark_low_bytes: 100_000,
            mark_high_bytes: 200_000,
            mark_probability: Probability::new(0.2),
            ..PortConfig::HOST
        });
        let mut share = |backlog| (0..10_000).filter(|_| port.marks(backlog)).count();
        assert_eq!((share(99_999), share(200_000)), (0, 10_000));
        let (middle, end) = (share(150_000), share(199_999));
        assert!((850..1_150).contains(&middle), "{middle}");
        assert!((1_850..2_150).contains(&end), "{end}");
    }

    #[test]
    fn a_trimming_port_keeps_the_header_and_sends_it_first() {
        let mut port = port(PortConfig {
            queue_bytes: 10_000,
            trim: true,
            ..PortConfig::HOST
        });
        let mut packets = Packets::new();
        let ids: Vec<PacketId> = (0..4)
            .map(|_| {
                let (id, taken) = put(&mut port, &mut packets, 4_000, Class::Data);
                assert_eq!(taken, Ok(()));
                id
            })
            .collect();
        let trimmed = |id: PacketId| packets.get(id).trimmed;
        assert_eq!(
            [0, 1, 2, 3].map(|i| trimmed(ids[i])),
            [false, false, true, true]
        );
        let order: Vec<u32> = (0..4)
            .filter_map(|i| port.start(Time::from_us(i), &packets))
            .map(|started| started.bytes)
            .collect();
        assert_eq!(
            order,
            [TRIMMED_WIRE_BYTES, TRIMMED_WIRE_BYTES, 4_000, 4_000]
        );
        assert_eq!(
            port.statistics.trimmed_bytes,
            2 * (4_000 - u64::from(TRIMMED_WIRE_BYTES))
        );
    }
}
