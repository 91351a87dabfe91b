//! What the dissector has to show of a datagram, by the core's own decoder.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use metaroce_core::wire::{
    self, AckBlock, AtomicRequest, Capabilities, DecodeError, ErrorReport, Flags, Header, Kind,
    Opcode, Packet, Parameters, SendAddress, Trailer,
};

/// Values by field, without `metaroce.`: numbers in decimal, bytes in hexadecimal.
pub type Fields = BTreeMap<&'static str, Vec<String>>;

/// The fields that are compared.
pub const FIELDS: &[&str] = &[
    "version",
    "kind",
    "flags",
    "flags.ack_request",
    "flags.retransmission",
    "flags.solicited",
    "flags.redirect",
    "path",
    "generation",
    "connection",
    "psn",
    "tsn",
    "attempt",
    "number",
    "source_connection",
    "hint_mbps",
    "versions.lowest",
    "versions.highest",
    "versions.chosen",
    "cookie.length",
    "cookie.issued_ms",
    "cookie.tag",
    "parameters.paths",
    "parameters.planes",
    "parameters.window",
    "parameters.streams",
    "parameters.open_messages",
    "parameters.open_responses",
    "parameters.capabilities",
    "parameters.capabilities.no_checksum",
    "parameters.ingress_mbps",
    "parameters.service",
    "plane.address",
    "plane.ipv4",
    "plane.port",
    "plane.max_payload",
    "reject.reason",
    "reject.detail",
    "opcode",
    "demand",
    "demand.bytes",
    "stream",
    "msn",
    "length",
    "offset",
    "address",
    "rsn",
    "key",
    "token",
    "immediate",
    "payload",
    "payload.length",
    "atomic.operation",
    "atomic.operand",
    "atomic.swap",
    "atomic.old",
    "refusal.code",
    "refusal.attempt",
    "refusal.stream",
    "refusal.msn",
    "refusal.token",
    "ack.path",
    "ack.generation",
    "ack.cumulative",
    "ack.newest_tsn",
    "ack.newest_psn",
    "ack.delay",
    "ack.delay_ns",
    "ack.ce_count",
    "ack.received",
    "ack.hint_mbps",
    "ack.sack",
    "ack.sacked",
    "ack.missing",
    "ack.sacked_count",
    "ack.blocks",
    "close.reason",
    "close.mode",
    "crc",
    "crc.status",
];

/// What connections have agreed on, as far as the capture has shown.
#[derive(Default)]
pub struct Agreed {
    offered: BTreeSet<u32>,
    bare: BTreeSet<u32>,
}

impl Agreed {
    /// Reads a datagram. An error is what an endpoint would count it under.
    pub fn read<'a>(&mut self, datagram: &'a [u8]) -> Result<(Packet<'a>, Trailer), DecodeError> {
        let header = Header::decode(datagram)?;
        let trailer = if !header.kind.is_setup() && self.bare.contains(&header.connection) {
            Trailer::None
        } else {
            Trailer::Crc32c
        };
        let packet = wire::decode(wire::check(datagram, trailer)?)?;
        match &packet {
            Packet::Init(init) if offers(&init.parameters) => {
                self.offered.insert(init.source);
            }
            Packet::Accept(accept)
                if offers(&accept.parameters) && self.offered.contains(&accept.connection) =>
            {
                self.bare.extend([accept.connection, accept.source]);
            }
            _ => {}
        }
        Ok((packet, trailer))
    }
}

fn offers(parameters: &Parameters) -> bool {
    parameters.capabilities.contains(Capabilities::NO_CHECKSUM)
}

struct Show(Fields);

impl Show {
    fn add(&mut self, name: &'static str, value: impl ToString) {
        assert!(FIELDS.contains(&name), "{name} is not compared");
        self.0.entry(name).or_default().push(value.to_string());
    }

    fn add_bytes(&mut self, name: &'static str, bytes: &[u8]) {
        self.add(name, hex(bytes));
    }
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The fields of a datagram that was read.
pub fn fields(datagram: &[u8], packet: &Packet<'_>, trailer: Trailer) -> Fields {
    let mut show = Show(Fields::new());
    let Ok(header) = Header::decode(datagram) else {
        return show.0;
    };
    show.add("version", 1);
    show.add("kind", header.kind as u8);
    show.add("flags", header.flags.0);
    for (name, flag) in [
        ("flags.ack_request", Flags::ACK_REQUEST),
        ("flags.retransmission", Flags::RETRANSMISSION),
        ("flags.solicited", Flags::SOLICITED),
        ("flags.redirect", Flags::REDIRECT),
    ] {
        show.add(name, u8::from(header.flags.contains(flag)));
    }
    show.add("connection", header.connection);
    if !matches!(header.kind, Kind::Close | Kind::CloseAck) && !header.kind.is_setup() {
        show.add("path", header.path);
        show.add("generation", header.generation);
    }
    body(&mut show, packet);
    match (trailer, datagram.last_chunk::<4>()) {
        (Trailer::Crc32c, Some(crc)) => {
            show.add("crc", u32::from_be_bytes(*crc));
            show.add("crc.status", 1);
        }
        _ => show.add("crc.status", 3),
    }
    show.0
}

fn body(show: &mut Show, packet: &Packet<'_>) {
    match packet {
        Packet::Init(init) => {
            show.add("attempt", init.attempt);
            show.add("source_connection", init.source);
            show.add("versions.lowest", init.lowest_version);
            show.add("versions.highest", init.highest_version);
            show.add("cookie.length", if init.cookie.is_some() { 20 } else { 0 });
            if let Some(cookie) = init.cookie {
                show.add("cookie.issued_ms", cookie.issued_ms);
                show.add_bytes("cookie.tag", &cookie.tag);
            }
            parameters(show, &init.parameters);
        }
        Packet::Retry(retry) => {
            show.add("cookie.issued_ms", retry.cookie.issued_ms);
            show.add_bytes("cookie.tag", &retry.cookie.tag);
        }
        Packet::Accept(accept) => {
            show.add("source_connection", accept.source);
            show.add("hint_mbps", accept.hint_mbps);
            show.add("versions.chosen", accept.version);
            parameters(show, &accept.parameters);
        }
        Packet::Reject(reject) => {
            show.add("reject.reason", reject.reason as u16);
            show.add("reject.detail", reject.detail);
        }
        Packet::Data {
            header,
            data,
            payload,
        } => {
            show.add("psn", header.psn);
            show.add("tsn", header.tsn);
            data_fields(show, data, payload);
        }
        Packet::Ack { blocks, .. } | Packet::FenceAck { blocks, .. } => {
            show.add("ack.blocks", blocks.len());
            for one in *blocks {
                block(show, &one);
            }
        }
        Packet::Probe(probe) => {
            show.add("attempt", probe.attempt);
            show.add("tsn", probe.tsn);
        }
        Packet::Fence(fence) => show.add("attempt", fence.attempt),
        Packet::Announce(announce) => {
            show.add("number", announce.number);
            show.add("demand", announce.demand.0);
            show.add("demand.bytes", announce.demand.to_bytes());
        }
        Packet::Hint(hint) => {
            show.add("number", hint.number);
            show.add("hint_mbps", hint.rate_mbps);
        }
        Packet::Close(close) => {
            show.add("source_connection", close.source);
            show.add("close.reason", close.reason);
            show.add("close.mode", close.mode as u8);
        }
        Packet::CloseAck(close) => show.add("source_connection", close.source),
    }
}

fn parameters(show: &mut Show, parameters: &Parameters) {
    show.add("parameters.paths", parameters.paths);
    show.add("parameters.planes", parameters.planes.count());
    show.add("parameters.window", parameters.window);
    show.add("parameters.streams", parameters.streams);
    show.add("parameters.open_messages", parameters.open_messages);
    show.add("parameters.open_responses", parameters.open_responses);
    show.add("parameters.capabilities", parameters.capabilities.0);
    let bare = u8::from(offers(parameters));
    show.add("parameters.capabilities.no_checksum", bare);
    show.add("parameters.ingress_mbps", parameters.ingress_mbps);
    show.add("parameters.service", parameters.service);
    for plane in parameters.planes.as_slice() {
        show.add("plane.address", plane.ip);
        if let IpAddr::V4(ip) = plane.socket().ip() {
            show.add("plane.ipv4", ip);
        }
        show.add("plane.port", plane.port);
        show.add("plane.max_payload", plane.max_payload);
    }
}

fn data_fields(show: &mut Show, data: &wire::Data, payload: &[u8]) {
    use Opcode::{AtomicRequest as Atomic, AtomicResponse, Error, ReadRequest, ReadResponse};
    show.add("opcode", data.opcode as u8);
    show.add("demand", data.demand.0);
    show.add("demand.bytes", data.demand.to_bytes());
    show.add("stream", data.stream);
    show.add("msn", data.msn);
    show.add("length", data.length);
    show.add("offset", data.offset);
    show.add("payload.length", payload.len());
    if !payload.is_empty() {
        show.add_bytes("payload", payload);
    }
    match data.opcode {
        Opcode::Send | Opcode::SendImm => {
            let address = SendAddress::from_bits(data.address);
            show.add("rsn", address.rsn);
            show.add("attempt", address.attempt);
        }
        Opcode::Write | Opcode::WriteImm | ReadRequest | Atomic => {
            show.add("address", data.address);
            show.add("key", data.key);
        }
        ReadResponse | AtomicResponse => show.add("token", data.key),
        Error | Opcode::Nop => {}
    }
    if data.opcode.has_immediate() {
        show.add("immediate", data.immediate);
    }
    if matches!(data.opcode, ReadRequest | Atomic) {
        show.add("token", data.immediate);
    }
    match data.opcode {
        Atomic => {
            let (operation, operand, swap) = match AtomicRequest::decode(payload) {
                Ok(AtomicRequest::FetchAdd { add }) => (0, add, 0),
                Ok(AtomicRequest::CompareSwap { compare, swap }) => (1, compare, swap),
                Err(error) => panic!("{error}"),
            };
            show.add("atomic.operation", operation);
            show.add("atomic.operand", operand);
            show.add("atomic.swap", swap);
        }
        AtomicResponse => {
            let old = payload.try_into().map_or(0, u64::from_be_bytes);
            show.add("atomic.old", old);
        }
        Error => {
            let report = match ErrorReport::decode(payload) {
                Ok(report) => report,
                Err(error) => panic!("{error}"),
            };
            show.add("refusal.code", report.code as u8);
            show.add("refusal.attempt", report.attempt);
            show.add("refusal.stream", report.stream);
            show.add("refusal.msn", report.msn);
            show.add("refusal.token", report.token);
        }
        _ => {}
    }
}

fn block(show: &mut Show, block: &AckBlock) {
    show.add("ack.path", block.path);
    show.add("ack.generation", block.generation);
    show.add("ack.cumulative", block.cumulative);
    show.add("ack.newest_tsn", block.newest_tsn);
    show.add("ack.newest_psn", block.newest_psn);
    show.add("ack.delay", block.delay);
    show.add("ack.delay_ns", block.delay_ns());
    show.add("ack.ce_count", block.ce_count);
    show.add("ack.received", block.received);
    show.add("ack.hint_mbps", block.hint_mbps);
    let last = block.sack.iter().rposition(|word| *word != 0);
    if let Some(last) = last {
        let sent = block.sack[..=last].iter();
        let vector: Vec<u8> = sent.flat_map(|word| word.to_be_bytes()).collect();
        show.add_bytes("ack.sack", &vector);
    }
    let (received, missing): (Vec<u32>, Vec<u32>) = (0..256)
        .map(|ahead| block.cumulative.wrapping_add(ahead))
        .partition(|psn| block.acknowledges(*psn));
    show.add("ack.sacked_count", received.len());
    if let Some(&last) = received.last() {
        let before = |psn: &u32| last.wrapping_sub(*psn) < 256;
        show.add("ack.sacked", ranges(&received));
        let missing: Vec<u32> = missing.into_iter().filter(before).collect();
        show.add("ack.missing", ranges(&missing));
    }
}

fn ranges(psns: &[u32]) -> String {
    let runs = psns.chunk_by(|a, b| a.wrapping_add(1) == *b);
    let texts: Vec<String> = runs
        .map(|run| match run {
            [one] => one.to_string(),
            _ => format!("{}-{}", run[0], run[run.len() - 1]),
        })
        .collect();
    texts.join(", ")
}
