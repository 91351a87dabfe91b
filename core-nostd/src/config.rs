//! What an endpoint and its connections are told at the start.

use crate::time::Duration;

/// The most planes an endpoint has.
pub const MAX_PLANES: usize = 8;

/// Settings of an endpoint, shared by its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndpointConfig {
    /// Physical ports, 1 to [`MAX_PLANES`].
    pub planes: u8,
    /// This endpoint's address on each plane (the service port peers send to).
    pub addresses: [core::net::SocketAddr; MAX_PLANES],
    /// Rate of one plane, Mbit/s, both ways.
    pub plane_mbps: u32,
    /// Most payload bytes in a packet, 256 to 9000.
    pub payload_bytes: u16,
    /// Bytes that every datagram costs on the wire beside itself (UDP, IP, Ethernet, preamble, gap).
    pub overhead_bytes: u16,
    /// UDP source ports per plane that paths may use (their indices are a path's *entropy*).
    pub entropies: u16,
    /// Accept connections.
    pub listen: bool,
    /// Leave out the CRC32C if the peer agrees (the fabric or the device checks).
    pub omit_checksum: bool,
    /// Give senders their fair share as a rate hint.
    pub hints: bool,
    /// Blocks in one ACK: 1 in hardware, more where one ACK answers a batch of datagrams.
    pub ack_blocks: u8,
    /// Data packets of a path before an ACK is due.
    pub ack_packets: u8,
    /// Longest time before an ACK is sent.
    pub ack_delay: Duration,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        let unset = core::net::SocketAddr::V4(core::net::SocketAddrV4::new(
            core::net::Ipv4Addr::UNSPECIFIED,
            0,
        ));
        Self {
            planes: 1,
            addresses: [unset; MAX_PLANES],
            plane_mbps: 100_000,
            payload_bytes: 4096,
            overhead_bytes: 66,
            entropies: 1024,
            listen: true,
            omit_checksum: false,
            hints: true,
            ack_blocks: 1,
            ack_packets: 2,
            ack_delay: Duration::from_micros(1),
        }
    }
}

/// Settings of a connection's sending side. The acceptor uses its endpoint's default, except for `paths`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// Paths that an initiator asks for, at most the capacity of the connection type and of the peer. An acceptor takes as many as
    /// it is asked for and has capacity for.
    pub paths: u8,
    /// Packets in a row on one path before the next is chosen: 1 in hardware, more for segmentation offload.
    pub run: u8,
    /// Packets by which a path may reorder before a gap counts as a loss. 0 where paths keep order.
    pub reorder_tolerance: u8,
    /// Smallest time of a probe timer, against coarse clocks.
    pub min_probe_timeout: Duration,
    /// Time without any answer after which the connection fails.
    pub failure_timeout: Duration,
    /// Idle time after which the peer is asked whether it is there. Zero: never.
    pub keep_alive: Duration,
    /// Further attempts of a SEND that found no buffer, before it fails; 255 = no limit.
    pub rnr_attempts: u8,
    /// Pause between these attempts.
    pub rnr_delay: Duration,
    /// Send an ANNOUNCE before a burst.
    pub announce: bool,
    /// First round-trip time to assume.
    pub initial_rtt: Duration,
    /// Least round-trip time to reckon with. Where software handles packets in batches, an idle path's time says
    /// little about how much must be on its way to keep both ends busy. Zero: what is measured.
    pub least_rtt: Duration,
    /// An application's number, told to the acceptor.
    pub service: u32,
    /// The congestion controller.
    pub controller: ControllerChoice,
}

/// Which congestion controller a connection uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerChoice {
    /// ECN windows coupled over the paths, with the receiver's hints.
    Coupled,
    /// No control: as much as the peer's window and the slots allow.
    None,
    /// A fixed rate in Mbit/s of wire bytes.
    FixedRate(u32),
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            paths: 8,
            run: 1,
            reorder_tolerance: 0,
            min_probe_timeout: Duration::ZERO,
            failure_timeout: Duration::from_millis(2_000),
            keep_alive: Duration::from_millis(5_000),
            rnr_attempts: 7,
            rnr_delay: Duration::from_micros(100),
            announce: true,
            initial_rtt: Duration::from_micros(20),
            least_rtt: Duration::ZERO,
            service: 0,
            controller: ControllerChoice::Coupled,
        }
    }
}

/// Why an endpoint could not be made with a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ConfigError {
    /// `planes` is not 1 to 8.
    Planes,
    /// `payload_bytes` is not 256 to 9000.
    PayloadBytes,
    /// `plane_mbps` is zero.
    Rate,
    /// `entropies` is zero.
    Entropies,
    /// `ack_packets` or `ack_blocks` is zero.
    Acknowledgments,
    /// `run` of the connections that peers ask for is zero.
    Run,
    /// A plane's address has port zero.
    Address,
    /// The connection table has no room for a single connection, or for more than 65,535.
    Connections,
}

impl core::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Planes => "planes: must be 1 to 8",
            Self::PayloadBytes => "payload_bytes: must be 256 to 9000",
            Self::Rate => "plane_mbps: must not be zero",
            Self::Entropies => "entropies: must not be zero",
            Self::Acknowledgments => "ack_packets and ack_blocks: must not be zero",
            Self::Run => "run: must not be zero",
            Self::Address => "addresses: a plane in use has port 0",
            Self::Connections => "the connection table must hold 1 to 65,535 connections",
        })
    }
}

impl core::error::Error for ConfigError {}
