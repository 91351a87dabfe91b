//! A host with best-effort queue pairs: its line, its timers, and what it knows of times.

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::patience::Patience;
use super::receiver::{COST_SCALE, Outcome, Receiver};
use super::sender::Sender;
use super::{CONGESTION, CelerisConfig, DATA, DESCRIPTION, NOTICE};
use crate::node::{Counters, Message, Node, Progress, lanes};
use crate::packet::{Ecn, HostId, Packet, Segment};
use crate::simulation::Station;
use crate::time::Time;
use crate::transport::directory::Directory;
use crate::transport::roce::dcqcn::NotificationPoint;

/// Whose timer it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum End {
    Sender(u32),
    Receiver(u32),
}

/// A host.
#[derive(Clone, Debug)]
pub struct CelerisHost {
    config: CelerisConfig,
    senders: Vec<Sender>,
    receivers: Vec<(Receiver, NotificationPoint)>,
    sender_of: Directory,
    receiver_of: Directory,
    patience: Patience,
    /// Small packets go before data.
    replies: VecDeque<(HostId, Segment)>,
    /// Queue pairs that may send, in turn.
    ready: VecDeque<u32>,
    timers: BinaryHeap<Reverse<(Time, End)>>,
    news: VecDeque<Progress>,
    counters: Counters,
}

impl CelerisHost {
    /// A host. Nothing that it does is left to chance, so neither its number nor the run's seed matter.
    #[must_use]
    pub fn new(_: HostId, config: CelerisConfig, _: u64) -> Self {
        Self {
            config,
            senders: Vec::new(),
            receivers: Vec::new(),
            sender_of: Directory::default(),
            receiver_of: Directory::default(),
            patience: Patience::new(config.patience, config.line_mbps, 1),
            replies: VecDeque::new(),
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            news: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// What it knows of how long bytes take.
    #[must_use]
    pub fn patience(&self) -> &Patience {
        &self.patience
    }

    fn place(&self, peer: HostId, pair: u32) -> usize {
        peer as usize * lanes(self.config.queue_pairs) as usize + pair as usize
    }

    fn receiver(&mut self, peer: HostId, pair: u32) -> usize {
        let place = self.place(peer, pair);
        self.receiver_of.find(place).unwrap_or_else(|| {
            let index = self.receivers.len();
            let receiver = Receiver::new(peer, pair);
            self.receivers
                .push((receiver, NotificationPoint::default()));
            self.receiver_of.set(place, index);
            index
        })
    }

    /// Lets a sender wait for the line or for its time, if it has to.
    fn attend_sender(&mut self, index: usize, now: Time) {
        let sender = &mut self.senders[index];
        if !sender.queued && sender.can_send(now) {
            sender.queued = true;
            self.ready.push_back(index as u32);
        }
        if let Some(at) = sender.deadline(now)
            && at < sender.armed
        {
            sender.armed = at;
            self.timers.push(Reverse((at, End::Sender(index as u32))));
        }
    }

    fn at_receiver(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut Receiver, &CelerisConfig, &mut Outcome<'_>),
    ) {
        let mut notices = Vec::new();
        let mut outcome = Outcome {
            patience: &mut self.patience,
            counters: &mut self.counters,
            news: &mut self.news,
            notices: &mut notices,
        };
        let receiver = &mut self.receivers[index].0;
        act(receiver, &self.config, &mut outcome);
        let peer = receiver.peer;
        self.replies
            .extend(notices.into_iter().map(|notice| (peer, notice)));
        if let Some(at) = receiver.deadline()
            && at < receiver.armed
        {
            receiver.armed = at;
            self.timers.push(Reverse((at, End::Receiver(index as u32))));
        }
    }

    fn on_data(&mut self, now: Time, packet: &Packet) {
        let segment = &packet.segment;
        let index = self.receiver(packet.source, segment.flow);
        if packet.ecn == Ecn::Ce {
            self.counters.marked += 1;
            if let Some(dcqcn) = &self.config.dcqcn
                && self.receivers[index].1.marked(dcqcn, now)
            {
                let notification = Segment {
                    kind: CONGESTION,
                    flow: segment.flow,
                    ..Segment::default()
                };
                self.replies.push_back((packet.source, notification));
            }
        }
        if packet.trimmed {
            // The payload is gone, and nothing is sent again.
            self.counters.trimmed += 1;
            return;
        }
        self.at_receiver(index, |receiver, config, outcome| {
            receiver.on_data(config, now, segment, outcome);
        });
    }

    fn on_feedback(&mut self, now: Time, packet: &Packet) {
        let segment = &packet.segment;
        let place = self.place(packet.source, segment.flow);
        let Some(index) = self.sender_of.find(place) else {
            return;
        };
        let sender = &mut self.senders[index];
        if segment.kind == CONGESTION {
            sender.on_congestion(&self.config, now);
        } else {
            sender.on_notice(&self.config, segment.sequence, &mut self.news);
            if segment.value > 0 {
                self.patience.sample(segment.value as f64 / COST_SCALE);
            }
        }
        self.attend_sender(index, now);
    }
}

impl Station for CelerisHost {
    fn receive(&mut self, now: Time, packet: &Packet) {
        if packet.corrupted {
            return;
        }
        match packet.segment.kind {
            DATA => self.on_data(now, packet),
            DESCRIPTION => {
                let index = self.receiver(packet.source, packet.segment.flow);
                self.at_receiver(index, |receiver, _, outcome| {
                    receiver.on_description(now, &packet.segment, outcome);
                });
            }
            CONGESTION | NOTICE => self.on_feedback(now, packet),
            _ => {}
        }
    }

    fn transmit(&mut self, now: Time, packet: &mut Packet) -> bool {
        if let Some((to, segment)) = self.replies.pop_front() {
            self.counters.control_packets += 1;
            self.config.address(packet, to, &segment);
            return true;
        }
        while let Some(index) = self.ready.pop_front() {
            let sender = &mut self.senders[index as usize];
            sender.queued = false;
            if !sender.can_send(now) {
                continue;
            }
            let peer = sender.peer;
            let segment = sender.send(&self.config, now, &mut self.news);
            self.attend_sender(index as usize, now);
            if let Some(segment) = segment {
                self.counters.data_packets += 1;
                self.config.address(packet, peer, &segment);
                return true;
            }
        }
        false
    }

    fn deadline(&mut self, _: Time) -> Option<Time> {
        self.timers.peek().map(|&Reverse((at, _))| at)
    }

    fn timeout(&mut self, now: Time) {
        while let Some(&Reverse((at, end))) = self.timers.peek()
            && at <= now
        {
            self.timers.pop();
            match end {
                End::Sender(index) => {
                    let sender = &mut self.senders[index as usize];
                    if sender.armed != at {
                        continue;
                    }
                    sender.armed = Time::NEVER;
                    let mut descriptions = Vec::new();
                    sender.timeout(&self.config, now, &mut descriptions);
                    let peer = sender.peer;
                    let described = descriptions.into_iter().map(|segment| (peer, segment));
                    self.replies.extend(described);
                    self.attend_sender(index as usize, now);
                }
                End::Receiver(index) => {
                    let receiver = &mut self.receivers[index as usize].0;
                    if receiver.armed != at {
                        continue;
                    }
                    receiver.armed = Time::NEVER;
                    self.at_receiver(index as usize, |receiver, _, outcome| {
                        receiver.timeout(now, outcome);
                    });
                }
            }
        }
    }

    fn has_news(&self) -> bool {
        !self.news.is_empty()
    }
}

impl Node for CelerisHost {
    fn prepare(&mut self, _: Time, peers: &[HostId]) {
        let config = &self.config;
        self.patience = Patience::new(config.patience, config.line_mbps, peers.len());
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn post(&mut self, now: Time, message: &Message) {
        let pair = self.config.pair(message.flow);
        let place = self.place(message.peer, pair);
        let index = self.sender_of.find(place).unwrap_or_else(|| {
            let index = self.senders.len();
            self.senders
                .push(Sender::new(&self.config, message.peer, pair));
            self.sender_of.set(place, index);
            index
        });
        self.senders[index].post(message);
        self.attend_sender(index, now);
    }

    fn poll_progress(&mut self, _: Time) -> Option<Progress> {
        self.news.pop_front()
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
