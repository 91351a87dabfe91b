//! The receiving end of a delivery context: what has arrived, when to acknowledge, and when messages are complete.

use std::collections::{BTreeMap, VecDeque};

use super::psn::PsnSet;
use super::{ACK, ACK_REQUEST, MARKED, NACK, PROBE_ANSWER, RETRANSMISSION, Reply, UecConfig};
use crate::node::{Counters, Progress};
use crate::packet::{Ecn, HostId, Packet, Segment};

/// A message of which something may have arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Incoming {
    id: u32,
    left: u64,
    known: bool,
}

/// The messages of a flow, from the first that is not complete.
#[derive(Clone, Debug, Default)]
struct Flow {
    next: u64,
    open: VecDeque<Incoming>,
}

/// The receiving end of a context.
#[derive(Clone, Debug)]
pub struct Receiver {
    peer: HostId,
    context: u32,
    psns: PsnSet,
    /// Bytes that arrived, headers included, each packet once.
    received: u64,
    unacknowledged: u64,
    /// An acknowledgment was asked for while something was missing: it is sent again once nothing is.
    asked: bool,
    flows: BTreeMap<u32, Flow>,
}

impl Receiver {
    /// For what `peer` sends in a context.
    #[must_use]
    pub fn new(peer: HostId, context: u32) -> Self {
        Self {
            peer,
            context,
            psns: PsnSet::default(),
            received: 0,
            unacknowledged: 0,
            asked: false,
            flows: BTreeMap::new(),
        }
    }

    /// A data packet: places it, reports messages that are complete now, and answers if it is time to.
    pub(crate) fn on_data(
        &mut self,
        config: &UecConfig,
        packet: &Packet,
        counters: &mut Counters,
        news: &mut VecDeque<Progress>,
    ) -> Option<Reply> {
        let segment = &packet.segment;
        let psn = segment.sequence;
        if packet.trimmed {
            counters.trimmed += 1;
            return Some(if self.psns.contains(psn) {
                self.acknowledge(segment, 0)
            } else {
                self.reply(NACK, segment, segment.flags & RETRANSMISSION)
            });
        }
        let bytes = config.wire_bytes(segment.payload);
        let marked = packet.ecn == Ecn::Ce;
        let mark = if marked { MARKED } else { 0 };
        counters.marked += u64::from(marked);
        self.unacknowledged += bytes;
        if !self.psns.insert(psn) {
            counters.duplicates += 1;
            return Some(self.acknowledge(segment, mark));
        }
        let mut now = marked || self.received == 0 || self.unacknowledged >= config.ack_bytes;
        self.received += bytes;
        self.place(segment, counters, news);
        if segment.flags & ACK_REQUEST != 0 {
            now = true;
            self.asked = true;
        }
        if self.asked && self.psns.out_of_order() == 0 {
            now = true;
            self.asked = false;
        }
        now.then(|| self.acknowledge(segment, mark))
    }

    /// A probe is answered at once.
    pub(crate) fn on_probe(&mut self, packet: &Packet) -> Reply {
        let mark = if packet.ecn == Ecn::Ce { MARKED } else { 0 };
        let pending = self.unacknowledged;
        let reply = self.acknowledge(&packet.segment, PROBE_ANSWER | mark);
        self.unacknowledged = pending;
        reply
    }

    /// A grant of credit.
    pub(crate) fn credit(&self, granted: u64, lane: u16) -> Reply {
        let segment = Segment {
            lane,
            ..Segment::default()
        };
        let mut reply = self.reply(super::GRANT, &segment, 0);
        reply.segment.value = granted;
        reply
    }

    fn place(&mut self, segment: &Segment, counters: &mut Counters, news: &mut VecDeque<Progress>) {
        counters.placed_bytes += u64::from(segment.payload);
        let flow = self.flows.entry(segment.flow).or_default();
        let index = segment.cumulative.saturating_sub(flow.next) as usize;
        if flow.open.len() <= index {
            flow.open.resize(index + 1, Incoming::default());
        }
        let message = &mut flow.open[index];
        if !message.known {
            *message = Incoming {
                id: segment.message,
                left: segment.value,
                known: true,
            };
        }
        message.left = message.left.saturating_sub(u64::from(segment.payload));
        while let Some(&first) = flow.open.front() {
            if !first.known || first.left > 0 {
                break;
            }
            flow.open.pop_front();
            flow.next += 1;
            news.push_back(Progress::Delivered {
                id: first.id,
                lost_bytes: 0,
            });
        }
    }

    fn acknowledge(&mut self, segment: &Segment, flags: u8) -> Reply {
        self.unacknowledged = 0;
        let cumulative = self.psns.cumulative();
        // The bits end at the packet that is answered. (htsim lets them begin there if it was marked or asked for an
        // answer, and so never tells of packets before it that came after a gap; they are then sent again for nothing.)
        let from = segment.sequence.saturating_sub(63).max(cumulative + 1);
        let mut reply = self.reply(ACK, segment, flags | segment.flags & RETRANSMISSION);
        reply.segment.cumulative = cumulative;
        reply.segment.message = (from - cumulative) as u32;
        reply.segment.vector = self.psns.window(from);
        reply.segment.offset = self.psns.out_of_order();
        reply
    }

    fn reply(&self, kind: u8, answered: &Segment, flags: u8) -> Reply {
        Reply {
            to: self.peer,
            segment: Segment {
                kind,
                flags,
                lane: answered.lane,
                flow: self.context,
                sequence: answered.sequence,
                value: self.received,
                stamp: answered.stamp,
                ..Segment::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(psn: u64, index: u64, payload: u32, length: u64) -> Packet {
        Packet {
            segment: Segment {
                sequence: psn,
                cumulative: index,
                payload,
                value: length,
                message: 100 + index as u32,
                ..Segment::default()
            },
            ..Packet::default()
        }
    }

    struct Bench {
        receiver: Receiver,
        counters: Counters,
        news: VecDeque<Progress>,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                receiver: Receiver::new(1, 0),
                counters: Counters::default(),
                news: VecDeque::new(),
            }
        }

        fn take(&mut self, packet: &Packet) -> Option<Segment> {
            let config = UecConfig::default();
            let (counters, news) = (&mut self.counters, &mut self.news);
            let reply = self.receiver.on_data(&config, packet, counters, news);
            reply.map(|reply| reply.segment)
        }
    }

    #[test]
    fn it_acknowledges_the_first_then_every_sixteen_kilobytes_and_every_mark() {
        let mut bench = Bench::new();
        let answered: Vec<bool> = (0..9)
            .map(|psn| bench.take(&data(psn, 0, 4096, 1 << 20)).is_some())
            .collect();
        let expected = [true, false, false, false, true, false, false, false, true];
        assert_eq!(answered, expected);
        let mut marked = data(9, 0, 4096, 1 << 20);
        marked.ecn = Ecn::Ce;
        let ack = bench.take(&marked).unwrap();
        assert_eq!((ack.flags & MARKED, ack.cumulative), (MARKED, 10));
        assert_eq!(ack.value, 10 * 4214);
    }

    #[test]
    fn selective_bits_tell_what_is_beyond_a_gap() {
        let mut bench = Bench::new();
        bench.take(&data(0, 0, 4096, 1 << 20));
        for psn in [3, 4] {
            bench.take(&data(psn, 0, 4096, 1 << 20));
        }
        let mut last = data(6, 0, 4096, 1 << 20);
        let ack = {
            last.segment.flags = ACK_REQUEST;
            bench.take(&last).unwrap()
        };
        assert_eq!((ack.cumulative, ack.offset), (1, 3));
        assert_eq!(ack.cumulative + u64::from(ack.message), 2);
        assert_eq!(ack.vector, 0b1_0110);
        let ack = bench.take(&data(3, 0, 4096, 1 << 20)).unwrap();
        assert_eq!(ack.cumulative + u64::from(ack.message), 2);
        assert_eq!(ack.vector, 0b1_0110);
        assert_eq!(bench.counters.duplicates, 1);
        assert_eq!(bench.counters.placed_bytes, 4 * 4096);
        // Once the gaps are filled, the acknowledgment that was asked for is sent again.
        assert!(bench.take(&data(1, 0, 4096, 1 << 20)).is_none());
        assert!(bench.take(&data(2, 0, 4096, 1 << 20)).is_none());
        let ack = bench.take(&data(5, 0, 4096, 1 << 20)).unwrap();
        assert_eq!(ack.cumulative, 7);
    }

    #[test]
    fn messages_of_a_flow_are_delivered_in_order_and_a_trimmed_packet_is_refused_once() {
        let mut bench = Bench::new();
        let mut trimmed = data(0, 0, 4096, 4096);
        trimmed.trimmed = true;
        let nack = bench.take(&trimmed).unwrap();
        assert_eq!((nack.kind, nack.sequence), (NACK, 0));
        bench.take(&data(1, 1, 10, 10));
        assert!(bench.news.is_empty());
        bench.take(&data(0, 0, 4096, 4096));
        let delivered = |id| Progress::Delivered { id, lost_bytes: 0 };
        assert_eq!(bench.news, [delivered(100), delivered(101)]);
        let ack = bench.take(&trimmed).unwrap();
        assert_eq!((ack.kind, ack.cumulative), (ACK, 2));
        assert_eq!(bench.counters.trimmed, 2);
    }
}
