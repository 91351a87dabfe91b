//! Establishing and ending a connection.

use super::{Connection, State, Timer, Timers, due};
use crate::config::EndpointConfig;
use crate::handshake::{Agreed, agree};
use crate::path::receive::ReceivePath;
use crate::path::send::{PathState, SendPath};
use crate::rate::controller::Controller;
use crate::time::{Duration, Instant};
use crate::wire::{Close, CloseMode as WireCloseMode, DATA_SIZE, Parameters, PlaneAddress};
use crate::work::{CloseMode, CloseReason, Status};

/// Round trips, or at least so long, for which repeated CLOSEs are answered.
const LINGER: Duration = Duration::from_millis(1);

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// Begins to ask for a connection.
    pub(crate) fn start_connecting(&mut self, now: Instant) {
        self.heard_at = now;
        self.set_due(due::INIT);
        self.timers.set(Timer::Setup, now + self.setup_pause());
    }

    /// Pause before the next INIT or CLOSE; doubles.
    // spec: MR-SETUP-014, MR-CLOSE-002
    fn setup_pause(&self) -> Duration {
        let base = (4 * u64::from(self.min_rtt_ns())).max(self.config.min_probe_timeout.as_nanos());
        Duration::from_nanos((base << self.setup_attempts.min(16)).min(250_000_000))
    }

    /// INIT, CLOSE: again, until the time is up.
    pub(super) fn setup_timeout(&mut self, now: Instant) {
        match self.state {
            State::Connecting | State::Closing => {
                let reference = if self.is_setting_up() {
                    self.heard_at
                } else {
                    self.answered_at.max(self.heard_at)
                };
                // spec: MR-SETUP-014, MR-CLOSE-002
                if now.since(reference) >= self.config.failure_timeout {
                    let reason = if self.is_setting_up() {
                        CloseReason::Unreachable
                    } else {
                        CloseReason::LocalClose
                    };
                    self.end(reason, Status::ConnectionLost);
                    return;
                }
                self.setup_attempts = self.setup_attempts.saturating_add(1);
                self.retried = false;
                self.set_due(if self.is_setting_up() {
                    due::INIT
                } else {
                    due::CLOSE
                });
                self.timers.set(Timer::Setup, now + self.setup_pause());
            }
            State::Lingering => self.state = State::Closed,
            State::Established if self.incoming_connection => {
                if !self.half_open {
                    return;
                }
                // spec: MR-SETUP-016
                if now.since(self.answered_at) >= self.config.failure_timeout {
                    self.end(CloseReason::Unreachable, Status::ConnectionLost);
                    return;
                }
                self.setup_attempts = self.setup_attempts.saturating_add(1);
                self.set_due(due::ACCEPT);
                self.timers.set(Timer::Setup, now + self.setup_pause());
            }
            _ => {}
        }
    }

    /// Whether this side asks for the connection at an address.
    pub(crate) fn was_asked_at(&self, ip: core::net::IpAddr) -> bool {
        let asked = |plane: &PlaneAddress| plane.socket().ip() == ip.to_canonical();
        self.peer.as_slice().iter().any(asked)
    }

    /// A RETRY: the same INIT, with the cookie, at once; further ones wait for the timer.
    pub(crate) fn retry(&mut self, now: Instant, cookie: crate::wire::Cookie) {
        // spec: MR-SETUP-008
        self.cookie = Some(cookie);
        // spec: MR-SETUP-021
        if core::mem::replace(&mut self.retried, true) {
            return;
        }
        self.set_due(due::INIT);
        self.timers.set(Timer::Setup, now + self.setup_pause());
    }

    /// Both sides' parameters are known: messages may flow.
    pub(crate) fn establish(
        &mut self,
        now: Instant,
        config: &EndpointConfig,
        peer_id: u32,
        parameters: &Parameters,
        hint_mbps: u32,
    ) -> bool {
        // spec: MR-SETUP-019
        let offered = if self.incoming_connection {
            PATHS as u8
        } else {
            self.config.paths
        };
        let Some(own) = Self::offer_parameters(config, offered, self.config.service) else {
            return false;
        };
        // spec: MR-SETUP-011
        self.agreed = agree(&own, parameters);
        self.peer_id = peer_id;
        self.peer = parameters.planes;
        if !self.incoming_connection {
            self.setup_answered(now);
        }
        let datagram = usize::from(self.agreed.payload_bytes) + DATA_SIZE + self.trailer().size();
        self.wire_packet_bytes = datagram as u32 + u32::from(config.overhead_bytes);
        self.state = State::Established;
        self.setup_attempts = 0;
        let Agreed { paths, planes, .. } = self.agreed;
        for number in 0..paths {
            // spec: MR-SETUP-013
            let plane = number % planes.max(1);
            let entropy = self.fresh_entropy(config, plane);
            *self.send_paths.at_mut(u16::from(number)) = SendPath {
                plane,
                entropy,
                state: PathState::Draining,
                moved_at: now,
                ..SendPath::UNUSED
            };
            *self.receive_paths.at_mut(u16::from(number)) = ReceivePath::new(0, entropy);
        }
        self.network_changed(config);
        for number in 0..paths {
            // The acceptor has seen the peer answer only at the address its INIT came from: what goes to the others is probed first.
            if self.incoming_connection
                && self.send_paths.at(u16::from(number)).plane != self.accept_plane
            {
                self.send_paths.at_mut(u16::from(number)).state = PathState::Reopening;
                self.schedule_reopening(now, number, Duration::ZERO);
            } else {
                self.activate_path(number);
            }
        }
        if hint_mbps != 0 && config.hints {
            self.controller.hinted(now, hint_mbps);
        }
        self.follow_hint();
        self.timers.clear(Timer::Setup);
        self.watch(now);
        if !self.incoming_connection {
            // spec: MR-SETUP-017
            // So that the acceptor knows that its ACCEPT arrived, and both know a round-trip time.
            self.probe_due.insert(0);
            self.set_due(due::PROBES);
            // The acceptor's share of this side, as ACCEPT brought this side's of the acceptor.
            // spec: MR-SETUP-022
            if config.hints {
                self.set_due(due::HINT);
            }
            self.report_connected = true;
            self.events = true;
            self.half_open = true;
            self.timers.set(Timer::Idle, now + self.patience());
        }
        self.heard_at = now;
        self.answered_at = now;
        true
    }

    /// This side is the acceptor of an INIT that came in on a plane.
    pub(crate) fn accept(
        &mut self,
        now: Instant,
        config: &EndpointConfig,
        peer_id: u32,
        parameters: &Parameters,
        plane: u8,
    ) -> bool {
        self.incoming_connection = true;
        self.accept_plane = plane;
        self.config.service = parameters.service;
        if !self.establish(now, config, peer_id, parameters, 0) {
            return false;
        }
        self.half_open = true;
        self.set_due(due::ACCEPT);
        self.timers.set(Timer::Setup, now + self.setup_pause());
        true
    }

    /// The same INIT again: its ACCEPT was lost.
    // spec: MR-SETUP-015
    pub(crate) fn accept_again(&mut self) {
        if self.state == State::Established {
            self.retried = true;
            self.set_due(due::ACCEPT);
        }
    }

    /// A valid datagram of the peer came in: first of all it says that the peer is there.
    #[inline]
    pub(crate) fn heard_from_peer(&mut self, now: Instant, config: &EndpointConfig) {
        self.heard_at = now;
        self.asked = 0;
        if self.slots.used() == 0 {
            self.answered_at = now;
        }
        if self.half_open {
            self.confirmed(now, config);
        }
    }

    /// An INIT was answered by ACCEPT, or ACCEPT by the first datagram. If it was sent once (INIT: or again at once for a RETRY, which is what was
    /// answered then), and not so long ago that it should have been sent again, that was a round trip.
    // spec: MR-LOSS-009
    fn setup_answered(&mut self, now: Instant) {
        let sample = now.since(self.data_sent_at);
        let twice = self.setup_attempts != 0 || (self.incoming_connection && self.retried);
        if !twice && sample != Duration::ZERO && sample <= self.setup_pause() {
            let sample = sample.max(self.config.least_rtt).as_nanos_u32();
            self.min_rtt.sample(now, sample, false);
        }
    }

    /// The first datagram after the INIT or ACCEPT: the peer is there, and knows of the connection.
    #[cold]
    fn confirmed(&mut self, now: Instant, config: &EndpointConfig) {
        self.half_open = false;
        if self.incoming_connection {
            self.setup_answered(now);
            self.network_changed(config);
            self.report_connected = true;
            self.events = true;
            self.timers.clear(Timer::Setup);
            self.watch(now);
        }
    }

    /// The application wants to end.
    pub(crate) fn close(&mut self, now: Instant, mode: CloseMode) {
        match (self.state, mode) {
            (State::Lingering | State::Closed, _) => {}
            (State::Connecting, _) => self.end(CloseReason::LocalClose, Status::Flushed),
            (_, CloseMode::Abort(code)) => {
                // spec: MR-CLOSE-006
                self.close_mode = WireCloseMode::Abort;
                self.close_code = code;
                self.end(CloseReason::LocalClose, Status::Flushed);
                // Told once, and again when the peer goes on: it is not waited for.
                self.state = State::Lingering;
                self.set_due(due::CLOSE);
                self.timers.set(Timer::Setup, now + self.linger());
            }
            (State::Established, CloseMode::Drain) => {
                self.close_mode = WireCloseMode::Drain;
                // spec: MR-CLOSE-001
                self.state = State::Closing;
                self.timers.clear(Timer::Setup);
                self.maybe_finish(now);
            }
            (_, CloseMode::Drain) => {}
        }
    }

    // spec: MR-CLOSE-005
    fn linger(&self) -> Duration {
        Duration::from_nanos(8 * u64::from(self.min_rtt_ns())).max(LINGER)
    }

    /// While closing: when this side's work is done, the peer is told.
    pub(crate) fn maybe_finish(&mut self, now: Instant) {
        // spec: MR-CLOSE-001, MR-CLOSE-003
        if !self.is_closing() || self.has_work() {
            return;
        }
        if self.state == State::Closing {
            if !self.has_due(due::CLOSE) && !self.close_sent {
                self.close_sent = true;
                self.setup_attempts = 0;
                self.answered_at = self.answered_at.max(now);
                self.set_due(due::CLOSE);
                self.timers.set(Timer::Setup, now + self.setup_pause());
            }
        } else {
            self.finish_for_peer(now);
        }
    }

    fn finish_for_peer(&mut self, now: Instant) {
        // spec: MR-CLOSE-003
        self.set_due(due::CLOSE_ACK);
        self.end(CloseReason::PeerClose, Status::Flushed);
        self.state = State::Lingering;
        self.timers.set(Timer::Setup, now + self.linger());
    }

    /// The peer wants to end.
    pub(crate) fn handle_close(&mut self, now: Instant, close: &Close) {
        match (self.state, close.mode) {
            // spec: MR-CLOSE-005
            (State::Lingering, WireCloseMode::Drain) => {
                if !self.tells_abort_again() {
                    self.set_due(due::CLOSE_ACK);
                }
            }
            (State::Lingering | State::Closed | State::Connecting, _) => {}
            (_, WireCloseMode::Abort) => {
                // spec: MR-CLOSE-007
                self.end(CloseReason::PeerAbort(close.reason), Status::Flushed);
                self.state = State::Closed;
            }
            // spec: MR-CLOSE-004
            (State::Closing, WireCloseMode::Drain) if self.close_sent => self.finish_for_peer(now),
            (_, WireCloseMode::Drain) => {
                self.state = State::PeerClosing;
                self.maybe_finish(now);
            }
        }
    }

    /// Something came for a connection that is over. If this side broke it off the peer did not hear it: it is told again.
    // spec: MR-CLOSE-011
    #[cold]
    pub(crate) fn tells_abort_again(&mut self) -> bool {
        let again = self.state == State::Lingering && self.close_mode == WireCloseMode::Abort;
        if again {
            self.set_due(due::CLOSE);
        }
        again
    }

    /// The peer has finished, too.
    pub(crate) fn handle_close_ack(&mut self) {
        if self.state == State::Closing && self.close_sent {
            self.end(CloseReason::LocalClose, Status::Flushed);
        }
    }

    /// No path answers.
    pub(super) fn lose(&mut self) {
        self.end(CloseReason::Unreachable, Status::ConnectionLost);
    }

    /// The peer refused the connection.
    pub(crate) fn refused(&mut self, reason: crate::wire::RejectReason) {
        if self.state == State::Connecting {
            // spec: MR-SETUP-018
            self.end(CloseReason::Refused(reason), Status::Flushed);
        }
    }

    /// Ends every open operation with a status, and the connection with a reason.
    fn end(&mut self, reason: CloseReason, status: Status) {
        // spec: MR-CLOSE-008
        if self.closed.is_some() || matches!(self.state, State::Lingering | State::Closed) {
            return;
        }
        self.state = State::Closed;
        for stream in 0..STREAMS as u16 {
            let record = self.streams.at_mut(stream);
            record.flush = true;
            record.report = None;
            record.failed = Some(record.failed.unwrap_or(status));
            self.flush_messages(stream, status);
        }
        self.report_streams = true;
        // What the application was never told of is forgotten silently.
        let unknown = self.incoming_connection && (self.half_open || self.report_connected);
        self.report_connected = false;
        self.closed = (!unknown).then_some(reason);
        self.events = true;
        self.planes_reported = self.planes_down;
        self.timers = Timers::new();
        self.due &= due::CLOSE | due::CLOSE_ACK;
    }

    /// Whether nothing is left to be done or told: the record may be reused.
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Closed
            && self.closed.is_none()
            && !self.has_events()
            && self.due & (due::CLOSE | due::CLOSE_ACK) == 0
    }
}
