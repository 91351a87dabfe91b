//! Outcast: one host, or each of a few, sends to many.

use serde::{Deserialize, Serialize};

use super::error::{WorkloadError, require, require_hosts};
use super::placement::Placement;
use super::program::{Action, Group, Program};
use crate::time::Time;

/// The configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Outcast {
    /// Hosts that send (the first ranks), at least 1.
    pub senders: u32,
    /// Hosts that each sends to, the same for all; without: all others. They follow the senders in rank.
    pub receivers: Option<u32>,
    /// What goes to each receiver, at least 1.
    pub size_bytes: u64,
    /// When all begin.
    pub start_ns: u64,
    /// Which hosts play.
    pub placement: Placement,
}

impl Default for Outcast {
    fn default() -> Self {
        Self {
            senders: 1,
            receivers: None,
            size_bytes: 2_000_000,
            start_ns: 0,
            placement: Placement::InOrder,
        }
    }
}

impl Outcast {
    /// The program for so many hosts.
    ///
    /// # Errors
    /// If there are too few hosts.
    pub fn program(&self, hosts: u32, seed: u64) -> Result<Program, WorkloadError> {
        require(self.senders >= 1, "senders", self.senders, "at least 1")?;
        require_hosts(u64::from(self.senders) + 1, hosts)?;
        let receivers = self.receivers.unwrap_or(hosts - self.senders);
        require(receivers >= 1, "receivers", receivers, "at least 1")?;
        let ranks = u64::from(self.senders) + u64::from(receivers);
        require_hosts(ranks, hosts)?;
        let host = self.placement.place(ranks as u32, hosts, seed)?;
        let (from, to) = host.split_at(self.senders as usize);
        let mut program = Program::new(hosts);
        for &from in from {
            program.begin_group(Group {
                name: format!("outcast 1:{receivers} from host {from}"),
                bytes: self.size_bytes.saturating_mul(u64::from(receivers)),
                bus_factor: (1, 1),
            });
            for &to in to {
                let action = Action::Transfer {
                    from,
                    to,
                    bytes: self.size_bytes,
                    flow: 0,
                };
                program.add(action, Time::from_ns(self.start_ns), &[])?;
            }
        }
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sender_reaches_each_receiver() {
        let one = Outcast::default().program(4, 0).unwrap();
        assert_eq!(one.pairs(), [(0, 1), (0, 2), (0, 3)]);
        let two = Outcast {
            senders: 2,
            receivers: Some(2),
            ..Outcast::default()
        };
        assert_eq!(
            two.program(4, 0).unwrap().pairs(),
            [(0, 2), (0, 3), (1, 2), (1, 3)]
        );
        assert_eq!(
            two.program(3, 0),
            Err(WorkloadError::TooFewHosts {
                needed: 4,
                hosts: 3
            })
        );
    }
}
