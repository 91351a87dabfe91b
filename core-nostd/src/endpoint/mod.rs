//! An endpoint: many connections, the memory they share, and the way from a datagram to its connection.

mod inbound;
mod outbound;
mod table;

use core::borrow::BorrowMut;
use core::net::SocketAddr;

use crate::config::{ConfigError, ConnectionConfig, EndpointConfig, MAX_PLANES};
use crate::connection::{Connection, Prediction, Shared, State, Template};
use crate::handshake::Secret;
use crate::memory::{Access, Region, RegionError, RegionIndex, Regions};
use crate::message::receives::Receives;
use crate::rate::allocator::{Allocator, Share};
use crate::schedule::{Ring, Schedule};
use crate::stats::{ConnectionStatistics, EndpointStatistics, PathStatistics};
use crate::storage::Table;
use crate::time::{Duration, Instant};
use crate::wire::{self, PlaneAddress, Planes};
use crate::work::{
    CloseMode, ConnectError, ConnectionHandle, Event, PostError, ReceiveQueue, ReceiveRequest,
    WorkRequest,
};
use outbound::{STATELESS, Stateless};
use table::{Shares, connection_at, find};

pub use table::ConnectionEntry;

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
    shared: Shared<REGIONS, RECEIVES>,
    default: ConnectionConfig,
    secret: Secret,
    allocator: Allocator,
    schedule: Schedule,
    stateless: Table<Option<Stateless>, STATELESS>,
    /// How many of them wait.
    answers: u8,
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
        if default.run == 0 {
            return Err(ConfigError::Run);
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
            shared: Shared {
                config,
                regions: Regions::new(),
                receives: Receives::new(),
                hint_mbps: 0,
                busy_planes: 0,
                held_back: false,
                template: Template::NONE,
                prediction: Prediction::NONE,
            },
            default,
            secret: Secret::new(secret),
            schedule: Schedule::new(),
            stateless: Table::filled(None),
            answers: 0,
            statistics: EndpointStatistics::ZERO,
            index_mask: (count as u32).next_power_of_two() - 1,
            entries,
        })
    }

    /// The settings.
    #[must_use]
    pub const fn config(&self) -> &EndpointConfig {
        &self.shared.config
    }

    /// Accepts connections from now on, or no more.
    pub const fn listen(&mut self, on: bool) {
        self.shared.config.listen = on;
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
        self.shared.regions.register(base, length, access, random)
    }

    /// Invalidates a region. Operations that still need it fail. Takes time in proportion to open messages and posted buffers.
    ///
    /// # Errors
    /// [`RegionError::Unknown`].
    pub fn deregister(&mut self, index: RegionIndex) -> Result<(), RegionError> {
        self.shared.regions.deregister(index)?;
        self.shared.receives.withdraw_region(index);
        for entry in self.entries.borrow_mut() {
            if let Some(record) = &mut entry.connection {
                record.withdraw_region(index);
            }
        }
        Ok(())
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
        let mut list = [PlaneAddress::new(
            self.shared.config.addresses[0],
            self.shared.config.payload_bytes,
        ); MAX_PLANES];
        for (place, address) in list.iter_mut().zip(peer) {
            *place = PlaneAddress::new(*address, self.shared.config.payload_bytes);
        }
        let planes =
            Planes::new(list.get(..peer.len()).unwrap_or(&[])).ok_or(ConnectError::BadAddress)?;
        let index = self.free_entry().ok_or(ConnectError::TableFull)?;
        let (id, seed) = (self.new_id(index), self.secret.number());
        let mut connection = Connection::new(now, id, seed, config, &self.shared.config, planes);
        connection.start_connecting(now);
        self.occupy(index, connection);
        Ok(ConnectionHandle(id))
    }

    /// Says which planes' lines take no data now (bit p: plane p), until told otherwise: data goes over paths of the others (a run of packets that has begun is not broken). Where a plane's queue
    /// is in front of its line alone, a packet for it would else wait there while another plane's line is free. What is not data
    /// keeps to its path.
    // spec: MR-PATH-023
    pub fn set_busy_planes(&mut self, busy: u8) {
        let free = self.shared.busy_planes & !busy != 0;
        self.shared.busy_planes = busy;
        let entries = self.entries.borrow_mut();
        while free && let Some(index) = self.schedule.pop(entries, Ring::Held) {
            self.schedule.push(entries, Ring::Ready, index);
        }
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
        let regions = &self.shared.regions;
        let (index, record) = find(self.entries.borrow_mut(), self.index_mask, connection.0)
            .ok_or(PostError::UnknownConnection)?;
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
        queue: ReceiveQueue,
        receive: &ReceiveRequest,
    ) -> Result<(), PostError> {
        // spec: MR-MEM-004, MR-MEM-006
        if receive.local.length != 0 {
            self.shared
                .regions
                .check_local(receive.local, Access::LOCAL_WRITE)
                .map_err(PostError::Local)?;
        }
        match queue {
            ReceiveQueue::Stream(handle, stream) => {
                let entries = self.entries.borrow_mut();
                let (index, record) =
                    find(entries, self.index_mask, handle.0).ok_or(PostError::UnknownConnection)?;
                record.post_receive(&mut self.shared.receives, stream, receive)?;
                self.touched(index);
            }
            ReceiveQueue::Shared(number) => {
                match self.shared.receives.post_shared(number, receive) {
                    None => return Err(PostError::WrongQueue),
                    Some(false) => return Err(PostError::QueueFull),
                    Some(true) => {}
                }
                for entry in self.entries.borrow_mut() {
                    if let Some(record) = &mut entry.connection {
                        record.shared_queue_filled(&mut self.shared.receives, number);
                    }
                }
            }
        }
        Ok(())
    }

    /// Lets a stream take its buffers from a shared queue (0 to 7), if it never had one of its own.
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
        let (index, record) =
            find(entries, self.index_mask, connection.0).ok_or(PostError::UnknownConnection)?;
        record.attach_shared_queue(&mut self.shared.receives, stream, queue)?;
        self.touched(index);
        Ok(())
    }

    /// Asks the peer for a share of its capacity ahead of a burst. (A large burst after a pause does so by itself.)
    ///
    /// # Errors
    /// [`PostError::UnknownConnection`], [`PostError::NotEstablished`].
    pub fn announce(&mut self, connection: ConnectionHandle) -> Result<(), PostError> {
        let entries = self.entries.borrow_mut();
        let (index, record) =
            find(entries, self.index_mask, connection.0).ok_or(PostError::UnknownConnection)?;
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
        let (index, record) =
            find(entries, self.index_mask, connection.0).ok_or(PostError::UnknownConnection)?;
        record.close(now, mode);
        self.touched(index);
        Ok(())
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
            let mut next = Instant::FAR_FUTURE;
            if let Some(record) = connection_at(entries, index) {
                record.handle_timeout(now, &self.shared.config);
                // Each timer fires once in a call.
                next = record.next_timeout().max(now + Duration::from_nanos(1));
            }
            self.schedule.set_deadline(entries, index, next);
            self.touched(index);
        }
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some(completion) = self.shared.receives.poll() {
            return Some(Event::Completion(completion));
        }
        while let Some(index) = self.schedule.front(Ring::Events) {
            let entries = self.entries.borrow_mut();
            if let Some(record) = connection_at(entries, index) {
                if let Some(event) = record.poll_event(&mut self.shared.receives) {
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

    /// Where a path is in its sequence numbers, by its number: what an acknowledgment of it would say.
    #[must_use]
    pub fn path_window(
        &self,
        connection: ConnectionHandle,
        path: u8,
    ) -> Option<crate::stats::PathWindow> {
        self.record(connection)?.path_window(path)
    }

    /// What was agreed on with the peer, once connected.
    #[must_use]
    pub fn agreed(&self, connection: ConnectionHandle) -> Option<crate::handshake::Agreed> {
        self.record(connection)
            .filter(|record| record.state != State::Connecting)
            .map(|record| record.agreed)
    }

    pub(super) fn record(
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
    // spec: MR-HINT-003
    pub(super) fn hint(&mut self, now: Instant) -> u32 {
        if self.shared.config.hints {
            let overhead = u64::from(self.shared.config.overhead_bytes);
            let arrived = self.statistics.bytes_received
                + self.statistics.datagrams_received.wrapping_mul(overhead);
            self.allocator.level(
                now,
                arrived,
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
    pub(super) fn touched(&mut self, index: u16) {
        let entries = self.entries.borrow_mut();
        self.schedule.push(entries, Ring::Ready, index);
        if connection_at(entries, index).is_some_and(|record| record.has_events()) {
            self.schedule.push(entries, Ring::Events, index);
        }
    }

    pub(super) fn free_entry(&self) -> Option<u16> {
        self.entries
            .borrow()
            .iter()
            .position(|entry| entry.connection.is_none())
            .map(|index| index as u16)
    }

    /// An id whose low bits are the table index and whose others cannot be guessed. Never zero.
    // spec: MR-SETUP-001
    pub(super) fn new_id(&mut self, index: u16) -> u32 {
        loop {
            let id = (self.secret.number() & !self.index_mask) | u32::from(index);
            if id != 0 {
                return id;
            }
        }
    }

    pub(super) fn occupy(
        &mut self,
        index: u16,
        connection: Connection<PATHS, SLOTS, STREAMS, MESSAGES>,
    ) {
        if let Some(entry) = self.entries.borrow_mut().get_mut(usize::from(index)) {
            entry.connection = Some(connection);
        }
        self.touched(index);
    }

    // spec: MR-CLOSE-009
    pub(super) fn vacate(&mut self, index: u16) {
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
