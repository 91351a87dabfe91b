//! Datagrams out: stateless answers, then the connections in turn.

use core::borrow::BorrowMut;
use core::net::SocketAddr;

use super::Endpoint;
use super::table::{ConnectionEntry, connection_at, find};
use crate::memory::Memory;
use crate::schedule::Ring;
use crate::time::Instant;
use crate::transmit::{Class, Ecn, HEADER_BUFFER, Transmit};
use crate::wire::{self, Trailer};

/// A small datagram that belongs to no connection: RETRY or REJECT.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stateless {
    pub destination: SocketAddr,
    pub plane: u8,
    pub bytes: [u8; wire::RETRY_SIZE],
    pub length: u8,
}

/// Stateless answers that may wait to be sent; more are dropped.
pub(super) const STATELESS: usize = 4;

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
    /// The next datagram to send: everything in front of the payload is written to `header`, the payload is named. For those that gather
    /// payloads and append the CRC32C themselves.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        header: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        let transmit = match self.next_of_run(now, header) {
            Some(transmit) => transmit,
            None => self.next_transmit(now, header)?,
        };
        self.statistics.datagrams_sent += 1;
        self.statistics.bytes_sent += transmit.length as u64;
        Some(transmit)
    }

    /// The next packet of a run that is going on, if nothing else wants to be sent.
    #[inline(always)]
    fn next_of_run(&mut self, now: Instant, header: &mut [u8; HEADER_BUFFER]) -> Option<Transmit> {
        let index = self.schedule.front(Ring::Ready)?;
        let entries = self.entries.borrow_mut();
        let record = connection_at(entries, index)?;
        if self.answers != 0 || record.wants_hint() || !record.is_open() {
            return None;
        }
        let transmit = record.continue_run(now, &mut self.shared, header)?;
        // A sender that its line holds back never comes to the end in `next_transmit`.
        if record.is_timeout_earlier() {
            let deadline = record.next_timeout();
            self.schedule.set_deadline(entries, index, deadline);
        }
        Some(transmit)
    }

    #[inline(never)]
    pub(super) fn next_transmit(
        &mut self,
        now: Instant,
        header: &mut [u8; HEADER_BUFFER],
    ) -> Option<Transmit> {
        if self.answers != 0
            && let Some(answer) = self.stateless.iter_mut().find_map(Option::take)
        {
            self.answers -= 1;
            return Some(stateless_transmit(&answer, header));
        }
        let mut is_hint_current = false;
        while let Some(index) = self.schedule.front(Ring::Ready) {
            let entries = self.entries.borrow_mut();
            let Some(record) = connection_at(entries, index) else {
                self.schedule.pop(entries, Ring::Ready);
                continue;
            };
            if !is_hint_current && record.wants_hint() {
                self.shared.hint_mbps = self.hint(now);
                is_hint_current = true;
                continue;
            }
            self.shared.held_back = false;
            if let Some(transmit) = record.poll_transmit(now, &mut self.shared, header) {
                // A sender that its line holds back never comes to the end below.
                let deadline = record.is_timeout_earlier().then(|| record.next_timeout());
                let in_run = record.in_run();
                if let Some(deadline) = deadline {
                    self.schedule.set_deadline(entries, index, deadline);
                }
                if !in_run {
                    self.schedule.rotate(entries, Ring::Ready);
                }
                return Some(transmit);
            }
            let deadline = record.next_timeout();
            let events = record.has_events();
            let over = record.is_over();
            self.schedule.pop(entries, Ring::Ready);
            if self.shared.held_back {
                self.schedule.push(entries, Ring::Held, index);
            }
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

    /// The next datagram to send, whole, at the start of `buffer`, which must hold the largest: the payload size + 52 bytes, and at least
    /// [`HEADER_BUFFER`]. With a shorter one nothing is ever sent.
    pub fn poll_datagram<M: Memory>(
        &mut self,
        now: Instant,
        memory: &M,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        debug_assert!(buffer.len() >= HEADER_BUFFER, "a buffer too short");
        let header = buffer.first_chunk_mut::<HEADER_BUFFER>()?;
        let mut transmit = self.poll_transmit(now, header)?;
        if let Some(slice) = transmit.payload {
            let gathered = buffer
                .get_mut(transmit.header_length..transmit.header_length + slice.length as usize)
                .is_some_and(|place| memory.gather(slice.region, slice.offset, place).is_ok());
            if !gathered {
                let entries = self.entries.borrow_mut();
                let (index, record) = find(entries, self.index_mask, transmit.connection?.0)?;
                let header = buffer.first_chunk_mut::<HEADER_BUFFER>()?;
                transmit = record.gather_failed(&transmit, header)?;
                self.touched(index);
            }
        }
        if transmit.trailer {
            let body = transmit.length - wire::CRC_SIZE;
            wire::seal(buffer, body, Trailer::Crc32c).ok()?;
        }
        Some(transmit)
    }
}

fn stateless_transmit(answer: &Stateless, header: &mut [u8; HEADER_BUFFER]) -> Transmit {
    let length = usize::from(answer.length);
    if let (Some(place), Some(bytes)) = (header.get_mut(..length), answer.bytes.get(..length)) {
        crate::storage::copy(place, bytes);
    }
    Transmit {
        connection: None,
        to: wire::PlaneAddress::new(answer.destination, 0),
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
