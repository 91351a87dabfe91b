//! The sending end of a delivery context: what is on its way, what is lost, and whether the next packet may go.
//!
//! Losses show in three ways: a NACK for a trimmed packet; a packet that was not answered for a fixed time; and, where
//! switches do not trim, the rules of `sleek`.

use std::collections::{BTreeSet, VecDeque};

use super::entropy::{Entropies, Feedback};
use super::nscc::Nscc;
use super::outbox::{Outbox, Piece};
use super::rccc::Credit;
use super::sleek::{Order, Sleek};
use super::{
    ACK_REQUEST, DATA, FIRST_PORT, MARKED, PROBE, PROBE_ANSWER, REQUEST, RETRANSMISSION, Reply,
    UecConfig,
};
use crate::node::{Counters, Message, Progress};
use crate::packet::{Class, Ecn, HostId, Packet, Segment};
use crate::random::Stream;
use crate::time::Time;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    InFlight,
    /// To be sent again.
    Lost,
    Acknowledged,
}

/// A packet that was sent and may have to be sent again.
#[derive(Clone, Copy, Debug)]
struct Slot {
    piece: Piece,
    lane: u16,
    /// How often it was sent again.
    again: u8,
    state: State,
    sent: Time,
}

/// The sending end of a context.
#[derive(Clone, Debug)]
pub struct Sender {
    /// It waits in its host's queue for the line.
    pub(crate) queued: bool,
    /// The earliest time for which its host's timer is set.
    pub(crate) armed: Time,
    peer: HostId,
    context: u32,
    outbox: Outbox,
    slots: VecDeque<Slot>,
    first_psn: u64,
    lost: BTreeSet<u64>,
    /// Transmissions in order of their times, those that were answered included until they are the first.
    sent: VecDeque<(Time, u64, u8)>,
    outstanding: u64,
    backlog: u64,
    lost_bytes: u64,
    /// May be below zero for a moment, when what was taken for lost arrives.
    in_flight: i64,
    /// What the receiver says to have received.
    received: u64,
    nscc: Option<Nscc>,
    credit: Option<Credit>,
    entropies: Entropies,
    sleek: Sleek,
    heard: Time,
    requested: Option<Time>,
}

impl Sender {
    /// For what goes to `peer` in a context.
    #[must_use]
    pub fn new(config: &UecConfig, peer: HostId, context: u32, random: Stream) -> Self {
        let control = config.control;
        Self {
            queued: false,
            armed: Time::NEVER,
            peer,
            context,
            outbox: Outbox::default(),
            slots: VecDeque::new(),
            first_psn: 0,
            lost: BTreeSet::new(),
            sent: VecDeque::new(),
            outstanding: 0,
            backlog: 0,
            lost_bytes: 0,
            in_flight: 0,
            received: 0,
            nscc: control.has_window().then(|| Nscc::new(config.nscc)),
            credit: control.has_credit().then(|| Credit::new(&config.rccc)),
            entropies: Entropies::new(config.spraying, config.entropies, random),
            sleek: Sleek::default(),
            heard: Time::ZERO,
            requested: None,
        }
    }

    /// Takes a message.
    pub fn post(&mut self, config: &UecConfig, now: Time, message: &Message) {
        self.outbox.post(message);
        self.backlog += config.message_wire_bytes(message.bytes);
        self.heard = self.heard.max(now);
    }

    /// Bytes that may be in flight; none if only credit counts.
    #[must_use]
    pub fn window(&self) -> Option<u64> {
        self.nscc.as_ref().map(Nscc::window)
    }

    /// Whether there is a packet that may go now.
    #[must_use]
    pub fn can_send(&self, config: &UecConfig) -> bool {
        let Some(bytes) = self.next_bytes(config) else {
            return false;
        };
        self.credit.as_ref().is_none_or(Credit::allows)
            && self.nscc.as_ref().is_none_or(|nscc| {
                self.sleek.is_recovering() && !self.lost.is_empty()
                    || self.in_flight + bytes as i64 <= nscc.window() as i64
            })
    }

    fn next_bytes(&self, config: &UecConfig) -> Option<u64> {
        if let Some(&psn) = self.lost.first() {
            return self
                .slot(psn)
                .map(|slot| config.wire_bytes(slot.piece.payload));
        }
        let piece = self.outbox.peek(config.payload_bytes)?;
        Some(config.wire_bytes(piece.payload))
    }

    fn slot(&self, psn: u64) -> Option<&Slot> {
        self.slots.get(psn.checked_sub(self.first_psn)? as usize)
    }

    fn slot_mut(&mut self, psn: u64) -> Option<&mut Slot> {
        let index = psn.checked_sub(self.first_psn)? as usize;
        self.slots.get_mut(index)
    }

    /// The number of the next new packet.
    fn next_psn(&self) -> u64 {
        self.first_psn + self.slots.len() as u64
    }

    fn window_packets(&self, config: &UecConfig) -> u64 {
        let window = self.window().unwrap_or(config.rccc.max_credit);
        window / config.nscc.packet_bytes
    }

    /// Writes the next packet, which [`Sender::can_send`] has allowed; `sharers` contexts want the line.
    pub(crate) fn send(
        &mut self,
        config: &UecConfig,
        now: Time,
        sharers: u64,
        packet: &mut Packet,
        counters: &mut Counters,
    ) -> bool {
        let lane = self.entropies.next(self.window_packets(config));
        let lost = self.lost.pop_first();
        let Some(psn) = lost.or_else(|| self.cut(config)) else {
            return false;
        };
        let Some(slot) = self.slot_mut(psn) else {
            return false;
        };
        slot.again = slot.again.saturating_add(u8::from(lost.is_some()));
        slot.state = State::InFlight;
        slot.sent = now;
        slot.lane = lane;
        let slot = *slot;
        let bytes = config.wire_bytes(slot.piece.payload);
        let pool = if lost.is_some() {
            &mut self.lost_bytes
        } else {
            &mut self.backlog
        };
        *pool -= bytes;
        self.outstanding += 1;
        self.sent.push_back((now, psn, slot.again));
        self.in_flight += bytes as i64;
        if let Some(credit) = &mut self.credit {
            credit.spend(bytes);
        }
        counters.data_packets += 1;
        counters.retransmissions += u64::from(lost.is_some());
        let Some(&message) = self.outbox.get(slot.piece.message) else {
            return false;
        };
        let mut flags = if lost.is_some() {
            ACK_REQUEST | RETRANSMISSION
        } else {
            0
        };
        if self.wants_answer(bytes) {
            flags |= ACK_REQUEST;
        }
        packet.length =
            slot.piece.payload + config.overhead_bytes.saturating_sub(super::AROUND_UDP);
        packet.wire_bytes = bytes as u32;
        packet.destination = self.peer;
        packet.plane = 0;
        packet.source_port = FIRST_PORT | lane;
        packet.class = Class::Data;
        packet.ecn = Ecn::Ect0;
        packet.segment = Segment {
            kind: DATA,
            flags,
            lane,
            flow: message.flow,
            message: message.id,
            offset: slot.piece.offset,
            payload: slot.piece.payload,
            sequence: psn,
            cumulative: message.index,
            vector: self.target(config, sharers),
            value: message.bytes,
            stamp: now,
        };
        true
    }

    /// A new packet.
    fn cut(&mut self, config: &UecConfig) -> Option<u64> {
        let slot = Slot {
            piece: self.outbox.cut(config.payload_bytes)?,
            lane: 0,
            again: 0,
            state: State::InFlight,
            sent: Time::ZERO,
        };
        self.slots.push_back(slot);
        Some(self.next_psn() - 1)
    }

    /// Whether nothing more can be sent after a packet of `bytes` until an answer comes.
    fn wants_answer(&self, bytes: u64) -> bool {
        let full = |nscc: &Nscc| self.in_flight + bytes as i64 >= nscc.window() as i64;
        self.backlog == 0
            || self.credit.as_ref().is_some_and(|credit| !credit.allows())
            || self.nscc.as_ref().is_some_and(full)
    }

    fn target(&self, config: &UecConfig, sharers: u64) -> u64 {
        let packet = config.nscc.packet_bytes;
        let limit = self.window().map_or(u64::MAX, |window| window + packet);
        let backlog = self.backlog + self.lost_bytes;
        self.credit
            .as_ref()
            .map_or(0, |credit| credit.target(backlog, limit, packet, sharers))
    }

    /// An acknowledgment.
    pub(crate) fn on_ack(
        &mut self,
        config: &UecConfig,
        now: Time,
        ack: &Segment,
        news: &mut VecDeque<Progress>,
    ) {
        self.heard = now;
        let marked = ack.flags & MARKED != 0;
        let probe = ack.flags & PROBE_ANSWER != 0;
        let bytes = ack.value.saturating_sub(self.received);
        self.received += bytes;
        self.in_flight -= bytes as i64;
        let rtt = if probe {
            self.sleek.probe_rtt(now, ack.sequence)
        } else {
            self.round_trip(now, ack)
        };
        while self.first_psn < ack.cumulative && !self.slots.is_empty() {
            self.acknowledge(config, self.first_psn, news);
        }
        let from = ack.cumulative + u64::from(ack.message);
        let mut bits = ack.vector;
        while bits != 0 {
            self.acknowledge(config, from + u64::from(bits.trailing_zeros()), news);
            bits &= bits - 1;
        }
        self.settle();
        let feedback = if marked {
            Feedback::Marked
        } else {
            Feedback::Good
        };
        self.entropies.feedback(ack.lane, feedback);
        let in_flight = self.in_flight.max(0) as u64;
        let more = self.more();
        if let Some(nscc) = &mut self.nscc {
            let delay = nscc.on_ack(now, rtt, marked, bytes, in_flight);
            if config.sleek {
                let target = nscc.target_delay();
                self.sleek.on_ack(now, nscc.base_rtt(), target, more);
                self.recover(config, ack, probe && delay < target);
            }
        }
        if let Some(credit) = &mut self.credit {
            credit.stop_speculating();
        }
    }

    /// The round trip of the packet that is answered, if it is certain which of its transmissions is meant.
    fn round_trip(&self, now: Time, answer: &Segment) -> Option<Time> {
        let slot = self.slot(answer.sequence)?;
        let again = u8::from(answer.flags & RETRANSMISSION != 0);
        (slot.state == State::InFlight && slot.again == again).then(|| now.since(slot.sent))
    }

    fn acknowledge(&mut self, config: &UecConfig, psn: u64, news: &mut VecDeque<Progress>) {
        let Some(slot) = self.slot_mut(psn) else {
            return;
        };
        let before = core::mem::replace(&mut slot.state, State::Acknowledged);
        let slot = *slot;
        match before {
            State::Acknowledged => {}
            State::InFlight => self.outstanding -= 1,
            State::Lost => {
                // It was taken out of flight when it was taken for lost, and again by what the receiver counted.
                let bytes = config.wire_bytes(slot.piece.payload);
                self.lost.remove(&psn);
                self.lost_bytes -= bytes;
                self.in_flight += bytes as i64;
            }
        }
        if before != State::Acknowledged {
            let Piece {
                message, payload, ..
            } = slot.piece;
            self.outbox.acknowledge(message, payload, news);
        }
        while let Some(State::Acknowledged) = self.slots.front().map(|slot| slot.state) {
            self.slots.pop_front();
            self.first_psn += 1;
        }
    }

    /// With nothing in flight, nothing is in flight: no difference in counting outlives a quiet moment.
    fn settle(&mut self) {
        if self.outstanding == 0 && self.lost.is_empty() {
            self.in_flight = 0;
            self.sent.clear();
        }
    }

    /// A packet came to the receiver trimmed.
    pub(crate) fn on_nack(&mut self, config: &UecConfig, now: Time, nack: &Segment) {
        self.heard = now;
        let rtt = self.round_trip(now, nack);
        let psn = nack.sequence;
        if !self.lose(config, psn) {
            return;
        }
        let in_flight = self.in_flight.max(0) as u64;
        if let (Some(slot), Some(nscc)) = (
            self.slots.get((psn - self.first_psn) as usize),
            &mut self.nscc,
        ) {
            nscc.on_trimmed(now, rtt, config.wire_bytes(slot.piece.payload), in_flight);
        }
        if let Some(credit) = &mut self.credit {
            credit.stop_speculating();
        }
        self.entropies.feedback(nack.lane, Feedback::Trimmed);
    }

    /// Credit was granted.
    pub(crate) fn on_grant(&mut self, now: Time, granted: u64) {
        self.heard = now;
        if let Some(credit) = &mut self.credit {
            credit.grant(granted);
        }
    }

    /// Takes a packet out of flight, to be sent again; says whether it was in flight.
    fn lose(&mut self, config: &UecConfig, psn: u64) -> bool {
        let Some(slot) = self.slot_mut(psn) else {
            return false;
        };
        if slot.state != State::InFlight {
            return false;
        }
        slot.state = State::Lost;
        let bytes = config.wire_bytes(slot.piece.payload);
        self.lost.insert(psn);
        self.lost_bytes += bytes;
        self.outstanding -= 1;
        self.in_flight -= bytes as i64;
        true
    }

    /// Whether there is more to send, if anything is to be sent or on its way at all.
    fn more(&self) -> Option<bool> {
        let more = self.backlog > 0;
        (more || self.outstanding > 0).then_some(more)
    }

    /// Finds losses by order; `drained`: a probe has found the queues empty.
    fn recover(&mut self, config: &UecConfig, ack: &Segment, drained: bool) {
        let packet = config.nscc.packet_bytes;
        let order = Order {
            cumulative: ack.cumulative,
            out_of_order: u64::from(ack.offset),
            next_psn: self.next_psn(),
            window: self.window_packets(config),
            max_window: config.nscc.max_window(config.nscc.network_rtt) as u64 / packet,
        };
        if drained {
            self.sleek.drained(&order);
        }
        for psn in self.sleek.losses(&order, !self.lost.is_empty()) {
            if self.lose(config, psn) {
                self.sleek.resends(psn);
            }
        }
    }

    /// When it wants to be called.
    pub(crate) fn deadline(&mut self, config: &UecConfig) -> Option<Time> {
        while let Some(&(_, psn, again)) = self.sent.front() {
            let live = |slot: &Slot| slot.state == State::InFlight && slot.again == again;
            if self.slot(psn).is_some_and(live) {
                break;
            }
            self.sent.pop_front();
        }
        let timeout = self.sent.front().map(|&(at, _, _)| at + config.timeout);
        let starved = self.starved().then(|| self.heard + config.timeout);
        [timeout, starved, self.sleek.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether it needs credit, and nothing is on its way that would remind the receiver.
    fn starved(&self) -> bool {
        self.outstanding == 0
            && (self.backlog > 0 || !self.lost.is_empty())
            && self.credit.as_ref().is_some_and(|credit| !credit.allows())
    }

    /// Does what is due; returns a probe or a request for credit.
    pub(crate) fn timeout(
        &mut self,
        config: &UecConfig,
        now: Time,
        counters: &mut Counters,
    ) -> Option<Reply> {
        let mut expired = false;
        while self.deadline(config).is_some() {
            let Some(&(at, psn, _)) = self.sent.front() else {
                break;
            };
            if at + config.timeout > now {
                break;
            }
            expired = true;
            counters.timeouts += 1;
            let slot = self.slot(psn).copied();
            self.lose(config, psn);
            if let Some(slot) = slot {
                self.entropies.feedback(slot.lane, Feedback::TimedOut);
                if let Some(nscc) = &mut self.nscc {
                    nscc.on_loss(config.wire_bytes(slot.piece.payload));
                }
            }
        }
        if expired && let Some(credit) = &mut self.credit {
            credit.stop_speculating();
        }
        if self.sleek.deadline().is_some_and(|at| at <= now) {
            return Some(self.probe(config, now));
        }
        let starving = self.starved() && self.heard + config.timeout <= now;
        // Not more than one request per round trip, or an incast of requests follows one of data.
        let may = self
            .requested
            .is_none_or(|at| at + config.nscc.network_rtt <= now);
        let short = expired && self.credit.as_ref().is_some_and(|credit| !credit.allows());
        if (starving || short) && may {
            self.requested = Some(now);
            self.heard = now;
            let mut request = self.ask(REQUEST, 0);
            request.segment.vector = self.target(config, 1);
            return Some(request);
        }
        None
    }

    fn probe(&mut self, config: &UecConfig, now: Time) -> Reply {
        let base = self
            .nscc
            .as_ref()
            .map_or(config.nscc.network_rtt, Nscc::base_rtt);
        let number = self.sleek.probe(now, base, self.more());
        self.ask(PROBE, number)
    }

    fn ask(&mut self, kind: u8, sequence: u64) -> Reply {
        Reply {
            to: self.peer,
            segment: Segment {
                kind,
                lane: self.entropies.next(0),
                flow: self.context,
                sequence,
                ..Segment::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ACK;
    use super::*;
    use crate::random::Purpose;

    struct Bench {
        config: UecConfig,
        sender: Sender,
        counters: Counters,
        news: VecDeque<Progress>,
    }

    impl Bench {
        fn new(config: UecConfig) -> Self {
            let random = Stream::new(1, Purpose::Entropy, 0);
            let mut sender = Sender::new(&config, 1, 0, random);
            let message = Message {
                id: 0,
                peer: 1,
                bytes: 1 << 20,
                flow: 0,
            };
            sender.post(&config, Time::ZERO, &message);
            Self {
                config,
                sender,
                counters: Counters::default(),
                news: VecDeque::new(),
            }
        }

        fn send(&mut self, now: Time) -> Segment {
            let mut packet = Packet::default();
            let (config, counters) = (&self.config, &mut self.counters);
            assert!(self.sender.can_send(config));
            assert!(self.sender.send(config, now, 1, &mut packet, counters));
            packet.segment
        }

        fn ack(&mut self, now: Time, cumulative: u64, packets: u64) {
            let ack = Segment {
                kind: ACK,
                cumulative,
                message: 1,
                value: packets * 4214,
                ..Segment::default()
            };
            self.sender.on_ack(&self.config, now, &ack, &mut self.news);
        }
    }

    #[test]
    fn a_packet_that_arrives_though_it_was_taken_for_lost_is_counted_out_of_flight_once() {
        let mut bench = Bench::new(UecConfig {
            sleek: false,
            ..UecConfig::default()
        });
        let timeout = bench.config.timeout;
        bench.send(Time::ZERO);
        bench.send(timeout);
        assert_eq!(bench.sender.in_flight, 2 * 4214);
        bench
            .sender
            .timeout(&bench.config, timeout, &mut bench.counters);
        assert_eq!((bench.counters.timeouts, bench.sender.in_flight), (1, 4214));
        bench.ack(timeout, 1, 1);
        assert_eq!((bench.sender.in_flight, bench.sender.lost_bytes), (4214, 0));
        // It is not sent again.
        assert_eq!(bench.send(timeout).sequence, 2);
        assert_eq!(bench.counters.retransmissions, 0);
    }

    #[test]
    fn what_was_refused_goes_first_and_asks_for_an_answer() {
        let mut bench = Bench::new(UecConfig::trimming());
        let first = bench.send(Time::ZERO);
        assert_eq!(first.flags, 0);
        bench.send(Time::ZERO);
        let nack = Segment {
            kind: super::super::NACK,
            ..Segment::default()
        };
        for _ in 0..2 {
            // The second says nothing new.
            let now = Time::from_us(15);
            bench.sender.on_nack(&bench.config, now, &nack);
            assert_eq!(bench.sender.in_flight, 4214);
        }
        let again = bench.send(Time::from_us(16));
        assert_eq!((again.sequence, again.offset), (0, 0));
        assert_eq!(again.flags, ACK_REQUEST | RETRANSMISSION);
    }
}
