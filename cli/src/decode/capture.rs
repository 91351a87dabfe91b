//! Frames of pcap and pcapng files, down to UDP.

use crate::failure::Failure;
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_parser::{Block, Linktype, PcapBlockOwned, PcapError, create_reader};
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// One captured frame.
pub struct Frame<'a> {
    /// Seconds since 1970, or since the capture's own beginning.
    pub time: f64,
    link: Linktype,
    bytes: &'a [u8],
}

/// A UDP datagram.
pub struct Datagram<'a> {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    /// The ECN field, 0 to 3.
    pub ecn: u8,
    /// The payload, as far as it was captured.
    pub payload: &'a [u8],
    /// Its length on the wire.
    pub length: usize,
}

impl<'a> Frame<'a> {
    /// The UDP datagram in it, if its headers are there.
    pub fn datagram(&self) -> Option<Datagram<'a>> {
        let sliced = match self.link {
            Linktype::ETHERNET => LaxSlicedPacket::from_ethernet(self.bytes).ok()?,
            // Linux "cooked": sixteen bytes in front, the last two of which are the type.
            Linktype::LINUX_SLL => {
                let (head, rest) = self.bytes.split_first_chunk::<16>()?;
                let kind = EtherType(u16::from_be_bytes([head[14], head[15]]));
                LaxSlicedPacket::from_ether_type(kind, rest)
            }
            Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => {
                LaxSlicedPacket::from_ip(self.bytes).ok()?
            }
            // BSD loopback: four bytes of address family in front.
            Linktype::NULL | Linktype::LOOP => {
                LaxSlicedPacket::from_ip(self.bytes.get(4..)?).ok()?
            }
            _ => return None,
        };
        let (from, to, ecn) = match sliced.net.as_ref()? {
            LaxNetSlice::Ipv4(packet) => {
                let header = packet.header();
                (
                    IpAddr::V4(header.source_addr()),
                    IpAddr::V4(header.destination_addr()),
                    header.ecn().value(),
                )
            }
            LaxNetSlice::Ipv6(packet) => {
                let header = packet.header();
                (
                    IpAddr::V6(header.source_addr()),
                    IpAddr::V6(header.destination_addr()),
                    header.traffic_class() & 3,
                )
            }
            LaxNetSlice::Arp(_) => return None,
        };
        let Some(TransportSlice::Udp(udp)) = sliced.transport else {
            return None;
        };
        Some(Datagram {
            source: SocketAddr::new(from, udp.source_port()),
            destination: SocketAddr::new(to, udp.destination_port()),
            ecn,
            payload: udp.payload(),
            // Its header counts; 0 stands for a jumbogram.
            length: usize::from(udp.length())
                .saturating_sub(8)
                .max(udp.payload().len()),
        })
    }
}

/// Gives every frame of a file to `each`.
pub fn read(path: &Path, mut each: impl FnMut(Frame<'_>)) -> Result<(), Failure> {
    let shown = path.display();
    let file = File::open(path)
        .map_err(|error| Failure::System(format!("cannot open {shown}: {error}")))?;
    let mut reader = create_reader(1 << 20, file).map_err(|error| {
        Failure::System(format!(
            "{shown} is neither pcap nor pcapng ({})",
            reason(&error)
        ))
    })?;
    let mut interfaces = Vec::new();
    let mut legacy = Linktype::ETHERNET;
    let mut nanoseconds = false;
    loop {
        let exhausted = reader.reader_exhausted();
        match reader.next() {
            Ok((length, block)) => {
                match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        legacy = header.network;
                        nanoseconds = header.is_nanosecond_precision();
                    }
                    PcapBlockOwned::Legacy(block) => {
                        let fraction =
                            f64::from(block.ts_usec) / if nanoseconds { 1e9 } else { 1e6 };
                        each(Frame {
                            time: f64::from(block.ts_sec) + fraction,
                            link: legacy,
                            bytes: block.data,
                        });
                    }
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
                    PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                        let unit = interface.ts_resolution().unwrap_or(1_000_000).max(1);
                        interfaces.push((interface.linktype, interface.ts_offset(), unit));
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        if let Some((link, offset, unit)) = interfaces.get(packet.if_id as usize) {
                            let time = packet.decode_ts_f64(offset.cast_unsigned(), *unit);
                            let bytes = packet
                                .data
                                .get(..packet.caplen as usize)
                                .unwrap_or(packet.data);
                            each(Frame {
                                time,
                                link: *link,
                                bytes,
                            });
                        }
                    }
                    PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                        if let Some((link, ..)) = interfaces.first() {
                            let bytes = packet
                                .data
                                .get(..packet.origlen as usize)
                                .unwrap_or(packet.data);
                            each(Frame {
                                time: 0.0,
                                link: *link,
                                bytes,
                            });
                        }
                    }
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume(length);
            }
            Err(PcapError::Eof) => return Ok(()),
            Err(PcapError::Incomplete(_)) if !exhausted => {
                reader.refill().map_err(|error| {
                    Failure::System(format!("cannot read {shown}: {}", reason(&error)))
                })?;
            }
            Err(PcapError::Incomplete(_) | PcapError::UnexpectedEof) => {
                return Err(Failure::System(format!(
                    "{shown} ends in the middle of a block"
                )));
            }
            Err(error) => {
                return Err(Failure::System(format!(
                    "{shown} is damaged: {}",
                    reason(&error)
                )));
            }
        }
    }
}

fn reason<I: std::fmt::Debug>(error: &PcapError<I>) -> String {
    match error {
        PcapError::Eof => "it is empty".to_owned(),
        PcapError::UnexpectedEof => "it ends in the middle of a block".to_owned(),
        PcapError::HeaderNotRecognized => "unknown magic number".to_owned(),
        other => format!("{other:?}").chars().take(80).collect(),
    }
}
