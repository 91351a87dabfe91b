//! Settings of endpoints and connections.

use core::net::{Ipv4Addr, SocketAddr};

use metaroce_core::{ConnectionConfig, ControllerChoice, Duration, EndpointConfig};

use crate::address::{MR_MAX_PLANES, mr_address};
use crate::boundary::{guard, write};
use crate::error::mr_error;

/// Settings of an endpoint. Begin with `mr_endpoint_config_default`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mr_endpoint_config {
    /// This endpoint's address on each plane (the service port peers send to).
    pub addresses: [mr_address; MR_MAX_PLANES],
    /// Rate of one plane, Mbit/s, both ways.
    pub plane_mbps: u32,
    /// Longest time before an ACK is sent, nanoseconds.
    pub ack_delay_ns: u64,
    /// Most payload bytes in a packet, 256 to 9000.
    pub payload_bytes: u16,
    /// Bytes that every datagram costs on the wire beside itself (UDP, IP, Ethernet, preamble, gap).
    pub overhead_bytes: u16,
    /// UDP source ports per plane that paths may use (their indices are a path's entropy).
    pub entropies: u16,
    /// Physical ports, 1 to `MR_MAX_PLANES`.
    pub planes: u8,
    /// Not 0: accept connections.
    pub listen: u8,
    /// Not 0: leave out the CRC32C if the peer agrees.
    pub omit_checksum: u8,
    /// Not 0: give senders their fair share as a rate hint.
    pub hints: u8,
    /// Blocks in one ACK: 1 in hardware, more where one ACK answers a batch of datagrams.
    pub ack_blocks: u8,
    /// Data packets of a path before an ACK is due.
    pub ack_packets: u8,
}

/// Which congestion controller a connection uses (`controller` of `mr_connection_config`).
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum mr_controller {
    /// ECN windows coupled over the paths, with the receiver's hints.
    MR_CONTROLLER_COUPLED = 0,
    /// No control: as much as the peer's window and the slots allow.
    MR_CONTROLLER_NONE = 1,
    /// A fixed rate: `fixed_mbps`.
    MR_CONTROLLER_FIXED_RATE = 2,
}

/// Settings of a connection's sending side. Begin with `mr_connection_config_default`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mr_connection_config {
    /// Smallest time of a probe timer, against coarse clocks, nanoseconds.
    pub min_probe_timeout_ns: u64,
    /// Time without any answer after which the connection fails, nanoseconds.
    pub failure_timeout_ns: u64,
    /// Idle time after which the peer is asked whether it is there, nanoseconds; 0: never.
    pub keep_alive_ns: u64,
    /// Pause between attempts of a SEND that found no buffer, nanoseconds.
    pub rnr_delay_ns: u64,
    /// First round-trip time to assume, nanoseconds.
    pub initial_rtt_ns: u64,
    /// Least round-trip time to reckon with, nanoseconds; 0: what is measured.
    pub least_rtt_ns: u64,
    /// An application's number, told to the acceptor.
    pub service: u32,
    /// Rate of wire bytes for `MR_CONTROLLER_FIXED_RATE`, Mbit/s.
    pub fixed_mbps: u32,
    /// Paths that an initiator asks for.
    pub paths: u8,
    /// Packets in a row on one path before the next is chosen: 1 in hardware, more for segmentation offload.
    pub run: u8,
    /// Packets by which a path may reorder before a gap counts as a loss; 0 where paths keep order.
    pub reorder_tolerance: u8,
    /// Further attempts of a SEND that found no buffer, before it fails; 255: no limit.
    pub rnr_attempts: u8,
    /// Not 0: send an ANNOUNCE before a burst.
    pub announce: u8,
    /// One of `enum mr_controller`.
    pub controller: u8,
}

impl mr_endpoint_config {
    fn of(config: &EndpointConfig) -> Self {
        // Addresses stay unset.
        Self {
            addresses: [mr_address::default(); MR_MAX_PLANES],
            plane_mbps: config.plane_mbps,
            ack_delay_ns: config.ack_delay.as_nanos(),
            payload_bytes: config.payload_bytes,
            overhead_bytes: config.overhead_bytes,
            entropies: config.entropies,
            planes: config.planes,
            listen: config.listen.into(),
            omit_checksum: config.omit_checksum.into(),
            hints: config.hints.into(),
            ack_blocks: config.ack_blocks,
            ack_packets: config.ack_packets,
        }
    }

    pub(crate) fn to_core(self) -> EndpointConfig {
        let mut addresses = [SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)); MR_MAX_PLANES];
        for (place, address) in addresses.iter_mut().zip(self.addresses) {
            *place = address.to_socket();
        }
        EndpointConfig {
            planes: self.planes,
            addresses,
            plane_mbps: self.plane_mbps,
            payload_bytes: self.payload_bytes,
            overhead_bytes: self.overhead_bytes,
            entropies: self.entropies,
            listen: self.listen != 0,
            omit_checksum: self.omit_checksum != 0,
            hints: self.hints != 0,
            ack_blocks: self.ack_blocks,
            ack_packets: self.ack_packets,
            ack_delay: Duration::from_nanos(self.ack_delay_ns),
        }
    }
}

impl mr_connection_config {
    pub(crate) fn of(config: &ConnectionConfig) -> Self {
        use mr_controller::*;
        let (controller, fixed_mbps) = match config.controller {
            ControllerChoice::Coupled => (MR_CONTROLLER_COUPLED, 0),
            ControllerChoice::None => (MR_CONTROLLER_NONE, 0),
            ControllerChoice::FixedRate(mbps) => (MR_CONTROLLER_FIXED_RATE, mbps),
        };
        Self {
            min_probe_timeout_ns: config.min_probe_timeout.as_nanos(),
            failure_timeout_ns: config.failure_timeout.as_nanos(),
            keep_alive_ns: config.keep_alive.as_nanos(),
            rnr_delay_ns: config.rnr_delay.as_nanos(),
            initial_rtt_ns: config.initial_rtt.as_nanos(),
            least_rtt_ns: config.least_rtt.as_nanos(),
            service: config.service,
            fixed_mbps,
            paths: config.paths,
            run: config.run,
            reorder_tolerance: config.reorder_tolerance,
            rnr_attempts: config.rnr_attempts,
            announce: config.announce.into(),
            controller: controller as u8,
        }
    }

    pub(crate) fn to_core(self) -> Result<ConnectionConfig, mr_error> {
        let controller = match self.controller {
            0 => ControllerChoice::Coupled,
            1 => ControllerChoice::None,
            2 => ControllerChoice::FixedRate(self.fixed_mbps),
            _ => return Err(mr_error::MR_ERROR_BAD_ARGUMENT),
        };
        Ok(ConnectionConfig {
            paths: self.paths,
            run: self.run,
            reorder_tolerance: self.reorder_tolerance,
            min_probe_timeout: Duration::from_nanos(self.min_probe_timeout_ns),
            failure_timeout: Duration::from_nanos(self.failure_timeout_ns),
            keep_alive: Duration::from_nanos(self.keep_alive_ns),
            rnr_attempts: self.rnr_attempts,
            rnr_delay: Duration::from_nanos(self.rnr_delay_ns),
            announce: self.announce != 0,
            initial_rtt: Duration::from_nanos(self.initial_rtt_ns),
            least_rtt: Duration::from_nanos(self.least_rtt_ns),
            service: self.service,
            controller,
        })
    }
}

/// The default settings of an endpoint. Its addresses are unset: set one for each plane.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_config_default(config: *mut mr_endpoint_config) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise (see the crate's documentation).
        unsafe { write(config, mr_endpoint_config::of(&EndpointConfig::default())) }?;
        Ok(0)
    })
}

/// The default settings of a connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_connection_config_default(config: *mut mr_connection_config) -> i32 {
    guard(|| {
        let default = mr_connection_config::of(&ConnectionConfig::default());
        // SAFETY: the caller's promise (see the crate's documentation).
        unsafe { write(config, default) }?;
        Ok(0)
    })
}
