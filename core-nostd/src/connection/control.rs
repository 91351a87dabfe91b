//! What is sent that is not data: setting up and ending, probes, fences, announcements and hints.

use super::outbound::GAP_MEMORY;
use super::{Connection, PathState, Shared, State, due};
use crate::path::inflight::NONE;
use crate::stats::DropReason;
use crate::time::{Duration, Instant};
use crate::transmit::{Class, Ecn, HEADER_BUFFER, Transmit};
use crate::wire::{
    ACK_SIZE, Accept, AckKind, Announce, Close, CloseAck, Demand, Fence, Flags, Hint, Init,
    Parameters, Planes, Probe, VERSION, encode_ack,
};

/// How long the answer to an ANNOUNCE waits for others' announcements: 127 of them take 0.9 us at 100 Gbit/s.
const HINT_DELAY: Duration = Duration::from_micros(2);

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// The next datagram that is due and is neither data nor ACK.
    #[inline(never)]
    pub(super) fn poll_control<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &mut Shared<R, V>,
        out: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        if self.has_due(due::INIT) {
            self.clear_due(due::INIT);
            return self.send_init(now, shared, out);
        }
        if self.has_due(due::ACCEPT) {
            self.clear_due(due::ACCEPT);
            return self.send_accept(now, shared, out);
        }
        if self.has_due(due::FENCE_ACKS) {
            if let Some(path) = self.fence_ack_due.pop_first() {
                return self.send_fence_ack(now, path, shared.hint_mbps, out);
            }
            self.clear_due(due::FENCE_ACKS);
        }
        if self.has_due(due::FENCES) {
            if let Some(path) = self.fence_due.pop_first() {
                return self.send_fence(path, out);
            }
            self.clear_due(due::FENCES);
        }
        if self.has_due(due::HINT) {
            self.clear_due(due::HINT);
            let hint = Hint {
                path: 0,
                generation: 0,
                connection: self.peer_id,
                number: self.hint_number,
                rate_mbps: shared.hint_mbps,
            };
            // spec: MR-HINT-007
            let length = hint.encode(out).ok()?;
            return self.over_sound_path(Class::Control, length, None);
        }
        if self.has_due(due::ANNOUNCE) {
            self.clear_due(due::ANNOUNCE);
            let demand = Demand::from_bytes(self.queued_bytes);
            let announce = Announce {
                path: 0,
                generation: 0,
                connection: self.peer_id,
                number: self.announce_number,
                demand,
            };
            let length = announce.encode(out).ok()?;
            return self.over_sound_path(Class::Control, length, None);
        }
        if self.has_due(due::CLOSE) {
            self.clear_due(due::CLOSE);
            let close = Close {
                connection: self.peer_id,
                source: self.local_id,
                reason: self.close_code,
                mode: self.close_mode,
            };
            let length = close.encode(out).ok()?;
            return self.over_sound_path(Class::Data, length, None);
        }
        if self.has_due(due::CLOSE_ACK) {
            self.clear_due(due::CLOSE_ACK);
            let length = CloseAck {
                connection: self.peer_id,
                source: self.local_id,
            }
            .encode(out)
            .ok()?;
            return self.over_sound_path(Class::Data, length, None);
        }
        if self.has_due(due::PROBES) {
            while let Some(path) = self.probe_due.pop_first() {
                if let Some(transmit) = self.send_probe(now, path, out) {
                    return Some(transmit);
                }
            }
            self.clear_due(due::PROBES);
        }
        None
    }

    /// What this side offers.
    pub(crate) fn offer_parameters(
        config: &crate::config::EndpointConfig,
        paths: u8,
        service: u32,
    ) -> Option<Parameters> {
        let mut list = [crate::wire::PlaneAddress::new(config.addresses[0], config.payload_bytes);
            crate::wire::MAX_PLANES];
        for (place, address) in list.iter_mut().zip(config.addresses) {
            *place = crate::wire::PlaneAddress::new(address, config.payload_bytes);
        }
        let planes = Planes::new(list.get(..usize::from(config.planes))?)?;
        let capabilities = if config.omit_checksum {
            crate::wire::Capabilities::NO_CHECKSUM
        } else {
            crate::wire::Capabilities::NONE
        };
        Some(Parameters {
            paths: paths.min(PATHS as u8),
            window: 256,
            streams: STREAMS as u16,
            open_messages: MESSAGES as u16,
            open_responses: MESSAGES as u16,
            capabilities,
            ingress_mbps: config.plane_mbps,
            service,
            planes,
        })
    }

    // spec: MR-SETUP-014
    fn send_init<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &mut Shared<R, V>,
        out: &mut [u8],
    ) -> Option<Transmit> {
        let parameters =
            Self::offer_parameters(&shared.config, self.config.paths, self.config.service)?;
        let init = Init {
            attempt: u32::from(self.setup_attempts),
            source: self.local_id,
            lowest_version: VERSION,
            highest_version: VERSION,
            cookie: self.cookie,
            parameters,
        };
        let length = init.encode(out).ok()?;
        // Each try over the next plane and another source port.
        let plane = self.setup_attempts
            % (self
                .peer
                .count()
                .min(usize::from(shared.config.planes))
                .max(1) as u8);
        let entropy = self.fresh_entropy(&shared.config, plane);
        self.data_sent_at = now;
        self.sealed(plane, entropy, length)
    }

    // spec: MR-SETUP-016
    fn send_accept<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &mut Shared<R, V>,
        out: &mut [u8],
    ) -> Option<Transmit> {
        let parameters = Self::offer_parameters(&shared.config, PATHS as u8, self.config.service)?;
        let accept = Accept {
            connection: self.peer_id,
            source: self.local_id,
            hint_mbps: shared.hint_mbps,
            version: VERSION,
            parameters,
        };
        let length = accept.encode(out).ok()?;
        let plane = self.accept_plane;
        let entropy = self.fresh_entropy(&shared.config, plane);
        self.data_sent_at = now;
        self.sealed(plane, entropy, length)
    }

    /// Setting up is always checked by CRC.
    // spec: MR-WIRE-011
    fn sealed(&self, plane: u8, entropy: u16, length: usize) -> Option<Transmit> {
        // spec: MR-WIRE-009, MR-WIRE-010
        let mut transmit = self.transmit(plane, entropy, Class::Data, length)?;
        transmit.trailer = true;
        transmit.length = length + crate::wire::CRC_SIZE;
        Some(transmit)
    }

    /// Sends what is in the buffer over a path that answers, other than `except`; over any path if none does.
    fn over_sound_path(
        &mut self,
        class: Class,
        length: usize,
        except: Option<u8>,
    ) -> Option<Transmit> {
        let paths = self.agreed.paths.max(1);
        // Repeated control takes another path each time.
        self.control_path = (self.control_path + 1) % paths;
        let start = self.control_path;
        // A chain of two ranges and no remainder: a compiler that makes this a function of its own must see no division by zero.
        let candidates = || {
            (start..paths)
                .chain(0..start)
                .filter(|path| Some(*path) != except)
        };
        let path = candidates()
            .find(|path| {
                let record = self.send_paths.at(u16::from(*path));
                record.state == PathState::Active && record.probes == 0
            })
            .or_else(|| {
                candidates()
                    .find(|path| self.send_paths.at(u16::from(*path)).state != PathState::Unused)
            })
            .unwrap_or(0);
        let record = self.send_paths.at(u16::from(path));
        self.transmit(record.plane, record.entropy, class, length)
    }

    fn send_fence(&mut self, path: u8, out: &mut [u8]) -> Option<Transmit> {
        let record = self.send_paths.at(u16::from(path));
        if record.state != PathState::Fencing {
            return None;
        }
        let fence = Fence {
            path,
            generation: record.generation,
            connection: self.peer_id,
            attempt: u32::from(record.backoff.saturating_sub(1)),
        };
        let length = fence.encode(out).ok()?;
        // spec: MR-FENCE-003
        self.over_sound_path(Class::Control, length, Some(path))
    }

    // spec: MR-FENCE-005
    fn send_fence_ack(
        &mut self,
        now: Instant,
        path: u8,
        hint_mbps: u32,
        out: &mut [u8],
    ) -> Option<Transmit> {
        let block = self
            .receive_paths
            .at(u16::from(path))
            .block(now, path, hint_mbps);
        let out = out.first_chunk_mut::<ACK_SIZE>()?;
        let length = encode_ack(AckKind::FenceAck, Flags::NONE, self.peer_id, &block, out);
        self.over_sound_path(Class::Control, length, Some(path))
    }

    fn send_probe(&mut self, now: Instant, number: u8, out: &mut [u8]) -> Option<Transmit> {
        let connection = self.peer_id;
        let path = self.send_paths.at_mut(u16::from(number));
        // spec: MR-FENCE-002
        if matches!(path.state, PathState::Unused | PathState::Fencing) {
            return None;
        }
        // spec: MR-PROBE-006
        let attempt = u32::from(path.probes);
        path.probes = path.probes.saturating_add(1);
        let tsn = path.take_tsn(now);
        path.probe_tsn = tsn;
        path.probe_sent_ns = now.as_nanos() as u32;
        let (plane, entropy, generation) = (path.plane, path.entropy, path.generation);
        let length = Probe {
            path: number,
            generation,
            connection,
            attempt,
            tsn,
        }
        .encode(out)
        .ok()?;
        self.statistics.probes_sent = self.statistics.probes_sent.wrapping_add(1);
        let carries = !self.send_paths.at(u16::from(number)).inflight.is_empty();
        if attempt == 0 && carries && self.is_clear() {
            self.suspect(number);
        }
        let at = self.probe_time(number);
        self.timers.advance(super::Timer::Probe, at);
        let mut transmit = self.transmit(plane, entropy, Class::Data, length)?;
        transmit.ecn = Ecn::Ect0;
        Some(transmit)
    }

    /// A PROBE of the peer: it is answered at once, a repeated one over another way back.
    pub(crate) fn handle_probe<const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &mut Shared<R, V>,
        probe: &Probe,
        ce: bool,
    ) -> Result<(), crate::stats::DropReason> {
        self.current_generation(probe.path, probe.generation)?;
        // spec: MR-PROBE-006
        let redirect = probe.attempt != 0;
        let reply = redirect.then(|| {
            let current = self.receive_paths.at(u16::from(probe.path)).reply;
            self.entropies.other(current, shared.config.entropies)
        });
        let path = self.receive_paths.at_mut(u16::from(probe.path));
        if let Some(reply) = reply {
            path.reply = reply;
            path.redirected = true;
        }
        // spec: MR-PROBE-002
        if path.note_probe(now, probe.tsn, ce).gap {
            self.gaps_until = now + GAP_MEMORY;
        }
        self.ack_now.insert(probe.path);
        Ok(())
    }

    /// A FENCE of the peer: the generation ends here, and the peer is told what of it arrived.
    pub(crate) fn handle_fence(&mut self, fence: &Fence) -> Result<(), DropReason> {
        // A generation of which nothing arrived at all is ended, too; one that has ended is said to have.
        match self.current_generation(fence.path, fence.generation) {
            Ok(()) | Err(DropReason::Frozen) => {}
            Err(other) => return Err(other),
        }
        // spec: MR-FENCE-004
        self.receive_paths.at_mut(u16::from(fence.path)).freeze();
        self.ack_now.remove(fence.path);
        self.ack_later.remove(fence.path);
        // spec: MR-FENCE-005
        self.fence_ack_due.insert(fence.path);
        self.set_due(due::FENCE_ACKS);
        Ok(())
    }

    /// An ANNOUNCE of the peer: it wants to know its share.
    pub(crate) fn handle_announce(
        &mut self,
        now: Instant,
        announce: &Announce,
        config: &crate::config::EndpointConfig,
    ) {
        // spec: MR-HINT-007
        if config.hints {
            self.hint_number = announce.number;
            // Announcements of a fan-in come together: the answer waits until all can be counted.
            self.timers.advance(super::Timer::Hint, now + HINT_DELAY);
        }
    }

    /// A HINT of the peer: this side's share of its capacity.
    pub(crate) fn handle_hint(
        &mut self,
        now: Instant,
        config: &crate::config::EndpointConfig,
        hint: &Hint,
    ) {
        use crate::rate::controller::Controller;
        // spec: MR-HINT-008
        if hint.rate_mbps == 0 || !config.hints || hint.number != self.announce_number {
            return;
        }
        self.controller.hinted(now, hint.rate_mbps);
        self.follow_hint();
        for path in self.usable.iter() {
            self.offer(path);
        }
    }

    /// Whether anything of this side's is unfinished: messages, responses, packets.
    pub(super) fn has_work(&self) -> bool {
        self.slots.used() != 0
            || self.response_first != NONE
            || self.waiting_messages != 0
            || self.requests.indices().any(|index| {
                self.requests.at(index).progress != crate::message::outgoing::Progress::Done
            })
    }

    pub(crate) const fn is_closing(&self) -> bool {
        matches!(self.state, State::Closing | State::PeerClosing)
    }
}
