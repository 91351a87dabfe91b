//! Which entropy value the next packet carries, and so which path it takes.
//!
//! The specification (UE 1.0, 3.6.16) leaves the choice open. Here are the four that the published simulator of the
//! consortium offers (htsim, `uec_mp`): spraying without feedback; a table of penalties (a mark costs one turn, a
//! trimmed packet four, a timeout fifteen); REPS (Bonato et al., "REPS: Recycled Entropy Packet Spraying"), which uses
//! again what came back unmarked; and both, which is its default.

use serde::{Deserialize, Serialize};

use std::collections::VecDeque;

use crate::random::Stream;

/// A rule for the choice of entropy values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Spraying {
    /// All in turn, whatever comes back.
    Oblivious,
    /// All in turn, but penalised ones are passed over.
    Penalties,
    /// Those that came back unmarked are used again; random ones if there are none.
    Reps,
    /// Those that came back unmarked are used again; otherwise all in turn, but penalised ones are passed over.
    #[default]
    Mixed,
}

/// What became of a packet on its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feedback {
    /// It arrived unmarked.
    Good,
    /// It arrived marked.
    Marked,
    /// It arrived trimmed.
    Trimmed,
    /// Nothing was heard of it.
    TimedOut,
}

/// The highest penalty of a path, in turns that it misses.
const MAX_PENALTY: u8 = 15;

/// The entropy values of one delivery context.
#[derive(Clone, Debug)]
pub struct Entropies {
    rule: Spraying,
    mask: u16,
    turn: u16,
    scramble: u16,
    sent: u64,
    penalties: Vec<u8>,
    penalised: u16,
    good: VecDeque<u16>,
    random: Stream,
}

impl Entropies {
    /// `count` values, rounded up to a power of two (at most 32,768).
    #[must_use]
    pub fn new(rule: Spraying, count: u16, mut random: Stream) -> Self {
        let count = count.clamp(1, 1 << 15).next_power_of_two();
        let mask = count - 1;
        Self {
            rule,
            mask,
            turn: 0,
            scramble: random.bits() as u16 & mask,
            sent: 0,
            penalties: vec![0; usize::from(count)],
            penalised: 0,
            good: VecDeque::new(),
            random,
        }
    }

    /// The value for the next packet; `window_packets` is how many may be in flight.
    pub fn next(&mut self, window_packets: u64) -> u16 {
        self.sent += 1;
        match self.rule {
            Spraying::Oblivious => self.in_turn(),
            Spraying::Penalties => self.unpenalised(),
            Spraying::Mixed => match self.good.pop_front() {
                Some(value) => value,
                None => self.unpenalised(),
            },
            Spraying::Reps => {
                if self.sent <= window_packets.min(u64::from(self.mask) + 1) {
                    return self.in_turn();
                }
                match self.good.pop_front() {
                    Some(value) => value,
                    None => self.random.bits() as u16 & self.mask,
                }
            }
        }
    }

    /// Takes note of what became of a packet.
    pub fn feedback(&mut self, value: u16, feedback: Feedback) {
        let value = value & self.mask;
        if feedback == Feedback::Good {
            // More than one round of them would only be old news.
            if matches!(self.rule, Spraying::Reps | Spraying::Mixed)
                && self.good.len() <= usize::from(self.mask)
            {
                self.good.push_back(value);
            }
            return;
        }
        let penalty = match feedback {
            Feedback::Good => 0,
            Feedback::Marked => 1,
            Feedback::Trimmed => 4,
            Feedback::TimedOut => MAX_PENALTY,
        };
        let entry = &mut self.penalties[usize::from(value)];
        self.penalised += u16::from(*entry == 0);
        *entry = (*entry + penalty).min(MAX_PENALTY);
    }

    fn in_turn(&mut self) -> u16 {
        let value = self.turn ^ self.scramble;
        self.turn = (self.turn + 1) & self.mask;
        if self.turn == 0 {
            self.scramble = self.random.bits() as u16 & self.mask;
        }
        value
    }

    /// The next value in turn without a penalty. The first that is passed over has served one turn of its penalty; if
    /// all have one, the next in turn is taken all the same.
    fn unpenalised(&mut self) -> u16 {
        let first = self.in_turn();
        if self.penalties[usize::from(first)] == 0 {
            return first;
        }
        self.penalties[usize::from(first)] -= 1;
        self.penalised -= u16::from(self.penalties[usize::from(first)] == 0);
        if usize::from(self.penalised) >= self.penalties.len() {
            return first;
        }
        // A full round, and what is left of the one that a new order cut short, meets a free one.
        for _ in 0..2 * self.penalties.len() {
            let value = self.in_turn();
            if self.penalties[usize::from(value)] == 0 {
                return value;
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    fn entropies(rule: Spraying) -> Entropies {
        Entropies::new(rule, 16, Stream::new(1, Purpose::Scenario, 0))
    }

    #[test]
    fn a_round_uses_every_value_once() {
        let mut e = entropies(Spraying::Oblivious);
        for _ in 0..3 {
            let mut round: Vec<_> = (0..16).map(|_| e.next(64)).collect();
            round.sort_unstable();
            assert_eq!(round, (0..16).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_penalty_is_a_number_of_turns_missed() {
        for (feedback, turns) in [
            (Feedback::Marked, 1),
            (Feedback::Trimmed, 4),
            (Feedback::TimedOut, 15),
        ] {
            let mut e = entropies(Spraying::Penalties);
            e.feedback(7, feedback);
            let until = (0..).position(|_| e.next(64) == 7).unwrap();
            let rounds = until / 15;
            assert!(
                (turns..=turns + 1).contains(&rounds),
                "{feedback:?} {until}"
            );
        }
    }

    #[test]
    fn all_penalised_is_none_penalised() {
        let mut e = entropies(Spraying::Penalties);
        for value in 0..16 {
            e.feedback(value, Feedback::TimedOut);
        }
        let mut round: Vec<_> = (0..16).map(|_| e.next(64)).collect();
        round.sort_unstable();
        assert_eq!(round, (0..16).collect::<Vec<_>>());
    }

    #[test]
    fn reps_comes_back_to_what_was_good() {
        for rule in [Spraying::Reps, Spraying::Mixed] {
            let mut e = entropies(rule);
            for _ in 0..16 {
                e.next(64);
            }
            e.feedback(3, Feedback::Good);
            e.feedback(5, Feedback::Marked);
            e.feedback(11, Feedback::Good);
            assert_eq!((e.next(64), e.next(64)), (3, 11));
        }
    }
}
