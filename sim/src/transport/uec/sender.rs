//! The sending end of a delivery context: what is on its way, what is lost, and whether the next packet may go.
//!
//! Losses show in three ways: a NACK for a trimmed packet; a packet that was not answered for a fixed time; and, where
//! switches do not trim, the rules of `sleek`.

use std::collections::VecDeque;

use super::entropy::{Entropies, Feedback};
use super::flight::{Flight, Transmission};
use super::nscc::Nscc;
use super::outbox::Outbox;
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

/// The sending end of a context.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// It waits in its host's queue for the line.
    pub queued: bool,
    /// The earliest time for which its host's timer is set.
    pub armed: Time,
    peer: HostId,
    context: u32,
    outbox: Outbox,
    flight: Flight,
    /// Bytes that were not sent yet.
    backlog: u64,
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
            flight: Flight::default(),
            backlog: 0,
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
                self.sleek.is_recovering() && self.flight.has_lost()
                    || self.flight.with(bytes) <= nscc.window()
            })
    }

    fn next_bytes(&self, config: &UecConfig) -> Option<u64> {
        self.flight.next_lost().or_else(|| {
            let piece = self.outbox.peek(config.payload_bytes)?;
            Some(config.wire_bytes(piece.payload))
        })
    }

    fn window_packets(&self, config: &UecConfig) -> u64 {
        let window = self.window().unwrap_or(config.rccc.max_credit);
        window / config.nscc.packet_bytes
    }

    /// Writes the next packet, which [`Sender::can_send`] has allowed; `sharers` contexts want the line.
    pub fn send(
        &mut self,
        config: &UecConfig,
        now: Time,
        sharers: u64,
        packet: &mut Packet,
        counters: &mut Counters,
    ) -> bool {
        let lane = self.entropies.next(self.window_packets(config));
        let again = self.flight.resend(now, lane);
        let Some(sent) = again.or_else(|| self.cut(config, now, lane)) else {
            return false;
        };
        let Some(&message) = self.outbox.get(sent.piece.message) else {
            return false;
        };
        if let Some(credit) = &mut self.credit {
            credit.spend(sent.bytes);
        }
        counters.data_packets += 1;
        counters.retransmissions += u64::from(again.is_some());
        let mut flags = if again.is_some() {
            ACK_REQUEST | RETRANSMISSION
        } else {
            0
        };
        if self.wants_answer(sent.bytes) {
            flags |= ACK_REQUEST;
        }
        packet.length =
            sent.piece.payload + config.overhead_bytes.saturating_sub(super::AROUND_UDP);
        packet.wire_bytes = sent.bytes as u32;
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
            offset: sent.piece.offset,
            payload: sent.piece.payload,
            sequence: sent.psn,
            cumulative: message.index,
            vector: self.target(config, sharers),
            value: message.bytes,
            stamp: now,
        };
        true
    }

    /// A new packet.
    fn cut(&mut self, config: &UecConfig, now: Time, lane: u16) -> Option<Transmission> {
        let piece = self.outbox.cut(config.payload_bytes)?;
        let bytes = config.wire_bytes(piece.payload);
        self.backlog -= bytes;
        Some(self.flight.send(now, lane, piece, bytes))
    }

    /// Whether nothing more can be sent after a packet of `bytes` until an answer comes.
    fn wants_answer(&self, bytes: u64) -> bool {
        let full = |nscc: &Nscc| self.flight.with(bytes) >= nscc.window();
        self.backlog == 0
            || self.credit.as_ref().is_some_and(|credit| !credit.allows())
            || self.nscc.as_ref().is_some_and(full)
    }

    fn target(&self, config: &UecConfig, sharers: u64) -> u64 {
        let packet = config.nscc.packet_bytes;
        let limit = self.window().map_or(u64::MAX, |window| window + packet);
        let backlog = self.backlog + self.flight.lost_bytes();
        self.credit
            .as_ref()
            .map_or(0, |credit| credit.target(backlog, limit, packet, sharers))
    }

    /// An acknowledgment.
    pub fn on_ack(
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
        self.flight.arrived(bytes);
        let rtt = if probe {
            self.sleek.probe_rtt(now, ack.sequence)
        } else {
            let again = ack.flags & RETRANSMISSION != 0;
            self.flight.round_trip(now, ack.sequence, again)
        };
        while let Some(psn) = self.flight.first_below(ack.cumulative) {
            self.acknowledge(psn, news);
        }
        let from = ack.cumulative + u64::from(ack.message);
        let mut bits = ack.vector;
        while bits != 0 {
            self.acknowledge(from + u64::from(bits.trailing_zeros()), news);
            bits &= bits - 1;
        }
        self.flight.settle();
        let feedback = if marked {
            Feedback::Marked
        } else {
            Feedback::Good
        };
        self.entropies.feedback(ack.lane, feedback);
        let in_flight = self.flight.with(0);
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

    fn acknowledge(&mut self, psn: u64, news: &mut VecDeque<Progress>) {
        if let Some(piece) = self.flight.acknowledge(psn) {
            self.outbox.acknowledge(piece.message, piece.payload, news);
        }
    }

    /// A packet came to the receiver trimmed.
    pub fn on_nack(&mut self, now: Time, nack: &Segment) {
        self.heard = now;
        let again = nack.flags & RETRANSMISSION != 0;
        let rtt = self.flight.round_trip(now, nack.sequence, again);
        let Some(lost) = self.flight.lose(nack.sequence) else {
            return;
        };
        if let Some(nscc) = &mut self.nscc {
            nscc.on_trimmed(now, rtt, lost.bytes, self.flight.with(0));
        }
        if let Some(credit) = &mut self.credit {
            credit.stop_speculating();
        }
        self.entropies.feedback(nack.lane, Feedback::Trimmed);
    }

    /// Credit was granted.
    pub fn on_grant(&mut self, now: Time, granted: u64) {
        self.heard = now;
        if let Some(credit) = &mut self.credit {
            credit.grant(granted);
        }
    }

    /// Whether there is more to send, if anything is to be sent or on its way at all.
    fn more(&self) -> Option<bool> {
        let more = self.backlog > 0;
        (more || self.flight.is_underway()).then_some(more)
    }

    /// Finds losses by order; `drained`: a probe has found the queues empty.
    fn recover(&mut self, config: &UecConfig, ack: &Segment, drained: bool) {
        let packet = config.nscc.packet_bytes;
        let order = Order {
            cumulative: ack.cumulative,
            out_of_order: u64::from(ack.offset),
            next_psn: self.flight.next_psn(),
            window: self.window_packets(config),
            max_window: config.nscc.max_window(config.nscc.network_rtt) as u64 / packet,
        };
        if drained {
            self.sleek.drained(&order);
        }
        for psn in self.sleek.losses(&order, self.flight.has_lost()) {
            if let Some(lost) = self.flight.lose(psn) {
                self.entropies.feedback(lost.lane, Feedback::TimedOut);
                self.sleek.resends(psn);
            }
        }
    }

    /// When it wants to be called.
    pub fn deadline(&mut self, config: &UecConfig) -> Option<Time> {
        let timeout = self.flight.oldest().map(|(at, _)| at + config.timeout);
        let starved = self.starved().then(|| self.heard + config.timeout);
        [timeout, starved, self.sleek.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether it needs credit, and nothing is on its way that would remind the receiver.
    fn starved(&self) -> bool {
        !self.flight.is_underway()
            && (self.backlog > 0 || self.flight.has_lost())
            && self.credit.as_ref().is_some_and(|credit| !credit.allows())
    }

    /// Does what is due; returns a probe or a request for credit.
    pub fn timeout(
        &mut self,
        config: &UecConfig,
        now: Time,
        counters: &mut Counters,
    ) -> Option<Reply> {
        let mut expired = false;
        while let Some((at, psn)) = self.flight.oldest()
            && at + config.timeout <= now
            && let Some(lost) = self.flight.lose(psn)
        {
            expired = true;
            counters.timeouts += 1;
            self.entropies.feedback(lost.lane, Feedback::TimedOut);
            if let Some(nscc) = &mut self.nscc {
                nscc.on_loss(lost.bytes);
            }
        }
        if expired && let Some(credit) = &mut self.credit {
            credit.stop_speculating();
        }
        if self.sleek.deadline().is_some_and(|at| at <= now) {
            return Some(self.probe(config, now));
        }
        let starving = self.starved() && self.heard + config.timeout <= now;
        let short = expired && self.credit.as_ref().is_some_and(|credit| !credit.allows());
        // Not more than one request per round trip, or an incast of requests follows one of data.
        let may = self
            .requested
            .is_none_or(|at| at + config.nscc.network_rtt <= now);
        if starving || short && may {
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
        let (more, next) = (self.more(), self.flight.next_psn());
        let number = self.sleek.probe(now, base, more, next);
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
    use super::super::NACK;
    use super::*;
    use crate::random::Purpose;

    struct Bench {
        config: UecConfig,
        sender: Sender,
        counters: Counters,
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
            }
        }

        fn send(&mut self, now: Time) -> Segment {
            let mut packet = Packet::default();
            let (config, counters) = (&self.config, &mut self.counters);
            assert!(self.sender.can_send(config));
            assert!(self.sender.send(config, now, 1, &mut packet, counters));
            packet.segment
        }
    }

    #[test]
    fn what_was_refused_goes_first_and_asks_for_an_answer() {
        let mut bench = Bench::new(UecConfig::trimming());
        let first = bench.send(Time::ZERO);
        assert_eq!(first.flags, 0);
        bench.send(Time::ZERO);
        let nack = Segment {
            kind: NACK,
            ..Segment::default()
        };
        for _ in 0..2 {
            // The second says nothing new.
            let now = Time::from_us(15);
            bench.sender.on_nack(now, &nack);
            assert_eq!(bench.sender.flight.with(0), 4214);
        }
        let again = bench.send(Time::from_us(16));
        assert_eq!((again.sequence, again.offset), (0, 0));
        assert_eq!(again.flags, ACK_REQUEST | RETRANSMISSION);
    }
}
