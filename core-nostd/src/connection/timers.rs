//! What happens when nothing does: probes for tails, retries, keep-alive, giving up.

use super::{Connection, State, due};
use crate::config::EndpointConfig;
use crate::path::rtt::Rtt;
use crate::path::send::{PathState, SendPath};
use crate::rate::controller::Controller;
use crate::time::{Duration, Instant};

/// What a timer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    /// A delayed acknowledgment.
    Ack,
    /// The pacer.
    Pace,
    /// A path has been silent for too long. May fire early.
    Probe,
    /// A refused message begins again.
    Retry,
    /// INIT, CLOSE: sent until answered; the end of lingering.
    Setup,
    /// Keep-alive and giving up. May fire early.
    Idle,
    /// FENCEs and reopening paths.
    Paths,
    /// The answer to an announcement.
    Hint,
}

const TIMERS: usize = 8;

/// When each fires.
#[derive(Debug)]
pub(super) struct Timers {
    at: [Instant; TIMERS],
    /// What [`Self::next`] said last, or earlier if a timer was set to fire before.
    earliest: Instant,
    /// A timer was set to fire before what [`Self::next`] said.
    earlier: bool,
}

impl Timers {
    pub const fn new() -> Self {
        Self {
            at: [Instant::FAR_FUTURE; TIMERS],
            earliest: Instant::FAR_FUTURE,
            earlier: false,
        }
    }

    #[inline(always)]
    pub fn set(&mut self, timer: Timer, at: Instant) {
        self.at[timer as usize] = at;
        if at < self.earliest {
            self.earliest = at;
            self.earlier = true;
        }
    }

    /// Sets it unless it fires earlier already.
    #[inline(always)]
    pub fn advance(&mut self, timer: Timer, at: Instant) {
        if at < self.at[timer as usize] {
            self.set(timer, at);
        }
    }

    #[inline(always)]
    pub fn clear(&mut self, timer: Timer) {
        self.at[timer as usize] = Instant::FAR_FUTURE;
    }

    /// When the next fires.
    #[inline]
    pub fn next(&mut self) -> Instant {
        let earliest = |least: Instant, at: &Instant| if *at < least { *at } else { least };
        self.earliest = self.at.iter().fold(Instant::FAR_FUTURE, earliest);
        self.earlier = false;
        self.earliest
    }

    /// Whether it has fired; if so it is cleared.
    fn take(&mut self, timer: Timer, now: Instant) -> bool {
        let fired = self.at[timer as usize] <= now;
        if fired {
            self.clear(timer);
        }
        fired
    }
}

/// How long after a loss the end of a burst is probed early, in round trips.
pub(super) const LOSS_MEMORY: u64 = 1024;
/// Longest pause between two probes of a path.
const LONGEST_PROBE: u64 = 100_000_000;

/// However small its share, a connection that has nothing else to send sends a PROBE so often, nanoseconds.
const SLOWEST_PROBES: u64 = 1_000_000;

/// An acknowledgment that is told to have been held back longer, in round trips, was lost and told again.
const LONGEST_DELAY: u64 = 8;

/// For how long the peer may hold an acknowledgment back, nanoseconds.
fn held_back(peer_delay: u16, round_trip_ns: u32) -> u64 {
    (u64::from(peer_delay) << 4).min(LONGEST_DELAY * u64::from(round_trip_ns))
}

/// What the probing of all paths depends on.
struct ProbeRules {
    /// Over all paths: for those that were never answered.
    rtt: Rtt,
    initial_ns: u32,
    least_ns: u64,
    peer_delay: u16,
    /// So many probes go early where nothing will follow that could prove a loss.
    early: u8,
    /// Nothing will follow on any path: the burst is over.
    last: bool,
    /// Nothing will follow soon on a path whose last packet was sent again, since the window is small.
    resent: bool,
    /// So many probes are not backed off.
    free: u8,
    longest_ns: u64,
}

impl ProbeRules {
    /// When a path with something in flight is to be probed.
    fn time(&self, path: &SendPath) -> Instant {
        let rtt = if path.rtt.is_known() {
            &path.rtt
        } else {
            &self.rtt
        };
        let last = self.last || (self.resent && path.resent);
        let timeout = if path.probes < self.early && last && rtt.is_known() {
            // spec: MR-PROBE-004
            u64::from(rtt.smoothed_or(self.initial_ns) / 10).max(self.least_ns)
        } else {
            let doublings = u32::from(path.probes.saturating_sub(self.free)).min(20);
            // spec: MR-PROBE-010
            let delay = held_back(self.peer_delay, rtt.smoothed_or(0));
            let timeout = rtt.timeout_ns(self.initial_ns).max(self.least_ns);
            (timeout << doublings).min(self.longest_ns) + delay
        };
        path.moved_at + Duration::from_nanos(timeout)
    }
}

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// When [`Self::handle_timeout`] or the sending of data has something to do.
    #[inline]
    pub(crate) fn next_timeout(&mut self) -> Instant {
        self.timers.next()
    }

    /// Whether that has become earlier since it was asked.
    #[inline]
    pub(crate) const fn is_timeout_earlier(&self) -> bool {
        self.timers.earlier
    }

    /// Timers that have fired.
    pub(crate) fn handle_timeout(&mut self, now: Instant, config: &EndpointConfig) {
        self.timers.take(Timer::Pace, now);
        if self.timers.take(Timer::Ack, now) {
            self.ack_now.union(self.ack_later);
            self.ack_later = crate::storage::Bits::EMPTY;
        }
        if self.timers.take(Timer::Hint, now) {
            self.set_due(due::HINT);
        }
        if self.timers.take(Timer::Probe, now) {
            self.probe_timeout(now);
        }
        if self.timers.take(Timer::Paths, now) {
            self.paths_timeout(now, config);
        }
        if self.timers.take(Timer::Retry, now) {
            self.retry_waiting(now);
        }
        if self.timers.take(Timer::Setup, now) {
            self.setup_timeout(now);
        }
        if self.timers.take(Timer::Idle, now) {
            self.idle_timeout(now);
        }
    }

    /// When a path with something in flight is to be probed.
    pub(super) fn probe_time(&self, number: u8) -> Instant {
        let path = self.send_paths.at(u16::from(number));
        self.probe_rules(path.moved_at).time(path)
    }

    /// What the probing of all paths depends on.
    // spec: MR-PROBE-001
    fn probe_rules(&self, now: Instant) -> ProbeRules {
        let lost = self.lost_lately(now);
        ProbeRules {
            rtt: self.rtt,
            initial_ns: self.config.initial_rtt.as_nanos_u32(),
            least_ns: self.config.min_probe_timeout.as_nanos(),
            // Often enough before the connection fails.
            longest_ns: LONGEST_PROBE.min(self.config.failure_timeout.as_nanos() / 16),
            peer_delay: self.peer_delay,
            // Under heavy loss the probe itself is likely to be lost: two.
            early: match (lost, self.loss_share >> 6) {
                (false, _) => 0,
                (true, 0..30) => 1,
                (true, _) => 2,
            },
            last: self.burst_is_over(),
            resent: !self.is_clear(),
            // Marks make it rarer at once; else it is backed off when it begins to prove something.
            // spec: MR-PROBE-003
            free: if self.last_epoch.marked == 0 {
                self.probes_that_prove(now)
            } else {
                1
            },
        }
    }

    pub(super) fn burst_is_over(&self) -> bool {
        self.active_count == 0 && self.response_first == crate::message::outgoing::NONE
    }

    fn lost_lately(&self, now: Instant) -> bool {
        now < self.losing_until
    }

    /// How many unanswered probes in a row are no coincidence at the rate at which packets are being lost: a probe or its answer is
    /// lost with about twice that probability, and the product shall be below 10^-6.
    fn probes_that_prove(&self, now: Instant) -> u8 {
        match self.loss_share >> 6 {
            0 => {
                if self.lost_lately(now) {
                    3
                } else {
                    2
                }
            }
            1..3 => 3,
            3..12 => 4,
            12..25 => 5,
            25..60 => 6,
            60..120 => 9,
            _ => 12,
        }
    }

    /// Probes the silent path that waits longest, if the limit of probes allows; sets the timer to the next.
    fn probe_timeout(&mut self, now: Instant) {
        self.controller.tick(now);
        let mut next = Instant::FAR_FUTURE;
        let mut waiting: Option<(Instant, u8)> = None;
        let rules = self.probe_rules(now);
        for number in self.paths() {
            let path = self.send_paths.at(u16::from(number));
            if path.inflight.is_empty()
                || !matches!(
                    path.state,
                    PathState::Active | PathState::Draining | PathState::Suspect
                )
            {
                continue;
            }
            let at = rules.time(path);
            if at > now {
                next = next.min(at);
                continue;
            }
            // Its second probe was not answered in time.
            // spec: MR-PROBE-007
            if path.probes >= 2 {
                self.suspect(number);
                let enough = self.probes_that_prove(now);
                // spec: MR-FENCE-001
                if self.send_paths.at(u16::from(number)).probes >= enough {
                    if self.may_fence(number, enough) {
                        self.fence(now, number);
                        continue;
                    }
                    if now >= self.probe_allowed_at {
                        self.ask_witness(number);
                    }
                }
            }
            if waiting.is_none_or(|(other, _)| at < other) {
                waiting = Some((at, number));
            }
        }
        if let Some((_, number)) = waiting {
            // spec: MR-PROBE-005
            if now >= self.probe_allowed_at {
                self.probe_due.insert(number);
                self.set_due(due::PROBES);
                // No faster than data may go; one in srtt/16, or srtt/128 where nothing is congested; rarer and rarer while nothing at all is acknowledged.
                let silence = now.since(self.answered_at).as_nanos();
                let part = if self.is_clear() { 128 } else { 16 };
                let pause = (u64::from(self.min_rtt_ns()) / part)
                    .max(silence / 64)
                    .max(self.pacer.full_interval_ns().min(SLOWEST_PROBES));
                self.probe_allowed_at = now + Duration::from_nanos(pause);
            }
            // Others may wait.
            next = next.min(self.probe_allowed_at.max(now + Duration::from_nanos(1)));
        }
        self.timers.set(Timer::Probe, next);
    }

    /// For how long the peer lately held acknowledgments back, nanoseconds.
    pub(super) fn peer_delay_ns(&self, round_trip_ns: u32) -> u64 {
        held_back(self.peer_delay, round_trip_ns)
    }

    /// The first packet after a pause is outstanding: from now on the peer owes an answer.
    pub(super) fn something_outstanding(&mut self, now: Instant) {
        self.answered_at = self.answered_at.max(now);
        self.timers.advance(Timer::Idle, now + self.patience());
    }

    /// How long the peer may be silent, with nothing outstanding but something to be sent or a response awaited, before it is asked whether it is there.
    pub(super) fn patience(&self) -> Duration {
        let patience = Duration::from_nanos(self.config.failure_timeout.as_nanos() / 4);
        if self.config.keep_alive == Duration::ZERO {
            patience
        } else {
            patience.min(self.config.keep_alive)
        }
    }

    fn idle_timeout(&mut self, now: Instant) {
        if !self.is_open() {
            return;
        }
        let timeout = self.config.failure_timeout;
        if self.half_open && self.incoming_connection {
            // [`Self::setup_timeout`] gives it up.
            return;
        }
        if self.slots.used() != 0 {
            // spec: MR-TIME-001
            let mut deadline = self.answered_at + timeout;
            if crate::planted::Bug::SilentFailure.is_planted() {
                deadline = now + timeout;
            }
            if now >= deadline {
                self.lose();
                return;
            }
            // Not later: what was acknowledged may leave a response awaited.
            self.timers
                .set(Timer::Idle, deadline.min(now + self.patience()));
            return;
        }
        let keep_alive = self.config.keep_alive;
        // spec: MR-TIME-001, MR-TIME-002, MR-TIME-005
        let (silence, rest) = if self.reads != 0 || self.half_open || !self.burst_is_over() {
            let rest = Duration::from_nanos(timeout.as_nanos() * 3 / 4);
            (self.patience(), rest)
        } else if keep_alive == Duration::ZERO {
            return;
        } else {
            // spec: MR-TIME-002
            (keep_alive, timeout)
        };
        let next = if self.asked == 0 {
            let due = self.heard_at + silence;
            if now >= due {
                self.answered_at = now;
                self.ask(now)
            } else {
                due
            }
        } else if now >= self.answered_at + rest {
            self.lose();
            return;
        } else {
            self.ask(now)
        };
        self.timers.set(Timer::Idle, next);
    }

    /// Asks the peer whether it is there, over every sound path. Returns when to ask again.
    // spec: MR-TIME-002, MR-TIME-004
    fn ask(&mut self, now: Instant) -> Instant {
        for number in self.paths() {
            if Self::counts(self.send_paths.at(u16::from(number)).state) {
                self.probe_due.insert(number);
            }
        }
        self.set_due(due::PROBES);
        let first =
            (4 * u64::from(self.min_rtt_ns())).max(self.config.min_probe_timeout.as_nanos());
        let longest = self.config.failure_timeout.as_nanos() / 16;
        let pause = (first << self.asked.min(16)).min(longest).max(1);
        self.asked = self.asked.saturating_add(1);
        now + Duration::from_nanos(pause)
    }

    /// Starts to watch over an established connection.
    pub(super) fn watch(&mut self, now: Instant) {
        let keep_alive = self.config.keep_alive;
        let first = if keep_alive == Duration::ZERO {
            self.config.failure_timeout
        } else {
            keep_alive
        };
        self.timers.set(Timer::Idle, now + first);
    }

    /// The ACCEPT came again: the peer has not heard of this side since.
    pub(crate) fn probe_again(&mut self) {
        self.probe_due.insert(0);
        self.set_due(due::PROBES);
    }

    /// Whether a state has a time-out of its own.
    pub(super) const fn is_setting_up(&self) -> bool {
        matches!(self.state, State::Connecting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_once() {
        let at = Instant::from_nanos;
        let mut timers = Timers::new();
        assert_eq!(timers.next(), Instant::FAR_FUTURE);
        timers.set(Timer::Probe, at(50));
        timers.advance(Timer::Probe, at(70));
        timers.advance(Timer::Ack, at(20));
        assert_eq!(timers.next(), at(20));
        assert!(timers.take(Timer::Ack, at(20)) && !timers.take(Timer::Ack, at(20)));
        assert!(!timers.take(Timer::Probe, at(49)) && timers.take(Timer::Probe, at(50)));
        assert_eq!(timers.next(), Instant::FAR_FUTURE);
    }
}
