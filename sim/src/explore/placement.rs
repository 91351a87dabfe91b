//! Which bytes of which message are in their place: hosts that note it while they do their work.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::peek::{Part, Peek};
use crate::node::{Counters, Message, Node, Progress};
use crate::packet::{HostId, Packet};
use crate::simulation::Station;
use crate::time::Time;

/// Parts of a message whose filling is told apart, at most.
pub const CELLS: usize = 64;

/// A message on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Its number: that of its task.
    pub id: u32,
    /// Who sends.
    pub from: HostId,
    /// Who receives.
    pub to: HostId,
    /// Its length.
    pub bytes: u64,
    /// Bytes in their place.
    pub placed: u64,
    /// The same for each of [`CELLS`] equal parts.
    pub cells: [u32; CELLS],
}

impl Transfer {
    fn place(&mut self, offset: u64, bytes: u64) {
        self.placed += bytes;
        let (mut at, end) = (offset, (offset + bytes).min(self.bytes));
        while at < end {
            let cell = self.cell_of(at);
            let next = self.begin_of(cell + 1).min(end);
            self.cells[cell] += (next - at) as u32;
            at = next;
        }
    }

    fn cell_of(&self, offset: u64) -> usize {
        let cell = (u128::from(offset) * CELLS as u128 / u128::from(self.bytes.max(1))) as usize;
        cell.min(CELLS - 1)
    }

    /// Where a part begins.
    #[must_use]
    pub fn begin_of(&self, cell: usize) -> u64 {
        (u128::from(self.bytes) * cell as u128).div_ceil(CELLS as u128) as u64
    }
}

/// Bytes placed are counted in spans of this length.
pub const BIN: Time = Time::from_us(1);

/// All messages that were posted.
#[derive(Debug, Default)]
pub struct Placements {
    /// When the first span begins.
    pub(super) begin: Time,
    bins: Vec<u64>,
    transfers: Vec<Transfer>,
    by_id: BTreeMap<u32, usize>,
    /// By sender, receiver and stream: the messages, in the order in which they were posted.
    streams: BTreeMap<(HostId, HostId, u16), Vec<usize>>,
}

impl Placements {
    /// In the order in which they were posted.
    #[must_use]
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// Bytes placed at all hosts in each span of [`BIN`] since the workload began, up to the last in which some were.
    #[must_use]
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }

    fn count(&mut self, now: Time, bytes: u64) {
        let bin = (now.since(self.begin).ps() / BIN.ps()) as usize;
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += bytes;
    }

    fn post(&mut self, from: HostId, stream: u16, message: &Message) {
        let index = self.transfers.len();
        self.transfers.push(Transfer {
            id: message.id,
            from,
            to: message.peer,
            bytes: message.bytes,
            placed: 0,
            cells: [0; CELLS],
        });
        self.by_id.insert(message.id, index);
        let stream = (from, message.peer, stream);
        self.streams.entry(stream).or_default().push(index);
    }

    fn place(&mut self, from: HostId, to: HostId, part: Part, bytes: u64) {
        let (index, offset) = match part {
            Part::Message { id, offset } => (self.by_id.get(&id), offset),
            Part::Stream {
                stream,
                number,
                offset,
            } => {
                let messages = self.streams.get(&(from, to, stream));
                (messages.and_then(|all| all.get(number as usize)), offset)
            }
        };
        if let Some(&index) = index {
            self.transfers[index].place(offset, bytes);
        }
    }
}

/// A host that notes what it places. It does nothing else that the one in it would not do.
pub(crate) struct Noting<N> {
    pub node: N,
    id: HostId,
    placed: u64,
    placements: Rc<RefCell<Placements>>,
}

impl<N: Peek> Noting<N> {
    pub fn new(node: N, id: HostId, placements: Rc<RefCell<Placements>>) -> Self {
        Self {
            node,
            id,
            placed: 0,
            placements,
        }
    }
}

impl<N: Peek> Station for Noting<N> {
    fn receive(&mut self, now: Time, packet: &Packet) {
        self.node.receive(now, packet);
        if !packet.is_data() {
            return;
        }
        let placed = self.node.counters().placed_bytes;
        if placed > self.placed {
            let bytes = placed - self.placed;
            let mut placements = self.placements.borrow_mut();
            placements.count(now, bytes);
            if let Some(part) = self.node.part(packet) {
                placements.place(packet.source, self.id, part, bytes);
            }
        }
        self.placed = placed;
    }
    fn set_busy_planes(&mut self, busy: u8) {
        self.node.set_busy_planes(busy);
    }
    fn transmit(&mut self, now: Time, packet: &mut Packet) -> bool {
        self.node.transmit(now, packet)
    }
    fn transmit_control(&mut self, now: Time, packet: &mut Packet) -> bool {
        self.node.transmit_control(now, packet)
    }
    fn deadline(&mut self, now: Time) -> Option<Time> {
        self.node.deadline(now)
    }
    fn timeout(&mut self, now: Time) {
        self.node.timeout(now);
    }
    fn has_news(&self) -> bool {
        self.node.has_news()
    }
}

impl<N: Peek> Node for Noting<N> {
    fn prepare(&mut self, now: Time, peers: &[HostId]) {
        self.node.prepare(now, peers);
    }
    fn is_ready(&self) -> bool {
        self.node.is_ready()
    }
    fn post(&mut self, now: Time, message: &Message) {
        let stream = self.node.stream(message.flow);
        self.placements.borrow_mut().post(self.id, stream, message);
        self.node.post(now, message);
    }
    fn poll_progress(&mut self, now: Time) -> Option<Progress> {
        self.node.poll_progress(now)
    }
    fn counters(&self) -> Counters {
        self.node.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_add_up_to_what_was_placed() {
        for bytes in [1, 63, 64, 65, 1_000, 4_096, 100_000] {
            let mut transfer = Transfer {
                id: 0,
                from: 0,
                to: 1,
                bytes,
                placed: 0,
                cells: [0; CELLS],
            };
            let mut at = 0;
            while at < bytes {
                let part = 333.min(bytes - at);
                transfer.place(at, part);
                at += part;
            }
            assert_eq!(transfer.placed, bytes);
            for (cell, &filled) in transfer.cells.iter().enumerate() {
                let size = transfer.begin_of(cell + 1) - transfer.begin_of(cell);
                assert_eq!(u64::from(filled), size, "{bytes} bytes, cell {cell}");
            }
        }
    }
}
