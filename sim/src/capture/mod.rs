//! Packet captures of the simulation, in the format pcapng (draft-ietf-opsawg-pcapng), for Wireshark and `metaroce decode`.
//!
//! Every port that is watched is an interface with a name and a description. A packet is in the file once for each of them that it came to: when it
//! has arrived at the other end of the port's wire, or, with the reason as a comment, when it was dropped. Times are simulated, in nanoseconds
//! from 1970. Where payloads are virtual the file has the headers, and the length of the whole.
//!
//! ```
//! use metaroce_sim::capture::Capture;
//! use metaroce_sim::packet::Packet;
//! use metaroce_sim::time::Time;
//! use metaroce_sim::topology::{PairConfig, pair};
//!
//! let topology = pair(&PairConfig::default(), 1);
//! let mut capture = Capture::new(Vec::new(), "an example").unwrap();
//! capture.watch_host(&topology.network, 0).unwrap();
//! let mut packet = Packet::default();
//! packet.bytes.extend([0x16; 20]);
//! packet.destination = 1;
//! capture.record(Time::from_us(3), topology.network.host_port(0, 0), &packet, None);
//! let file = capture.finish().unwrap();
//! assert_eq!(file[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
//! ```

pub mod frame;
pub mod segment;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::faults::Drop;
use crate::network::Network;
use crate::observer::{Observer, PacketEvent, reason_name};
use crate::packet::{Ecn, HostId, Packet};
use crate::port::{Node, Port, PortId};
use crate::time::Time;

/// The file could not be written.
#[derive(Debug)]
pub struct CaptureError(PcapError);

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write the capture: {}", self.0)
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

impl From<io::Error> for CaptureError {
    fn from(error: io::Error) -> Self {
        Self(PcapError::IoError(error))
    }
}

/// Writes a capture.
pub struct Capture<W: io::Write> {
    writer: PcapNgWriter<W>,
    /// The interface of each port that is watched.
    interfaces: Vec<Option<u32>>,
    count: u32,
    packets: u64,
    frame: Vec<u8>,
    error: Option<CaptureError>,
}

impl<W: io::Write> Capture<W> {
    /// A capture without interfaces. `about` is a comment of the file: which scenario, which seed.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(writer: W, about: &str) -> Result<Self, CaptureError> {
        let section = SectionHeaderBlock {
            // The same bytes on every machine.
            endianness: Endianness::Little,
            options: vec![
                SectionHeaderOption::UserApplication(Cow::Borrowed("metaroce-sim")),
                SectionHeaderOption::Comment(Cow::Owned(about.to_owned())),
            ],
            ..SectionHeaderBlock::default()
        };
        let writer = PcapNgWriter::with_section_header(writer, section).map_err(CaptureError)?;
        Ok(Self {
            writer,
            interfaces: Vec::new(),
            count: 0,
            packets: 0,
            frame: Vec::new(),
            error: None,
        })
    }

    /// Watches a port under a name.
    ///
    /// # Errors
    /// If the interface cannot be written.
    pub fn watch(
        &mut self,
        port: PortId,
        name: &str,
        description: &str,
        mbps: u64,
    ) -> Result<(), CaptureError> {
        let block = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfDescription(Cow::Borrowed(description)),
                InterfaceDescriptionOption::IfSpeed(mbps.saturating_mul(1_000_000)),
                // Units of 10^-9 s.
                InterfaceDescriptionOption::IfTsResol(9),
            ],
        };
        self.writer
            .write_pcapng_block(block)
            .map_err(CaptureError)?;
        let index = port as usize;
        if self.interfaces.len() <= index {
            self.interfaces.resize(index + 1, None);
        }
        self.interfaces[index] = Some(self.count);
        self.count += 1;
        Ok(())
    }

    /// Watches these ports of a network, named after their ends: `host0-switch1.p0` is that of host 0 towards switch 1 on plane 0. Ports that are not
    /// there are left out.
    ///
    /// # Errors
    /// If an interface cannot be written.
    pub fn watch_ports(
        &mut self,
        network: &Network,
        ports: impl IntoIterator<Item = PortId>,
    ) -> Result<(), CaptureError> {
        for id in ports {
            if let Some(port) = network.ports.get(id as usize) {
                self.watch(id, &name(port), &describe(id, port), port.config.mbps)?;
            }
        }
        Ok(())
    }

    /// Watches all that a host sends and gets: the ports that it owns and those whose wires lead to it.
    ///
    /// # Errors
    /// If an interface cannot be written.
    pub fn watch_host(&mut self, network: &Network, host: HostId) -> Result<(), CaptureError> {
        let touches = |port: &Port| port.owner == Node::Host(host) || port.to == Node::Host(host);
        let ports: Vec<PortId> = (0..)
            .zip(&network.ports)
            .filter(|(_, port)| touches(port))
            .map(|(id, _)| id)
            .collect();
        self.watch_ports(network, ports)
    }

    /// A packet has arrived over the wire of a port, or was dropped there. Ports that are not watched are ignored, and everything after an error.
    pub fn record(&mut self, now: Time, port: PortId, packet: &Packet, dropped: Option<Drop>) {
        let Some(&Some(interface)) = self.interfaces.get(port as usize) else {
            return;
        };
        if self.error.is_none() {
            self.error = self.write(now, interface, packet, dropped).err();
        }
    }

    fn write(
        &mut self,
        now: Time,
        interface: u32,
        packet: &Packet,
        dropped: Option<Drop>,
    ) -> Result<(), CaptureError> {
        self.frame.clear();
        let original_len = frame::write(packet, &mut self.frame)?;
        let options = comments(packet, dropped)
            .map(|text| EnhancedPacketOption::Comment(Cow::Owned(text)))
            .collect();
        let block = EnhancedPacketBlock {
            interface_id: interface,
            timestamp: Duration::from_nanos(now.ns()),
            original_len,
            data: Cow::Borrowed(&self.frame),
            options,
        };
        self.writer
            .write_pcapng_block(block)
            .map_err(CaptureError)?;
        self.packets += 1;
        Ok(())
    }

    /// How many packets were written.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// What was written so far goes where it is to go.
    #[must_use]
    pub fn get_ref(&self) -> &W {
        self.writer.get_ref()
    }

    /// Ends the capture.
    ///
    /// # Errors
    /// The first error that there was.
    pub fn finish(self) -> Result<W, CaptureError> {
        let mut writer = match self.error {
            Some(error) => return Err(error),
            None => self.writer.into_inner(),
        };
        writer.flush()?;
        Ok(writer)
    }
}

impl<W: io::Write + Send> Observer for Capture<W> {
    fn packet(&mut self, now: Time, port: PortId, packet: &Packet, event: PacketEvent) {
        match event {
            PacketEvent::Delivered => self.record(now, port, packet, None),
            PacketEvent::Dropped(reason) => self.record(now, port, packet, Some(reason)),
            PacketEvent::Trimmed
            | PacketEvent::Marked
            | PacketEvent::Queued
            | PacketEvent::Sent => {}
        }
    }
}

/// What is to be known of a packet and is not in its bytes, or not easily seen.
fn comments(packet: &Packet, dropped: Option<Drop>) -> impl Iterator<Item = String> {
    let marked = (packet.ecn == Ecn::Ce).then(|| "marked: congestion experienced".to_owned());
    let trimmed = packet
        .trimmed
        .then(|| "trimmed: payload cut off".to_owned());
    let damaged = packet.corrupted.then(|| "damaged".to_owned());
    let dropped = dropped.map(|reason| format!("dropped: {}", reason_name(reason)));
    [dropped, marked, trimmed, damaged].into_iter().flatten()
}

fn node(node: Node, gap: &str) -> String {
    match node {
        Node::Host(host) => format!("host{gap}{host}"),
        Node::Switch(switch) => format!("switch{gap}{switch}"),
    }
}

/// The name of a port, for captures and traces.
#[must_use]
pub fn name(port: &Port) -> String {
    let (from, to) = (node(port.owner, ""), node(port.to, ""));
    format!("{from}-{to}.p{}", port.plane)
}

fn describe(id: PortId, port: &Port) -> String {
    let (from, to) = (node(port.owner, " "), node(port.to, " "));
    let mbps = port.config.mbps;
    format!(
        "port {id}: {from} to {to}, plane {}, {mbps} Mbit/s",
        port.plane
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{PairConfig, pair};
    use pcap_file::pcapng::{Block, PcapNgReader};

    fn packet(bytes: usize, length: u32) -> Packet {
        Packet {
            bytes: vec![0x14; bytes],
            length,
            destination: 1,
            ..Packet::default()
        }
    }

    #[test]
    fn what_was_written_reads_back() {
        let network = pair(&PairConfig::default(), 1).network;
        let mut capture = Capture::new(Vec::new(), "seed 1").unwrap();
        capture.watch_host(&network, 1).unwrap();
        let at = Time::from_ps(1_234_567_999);
        capture.packet(at, 0, &packet(48, 4_148), PacketEvent::Queued);
        capture.packet(at, 0, &packet(48, 4_148), PacketEvent::Delivered);
        let lost = PacketEvent::Dropped(Drop::QueueFull);
        let marked = Packet {
            ecn: Ecn::Ce,
            ..packet(0, 4_200)
        };
        capture.packet(at + Time::from_ns(1), 1, &marked, lost);
        capture.packet(at, 7, &packet(48, 48), PacketEvent::Delivered);
        assert_eq!(capture.packets(), 2);
        let file = capture.finish().unwrap();

        let mut reader = PcapNgReader::new(&file[..]).unwrap();
        let mut names = Vec::new();
        let mut packets = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.unwrap() {
                Block::InterfaceDescription(interface) => {
                    names.extend(interface.options.iter().filter_map(|option| match option {
                        InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                        _ => None,
                    }));
                }
                Block::EnhancedPacket(packet) => packets.push(packet.into_owned()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(names, ["host0-host1.p0", "host1-host0.p0"]);
        let [header, dropped] = &packets[..] else {
            panic!("{packets:?}")
        };
        assert_eq!(
            (header.interface_id, header.timestamp.as_nanos()),
            (0, 1_234_567)
        );
        assert_eq!(
            (header.data.len(), header.original_len),
            (42 + 48, 42 + 4_148)
        );
        assert!(header.options.is_empty());
        assert_eq!(
            (dropped.interface_id, dropped.timestamp.as_nanos()),
            (1, 1_234_568)
        );
        assert_eq!(
            (dropped.data.len(), dropped.original_len),
            (42 + 72, 42 + 4_200)
        );
        let comments = ["dropped: queue_full", "marked: congestion experienced"]
            .map(|text| EnhancedPacketOption::Comment(text.into()));
        assert_eq!(dropped.options, comments);
    }

    #[test]
    fn an_error_is_kept_for_the_end() {
        struct Full(usize);
        impl io::Write for Full {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 = self
                    .0
                    .checked_sub(bytes.len())
                    .ok_or(io::ErrorKind::StorageFull)?;
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut capture = Capture::new(Full(400), "").unwrap();
        capture.watch(0, "a", "b", 1).unwrap();
        for _ in 0..9 {
            capture.record(Time::ZERO, 0, &packet(48, 48), None);
        }
        assert!(capture.packets() < 9);
        assert!(capture.finish().is_err());
    }
}
