//! Packets in a trace: the fields of their headers, by the core's own decoder.

use metaroce_core::wire::{self, AckBlock, Data, DecodeError, Flags, Header, Kind, Trailer};
use serde::{Deserialize, Serialize};

use crate::observer::snake_case;
use crate::packet::{Ecn, HostId, Packet, Segment};

/// A packet. Fields that its kind does not have are left out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PacketRecord {
    /// `data`, `ack`, `init` and so on; `segment` for a transport that is a model; `malformed`.
    pub kind: String,
    /// From.
    pub source: HostId,
    /// To.
    pub destination: HostId,
    /// Its plane.
    pub plane: u8,
    /// UDP source port.
    pub source_port: u16,
    /// Bytes that it takes on a line.
    pub wire_bytes: u32,
    /// It is marked: congestion experienced.
    #[serde(skip_serializing_if = "is_false")]
    pub ce: bool,
    /// It was damaged on the way.
    #[serde(skip_serializing_if = "is_false")]
    pub damaged: bool,
    /// Its payload was cut off.
    #[serde(skip_serializing_if = "is_false")]
    pub trimmed: bool,
    /// Connection id of its receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
    /// Path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<u8>,
    /// Generation of the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<u8>,
    /// PSN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub psn: Option<u32>,
    /// TSN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tsn: Option<u32>,
    /// DATA: it was sent before.
    #[serde(skip_serializing_if = "is_false")]
    pub retransmission: bool,
    /// DATA: its opcode: `write`, `read_response` and so on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opcode: Option<String>,
    /// DATA: stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<u16>,
    /// DATA: number of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msn: Option<u32>,
    /// DATA: length of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u32>,
    /// DATA: where in the message its payload begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u32>,
    /// DATA: length of its payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<u32>,
    /// HINT and ACCEPT: the rate granted, Mbit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint_mbps: Option<u32>,
    /// ACK and FENCE_ACK: what they tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockRecord>,
    /// Malformed: why, by the name of the endpoint's counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The header, for a transport that is a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<Segment>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A block of an acknowledgment.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BlockRecord {
    /// Path.
    pub path: u8,
    /// Generation.
    pub generation: u8,
    /// The next PSN expected.
    pub cumulative: u32,
    /// The newest TSN.
    pub newest_tsn: u32,
    /// PSNs received beyond the cumulative one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sacked: Vec<u32>,
    /// The acknowledgment's delay, nanoseconds.
    pub delay_ns: u32,
    /// Marked packets so far, modulo 2^16.
    pub ce_count: u16,
    /// Data packets received so far.
    pub received: u32,
    /// The rate granted, Mbit/s; 0: none.
    pub hint_mbps: u32,
}

impl From<AckBlock> for BlockRecord {
    fn from(block: AckBlock) -> Self {
        let ahead = (0..256).map(|i| block.cumulative.wrapping_add(i));
        Self {
            path: block.path,
            generation: block.generation,
            cumulative: block.cumulative,
            newest_tsn: block.newest_tsn,
            sacked: ahead.filter(|psn| block.acknowledges(*psn)).collect(),
            delay_ns: block.delay_ns(),
            ce_count: block.ce_count,
            received: block.received,
            hint_mbps: block.hint_mbps,
        }
    }
}

impl PacketRecord {
    /// The record of a packet. `scratch` is room for the bytes of virtual payloads.
    #[must_use]
    pub fn new(packet: &Packet, scratch: &mut Vec<u8>) -> Self {
        let mut record = Self {
            source: packet.source,
            destination: packet.destination,
            plane: packet.plane,
            source_port: packet.source_port,
            wire_bytes: packet.wire_bytes,
            ce: packet.ecn == Ecn::Ce,
            damaged: packet.corrupted,
            trimmed: packet.trimmed,
            ..Self::default()
        };
        if packet.bytes.is_empty() {
            record.kind = "segment".into();
            record.segment = Some(packet.segment);
        } else if let Err(error) = record.read(packet, scratch) {
            record.kind = "malformed".into();
            record.error = Some(DecodeError::name(error.index()).into());
        }
        record
    }

    fn read(&mut self, packet: &Packet, scratch: &mut Vec<u8>) -> Result<(), DecodeError> {
        let header = Header::decode(&packet.bytes)?;
        self.connection = Some(header.connection);
        let whole = packet.bytes.len() >= packet.length as usize;
        let body = if whole {
            // Whether a connection leaves its trailers out is not known here: what has a right one has one.
            match wire::check(&packet.bytes, Trailer::Crc32c) {
                Ok(body) => body,
                Err(error) if header.kind.is_setup() || packet.corrupted => return Err(error),
                Err(_) => &packet.bytes,
            }
        } else {
            // A virtual payload counts as zeros. With it the trailer is virtual, too.
            scratch.clear();
            scratch.extend_from_slice(&packet.bytes);
            scratch.resize(packet.length as usize, 0);
            &scratch[..scratch.len() - Trailer::Crc32c.size()]
        };
        let read = wire::decode(body)?;
        self.kind = snake_case(&format!("{:?}", header.kind));
        if !header.kind.is_setup() && !matches!(header.kind, Kind::Close | Kind::CloseAck) {
            self.path = Some(header.path);
            self.generation = Some(header.generation);
        }
        match read {
            wire::Packet::Data {
                header,
                data,
                payload,
            } => self.read_data(&header, &data, payload.len()),
            wire::Packet::Probe(probe) => self.tsn = Some(probe.tsn),
            wire::Packet::Ack { blocks, .. } | wire::Packet::FenceAck { blocks, .. } => {
                self.blocks = blocks.map(BlockRecord::from).collect();
            }
            wire::Packet::Hint(hint) => self.hint_mbps = Some(hint.rate_mbps),
            wire::Packet::Accept(accept) => self.hint_mbps = Some(accept.hint_mbps),
            _ => {}
        }
        Ok(())
    }

    fn read_data(&mut self, header: &Header, data: &Data, payload: usize) {
        self.psn = Some(header.psn);
        self.tsn = Some(header.tsn);
        self.retransmission = header.flags.contains(Flags::RETRANSMISSION);
        self.opcode = Some(snake_case(&format!("{:?}", data.opcode)));
        self.stream = Some(data.stream);
        self.msn = Some(data.msn);
        self.length = Some(data.length);
        self.offset = Some(data.offset);
        self.payload = Some(payload as u32);
    }
}
