//! Arguments that several commands share.

use crate::failure::Failure;
use crate::units::parse_duration;
use clap::{Args, ValueEnum};
use metaroce_soft::core::config::{ConnectionConfig, ControllerChoice};
use metaroce_soft::core::time;
use metaroce_soft::fault::FaultPlan;
use metaroce_soft::{Nic, NicBuilder};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

/// The UDP port on which `serve` receives unless told otherwise.
pub const DEFAULT_PORT: u16 = 14_791;

/// `IP` or `IP:PORT` (`[IP]:PORT` for IPv6); the port is optional.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    ip: IpAddr,
    port: Option<u16>,
}

impl Address {
    /// With this port unless it has one.
    #[must_use]
    pub fn or_port(self, port: u16) -> SocketAddr {
        SocketAddr::new(self.ip, self.port.unwrap_or(port))
    }

    /// The same address on any port.
    #[must_use]
    pub const fn without_port(self) -> Self {
        Self {
            ip: self.ip,
            port: None,
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(ip) = text.parse() {
            return Ok(Self { ip, port: None });
        }
        match text.parse::<SocketAddr>() {
            Ok(address) => Ok(Self { ip: address.ip(), port: Some(address.port()) }),
            Err(_) => Err("expected IP or IP:PORT, such as 192.0.2.1 or [2001:db8::1]:14791 (names are not looked up)".to_owned()),
        }
    }
}

/// The NIC on this side.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "This side's NIC")]
pub struct NicArgs {
    /// Local address of a plane, IP or IP:PORT; repeat it for several planes
    #[arg(long = "plane", value_name = "ADDRESS")]
    pub planes: Vec<Address>,
    /// Payload bytes of a packet, 256 to 9000 [default: 4096 or what the MTU carries]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(256..=9000))]
    pub payload: Option<u16>,
    /// Rate of one plane, Mbit/s: what senders are told to share [default: the interface's, or 100000]
    #[arg(long, value_name = "MBIT", value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: Option<u32>,
    /// UDP source ports per plane that paths may use
    #[arg(long, value_name = "COUNT", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    pub source_ports: u16,
    /// First of consecutive source ports [default: any free ones]
    #[arg(long, value_name = "PORT")]
    pub first_source_port: Option<u16>,
    /// Faults to inject, such as loss=1%,delay=50us,blackhole=path:3@2s-4s (in. or out. before a key: one way only)
    #[arg(long, value_name = "PLAN", default_value = "")]
    pub faults: FaultPlan,
    /// Leave the CRC32C out if the peer agrees
    #[arg(long)]
    pub no_checksum: bool,
    /// Never sleep: lower latency for a busy core
    #[arg(long)]
    pub busy: bool,
}

impl NicArgs {
    /// A builder with these settings; without planes, one on IPv4 loopback.
    #[must_use]
    pub fn builder(&self, port: u16) -> NicBuilder {
        let mut builder = NicBuilder::default()
            .entropies(self.source_ports)
            .faults(self.faults.clone())
            .omit_checksum(self.no_checksum);
        if let Some(rate) = self.rate {
            builder = builder.rate_mbps(rate);
        }
        if self.busy {
            builder = builder.spin(Duration::MAX);
        }
        if let Some(payload) = self.payload {
            builder = builder.payload_bytes(payload);
        }
        if let Some(first) = self.first_source_port {
            builder = builder.first_source_port(first);
        }
        if self.planes.is_empty() {
            builder = builder.plane(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        }
        for plane in &self.planes {
            builder = builder.plane(plane.or_port(port));
        }
        builder
    }
}

/// Which congestion controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Controller {
    /// ECN windows coupled over the paths, with the receiver's hints
    Coupled,
    /// No control
    None,
    /// The rate given by --fixed-rate
    Fixed,
}

/// The connection's sending side.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArgs {
    /// Paths to spray over
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub paths: u8,
    /// Packets in a row on one path [default: as many as one system call sends]
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u8).range(1..=64))]
    pub run: Option<u8>,
    /// Congestion controller
    #[arg(long, value_enum, default_value = "coupled")]
    pub controller: Controller,
    /// Rate of the fixed controller, Mbit/s
    #[arg(long, value_name = "MBIT", default_value_t = 10_000)]
    pub fixed_rate: u32,
    /// Packets by which a path may reorder before a gap counts as a loss
    #[arg(long, value_name = "PACKETS", default_value_t = 0)]
    pub reorder_tolerance: u8,
    /// Time without any answer after which the connection fails
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    pub failure_timeout: Duration,
}

impl ConnectionArgs {
    /// The core's settings, for connections of this NIC.
    #[must_use]
    pub fn config(&self, nic: &Nic) -> ConnectionConfig {
        let usual = nic.connection_config();
        ConnectionConfig {
            paths: self.paths,
            run: self.run.unwrap_or(usual.run),
            reorder_tolerance: self.reorder_tolerance,
            failure_timeout: time::Duration::from_micros(
                u64::try_from(self.failure_timeout.as_micros()).unwrap_or(u64::MAX),
            ),
            controller: match self.controller {
                Controller::Coupled => ControllerChoice::Coupled,
                Controller::None => ControllerChoice::None,
                Controller::Fixed => ControllerChoice::FixedRate(self.fixed_rate),
            },
            ..usual
        }
    }
}

/// Addresses of a peer, one per local plane.
///
/// # Errors
/// If there are fewer or more than the local planes.
pub fn peer_addresses(peers: &[Address], nic: &NicArgs) -> Result<Vec<SocketAddr>, Failure> {
    let planes = nic.planes.len().max(1);
    if peers.len() != planes {
        return Err(Failure::Usage(format!(
            "{} peer address(es) for {planes} plane(s): give one peer address for each --plane, in the same order",
            peers.len()
        )));
    }
    Ok(peers
        .iter()
        .map(|peer| peer.or_port(DEFAULT_PORT))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_and_without_port() {
        let address = |text: &str| text.parse::<Address>();
        assert_eq!(
            address("192.0.2.1").unwrap().or_port(7).to_string(),
            "192.0.2.1:7"
        );
        assert_eq!(
            address("[2001:db8::1]:9").unwrap().or_port(7).to_string(),
            "[2001:db8::1]:9"
        );
        assert_eq!(
            address("2001:db8::1").unwrap().or_port(7).to_string(),
            "[2001:db8::1]:7"
        );
        assert!(address("localhost").unwrap_err().contains("expected IP"));
    }
}
