//! What is counted, readable at any time.

use crate::path::send::PathState;
use crate::wire::{DecodeError, ErrorCode};

/// Why a datagram was dropped. It changed nothing but a counter (and, for a refusal, the report that is sent back).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum DropReason {
    /// It is not a valid datagram.
    Malformed(DecodeError),
    /// No connection has this id, or it is one with another peer.
    UnknownConnection,
    /// The connection is not in a state in which this kind is expected.
    UnexpectedKind,
    /// The path does not exist.
    UnknownPath,
    /// Of an earlier generation of the path, or of one that was not announced by a FENCE.
    WrongGeneration,
    /// The generation was ended by a FENCE.
    Frozen,
    /// The PSN was accepted before. (It is acknowledged again.)
    Duplicate,
    /// The PSN is further ahead than a sender may go.
    BeyondWindow,
    /// An acknowledgment of something that was not sent.
    BadAcknowledgment,
    /// The stream does not exist.
    UnknownStream,
    /// The message is complete, or this attempt of it was refused.
    StaleMessage,
    /// The packet contradicts earlier ones of its message.
    InconsistentMessage,
    /// No record is free for a new message, or for the report of a refusal: as if it had been lost.
    NoRoom,
    /// The message was refused with this code.
    Refused(ErrorCode),
    /// An INIT that names another address than it came from, or an answer from an address that was not asked.
    AddressMismatch,
    /// A cookie that was not issued here, or is too old.
    BadCookie,
    /// Not accepting connections, or no room for one.
    NotAccepted,
}

impl DropReason {
    /// Number of counters.
    pub const COUNT: usize = 16 + DecodeError::REASONS;

    /// The counter of this reason.
    #[must_use]
    // spec: MR-ERR-004
    pub const fn index(&self) -> usize {
        match self {
            Self::UnknownConnection => 0,
            Self::UnexpectedKind => 1,
            Self::UnknownPath => 2,
            Self::WrongGeneration => 3,
            Self::Frozen => 4,
            Self::Duplicate => 5,
            Self::BeyondWindow => 6,
            Self::BadAcknowledgment => 7,
            Self::UnknownStream => 8,
            Self::StaleMessage => 9,
            Self::InconsistentMessage => 10,
            Self::NoRoom => 11,
            Self::Refused(_) => 12,
            Self::AddressMismatch => 13,
            Self::BadCookie => 14,
            Self::NotAccepted => 15,
            Self::Malformed(error) => 16 + error.index(),
        }
    }

    /// The name of a counter.
    #[must_use]
    pub fn name(index: usize) -> &'static str {
        const NAMES: [&str; 16] = [
            "unknown connection",
            "unexpected kind",
            "unknown path",
            "wrong generation",
            "frozen generation",
            "duplicate",
            "beyond window",
            "bad acknowledgment",
            "unknown stream",
            "stale message",
            "inconsistent message",
            "no room",
            "refused",
            "address mismatch",
            "bad cookie",
            "not accepted",
        ];
        match NAMES.get(index) {
            Some(name) => name,
            None => DecodeError::name(index.saturating_sub(NAMES.len())),
        }
    }
}

impl From<DecodeError> for DropReason {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}

/// Counters of an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct EndpointStatistics {
    /// Datagrams received, valid or not.
    pub datagrams_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Datagrams dropped, by [`DropReason::index`].
    pub drops: [u64; DropReason::COUNT],
    /// Connections made, by either side.
    pub connections_opened: u64,
    /// Connections that ended.
    pub connections_closed: u64,
}

impl EndpointStatistics {
    pub(crate) const ZERO: Self = Self {
        datagrams_received: 0,
        bytes_received: 0,
        datagrams_sent: 0,
        bytes_sent: 0,
        drops: [0; DropReason::COUNT],
        connections_opened: 0,
        connections_closed: 0,
    };

    /// Counts a drop.
    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        if let Some(counter) = self.drops.get_mut(reason.index()) {
            *counter += 1;
        }
    }

    /// How many datagrams were dropped for a reason (its fields do not matter).
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.drops.get(reason.index()).copied().unwrap_or(0)
    }
}

/// Counters and state of a connection. Retransmissions, losses and marks are the sums of what its paths count modulo 2^32.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ConnectionStatistics {
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
    /// Bytes posted and not sent.
    pub queued_bytes: u64,
}

/// What a connection counts itself; the rest of its statistics is in its paths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub packets_sent: u64,
    pub packets_received: u64,
    pub bytes_received: u64,
    pub acks_sent: u64,
    pub acks_received: u64,
    pub duplicates_received: u32,
    pub probes_sent: u32,
    pub fences: u32,
    pub rnr_sent: u32,
}

impl Counters {
    /// As part of the statistics.
    pub fn statistics(&self) -> ConnectionStatistics {
        ConnectionStatistics {
            packets_sent: self.packets_sent,
            packets_received: self.packets_received,
            bytes_received: self.bytes_received,
            acks_sent: self.acks_sent,
            acks_received: self.acks_received,
            duplicates_received: u64::from(self.duplicates_received),
            probes_sent: u64::from(self.probes_sent),
            fences: u64::from(self.fences),
            rnr_sent: u64::from(self.rnr_sent),
            ..ConnectionStatistics::default()
        }
    }
}

/// Where both directions of one path are in their sequence numbers, to be looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PathWindow {
    /// The PSN that is sent next.
    pub next: u32,
    /// Everything before this PSN of the peer's path has come.
    pub cumulative: u32,
    /// The 256-bit vector of an acknowledgment: bit i (bit 0 of the first word: i = 0) tells that PSN `cumulative + i` has come.
    pub vector: [u64; 4],
}

/// Counters and state of one path, both directions.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct PathStatistics {
    /// What its sending end is doing.
    pub state: PathState,
    /// Its plane.
    pub plane: u8,
    /// Its UDP source port index.
    pub entropy: u16,
    /// Its incarnation.
    pub generation: u8,
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
    /// Payload bytes sent.
    pub bytes_sent: u64,
    /// Packets in flight.
    pub inflight: u16,
    /// Share of the window, packets with 16 fraction bits.
    pub weight: u32,
    /// Smoothed round-trip time, nanoseconds; 0: not measured.
    pub srtt_ns: u32,
    /// Data packets received over the peer's path of this number, in its generation.
    pub packets_received: u32,
    /// Duplicates among them.
    pub duplicates_received: u32,
    /// CE marks among them, modulo 2^16.
    pub ce_received: u16,
}
