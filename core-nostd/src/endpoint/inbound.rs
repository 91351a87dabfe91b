//! Datagrams in: found their connection, checked, handed on; setting up.

use core::borrow::BorrowMut;
use core::net::SocketAddr;

use super::Endpoint;
use super::outbound::Stateless;
use super::table::{ConnectionEntry, Shares, find};
use crate::connection::{Connection, DataPacket, State, Varying};
use crate::memory::Memory;
use crate::rate::allocator::Share;
use crate::schedule::Ring;
use crate::stats::DropReason;
use crate::time::Instant;
use crate::transmit::{Ecn, ReceiveMeta};
use crate::wire::{
    self, Accept, AckBlocks, Announce, Close, CloseAck, Data, DecodeError, Demand, Fence, Header,
    Hint, Init, Kind, Probe, Reject, RejectReason, Retry, Trailer, VERSION,
};

impl<
    const PATHS: usize,
    const SLOTS: usize,
    const STREAMS: usize,
    const MESSAGES: usize,
    const REGIONS: usize,
    const RECEIVES: usize,
    B,
> Endpoint<PATHS, SLOTS, STREAMS, MESSAGES, REGIONS, RECEIVES, B>
where
    B: BorrowMut<[ConnectionEntry<PATHS, SLOTS, STREAMS, MESSAGES>]>,
{
    /// Takes a datagram in, trailer included.
    ///
    /// # Errors
    /// The [`DropReason`] if it had no effect (it is counted as well).
    pub fn handle_datagram<M: Memory>(
        &mut self,
        now: Instant,
        meta: &ReceiveMeta,
        bytes: &[u8],
        memory: &mut M,
    ) -> Result<(), DropReason> {
        self.statistics.datagrams_received += 1;
        self.statistics.bytes_received += bytes.len() as u64;
        if let Some(header) = bytes.first_chunk()
            && let Some(varying) = self.shared.prediction.matches(header)
            && self
                .dispatch_predicted(now, meta, bytes, varying, memory)
                .is_some()
        {
            return Ok(());
        }
        // spec: MR-ERR-004
        let result = self.dispatch(now, meta, bytes, memory);
        if let Err(reason) = result {
            self.statistics.count_drop(reason);
        }
        result
    }

    #[inline(never)]
    pub(super) fn dispatch<M: Memory>(
        &mut self,
        now: Instant,
        meta: &ReceiveMeta,
        bytes: &[u8],
        memory: &mut M,
    ) -> Result<(), DropReason> {
        // spec: MR-SEC-001
        let header = Header::decode(bytes)?;
        if header.kind.is_setup() {
            return self.dispatch_setup(now, meta, &header, bytes);
        }
        // spec: MR-WIRE-001, MR-SEC-004
        let entries = self.entries.borrow_mut();
        let (index, record) = find(entries, self.index_mask, header.connection)
            .ok_or(DropReason::UnknownConnection)?;
        let ce = meta.ecn == Ecn::Ce;
        // spec: MR-WIRE-011, MR-WIRE-012
        let body = take_trailer(bytes, record.trailer(), meta.checksum_verified)?;
        // spec: MR-SETUP-020
        if record.state == State::Connecting {
            return Err(DropReason::UnexpectedKind);
        }
        // spec: MR-CLOSE-009
        if !record.is_open() && header.kind != Kind::Close {
            if record.tells_abort_again() {
                self.touched(index);
            }
            return Err(DropReason::UnexpectedKind);
        }
        let mut demand = None;
        let mut result = Ok(());
        match header.kind {
            Kind::Data => {
                let (data, payload) = Data::decode(&header, body)?;
                record.heard_from_peer(now, &self.shared.config);
                let packet = DataPacket {
                    header,
                    data,
                    payload,
                    ce,
                };
                // A refusal or a duplicate is answered, too.
                result = record.handle_data(now, &mut self.shared, memory, packet);
                if result.is_ok() {
                    demand = Some(data.demand);
                    self.shared.prediction.complete(bytes);
                }
            }
            Kind::Ack => {
                let blocks = AckBlocks::decode(&header, body)?;
                record.heard_from_peer(now, &self.shared.config);
                record.handle_ack(now, &self.shared.config, blocks)?;
                if let Some(ns) = record.measured_rtt() {
                    self.allocator.observe_rtt(ns);
                }
            }
            Kind::Probe => {
                let probe = Probe::decode(&header, body)?;
                record.heard_from_peer(now, &self.shared.config);
                record.handle_probe(now, &mut self.shared, &probe, ce)?;
            }
            Kind::Fence => {
                let fence = Fence::decode(&header, body)?;
                record.heard_from_peer(now, &self.shared.config);
                record.handle_fence(&fence)?;
            }
            Kind::FenceAck => {
                let mut blocks = AckBlocks::decode(&header, body)?;
                record.heard_from_peer(now, &self.shared.config);
                if let Some(block) = blocks.next() {
                    record.handle_fence_ack(now, &self.shared.config, &block)?;
                }
            }
            Kind::Announce => {
                let announce = Announce::decode(&header, body)?;
                record.heard_from_peer(now, &self.shared.config);
                record.handle_announce(now, &announce, &self.shared.config);
                demand = Some(announce.demand);
            }
            Kind::Hint => {
                let hint = Hint::decode(&header, body)?;
                record.heard_from_peer(now, &self.shared.config);
                record.handle_hint(now, &self.shared.config, &hint);
            }
            Kind::Close => {
                let close = Close::decode(&header, body)?;
                // spec: MR-CLOSE-010
                if close.source != record.peer_id {
                    return Err(DropReason::UnknownConnection);
                }
                record.handle_close(now, &close);
            }
            Kind::CloseAck => {
                // spec: MR-CLOSE-010
                if CloseAck::decode(&header, body)?.source != record.peer_id {
                    return Err(DropReason::UnknownConnection);
                }
                record.handle_close_ack();
            }
            Kind::Init | Kind::Retry | Kind::Accept | Kind::Reject => {
                return Err(DropReason::UnexpectedKind);
            }
        }
        if record.is_stalled() {
            record.resume(&mut self.shared, memory);
        }
        if record.is_closing() {
            record.maybe_finish(now);
        }
        let has_events = record.has_events();
        self.settle(now, index, demand, has_events);
        result
    }

    /// After a datagram: its sender's demand is noted, and its connection may have something to send, or an event.
    #[cfg_attr(not(feature = "small"), inline(always))]
    fn settle(&mut self, now: Instant, index: u16, demand: Option<Demand>, has_events: bool) {
        let entries = self.entries.borrow_mut();
        let Some(entry) = entries.get(usize::from(index)) else {
            return;
        };
        let is_ready = entry.links.is_queued(Ring::Ready);
        if let Some(demand) = demand
            && self.shared.config.hints
            && !entry.share.is_current(now, demand)
        {
            // spec: MR-HINT-002
            let nobody = Share::IDLE;
            self.allocator
                .observe(now, index, demand, &mut Shares { entries, nobody });
        }
        if !is_ready {
            self.schedule.push(entries, Ring::Ready, index);
        }
        if has_events {
            self.schedule.push(entries, Ring::Events, index);
        }
    }

    /// A DATA packet like the one before.
    #[cfg_attr(not(feature = "small"), inline(always))]
    fn dispatch_predicted<M: Memory>(
        &mut self,
        now: Instant,
        meta: &ReceiveMeta,
        bytes: &[u8],
        varying: Varying,
        memory: &mut M,
    ) -> Option<()> {
        let id = self.shared.prediction.connection;
        let entries = self.entries.borrow_mut();
        let (index, record) =
            find(entries, self.index_mask, id).filter(|(_, record)| record.is_open())?;
        let payload = take_trailer(bytes, record.trailer(), meta.checksum_verified)
            .ok()?
            .get(wire::DATA_SIZE..)?;
        record.handle_predicted(
            now,
            &mut self.shared,
            memory,
            varying,
            payload,
            meta.ecn == Ecn::Ce,
        )?;
        record.heard_from_peer(now, &self.shared.config);
        let has_events = record.has_events();
        self.settle(now, index, Some(varying.demand), has_events);
        Some(())
    }

    /// Apart from the rest, which must not pay for the room that a new connection takes on the stack.
    #[cold]
    #[inline(never)]
    pub(super) fn dispatch_setup(
        &mut self,
        now: Instant,
        meta: &ReceiveMeta,
        header: &Header,
        bytes: &[u8],
    ) -> Result<(), DropReason> {
        // spec: MR-WIRE-011
        let body = take_trailer(bytes, Trailer::Crc32c, meta.checksum_verified)?;
        if header.kind == Kind::Init {
            let init = Init::decode(header, body)?;
            return self.handle_init(now, meta, &init);
        }
        let entries = self.entries.borrow_mut();
        let (index, record) = find(entries, self.index_mask, header.connection)
            .ok_or(DropReason::UnknownConnection)?;
        match header.kind {
            Kind::Accept if record.state == State::Established && !record.incoming_connection => {
                Accept::decode(header, body)?;
                // spec: MR-SETUP-017
                record.probe_again();
            }
            _ if record.state != State::Connecting => return Err(DropReason::UnexpectedKind),
            // spec: MR-SETUP-021
            _ if !record.was_asked_at(meta.source.ip()) => return Err(DropReason::AddressMismatch),
            Kind::Retry => record.retry(now, Retry::decode(header, body)?.cookie),
            Kind::Accept => {
                let accept = Accept::decode(header, body)?;
                // spec: MR-SETUP-010
                if accept.version != VERSION {
                    return Err(DropReason::Malformed(DecodeError::Version {
                        got: accept.version,
                    }));
                }
                if record.establish(
                    now,
                    &self.shared.config,
                    accept.source,
                    &accept.parameters,
                    accept.hint_mbps,
                ) {
                    self.statistics.connections_opened += 1;
                    self.allocator.connected(now);
                }
            }
            _ => record.refused(Reject::decode(header, body)?.reason),
        }
        self.touched(index);
        Ok(())
    }

    pub(super) fn handle_init(
        &mut self,
        now: Instant,
        meta: &ReceiveMeta,
        init: &Init,
    ) -> Result<(), DropReason> {
        // spec: MR-SETUP-004, MR-SETUP-007
        let address = init
            .parameters
            .planes
            .get(usize::from(meta.plane))
            .ok_or(DropReason::AddressMismatch)?
            .socket();
        if address.ip().to_canonical() != meta.source.ip().to_canonical() {
            return Err(DropReason::AddressMismatch);
        }
        let reject = |this: &mut Self, reason| {
            let mut bytes = [0; wire::RETRY_SIZE];
            let length = Reject {
                connection: init.source,
                reason,
                detail: 0,
            }
            .encode(&mut bytes)
            .unwrap_or(0);
            this.answer(address, meta.plane, bytes, length);
            Err(DropReason::NotAccepted)
        };
        // spec: MR-SETUP-009
        if !(init.lowest_version..=init.highest_version).contains(&VERSION) {
            return reject(self, RejectReason::Version);
        }
        if !self.shared.config.listen {
            return reject(self, RejectReason::NotListening);
        }
        let valid = init
            .cookie
            .map(|cookie| self.secret.is_valid(now, &cookie, address, init.source));
        // spec: MR-SETUP-005, MR-SEC-002
        if valid != Some(true) {
            let mut bytes = [0; wire::RETRY_SIZE];
            let cookie = self.secret.cookie(now, address, init.source);
            let length = Retry {
                connection: init.source,
                cookie,
            }
            .encode(&mut bytes)
            .unwrap_or(0);
            self.answer(address, meta.plane, bytes, length);
            return if valid.is_some() {
                Err(DropReason::BadCookie)
            } else {
                Ok(())
            };
        }
        // spec: MR-SETUP-015
        let entries = self.entries.borrow_mut();
        let known = (0..)
            .zip(entries.iter_mut())
            .filter_map(|(index, entry)| Some((index, entry.connection.as_mut()?)))
            .find(|(_, record)| {
                record.incoming_connection
                    && record.peer_id == init.source
                    && record.peer == init.parameters.planes
            });
        if let Some((index, record)) = known {
            record.accept_again();
            self.touched(index);
            return Ok(());
        }
        // spec: MR-SETUP-009
        let Some(index) = self.free_entry() else {
            return reject(self, RejectReason::Busy);
        };
        let (id, seed) = (self.new_id(index), self.secret.number());
        let mut connection = Connection::new(
            now,
            id,
            seed,
            self.default,
            &self.shared.config,
            init.parameters.planes,
        );
        if !connection.accept(
            now,
            &self.shared.config,
            init.source,
            &init.parameters,
            meta.plane,
        ) {
            return reject(self, RejectReason::Parameters);
        }
        self.statistics.connections_opened += 1;
        self.occupy(index, connection);
        self.allocator.connected(now);
        Ok(())
    }

    /// Queues a stateless answer; dropped if too many wait.
    pub(super) fn answer(
        &mut self,
        destination: SocketAddr,
        plane: u8,
        bytes: [u8; wire::RETRY_SIZE],
        length: usize,
    ) {
        // spec: MR-SEC-003
        if let Some(place) = self.stateless.iter_mut().find(|place| place.is_none()) {
            *place = Some(Stateless {
                destination,
                plane,
                bytes,
                length: length as u8,
            });
            self.answers += 1;
        }
    }
}

/// The datagram without its trailer, which was checked here or by the device.
#[inline]
fn take_trailer(bytes: &[u8], trailer: Trailer, verified: bool) -> Result<&[u8], DecodeError> {
    if verified {
        let length = bytes.len().saturating_sub(trailer.size());
        return Ok(bytes.get(..length).unwrap_or(bytes));
    }
    wire::check(bytes, trailer)
}
