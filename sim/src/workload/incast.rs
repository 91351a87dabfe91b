//! Incast: many hosts send to one, or to each of a few.

use serde::{Deserialize, Serialize};

use super::error::{WorkloadError, require, require_hosts};
use super::placement::Placement;
use super::program::{Action, Group, Program};
use crate::time::Time;

/// The configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Incast {
    /// Hosts that are sent to (the first ranks), at least 1.
    pub receivers: u32,
    /// Hosts that send to each; without: as many as there are. They follow the receivers in rank.
    pub senders: Option<u32>,
    /// Every sender sends to every receiver, instead of each receiver having senders of its own.
    pub shared: bool,
    /// What each sender sends to each of its receivers, at least 1.
    pub size_bytes: u64,
    /// When the first begins.
    pub start_ns: u64,
    /// Each sender begins so much later than the one before.
    pub spacing_ns: u64,
    /// Which hosts play.
    pub placement: Placement,
}

impl Default for Incast {
    fn default() -> Self {
        Self {
            receivers: 1,
            senders: None,
            shared: false,
            size_bytes: 2_000_000,
            start_ns: 0,
            spacing_ns: 0,
            placement: Placement::InOrder,
        }
    }
}

impl Incast {
    /// The program for so many hosts.
    ///
    /// # Errors
    /// If there are too few hosts.
    pub fn program(&self, hosts: u32, seed: u64) -> Result<Program, WorkloadError> {
        require(
            self.receivers >= 1,
            "receivers",
            self.receivers,
            "at least 1",
        )?;
        require_hosts(u64::from(self.receivers) + 1, hosts)?;
        let sets = if self.shared { 1 } else { self.receivers };
        let senders = self.senders.unwrap_or((hosts - self.receivers) / sets);
        let ranks = u64::from(self.receivers) + u64::from(senders) * u64::from(sets);
        require_hosts(ranks, hosts)?;
        let host = self.placement.place(ranks as u32, hosts, seed)?;
        require(
            senders >= 1,
            "senders",
            senders,
            "at least 1 for each receiver",
        )?;
        let mut program = Program::new(hosts);
        for receiver in 0..self.receivers {
            program.begin_group(Group {
                name: format!("incast {senders}:1 at host {}", host[receiver as usize]),
                bytes: self.size_bytes.saturating_mul(u64::from(senders)),
                bus_factor: (1, 1),
            });
            let first = self.receivers + if self.shared { 0 } else { receiver * senders };
            for sender in 0..senders {
                let action = Action::Transfer {
                    from: host[(first + sender) as usize],
                    to: host[receiver as usize],
                    bytes: self.size_bytes,
                    flow: 0,
                };
                let wait = Time::from_ns(self.spacing_ns.saturating_mul(u64::from(sender)));
                program.add(action, Time::from_ns(self.start_ns) + wait, &[])?;
            }
        }
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_incast_is_15_to_1_of_16_hosts() {
        let program = Incast::default().program(16, 0).unwrap();
        let all: Vec<_> = (1..16).map(|from| (from, 0)).collect();
        assert_eq!(program.pairs(), all);
        assert_eq!(program.groups()[0].bytes, 30_000_000);
    }

    #[test]
    fn several_receivers_have_their_own_senders_or_share_them() {
        let config = Incast {
            receivers: 3,
            spacing_ns: 7,
            ..Incast::default()
        };
        let program = config.program(13, 0).unwrap();
        let pairs = program.pairs();
        assert_eq!(pairs.len(), 9);
        for receiver in 0..3 {
            assert_eq!(pairs.iter().filter(|&&(_, to)| to == receiver).count(), 3);
        }
        assert_eq!(program.tasks()[2].not_before, Time::from_ns(14));
        let shared = Incast {
            shared: true,
            ..config.clone()
        };
        assert_eq!(shared.program(13, 0).unwrap().pairs().len(), 30);
        let greedy = Incast {
            senders: Some(4),
            ..config
        };
        assert_eq!(
            greedy.program(13, 0),
            Err(WorkloadError::TooFewHosts {
                needed: 15,
                hosts: 13
            })
        );
        assert!(greedy.program(15, 0).is_ok());
    }
}
