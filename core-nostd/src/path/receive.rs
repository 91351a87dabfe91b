//! The receiver's record of a path: which PSNs have been accepted. There is no reorder buffer; this is all there is.

use crate::time::Instant;
use crate::wire::{AckBlock, PSN_OF_PROBE};

/// PSNs that a path may span between its oldest unacknowledged and its newest.
pub const WINDOW: u32 = 256;

/// What a PSN means to the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// Not seen before.
    New,
    /// Accepted before.
    Duplicate,
    /// Further ahead than a sender may go.
    BeyondWindow,
}

/// The receiving end of a path.
#[derive(Clone, Copy, Debug)]
pub struct ReceivePath {
    /// Ring of accepted PSNs at or above `cumulative`; bit `psn % 256`. Bits outside of the window are zero.
    seen: [u64; 4],
    newest_at: Instant,
    cumulative: u32,
    newest_tsn: u32,
    newest_psn: u32,
    received: u32,
    duplicates: u32,
    ce_count: u16,
    /// Bits set in `seen`.
    ahead: u16,
    /// Reverse entropy of its acknowledgments.
    pub reply: u16,
    /// `reply` has changed since the last acknowledgment.
    pub redirected: bool,
    generation: u8,
    frozen: bool,
    /// Data packets since the last acknowledgment.
    pub unacknowledged: u8,
    /// The last data packet was marked.
    marked: bool,
}

/// What a transmission tells beyond its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Noted {
    /// Some transmission before this one is missing.
    pub gap: bool,
    /// The CE mark differs from that of the packet before.
    pub ce_changed: bool,
}

impl Default for ReceivePath {
    fn default() -> Self {
        Self::new(0, 0)
    }
}

impl ReceivePath {
    /// A path that nothing has come over.
    #[must_use]
    pub const fn new(generation: u8, reply: u16) -> Self {
        Self {
            seen: [0; 4],
            newest_at: Instant::ZERO,
            cumulative: 0,
            newest_tsn: u32::MAX,
            newest_psn: u32::MAX,
            received: 0,
            duplicates: 0,
            ce_count: 0,
            ahead: 0,
            reply,
            redirected: false,
            generation,
            frozen: false,
            unacknowledged: 0,
            marked: false,
        }
    }

    /// The generation whose PSNs are recorded.
    #[inline(always)]
    #[must_use]
    pub const fn generation(&self) -> u8 {
        self.generation
    }

    /// Whether the generation was ended by a FENCE.
    #[inline(always)]
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Ends the generation: later arrivals of it are dropped.
    pub fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Everything before this was accepted.
    #[must_use]
    pub const fn cumulative(&self) -> u32 {
        self.cumulative
    }

    /// Packets dropped because they were seen before.
    #[must_use]
    pub const fn duplicates(&self) -> u32 {
        self.duplicates
    }

    /// Data packets received in this generation, duplicates included.
    #[must_use]
    pub const fn received(&self) -> u32 {
        self.received
    }

    /// CE marks received in this generation, modulo 2^16.
    #[must_use]
    pub const fn ce_count(&self) -> u16 {
        self.ce_count
    }

    /// What `psn` would be.
    #[inline]
    #[must_use]
    // spec: MR-PATH-007, MR-PATH-008
    pub fn classify(&self, psn: u32) -> Arrival {
        let distance = psn.wrapping_sub(self.cumulative);
        if distance == 0 {
            Arrival::New
        } else if distance < WINDOW {
            if self.contains(psn) && !crate::planted::Bug::DuplicateAccepted.is_planted() {
                Arrival::Duplicate
            } else {
                Arrival::New
            }
        } else if distance >= 1 << 31 {
            Arrival::Duplicate
        } else {
            Arrival::BeyondWindow
        }
    }

    /// Records a PSN that [`Self::classify`] called new.
    #[inline]
    // spec: MR-PATH-010
    pub fn accept(&mut self, psn: u32) {
        if psn != self.cumulative {
            self.seen[word(psn)] |= bit(psn);
            self.ahead += 1;
            return;
        }
        self.cumulative = psn.wrapping_add(1);
        while self.ahead != 0 && self.contains(self.cumulative) {
            self.seen[word(self.cumulative)] &= !bit(self.cumulative);
            self.cumulative = self.cumulative.wrapping_add(1);
            self.ahead -= 1;
        }
    }

    /// Counts a duplicate.
    pub fn note_duplicate(&mut self) {
        self.duplicates = self.duplicates.wrapping_add(1);
    }

    /// Records the transmission of a data packet that was accepted, or was a duplicate.
    #[inline]
    pub fn note_transmission(&mut self, now: Instant, tsn: u32, psn: u32, ce: bool) -> Noted {
        // spec: MR-PATH-012
        self.received = self.received.wrapping_add(1);
        self.note(now, tsn, psn, ce)
    }

    /// Records a probe. It has no PSN and does not count as a packet received.
    pub fn note_probe(&mut self, now: Instant, tsn: u32, ce: bool) -> Noted {
        self.note(now, tsn, PSN_OF_PROBE, ce)
    }

    #[inline(always)]
    fn note(&mut self, now: Instant, tsn: u32, psn: u32, ce: bool) -> Noted {
        // spec: MR-PATH-012
        self.ce_count = self.ce_count.wrapping_add(u16::from(ce));
        let ce_changed = ce != self.marked;
        self.marked = ce;
        let step = tsn.wrapping_sub(self.newest_tsn);
        // An older transmission that was overtaken says nothing new about the newest.
        // spec: MR-PATH-011
        if step.wrapping_sub(1) < 1 << 31 {
            self.newest_tsn = tsn;
            self.newest_psn = psn;
            self.newest_at = now;
        }
        Noted {
            gap: step != 1,
            ce_changed,
        }
    }

    /// The acknowledgment of this path as of `now`.
    #[inline]
    #[must_use]
    pub fn block(&self, now: Instant, path: u8, hint_mbps: u32) -> AckBlock {
        // spec: MR-WIRE-024
        let delay = now.since(self.newest_at).as_nanos() >> 4;
        AckBlock {
            path,
            generation: self.generation,
            cumulative: self.cumulative,
            newest_tsn: self.newest_tsn,
            newest_psn: self.newest_psn,
            delay: if delay > 0xffff { 0xffff } else { delay as u16 },
            ce_count: self.ce_count,
            received: self.received,
            hint_mbps,
            sack: self.vector(),
        }
    }

    /// Bit i: `cumulative + i` was accepted.
    #[inline]
    #[must_use]
    // spec: MR-PATH-010
    pub fn vector(&self) -> [u64; 4] {
        if self.ahead == 0 {
            return [0; 4];
        }
        let start = self
            .cumulative
            .wrapping_add(u32::from(crate::planted::Bug::SackOffByOne.is_planted()));
        let shift = start & 63;
        let first = word(start);
        core::array::from_fn(|i| {
            let low = self.seen[(first + i) & 3] >> shift;
            // Two shifts, since a shift by 64 is not a shift to zero.
            let high = (self.seen[(first + i + 1) & 3] << 1) << (63 - shift);
            low | high
        })
    }

    #[inline(always)]
    fn contains(&self, psn: u32) -> bool {
        self.seen[word(psn)] & bit(psn) != 0
    }
}

#[inline(always)]
const fn word(psn: u32) -> usize {
    (psn >> 6 & 3) as usize
}

#[inline(always)]
const fn bit(psn: u32) -> u64 {
    1 << (psn & 63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const AT: Instant = Instant::ZERO;

    proptest! {
        /// Any arrivals near the window: the record says what a plain set of integers says, across the wrap of the PSN.
        // spec: MR-PATH-007, MR-PATH-008, MR-PATH-010
        #[test]
        fn the_record_is_a_set(start in prop_oneof![Just(0u32), Just(u32::MAX - 300), any::<u32>()], jumps in proptest::collection::vec(0u64..300, 1..600)) {
            let mut path = ReceivePath::new(0, 0);
            path.cumulative = start;
            let (mut set, mut low) = (BTreeSet::<u64>::new(), 0u64);
            for jump in jumps {
                let place = (low + jump).saturating_sub(20);
                let psn = start.wrapping_add(place as u32);
                let expected = if set.contains(&place) { Arrival::Duplicate } else if place >= low + 256 { Arrival::BeyondWindow } else { Arrival::New };
                if place + 20 >= low || start == 0 { prop_assert_eq!(path.classify(psn), expected); }
                if expected == Arrival::New {
                    path.accept(psn);
                    set.insert(place);
                    while set.contains(&low) { low += 1; }
                }
                let block = path.block(AT, 0, 0);
                prop_assert_eq!(block.cumulative, start.wrapping_add(low as u32));
                for i in 0..256u64 {
                    prop_assert_eq!(block.sack[(i / 64) as usize] >> (i % 64) & 1 != 0, set.contains(&(low + i)), "bit {}", i);
                }
            }
        }
    }

    // spec: MR-PATH-011, MR-PATH-012
    #[test]
    fn a_gap_in_transmissions_is_seen_once_and_an_overtaken_one_is_no_news() {
        let mut path = ReceivePath::new(0, 0);
        assert_eq!(
            path.note_transmission(AT, 0, 0, false),
            Noted {
                gap: false,
                ce_changed: false
            }
        );
        assert_eq!(
            path.note_transmission(AT, 2, 2, true),
            Noted {
                gap: true,
                ce_changed: true
            }
        );
        assert_eq!(
            path.note_transmission(AT, 3, 3, true),
            Noted {
                gap: false,
                ce_changed: false
            }
        );
        assert!(path.note_transmission(AT, 1, 1, false).gap);
        let block = path.block(AT, 9, 0);
        assert_eq!(
            (
                block.newest_tsn,
                block.newest_psn,
                block.received,
                block.ce_count
            ),
            (3, 3, 4, 2)
        );
    }

    #[test]
    fn the_record_fits_in_96_bytes() {
        assert!(
            size_of::<ReceivePath>() <= 96,
            "{} bytes",
            size_of::<ReceivePath>()
        );
    }
}
