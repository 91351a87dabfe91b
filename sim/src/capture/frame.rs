//! A packet of the simulation as an Ethernet frame: what stands before the datagram.
//!
//! Addresses are those of [`address`]; the MAC addresses are locally administered and hold the same numbers. UDP checksums are 0, "none" (RFC 768):
//! packets keep the CRC32C of their own, and a damaged one could not have a right sum. The DSCP says the class, as RoCE networks usually set it
//! (26 for data, 48 for notifications of congestion: NVIDIA, "RoCE configuration").

use std::io;
use std::net::IpAddr;

use etherparse::{EtherType, Ethernet2Header, IpDscp, IpEcn, IpNumber, Ipv4Header, UdpHeader};

use super::segment;
use crate::endpoint::address;
use crate::packet::{Class, Ecn, HostId, Packet};
use crate::port::TRIMMED_WIRE_BYTES;

/// Ethernet, IPv4 and UDP, in bytes.
pub const HEADERS: usize = Ethernet2Header::LEN + Ipv4Header::MIN_LEN + UdpHeader::LEN;

/// Longest datagram that fits into an IPv4 packet, in bytes; more is not told.
const LONGEST: u32 = 65_507;

/// What is left of a trimmed datagram, in bytes.
const TRIMMED: u32 = TRIMMED_WIRE_BYTES - 66;

/// Writes the frame of a packet, as far as its bytes exist, behind what `out` holds. Returns the length of the whole frame.
///
/// # Errors
/// None with a `Vec`, but for packets that no IPv4 packet can hold, which are cut.
pub fn write(packet: &Packet, out: &mut Vec<u8>) -> io::Result<u32> {
    let model = packet.bytes.is_empty();
    let most = if packet.trimmed { TRIMMED } else { LONGEST };
    let least = if model { segment::SIZE as u32 } else { 0 };
    let datagram = packet.length.max(packet.bytes.len() as u32);
    let datagram = datagram.min(most).max(least);
    let (from, to) = (
        address(packet.source, packet.plane),
        address(packet.destination, packet.plane),
    );
    let udp_length = UdpHeader::LEN as u16 + datagram as u16;
    Ethernet2Header {
        source: mac(packet.source, packet.plane),
        destination: mac(packet.destination, packet.plane),
        ether_type: EtherType::IPV4,
    }
    .write(out)?;
    let mut ip = Ipv4Header::new(
        udp_length,
        64,
        IpNumber::UDP,
        octets(from.ip()),
        octets(to.ip()),
    )
    .map_err(io::Error::other)?;
    ip.ecn = match packet.ecn {
        Ecn::NotEct => IpEcn::NotEct,
        Ecn::Ect0 => IpEcn::Ect0,
        Ecn::Ect1 => IpEcn::Ect1,
        Ecn::Ce => IpEcn::CongestionExperienced,
    };
    ip.dscp = match packet.class {
        Class::Data => IpDscp::AF31,
        Class::Control => IpDscp::CS6,
    };
    ip.write(out)?;
    UdpHeader {
        source_port: packet.source_port,
        destination_port: if model { segment::PORT } else { to.port() },
        length: udp_length,
        checksum: 0,
    }
    .write(out)?;
    if model {
        out.extend_from_slice(&segment::encode(packet));
    } else {
        out.extend_from_slice(&packet.bytes[..packet.bytes.len().min(datagram as usize)]);
    }
    Ok(HEADERS as u32 + datagram)
}

fn mac(host: HostId, plane: u8) -> [u8; 6] {
    let [_, _, high, low] = host.to_be_bytes();
    [0x02, 0, 0, plane, high, low]
}

fn octets(ip: IpAddr) -> [u8; 4] {
    match ip {
        IpAddr::V4(ip) => ip.octets(),
        IpAddr::V6(_) => [0; 4],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};

    #[test]
    fn a_whole_packet_reads_back() {
        let packet = Packet {
            bytes: vec![7; 100],
            length: 100,
            source: 3,
            destination: 258,
            plane: 1,
            source_port: 50_000,
            class: Class::Control,
            ecn: Ecn::Ce,
            ..Packet::default()
        };
        let mut frame = Vec::new();
        assert_eq!(write(&packet, &mut frame).ok(), Some(142));
        let sliced = SlicedPacket::from_ethernet(&frame).unwrap();
        let Some(NetSlice::Ipv4(ip)) = &sliced.net else {
            panic!("{sliced:?}")
        };
        assert_eq!(ip.header().source(), [10, 1, 0, 3]);
        assert_eq!(ip.header().destination(), [10, 1, 1, 2]);
        assert_eq!(
            (ip.header().ecn().value(), ip.header().dcp().value()),
            (3, 48)
        );
        let Some(TransportSlice::Udp(udp)) = &sliced.transport else {
            panic!("{sliced:?}")
        };
        assert_eq!((udp.source_port(), udp.destination_port()), (50_000, 4_791));
        assert_eq!(udp.payload(), [7; 100]);
    }

    #[test]
    fn a_trimmed_packet_is_short() {
        let packet = Packet {
            bytes: vec![7; 4_148],
            length: 4_148,
            trimmed: true,
            ..Packet::default()
        };
        let mut frame = Vec::new();
        assert_eq!(write(&packet, &mut frame).ok(), Some(42 + 64));
        assert_eq!(frame.len(), 42 + 64);
    }

    #[test]
    fn a_virtual_payload_counts_and_is_not_there() {
        let packet = Packet {
            bytes: vec![7; 48],
            length: 4_148,
            ..Packet::default()
        };
        let mut frame = Vec::new();
        assert_eq!(write(&packet, &mut frame).ok(), Some(4_190));
        assert_eq!(frame.len(), HEADERS + 48);
        // The lengths in the headers are those of the whole packet.
        assert_eq!(u16::from_be_bytes([frame[16], frame[17]]), 4_176);
        assert_eq!(u16::from_be_bytes([frame[38], frame[39]]), 4_156);
    }
}
