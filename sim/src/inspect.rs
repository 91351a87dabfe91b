//! The little that the network looks at in a MetaRoCE datagram: its kind and path, for faults that hit one
//! path and for counting. It reads a few bytes and checks nothing.

use metaroce_core::wire::{Flags, Kind};

/// Kinds of datagrams, by the low nibble of the first byte.
pub const KINDS: usize = 16;

/// The kind of a datagram as on the wire (16 kinds fit).
#[must_use]
pub fn kind(bytes: &[u8]) -> usize {
    bytes.first().map_or(0, |byte| usize::from(byte & 0x0f))
}

/// On the wire: DATA.
pub const DATA: usize = Kind::Data as usize;
/// On the wire: ACK.
pub const ACK: usize = Kind::Ack as usize;
/// On the wire: PROBE.
pub const PROBE: usize = Kind::Probe as usize;
/// On the wire: FENCE.
pub const FENCE: usize = Kind::Fence as usize;

/// The flag of a retransmission in the second byte.
pub const RETRANSMISSION: u8 = Flags::RETRANSMISSION.0;

/// Whether a datagram is data that was sent before.
#[must_use]
pub fn is_retransmission(bytes: &[u8]) -> bool {
    kind(bytes) == DATA
        && bytes
            .get(1)
            .is_some_and(|flags| flags & RETRANSMISSION != 0)
}

/// What a packet has to do with a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathUse {
    /// Nothing.
    None,
    /// It is data (or a probe) of this path.
    Data(u8),
    /// It acknowledges this path.
    Acknowledgment(u8),
}

/// What a datagram has to do with which path.
#[must_use]
pub fn path_use(bytes: &[u8]) -> PathUse {
    match (kind(bytes), bytes.get(2)) {
        (DATA | PROBE, Some(&path)) => PathUse::Data(path),
        (ACK, Some(&path)) => PathUse::Acknowledgment(path),
        _ => PathUse::None,
    }
}

/// Where the payload of a DATA datagram belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessagePart {
    /// The stream.
    pub stream: u16,
    /// The message on it.
    pub number: u32,
    /// Where in the message, bytes.
    pub offset: u32,
}

/// Where the payload of a DATA datagram belongs; none for other kinds.
#[must_use]
pub fn message_part(bytes: &[u8]) -> Option<MessagePart> {
    let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if kind(bytes) != DATA {
        return None;
    }
    Some(MessagePart {
        stream: word(16)? as u16,
        number: word(20)?,
        offset: word(28)?,
    })
}

/// A line about a datagram, for traces.
#[must_use]
pub fn describe(bytes: &[u8]) -> String {
    let word = |at: usize| {
        bytes
            .get(at..at + 4)
            .and_then(|b| b.try_into().ok())
            .map_or(0, u32::from_be_bytes)
    };
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let name =
        Kind::from_u8(byte(0) & 0x0f).map_or_else(|| String::from("?"), |kind| format!("{kind:?}"));
    let mut text = format!(
        "{name} path {} gen {} psn {} tsn {} to {:08x} flags {:x}",
        byte(2),
        byte(3),
        word(8),
        word(12),
        word(4),
        byte(1)
    );
    if kind(bytes) == DATA {
        let stream = word(16) & 0xffff;
        text += &format!(
            " op {} stream {stream} msn {} length {} offset {}",
            byte(16),
            word(20),
            word(24),
            word(28)
        );
    } else if kind(bytes) == ACK {
        text += &format!(
            " newest {} count {} sack {:08x}{:08x}",
            word(16),
            word(24),
            word(32),
            word(36)
        );
    }
    text
}
