//! Paths that stop answering, that are worse than their siblings, or that may move for free.

use super::{Connection, Epoch, due};
use crate::config::EndpointConfig;
use crate::path::entropy::EntropyChooser;
use crate::path::send::{PathState, SendPath};
use crate::rate::controller::Controller;
use crate::stats::DropReason;
use crate::time::{Duration, Instant};
use crate::wire::AckBlock;

use super::Timer;

/// Longest pause between two tries of a path that does not answer.
const LONGEST_BACKOFF: Duration = Duration::from_millis(100);
/// Packets in a comparison before a path is judged by it.
const COMPARED_PACKETS: u32 = 32;

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// Brings a path into use.
    pub(super) fn activate_path(&mut self, number: u8) {
        let path = self.send_paths.at_mut(u16::from(number));
        path.state = PathState::Active;
        path.backoff = 0;
        let plane = path.plane;
        self.count_again(number);
        self.set_usable(number, true);
        self.controller.open(number);
        // spec: MR-FENCE-011
        self.planes_down &= !(1 << plane);
        self.events |= self.planes_down != self.planes_reported;
        self.offer(number);
    }

    fn set_usable(&mut self, number: u8, usable: bool) {
        if self.usable.contains(number) == usable {
            return;
        }
        if usable {
            self.usable.insert(number);
            self.usable_count += 1;
        } else {
            self.usable.remove(number);
            self.usable_count -= 1;
            self.reserve.remove(number);
        }
    }

    /// A path told something new.
    // spec: MR-PROBE-008
    pub(super) fn path_answered(&mut self, now: Instant, number: u8) {
        let path = self.send_paths.at_mut(u16::from(number));
        let (plane, state) = (path.plane, path.state);
        if state == PathState::Fencing {
            return;
        }
        path.retry_at = now;
        match state {
            PathState::Suspect if path.worse >= SendPath::MUST_MOVE => self.drain_again(number),
            PathState::Suspect => self.activate_path(number),
            PathState::Reopening => {
                self.activate_path(number);
                self.plane_answered(now, plane);
            }
            _ => {}
        }
    }

    /// A path that was to be moved when it became suspect answers: its packets count again, and it is moved when they are here.
    // spec: MR-PROBE-008, MR-PATH-022
    #[cold]
    fn drain_again(&mut self, number: u8) {
        self.send_paths.at_mut(u16::from(number)).state = PathState::Draining;
        self.count_again(number);
    }

    /// The packets of a path count in the window, and those that were lost may be sent again.
    fn count_again(&mut self, number: u8) {
        let path = self.send_paths.at(u16::from(number));
        self.outstanding += u32::from(path.inflight.len());
        if !path.lost.is_empty() {
            self.lost_paths.insert(number);
        }
    }

    /// The second probe of a path was not answered: its packets stop counting, or a dead path would starve the live ones.
    pub(super) fn suspect(&mut self, number: u8) {
        let path = self.send_paths.at_mut(u16::from(number));
        if !Self::counts(path.state) {
            return;
        }
        // spec: MR-PROBE-007
        path.state = PathState::Suspect;
        self.outstanding = self
            .outstanding
            .saturating_sub(u32::from(path.inflight.len()));
        self.lost_paths.remove(number);
        self.set_usable(number, false);
    }

    /// Nothing speaks of congestion: what is not acknowledged in time is not in the network any more, so it need not count.
    pub(super) fn is_clear(&self) -> bool {
        self.controller.is_hinted()
            && self.epoch.marked == 0
            && self.last_epoch.marked == 0
            && !self.is_losing_heavily()
    }

    /// Whether a suspect path is to be given up: a sibling made progress since, that sibling is clear (or the path left twice
    /// as many probes unanswered as are `enough`), what comes back is not mostly marked (or four times as many), and the connection as a whole is not losing heavily.
    // spec: MR-FENCE-001
    pub(super) fn may_fence(&self, number: u8, enough: u8) -> bool {
        if self.is_losing_heavily() {
            return false;
        }
        let suspect = self.send_paths.at(u16::from(number));
        let since = suspect.moved_at;
        let clear_below = if suspect.probes >= enough.saturating_mul(2) {
            u64::MAX
        } else {
            u64::from(self.min_rtt_ns()) * 2
        };
        self.paths()
            .filter(|sibling| *sibling != number)
            .any(|sibling| {
                let sibling = self.send_paths.at(u16::from(sibling));
                sibling.state == PathState::Active
                    && sibling.probes == 0
                    && sibling.echoed_tsn != u32::MAX
                    && sibling.retry_at > since
                    && u64::from(sibling.latest_rtt_ns) < clear_below
            })
            && (!self.is_much_marked() || suspect.probes >= enough.saturating_mul(4))
    }

    /// Half of what was acknowledged in this and the last epoch was marked, or more. (PROBEs are marked, too.)
    fn is_much_marked(&self) -> bool {
        let sum =
            |of: fn(&Epoch) -> u16| u32::from(of(&self.epoch)) + u32::from(of(&self.last_epoch));
        let marked = sum(|epoch| epoch.marked);
        marked != 0 && marked * 2 >= sum(|epoch| epoch.acknowledged)
    }

    /// Probes a sibling that has nothing in flight and so makes no progress by itself, but could show that the peer is there.
    // spec: MR-FENCE-001
    pub(super) fn ask_witness(&mut self, number: u8) {
        let since = self.send_paths.at(u16::from(number)).moved_at;
        let witness = self
            .paths()
            .filter(|sibling| {
                let sibling = self.send_paths.at(u16::from(*sibling));
                sibling.state == PathState::Active
                    && sibling.inflight.is_empty()
                    && sibling.moved_at <= since
            })
            .min_by_key(|sibling| self.send_paths.at(u16::from(*sibling)).probes);
        if let Some(witness) = witness {
            self.probe_due.insert(witness);
            self.set_due(due::PROBES);
        }
    }

    /// Begins to end a path's generation.
    pub(super) fn fence(&mut self, now: Instant, number: u8) {
        let path = self.send_paths.at_mut(u16::from(number));
        path.state = PathState::Fencing;
        path.backoff = 0;
        path.probes = 0;
        let plane = path.plane;
        self.controller.close(number);
        self.statistics.fences = self.statistics.fences.wrapping_add(1);
        self.schedule_reopening(now, number, Duration::ZERO);
        self.plane_may_be_down(plane);
    }

    fn plane_may_be_down(&mut self, plane: u8) {
        let alive = self.paths().any(|path| {
            let path = self.send_paths.at(u16::from(path));
            path.plane == plane
                && matches!(
                    path.state,
                    PathState::Active | PathState::Draining | PathState::Suspect
                )
        });
        if !alive {
            // spec: MR-FENCE-011
            self.planes_down |= 1 << plane;
            self.events = true;
        }
    }

    /// The receiver has frozen a generation and says what of it arrived: the rest goes over other paths, and the path opens anew.
    pub(crate) fn handle_fence_ack(
        &mut self,
        now: Instant,
        config: &EndpointConfig,
        block: &AckBlock,
    ) -> Result<(), DropReason> {
        self.check_block(block)?;
        let path = self.send_paths.at_mut(u16::from(block.path));
        // spec: MR-FENCE-009
        if path.state != PathState::Fencing || path.generation != block.generation {
            return Err(DropReason::WrongGeneration);
        }
        let lists = [
            core::mem::take(&mut path.lost),
            core::mem::take(&mut path.inflight),
        ];
        let (plane, failed) = (path.plane, path.entropy);
        let mut block = *block;
        if crate::planted::Bug::FenceIgnoresVector.is_planted() {
            block.sack = [0; 4];
        }
        // spec: MR-FENCE-006
        for mut list in lists {
            self.sort_out(&block, &mut list);
            self.slots.append(&mut self.orphans, list);
        }
        self.answered_at = now;
        self.entropies.avoid(plane, failed);
        let entropy = self.fresh_entropy(config, plane);
        let path = self.send_paths.at_mut(u16::from(block.path));
        // spec: MR-FENCE-007
        path.reopen(entropy);
        self.schedule_reopening(now, block.path, Duration::ZERO);
        self.fence_due.remove(block.path);
        Ok(())
    }

    /// The next try of a path that is fenced or reopens.
    pub(super) fn schedule_reopening(&mut self, now: Instant, number: u8, after: Duration) {
        self.send_paths.at_mut(u16::from(number)).retry_at = now + after;
        self.timers.advance(Timer::Paths, now + after);
    }

    /// FENCEs and reopening probes whose time has come.
    pub(super) fn paths_timeout(&mut self, now: Instant, config: &EndpointConfig) {
        let mut next = Instant::FAR_FUTURE;
        for number in self.paths() {
            let record = *self.send_paths.at(u16::from(number));
            if !matches!(record.state, PathState::Fencing | PathState::Reopening) {
                continue;
            }
            if record.retry_at > now {
                next = next.min(record.retry_at);
                continue;
            }
            if record.state == PathState::Fencing {
                self.fence_due.insert(number);
                self.set_due(due::FENCES);
            } else {
                // spec: MR-FENCE-010
                if record.probes != 0 {
                    // That source port did not answer either. Nothing is outstanding, so the path may move freely.
                    self.entropies.avoid(record.plane, record.entropy);
                    let entropy = self.fresh_entropy(config, record.plane);
                    self.send_paths
                        .at_mut(u16::from(number))
                        .change_entropy(entropy);
                }
                self.probe_due.insert(number);
                self.set_due(due::PROBES);
            }
            let retry = now + self.back_off(number);
            self.send_paths.at_mut(u16::from(number)).retry_at = retry;
            next = next.min(retry);
        }
        self.timers.set(Timer::Paths, next);
    }

    /// The pause before a path is tried again. It doubles each time; a random part keeps the paths of a plane that failed together
    /// from being tried together, so that one of them soon sees it return.
    // spec: MR-FENCE-003, MR-FENCE-010
    fn back_off(&mut self, number: u8) -> Duration {
        let timeout = 2 * u64::from(self.min_rtt_ns());
        let base = timeout.max(self.config.min_probe_timeout.as_nanos());
        let path = self.send_paths.at_mut(u16::from(number));
        let pause = base
            .saturating_mul(1 << path.backoff.min(30))
            .min(LONGEST_BACKOFF.as_nanos())
            .min(self.config.failure_timeout.as_nanos() / 16);
        path.backoff = path.backoff.saturating_add(1);
        let random = u64::from(self.entropies.random(1 << 15));
        Duration::from_nanos(pause / 2 + ((pause * random) >> 16))
    }

    /// A path of a plane answered: the others of the plane are tried at once.
    fn plane_answered(&mut self, now: Instant, plane: u8) {
        for number in self.paths() {
            let path = self.send_paths.at_mut(u16::from(number));
            if path.plane == plane && path.state == PathState::Reopening && path.backoff > 1 {
                path.backoff = 0;
                self.schedule_reopening(now, number, Duration::ZERO);
            }
        }
    }

    /// A source port that no other path of the plane uses and that did not fail lately.
    // spec: MR-PATH-021
    pub(super) fn fresh_entropy(&mut self, config: &EndpointConfig, plane: u8) -> u16 {
        let (paths, agreed) = (&self.send_paths, self.agreed.paths);
        let taken = |entropy| {
            (0..u16::from(agreed)).any(|path| {
                let path = paths.at(path);
                path.state != PathState::Unused && path.plane == plane && path.entropy == entropy
            })
        };
        EntropyChooser::choose(&mut self.entropies, plane, config.entropies, taken)
    }

    /// Moves a path that has nothing outstanding to another source port, in the same generation.
    // spec: MR-PATH-019
    pub(super) fn redirect_drained(&mut self, config: &EndpointConfig, number: u8) {
        let record = self.send_paths.at(u16::from(number));
        let (plane, state, rtt) = (record.plane, record.state, record.rtt);
        let entropy = self.fresh_entropy(config, plane);
        let path = self.send_paths.at_mut(u16::from(number));
        path.change_entropy(entropy);
        if state == PathState::Draining {
            path.state = PathState::Active;
            self.set_usable(number, true);
            self.offer(number);
        } else {
            // It moves often under marks; the estimate stays the best there is.
            path.rtt = rtt;
        }
    }

    /// Compares the paths; one that is persistently much worse than the others is drained and moved.
    // spec: MR-PATH-022
    pub(super) fn compare_paths(&mut self) {
        let (mut good, mut bad, mut members) = (0u32, 0u32, 0u32);
        for number in self.usable.iter() {
            let path = self.send_paths.at(u16::from(number));
            good += u32::from(path.epoch_good);
            bad += u32::from(path.epoch_bad);
            members += 1;
        }
        if members < 2 {
            return;
        }
        for number in self.usable.iter() {
            let path = self.send_paths.at_mut(u16::from(number));
            let (own_good, own_bad) = (u32::from(path.epoch_good), u32::from(path.epoch_bad));
            let own = own_good + own_bad;
            if own < COMPARED_PACKETS {
                continue;
            }
            path.epoch_good = 0;
            path.epoch_bad = 0;
            let (other_good, other_bad) =
                (good.saturating_sub(own_good), bad.saturating_sub(own_bad));
            let others = (other_good + other_bad).max(1);
            // Bad more than 4 x as often as the others, plus 2 %.
            let worse = u64::from(own_bad) * u64::from(others) * 50
                > (u64::from(other_bad) * 200 + u64::from(others)) * u64::from(own);
            path.worse = if worse {
                (path.worse + 1).min(SendPath::MUST_MOVE)
            } else {
                0
            };
            // One that is drained would never hear what makes it active again.
            if path.worse >= SendPath::MUST_MOVE && !path.is_drained() {
                path.state = PathState::Draining;
                let (plane, entropy) = (path.plane, path.entropy);
                self.entropies.avoid(plane, entropy);
                self.set_usable(number, false);
                return;
            }
        }
    }
}
