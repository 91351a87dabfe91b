//! The receiving end of a queue pair: messages that are open, and how each ends.

use std::collections::VecDeque;

use super::patience::Patience;
use super::{CelerisConfig, NOTICE};
use crate::node::{Counters, Progress};
use crate::packet::{HostId, Segment};
use crate::time::Time;

/// The scale of the time per byte in a notice.
pub(crate) const COST_SCALE: f64 = 1024.0;

/// How far a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    /// Nothing is known of it but that later ones exist.
    #[default]
    Unknown,
    /// It may still get packets.
    Open,
    /// It gets no more.
    Over,
}

/// A message that is not delivered.
#[derive(Clone, Debug, Default)]
struct Incoming {
    state: State,
    id: u32,
    bytes: u64,
    placed: u64,
    first: Time,
    last: Time,
    /// Payload of its first packet, whose time on the line is before the clock of the message starts.
    head: u64,
    until: Time,
    /// Which packets came.
    packets: Vec<u64>,
}

/// The receiving end of a queue pair.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// The earliest time for which its host's timer is set.
    pub armed: Time,
    /// The sender.
    pub peer: HostId,
    pair: u32,
    next: u64,
    open: VecDeque<Incoming>,
}

/// What the end of a message changes at its host.
pub(crate) struct Outcome<'a> {
    /// What the host knows of times.
    pub patience: &'a mut Patience,
    /// Its counts.
    pub counters: &'a mut Counters,
    /// Its reports.
    pub news: &'a mut VecDeque<Progress>,
    /// Notices to be sent.
    pub notices: &'a mut Vec<Segment>,
}

impl Receiver {
    /// For what `peer` sends over a queue pair.
    pub fn new(peer: HostId, pair: u32) -> Self {
        Self {
            armed: Time::NEVER,
            peer,
            pair,
            next: 0,
            open: VecDeque::new(),
        }
    }

    /// A data packet.
    pub fn on_data(
        &mut self,
        config: &CelerisConfig,
        now: Time,
        segment: &Segment,
        outcome: &mut Outcome<'_>,
    ) {
        let Some(index) = self.learn(now, segment, outcome.patience) else {
            outcome.counters.out_of_order_drops += 1;
            return;
        };
        let known = |message: &Incoming| message.state != State::Unknown;
        if config.preempt && self.open.range(index + 1..).any(known) {
            self.end(index, outcome);
        }
        let message = &mut self.open[index];
        if message.state == State::Over {
            outcome.counters.out_of_order_drops += 1;
            self.deliver(outcome.news);
            return;
        }
        let (word, bit) = (segment.offset as usize / 64, segment.offset % 64);
        if message.packets.len() <= word {
            message.packets.resize(word + 1, 0);
        }
        if message.packets[word] >> bit & 1 == 1 {
            outcome.counters.duplicates += 1;
            return;
        }
        message.packets[word] |= 1 << bit;
        if message.placed == 0 {
            message.head = u64::from(segment.payload);
        }
        message.placed += u64::from(segment.payload);
        message.last = now;
        outcome.counters.placed_bytes += u64::from(segment.payload);
        if message.placed >= message.bytes {
            self.end(index, outcome);
        }
        if config.preempt {
            for earlier in 0..index {
                self.end(earlier, outcome);
            }
        }
        self.deliver(outcome.news);
    }

    /// The sender describes a message of which it has heard nothing. If no packet of it came, none will.
    pub fn on_description(&mut self, now: Time, segment: &Segment, outcome: &mut Outcome<'_>) {
        match self.learn(now, segment, outcome.patience) {
            Some(index) => {
                let message = &self.open[index];
                if message.state == State::Open && message.placed == 0 {
                    self.end(index, outcome);
                } else if message.state == State::Over {
                    outcome.notices.push(self.notice(segment.sequence, 0.0));
                }
                self.deliver(outcome.news);
            }
            None => outcome.notices.push(self.notice(segment.sequence, 0.0)),
        }
    }

    /// When the first message runs out of time.
    pub fn deadline(&self) -> Option<Time> {
        let open = self.open.iter().filter(|m| m.state == State::Open);
        open.map(|message| message.until).min()
    }

    /// Ends messages whose time is up.
    pub fn timeout(&mut self, now: Time, outcome: &mut Outcome<'_>) {
        for index in 0..self.open.len() {
            let message = &self.open[index];
            if message.state == State::Open && message.until <= now {
                outcome.counters.timeouts += 1;
                self.end(index, outcome);
            }
        }
        self.deliver(outcome.news);
    }

    /// The place of the message that a packet belongs to, which is known now; none if it was delivered.
    fn learn(&mut self, now: Time, segment: &Segment, patience: &Patience) -> Option<usize> {
        let index = segment.sequence.checked_sub(self.next)? as usize;
        if self.open.len() <= index {
            self.open.resize(index + 1, Incoming::default());
        }
        let message = &mut self.open[index];
        if message.state == State::Unknown {
            *message = Incoming {
                state: State::Open,
                id: segment.message,
                bytes: segment.value,
                first: now,
                last: now,
                until: now + patience.for_message(segment.value),
                ..Incoming::default()
            };
        }
        Some(index)
    }

    /// A message, if it is open, is over, with what came of it.
    fn end(&mut self, index: usize, outcome: &mut Outcome<'_>) {
        let number = self.next + index as u64;
        let message = &mut self.open[index];
        if message.state != State::Open {
            return;
        }
        message.state = State::Over;
        message.packets = Vec::new();
        // The first packet came at no time: what one packet alone took says nothing.
        let counted = message.placed - message.head;
        let mut cost = 0.0;
        if counted > 0 {
            cost = message.last.since(message.first).ps() as f64 / counted as f64;
            outcome.patience.sample(cost);
        }
        outcome.notices.push(self.notice(number, cost));
    }

    fn deliver(&mut self, news: &mut VecDeque<Progress>) {
        while let Some(message) = self.open.front().filter(|m| m.state == State::Over) {
            news.push_back(Progress::Delivered {
                id: message.id,
                lost_bytes: message.bytes - message.placed,
            });
            self.open.pop_front();
            self.next += 1;
        }
    }

    fn notice(&self, number: u64, cost: f64) -> Segment {
        Segment {
            kind: NOTICE,
            flow: self.pair,
            sequence: number,
            value: (cost * COST_SCALE) as u64,
            ..Segment::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::PatienceConfig;
    use super::*;

    struct Bench {
        config: CelerisConfig,
        receiver: Receiver,
        patience: Patience,
        counters: Counters,
        news: VecDeque<Progress>,
        notices: Vec<Segment>,
    }

    impl Bench {
        fn new(preempt: bool) -> Self {
            Self {
                config: CelerisConfig {
                    preempt,
                    ..CelerisConfig::default()
                },
                receiver: Receiver::new(0, 0),
                patience: Patience::new(PatienceConfig::default(), 100_000, 1),
                counters: Counters::default(),
                news: VecDeque::new(),
                notices: Vec::new(),
            }
        }

        fn at(
            &mut self,
            us: u64,
            act: impl FnOnce(&mut Receiver, &CelerisConfig, Time, &mut Outcome<'_>),
        ) {
            let mut outcome = Outcome {
                patience: &mut self.patience,
                counters: &mut self.counters,
                news: &mut self.news,
                notices: &mut self.notices,
            };
            act(
                &mut self.receiver,
                &self.config,
                Time::from_us(us),
                &mut outcome,
            );
        }

        /// A packet of message `number`, of four packets.
        fn data(&mut self, us: u64, number: u64, offset: u32) {
            let segment = Segment {
                sequence: number,
                message: 10 + number as u32,
                offset,
                payload: 1_000,
                value: 4_000,
                ..Segment::default()
            };
            self.at(us, |receiver, config, now, outcome| {
                receiver.on_data(config, now, &segment, outcome)
            });
        }

        fn delivered(&mut self) -> Vec<(u32, u64)> {
            self.news
                .drain(..)
                .map(|progress| match progress {
                    Progress::Delivered { id, lost_bytes } => (id, lost_bytes),
                    other => panic!("{other:?}"),
                })
                .collect()
        }
    }

    #[test]
    fn a_message_ends_when_all_came_or_its_time_is_up_and_what_comes_later_is_dropped() {
        let mut bench = Bench::new(true);
        for offset in [2, 0, 0, 3, 1] {
            bench.data(1, 0, offset);
        }
        assert_eq!(bench.delivered(), [(10, 0)]);
        assert_eq!(bench.counters.duplicates, 1);
        bench.data(10, 1, 0);
        bench.data(11, 1, 2);
        let until = bench.receiver.deadline().unwrap();
        assert_eq!(until, Time::from_us(10) + bench.patience.for_message(4_000));
        bench.at(1_000, |receiver, _, now, outcome| {
            receiver.timeout(now, outcome)
        });
        assert_eq!(bench.delivered(), [(11, 2_000)]);
        bench.data(1_001, 1, 1);
        assert_eq!(bench.counters.out_of_order_drops, 1);
        assert_eq!(bench.counters.placed_bytes, 6_000);
        assert_eq!(bench.notices.len(), 2);
    }

    #[test]
    fn a_later_message_ends_earlier_ones_and_one_of_which_nothing_came_is_asked_for() {
        let mut bench = Bench::new(true);
        bench.data(1, 0, 0);
        bench.data(2, 2, 0);
        // Message 1 is not known at all: its place must be kept.
        assert_eq!(bench.delivered(), [(10, 3_000)]);
        for offset in 1..4 {
            bench.data(3, 2, offset);
        }
        assert_eq!(bench.delivered(), []);
        let description = Segment {
            kind: super::super::DESCRIPTION,
            sequence: 1,
            message: 11,
            value: 4_000,
            ..Segment::default()
        };
        // A message that is over but waits is answered too.
        bench.notices.clear();
        let waits = Segment {
            sequence: 2,
            ..description
        };
        bench.at(8, |receiver, _, now, outcome| {
            receiver.on_description(now, &waits, outcome);
        });
        assert_eq!(bench.notices.len(), 1);
        for _ in 0..2 {
            bench.at(9, |receiver, _, now, outcome| {
                receiver.on_description(now, &description, outcome);
            });
        }
        assert_eq!(bench.delivered(), [(11, 4_000), (12, 0)]);
        // The second description is answered too: the first answer may have been lost.
        assert_eq!(bench.notices.iter().filter(|n| n.sequence == 1).count(), 2);
    }

    #[test]
    fn without_preemption_messages_overlap() {
        let mut bench = Bench::new(false);
        bench.data(1, 0, 0);
        for offset in 0..4 {
            bench.data(2, 1, offset);
        }
        assert_eq!(bench.delivered(), []);
        for offset in 1..4 {
            bench.data(3, 0, offset);
        }
        assert_eq!(bench.delivered(), [(10, 0), (11, 0)]);
    }
}
