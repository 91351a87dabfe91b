//! Counters, and what was agreed on.

use core::ffi::{CStr, c_char};

use metaroce_core::DropReason;
use metaroce_core::handshake::Agreed;
use metaroce_core::path::send::PathState;
use metaroce_core::stats::{ConnectionStatistics, EndpointStatistics, PathStatistics};

/// Reasons for which datagrams are dropped.
pub const MR_DROP_REASONS: usize = 32;
const _: () = assert!(MR_DROP_REASONS == DropReason::COUNT);

/// Counters of an endpoint.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mr_endpoint_statistics {
    /// Datagrams received, valid or not.
    pub datagrams_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Datagrams dropped, by reason: see `mr_drop_reason_name`.
    pub drops: [u64; MR_DROP_REASONS],
    /// Connections made, by either side.
    pub connections_opened: u64,
    /// Connections that ended.
    pub connections_closed: u64,
}

impl mr_endpoint_statistics {
    pub(crate) fn of(from: &EndpointStatistics) -> Self {
        Self {
            datagrams_received: from.datagrams_received,
            bytes_received: from.bytes_received,
            datagrams_sent: from.datagrams_sent,
            bytes_sent: from.bytes_sent,
            drops: from.drops,
            connections_opened: from.connections_opened,
            connections_closed: from.connections_closed,
        }
    }
}

/// Counters and state of a connection.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mr_connection_statistics {
    /// Data packets sent, retransmissions included.
    pub packets_sent: u64,
    /// Payload bytes in them.
    pub bytes_sent: u64,
    /// Data packets sent again.
    pub retransmissions: u64,
    /// Of these, those that had arrived after all, as far as the peer has told: its duplicates.
    pub spurious_retransmissions: u64,
    /// Data packets declared lost.
    pub losses: u64,
    /// Probes sent.
    pub probes_sent: u64,
    /// Fences begun.
    pub fences: u64,
    /// CE marks the peer reported.
    pub ce_marks: u64,
    /// Data packets accepted.
    pub packets_received: u64,
    /// Payload bytes placed.
    pub bytes_received: u64,
    /// Data packets dropped because they had been accepted before.
    pub duplicates_received: u64,
    /// Acknowledgment datagrams sent.
    pub acks_sent: u64,
    /// Acknowledgment datagrams received.
    pub acks_received: u64,
    /// Messages refused for want of a buffer, by this side.
    pub rnr_sent: u64,
    /// Bytes posted and not sent.
    pub queued_bytes: u64,
    /// The peer's latest rate hint, Mbit/s; 0: none, or too old.
    pub hint_mbps: u32,
    /// Congestion window, packets with 16 fraction bits.
    pub window: u32,
    /// Packets that count in the window.
    pub outstanding: u32,
    /// Least round-trip time, nanoseconds; 0: not measured.
    pub min_rtt_ns: u32,
    /// Messages posted and not complete.
    pub open_messages: u32,
}

impl mr_connection_statistics {
    pub(crate) fn of(from: &ConnectionStatistics) -> Self {
        Self {
            packets_sent: from.packets_sent,
            bytes_sent: from.bytes_sent,
            retransmissions: from.retransmissions,
            spurious_retransmissions: from.spurious_retransmissions,
            losses: from.losses,
            probes_sent: from.probes_sent,
            fences: from.fences,
            ce_marks: from.ce_marks,
            packets_received: from.packets_received,
            bytes_received: from.bytes_received,
            duplicates_received: from.duplicates_received,
            acks_sent: from.acks_sent,
            acks_received: from.acks_received,
            rnr_sent: from.rnr_sent,
            queued_bytes: from.queued_bytes,
            hint_mbps: from.hint_mbps,
            window: from.window,
            outstanding: from.outstanding,
            min_rtt_ns: from.min_rtt_ns,
            open_messages: from.open_messages,
        }
    }
}

/// What the sending end of a path is doing (`state` of `mr_path_statistics`).
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum mr_path_state {
    /// Not part of the connection.
    MR_PATH_UNUSED = 0,
    /// Carries packets.
    MR_PATH_ACTIVE = 1,
    /// Carries nothing new; when all is acknowledged its entropy changes and it is active again.
    MR_PATH_DRAINING = 2,
    /// Two probes were not answered.
    MR_PATH_SUSPECT = 3,
    /// The receiver is asked to end the generation.
    MR_PATH_FENCING = 4,
    /// A new generation over new entropy; only probes go until one is answered.
    MR_PATH_REOPENING = 5,
}

fn path_state(state: PathState) -> u8 {
    use mr_path_state::*;
    let state = match state {
        PathState::Unused => MR_PATH_UNUSED,
        PathState::Active => MR_PATH_ACTIVE,
        PathState::Draining => MR_PATH_DRAINING,
        PathState::Suspect => MR_PATH_SUSPECT,
        PathState::Fencing => MR_PATH_FENCING,
        PathState::Reopening => MR_PATH_REOPENING,
    };
    state as u8
}

/// Counters and state of one path, both directions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mr_path_statistics {
    /// Payload bytes sent.
    pub bytes_sent: u64,
    /// Data packets sent first, modulo 2^32 like the counts below.
    pub packets_sent: u32,
    /// Data packets sent again.
    pub retransmissions: u32,
    /// Data packets declared lost.
    pub losses: u32,
    /// Retransmissions that had arrived after all.
    pub spurious_retransmissions: u32,
    /// CE marks reported.
    pub ce_marks: u32,
    /// Share of the window, packets with 16 fraction bits.
    pub weight: u32,
    /// Smoothed round-trip time, nanoseconds; 0: not measured.
    pub srtt_ns: u32,
    /// Data packets received over the peer's path of this number, in its generation.
    pub packets_received: u32,
    /// Duplicates among them.
    pub duplicates_received: u32,
    /// Its UDP source port index.
    pub entropy: u16,
    /// Packets in flight.
    pub inflight: u16,
    /// CE marks among them, modulo 2^16.
    pub ce_received: u16,
    /// One of `enum mr_path_state`.
    pub state: u8,
    /// Its plane.
    pub plane: u8,
    /// Its incarnation.
    pub generation: u8,
}

impl mr_path_statistics {
    pub(crate) fn of(from: &PathStatistics) -> Self {
        Self {
            bytes_sent: from.bytes_sent,
            packets_sent: from.packets_sent,
            retransmissions: from.retransmissions,
            losses: from.losses,
            spurious_retransmissions: from.spurious_retransmissions,
            ce_marks: from.ce_marks,
            weight: from.weight,
            srtt_ns: from.srtt_ns,
            packets_received: from.packets_received,
            duplicates_received: from.duplicates_received,
            entropy: from.entropy,
            inflight: from.inflight,
            ce_received: from.ce_received,
            state: path_state(from.state),
            plane: from.plane,
            generation: from.generation,
        }
    }
}

/// What was agreed on with the peer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mr_agreed {
    /// PSNs a path may span.
    pub window: u16,
    /// Streams.
    pub streams: u16,
    /// Messages this side may have begun and not completed.
    pub open_messages: u16,
    /// READs and atomics this side may have open.
    pub open_responses: u16,
    /// Payload bytes of a full packet.
    pub payload_bytes: u16,
    /// Paths this side may send on.
    pub paths: u8,
    /// Planes that both have.
    pub planes: u8,
    /// 1 if the CRC32C is left out.
    pub omit_checksum: u8,
}

impl mr_agreed {
    pub(crate) fn of(from: &Agreed) -> Self {
        Self {
            window: from.window,
            streams: from.streams,
            open_messages: from.open_messages,
            open_responses: from.open_responses,
            payload_bytes: from.payload_bytes,
            paths: from.paths,
            planes: from.planes,
            omit_checksum: from.omit_checksum.into(),
        }
    }
}

/// The name of a counter of dropped datagrams: English, static; "unknown" from `MR_DROP_REASONS` on.
#[unsafe(no_mangle)]
pub extern "C" fn mr_drop_reason_name(index: usize) -> *const c_char {
    const NAMES: [&CStr; MR_DROP_REASONS] = [
        c"unknown connection",
        c"unexpected kind",
        c"unknown path",
        c"wrong generation",
        c"frozen generation",
        c"duplicate",
        c"beyond window",
        c"bad acknowledgment",
        c"unknown stream",
        c"stale message",
        c"inconsistent message",
        c"no room",
        c"refused",
        c"address mismatch",
        c"bad cookie",
        c"not accepted",
        c"truncated",
        c"length",
        c"checksum",
        c"version",
        c"kind",
        c"flags",
        c"reserved",
        c"opcode",
        c"message_length",
        c"bounds",
        c"payload",
        c"atomic_operation",
        c"error_code",
        c"sack",
        c"out_of_range",
        c"reject_reason",
    ];
    NAMES.get(index).copied().unwrap_or(c"unknown").as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_called_as_the_core_calls_them() {
        for index in 0..=MR_DROP_REASONS {
            // SAFETY: static texts.
            let name = unsafe { CStr::from_ptr(mr_drop_reason_name(index)) };
            assert_eq!(name.to_str(), Ok(DropReason::name(index)));
        }
    }
}
