//! Fabrics: hosts, switches and links of the usual shapes, with all the settings of their ports.
//!
//! The base round trip is the time from the start of the transmission of a full data packet ([`DATA_WIRE_BYTES`]) to the
//! arrival of the last bit of its acknowledgment ([`ACK_WIRE_BYTES`]) on the longest way, with all queues empty and an
//! acknowledgment at once. Propagation delays are what is left of it after all serialisation times.

mod shape;
mod tiers;

pub use shape::Shape;

use serde::{Deserialize, Serialize};

use crate::network::Network;
use crate::packet::HostId;
use crate::port::{FlowControl, Node, PortConfig, PortId};
use crate::random::Probability;
use crate::switch::{SharedBuffer, Spray, SwitchConfig};
use crate::time::Time;
use crate::topology::{ACK_WIRE_BYTES, BASE_RTT, DATA_WIRE_BYTES};

/// Where in the fabric a link is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Tier {
    /// Between a host and its switch.
    Host,
    /// Between the switches of hosts and the next.
    Leaf,
    /// Between these and the core.
    Core,
    /// Between sites.
    Site,
}

impl Tier {
    /// All tiers, from the hosts up.
    pub const ALL: [Self; 4] = [Self::Host, Self::Leaf, Self::Core, Self::Site];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Leaf => "leaf",
            Self::Core => "core",
            Self::Site => "site",
        }
    }
}

/// A link: two ports, one each way.
#[derive(Clone, Debug)]
pub struct Link {
    /// From below: a host or the lower switch.
    pub lower: Node,
    /// To above.
    pub upper: Node,
    /// The port of the lower end.
    pub up: PortId,
    /// The port of the upper end.
    pub down: PortId,
    /// Where it is.
    pub tier: Tier,
    /// Its plane.
    pub plane: u8,
}

/// The settings of one tier's links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TierConfig {
    /// Rate, Mbit/s.
    pub mbps: u64,
    /// Propagation delay. `None`: from the base round trip.
    pub delay: Option<Time>,
}

impl Default for TierConfig {
    /// 100 Gb/s, as everywhere in the reference figures.
    fn default() -> Self {
        Self {
            mbps: 100_000,
            delay: None,
        }
    }
}

/// The settings of a fabric.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FabricConfig {
    /// Its shape.
    pub shape: Shape,
    /// Independent copies of it, one per port of a host.
    pub planes: u8,
    /// By [`Tier`].
    #[serde(with = "tiers")]
    pub tiers: [TierConfig; 4],
    /// Base round trip, from which the delays come that are not set.
    pub base_rtt: Time,
    /// Most bytes in a switch port's queue.
    pub queue_bytes: u64,
    /// Marks begin at this backlog ...
    pub mark_low_bytes: u64,
    /// ... and are certain from this on. [`u64::MAX`] in both: no ECN.
    pub mark_high_bytes: u64,
    /// The share of packets that are marked just below that (RED's greatest probability).
    pub mark_probability: Probability,
    /// The control class has a queue of its own that goes first.
    pub priority: bool,
    /// Full queues trim.
    pub trim: bool,
    /// Flow control of every link.
    pub flow: FlowControl,
    /// Choice among equal routes.
    pub spray: Spray,
    /// Switch buffers are shared.
    pub buffer: Option<SharedBuffer>,
    /// Switches learn of links that went down or came back after this long. `None`: never.
    pub reroute_after: Option<Time>,
}

impl Default for FabricConfig {
    fn default() -> Self {
        Self {
            shape: Shape::fat_tree(4),
            planes: 1,
            tiers: [TierConfig::default(); 4],
            base_rtt: BASE_RTT,
            queue_bytes: PortConfig::REFERENCE.queue_bytes,
            mark_low_bytes: PortConfig::REFERENCE.mark_low_bytes,
            mark_high_bytes: PortConfig::REFERENCE.mark_high_bytes,
            mark_probability: PortConfig::REFERENCE.mark_probability,
            priority: true,
            trim: false,
            flow: FlowControl::None,
            spray: Spray::Ecmp,
            buffer: None,
            reroute_after: None,
        }
    }
}

/// Why a fabric could not be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FabricError {
    /// A count that must be at least 1 is 0.
    Zero(&'static str),
    /// More planes than 8, or hosts than 65,536.
    TooMany(&'static str),
    /// The base round trip is shorter than its serialisation times alone.
    BaseRtt {
        /// What it has to be longer than.
        serialisation: Time,
    },
    /// Marks are certain before they begin.
    Marks,
    /// Packets are trimmed only where links have no flow control.
    TrimWithFlowControl,
    /// Headers of trimmed packets need a queue of their own.
    TrimWithoutPriority,
    /// Credit for less than a full packet never lets one go.
    Credit,
    /// A pause would end before it began.
    Pause,
}

impl core::fmt::Display for FabricError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Zero(what) => write!(f, "{what}: must be at least 1"),
            Self::TooMany("planes") => f.write_str("planes: at most 8"),
            Self::TooMany(what) => write!(f, "{what}: at most 65,536 in all"),
            Self::BaseRtt { serialisation } => write!(
                f,
                "base_rtt: serialisation and the delays that are set take {serialisation} on the longest way"
            ),
            Self::Marks => f.write_str("mark_high_bytes: must be above mark_low_bytes"),
            Self::TrimWithFlowControl => {
                f.write_str("trim: a queue that trims has no flow control")
            }
            Self::TrimWithoutPriority => {
                f.write_str("trim: headers need the control class's queue (priority)")
            }
            Self::Credit => write!(f, "flow.bytes: at least a full packet, {DATA_WIRE_BYTES}"),
            Self::Pause => f.write_str("flow.xon_bytes: at most xoff_bytes"),
        }
    }
}

impl core::error::Error for FabricError {}

/// A fabric, to be given hosts.
#[derive(Clone, Debug)]
pub struct Fabric {
    /// The network.
    pub network: Network,
    /// All links, plane by plane and from the hosts up.
    pub links: Vec<Link>,
}

impl Fabric {
    /// Builds a fabric.
    ///
    /// # Errors
    /// What is wrong with the settings.
    pub fn new(config: &FabricConfig, seed: u64) -> Result<Self, FabricError> {
        config.check()?;
        let mut fabric = Self {
            network: Network::new(seed),
            links: Vec::new(),
        };
        fabric.network.reroute_after = config.reroute_after;
        for _ in 0..config.shape.hosts() {
            fabric.network.add_host();
        }
        let delay = config.derived_delay()?;
        for plane in 0..config.planes {
            config.shape.build(&mut Plane {
                fabric: &mut fabric,
                config,
                delay,
                plane,
            });
        }
        fabric.network.set_routes();
        Ok(fabric)
    }

    /// The links of a tier.
    pub fn tier(&self, tier: Tier) -> impl Iterator<Item = &Link> {
        self.links.iter().filter(move |link| link.tier == tier)
    }

    /// The link of a host on a plane.
    #[must_use]
    pub fn host_link(&self, host: HostId, plane: u8) -> Option<&Link> {
        self.links
            .iter()
            .find(|link| link.lower == Node::Host(host) && link.plane == plane)
    }
}

impl FabricConfig {
    /// How many hosts it has.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.shape.hosts()
    }

    pub(crate) fn check(&self) -> Result<(), FabricError> {
        self.shape.check()?;
        if self.planes == 0 {
            return Err(FabricError::Zero("planes"));
        }
        if self.planes > 8 {
            return Err(FabricError::TooMany("planes"));
        }
        if self.tiers.iter().any(|tier| tier.mbps == 0) {
            return Err(FabricError::Zero("mbps"));
        }
        if self.mark_low_bytes >= self.mark_high_bytes && self.mark_low_bytes != u64::MAX {
            return Err(FabricError::Marks);
        }
        if self.trim && self.flow != FlowControl::None {
            return Err(FabricError::TrimWithFlowControl);
        }
        if self.trim && !self.priority {
            return Err(FabricError::TrimWithoutPriority);
        }
        match self.flow {
            FlowControl::Credit { bytes } if bytes < DATA_WIRE_BYTES => {
                return Err(FabricError::Credit);
            }
            FlowControl::Pause {
                xoff_bytes,
                xon_bytes,
                ..
            } if xon_bytes > xoff_bytes => return Err(FabricError::Pause),
            _ => {}
        }
        Ok(())
    }

    /// The delay of the links whose delay is not set.
    fn derived_delay(&self) -> Result<Time, FabricError> {
        let mut fixed = Time::ZERO;
        let mut open = 0;
        for &tier in self.shape.longest_way() {
            let settings = self.tiers[tier as usize];
            fixed += Time::to_send(DATA_WIRE_BYTES, settings.mbps)
                + Time::to_send(ACK_WIRE_BYTES, settings.mbps);
            match settings.delay {
                Some(delay) => fixed += delay + delay,
                None => open += 2,
            }
        }
        if open == 0 {
            return Ok(Time::ZERO);
        }
        if fixed >= self.base_rtt {
            return Err(FabricError::BaseRtt {
                serialisation: fixed,
            });
        }
        Ok(Time::from_ps((self.base_rtt - fixed).ps() / open))
    }

    /// The base round trip on the longest way, as it came out.
    ///
    /// # Errors
    /// As [`Fabric::new`].
    pub fn round_trip(&self) -> Result<Time, FabricError> {
        let derived = self.derived_delay()?;
        let mut sum = Time::ZERO;
        for &tier in self.shape.longest_way() {
            let settings = self.tiers[tier as usize];
            let delay = settings.delay.unwrap_or(derived);
            sum += Time::to_send(DATA_WIRE_BYTES, settings.mbps)
                + Time::to_send(ACK_WIRE_BYTES, settings.mbps)
                + delay
                + delay;
        }
        Ok(sum)
    }
}

/// A plane being built.
struct Plane<'a> {
    fabric: &'a mut Fabric,
    config: &'a FabricConfig,
    delay: Time,
    plane: u8,
}

impl Plane<'_> {
    fn switch(&mut self) -> Node {
        Node::Switch(self.fabric.network.add_switch(SwitchConfig {
            spray: self.config.spray,
            buffer: self.config.buffer,
        }))
    }

    fn link(&mut self, lower: Node, upper: Node, tier: Tier) {
        let settings = self.config.tiers[tier as usize];
        let switch = PortConfig {
            mbps: settings.mbps,
            delay: settings.delay.unwrap_or(self.delay),
            queue_bytes: self.config.queue_bytes,
            mark_low_bytes: self.config.mark_low_bytes,
            mark_high_bytes: self.config.mark_high_bytes,
            mark_probability: self.config.mark_probability,
            priority: self.config.priority,
            trim: self.config.trim,
            flow: self.config.flow,
        };
        let host = PortConfig {
            mbps: switch.mbps,
            delay: switch.delay,
            priority: switch.priority,
            flow: switch.flow,
            ..PortConfig::HOST
        };
        let plane = self.plane;
        let port = |node| match node {
            Node::Host(_) => host,
            Node::Switch(_) => switch,
        };
        let network = &mut self.fabric.network;
        let up = network.add_port(lower, upper, plane, port(lower));
        let down = network.add_port(upper, lower, plane, port(upper));
        self.fabric.links.push(Link {
            lower,
            upper,
            up,
            down,
            tier,
            plane,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(config: &FabricConfig) -> Fabric {
        match Fabric::new(config, 1) {
            Ok(fabric) => fabric,
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn the_round_trip_comes_out() {
        for shape in [
            Shape::Pair,
            Shape::Star { hosts: 3 },
            Shape::fat_tree(4),
            Shape::leaf_spine(4, 4, 2),
        ] {
            let config = FabricConfig {
                shape,
                ..FabricConfig::default()
            };
            let lost = BASE_RTT - config.round_trip().unwrap();
            assert!(lost < Time::from_ps(16), "{lost}");
        }
    }

    #[test]
    fn fat_trees_have_as_many_ways_as_they_should() {
        let fabric = built(&FabricConfig {
            shape: Shape::fat_tree(8),
            ..FabricConfig::default()
        });
        assert_eq!(fabric.network.hosts(), 128);
        assert_eq!(fabric.network.switches(), 32 + 32 + 16);
        assert_eq!(fabric.tier(Tier::Leaf).count(), 128);
        assert_eq!(fabric.tier(Tier::Core).count(), 128);
        // From the first edge switch to the last host four ways up, from there four, then one each.
        let edge = match fabric.host_link(0, 0).unwrap().upper {
            Node::Switch(switch) => switch,
            Node::Host(_) => panic!(),
        };
        let ways = fabric.network.choices(edge, 127);
        assert_eq!(ways.len(), 4);
        for &way in ways {
            let Node::Switch(aggregation) = fabric.network.ports[way as usize].to else {
                panic!()
            };
            assert_eq!(fabric.network.choices(aggregation, 127).len(), 4);
        }
        assert_eq!(fabric.network.choices(edge, 0).len(), 1);
    }

    #[test]
    fn planes_do_not_meet() {
        let fabric = built(&FabricConfig {
            shape: Shape::leaf_spine(2, 2, 2),
            planes: 4,
            ..FabricConfig::default()
        });
        assert_eq!(fabric.network.host_ports(3).len(), 4);
        for (id, port) in fabric.network.ports.iter().enumerate() {
            assert!(
                fabric.links.iter().any(|link| link.plane == port.plane
                    && [link.up, link.down].contains(&(id as PortId)))
            );
        }
        // No switch has ports of two planes.
        for switch in 0..fabric.network.switches() as u32 {
            let here = |node| node == Node::Switch(switch);
            let ports = fabric.network.ports.iter();
            let mut planes: Vec<u8> = ports
                .filter(|port| here(port.owner) || here(port.to))
                .map(|port| port.plane)
                .collect();
            planes.dedup();
            assert_eq!(planes.len(), 1, "{planes:?}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let wrong = |change: fn(&mut FabricConfig)| {
            let mut config = FabricConfig::default();
            change(&mut config);
            Fabric::new(&config, 1).err().map(|error| error.to_string())
        };
        let said = [
            wrong(|c| c.planes = 0),
            wrong(|c| c.base_rtt = Time::from_us(1)),
            wrong(|c| c.shape = Shape::Star { hosts: 0 }),
            wrong(|c| {
                c.trim = true;
                c.flow = FlowControl::Credit { bytes: 9 };
            }),
        ];
        assert_eq!(said[0].as_deref(), Some("planes: must be at least 1"));
        assert!(said.iter().all(Option::is_some), "{said:?}");
    }
}
