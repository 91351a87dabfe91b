//! An endpoint: many connections, the memory they share, and the way from a datagram to its connection.

use core::borrow::BorrowMut;
use core::net::SocketAddr;

use crate::config::{ConfigError, ConnectionConfig, EndpointConfig, MAX_PLANES};
use crate::connection::{Connection, Shared, State};
use crate::handshake::Secret;
use crate::memory::{Access, Memory, Region, RegionError, RegionIndex, Regions};
use crate::message::receives::Receives;
use crate::rate::allocator::{Allocator, Share, ShareTable};
use crate::schedule::{Linked, Links, Ring, Schedule};
use crate::stats::{ConnectionStatistics, DropReason, EndpointStatistics, PathStatistics};
use crate::storage::Table;
use crate::time::Instant;
use crate::transmit::{Class, Ecn, HEADER_BUFFER, ReceiveMeta, Transmit};
use crate::wire::{
    self, Accept, AckBlocks, Announce, Close, CloseAck, Data, DecodeError, Fence, Header, Hint,
    Init, Kind, PlaneAddress, Planes, Probe, Reject, RejectReason, Retry, Trailer, VERSION,
};
use crate::work::{
    CloseMode, ConnectError, ConnectionHandle, Event, PostError, ReceiveQueue, ReceiveRequest,
    WorkRequest,
};

/// A place for a connection in an endpoint's table.
#[derive(Debug)]
pub struct ConnectionEntry<
    const PATHS: usize,
    const SLOTS: usize,
    const STREAMS: usize,
    const MESSAGES: usize,
> {
    connection: Option<Connection<PATHS, SLOTS, STREAMS, MESSAGES>>,
    links: Links,
    share: Share,
}

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    ConnectionEntry<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// An empty place.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            connection: None,
            links: Links::IDLE,
            share: Share::IDLE,
        }
    }
}

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize> Default
    for ConnectionEntry<PATHS, SLOTS, STREAMS, MESSAGES>
{
    fn default() -> Self {
        Self::new()
    }
}

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize> Linked
    for ConnectionEntry<PATHS, SLOTS, STREAMS, MESSAGES>
{
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

/// The table as the allocator sees it.
struct Shares<
    'a,
    const PATHS: usize,
    const SLOTS: usize,
    const STREAMS: usize,
    const MESSAGES: usize,
> {
    entries: &'a mut [ConnectionEntry<PATHS, SLOTS, STREAMS, MESSAGES>],
    nobody: Share,
}

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize> ShareTable
    for Shares<'_, PATHS, SLOTS, STREAMS, MESSAGES>
{
    #[inline(always)]
    fn share(&mut self, sender: u16) -> &mut Share {
        match self.entries.get_mut(usize::from(sender)) {
            Some(entry) => &mut entry.share,
            None => &mut self.nobody,
        }
    }
}

/// A small datagram that belongs to no connection: RETRY or REJECT.
#[derive(Clone, Copy, Debug)]
struct Stateless {
    destination: SocketAddr,
    plane: u8,
    bytes: [u8; wire::RETRY_SIZE],
    length: u8,
}

/// Stateless answers that may wait to be sent; more are dropped.
const STATELESS: usize = 4;

/// An endpoint over a table of connections that the caller provides: an array, a boxed slice, a `Vec` (anything that
/// borrows as a slice of entries). `REGIONS` registered regions, `RECEIVES` posted buffers over all queues.
///
/// After any call, call [`Self::poll_transmit`] (or [`Self::poll_datagram`]) until it gives nothing, and
/// [`Self::poll_event`]; then wait for a datagram or for [`Self::poll_timeout`].
#[derive(Debug)]
pub struct Endpoint<
    const PATHS: usize,
    const SLOTS: usize,
    const STREAMS: usize,
    const MESSAGES: usize,
    const REGIONS: usize,
    const RECEIVES: usize,
    B,
> {
    config: EndpointConfig,
    default: ConnectionConfig,
    secret: Secret,
    regions: Regions<REGIONS>,
    receives: Receives<RECEIVES>,
    allocator: Allocator,
    schedule: Schedule,
    stateless: Table<Option<Stateless>, STATELESS>,
    statistics: EndpointStatistics,
    index_mask: u32,
    entries: B,
}

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
    /// An endpoint without connections. `default` is for connections that peers ask for; `secret` is 32 random bytes.
    ///
    /// # Errors
    /// A [`ConfigError`] that names the setting.
    pub fn new(
        config: EndpointConfig,
        default: ConnectionConfig,
        secret: [u8; 32],
        entries: B,
    ) -> Result<Self, ConfigError> {
        if config.planes == 0 || usize::from(config.planes) > MAX_PLANES {
            return Err(ConfigError::Planes);
        }
        if !(256..=9000).contains(&config.payload_bytes) {
            return Err(ConfigError::PayloadBytes);
        }
        if config.plane_mbps == 0 {
            return Err(ConfigError::Rate);
        }
        if config.entropies == 0 {
            return Err(ConfigError::Entropies);
        }
        if config.ack_blocks == 0 || config.ack_packets == 0 {
            return Err(ConfigError::Acknowledgments);
        }
        if config
            .addresses
            .iter()
            .take(usize::from(config.planes))
            .any(|address| address.port() == 0)
        {
            return Err(ConfigError::Address);
        }
        let count = entries.borrow().len();
        if count == 0 || count > usize::from(u16::MAX) {
            return Err(ConfigError::Connections);
        }
        let capacity = config.plane_mbps.saturating_mul(u32::from(config.planes));
        let packet = u32::from(config.payload_bytes)
            + (wire::DATA_SIZE + wire::CRC_SIZE) as u32
            + u32::from(config.overhead_bytes);
        Ok(Self {
            allocator: Allocator::new(capacity, packet, default.initial_rtt.as_nanos_u32()),
            config,
            default,
            secret: Secret::new(secret),
            regions: Regions::new(),
            receives: Receives::new(),
            schedule: Schedule::new(),
            stateless: Table::filled(None),
            statistics: EndpointStatistics::ZERO,
            index_mask: (count as u32).next_power_of_two() - 1,
            entries,
        })
    }

    /// The settings.
    #[must_use]
    pub const fn config(&self) -> &EndpointConfig {
        &self.config
    }

    /// Accepts connections from now on, or no more.
    pub const fn listen(&mut self, on: bool) {
        self.config.listen = on;
    }

    /// Registers `length` bytes that peers know as starting at `base`.
    ///
    /// # Errors
    /// [`RegionError::Full`] or [`RegionError::Wraps`].
    pub fn register(
        &mut self,
        base: u64,
        length: u64,
        access: Access,
    ) -> Result<Region, RegionError> {
        let random = self.secret.number();
        self.regions.register(base, length, access, random)
    }

    /// Invalidates a region. Operations that still need it fail.
    ///
    /// # Errors
    /// [`RegionError::Unknown`].
    pub fn deregister(&mut self, index: RegionIndex) -> Result<(), RegionError> {
        self.regions.deregister(index)
    }

    /// Asks a peer for a connection: its service address on each plane. [`Event::Connected`] or [`Event::Closed`] tells the outcome.
    ///
    /// # Errors
    /// A [`ConnectError`] if it cannot even be asked.
    pub fn connect(
        &mut self,
        now: Instant,
        peer: &[SocketAddr],
        config: ConnectionConfig,
    ) -> Result<ConnectionHandle, ConnectError> {
        if config.paths == 0 || config.run == 0 {
            return Err(ConnectError::BadConfiguration);
        }
        if peer.iter().any(|address| address.port() == 0) || peer.len() > MAX_PLANES {
            return Err(ConnectError::BadAddress);
        }
        let mut list =
            [PlaneAddress::new(self.config.addresses[0], self.config.payload_bytes); MAX_PLANES];
        for (place, address) in list.iter_mut().zip(peer) {
            *place = PlaneAddress::new(*address, self.config.payload_bytes);
        }
        let planes =
            Planes::new(list.get(..peer.len()).unwrap_or(&[])).ok_or(ConnectError::BadAddress)?;
        let index = self.free_entry().ok_or(ConnectError::TableFull)?;
        let (id, seed) = (self.new_id(index), self.secret.number());
        let mut connection = Connection::new(now, id, seed, config, &self.config, planes);
        connection.start_connecting(now);
        self.occupy(index, connection);
        Ok(ConnectionHandle(id))
    }

    /// Gives a connection a work request on a stream.
    ///
    /// # Errors
    /// A [`PostError`] that says why it was not taken; nothing has changed then.
    pub fn post(
        &mut self,
        now: Instant,
        connection: ConnectionHandle,
        stream: u16,
        work: &WorkRequest<'_>,
    ) -> Result<(), PostError> {
        let regions = &self.regions;
        let index = lookup(self.entries.borrow_mut(), self.index_mask, connection.0)
            .ok_or(PostError::UnknownConnection)?;
        let (_, record) =
            connection_at(self.entries.borrow_mut(), index).ok_or(PostError::UnknownConnection)?;
        record.post(now, regions, stream, work)?;
        self.touched(index);
        Ok(())
    }

    /// Posts a buffer for messages to come.
    ///
    /// # Errors
    /// A [`PostError`]; nothing has changed then.
    pub fn post_receive(
        &mut self,
        now: Instant,
        queue: ReceiveQueue,
        receive: &ReceiveRequest,
    ) -> Result<(), PostError> {
        if receive.local.length != 0 {
            self.regions
                .check_local(receive.local, Access::LOCAL_WRITE)
                .map_err(PostError::Local)?;
        }
        match queue {
            ReceiveQueue::Stream(handle, stream) => {
                let entries = self.entries.borrow_mut();
                let index = lookup(entries, self.index_mask, handle.0)
                    .ok_or(PostError::UnknownConnection)?;
                let (_, record) =
                    connection_at(entries, index).ok_or(PostError::UnknownConnection)?;
                let mut shared = Shared {
                    config: &self.config,
                    regions: &self.regions,
                    receives: &mut self.receives,
                    hint_mbps: 0,
                };
                record.post_receive(&mut shared, stream, receive)?;
                let _ = now;
                self.touched(index);
            }
            ReceiveQueue::Shared(number) => {
                match self.receives.post_shared(number, receive) {
                    None => return Err(PostError::WrongQueue),
                    Some(false) => return Err(PostError::QueueFull),
                    Some(true) => {}
                }
                for entry in self.entries.borrow_mut() {
                    if let Some(record) = &mut entry.connection {
                        record.shared_queue_filled(&mut self.receives, number);
                    }
                }
            }
        }
        Ok(())
    }

    /// Lets a stream take its buffers from a shared queue (0 to 7). Before it received anything.
    ///
    /// # Errors
    /// A [`PostError`].
    pub fn attach_shared_queue(
        &mut self,
        connection: ConnectionHandle,
        stream: u16,
        queue: u8,
    ) -> Result<(), PostError> {
        let entries = self.entries.borrow_mut();
        let index =
            lookup(entries, self.index_mask, connection.0).ok_or(PostError::UnknownConnection)?;
        let (_, record) = connection_at(entries, index).ok_or(PostError::UnknownConnection)?;
        record.attach_shared_queue(stream, queue)
    }

    /// Asks the peer for a share of its capacity ahead of a burst. (A large burst after a pause does so by itself.)
    ///
    /// # Errors
    /// [`PostError::UnknownConnection`], [`PostError::NotEstablished`].
    pub fn announce(&mut self, connection: ConnectionHandle) -> Result<(), PostError> {
        let entries = self.entries.borrow_mut();
        let index =
            lookup(entries, self.index_mask, connection.0).ok_or(PostError::UnknownConnection)?;
        let (_, record) = connection_at(entries, index).ok_or(PostError::UnknownConnection)?;
        if record.state != State::Established {
            return Err(PostError::NotEstablished);
        }
        record.announce();
        self.touched(index);
        Ok(())
    }

    /// Ends a connection. [`Event::Closed`] follows when it has ended.
    ///
    /// # Errors
    /// [`PostError::UnknownConnection`].
    pub fn close(
        &mut self,
        now: Instant,
        connection: ConnectionHandle,
        mode: CloseMode,
    ) -> Result<(), PostError> {
        let entries = self.entries.borrow_mut();
        let index =
            lookup(entries, self.index_mask, connection.0).ok_or(PostError::UnknownConnection)?;
        let (_, record) = connection_at(entries, index).ok_or(PostError::UnknownConnection)?;
        record.close(now, mode);
        self.touched(index);
        Ok(())
    }

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
        let result = self.dispatch(now, meta, bytes, memory);
        if let Err(reason) = result {
            self.statistics.count_drop(reason);
        }
        result
    }

    #[inline]
    fn dispatch<M: Memory>(
        &mut self,
        now: Instant,
        meta: &ReceiveMeta,
        bytes: &[u8],
        memory: &mut M,
    ) -> Result<(), DropReason> {
        let header = Header::decode(bytes)?;
        if header.kind.is_setup() {
            return self.dispatch_setup(now, meta, &header, bytes);
        }
        let index = lookup(
            self.entries.borrow_mut(),
            self.index_mask,
            header.connection,
        )
        .ok_or(DropReason::UnknownConnection)?;
        let ce = meta.ecn == Ecn::Ce;
        let hint_mbps = self.hint(now);
        let entries = self.entries.borrow_mut();
        let (_, record) = connection_at(entries, index).ok_or(DropReason::UnknownConnection)?;
        let body = take_trailer(bytes, record.trailer, meta.checksum_verified)?;
        if record.state == State::Connecting {
            return Err(DropReason::UnexpectedKind);
        }
        if !record.is_open() && header.kind != Kind::Close {
            return Err(DropReason::UnexpectedKind);
        }
        let mut shared = Shared {
            config: &self.config,
            regions: &self.regions,
            receives: &mut self.receives,
            hint_mbps,
        };
        let mut demand = None;
        match header.kind {
            Kind::Data => {
                let (data, payload) = Data::decode(&header, body)?;
                record.heard_from_peer(now);
                let result =
                    record.handle_data(now, &mut shared, memory, &header, &data, payload, ce);
                if let Err(reason) = result {
                    // A refusal or a duplicate is answered.
                    self.touched(index);
                    return Err(reason);
                }
                demand = Some(data.demand);
            }
            Kind::Ack => {
                let blocks = AckBlocks::decode(&header, body)?;
                record.heard_from_peer(now);
                record.handle_ack(now, &self.config, blocks)?;
                if let Some(ns) = record.measured_rtt() {
                    self.allocator.observe_rtt(ns);
                }
            }
            Kind::Probe => {
                let probe = Probe::decode(&header, body)?;
                record.heard_from_peer(now);
                record.handle_probe(now, &shared, &probe, ce)?;
            }
            Kind::Fence => {
                let fence = Fence::decode(&header, body)?;
                record.heard_from_peer(now);
                record.handle_fence(&fence)?;
            }
            Kind::FenceAck => {
                let mut blocks = AckBlocks::decode(&header, body)?;
                record.heard_from_peer(now);
                if let Some(block) = blocks.next() {
                    record.handle_fence_ack(now, &self.config, &block)?;
                }
            }
            Kind::Announce => {
                let announce = Announce::decode(&header, body)?;
                record.heard_from_peer(now);
                record.handle_announce(&announce, &self.config);
                demand = Some(announce.demand);
            }
            Kind::Hint => {
                let hint = Hint::decode(&header, body)?;
                record.heard_from_peer(now);
                record.handle_hint(now, &self.config, &hint);
            }
            Kind::Close => {
                let close = Close::decode(&header, body)?;
                record.handle_close(now, &close);
            }
            Kind::CloseAck => {
                CloseAck::decode(&header, body)?;
                record.handle_close_ack();
            }
            Kind::Init | Kind::Retry | Kind::Accept | Kind::Reject => {
                return Err(DropReason::UnexpectedKind);
            }
        }
        record.resume(&mut shared, memory);
        if let Some(demand) = demand
            && self.config.hints
        {
            self.allocator.observe(
                now,
                index,
                demand,
                &mut Shares {
                    entries,
                    nobody: Share::IDLE,
                },
            );
        }
        self.touched(index);
        Ok(())
    }

    fn dispatch_setup(
        &mut self,
        now: Instant,
        meta: &ReceiveMeta,
        header: &Header,
        bytes: &[u8],
    ) -> Result<(), DropReason> {
        let body = take_trailer(bytes, Trailer::Crc32c, meta.checksum_verified)?;
        if header.kind == Kind::Init {
            let init = Init::decode(header, body)?;
            return self.handle_init(now, meta, &init);
        }
        let entries = self.entries.borrow_mut();
        let index = lookup(entries, self.index_mask, header.connection)
            .ok_or(DropReason::UnknownConnection)?;
        let (_, record) = connection_at(entries, index).ok_or(DropReason::UnknownConnection)?;
        match header.kind {
            Kind::Accept if record.state == State::Established && !record.incoming_connection => {
                Accept::decode(header, body)?;
                record.probe_again();
            }
            _ if record.state != State::Connecting => return Err(DropReason::UnexpectedKind),
            Kind::Retry => record.retry(now, Retry::decode(header, body)?.cookie),
            Kind::Accept => {
                let accept = Accept::decode(header, body)?;
                if accept.version != VERSION {
                    return Err(DropReason::Malformed(DecodeError::Version {
                        got: accept.version,
                    }));
                }
                if record.establish(
                    now,
                    &self.config,
                    accept.source,
                    &accept.parameters,
                    accept.hint_mbps,
                ) {
                    self.statistics.connections_opened += 1;
                }
            }
            _ => record.refused(Reject::decode(header, body)?.reason),
        }
        self.touched(index);
        Ok(())
    }

    fn handle_init(
        &mut self,
        now: Instant,
        meta: &ReceiveMeta,
        init: &Init,
    ) -> Result<(), DropReason> {
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
        if !(init.lowest_version..=init.highest_version).contains(&VERSION) {
            return reject(self, RejectReason::Version);
        }
        if !self.config.listen {
            return reject(self, RejectReason::NotListening);
        }
        let valid = init
            .cookie
            .map(|cookie| self.secret.is_valid(now, &cookie, address, init.source));
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
        let known = self.entries.borrow().iter().position(|entry| {
            entry.connection.as_ref().is_some_and(|record| {
                record.incoming_connection
                    && record.peer_id == init.source
                    && record.peer == init.parameters.planes
            })
        });
        if let Some(index) = known {
            if let Some((_, record)) = connection_at(self.entries.borrow_mut(), index as u16) {
                record.accept_again();
            }
            self.touched(index as u16);
            return Ok(());
        }
        let Some(index) = self.free_entry() else {
            return reject(self, RejectReason::Busy);
        };
        let (id, seed) = (self.new_id(index), self.secret.number());
        let mut connection = Connection::new(
            now,
            id,
            seed,
            self.default,
            &self.config,
            init.parameters.planes,
        );
        if !connection.accept(now, &self.config, init.source, &init.parameters, meta.plane) {
            return reject(self, RejectReason::Parameters);
        }
        self.statistics.connections_opened += 1;
        self.occupy(index, connection);
        Ok(())
    }

    /// Queues a stateless answer; dropped if too many wait.
    fn answer(
        &mut self,
        destination: SocketAddr,
        plane: u8,
        bytes: [u8; wire::RETRY_SIZE],
        length: usize,
    ) {
        if let Some(place) = self.stateless.iter_mut().find(|place| place.is_none()) {
            *place = Some(Stateless {
                destination,
                plane,
                bytes,
                length: length as u8,
            });
        }
    }

    /// The next datagram to send: everything in front of the payload is written to `header`, the payload is named. For those that gather
    /// payloads and append the CRC32C themselves.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        header: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        let transmit = self.next_transmit(now, header)?;
        self.statistics.datagrams_sent += 1;
        self.statistics.bytes_sent += transmit.length as u64;
        Some(transmit)
    }

    #[inline]
    fn next_transmit(
        &mut self,
        now: Instant,
        header: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        if let Some(answer) = self.stateless.iter_mut().find_map(Option::take) {
            return Some(stateless_transmit(&answer, header));
        }
        let mut hint_mbps = None;
        while let Some(index) = self.schedule.front(Ring::Ready) {
            let hint_mbps = match hint_mbps {
                Some(known) => known,
                None => *hint_mbps.insert(self.hint(now)),
            };
            let entries = self.entries.borrow_mut();
            let Some((_, record)) = connection_at(entries, index) else {
                self.schedule.pop(entries, Ring::Ready);
                continue;
            };
            let mut shared = Shared {
                config: &self.config,
                regions: &self.regions,
                receives: &mut self.receives,
                hint_mbps,
            };
            if let Some(transmit) = record.poll_transmit(now, &mut shared, header) {
                if !record.in_run() {
                    self.schedule.rotate(entries, Ring::Ready);
                }
                return Some(transmit);
            }
            let deadline = record.next_timeout();
            let events = record.has_events();
            let over = record.is_over();
            self.schedule.pop(entries, Ring::Ready);
            self.schedule.set_deadline(entries, index, deadline);
            if events {
                self.schedule.push(entries, Ring::Events, index);
            }
            if over {
                self.vacate(index);
            }
        }
        None
    }

    /// The next datagram to send, whole, at the start of `buffer`, which must hold the largest (payload size + 52 bytes, at least 1408).
    pub fn poll_datagram<M: Memory>(
        &mut self,
        now: Instant,
        memory: &M,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        let header = buffer.first_chunk_mut::<HEADER_BUFFER>()?;
        let mut transmit = self.poll_transmit(now, header)?;
        if let Some(slice) = transmit.payload {
            let gathered = buffer
                .get_mut(transmit.header_length..transmit.header_length + slice.length as usize)
                .is_some_and(|place| memory.gather(slice.region, slice.offset, place).is_ok());
            if !gathered {
                let index = lookup(
                    self.entries.borrow_mut(),
                    self.index_mask,
                    transmit.connection?.0,
                )?;
                let (_, record) = connection_at(self.entries.borrow_mut(), index)?;
                let header = buffer.first_chunk_mut::<HEADER_BUFFER>()?;
                transmit = record.gather_failed(now, &transmit, header)?;
                self.touched(index);
            }
        }
        if transmit.trailer {
            let body = transmit.length - wire::CRC_SIZE;
            wire::seal(buffer, body, Trailer::Crc32c).ok()?;
        }
        Some(transmit)
    }

    /// The earliest time at which [`Self::handle_timeout`] has something to do. It may turn out to be early.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.schedule
            .earliest(self.entries.borrow_mut())
            .map(|(at, _)| at)
    }

    /// Lets the timers fire whose time has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, index)) = self.schedule.earliest(self.entries.borrow_mut()) {
            if at > now {
                return;
            }
            let entries = self.entries.borrow_mut();
            // Until it was asked for datagrams the entry has no deadline: it is asked next.
            self.schedule
                .set_deadline(entries, index, Instant::FAR_FUTURE);
            if let Some((_, record)) = connection_at(entries, index) {
                record.handle_timeout(now, &self.config);
            }
            self.touched(index);
        }
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(completion) = self.receives.poll() {
            return Some(Event::Completion(completion));
        }
        while let Some(index) = self.schedule.front(Ring::Events) {
            let entries = self.entries.borrow_mut();
            if let Some((_, record)) = connection_at(entries, index) {
                if let Some(event) = record.poll_event(&mut self.receives) {
                    return Some(event);
                }
                let over = record.is_over();
                self.schedule.pop(entries, Ring::Events);
                if over {
                    self.vacate(index);
                }
            } else {
                self.schedule.pop(entries, Ring::Events);
            }
        }
        None
    }

    /// Counters of the endpoint.
    #[must_use]
    pub const fn endpoint_statistics(&self) -> &EndpointStatistics {
        &self.statistics
    }

    /// Counters of a connection.
    #[must_use]
    pub fn connection_statistics(
        &self,
        connection: ConnectionHandle,
    ) -> Option<ConnectionStatistics> {
        self.record(connection).map(Connection::statistics)
    }

    /// Counters of a path, by its number.
    #[must_use]
    pub fn path_statistics(
        &self,
        connection: ConnectionHandle,
        path: u8,
    ) -> Option<PathStatistics> {
        self.record(connection)?.path_statistics(path)
    }

    /// What was agreed on with the peer, once connected.
    #[must_use]
    pub fn agreed(&self, connection: ConnectionHandle) -> Option<crate::handshake::Agreed> {
        self.record(connection)
            .filter(|record| record.state != State::Connecting)
            .map(|record| record.agreed)
    }

    fn record(
        &self,
        connection: ConnectionHandle,
    ) -> Option<&Connection<PATHS, SLOTS, STREAMS, MESSAGES>> {
        let index = (connection.0 & self.index_mask) as usize;
        self.entries
            .borrow()
            .get(index)?
            .connection
            .as_ref()
            .filter(|record| record.local_id == connection.0)
    }

    /// The share that a sender is told now; 0: none are given.
    #[inline]
    fn hint(&mut self, now: Instant) -> u32 {
        if self.config.hints {
            self.allocator.level(
                now,
                &mut Shares {
                    entries: self.entries.borrow_mut(),
                    nobody: Share::IDLE,
                },
            )
        } else {
            0
        }
    }

    /// A connection may have something to send, or an event.
    #[inline]
    fn touched(&mut self, index: u16) {
        let entries = self.entries.borrow_mut();
        self.schedule.push(entries, Ring::Ready, index);
        if connection_at(entries, index).is_some_and(|(_, record)| record.has_events()) {
            self.schedule.push(entries, Ring::Events, index);
        }
    }

    fn free_entry(&self) -> Option<u16> {
        self.entries
            .borrow()
            .iter()
            .position(|entry| entry.connection.is_none())
            .map(|index| index as u16)
    }

    /// An id whose low bits are the table index and whose others cannot be guessed. Never zero.
    fn new_id(&mut self, index: u16) -> u32 {
        loop {
            let id = (self.secret.number() & !self.index_mask) | u32::from(index);
            if id != 0 {
                return id;
            }
        }
    }

    fn occupy(&mut self, index: u16, connection: Connection<PATHS, SLOTS, STREAMS, MESSAGES>) {
        if let Some(entry) = self.entries.borrow_mut().get_mut(usize::from(index)) {
            entry.connection = Some(connection);
        }
        self.touched(index);
    }

    fn vacate(&mut self, index: u16) {
        let entries = self.entries.borrow_mut();
        self.allocator.leave(
            index,
            &mut Shares {
                entries,
                nobody: Share::IDLE,
            },
        );
        self.schedule
            .set_deadline(entries, index, Instant::FAR_FUTURE);
        if let Some(entry) = entries.get_mut(usize::from(index))
            && entry.connection.take().is_some()
        {
            self.statistics.connections_closed += 1;
        }
    }
}

/// The table index of a connection id, if it is in use.
#[inline]
fn lookup<const P: usize, const S: usize, const T: usize, const M: usize>(
    entries: &mut [ConnectionEntry<P, S, T, M>],
    mask: u32,
    id: u32,
) -> Option<u16> {
    let index = (id & mask) as u16;
    let entry = entries.get(usize::from(index))?;
    entry
        .connection
        .as_ref()
        .filter(|record| record.local_id == id)
        .map(|_| index)
}

#[inline]
fn connection_at<const P: usize, const S: usize, const T: usize, const M: usize>(
    entries: &mut [ConnectionEntry<P, S, T, M>],
    index: u16,
) -> Option<(u16, &mut Connection<P, S, T, M>)> {
    entries
        .get_mut(usize::from(index))?
        .connection
        .as_mut()
        .map(|record| (index, record))
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

fn stateless_transmit(answer: &Stateless, header: &mut [u8; HEADER_BUFFER]) -> Transmit {
    let length = usize::from(answer.length);
    if let (Some(place), Some(bytes)) = (header.get_mut(..length), answer.bytes.get(..length)) {
        place.copy_from_slice(bytes);
    }
    Transmit {
        connection: None,
        destination: answer.destination,
        plane: answer.plane,
        entropy: 0,
        class: Class::Data,
        ecn: Ecn::NotEct,
        header_length: length,
        payload: None,
        trailer: true,
        length: length + wire::CRC_SIZE,
        slot: crate::path::inflight::NONE,
    }
}
