//! The sender's record of a path.

use super::inflight::List;
use super::rtt::Rtt;
use crate::time::Instant;

/// What a path is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PathState {
    /// Not part of the connection.
    Unused,
    /// Carries packets.
    Active,
    /// Carries nothing new; when all is acknowledged its entropy changes and it is active again.
    Draining,
    /// Two probes were not answered: its packets do not count in the connection's window, it carries nothing new.
    Suspect,
    /// The receiver is asked to end the generation.
    Fencing,
    /// A new generation over new entropy; only probes go until one is answered.
    Reopening,
}

/// The sending end of a path.
#[derive(Clone, Copy, Debug)]
pub struct SendPath {
    /// When an acknowledgment last told something new, or something was last sent.
    pub moved_at: Instant,
    /// Of a path that is fenced or reopens: when the next FENCE or PROBE is due. Of others: when an acknowledgment last told
    /// something new.
    pub retry_at: Instant,
    /// Bytes of payload sent, retransmissions included.
    pub bytes: u64,
    /// In flight, in TSN order.
    pub inflight: List,
    /// Lost, to be sent again.
    pub lost: List,
    /// Next PSN.
    pub next_psn: u32,
    /// Next TSN.
    pub next_tsn: u32,
    /// The highest cumulative PSN the receiver told.
    pub cumulative: u32,
    /// The newest TSN the receiver echoed; `next_tsn - 1` of an unused generation if none.
    pub echoed_tsn: u32,
    /// TSN of the latest probe, and when it left (nanoseconds, modulo 2^32).
    pub probe_tsn: u32,
    /// See `probe_tsn`.
    pub probe_sent_ns: u32,
    /// Round-trip time.
    pub rtt: Rtt,
    /// Latest sample, nanoseconds.
    pub latest_rtt_ns: u32,
    /// Data packets sent first.
    pub packets: u32,
    /// Data packets sent again.
    pub retransmitted: u32,
    /// Data packets declared lost.
    pub losses: u32,
    /// CE marks reported.
    pub marks: u32,
    /// Duplicates the receiver of earlier generations reported.
    pub old_duplicates: u32,
    /// Duplicates the receiver of this generation reported: spurious retransmissions.
    pub duplicates: u32,
    /// CE count of the newest acknowledgment.
    pub ce_count: u16,
    /// UDP source port index.
    pub entropy: u16,
    /// Acknowledged and bad (lost or marked) packets since the last comparison with the siblings, saturating.
    pub epoch_good: u16,
    /// See `epoch_good`.
    pub epoch_bad: u16,
    /// The plane it belongs to.
    pub plane: u8,
    /// Incarnation.
    pub generation: u8,
    /// What it is doing.
    pub state: PathState,
    /// Probes since an acknowledgment last told something new.
    pub probes: u8,
    /// Exponent of the reopening back-off.
    pub backoff: u8,
    /// Comparisons in a row in which it was much worse than its siblings, at most [`Self::MUST_MOVE`].
    pub worse: u8,
    /// Its latest data packet was sent again.
    pub resent: bool,
}

impl SendPath {
    /// Not part of the connection.
    pub const UNUSED: Self = Self {
        moved_at: Instant::ZERO,
        retry_at: Instant::ZERO,
        bytes: 0,
        inflight: List::EMPTY,
        lost: List::EMPTY,
        next_psn: 0,
        next_tsn: 0,
        cumulative: 0,
        echoed_tsn: u32::MAX,
        probe_tsn: u32::MAX,
        probe_sent_ns: 0,
        rtt: Rtt::UNKNOWN,
        latest_rtt_ns: 0,
        packets: 0,
        retransmitted: 0,
        losses: 0,
        marks: 0,
        old_duplicates: 0,
        duplicates: 0,
        ce_count: 0,
        entropy: 0,
        epoch_good: 0,
        epoch_bad: 0,
        plane: 0,
        generation: 0,
        state: PathState::Unused,
        probes: 0,
        backoff: 0,
        worse: 0,
        resent: false,
    };

    /// So many comparisons in a row are enough: it is drained and moved.
    pub const MUST_MOVE: u8 = 3;

    /// Nothing is outstanding: neither in flight nor waiting to be sent again.
    #[inline]
    #[must_use]
    pub const fn is_drained(&self) -> bool {
        self.inflight.is_empty() && self.lost.is_empty()
    }

    /// Whether it may carry one more new packet under a weight (fixed point): in flight < max(1, weight), and within the window of PSNs.
    #[inline]
    #[must_use]
    // spec: MR-PATH-016
    pub fn has_room(&self, weight: u32, window: u32) -> bool {
        let inflight = u64::from(self.inflight.len()) << 16;
        matches!(self.state, PathState::Active)
            && (inflight == 0 || inflight < u64::from(weight))
            // spec: MR-PATH-003
            && self.next_psn.wrapping_sub(self.cumulative) < window
    }

    /// Takes the next TSN for something sent now.
    #[inline]
    // spec: MR-PATH-002
    pub fn take_tsn(&mut self, now: Instant) -> u32 {
        let tsn = self.next_tsn;
        self.next_tsn = tsn.wrapping_add(1);
        self.moved_at = now;
        tsn
    }

    /// Starts the next generation over another source port. Statistics go on.
    pub fn reopen(&mut self, entropy: u16) {
        *self = Self {
            bytes: self.bytes,
            packets: self.packets,
            retransmitted: self.retransmitted,
            losses: self.losses,
            marks: self.marks,
            old_duplicates: self.old_duplicates.wrapping_add(self.duplicates),
            moved_at: self.moved_at,
            retry_at: self.retry_at,
            backoff: self.backoff,
            plane: self.plane,
            // spec: MR-FENCE-007
            generation: self.generation.wrapping_add(1),
            state: PathState::Reopening,
            entropy,
            ..Self::UNUSED
        };
    }

    /// Moves a drained path to another source port; its sequence goes on.
    pub fn change_entropy(&mut self, entropy: u16) {
        self.entropy = entropy;
        self.rtt = Rtt::UNKNOWN;
        self.worse = 0;
        self.epoch_good = 0;
        self.epoch_bad = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: MR-PATH-003, MR-PATH-016
    #[test]
    fn an_idle_path_may_always_carry_one() {
        let mut path = SendPath {
            state: PathState::Active,
            ..SendPath::UNUSED
        };
        assert!(path.has_room(1, 256));
        path.state = PathState::Suspect;
        assert!(!path.has_room(1 << 20, 256));
        path.state = PathState::Active;
        path.next_psn = 256;
        assert!(
            !path.has_room(1 << 30, 256),
            "the receiver's vector has 256 bits"
        );
        path.cumulative = 1;
        assert!(path.has_room(1 << 30, 256));
    }

    // spec: MR-FENCE-007
    #[test]
    fn a_new_generation_starts_a_new_sequence() {
        let mut path = SendPath {
            generation: 255,
            next_psn: 9,
            next_tsn: 12,
            packets: 9,
            duplicates: 2,
            ..SendPath::UNUSED
        };
        path.reopen(5);
        assert_eq!(
            (path.generation, path.next_psn, path.next_tsn, path.entropy),
            (0, 0, 0, 5)
        );
        assert_eq!(
            (path.packets, path.old_duplicates, path.duplicates),
            (9, 2, 0)
        );
    }
}
