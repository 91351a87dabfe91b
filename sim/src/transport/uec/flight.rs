//! What a sender has on its way: packets that may have to be sent again, and how many bytes are in the network.
//!
//! Bytes leave the network by the count of bytes that the receiver says it got, not packet by packet: so acknowledgments
//! may be lost or overtake each other (specification, 3.6.13). What is taken for lost leaves it too, and comes back if
//! the receiver turns out to have counted it.

use std::collections::{BTreeSet, VecDeque};

use super::outbox::Piece;
use crate::time::Time;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    InFlight,
    /// To be sent again.
    Lost,
    Acknowledged,
}

/// A packet as it was sent last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    /// Its number.
    pub psn: u64,
    /// What it carries.
    pub piece: Piece,
    /// Its entropy value.
    pub lane: u16,
    /// How often it was sent again.
    pub again: u8,
    /// What it takes on the line.
    pub bytes: u64,
    sent: Time,
    state: State,
}

/// Packets on their way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flight {
    slots: VecDeque<Transmission>,
    first_psn: u64,
    lost: BTreeSet<u64>,
    lost_bytes: u64,
    /// In the order of their times; what was answered or sent again is taken out when it is the first.
    times: VecDeque<(Time, u64, u8)>,
    outstanding: u64,
    /// May be below zero for a moment, when what was taken for lost arrives.
    in_flight: i64,
}

impl Flight {
    /// Bytes in the network, with this many more.
    pub fn with(&self, bytes: u64) -> u64 {
        (self.in_flight + bytes as i64).max(0) as u64
    }

    /// Whether any packet is unanswered that is not taken for lost.
    pub fn is_underway(&self) -> bool {
        self.outstanding > 0
    }

    /// Whether packets wait to be sent again.
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Their bytes.
    pub fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    /// The bytes of the first of them.
    pub fn next_lost(&self) -> Option<u64> {
        let slot = self.get(*self.lost.first()?)?;
        Some(slot.bytes)
    }

    /// The number of the next new packet.
    pub fn next_psn(&self) -> u64 {
        self.first_psn + self.slots.len() as u64
    }

    /// The lowest number that is not acknowledged, if there is one below `cumulative`.
    pub fn first_below(&self, cumulative: u64) -> Option<u64> {
        (self.first_psn < cumulative && !self.slots.is_empty()).then_some(self.first_psn)
    }

    fn get(&self, psn: u64) -> Option<&Transmission> {
        self.slots.get(psn.checked_sub(self.first_psn)? as usize)
    }

    fn get_mut(&mut self, psn: u64) -> Option<&mut Transmission> {
        let index = psn.checked_sub(self.first_psn)? as usize;
        self.slots.get_mut(index)
    }

    /// The first lost packet is sent again.
    pub fn resend(&mut self, now: Time, lane: u16) -> Option<Transmission> {
        let psn = self.lost.pop_first()?;
        let slot = self.get_mut(psn)?;
        slot.again = slot.again.saturating_add(1);
        slot.state = State::InFlight;
        slot.sent = now;
        slot.lane = lane;
        let slot = *slot;
        self.lost_bytes -= slot.bytes;
        self.launch(&slot);
        Some(slot)
    }

    /// A new packet is sent.
    pub fn send(&mut self, now: Time, lane: u16, piece: Piece, bytes: u64) -> Transmission {
        let slot = Transmission {
            psn: self.next_psn(),
            piece,
            lane,
            again: 0,
            bytes,
            sent: now,
            state: State::InFlight,
        };
        self.slots.push_back(slot);
        self.launch(&slot);
        slot
    }

    fn launch(&mut self, slot: &Transmission) {
        self.outstanding += 1;
        self.in_flight += slot.bytes as i64;
        self.times.push_back((slot.sent, slot.psn, slot.again));
    }

    /// The receiver has got this many bytes more.
    pub fn arrived(&mut self, bytes: u64) {
        self.in_flight -= bytes as i64;
    }

    /// The round trip of a packet that is answered, if it is certain which transmission is meant: the answer says
    /// whether it was sent `again`.
    pub fn round_trip(&self, now: Time, psn: u64, again: bool) -> Option<Time> {
        let slot = self.get(psn)?;
        (slot.state == State::InFlight && slot.again == u8::from(again))
            .then(|| now.since(slot.sent))
    }

    /// A packet is acknowledged; what it carried, if that is news.
    pub fn acknowledge(&mut self, psn: u64) -> Option<Piece> {
        let slot = self.get_mut(psn)?;
        let before = core::mem::replace(&mut slot.state, State::Acknowledged);
        let (piece, bytes) = (slot.piece, slot.bytes);
        match before {
            State::Acknowledged => return None,
            State::InFlight => self.outstanding -= 1,
            State::Lost => {
                // It left the network when it was taken for lost, and again by what the receiver counted.
                self.lost.remove(&psn);
                self.lost_bytes -= bytes;
                self.in_flight += bytes as i64;
            }
        }
        while let Some(State::Acknowledged) = self.slots.front().map(|slot| slot.state) {
            self.slots.pop_front();
            self.first_psn += 1;
        }
        Some(piece)
    }

    /// With nothing underway nothing is in flight: no difference in counting outlives a quiet moment.
    pub fn settle(&mut self) {
        if self.outstanding == 0 && self.lost.is_empty() {
            self.in_flight = 0;
            self.times.clear();
        }
    }

    /// Takes a packet for lost, to be sent again; none if it is not on its way.
    pub fn lose(&mut self, psn: u64) -> Option<Transmission> {
        let slot = self.get_mut(psn)?;
        if slot.state != State::InFlight {
            return None;
        }
        slot.state = State::Lost;
        let slot = *slot;
        self.lost.insert(psn);
        self.lost_bytes += slot.bytes;
        self.outstanding -= 1;
        self.in_flight -= slot.bytes as i64;
        Some(slot)
    }

    /// The packet that is on its way for longest, and since when.
    pub fn oldest(&mut self) -> Option<(Time, u64)> {
        while let Some(&(at, psn, again)) = self.times.front() {
            let live = |slot: &Transmission| slot.state == State::InFlight && slot.again == again;
            if self.get(psn).is_some_and(live) {
                return Some((at, psn));
            }
            self.times.pop_front();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(packets: u64) -> Flight {
        let mut flight = Flight::default();
        for n in 0..packets {
            let piece = Piece {
                message: 0,
                offset: n as u32,
                payload: 900,
            };
            flight.send(Time::from_us(n), 0, piece, 1_000);
        }
        flight
    }

    #[test]
    fn a_packet_that_arrives_though_it_was_taken_for_lost_is_counted_out_once() {
        let mut flight = flight(3);
        assert_eq!(flight.with(500), 3_500);
        assert!(flight.lose(1).is_some() && flight.lose(1).is_none());
        assert_eq!((flight.with(0), flight.lost_bytes()), (2_000, 1_000));
        flight.arrived(1_000);
        assert!(flight.acknowledge(1).is_some() && flight.acknowledge(1).is_none());
        assert_eq!((flight.with(0), flight.lost_bytes()), (2_000, 0));
        assert!(flight.resend(Time::ZERO, 0).is_none());
    }

    #[test]
    fn both_copies_of_a_packet_are_counted_once() {
        let mut flight = flight(2);
        flight.lose(0);
        let again = flight.resend(Time::from_us(9), 3).unwrap();
        assert_eq!((again.psn, again.again, again.lane), (0, 1, 3));
        assert_eq!(flight.with(0), 2_000);
        // The receiver counts one of them, the other is a duplicate there.
        flight.arrived(1_000);
        flight.acknowledge(0);
        assert_eq!((flight.with(0), flight.next_psn()), (1_000, 2));
    }

    #[test]
    fn time_is_told_by_the_transmission_that_is_meant() {
        let mut flight = flight(2);
        let now = Time::from_us(20);
        assert_eq!(flight.round_trip(now, 1, false), Some(Time::from_us(19)));
        assert_eq!(flight.oldest(), Some((Time::ZERO, 0)));
        flight.lose(0);
        assert_eq!(flight.oldest(), Some((Time::from_us(1), 1)));
        flight.resend(Time::from_us(9), 0);
        assert_eq!(flight.round_trip(now, 0, false), None);
        assert_eq!(flight.round_trip(now, 0, true), Some(Time::from_us(11)));
        flight.acknowledge(1);
        assert_eq!(flight.oldest(), Some((Time::from_us(9), 0)));
        // Sent a second time again, no answer is certain.
        flight.lose(0);
        flight.resend(now, 0);
        assert_eq!(flight.round_trip(now, 0, true), None);
    }
}
