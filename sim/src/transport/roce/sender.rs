//! The requester of a queue pair: messages cut into packets, what is outstanding, what is sent again, and at which rate.

use std::collections::VecDeque;

use super::config::{Congestion, Recovery, RoceConfig};
use super::dcqcn::ReactionPoint;
use super::selective::Selective;
use crate::node::Message;
use crate::packet::HostId;
use crate::time::Time;

/// Where a queue pair waits for its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Place {
    /// It has nothing to send, or may not.
    #[default]
    Idle,
    /// In the round of those that may send.
    Round,
    /// For its rate to let it.
    Paced,
}

/// A message that is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    id: u32,
    bytes: u64,
    /// Its first packet.
    first: u64,
    /// The first packet of the next message.
    end: u64,
}

/// What goes into a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Emission {
    pub sequence: u64,
    pub message: u32,
    /// In packets.
    pub offset: u32,
    pub payload: u32,
    /// The last packet of its message.
    pub last: bool,
    pub ask: bool,
    pub again: bool,
}

/// What came of a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expiry {
    /// It was not time yet, or there is nothing to wait for.
    Early,
    /// A retransmission timeout.
    Timeout,
    /// One too many.
    Failed,
}

/// The requester of a queue pair.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    pub peer: HostId,
    /// Number of the queue pair among those to the peer.
    pub lane: u32,
    pub source_port: u16,
    pub place: Place,
    /// When its entry in the list of timers is due.
    pub armed: Time,
    pub reaction: Option<ReactionPoint>,
    pub failed: bool,
    messages: VecDeque<Outgoing>,
    /// Index of a message near the one sent last.
    hint: usize,
    /// The first unacknowledged packet.
    base: u64,
    /// The next packet, if none is to be sent again.
    next: u64,
    /// The first that was never sent.
    highest: u64,
    /// The first that no message has.
    end: u64,
    selective: Selective,
    /// Timeouts since the last progress.
    retries: u32,
    /// Of the last progress.
    since: Time,
    /// When the packet sent last was due, and its size.
    paced_at: Time,
    paced_bytes: u32,
}

impl Sender {
    /// The first packet that is not acknowledged, and the next that is sent.
    pub fn window(&self) -> (u64, u64) {
        (self.base, self.next)
    }

    pub fn new(config: &RoceConfig, peer: HostId, lane: u32, source_port: u16) -> Self {
        let reaction = match config.congestion {
            Congestion::None => None,
            Congestion::Dcqcn(_) => Some(ReactionPoint::new(config.line_mbps)),
        };
        Self {
            peer,
            lane,
            source_port,
            place: Place::Idle,
            armed: Time::NEVER,
            reaction,
            failed: false,
            messages: VecDeque::new(),
            hint: 0,
            base: 0,
            next: 0,
            highest: 0,
            end: 0,
            selective: Selective::default(),
            retries: 0,
            since: Time::ZERO,
            paced_at: Time::ZERO,
            paced_bytes: 0,
        }
    }

    pub fn post(&mut self, config: &RoceConfig, message: &Message) {
        let packets = message
            .bytes
            .div_ceil(u64::from(config.payload_bytes))
            .max(1);
        self.messages.push_back(Outgoing {
            id: message.id,
            bytes: message.bytes,
            first: self.end,
            end: self.end + packets,
        });
        self.end += packets;
    }

    /// Whether there is a packet that may be sent but for its rate.
    pub fn has_packet(&mut self, config: &RoceConfig) -> bool {
        if self.failed {
            return false;
        }
        if matches!(config.recovery, Recovery::Irn(_)) && self.selective.next_lost().is_some() {
            return true;
        }
        self.next < self.end
            && config
                .window_packets
                .is_none_or(|window| self.next - self.base < u64::from(window))
    }

    /// When the next packet is due by the rate. A packet that could not go when it was due may be made good, but only one.
    pub fn due(&mut self, config: &RoceConfig, now: Time) -> Time {
        let (Some(reaction), Congestion::Dcqcn(dcqcn)) = (&mut self.reaction, &config.congestion)
        else {
            return Time::ZERO;
        };
        reaction.advance(dcqcn, now);
        if reaction.is_limited() {
            self.paced_at + reaction.time_for(self.paced_bytes)
        } else {
            Time::ZERO
        }
    }

    /// When to look again whether the next packet is due: the rate may rise before that.
    pub fn wake(&mut self, config: &RoceConfig, now: Time) -> Time {
        let due = self.due(config, now);
        match &config.congestion {
            Congestion::Dcqcn(dcqcn) => due.min(now + dcqcn.increase_interval),
            Congestion::None => due,
        }
    }

    /// The next packet, which [`Sender::has_packet`] said is there.
    pub fn emit(&mut self, config: &RoceConfig, now: Time) -> Option<Emission> {
        let lost = match config.recovery {
            Recovery::Irn(_) => self.selective.next_lost(),
            Recovery::GoBackN | Recovery::AnyOrder => None,
        };
        let sequence = lost.unwrap_or(self.next);
        let message = *self.find(sequence)?;
        if lost.is_some() {
            self.selective.resent(sequence);
        } else {
            self.next += 1;
        }
        if self.base == self.highest {
            self.since = now;
        }
        let again = sequence < self.highest;
        self.highest = self.highest.max(self.next);
        let offset = sequence - message.first;
        let before = offset * u64::from(config.payload_bytes);
        let last = sequence + 1 == message.end;
        let shut = config
            .window_packets
            .is_some_and(|window| self.next - self.base >= u64::from(window));
        Some(Emission {
            sequence,
            message: message.id,
            offset: offset as u32,
            payload: (message.bytes - before).min(u64::from(config.payload_bytes)) as u32,
            last,
            ask: last || shut || (sequence + 1).is_multiple_of(u64::from(config.ack_every)),
            again,
        })
    }

    /// The packet that was emitted takes so many bytes on the line.
    pub fn sent(&mut self, config: &RoceConfig, now: Time, wire_bytes: u32) {
        let due = self.due(config, now);
        let (Some(reaction), Congestion::Dcqcn(dcqcn)) = (&mut self.reaction, &config.congestion)
        else {
            return;
        };
        reaction.sent(dcqcn, wire_bytes);
        let grace = now - reaction.time_for(wire_bytes);
        self.paced_at = due.max(grace);
        self.paced_bytes = wire_bytes;
    }

    /// Everything before `cumulative` has arrived; messages that are done are handed to `done`.
    pub fn acknowledged(&mut self, now: Time, cumulative: u64, mut done: impl FnMut(u32)) {
        if cumulative <= self.base || cumulative > self.highest {
            return;
        }
        self.base = cumulative;
        self.next = self.next.max(cumulative);
        self.selective.advance(cumulative, self.highest);
        self.since = now;
        self.retries = 0;
        while let Some(message) = self.messages.front() {
            if message.end > cumulative {
                break;
            }
            done(message.id);
            self.messages.pop_front();
            self.hint = self.hint.saturating_sub(1);
        }
    }

    /// The receiver misses the packet at `cumulative` (up to which [`Sender::acknowledged`] was told); `sequence` has arrived.
    pub fn missed(&mut self, config: &RoceConfig, now: Time, cumulative: u64, sequence: u64) {
        if cumulative != self.base || cumulative >= self.highest {
            return;
        }
        match config.recovery {
            Recovery::GoBackN => {
                self.next = cumulative;
                self.since = now;
            }
            Recovery::Irn(_) => self.selective.received(sequence, self.highest),
            Recovery::AnyOrder => {}
        }
    }

    /// When it waits no longer for an acknowledgment.
    pub fn deadline(&self, config: &RoceConfig) -> Time {
        if self.failed || self.base == self.highest {
            return Time::NEVER;
        }
        let wait = match config.recovery {
            Recovery::Irn(irn) if self.highest - self.base <= u64::from(irn.few) => irn.rto_low,
            Recovery::Irn(irn) => irn.rto_high,
            Recovery::GoBackN | Recovery::AnyOrder => config.timeout,
        };
        self.since + wait
    }

    /// Its timer has expired.
    pub fn expired(&mut self, config: &RoceConfig, now: Time) -> Expiry {
        if now < self.deadline(config) {
            return Expiry::Early;
        }
        self.retries += 1;
        if config.retries.is_some_and(|most| self.retries > most) {
            self.failed = true;
            return Expiry::Failed;
        }
        self.since = now;
        match config.recovery {
            Recovery::Irn(_) => self.selective.restart(self.highest),
            Recovery::GoBackN | Recovery::AnyOrder => self.next = self.base,
        }
        Expiry::Timeout
    }

    /// The messages that a failed queue pair gives up.
    pub fn give_up(&mut self) -> impl Iterator<Item = u32> + '_ {
        self.messages.drain(..).map(|message| message.id)
    }

    fn find(&mut self, sequence: u64) -> Option<&Outgoing> {
        let holds = |message: &Outgoing| message.first <= sequence && sequence < message.end;
        for index in [self.hint, self.hint + 1] {
            if self.messages.get(index).is_some_and(holds) {
                self.hint = index;
                return self.messages.get(index);
            }
        }
        self.hint = self
            .messages
            .partition_point(|message| message.end <= sequence);
        self.messages.get(self.hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(config: &RoceConfig, sizes: &[u64]) -> Sender {
        let mut sender = Sender::new(config, 1, 0, 0);
        for (id, &bytes) in (0..).zip(sizes) {
            let message = Message {
                id,
                peer: 1,
                bytes,
                flow: 0,
            };
            sender.post(config, &message);
        }
        sender
    }

    fn sequences(sender: &mut Sender, config: &RoceConfig, now: Time) -> Vec<u64> {
        let mut all = Vec::new();
        while sender.has_packet(config) {
            all.extend(sender.emit(config, now).map(|packet| packet.sequence));
        }
        all
    }

    #[test]
    fn messages_become_packets() {
        let config = RoceConfig::default();
        let mut sender = sender(&config, &[1, 4096, 10_000]);
        let mut sizes = Vec::new();
        while sender.has_packet(&config) {
            let packet = sender.emit(&config, Time::ZERO).unwrap();
            sizes.push((packet.message, packet.offset, packet.payload, packet.last));
        }
        let expected = [
            (0, 0, 1, true),
            (1, 0, 4096, true),
            (2, 0, 4096, false),
            (2, 1, 4096, false),
            (2, 2, 1808, true),
        ];
        assert_eq!(sizes, expected);
        let mut done = Vec::new();
        sender.acknowledged(Time::ZERO, 2, |id| done.push(id));
        sender.acknowledged(Time::ZERO, 4, |id| done.push(id));
        sender.acknowledged(Time::ZERO, 5, |id| done.push(id));
        // An acknowledgment of what was never sent is none.
        sender.acknowledged(Time::ZERO, 9, |id| done.push(id));
        assert_eq!(done, [0, 1, 2]);
        assert_eq!(sender.deadline(&config), Time::NEVER);
    }

    #[test]
    fn go_back_n_goes_back_and_gives_up() {
        let config = RoceConfig::default();
        let mut sender = sender(&config, &[40_000]);
        assert_eq!(
            sequences(&mut sender, &config, Time::ZERO),
            (0..10).collect::<Vec<_>>()
        );
        sender.acknowledged(Time::from_us(5), 4, |_| ());
        sender.missed(&config, Time::from_us(5), 4, 6);
        assert_eq!(
            sequences(&mut sender, &config, Time::from_us(5)),
            (4..10).collect::<Vec<_>>()
        );
        // Stale: the receiver has more by now.
        sender.missed(&config, Time::from_us(5), 3, 6);
        assert!(!sender.has_packet(&config));
        for timeout in 1..=8 {
            let at = sender.deadline(&config);
            assert_eq!(
                sender.expired(&config, at - Time::from_ps(1)),
                Expiry::Early
            );
            let expected = if timeout <= 7 {
                Expiry::Timeout
            } else {
                Expiry::Failed
            };
            assert_eq!(sender.expired(&config, at), expected);
        }
        assert!(!sender.has_packet(&config));
        assert_eq!(sender.give_up().collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn irn_keeps_to_its_window_and_has_two_timeouts() {
        let config = RoceConfig {
            window_packets: Some(8),
            ..RoceConfig::irn()
        };
        let mut sender = sender(&config, &[4096 * 20]);
        assert_eq!(sequences(&mut sender, &config, Time::ZERO).len(), 8);
        assert_eq!(sender.deadline(&config), Time::from_us(320));
        sender.missed(&config, Time::ZERO, 0, 3);
        assert_eq!(sequences(&mut sender, &config, Time::ZERO), [0, 1, 2]);
        sender.acknowledged(Time::from_us(20), 5, |_| ());
        // Three in flight are few.
        assert_eq!(sender.deadline(&config), Time::from_us(120));
        assert_eq!(sender.expired(&config, Time::from_us(120)), Expiry::Timeout);
        assert_eq!(
            sequences(&mut sender, &config, Time::from_us(120)),
            [5, 8, 9, 10, 11, 12]
        );
    }

    #[test]
    fn a_rate_spaces_packets_out() {
        let config = RoceConfig::default();
        let Congestion::Dcqcn(dcqcn) = config.congestion else {
            panic!("no congestion control");
        };
        let mut sender = sender(&config, &[1 << 20]);
        if let Some(reaction) = &mut sender.reaction {
            reaction.notified(&dcqcn, Time::from_us(100));
        }
        let mut now = Time::from_us(100);
        for _ in 0..100 {
            assert!(sender.due(&config, now) <= now);
            sender.emit(&config, now);
            sender.sent(&config, now, 4178);
            now = now.max(sender.due(&config, now));
        }
        // 50 Gb/s: 668.48 ns each, one of them in advance.
        assert_eq!(now.since(Time::from_us(100)).ps(), 99 * 668_480);
    }
}
