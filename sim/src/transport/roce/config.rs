//! The settings of a RoCEv2 NIC, with the values that are published for them.

use serde::{Deserialize, Serialize};

use super::dcqcn::DcqcnConfig;
use crate::time::Time;

/// Bytes around payloads, on the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Framing {
    /// Around every data packet: headers, checksums, and what the line adds.
    pub data: u32,
    /// The RETH (address, key, length of an RDMA WRITE), where a packet carries one.
    pub reth: u32,
    /// A whole acknowledgment, positive or negative.
    pub ack: u32,
    /// A whole notification of congestion (CNP).
    pub cnp: u32,
    /// The part of each of these that is outside of the datagram.
    pub outside: u32,
}

impl Framing {
    /// RoCEv2 (IBTA, Annex A17): preamble and gap 20, Ethernet 18, IPv4 20, UDP 8, BTH 12, ICRC 4; AETH 4, RETH 16; a CNP
    /// has 16 reserved bytes behind its BTH.
    pub const ROCE_V2: Self = Self {
        data: 82,
        reth: 16,
        ack: 86,
        cnp: 98,
        outside: 66,
    };

    /// InfiniBand within a subnet (IBTA, volume 1): LRH 8, BTH 12, ICRC 4, VCRC 2; AETH 4, RETH 16.
    pub const INFINIBAND: Self = Self {
        data: 26,
        reth: 16,
        ack: 30,
        cnp: 42,
        outside: 0,
    };
}

/// The constants of IRN (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018, section 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IrnConfig {
    /// Timeout while at most [`IrnConfig::few`] packets are in flight; the paper: 100 us.
    pub rto_low: Time,
    /// Timeout otherwise; the paper: 320 us (propagation on the longest path and the worst queue of one link).
    pub rto_high: Time,
    /// Up to so many packets in flight are few; the paper: N = 3.
    pub few: u32,
}

impl Default for IrnConfig {
    fn default() -> Self {
        Self {
            rto_low: Time::from_us(100),
            rto_high: Time::from_us(320),
            few: 3,
        }
    }
}

/// What becomes of packets that are not the next ones, and of packets that are lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Recovery {
    /// The receiver drops everything but the next packet, and says so once per gap (NAK); the sender goes back to it.
    /// A retransmission that is lost too costs a timeout (IBTA, volume 1, 9.7.5: one NAK until the expected packet has come;
    /// so does `rdma_rxe` of Linux).
    #[default]
    GoBackN,
    /// Selective repeat as in IRN: every packet is placed, each that is out of order answered with a NACK that carries
    /// the cumulative acknowledgment and its own sequence number.
    Irn(IrnConfig),
    /// Every packet is placed and acknowledged cumulatively, a gap is no loss: adaptive routing over links that lose nothing,
    /// with placement out of order (as NVIDIA describes for its adaptive routing). Only a timeout finds a loss, and goes back.
    AnyOrder,
}

/// How senders react to congestion.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Congestion {
    /// Not at all: line rate, and the links' flow control does the rest.
    None,
    /// DCQCN.
    Dcqcn(DcqcnConfig),
}

/// The settings of a host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RoceConfig {
    /// Payload of a full packet, bytes, at least 1; the largest of InfiniBand's MTUs is 4096.
    pub payload_bytes: u32,
    /// Rate of the host's line, Mbit/s: where DCQCN starts.
    pub line_mbps: u64,
    /// Queue pairs to each peer, at least 1; flows share them by their number modulo this.
    pub queue_pairs: u32,
    /// Order and loss.
    pub recovery: Recovery,
    /// Most packets between the oldest unacknowledged and the newest, at least 1; none: no limit but the messages posted.
    pub window_packets: Option<u32>,
    /// An acknowledgment is asked for every so many packets (and at the end of each message, and of the window), at least 1:
    /// mlx5's `log_ack_req_freq` 0.
    pub ack_every: u32,
    /// Local ACK timeout: 4.096 us x 2^n (IBTA, volume 1, 9.7.6.1.3). The usual n is 14 (`perftest -u`, mlx5 examples),
    /// NCCL uses 18 to 20. Not used by IRN.
    pub timeout: Time,
    /// Timeouts without progress after which a queue pair fails: the 3-bit retry count, usually 7; none: never.
    pub retries: Option<u32>,
    /// Reaction to marks.
    pub congestion: Congestion,
    /// Sizes on the line.
    pub framing: Framing,
}

/// The local ACK timeout of an exponent from 0 to 31: 4.096 us x 2^n.
#[must_use]
pub const fn local_ack_timeout(exponent: u32) -> Time {
    Time::from_ps(4_096_000 << exponent)
}

impl Default for RoceConfig {
    /// Go-back-N and DCQCN at 100 Gb/s, as a NIC comes.
    fn default() -> Self {
        Self {
            payload_bytes: 4096,
            line_mbps: 100_000,
            queue_pairs: 1,
            recovery: Recovery::GoBackN,
            window_packets: None,
            ack_every: 1,
            timeout: local_ack_timeout(14),
            retries: Some(7),
            congestion: Congestion::Dcqcn(DcqcnConfig::default()),
            framing: Framing::ROCE_V2,
        }
    }
}

impl RoceConfig {
    /// The same without congestion control: PFC only.
    #[must_use]
    pub fn without_congestion_control() -> Self {
        Self {
            congestion: Congestion::None,
            ..Self::default()
        }
    }

    /// IRN as in its paper: BDP-FC, one acknowledgment per packet, no congestion control (section 4.1: it needs none to win).
    /// The window is the bandwidth-delay product of the reference fabric, 100 Gb/s x 14.09 us, in full packets.
    #[must_use]
    pub fn irn() -> Self {
        Self {
            recovery: Recovery::Irn(IrnConfig::default()),
            window_packets: Some(bdp_packets(100_000, Time::from_ns(14_090), 4096 + 98)),
            retries: None,
            congestion: Congestion::None,
            ..Self::default()
        }
    }
}

impl RoceConfig {
    /// With counts, sizes and rates of at least 1, and timers of at least 1 us: one of nothing would expire for ever.
    pub(super) fn at_least(mut self) -> Self {
        self.payload_bytes = self.payload_bytes.max(1);
        self.line_mbps = self.line_mbps.max(1);
        self.queue_pairs = self.queue_pairs.max(1);
        self.ack_every = self.ack_every.max(1);
        self.window_packets = self.window_packets.map(|window| window.max(1));
        let least = Time::from_us(1);
        self.timeout = self.timeout.max(least);
        if let Recovery::Irn(irn) = &mut self.recovery {
            irn.rto_low = irn.rto_low.max(least);
            irn.rto_high = irn.rto_high.max(least);
        }
        if let Congestion::Dcqcn(dcqcn) = &mut self.congestion {
            dcqcn.minimum_mbps = dcqcn.minimum_mbps.max(1);
            dcqcn.alpha_interval = dcqcn.alpha_interval.max(least);
            dcqcn.increase_interval = dcqcn.increase_interval.max(least);
        }
        self
    }
}

/// The packets of `wire_bytes` that fill a line of `mbps` Mbit/s for a round trip, rounded up.
#[must_use]
pub const fn bdp_packets(mbps: u64, round_trip: Time, wire_bytes: u32) -> u32 {
    let packet = Time::to_send(wire_bytes as u64, mbps).ps();
    round_trip.ps().div_ceil(packet) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        // 67.1 ms and 1.07 s, as drivers note beside 14 and 18.
        assert_eq!(local_ack_timeout(14).ns(), 67_108_864);
        assert_eq!(local_ack_timeout(18).ns(), 1_073_741_824);
        // The IRN paper: 40 Gb/s, 24 us, packets of 1000 bytes and headers: a cap of about 110.
        assert!((108..=120).contains(&bdp_packets(40_000, Time::from_us(24), 1_060)));
        assert_eq!(RoceConfig::irn().window_packets, Some(42));
    }
}
