//! What a sender knows of packets that arrived out of order, and which of the others it sends again (IRN, section 3.1).

use std::collections::VecDeque;

/// Selective acknowledgments above the cumulative one, and loss recovery.
#[derive(Clone, Debug, Default)]
pub(super) struct Selective {
    /// By distance from the cumulative acknowledgment.
    received: VecDeque<bool>,
    /// The cumulative acknowledgment.
    base: u64,
    /// Recovery ends when everything before this is acknowledged.
    until: Option<u64>,
    /// Packets before this were looked at in this recovery.
    scanned: u64,
    /// The first unacknowledged packet is to be sent again, whatever else is known.
    first: bool,
}

impl Selective {
    /// Everything before `cumulative` was received; `highest` is the first that was never sent.
    pub fn advance(&mut self, cumulative: u64, highest: u64) {
        if cumulative <= self.base {
            return;
        }
        let gone = (cumulative - self.base).min(self.received.len() as u64);
        self.received.drain(..gone as usize);
        self.base = cumulative;
        self.first = false;
        if self.until.is_some_and(|until| cumulative >= until) {
            // What was found lost in the meantime is repaired first: it would be at the next NACK.
            self.until = self.next_lost().is_some().then_some(highest);
        }
    }

    /// A NACK: `sequence` was received, the packet at the cumulative acknowledgment was not. Recovery begins if it has not.
    pub fn received(&mut self, sequence: u64, highest: u64) {
        if sequence <= self.base || sequence >= highest {
            return;
        }
        let index = (sequence - self.base) as usize;
        if index >= self.received.len() {
            self.received.resize(index + 1, false);
        }
        self.received[index] = true;
        if self.until.is_none() {
            self.until = Some(highest);
            // Not what was sent again a moment ago, in the recovery before.
            self.first = self.scanned <= self.base;
        }
    }

    /// A timeout: recovery begins anew.
    pub fn restart(&mut self, highest: u64) {
        self.until = Some(highest);
        self.scanned = self.base;
        self.first = true;
    }

    /// The next packet to send again. A packet is lost if one behind it was received; each is found once per recovery.
    pub fn next_lost(&mut self) -> Option<u64> {
        self.until?;
        if self.first {
            return Some(self.base);
        }
        self.scanned = self.scanned.max(self.base);
        // The last one in the list was received, or the list is empty.
        while let Some(&received) = self.received.get((self.scanned - self.base) as usize) {
            if !received {
                return Some(self.scanned);
            }
            self.scanned += 1;
        }
        None
    }

    /// The packet that [`Selective::next_lost`] named was sent again.
    pub fn resent(&mut self, sequence: u64) {
        self.first = false;
        self.scanned = self.scanned.max(sequence + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(selective: &mut Selective) -> Vec<u64> {
        core::iter::from_fn(|| {
            let sequence = selective.next_lost()?;
            selective.resent(sequence);
            Some(sequence)
        })
        .collect()
    }

    #[test]
    fn gaps_below_what_was_received_are_sent_once() {
        let mut selective = Selective::default();
        selective.advance(10, 20);
        assert_eq!(selective.next_lost(), None);
        selective.received(13, 20);
        assert_eq!(lost(&mut selective), [10, 11, 12]);
        selective.received(15, 20);
        assert_eq!(lost(&mut selective), [14]);
        // 10 arrives, its siblings are under way: nothing again.
        selective.advance(11, 25);
        assert_eq!(lost(&mut selective), [0; 0]);
        // The end of the recovery is what had been sent when it began.
        selective.advance(20, 25);
        selective.received(22, 25);
        assert_eq!(lost(&mut selective), [20, 21]);
    }

    #[test]
    fn a_timeout_sends_the_first_and_all_gaps_again() {
        let mut selective = Selective::default();
        selective.restart(4);
        assert_eq!(lost(&mut selective), [0]);
        selective.received(3, 4);
        assert_eq!(lost(&mut selective), [1, 2]);
        selective.restart(4);
        assert_eq!(lost(&mut selective), [0, 1, 2]);
        // Nonsense from the wire changes nothing.
        selective.received(9, 4);
        assert_eq!(lost(&mut selective), [0; 0]);
    }

    #[test]
    fn what_is_lost_at_the_end_of_a_recovery_prolongs_it() {
        let mut selective = Selective::default();
        selective.received(2, 3);
        assert_eq!(lost(&mut selective), [0, 1]);
        selective.received(6, 8);
        selective.advance(3, 8);
        assert_eq!(lost(&mut selective), [3, 4, 5]);
    }
}
