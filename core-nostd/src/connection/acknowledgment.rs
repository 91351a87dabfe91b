//! An acknowledgment comes in: what was delivered, what was lost, and what that says of the network.

use super::timers::LOSS_MEMORY;
use super::{Connection, Epoch};
use crate::config::EndpointConfig;
use crate::message::outgoing::{OutMessage, Progress};
use crate::path::inflight::{List, NONE};
use crate::path::loss::{self, Evidence, Verdict};
use crate::path::send::{PathState, SendPath};
use crate::rate::controller::{Controller, Network, ONE_PACKET};
use crate::stats::DropReason;
use crate::time::{Duration, Instant};
use crate::wire::{AckBlock, AckBlocks, PSN_OF_PROBE};
use crate::work::Status;

use super::RESPONSE_BIT;

/// Round trips between two comparisons of the paths.
const EPOCHS_PER_COMPARISON: u8 = 16;

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// An ACK: all its blocks are checked before the first has an effect.
    pub(crate) fn handle_ack(
        &mut self,
        now: Instant,
        config: &EndpointConfig,
        blocks: AckBlocks<'_>,
    ) -> Result<(), DropReason> {
        // spec: MR-WIRE-025
        for block in blocks {
            self.check_block(&block)?;
        }
        self.statistics.acks_received += 1;
        for block in blocks {
            self.handle_block(now, config, &block);
        }
        Ok(())
    }

    /// Whether a block speaks only of what was sent.
    #[inline]
    pub(super) fn check_block(&self, block: &AckBlock) -> Result<(), DropReason> {
        if block.path >= self.agreed.paths {
            return Err(DropReason::UnknownPath);
        }
        let path = self.send_paths.at(u16::from(block.path));
        if path.state == PathState::Unused {
            return Err(DropReason::UnknownPath);
        }
        if block.generation != path.generation {
            // Of a generation that is over: no news, no harm.
            return Ok(());
        }
        let unacknowledged = path.next_psn.wrapping_sub(block.cumulative);
        // Nothing received yet is told as TSN -1.
        let newest = block.newest_tsn.wrapping_add(1);
        let untold = path.next_tsn.wrapping_sub(newest);
        // spec: MR-PATH-004
        if unacknowledged >= 1 << 31 || untold >= 1 << 31 {
            return Err(DropReason::BadAcknowledgment);
        }
        if unacknowledged < 256 && block.sack != [0; 4] {
            let highest = highest_bit(&block.sack);
            if u32::from(highest) >= unacknowledged {
                return Err(DropReason::BadAcknowledgment);
            }
        }
        Ok(())
    }

    fn handle_block(&mut self, now: Instant, config: &EndpointConfig, block: &AckBlock) {
        let number = block.path;
        let path = self.send_paths.at_mut(u16::from(number));
        // spec: MR-PATH-005
        if block.generation != path.generation {
            return;
        }
        // spec: MR-PATH-006
        let step = block.newest_tsn.wrapping_sub(path.echoed_tsn);
        let news = step.wrapping_sub(1) < (1 << 31) - 1;
        let mut marked = 0;
        if news {
            path.echoed_tsn = block.newest_tsn;
            path.moved_at = now;
            path.probes = 0;
            // More marks than transmissions are none.
            marked = u32::from(block.ce_count.wrapping_sub(path.ce_count)).min(step);
            path.ce_count = block.ce_count;
            path.marks = path.marks.wrapping_add(marked);
            self.marks_seen |= marked != 0;
            path.duplicates = block
                .received
                .wrapping_sub(block.cumulative)
                .wrapping_sub(ones(&block.sack));
            // spec: MR-LOSS-006
            if block.newest_psn == PSN_OF_PROBE && path.probe_tsn == block.newest_tsn {
                let sample = (now.as_nanos() as u32).wrapping_sub(path.probe_sent_ns);
                self.rtt_sample(now, config, number, sample, block, false);
            }
        }
        // spec: MR-HINT-008, MR-PATH-006
        if block.hint_mbps != 0 && config.hints && step < 1 << 31 {
            self.controller.hinted(now, block.hint_mbps);
        }
        let (mut delivered, lost) = self.judge(now, config, block);
        delivered += self.late_deliveries(block);
        let path = self.send_paths.at_mut(u16::from(number));
        // spec: MR-PATH-006
        if block.cumulative.wrapping_sub(path.cumulative) < 1 << 31 {
            path.cumulative = block.cumulative;
        }
        path.epoch_good = path.epoch_good.saturating_add(delivered);
        path.epoch_bad = path
            .epoch_bad
            .saturating_add(lost)
            .saturating_add(marked as u16);
        if news || delivered != 0 {
            self.answered_at = now;
            self.path_answered(now, number);
        }
        if now >= self.epoch_ends {
            self.network_changed(config);
            self.controller.tick(now);
            self.end_epoch(now);
        }
        self.adjust(number, u32::from(delivered), u32::from(lost), marked);
        if lost != 0 {
            self.losing_until =
                now + Duration::from_nanos(LOSS_MEMORY * u64::from(self.min_rtt_ns()));
        }
        self.after_ack(config, number, marked != 0);
    }

    /// Applies the loss rule to a path: returns how many packets were delivered and how many lost.
    // spec: MR-LOSS-001, MR-LOSS-002
    fn judge(&mut self, now: Instant, config: &EndpointConfig, block: &AckBlock) -> (u16, u16) {
        let evidence = Evidence {
            block,
            tolerance: u32::from(self.config.reorder_tolerance),
            settled_ns: self.settled(block),
        };
        let (mut delivered, mut lost) = (0, 0);
        let mut undecided = List::EMPTY;
        let counts = Self::counts(self.send_paths.at(u16::from(block.path)).state);
        loop {
            let path = self.send_paths.at_mut(u16::from(block.path));
            let Some((index, verdict)) = loss::decide(
                &evidence,
                &mut self.slots,
                &mut path.inflight,
                &mut undecided,
            ) else {
                break;
            };
            if verdict == Verdict::Delivered {
                delivered += 1;
                let slot = self.slots.at(index);
                // spec: MR-LOSS-006
                if slot.tsn == block.newest_tsn {
                    let sample = (now.as_nanos() as u32).wrapping_sub(slot.sent_ns);
                    let full = slot.length == self.agreed.payload_bytes;
                    self.rtt_sample(now, config, block.path, sample, block, full);
                }
                self.slot_delivered(index);
            } else {
                lost += 1;
                let path = self.send_paths.at_mut(u16::from(block.path));
                path.losses = path.losses.wrapping_add(1);
                self.slots.push(&mut path.lost, index);
                if counts {
                    self.lost_paths.insert(block.path);
                }
            }
        }
        if counts {
            let decided = u32::from(delivered) + u32::from(lost);
            self.outstanding = self.outstanding.saturating_sub(decided);
        }
        loss::restore(
            &mut self.slots,
            &mut self.send_paths.at_mut(u16::from(block.path)).inflight,
            undecided,
        );
        (delivered, lost)
    }

    /// Where paths may reorder: what left before this time is lost, since a PROBE that left a round trip later was answered.
    // spec: MR-LOSS-001
    #[inline]
    fn settled(&self, block: &AckBlock) -> Option<u32> {
        if self.config.reorder_tolerance == 0 || block.newest_psn != PSN_OF_PROBE {
            return None;
        }
        let path = self.send_paths.at(u16::from(block.path));
        let round_trip = path.rtt.smoothed_or(self.min_rtt_ns());
        (path.probe_tsn == block.newest_tsn).then(|| path.probe_sent_ns.wrapping_sub(round_trip))
    }

    /// Slots that were declared lost, and whose packets an acknowledgment now says arrived: they need not be sent again.
    // spec: MR-LOSS-004
    fn late_deliveries(&mut self, block: &AckBlock) -> u16 {
        let mut lost = core::mem::take(&mut self.send_paths.at_mut(u16::from(block.path)).lost);
        if lost.is_empty() {
            return 0;
        }
        let delivered = self.sort_out(block, &mut lost);
        if lost.is_empty() {
            self.lost_paths.remove(block.path);
        }
        self.send_paths.at_mut(u16::from(block.path)).lost = lost;
        delivered
    }

    /// Takes what was delivered off a list; returns how many.
    pub(super) fn sort_out(&mut self, block: &AckBlock, list: &mut List) -> u16 {
        let (mut all, mut delivered) = (core::mem::take(list), 0);
        while let Some(index) = self.slots.pop(&mut all) {
            if block.acknowledges(self.slots.at(index).psn) {
                delivered += 1;
                self.slot_delivered(index);
            } else {
                self.slots.push(list, index);
            }
        }
        delivered
    }

    // spec: MR-LOSS-006
    fn rtt_sample(
        &mut self,
        now: Instant,
        config: &EndpointConfig,
        number: u8,
        sample: u32,
        block: &AckBlock,
        full: bool,
    ) {
        // The clock went back since: no sample at all.
        // spec: MR-TIME-003
        if sample >= 1 << 31 {
            return;
        }
        // A delay longer than all of it is no delay.
        let Some(sample) = sample.checked_sub(block.delay_ns()) else {
            return;
        };
        let sample = sample.max(1);
        // The longest is forgotten within some round trips.
        // spec: MR-PROBE-010
        self.peer_delay = block
            .delay
            .max(self.peer_delay - self.peer_delay.div_ceil(64));
        let path = self.send_paths.at_mut(u16::from(number));
        path.rtt.sample(sample);
        path.latest_rtt_ns = sample;
        self.rtt.sample(sample);
        let sample = sample.max(self.config.least_rtt.as_nanos_u32());
        if self.min_rtt.sample(now, sample, full) {
            self.network_changed(config);
        }
    }

    /// The least round-trip time of a full packet, which is what the window has to cover.
    // spec: MR-LOSS-008
    #[inline]
    fn full_rtt_ns(&self) -> u32 {
        self.min_rtt
            .full_ns_or(self.config.initial_rtt.as_nanos_u32())
    }

    /// The pacer keeps to the rate that the controller allows.
    #[inline]
    pub(super) fn follow_hint(&mut self) {
        let mbps = self.controller.pacing_mbps().unwrap_or(0);
        self.pacer
            .set_rate(mbps, self.wire_packet_bytes, 2 * u32::from(self.config.run));
    }

    /// Tells the controller what the network measures now.
    pub(super) fn network_changed(&mut self, config: &EndpointConfig) {
        // What the peer holds acknowledgments back is part of the loop that the window has to fill.
        // spec: MR-CC-015
        let full = self.full_rtt_ns();
        let delay = self.peer_delay_ns(full) as u32;
        self.controller.network(Network {
            loop_rtt_ns: full.saturating_add(delay),
            link_mbps: config
                .plane_mbps
                .saturating_mul(u32::from(self.agreed.planes)),
            packet_bytes: self.wire_packet_bytes,
        });
    }

    /// Moves the windows by what one acknowledgment said.
    fn adjust(&mut self, number: u8, delivered: u32, lost: u32, marked: u32) {
        self.epoch.acknowledged = self.epoch.acknowledged.saturating_add(delivered as u16);
        self.epoch.lost = self.epoch.lost.saturating_add(lost as u16);
        self.epoch.marked = self.epoch.marked.saturating_add(marked as u16);
        let path = self.send_paths.at(u16::from(number));
        let slow = u64::from(path.latest_rtt_ns) * 2 > u64::from(self.full_rtt_ns()) * 3;
        // Where nothing is ever marked, delay stands in for marks. Not below one packet: the round trip may have grown for another reason, such as a
        // longer route, and then no cut would ever shorten it.
        // spec: MR-CC-011
        let marked =
            if slow && marked == 0 && !self.marks_seen && self.controller.window() > ONE_PACKET {
                delivered
            } else {
                marked
            };
        if delivered != 0 || marked != 0 {
            self.controller
                .acknowledged(number, delivered.max(marked), marked, self.limited);
        }
        if lost != 0 {
            let marks_seen = self.epoch.marked != 0 || self.last_epoch.marked != 0;
            // spec: MR-CC-006
            if slow || marks_seen || self.epoch.lost_more_than(30, 4) {
                self.controller.lost(number, lost);
            } else {
                self.controller.lost_to_fabric(number, lost);
            }
            // spec: MR-CC-007
            if !self.collapsed_this_epoch && self.epoch.lost_more_than(50, 6) {
                self.collapsed_this_epoch = true;
                self.controller.collapsed();
            }
        }
        self.follow_hint();
    }

    fn end_epoch(&mut self, now: Instant) {
        self.last_epoch = core::mem::take(&mut self.epoch);
        let (lost, all) = (
            u32::from(self.last_epoch.lost),
            u32::from(self.last_epoch.lost) + u32::from(self.last_epoch.acknowledged),
        );
        if let Some(permille) = (lost * 1000).checked_div(all) {
            self.loss_share = self.loss_share - self.loss_share / 64 + permille as u16;
        }
        self.collapsed_this_epoch = false;
        self.epoch_ends = now + Duration::from_nanos(u64::from(self.min_rtt_ns()));
        self.epochs += 1;
        if self.epochs >= EPOCHS_PER_COMPARISON {
            self.epochs = 0;
            self.compare_paths();
        }
    }

    /// Whether the connection as a whole is losing heavily: then silence of a path proves nothing.
    // spec: MR-FENCE-001
    pub(super) fn is_losing_heavily(&self) -> bool {
        let heavy = |epoch: Epoch| epoch.lost_more_than(30, 4);
        heavy(self.epoch) || heavy(self.last_epoch)
    }

    /// A slot's content has arrived: it counts for its message, and the slot is free.
    pub(super) fn slot_delivered(&mut self, index: u16) {
        let slot = self.slots.at(index);
        let (number, attempt) = (slot.message, slot.attempt);
        self.slots.release(index);
        if number == NONE {
            return;
        }
        let message = self.message_mut(number);
        if message.attempt != attempt || message.outstanding == 0 {
            return;
        }
        message.outstanding -= 1;
        // spec: MR-MSG-004
        if message.is_complete() {
            self.message_complete(number);
        }
    }

    /// All packets of a message were acknowledged, and what it awaited has come.
    pub(super) fn message_complete(&mut self, number: u16) {
        if number & RESPONSE_BIT != 0 {
            self.responses.remove(number & !RESPONSE_BIT);
            return;
        }
        let message = self.requests.at_mut(number);
        message.progress = Progress::Done;
        message.status = Status::Success;
        let (stream, expected) = (message.stream, message.expects_response());
        if expected {
            self.reads -= 1;
            self.streams.at_mut(stream).reads -= 1;
            self.unblock_streams();
        }
        self.retire_messages(stream);
    }

    /// Completes the messages of a stream that are over, in order.
    // spec: MR-MSG-005
    pub(super) fn retire_messages(&mut self, stream: u16) {
        loop {
            let first = self.streams.at(stream).first;
            if first == NONE || self.requests.at(first).progress != Progress::Done {
                break;
            }
            let message = self.requests.at(first);
            let (next, started) = (message.next, message.has(OutMessage::STARTED));
            // spec: MR-MSG-015
            let report = (message.has(OutMessage::SIGNALED) || message.status != Status::Success)
                && !(crate::planted::Bug::FlushForgets.is_planted()
                    && message.status == Status::Flushed);
            let record = self.streams.at_mut(stream);
            record.first = next;
            if record.unsent == first {
                record.unsent = next;
            }
            if next == NONE {
                record.last = NONE;
            }
            if started {
                self.started -= 1;
                self.unblock_streams();
            }
            if report {
                self.push_completed(first);
            } else {
                self.requests.remove(first);
            }
        }
    }

    /// After an acknowledgment: the path may carry again, or change its source port.
    fn after_ack(&mut self, config: &EndpointConfig, number: u8, marked: bool) {
        let path: &SendPath = self.send_paths.at(u16::from(number));
        match path.state {
            // spec: MR-PATH-020
            PathState::Draining if path.is_drained() => self.redirect_drained(config, number),
            PathState::Active => {
                // spec: MR-PATH-019
                if marked && path.is_drained() {
                    self.redirect_drained(config, number);
                }
                self.offer(number);
            }
            _ => {}
        }
    }
}

fn ones(sack: &[u64; 4]) -> u32 {
    if *sack == [0; 4] {
        0
    } else {
        sack.iter().map(|word| word.count_ones()).sum()
    }
}

fn highest_bit(sack: &[u64; 4]) -> u8 {
    let mut highest = 0;
    for (index, word) in sack.iter().enumerate() {
        if *word != 0 {
            highest = (index * 64) as u8 + (63 - word.leading_zeros() as u8);
        }
    }
    highest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heavy_loss_needs_a_share_and_a_number() {
        let epoch = |acknowledged, lost| Epoch {
            acknowledged,
            lost,
            marked: 0,
        };
        assert!(!epoch(0, 3).lost_more_than(30, 4));
        assert!(epoch(9, 4).lost_more_than(30, 4));
        assert!(!epoch(10, 4).lost_more_than(30, 4));
    }

    #[test]
    fn the_highest_bit_of_a_vector() {
        assert_eq!(highest_bit(&[2, 0, 0, 0]), 1);
        assert_eq!(highest_bit(&[0, 0, 1 << 5, 0]), 133);
        assert_eq!(highest_bit(&[1, 0, 0, 1 << 63]), 255);
    }
}
