//! A host with Ultra Ethernet's transport: its contexts, its line and its timers.

use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::rccc::Granter;
use super::receiver::Receiver;
use super::sender::Sender;
use super::{ACK, DATA, GRANT, NACK, PROBE, REQUEST, Reply, UecConfig};
use crate::node::{Counters, Message, Node, Progress, lanes};
use crate::packet::{HostId, Packet};
use crate::random::{Purpose, Stream};
use crate::simulation::Station;
use crate::time::Time;
use crate::transport::directory::Directory;

/// A host.
#[derive(Clone, Debug)]
pub struct UecHost {
    id: HostId,
    config: UecConfig,
    seed: u64,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    sender_of: Directory,
    receiver_of: Directory,
    granter: Granter,
    /// Small packets go before data.
    replies: VecDeque<Reply>,
    /// Contexts that may send, in turn.
    ready: VecDeque<u32>,
    timers: BinaryHeap<Reverse<(Time, u32)>>,
    news: VecDeque<Progress>,
    counters: Counters,
    credit_lane: u16,
}

impl UecHost {
    /// The host `id`; `seed` is that of the run.
    #[must_use]
    pub fn new(id: HostId, config: UecConfig, seed: u64) -> Self {
        Self {
            id,
            config,
            seed,
            senders: Vec::new(),
            receivers: Vec::new(),
            sender_of: Directory::default(),
            receiver_of: Directory::default(),
            granter: Granter::new(config.rccc),
            replies: VecDeque::new(),
            ready: VecDeque::new(),
            timers: BinaryHeap::new(),
            news: VecDeque::new(),
            counters: Counters::default(),
            credit_lane: 0,
        }
    }

    /// The window towards a peer, bytes; none without a context, or if only credit counts.
    #[must_use]
    pub fn window(&self, peer: HostId, context: u32) -> Option<u64> {
        let sender = self.sender_of.find(self.place(peer, context))?;
        self.senders[sender].window()
    }

    fn place(&self, peer: HostId, context: u32) -> usize {
        peer as usize * lanes(self.config.contexts) as usize + context as usize
    }

    fn sender(&mut self, peer: HostId, context: u32) -> usize {
        let place = self.place(peer, context);
        self.sender_of.find(place).unwrap_or_else(|| {
            let index = self.senders.len();
            let stream = u64::from(self.id) << 32 | place as u64;
            let random = Stream::new(self.seed, Purpose::Entropy, stream);
            self.senders
                .push(Sender::new(&self.config, peer, context, random));
            self.sender_of.set(place, index);
            index
        })
    }

    fn receiver(&mut self, peer: HostId, context: u32) -> usize {
        let place = self.place(peer, context);
        self.receiver_of.find(place).unwrap_or_else(|| {
            let index = self.receivers.len();
            self.receivers.push(Receiver::new(peer, context));
            self.receiver_of.set(place, index);
            index
        })
    }

    /// Lets a sender wait for the line and for its time, if it has to.
    fn attend(&mut self, index: usize) {
        let sender = &mut self.senders[index];
        if !sender.queued && sender.can_send(&self.config) {
            sender.queued = true;
            self.ready.push_back(index as u32);
        }
        if let Some(at) = sender.deadline(&self.config)
            && at < sender.armed
        {
            sender.armed = at;
            self.timers.push(Reverse((at, index as u32)));
        }
    }

    fn receive_as_receiver(&mut self, packet: &Packet, context: u32) {
        let index = self.receiver(packet.source, context);
        let segment = &packet.segment;
        let receiver = &mut self.receivers[index];
        let mut wants = segment.kind == REQUEST;
        match segment.kind {
            DATA => {
                let (counters, news) = (&mut self.counters, &mut self.news);
                let reply = receiver.on_data(&self.config, packet, counters, news);
                wants = reply.is_some_and(|reply| reply.segment.kind == NACK);
                self.replies.extend(reply);
            }
            // A trimmed probe has overtaken what it should follow.
            PROBE if packet.trimmed => {}
            PROBE => self.replies.push_back(receiver.on_probe(packet)),
            _ => {}
        }
        if self.config.control.has_credit() && segment.kind != PROBE {
            self.granter.ask(index as u32, segment.vector, wants);
        }
    }

    fn receive_as_sender(&mut self, now: Time, packet: &Packet) {
        let segment = &packet.segment;
        let place = self.place(packet.source, segment.flow);
        let Some(index) = self.sender_of.find(place) else {
            return;
        };
        let sender = &mut self.senders[index];
        match segment.kind {
            ACK => sender.on_ack(&self.config, now, segment, &mut self.news),
            NACK => sender.on_nack(now, segment),
            _ => sender.on_grant(now, segment.value),
        }
        self.attend(index);
    }
}

impl Station for UecHost {
    fn receive(&mut self, now: Time, packet: &Packet) {
        if packet.corrupted {
            return;
        }
        match packet.segment.kind {
            ACK | NACK | GRANT => self.receive_as_sender(now, packet),
            DATA => self.receive_as_receiver(packet, self.config.context(packet.segment.flow)),
            _ => self.receive_as_receiver(packet, packet.segment.flow),
        }
    }

    fn transmit(&mut self, now: Time, packet: &mut Packet) -> bool {
        if let Some(reply) = self.replies.pop_front() {
            self.counters.control_packets += 1;
            reply.write(&self.config, packet);
            return true;
        }
        while let Some(index) = self.ready.pop_front() {
            let sharers = self.ready.len() as u64 + 1;
            let sender = &mut self.senders[index as usize];
            sender.queued = false;
            if !sender.can_send(&self.config) {
                continue;
            }
            let sent = sender.send(&self.config, now, sharers, packet, &mut self.counters);
            self.attend(index as usize);
            if sent {
                return true;
            }
        }
        false
    }

    fn deadline(&mut self, _: Time) -> Option<Time> {
        let timer = self.timers.peek().map(|&Reverse((at, _))| at);
        [timer, self.granter.deadline()].into_iter().flatten().min()
    }

    fn timeout(&mut self, now: Time) {
        while let Some((receiver, granted)) = self.granter.grant(now) {
            // Grants are spread over paths as data are.
            self.credit_lane = (self.credit_lane + 1) % self.config.entropies.max(1);
            let grant = self.receivers[receiver as usize].credit(granted, self.credit_lane);
            self.replies.push_back(grant);
        }
        while let Some(&Reverse((at, index))) = self.timers.peek() {
            if at > now {
                break;
            }
            self.timers.pop();
            let sender = &mut self.senders[index as usize];
            if at == sender.armed {
                sender.armed = Time::NEVER;
                let reply = sender.timeout(&self.config, now, &mut self.counters);
                self.replies.extend(reply);
                self.attend(index as usize);
            }
        }
    }

    fn has_news(&self) -> bool {
        !self.news.is_empty()
    }
}

impl Node for UecHost {
    fn prepare(&mut self, _: Time, _: &[HostId]) {}

    fn is_ready(&self) -> bool {
        true
    }

    fn post(&mut self, now: Time, message: &Message) {
        let index = self.sender(message.peer, self.config.context(message.flow));
        self.senders[index].post(&self.config, now, message);
        self.attend(index);
    }

    fn poll_progress(&mut self, _: Time) -> Option<Progress> {
        self.news.pop_front()
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
