//! Networks ready made.
//!
//! The base round trip is the time from the start of the transmission of a full data packet ([`DATA_WIRE_BYTES`])
//! to the arrival of the last bit of its acknowledgment ([`ACK_WIRE_BYTES`]) with all queues empty and an
//! acknowledgment at once. Propagation delays are what is left of it after all serialisation times, exactly.

use crate::network::Network;
use crate::port::{Node, PortConfig, PortId};
use crate::switch::SwitchConfig;
use crate::time::Time;

/// 4096 bytes of payload, 48 of header, 4 of CRC, 66 of UDP, IPv4, Ethernet, preamble and gap.
pub const DATA_WIRE_BYTES: u64 = 4096 + 48 + 4 + 66;
/// An acknowledgment of one block with all of its vector: 64 bytes, 4 of CRC, 66 of the rest.
pub const ACK_WIRE_BYTES: u64 = 64 + 4 + 66;
/// The base round trip of all figures: 14.09 us.
pub const BASE_RTT: Time = Time::from_ns(14_090);

/// A network and the names of its interesting ports.
#[derive(Clone, Debug)]
pub struct Topology {
    /// The network.
    pub network: Network,
    /// The ports where flows meet: by plane, towards the receiver.
    pub bottleneck: Vec<PortId>,
}

/// Two hosts with a direct link per plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PairConfig {
    /// Planes.
    pub planes: u8,
    /// Rate of each plane's link, Mbit/s.
    pub mbps: u64,
    /// Base round trip.
    pub base_rtt: Time,
}

impl Default for PairConfig {
    fn default() -> Self {
        Self {
            planes: 1,
            mbps: 100_000,
            base_rtt: BASE_RTT,
        }
    }
}

/// One way's propagation over `hops` links of a rate, for a base round trip.
fn link_delay(base_rtt: Time, hops: u64, mbps: u64) -> Time {
    let lines =
        Time::to_send(DATA_WIRE_BYTES, mbps).ps() + Time::to_send(ACK_WIRE_BYTES, mbps).ps();
    Time::from_ps((base_rtt.ps() - hops * lines) / (2 * hops))
}

/// Two hosts, 0 and 1: every path of a plane takes the same link.
#[must_use]
pub fn pair(config: &PairConfig, seed: u64) -> Topology {
    let mut network = Network::new(seed);
    let (a, b) = (network.add_host(), network.add_host());
    let delay = link_delay(config.base_rtt, 1, config.mbps);
    let port = PortConfig {
        mbps: config.mbps,
        delay,
        ..PortConfig::HOST
    };
    let mut bottleneck = Vec::new();
    for plane in 0..config.planes {
        bottleneck.push(network.add_port(Node::Host(a), Node::Host(b), plane, port));
        network.add_port(Node::Host(b), Node::Host(a), plane, port);
    }
    Topology {
        network,
        bottleneck,
    }
}

/// Hosts around one switch per plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StarConfig {
    /// Sending hosts, 0 to `senders - 1`; the receiver is the last host.
    pub senders: u32,
    /// Planes.
    pub planes: u8,
    /// Base round trip.
    pub base_rtt: Time,
    /// The switches' ports (their delay is set from the base round trip).
    pub port: PortConfig,
}

impl StarConfig {
    /// The reference: one plane of 100 Gb/s.
    #[must_use]
    pub const fn new(senders: u32) -> Self {
        Self {
            senders,
            planes: 1,
            base_rtt: BASE_RTT,
            port: PortConfig::REFERENCE,
        }
    }
}

/// `senders + 1` hosts around a switch per plane.
#[must_use]
pub fn star(config: &StarConfig, seed: u64) -> Topology {
    let mut network = Network::new(seed);
    let delay = link_delay(config.base_rtt, 2, config.port.mbps);
    let down = PortConfig {
        delay,
        ..config.port
    };
    let up = PortConfig {
        mbps: config.port.mbps,
        delay,
        priority: config.port.priority,
        ..PortConfig::HOST
    };
    let hosts: Vec<u32> = (0..=config.senders).map(|_| network.add_host()).collect();
    let mut bottleneck = Vec::new();
    for plane in 0..config.planes {
        let switch = network.add_switch(SwitchConfig::default());
        for &host in &hosts {
            network.add_port(Node::Host(host), Node::Switch(switch), plane, up);
            let port = network.add_port(Node::Switch(switch), Node::Host(host), plane, down);
            if host == config.senders {
                bottleneck.push(port);
            }
        }
    }
    network.set_routes();
    Topology {
        network,
        bottleneck,
    }
}
