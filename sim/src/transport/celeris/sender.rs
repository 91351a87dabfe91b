//! The sending end of a queue pair: messages that wait, the rate, and what the receiver has not answered.

use std::collections::VecDeque;

use super::{CelerisConfig, Completion, DATA, DESCRIPTION};
use crate::node::{Message, Progress};
use crate::packet::{HostId, Segment};
use crate::time::Time;
use crate::transport::roce::dcqcn::ReactionPoint;

/// A message of which it is not known that it is over.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    id: u32,
    bytes: u64,
    cut: u64,
    /// When it is described next; [`Time::NEVER`] until its last packet was sent.
    describe_at: Time,
    over: bool,
}

/// The sending end of a queue pair.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// It waits in its host's queue for the line.
    pub queued: bool,
    /// The earliest time for which its host's timer is set.
    pub armed: Time,
    /// The receiver.
    pub peer: HostId,
    pair: u32,
    messages: VecDeque<Outgoing>,
    first: u64,
    cutting: u64,
    reaction: ReactionPoint,
    /// The rate allows the next packet from then on.
    next_at: Time,
}

impl Sender {
    /// For what goes to `peer` over a queue pair.
    pub fn new(config: &CelerisConfig, peer: HostId, pair: u32) -> Self {
        Self {
            queued: false,
            armed: Time::NEVER,
            peer,
            pair,
            messages: VecDeque::new(),
            first: 0,
            cutting: 0,
            reaction: ReactionPoint::new(config.line_mbps),
            next_at: Time::ZERO,
        }
    }

    /// Takes a message.
    pub fn post(&mut self, message: &Message) {
        self.messages.push_back(Outgoing {
            id: message.id,
            bytes: message.bytes,
            cut: 0,
            describe_at: Time::NEVER,
            over: false,
        });
    }

    fn message(&mut self, number: u64) -> Option<&mut Outgoing> {
        let index = number.checked_sub(self.first)? as usize;
        self.messages.get_mut(index)
    }

    /// Whether it has something to send, now or once the rate allows it.
    fn has_data(&self) -> bool {
        self.cutting < self.first + self.messages.len() as u64
    }

    /// Whether it may send now.
    pub fn can_send(&self, now: Time) -> bool {
        self.has_data() && self.next_at <= now
    }

    /// The next packet.
    pub fn send(
        &mut self,
        config: &CelerisConfig,
        now: Time,
        news: &mut VecDeque<Progress>,
    ) -> Option<Segment> {
        let (number, full) = (self.cutting, u64::from(config.payload_bytes));
        let pair = self.pair;
        let message = self.message(number)?;
        let payload = (message.bytes - message.cut).min(full);
        let segment = Segment {
            kind: DATA,
            flow: pair,
            message: message.id,
            offset: (message.cut / full) as u32,
            payload: payload as u32,
            sequence: number,
            value: message.bytes,
            stamp: now,
            ..Segment::default()
        };
        message.cut += payload;
        if message.cut == message.bytes {
            message.describe_at = now + config.describe_after;
            if config.completion == Completion::Sent {
                news.push_back(Progress::Acknowledged { id: message.id });
            }
            self.cutting += 1;
            self.forget(config, news);
        }
        if let Some(dcqcn) = &config.dcqcn {
            let bytes = segment.payload + config.overhead_bytes;
            self.reaction.advance(dcqcn, now);
            self.reaction.sent(dcqcn, bytes);
            self.next_at = now;
            if self.reaction.is_limited() {
                self.next_at += self.reaction.time_for(bytes);
            }
        }
        Some(segment)
    }

    /// A notification of congestion.
    pub fn on_congestion(&mut self, config: &CelerisConfig, now: Time) {
        if let Some(dcqcn) = &config.dcqcn {
            self.reaction.notified(dcqcn, now);
        }
    }

    /// A message is over at the receiver.
    pub fn on_notice(
        &mut self,
        config: &CelerisConfig,
        number: u64,
        news: &mut VecDeque<Progress>,
    ) {
        if let Some(message) = self.message(number) {
            message.over = true;
        }
        self.forget(config, news);
    }

    /// Forgets messages that are over and sent. (One whose time is up at the receiver is sent to its end all the same.)
    fn forget(&mut self, config: &CelerisConfig, news: &mut VecDeque<Progress>) {
        while self.first < self.cutting
            && let Some(&done) = self.messages.front()
            && done.over
        {
            self.messages.pop_front();
            self.first += 1;
            if config.completion == Completion::Notice {
                news.push_back(Progress::Acknowledged { id: done.id });
            }
        }
    }

    /// When it wants to be called: for its rate, or because a message is not known to be over.
    pub fn deadline(&self, now: Time) -> Option<Time> {
        let pace = (self.has_data() && self.next_at > now).then_some(self.next_at);
        let describe = self.messages.front().map(|message| message.describe_at);
        let describe = describe.filter(|&at| at != Time::NEVER);
        [pace, describe].into_iter().flatten().min()
    }

    /// Describes all messages that are due.
    pub fn timeout(&mut self, config: &CelerisConfig, now: Time, out: &mut Vec<Segment>) {
        let (first, pair) = (self.first, self.pair);
        let sent = (self.cutting - self.first) as usize;
        for (index, message) in self.messages.iter_mut().take(sent).enumerate() {
            if message.over || message.describe_at > now {
                continue;
            }
            message.describe_at = now + config.describe_after;
            out.push(Segment {
                kind: DESCRIPTION,
                flow: pair,
                message: message.id,
                sequence: first + index as u64,
                value: message.bytes,
                ..Segment::default()
            });
        }
    }
}
