//! Ethernet, IPv4 and UDP around a datagram, to bytes and back.
//!
//! Ours, not smoltcp's, as nothing here may panic: it is on the way of every packet. UDP's checksum is left out, which IPv4
//! allows: the datagram has a CRC32C of its own.

use core::net::{Ipv4Addr, SocketAddrV4};

use metaroce_core::Ecn;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// Bytes in front of a datagram: Ethernet 14, IPv4 20, UDP 8.
pub const OVERHEAD: usize = 42;

const ETHERNET: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const ARP: [u8; 2] = [0x08, 0x06];
const UDP: u8 = 17;
/// Routers a packet may pass.
const TIME_TO_LIVE: u8 = 64;
const DO_NOT_FRAGMENT: [u8; 2] = [0x40, 0x00];

/// A UDP datagram in a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// From where.
    pub source: SocketAddrV4,
    /// To where.
    pub destination: SocketAddrV4,
    /// Congestion notification.
    pub ecn: Ecn,
    /// What UDP carries.
    pub bytes: &'a [u8],
}

/// Where a frame that is sent comes from and goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// Ethernet addresses: of the sender, of the next hop.
    pub macs: (Mac, Mac),
    /// From where; the port is the path's.
    pub source: SocketAddrV4,
    /// To where.
    pub destination: SocketAddrV4,
    /// Congestion notification.
    pub ecn: Ecn,
}

/// The UDP datagram of an Ethernet frame; `None` if it is anything else, or a fragment.
#[must_use]
pub fn udp(frame: &[u8]) -> Option<Datagram<'_>> {
    let packet = ipv4(frame)?;
    let (header, _) = packet.split_first_chunk::<20>()?;
    let [first, tos, l0, l1, _, _, f0, f1, _, protocol, ..] = *header;
    let header_length = usize::from(first & 15) * 4;
    let length = usize::from(u16::from_be_bytes([l0, l1]));
    let is_fragment = u16::from_be_bytes([f0 & 0x3f, f1]) != 0;
    if first >> 4 != 4 || header_length < 20 || is_fragment || protocol != UDP {
        return None;
    }
    let body = packet.get(header_length..length)?;
    let (udp, _) = body.split_first_chunk::<8>()?;
    let [s0, s1, d0, d1, l0, l1, ..] = *udp;
    let length = usize::from(u16::from_be_bytes([l0, l1]));
    Some(Datagram {
        source: SocketAddrV4::new(address(header, 12)?, u16::from_be_bytes([s0, s1])),
        destination: SocketAddrV4::new(address(header, 16)?, u16::from_be_bytes([d0, d1])),
        ecn: Ecn::from_bits(tos),
        bytes: body.get(8..length)?,
    })
}

/// Who sent a frame, if it says both addresses: an IPv4 packet or an ARP message.
#[must_use]
pub fn sender(frame: &[u8]) -> Option<(Ipv4Addr, Mac)> {
    let mac = *frame.get(6..)?.first_chunk::<6>()?;
    if let Some(packet) = ipv4(frame) {
        return Some((address(packet, 12)?, mac));
    }
    if frame.get(12..ETHERNET)? != ARP {
        return None;
    }
    let arp = frame.get(ETHERNET..)?;
    Some((address(arp, 14)?, *arp.get(8..)?.first_chunk::<6>()?))
}

/// Whom a frame is for.
#[must_use]
pub fn destination(frame: &[u8]) -> Option<Mac> {
    frame.first_chunk::<6>().copied()
}

fn ipv4(frame: &[u8]) -> Option<&[u8]> {
    (frame.get(12..ETHERNET)? == IPV4)
        .then(|| frame.get(ETHERNET..))
        .flatten()
}

fn address(bytes: &[u8], at: usize) -> Option<Ipv4Addr> {
    let octets = bytes.get(at..)?.first_chunk::<4>()?;
    Some(Ipv4Addr::from(*octets))
}

/// What goes in front of a datagram of `length` bytes.
#[must_use]
pub fn header(envelope: &Envelope, length: usize) -> [u8; OVERHEAD] {
    let udp_length = (length + 8) as u16;
    let [l0, l1] = (udp_length + 20).to_be_bytes();
    let [u0, u1] = udp_length.to_be_bytes();
    let [s0, s1] = envelope.source.port().to_be_bytes();
    let [d0, d1] = envelope.destination.port().to_be_bytes();
    let [m0, m1, m2, m3, m4, m5] = envelope.macs.1;
    let [n0, n1, n2, n3, n4, n5] = envelope.macs.0;
    let [a0, a1, a2, a3] = envelope.source.ip().octets();
    let [b0, b1, b2, b3] = envelope.destination.ip().octets();
    let [f0, f1] = DO_NOT_FRAGMENT;
    let [e0, e1] = IPV4;
    let tos = envelope.ecn as u8;
    let words = [
        [0x45, tos],
        [l0, l1],
        [f0, f1],
        [TIME_TO_LIVE, UDP],
        [a0, a1],
        [a2, a3],
        [b0, b1],
        [b2, b3],
    ];
    let [c0, c1] = checksum(&words).to_be_bytes();
    [
        m0,
        m1,
        m2,
        m3,
        m4,
        m5,
        n0,
        n1,
        n2,
        n3,
        n4,
        n5,
        e0,
        e1, //
        0x45,
        tos,
        l0,
        l1,
        0,
        0,
        f0,
        f1,
        TIME_TO_LIVE,
        UDP,
        c0,
        c1,
        a0,
        a1,
        a2,
        a3,
        b0,
        b1,
        b2,
        b3, //
        s0,
        s1,
        d0,
        d1,
        u0,
        u1,
        0,
        0,
    ]
}

fn checksum(words: &[[u8; 2]]) -> u16 {
    let sum: u32 = words
        .iter()
        .map(|word| u32::from(u16::from_be_bytes(*word)))
        .fold(0, u32::wrapping_add);
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use smoltcp::wire::{EthernetFrame, Ipv4Packet, UdpPacket};
    use std::vec::Vec;

    const ENVELOPE: Envelope = Envelope {
        macs: ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]),
        source: SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 49_153),
        destination: SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 255), 4_793),
        ecn: Ecn::Ect0,
    };

    fn frame(bytes: &[u8]) -> Vec<u8> {
        let mut frame = header(&ENVELOPE, bytes.len()).to_vec();
        frame.extend_from_slice(bytes);
        frame
    }

    #[test]
    fn smoltcp_reads_what_is_written_here() {
        let frame = frame(b"datagram");
        let ethernet = EthernetFrame::new_checked(&frame[..]).unwrap();
        let packet = Ipv4Packet::new_checked(ethernet.payload()).unwrap();
        assert!(packet.verify_checksum());
        assert_eq!(packet.ecn(), 2);
        assert!(packet.dont_frag());
        let udp = UdpPacket::new_checked(packet.payload()).unwrap();
        assert_eq!((udp.src_port(), udp.dst_port()), (49_153, 4_793));
        assert_eq!(udp.payload(), b"datagram");
    }

    #[test]
    fn what_is_written_is_read_with_padding_and_shortened_is_refused() {
        let mut padded = frame(b"datagram");
        let whole = padded.len();
        padded.extend_from_slice(&[0; 10]);
        let read = udp(&padded).unwrap();
        assert_eq!(read.bytes, b"datagram");
        assert_eq!((read.source, read.ecn), (ENVELOPE.source, Ecn::Ect0));
        assert_eq!(
            sender(&padded),
            Some((*ENVELOPE.source.ip(), ENVELOPE.macs.0))
        );
        for length in 0..whole {
            assert_eq!(udp(&padded[..length]), None, "{length} bytes");
        }
    }

    #[test]
    fn a_fragment_is_refused() {
        let mut fragment = frame(b"datagram");
        fragment[20] = 0x20;
        assert_eq!(udp(&fragment), None);
    }
}
