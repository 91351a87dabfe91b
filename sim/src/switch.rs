//! A switch: which port a packet takes, and how much of a shared buffer a queue may use.

use serde::{Deserialize, Serialize};

use crate::packet::{HostId, Packet};
use crate::port::{Port, PortId};
use crate::random::{Purpose, Stream, mix};
use crate::time::Time;

/// How a switch chooses among equal routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Spray {
    /// By a hash of addresses, ports and protocol: a flow keeps its route.
    #[default]
    Ecmp,
    /// Each packet anew, by chance.
    Random,
    /// Each packet anew: the port with the least backlog, of equals the next in turn (adaptive routing).
    Adaptive,
}

/// A buffer that the queues of a switch share: a queue may hold `alpha` times what is free (dynamic thresholds, Choudhury and
/// Hahne 1998, as in the switches of today).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedBuffer {
    /// All of it.
    pub bytes: u64,
    /// `alpha` in eighths.
    pub alpha_eighths: u64,
}

/// The settings of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SwitchConfig {
    /// How it chooses among equal routes.
    pub spray: Spray,
    /// A buffer shared by its queues. Without, each queue has only its own limit.
    pub buffer: Option<SharedBuffer>,
}

/// The ports of a route, and the hosts that it leads to, by index.
pub(crate) type Routes = (Vec<u16>, Vec<Vec<PortId>>);

/// No route.
pub(crate) const NO_GROUP: u16 = u16::MAX;

/// A switch.
#[derive(Clone, Debug)]
pub(crate) struct Switch {
    config: SwitchConfig,
    /// By host: the group of ports that lead to it.
    table: Vec<u16>,
    groups: Vec<Vec<PortId>>,
    salt: u64,
    chance: Stream,
    turn: u32,
    used_bytes: u64,
    pub max_used_bytes: u64,
}

impl Switch {
    pub fn new(config: SwitchConfig, seed: u64, index: u64) -> Self {
        Self {
            config,
            table: Vec::new(),
            groups: Vec::new(),
            salt: Stream::new(seed, Purpose::Salt, index).bits(),
            chance: Stream::new(seed, Purpose::Spray, index),
            turn: 0,
            used_bytes: 0,
            max_used_bytes: 0,
        }
    }

    pub fn set_routes(&mut self, (table, groups): Routes) {
        self.table = table;
        self.groups = groups;
    }

    /// The ports that lead to a host.
    pub fn choices(&self, host: HostId) -> &[PortId] {
        self.table
            .get(host as usize)
            .and_then(|&group| self.groups.get(usize::from(group)))
            .map_or(&[], Vec::as_slice)
    }

    /// The port that a packet takes.
    pub fn route(&mut self, now: Time, packet: &Packet, ports: &[Port]) -> Option<PortId> {
        let group = *self.table.get(packet.destination as usize)?;
        let group = self.groups.get(usize::from(group))?;
        let count = group.len() as u64;
        let choice = match (count, self.config.spray) {
            (0, _) => return None,
            (1, _) => 0,
            (_, Spray::Ecmp) => {
                let addresses = u64::from(packet.source) << 32 | u64::from(packet.destination);
                let ports = PROTOCOL_AND_PORT | u64::from(packet.source_port) << 16;
                let hash = mix(mix(self.salt ^ addresses) ^ ports);
                scale(hash, count)
            }
            (_, Spray::Random) => self.chance.below(count),
            (_, Spray::Adaptive) => {
                self.turn = self.turn.wrapping_add(1);
                let first = u64::from(self.turn) % count;
                // A switch knows at once that a link of its own is down.
                let backlog = |i: &u64| {
                    let port = &ports[group[((first + i) % count) as usize] as usize];
                    if port.is_up() {
                        port.backlog_bytes(now)
                    } else {
                        u64::MAX
                    }
                };
                let least = (0..count).min_by_key(backlog).unwrap_or(0);
                (first + least) % count
            }
        };
        group.get(choice as usize).copied()
    }

    /// How long a queue may be at most now, for another packet of `bytes`; 0 if there is no room at all.
    pub fn limit(&self, bytes: u64) -> u64 {
        match self.config.buffer {
            None => u64::MAX,
            Some(buffer) => {
                let free = buffer.bytes.saturating_sub(self.used_bytes);
                if free < bytes {
                    0
                } else {
                    free.saturating_mul(buffer.alpha_eighths) / 8
                }
            }
        }
    }

    /// A packet has been taken into a queue.
    pub fn take(&mut self, bytes: u64) {
        self.used_bytes += bytes;
        self.max_used_bytes = self.max_used_bytes.max(self.used_bytes);
    }

    /// A packet has left.
    pub fn give(&mut self, bytes: u64) {
        self.used_bytes -= bytes;
    }

    /// Whether the buffer holds what the queues hold, and never held more than it has.
    pub fn is_conserved(&self, queued_bytes: u64) -> bool {
        self.used_bytes == queued_bytes
            && self
                .config
                .buffer
                .is_none_or(|buffer| self.max_used_bytes <= buffer.bytes)
    }
}

/// The rest of the 5-tuple, which is the same for all packets: UDP, and the port of RoCEv2.
const PROTOCOL_AND_PORT: u64 = 17 << 32 | 4_791;

/// One step of a multiplicative hash; fast, and good in the high bits.
pub(crate) fn fold(hash: u64, word: u64) -> u64 {
    let x = (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ (x >> 32)
}

/// A hash as a number below `count`.
fn scale(hash: u64, count: u64) -> u64 {
    ((u128::from(hash) * u128::from(count)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::{Node, PortConfig};

    fn ports(n: usize) -> Vec<Port> {
        let port = |i| {
            Port::new(
                PortConfig::REFERENCE,
                Node::Switch(0),
                Node::Host(0),
                0,
                1,
                i,
            )
        };
        (0..n as u64).map(port).collect()
    }

    fn spread(spray: Spray, switch: u64) -> Vec<PortId> {
        let mut switch = Switch::new(
            SwitchConfig {
                spray,
                buffer: None,
            },
            7,
            switch,
        );
        switch.set_routes((vec![0], vec![(0..8).collect()]));
        let ports = ports(8);
        let mut packet = Packet::default();
        let route = |source_port| {
            packet.source_port = source_port;
            switch.route(Time::ZERO, &packet, &ports)
        };
        (0..4_000).filter_map(route).collect()
    }

    #[test]
    fn flows_are_spread_evenly_and_otherwise_at_each_switch() {
        let (a, b) = (spread(Spray::Ecmp, 0), spread(Spray::Ecmp, 1));
        assert_eq!(a, spread(Spray::Ecmp, 0));
        for port in 0..8 {
            let here = a.iter().filter(|&&at| at == port).count();
            assert!((420..580).contains(&here), "{here}");
            // Of the flows that one switch sends one way, the next sends an eighth each way.
            for next in 0..8 {
                let both = a.iter().zip(&b).filter(|&(&x, &y)| (x, y) == (port, next));
                assert!((30..100).contains(&both.count()));
            }
        }
    }

    #[test]
    fn adaptive_routing_takes_turns_where_nothing_waits() {
        let taken = spread(Spray::Adaptive, 0);
        assert!(
            taken
                .windows(9)
                .all(|w| w[0] == w[8] && !w[1..8].contains(&w[0]))
        );
    }

    #[test]
    fn a_shared_buffer_gives_less_when_it_fills() {
        let buffer = SharedBuffer {
            bytes: 10_000,
            alpha_eighths: 4,
        };
        let mut switch = Switch::new(
            SwitchConfig {
                spray: Spray::Ecmp,
                buffer: Some(buffer),
            },
            1,
            0,
        );
        assert_eq!(switch.limit(1_000), 5_000);
        switch.take(8_000);
        assert_eq!(switch.limit(1_000), 1_000);
        assert_eq!(switch.limit(3_000), 0);
        switch.give(8_000);
        assert_eq!(switch.limit(1_000), 5_000);
    }
}
