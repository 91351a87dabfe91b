//! A host: its queue pairs, the round in which they send, their timers.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::config::{Congestion, Recovery, RoceConfig};
use super::receiver::{Answer, Receiver, Verdict};
use super::sender::{Expiry, Place, Sender};
use crate::node::{self, Counters, Message, Node, Progress};
use crate::packet::{Class, Ecn, HostId, Packet, Segment};
use crate::random::{Purpose, Stream};
use crate::simulation::Station;
use crate::time::Time;
use crate::transport::directory::Directory;

const DATA: u8 = 0;
const ACKNOWLEDGMENT: u8 = 1;
const MISS: u8 = 2;
const CNP: u8 = 3;

const LAST: u8 = 1;
const ASK: u8 = 2;

/// The first of the UDP source ports of RoCEv2, 0xc000 to 0xffff (Linux: `IB_ROCE_UDP_ENCAP_VALID_PORT_MIN`).
const FIRST_SOURCE_PORT: u16 = 0xc000;

/// An answer that waits for the line; the number is that of the responder.
#[derive(Clone, Copy, Debug)]
enum Reply {
    Acknowledge(u32),
    Miss {
        receiver: u32,
        cumulative: u64,
        sequence: u64,
    },
    Cnp(u32),
}

/// A NIC with reliable connections.
#[derive(Clone, Debug)]
pub struct RoceHost {
    id: HostId,
    pub(super) config: RoceConfig,
    seed: u64,
    pub(super) senders: Vec<Sender>,
    pub(super) receivers: Vec<Receiver>,
    /// By peer: the first of its queue pairs in `senders` and in `receivers`, which are made when they are used first.
    pub(super) first_sender: Directory,
    pub(super) first_receiver: Directory,
    replies: VecDeque<Reply>,
    /// Queue pairs that may send, one packet each in turn.
    round: VecDeque<u32>,
    /// Queue pairs whose rate lets them send at a time.
    paced: BinaryHeap<Reverse<(Time, u32)>>,
    /// Retransmission timers; an entry counts if its queue pair is armed for that time.
    timers: BinaryHeap<Reverse<(Time, u32)>>,
    progress: VecDeque<Progress>,
    counters: Counters,
}

impl RoceHost {
    /// The host of this number; `seed` chooses the source ports of its queue pairs. Settings below their least are raised to it.
    #[must_use]
    pub fn new(id: HostId, config: RoceConfig, seed: u64) -> Self {
        Self {
            id,
            config: config.at_least(),
            seed,
            senders: Vec::new(),
            receivers: Vec::new(),
            first_sender: Directory::default(),
            first_receiver: Directory::default(),
            replies: VecDeque::new(),
            round: VecDeque::new(),
            paced: BinaryHeap::new(),
            timers: BinaryHeap::new(),
            progress: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Its settings.
    #[must_use]
    pub fn config(&self) -> &RoceConfig {
        &self.config
    }

    /// The present rate to a peer, kbit/s, summed over queue pairs with something to send; none without congestion control.
    pub fn rate_kbps(&mut self, now: Time, peer: HostId) -> Option<u64> {
        let Congestion::Dcqcn(dcqcn) = self.config.congestion else {
            return None;
        };
        let first = self.first_sender.find(peer as usize)?;
        let lanes = node::lanes(self.config.queue_pairs) as usize;
        let mut sum = 0;
        for sender in &mut self.senders[first..first + lanes] {
            if sender.deadline(&self.config) != Time::NEVER
                && let Some(reaction) = &mut sender.reaction
            {
                reaction.advance(&dcqcn, now);
                sum += reaction.rate_kbps();
            }
        }
        Some(sum)
    }

    fn source_port(&self, peer: HostId, lane: u32) -> u16 {
        let pair = u64::from(self.id) << 32 | u64::from(peer);
        let mut stream = Stream::new(self.seed ^ u64::from(lane), Purpose::QueuePair, pair);
        FIRST_SOURCE_PORT | stream.below(0x4000) as u16
    }

    /// The index of a queue pair's requester.
    fn sender(&mut self, peer: HostId, lane: u32) -> u32 {
        let first = self.first_sender.find(peer as usize).unwrap_or_else(|| {
            let first = self.senders.len();
            self.first_sender.set(peer as usize, first);
            for lane in 0..node::lanes(self.config.queue_pairs) {
                let port = self.source_port(peer, lane);
                self.senders
                    .push(Sender::new(&self.config, peer, lane, port));
            }
            first
        });
        first as u32 + lane
    }

    /// The index of a queue pair's responder.
    fn receiver(&mut self, peer: HostId, lane: u32) -> u32 {
        let first = self.first_receiver.find(peer as usize).unwrap_or_else(|| {
            let first = self.receivers.len();
            self.first_receiver.set(peer as usize, first);
            for lane in 0..node::lanes(self.config.queue_pairs) {
                let port = self.source_port(peer, lane);
                self.receivers.push(Receiver::new(peer, lane, port));
            }
            first
        });
        first as u32 + lane
    }

    /// Puts a queue pair where it belongs, if it waits nowhere and has something to send.
    fn place(&mut self, now: Time, index: u32) {
        let sender = &mut self.senders[index as usize];
        if sender.place != Place::Idle || !sender.has_packet(&self.config) {
            return;
        }
        let wake = sender.wake(&self.config, now);
        if wake <= now {
            sender.place = Place::Round;
            self.round.push_back(index);
        } else {
            sender.place = Place::Paced;
            self.paced.push(Reverse((wake, index)));
        }
    }

    /// Moves those whose time has come into the round.
    fn release(&mut self, now: Time) {
        while let Some(&Reverse((due, index))) = self.paced.peek() {
            if due > now {
                break;
            }
            self.paced.pop();
            // It may have been cut in the meantime, and then waits on.
            self.senders[index as usize].place = Place::Idle;
            self.place(now, index);
        }
    }

    /// Sees to it that its timer is in the list.
    fn arm(&mut self, index: u32) {
        let sender = &mut self.senders[index as usize];
        let deadline = sender.deadline(&self.config);
        if deadline < sender.armed {
            sender.armed = deadline;
            self.timers.push(Reverse((deadline, index)));
        }
    }

    fn receive_data(&mut self, now: Time, packet: &Packet) {
        let segment = &packet.segment;
        if segment.flow >= node::lanes(self.config.queue_pairs) {
            return;
        }
        let index = self.receiver(packet.source, segment.flow);
        let receiver = &mut self.receivers[index as usize];
        if packet.ecn == Ecn::Ce {
            self.counters.marked += 1;
            if let Congestion::Dcqcn(dcqcn) = &self.config.congestion
                && receiver.notification.marked(dcqcn, now)
            {
                self.replies.push_back(Reply::Cnp(index));
            }
        }
        let progress = &mut self.progress;
        let (verdict, answer) = receiver.take(
            self.config.recovery,
            segment.sequence,
            segment.message,
            segment.flags & LAST != 0,
            segment.flags & ASK != 0,
            |id| progress.push_back(Progress::Delivered { id, lost_bytes: 0 }),
        );
        match verdict {
            Verdict::Placed => self.counters.placed_bytes += u64::from(segment.payload),
            Verdict::Duplicate => self.counters.duplicates += 1,
            Verdict::Dropped => self.counters.out_of_order_drops += 1,
        }
        match answer {
            Answer::None => {}
            // One that waits for the line says what there is to say when it leaves.
            Answer::Acknowledge if receiver.owes => {}
            Answer::Acknowledge => {
                receiver.owes = true;
                self.replies.push_back(Reply::Acknowledge(index));
            }
            Answer::Miss => self.replies.push_back(Reply::Miss {
                receiver: index,
                cumulative: receiver.expected(),
                sequence: segment.sequence,
            }),
        }
    }

    fn receive_answer(&mut self, now: Time, packet: &Packet) {
        let segment = &packet.segment;
        let known = self.first_sender.find(packet.source as usize);
        if known.is_none() || segment.flow >= node::lanes(self.config.queue_pairs) {
            return;
        }
        let index = self.sender(packet.source, segment.flow);
        let sender = &mut self.senders[index as usize];
        if segment.kind == CNP {
            if let (Some(reaction), Congestion::Dcqcn(dcqcn)) =
                (&mut sender.reaction, &self.config.congestion)
            {
                reaction.notified(dcqcn, now);
            }
            return;
        }
        let progress = &mut self.progress;
        sender.acknowledged(now, segment.cumulative, |id| {
            progress.push_back(Progress::Acknowledged { id });
        });
        if segment.kind == MISS {
            sender.missed(&self.config, now, segment.cumulative, segment.sequence);
        }
        self.arm(index);
        self.place(now, index);
    }

    fn transmit_reply(&mut self, packet: &mut Packet) -> bool {
        let Some(reply) = self.replies.pop_front() else {
            return false;
        };
        let framing = self.config.framing;
        let (index, kind, wire_bytes) = match reply {
            Reply::Acknowledge(index) => (index, ACKNOWLEDGMENT, framing.ack),
            Reply::Miss { receiver, .. } => (receiver, MISS, framing.ack),
            Reply::Cnp(index) => (index, CNP, framing.cnp),
        };
        let receiver = &mut self.receivers[index as usize];
        let (mut cumulative, mut sequence) = (receiver.expected(), 0);
        match reply {
            Reply::Acknowledge(_) => receiver.owes = false,
            Reply::Miss {
                cumulative: c,
                sequence: s,
                ..
            } => (cumulative, sequence) = (c, s),
            Reply::Cnp(_) => {}
        }
        packet.destination = receiver.peer;
        packet.source_port = receiver.source_port;
        packet.class = Class::Control;
        packet.ecn = Ecn::NotEct;
        packet.segment = Segment {
            kind,
            flow: receiver.lane,
            cumulative,
            sequence,
            ..Segment::default()
        };
        self.counters.control_packets += 1;
        finish(packet, wire_bytes, framing.outside);
        true
    }

    fn transmit_data(&mut self, now: Time, packet: &mut Packet) -> bool {
        self.release(now);
        while let Some(index) = self.round.pop_front() {
            let sender = &mut self.senders[index as usize];
            sender.place = Place::Idle;
            if !sender.has_packet(&self.config) {
                continue;
            }
            let due = sender.due(&self.config, now);
            if due > now {
                // A cut while it waited for its turn.
                self.place(now, index);
                continue;
            }
            let Some(emission) = sender.emit(&self.config, now) else {
                continue;
            };
            // A packet that is placed by itself, whatever its order, carries its address.
            let reth = emission.offset == 0 || self.config.recovery != Recovery::GoBackN;
            let framing = self.config.framing;
            let around = framing.data + if reth { framing.reth } else { 0 };
            let wire_bytes = emission.payload + around;
            sender.sent(&self.config, now, wire_bytes);
            packet.destination = sender.peer;
            packet.source_port = sender.source_port;
            packet.class = Class::Data;
            packet.ecn = match self.config.congestion {
                Congestion::None => Ecn::NotEct,
                Congestion::Dcqcn(_) => Ecn::Ect0,
            };
            packet.segment = Segment {
                kind: DATA,
                flags: if emission.last { LAST } else { 0 } | if emission.ask { ASK } else { 0 },
                flow: sender.lane,
                message: emission.message,
                offset: emission.offset,
                payload: emission.payload,
                sequence: emission.sequence,
                stamp: now,
                ..Segment::default()
            };
            self.counters.data_packets += 1;
            self.counters.retransmissions += u64::from(emission.again);
            finish(packet, wire_bytes, framing.outside);
            self.arm(index);
            self.place(now, index);
            return true;
        }
        false
    }
}

impl Station for RoceHost {
    fn receive(&mut self, now: Time, packet: &Packet) {
        if packet.trimmed {
            // What is left of it fails its ICRC.
            self.counters.trimmed += 1;
            return;
        }
        if packet.corrupted {
            return;
        }
        match packet.segment.kind {
            DATA => self.receive_data(now, packet),
            _ => self.receive_answer(now, packet),
        }
    }

    fn transmit(&mut self, now: Time, packet: &mut Packet) -> bool {
        self.transmit_reply(packet) || self.transmit_data(now, packet)
    }

    fn transmit_control(&mut self, _: Time, packet: &mut Packet) -> bool {
        self.transmit_reply(packet)
    }

    fn deadline(&mut self, _now: Time) -> Option<Time> {
        // Timers of queue pairs that wait for nothing any more are not worth a call.
        while let Some(&Reverse((at, index))) = self.timers.peek() {
            let sender = &mut self.senders[index as usize];
            if sender.armed == at && sender.deadline(&self.config) != Time::NEVER {
                break;
            }
            if sender.armed == at {
                sender.armed = Time::NEVER;
            }
            self.timers.pop();
        }
        let timer = self.timers.peek().map(|&Reverse((at, _))| at);
        let paced = self.paced.peek().map(|&Reverse((at, _))| at);
        timer.into_iter().chain(paced).min()
    }

    fn timeout(&mut self, now: Time) {
        self.release(now);
        while let Some(&Reverse((at, index))) = self.timers.peek() {
            if at > now {
                break;
            }
            self.timers.pop();
            let sender = &mut self.senders[index as usize];
            if sender.armed != at {
                continue;
            }
            sender.armed = Time::NEVER;
            match sender.expired(&self.config, now) {
                Expiry::Early => {}
                Expiry::Timeout => self.counters.timeouts += 1,
                Expiry::Failed => {
                    self.counters.timeouts += 1;
                    let failed = sender.give_up().map(|id| Progress::Failed { id });
                    self.progress.extend(failed);
                }
            }
            self.arm(index);
            self.place(now, index);
        }
    }

    fn has_news(&self) -> bool {
        !self.progress.is_empty()
    }
}

impl Node for RoceHost {
    /// Nothing: connections are set up out of band, and queue pairs that carry nothing cost nothing here.
    fn prepare(&mut self, _now: Time, _peers: &[HostId]) {}

    fn is_ready(&self) -> bool {
        true
    }

    fn post(&mut self, now: Time, message: &Message) {
        let lane = node::lane(message.flow, self.config.queue_pairs);
        let index = self.sender(message.peer, lane);
        let sender = &mut self.senders[index as usize];
        if sender.failed {
            self.progress.push_back(Progress::Failed { id: message.id });
            return;
        }
        sender.post(&self.config, message);
        self.place(now, index);
    }

    fn poll_progress(&mut self, _now: Time) -> Option<Progress> {
        self.progress.pop_front()
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

fn finish(packet: &mut Packet, wire_bytes: u32, outside: u32) {
    packet.wire_bytes = wire_bytes;
    packet.length = wire_bytes - outside;
    packet.plane = 0;
}
