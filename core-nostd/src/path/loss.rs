//! The loss rule.
//!
//! A path is one route, so it keeps order. Hence a slot that is unacknowledged, and whose latest transmission is older than
//! the newest transmission that the receiver echoes, is lost. The in-flight list is in TSN order, so its front answers.

use super::inflight::{List, Slots};

/// What the sender learns of the packets of one path from one acknowledgment.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The next PSN the receiver expects.
    pub cumulative: u32,
    /// Bit i: `cumulative + i` was received.
    pub sack: &'a [u64; 4],
    /// The newest transmission received.
    pub newest_tsn: u32,
    /// Packets by which the path may reorder.
    pub tolerance: u32,
    /// The newest transmission is a PROBE, and what left before this time left a round trip before it: nothing reorders by as much.
    pub settled_ns: Option<u32>,
}

impl Evidence<'_> {
    /// Whether a transmission left so long before the PROBE that brought the evidence that it cannot still come.
    #[inline]
    fn settles(&self, sent_ns: u32) -> bool {
        self.settled_ns
            .is_some_and(|settled| settled.wrapping_sub(sent_ns) < 1 << 31)
    }

    /// Whether the receiver has accepted `psn`.
    #[inline]
    #[must_use]
    pub fn acknowledges(&self, psn: u32) -> bool {
        let distance = psn.wrapping_sub(self.cumulative);
        if distance >= 1 << 31 {
            return true;
        }
        if distance >= 256 {
            return false;
        }
        self.sack[(distance >> 6) as usize] >> (distance & 63) & 1 != 0
    }
}

/// What the evidence says of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The receiver has it.
    Delivered,
    /// Something sent later arrived, and it did not.
    Lost,
}

/// Takes the next slot that the evidence decides off the front of `inflight`. Slots that are within the tolerance move to `undecided`, in
/// order; when nothing more is decided, [`restore`] puts them back.
///
/// Work is constant per slot decided, plus at most `tolerance` slots that stay.
#[inline]
pub fn decide<const SLOTS: usize>(
    evidence: &Evidence<'_>,
    slots: &mut Slots<SLOTS>,
    inflight: &mut List,
    undecided: &mut List,
) -> Option<(u16, Verdict)> {
    loop {
        let index = inflight.first()?;
        let slot = slots.at(index);
        // spec: MR-LOSS-001
        let age = evidence.newest_tsn.wrapping_sub(slot.tsn);
        if age >= 1 << 31 {
            return None;
        }
        let delivered = evidence.acknowledges(slot.psn);
        slots.pop(inflight);
        if delivered {
            return Some((index, Verdict::Delivered));
        }
        // spec: MR-LOSS-001
        if age > evidence.tolerance || (age != 0 && evidence.settles(slots.at(index).sent_ns)) {
            return Some((index, Verdict::Lost));
        }
        slots.push(undecided, index);
    }
}

/// Puts undecided slots back in front of the younger ones.
#[inline]
pub fn restore<const SLOTS: usize>(
    slots: &mut Slots<SLOTS>,
    inflight: &mut List,
    mut undecided: List,
) {
    if undecided.is_empty() {
        return;
    }
    while let Some(index) = slots.pop(inflight) {
        slots.push(&mut undecided, index);
    }
    *inflight = undecided;
}

#[cfg(test)]
mod tests {
    use super::super::inflight::Slot;
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    /// Applies the rule to the end: losses go to `lost`, the others are shown and released.
    fn judge(
        evidence: &Evidence<'_>,
        slots: &mut Slots<300>,
        inflight: &mut List,
        lost: &mut List,
        mut delivered: impl FnMut(&Slot),
    ) -> u16 {
        let mut undecided = List::EMPTY;
        let mut losses = 0;
        while let Some((index, verdict)) = decide(evidence, slots, inflight, &mut undecided) {
            if verdict == Verdict::Lost {
                losses += 1;
                slots.push(lost, index);
            } else {
                delivered(slots.at(index));
                slots.release(index);
            }
        }
        restore(slots, inflight, undecided);
        losses
    }

    fn evidence(received: &[u32], newest_tsn: u32, tolerance: u32) -> (u32, [u64; 4], u32, u32) {
        let mut cumulative = 0;
        while received.contains(&cumulative) {
            cumulative += 1;
        }
        let mut sack = [0; 4];
        for psn in received.iter().filter(|psn| **psn > cumulative) {
            let i = psn - cumulative;
            sack[(i / 64) as usize] |= 1 << (i % 64);
        }
        (cumulative, sack, newest_tsn, tolerance)
    }

    fn fill(slots: &mut Slots<300>, list: &mut List, tsns: &[(u32, u32)]) {
        for &(psn, tsn) in tsns {
            let index = slots.allocate().unwrap();
            let slot = slots.at_mut(index);
            slot.psn = psn;
            slot.tsn = tsn;
            slots.push(list, index);
        }
    }

    proptest! {
        /// On a path that keeps order, exactly the packets that were dropped are declared lost, and only once something sent after them arrived.
        // spec: MR-LOSS-001
        #[test]
        fn in_order_paths_have_no_false_losses(dropped in proptest::collection::vec(any::<bool>(), 1..256)) {
            let mut slots = Slots::<300>::new();
            let (mut inflight, mut lost) = (List::EMPTY, List::EMPTY);
            let sent: Vec<(u32, u32)> = (0..dropped.len() as u32).map(|psn| (psn, psn)).collect();
            fill(&mut slots, &mut inflight, &sent);
            let mut received = vec![];
            let mut gone = 0;
            for psn in 0..dropped.len() as u32 {
                if dropped[psn as usize] { continue; }
                received.push(psn);
                let (cumulative, sack, newest_tsn, tolerance) = evidence(&received, psn, 0);
                let mut delivered = vec![];
                judge(&Evidence { cumulative, sack: &sack, newest_tsn, tolerance, settled_ns: None }, &mut slots, &mut inflight, &mut lost, |slot| delivered.push(slot.psn));
                prop_assert_eq!(delivered, vec![psn]);
                gone = psn + 1;
            }
            let expected = dropped.iter().take(gone as usize).filter(|d| **d).count();
            prop_assert_eq!(usize::from(lost.len()), expected);
            while let Some(index) = slots.pop(&mut lost) { prop_assert!(dropped[slots.at(index).psn as usize]); }
        }
    }

    // spec: MR-LOSS-001
    #[test]
    fn a_lost_retransmission_is_found_by_the_same_rule() {
        let mut slots = Slots::<300>::new();
        let (mut inflight, mut lost) = (List::EMPTY, List::EMPTY);
        // PSN 0 was sent again as TSN 5; PSN 6 went out after it as TSN 6 and arrived.
        fill(&mut slots, &mut inflight, &[(0, 5), (6, 6)]);
        let (cumulative, sack, newest_tsn, tolerance) = evidence(&[1, 2, 3, 4, 5, 6], 6, 0);
        let losses = judge(
            &Evidence {
                cumulative,
                sack: &sack,
                newest_tsn,
                tolerance,
                settled_ns: None,
            },
            &mut slots,
            &mut inflight,
            &mut lost,
            |slot| assert_eq!(slot.psn, 6),
        );
        assert_eq!((losses, slots.at(lost.first().unwrap()).psn), (1, 0));
    }

    // spec: MR-LOSS-001
    #[test]
    fn tolerance_waits_for_that_many_later_transmissions() {
        let mut slots = Slots::<300>::new();
        let (mut inflight, mut lost) = (List::EMPTY, List::EMPTY);
        fill(
            &mut slots,
            &mut inflight,
            &[(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)],
        );
        let mut rule = |received: &[u32], newest| {
            let (cumulative, sack, newest_tsn, tolerance) = evidence(received, newest, 2);
            judge(
                &Evidence {
                    cumulative,
                    sack: &sack,
                    newest_tsn,
                    tolerance,
                    settled_ns: None,
                },
                &mut slots,
                &mut inflight,
                &mut lost,
                |_| (),
            )
        };
        assert_eq!(rule(&[1], 1), 0);
        assert_eq!(rule(&[1, 2], 2), 0);
        assert_eq!(rule(&[1, 2, 3], 3), 1);
        assert_eq!((inflight.len(), lost.len()), (1, 1));
    }
}
