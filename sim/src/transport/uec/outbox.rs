//! Messages to be sent: cut into packets, and reported when all packets of one are acknowledged.

use std::collections::{BTreeMap, VecDeque};

use crate::node::{Message, Progress};

/// A message that is not acknowledged as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    /// Its number in the run.
    pub id: u32,
    /// Its flow.
    pub flow: u32,
    /// Its place in the flow.
    pub index: u64,
    /// Its length.
    pub bytes: u64,
    cut: u64,
    acknowledged: u64,
}

impl Outgoing {
    fn is_done(&self) -> bool {
        self.acknowledged == self.bytes
    }
}

/// A piece of a message that fits into a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// The message, by its place among all of the context.
    pub message: u64,
    /// Where in the message it begins, in full packets.
    pub offset: u32,
    /// Its length in bytes.
    pub payload: u32,
}

/// The messages of a flow in the order of posting, until reported.
#[derive(Clone, Debug, Default)]
struct Flow {
    posted: u64,
    open: VecDeque<u64>,
}

/// The messages of a context.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outbox {
    messages: VecDeque<Outgoing>,
    first: u64,
    cutting: u64,
    flows: BTreeMap<u32, Flow>,
}

impl Outbox {
    /// Takes a message.
    pub fn post(&mut self, message: &Message) {
        let number = self.first + self.messages.len() as u64;
        let flow = self.flows.entry(message.flow).or_default();
        self.messages.push_back(Outgoing {
            id: message.id,
            flow: message.flow,
            index: flow.posted,
            bytes: message.bytes,
            cut: 0,
            acknowledged: 0,
        });
        flow.posted += 1;
        flow.open.push_back(number);
    }

    /// A message that is not yet forgotten.
    pub fn get(&self, number: u64) -> Option<&Outgoing> {
        self.messages.get(number.checked_sub(self.first)? as usize)
    }

    /// The next piece of at most `full` bytes, if there is one.
    pub fn peek(&self, full: u32) -> Option<Piece> {
        let message = self.get(self.cutting)?;
        let left = message.bytes - message.cut;
        Some(Piece {
            message: self.cutting,
            offset: (message.cut / u64::from(full)) as u32,
            payload: left.min(u64::from(full)) as u32,
        })
    }

    /// Cuts the next piece off.
    pub fn cut(&mut self, full: u32) -> Option<Piece> {
        let piece = self.peek(full)?;
        let message = &mut self.messages[(self.cutting - self.first) as usize];
        message.cut += u64::from(piece.payload);
        self.cutting += u64::from(message.cut == message.bytes);
        Some(piece)
    }

    /// A piece was acknowledged for the first time. Reports the messages of its flow that are done, in the order of
    /// posting.
    pub fn acknowledge(&mut self, message: u64, payload: u32, news: &mut VecDeque<Progress>) {
        let first = self.first;
        let index = |number: u64| (number - first) as usize;
        let Some(outgoing) = self.messages.get_mut(index(message)) else {
            return;
        };
        outgoing.acknowledged += u64::from(payload);
        if !outgoing.is_done() {
            return;
        }
        if let Some(flow) = self.flows.get_mut(&outgoing.flow) {
            while let Some(&number) = flow.open.front()
                && let Some(done) = self.messages.get(index(number)).filter(|m| m.is_done())
            {
                news.push_back(Progress::Acknowledged { id: done.id });
                flow.open.pop_front();
            }
        }
        // What is done is reported by now, or waits for an earlier message of its flow, which is still here.
        while self.messages.front().is_some_and(Outgoing::is_done) {
            self.messages.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_messages_and_reports_keep_the_order_of_a_flow() {
        let mut outbox = Outbox::default();
        for (id, bytes, flow) in [(7, 5_000, 0), (8, 10, 0), (9, 4_096, 1)] {
            outbox.post(&Message {
                id,
                peer: 0,
                bytes,
                flow,
            });
        }
        let pieces: Vec<Piece> = core::iter::from_fn(|| outbox.cut(4_096)).collect();
        let shape: Vec<_> = pieces
            .iter()
            .map(|p| (p.message, p.offset, p.payload))
            .collect();
        assert_eq!(
            shape,
            [(0, 0, 4_096), (0, 1, 904), (1, 0, 10), (2, 0, 4_096)]
        );
        let mut news = VecDeque::new();
        let mut ids = |index: usize| {
            outbox.acknowledge(pieces[index].message, pieces[index].payload, &mut news);
            let ids: Vec<u32> = news
                .drain(..)
                .map(|progress| match progress {
                    Progress::Acknowledged { id } => id,
                    other => panic!("{other:?}"),
                })
                .collect();
            ids
        };
        assert_eq!(ids(2), [0; 0]);
        assert_eq!(ids(1), [0; 0]);
        assert_eq!(ids(3), [9]);
        assert_eq!(ids(0), [7, 8]);
    }
}
