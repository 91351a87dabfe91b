//! The responder of a queue pair: what is expected, what has arrived ahead of it, and what is answered.

use std::collections::VecDeque;

use super::config::Recovery;
use super::dcqcn::NotificationPoint;
use crate::packet::HostId;

/// What is done with a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// Its payload goes to its place.
    Placed,
    /// It was there already.
    Duplicate,
    /// It is not the next one.
    Dropped,
}

/// The answer to a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    None,
    Acknowledge,
    /// The next packet expected is missing.
    Miss,
}

/// A packet that came ahead of its turn.
#[derive(Clone, Copy, Debug)]
struct Early {
    message: u32,
    last: bool,
}

/// The responder of a queue pair.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub peer: HostId,
    /// Number of the queue pair among those to the peer.
    pub lane: u32,
    pub source_port: u16,
    pub notification: NotificationPoint,
    /// An acknowledgment waits to be sent.
    pub owes: bool,
    expected: u64,
    /// A NAK was sent since the last packet that was expected.
    missed: bool,
    /// From `expected` on.
    early: VecDeque<Option<Early>>,
}

impl Receiver {
    pub fn new(peer: HostId, lane: u32, source_port: u16) -> Self {
        Self {
            peer,
            lane,
            source_port,
            notification: NotificationPoint::default(),
            owes: false,
            expected: 0,
            missed: false,
            early: VecDeque::new(),
        }
    }

    /// Everything before this has arrived.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// Bit i: the packet `expected + i` has arrived ahead of its turn; the first 256.
    pub fn early(&self) -> [u64; 4] {
        let mut vector = [0; 4];
        for (i, early) in self.early.iter().take(256).enumerate() {
            vector[i / 64] |= u64::from(early.is_some()) << (i % 64);
        }
        vector
    }

    /// Takes a packet of a message; messages that are complete are handed to `done`.
    pub fn take(
        &mut self,
        recovery: Recovery,
        sequence: u64,
        message: u32,
        last: bool,
        ask: bool,
        mut done: impl FnMut(u32),
    ) -> (Verdict, Answer) {
        if sequence < self.expected {
            return (Verdict::Duplicate, Answer::Acknowledge);
        }
        if sequence == self.expected {
            let before = self.expected;
            self.missed = false;
            self.step(message, last, &mut done);
            while let Some(&Some(early)) = self.early.front() {
                self.step(early.message, early.last, &mut done);
            }
            // A gap that closed is worth an answer at once: the sender may be waiting for it.
            let closed = self.expected > before + 1;
            let answer = if ask || closed {
                Answer::Acknowledge
            } else {
                Answer::None
            };
            return (Verdict::Placed, answer);
        }
        match recovery {
            Recovery::GoBackN => {
                let answer = if self.missed {
                    Answer::None
                } else {
                    Answer::Miss
                };
                self.missed = true;
                (Verdict::Dropped, answer)
            }
            Recovery::Irn(_) => (self.keep(sequence, message, last), Answer::Miss),
            Recovery::AnyOrder => {
                let answer = if ask {
                    Answer::Acknowledge
                } else {
                    Answer::None
                };
                (self.keep(sequence, message, last), answer)
            }
        }
    }

    fn step(&mut self, message: u32, last: bool, done: &mut impl FnMut(u32)) {
        self.early.pop_front();
        self.expected += 1;
        if last {
            done(message);
        }
    }

    fn keep(&mut self, sequence: u64, message: u32, last: bool) -> Verdict {
        let index = (sequence - self.expected) as usize;
        if index >= self.early.len() {
            self.early.resize(index + 1, None);
        }
        match &mut self.early[index] {
            Some(_) => Verdict::Duplicate,
            place => {
                *place = Some(Early { message, last });
                Verdict::Placed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packet `i` ends message `i / 2` if `i` is odd.
    fn run(recovery: Recovery, order: &[u64]) -> (Vec<(Verdict, Answer)>, Vec<u32>) {
        let mut receiver = Receiver::new(0, 0, 0);
        let mut done = Vec::new();
        let taken = order
            .iter()
            .map(|&i| {
                let (message, last) = ((i / 2) as u32, i % 2 == 1);
                receiver.take(recovery, i, message, last, true, |id| done.push(id))
            })
            .collect();
        (taken, done)
    }

    #[test]
    fn go_back_n_complains_once_per_gap() {
        use Answer::{Acknowledge, Miss, None};
        use Verdict::{Dropped, Duplicate, Placed};
        let (taken, done) = run(Recovery::GoBackN, &[0, 2, 3, 1, 0, 3, 2, 3]);
        let expected = [
            (Placed, Acknowledge),
            (Dropped, Miss),
            (Dropped, None),
            (Placed, Acknowledge),
            (Duplicate, Acknowledge),
            (Dropped, Miss),
            (Placed, Acknowledge),
            (Placed, Acknowledge),
        ];
        assert_eq!(taken, expected);
        assert_eq!(done, [0, 1]);
    }

    #[test]
    fn out_of_order_packets_are_placed_and_messages_are_done_in_order() {
        use Answer::{Acknowledge, Miss};
        use Verdict::{Duplicate, Placed};
        let irn = Recovery::Irn(super::super::config::IrnConfig::default());
        for (recovery, answer) in [(irn, Miss), (Recovery::AnyOrder, Acknowledge)] {
            let (taken, done) = run(recovery, &[3, 2, 3, 0, 1, 2]);
            let expected = [
                (Placed, answer),
                (Placed, answer),
                (Duplicate, answer),
                (Placed, Acknowledge),
                (Placed, Acknowledge),
                (Duplicate, Acknowledge),
            ];
            assert_eq!(taken, expected);
            assert_eq!(done, [0, 1]);
        }
    }
}
