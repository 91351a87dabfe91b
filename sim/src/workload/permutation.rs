//! Permutation traffic: every host sends to one host and receives from one.

use serde::{Deserialize, Serialize};

use super::chance::shuffle;
use super::error::{WorkloadError, require, require_hosts};
use super::program::{Action, Group, Program};
use crate::random::{Purpose, Stream};
use crate::time::Time;

/// Who sends to whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// A permutation drawn by the seed in which nobody sends to itself, all such being equally likely.
    #[default]
    Random,
    /// Host i sends to host i + k, around the end.
    Shift(u32),
}

/// The configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Permutation {
    /// Who sends to whom.
    pub pattern: Pattern,
    /// What each host sends, at least 1.
    pub size_bytes: u64,
    /// When all begin.
    pub start_ns: u64,
}

impl Default for Permutation {
    fn default() -> Self {
        Self {
            pattern: Pattern::Random,
            size_bytes: 2_000_000,
            start_ns: 0,
        }
    }
}

impl Permutation {
    /// The program for so many hosts.
    ///
    /// # Errors
    /// If there are fewer than two hosts, or a shift by nothing.
    pub fn program(&self, hosts: u32, seed: u64) -> Result<Program, WorkloadError> {
        require_hosts(2, hosts)?;
        let targets = match self.pattern {
            Pattern::Random => derangement(hosts, seed),
            Pattern::Shift(k) => {
                require(
                    k % hosts != 0,
                    "pattern.shift",
                    k,
                    "no multiple of the number of hosts",
                )?;
                (0..hosts).map(|host| (host + k % hosts) % hosts).collect()
            }
        };
        let mut program = Program::new(hosts);
        program.begin_group(Group {
            name: String::from("permutation"),
            bytes: self.size_bytes,
            bus_factor: (1, 1),
        });
        for (from, to) in (0..hosts).zip(targets) {
            let action = Action::Transfer {
                from,
                to,
                bytes: self.size_bytes,
                flow: 0,
            };
            program.add(action, Time::from_ns(self.start_ns), &[])?;
        }
        Ok(program)
    }
}

/// A permutation without a fixed point. A shuffle has none once in e tries, and to repeat it until then favours none.
fn derangement(hosts: u32, seed: u64) -> Vec<u32> {
    let mut stream = Stream::new(seed, Purpose::Placement, 1);
    let mut order: Vec<u32> = (0..hosts).collect();
    loop {
        shuffle(&mut stream, &mut order);
        if (0..hosts).zip(&order).all(|(from, &to)| from != to) {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyone_sends_once_and_receives_once() {
        for (hosts, seed) in [(2, 1), (3, 2), (16, 3), (1024, 4)] {
            for pattern in [
                Pattern::Random,
                Pattern::Shift(1),
                Pattern::Shift(hosts + hosts / 2),
            ] {
                let config = Permutation {
                    pattern,
                    ..Permutation::default()
                };
                let program = config.program(hosts, seed).unwrap();
                let pairs = program.pairs();
                assert_eq!(pairs.len(), hosts as usize);
                let mut to: Vec<_> = pairs.iter().map(|&(_, to)| to).collect();
                to.sort_unstable();
                assert!(pairs.iter().all(|(from, to)| from != to));
                assert!(to.into_iter().eq(0..hosts));
            }
        }
        assert!(Permutation::default().program(1, 0).is_err());
        let still = Permutation {
            pattern: Pattern::Shift(8),
            ..Permutation::default()
        };
        assert!(still.program(4, 0).is_err());
    }

    #[test]
    fn derangements_are_equally_likely() {
        // Four things have nine derangements.
        let mut seen = std::collections::BTreeMap::new();
        for seed in 0..9000 {
            *seen.entry(derangement(4, seed)).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 9);
        assert!(
            seen.values().all(|count| (880..1120).contains(count)),
            "{seen:?}"
        );
    }
}
