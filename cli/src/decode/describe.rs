//! A packet's fields, by name.

use metaroce_soft::core::wire::{
    AckBlocks, Data, Flags, Header, Opcode, Packet, Parameters, SendAddress,
};
use serde_json::{Value, json};

/// A packet in words and numbers.
pub struct Description {
    /// Its kind.
    pub kind: String,
    /// Its fields, in the order of the wire.
    pub fields: Vec<(&'static str, Value)>,
}

/// Describes a packet of which only the header is known.
pub fn header(header: &Header) -> Description {
    Description {
        kind: spaced(&format!("{:?}", header.kind)),
        fields: vec![("connection", json!(format!("{:08x}", header.connection)))],
    }
}

/// Describes a packet.
pub fn describe(header: &Header, packet: &Packet<'_>) -> Description {
    let kind = match packet {
        Packet::Data { data, .. } => format!("DATA {}", spaced(&format!("{:?}", data.opcode))),
        _ => spaced(&format!("{:?}", header.kind)),
    };
    let mut fields = Vec::new();
    let mut add = |name, value: Value| fields.push((name, value));
    if header.connection != 0 {
        add("connection", json!(format!("{:08x}", header.connection)));
    }
    let flags = flags(header.flags);
    if !flags.is_empty() {
        add("flags", json!(flags));
    }
    match packet {
        Packet::Init(init) => {
            add("attempt", json!(init.attempt));
            add("source", json!(format!("{:08x}", init.source)));
            add(
                "versions",
                json!(format!("{}-{}", init.lowest_version, init.highest_version)),
            );
            add("cookie", json!(init.cookie.is_some()));
            parameters(&init.parameters, &mut add);
        }
        Packet::Retry(retry) => add("issued_ms", json!(retry.cookie.issued_ms)),
        Packet::Accept(accept) => {
            add("source", json!(format!("{:08x}", accept.source)));
            add("version", json!(accept.version));
            add("hint_mbps", json!(accept.hint_mbps));
            parameters(&accept.parameters, &mut add);
        }
        Packet::Reject(reject) => {
            add("reason", json!(format!("{:?}", reject.reason)));
            add("detail", json!(reject.detail));
        }
        Packet::Data {
            header,
            data,
            payload,
        } => {
            numbers(header, &mut add);
            of_data(data, payload.len(), &mut add);
        }
        Packet::Ack { blocks, .. } | Packet::FenceAck { blocks, .. } => of_blocks(blocks, &mut add),
        Packet::Probe(probe) => {
            path(header, &mut add);
            add("attempt", json!(probe.attempt));
            add("tsn", json!(probe.tsn));
        }
        Packet::Fence(fence) => {
            path(header, &mut add);
            add("attempt", json!(fence.attempt));
        }
        Packet::Announce(announce) => {
            path(header, &mut add);
            add("number", json!(announce.number));
            add("demand", json!(format!("{:?}", announce.demand)));
        }
        Packet::Hint(hint) => {
            path(header, &mut add);
            add("number", json!(hint.number));
            add("rate_mbps", json!(hint.rate_mbps));
        }
        Packet::Close(close) => {
            add("source", json!(format!("{:08x}", close.source)));
            add("mode", json!(format!("{:?}", close.mode)));
            add("reason", json!(close.reason));
        }
        Packet::CloseAck(close) => add("source", json!(format!("{:08x}", close.source))),
    }
    Description { kind, fields }
}

type Add<'a> = &'a mut dyn FnMut(&'static str, Value);

fn path(header: &Header, add: Add<'_>) {
    add("path", json!(header.path));
    add("generation", json!(header.generation));
}

fn numbers(header: &Header, add: Add<'_>) {
    path(header, add);
    add("psn", json!(header.psn));
    add("tsn", json!(header.tsn));
}

fn of_data(data: &Data, payload: usize, add: Add<'_>) {
    if data.opcode == Opcode::Nop {
        return;
    }
    add("stream", json!(data.stream));
    add("msn", json!(data.msn));
    add("offset", json!(data.offset));
    add("payload", json!(payload));
    add("length", json!(data.length));
    if data.opcode.is_send() {
        let address = SendAddress::from_bits(data.address);
        add("rsn", json!(address.rsn));
        add("attempt", json!(address.attempt));
    } else {
        add("address", json!(format!("{:x}", data.address)));
        add("key", json!(format!("{:08x}", data.key)));
    }
    if data.opcode.has_immediate() {
        add("immediate", json!(format!("{:08x}", data.immediate)));
    }
}

fn of_blocks(blocks: &AckBlocks<'_>, add: Add<'_>) {
    let shown: Vec<_> = (*blocks)
        .map(|block| {
            json!({
                "path": block.path, "generation": block.generation, "cumulative": block.cumulative,
                "tsn": block.newest_tsn, "psn": block.newest_psn, "delay_ns": block.delay_ns(), "received": block.received,
                "ce": block.ce_count, "hint_mbps": block.hint_mbps,
                "beyond": block.sack.iter().map(|word| word.count_ones()).sum::<u32>(),
            })
        })
        .collect();
    add("blocks", Value::Array(shown));
}

fn parameters(parameters: &Parameters, add: Add<'_>) {
    add("paths", json!(parameters.paths));
    add("window", json!(parameters.window));
    add("streams", json!(parameters.streams));
    add("open_messages", json!(parameters.open_messages));
    add("service", json!(format!("{:08x}", parameters.service)));
    let planes: Vec<_> = parameters
        .planes
        .as_slice()
        .iter()
        .map(|plane| format!("{} ({} B)", plane.socket(), plane.max_payload))
        .collect();
    add("planes", json!(planes));
}

fn flags(flags: Flags) -> String {
    const NAMES: [(Flags, &str); 4] = [
        (Flags::ACK_REQUEST, "ACK_REQUEST"),
        (Flags::RETRANSMISSION, "RETRANSMISSION"),
        (Flags::SOLICITED, "SOLICITED"),
        (Flags::REDIRECT, "REDIRECT"),
    ];
    let set: Vec<_> = NAMES
        .iter()
        .filter(|(flag, _)| flags.contains(*flag))
        .map(|(_, name)| *name)
        .collect();
    set.join("|")
}

/// `FenceAck` as `FENCE_ACK`.
fn spaced(name: &str) -> String {
    let mut out = String::new();
    for (index, letter) in name.chars().enumerate() {
        if letter.is_ascii_uppercase() && index > 0 {
            out.push('_');
        }
        out.push(letter.to_ascii_uppercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_on_the_wire() {
        assert_eq!(spaced("FenceAck"), "FENCE_ACK");
        assert_eq!(spaced("Data"), "DATA");
        assert_eq!(
            flags(Flags::ACK_REQUEST.with(Flags::REDIRECT, true)),
            "ACK_REQUEST|REDIRECT"
        );
    }
}
