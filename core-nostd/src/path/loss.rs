//! The loss rule.
//!
//! A path is one route, so it keeps order. Hence a slot that is unacknowledged, and whose latest transmission is older than
//! the newest transmission that the receiver echoes, is lost. The in-flight list is in TSN order, so its front answers.

use super::inflight::{List, Slots};
use crate::wire::AckBlock;

/// What the sender learns of the packets of one path from one acknowledgment.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// What the receiver has of the path.
    pub block: &'a AckBlock,
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
        let age = evidence.block.newest_tsn.wrapping_sub(slot.tsn);
        if age >= 1 << 31 {
            return None;
        }
        let delivered = evidence.block.acknowledges(slot.psn);
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
pub fn restore<const SLOTS: usize>(slots: &mut Slots<SLOTS>, inflight: &mut List, undecided: List) {
    let younger = core::mem::replace(inflight, undecided);
    slots.append(inflight, younger);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec;
    use std::vec::Vec;

    /// The sender's end of a path.
    struct Sent {
        slots: Slots<300>,
        inflight: List,
        lost: List,
    }

    impl Sent {
        /// Packets in the order in which they went out, as PSN and TSN.
        fn new(packets: impl IntoIterator<Item = (u32, u32)>) -> Self {
            let (mut slots, mut inflight) = (Slots::new(), List::EMPTY);
            for (psn, tsn) in packets {
                let index = slots.allocate().unwrap();
                let slot = slots.at_mut(index);
                slot.psn = psn;
                slot.tsn = tsn;
                slots.push(&mut inflight, index);
            }
            Self {
                slots,
                inflight,
                lost: List::EMPTY,
            }
        }

        /// Applies the rule to the end: how many are newly lost, and the PSNs that were delivered.
        fn hear(&mut self, received: &[u32], newest_tsn: u32, tolerance: u32) -> (u16, Vec<u32>) {
            let mut cumulative = 0;
            while received.contains(&cumulative) {
                cumulative += 1;
            }
            let mut sack = [0; 4];
            for psn in received.iter().filter(|psn| **psn > cumulative) {
                let i = psn - cumulative;
                sack[(i / 64) as usize] |= 1 << (i % 64);
            }
            let block = AckBlock {
                cumulative,
                sack,
                newest_tsn,
                ..AckBlock::default()
            };
            let evidence = Evidence {
                block: &block,
                tolerance,
                settled_ns: None,
            };
            let mut undecided = List::EMPTY;
            let (mut losses, mut delivered) = (0, vec![]);
            while let Some((index, verdict)) = decide(
                &evidence,
                &mut self.slots,
                &mut self.inflight,
                &mut undecided,
            ) {
                if verdict == Verdict::Lost {
                    losses += 1;
                    self.slots.push(&mut self.lost, index);
                } else {
                    delivered.push(self.slots.at(index).psn);
                    self.slots.release(index);
                }
            }
            restore(&mut self.slots, &mut self.inflight, undecided);
            (losses, delivered)
        }

        fn lost_psns(&mut self) -> Vec<u32> {
            std::iter::from_fn(|| {
                let index = self.slots.pop(&mut self.lost)?;
                Some(self.slots.at(index).psn)
            })
            .collect()
        }
    }

    proptest! {
        /// On a path that keeps order, exactly the packets that were dropped are declared lost, and only once something sent after them arrived.
        // spec: MR-LOSS-001
        #[test]
        fn in_order_paths_have_no_false_losses(dropped in proptest::collection::vec(any::<bool>(), 1..256)) {
            let mut sent = Sent::new((0..dropped.len() as u32).map(|psn| (psn, psn)));
            let (mut received, mut missing, mut expected) = (vec![], vec![], vec![]);
            for (psn, dropped) in (0..).zip(dropped) {
                if dropped {
                    missing.push(psn);
                    continue;
                }
                received.push(psn);
                let newly = missing.len() as u16;
                expected.append(&mut missing);
                prop_assert_eq!(sent.hear(&received, psn, 0), (newly, vec![psn]));
            }
            prop_assert_eq!(sent.lost_psns(), expected);
        }
    }

    // spec: MR-LOSS-001
    #[test]
    fn a_lost_retransmission_is_found_by_the_same_rule() {
        // PSN 0 was sent again as TSN 5; PSN 6 went out after it as TSN 6 and arrived.
        let mut sent = Sent::new([(0, 5), (6, 6)]);
        assert_eq!(sent.hear(&[1, 2, 3, 4, 5, 6], 6, 0), (1, vec![6]));
        assert_eq!(sent.lost_psns(), [0]);
    }

    // spec: MR-LOSS-001
    #[test]
    fn tolerance_waits_for_that_many_later_transmissions() {
        let mut sent = Sent::new((0..5).map(|psn| (psn, psn)));
        assert_eq!(sent.hear(&[1], 1, 2).0, 0);
        assert_eq!(sent.hear(&[1, 2], 2, 2).0, 0);
        assert_eq!(sent.hear(&[1, 2, 3], 3, 2).0, 1);
        assert_eq!((sent.inflight.len(), sent.lost_psns()), (1, vec![0]));
    }
}
