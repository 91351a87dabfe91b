//! Header prediction (Jacobson, RFC 1144's idea): most DATA packets differ from the one before only in path, sequence numbers, offset and demand.
//! Such a packet need not be parsed and looked up again: what its message is, and where its bytes go, is known.

use super::{Connection, Shared};
use crate::memory::{Memory, RegionIndex};
use crate::message::incoming::InProgress;
use crate::path::receive::Arrival;
use crate::time::Instant;
use crate::wire::{DATA_SIZE, Demand, Flags, MAX_PAYLOAD};

/// What the next DATA packet is expected to be: another part of the same WRITE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prediction {
    /// The header's 64-bit words, those of the PSN and TSN left out, with the parts that may differ masked.
    words: [u64; 5],
    base: u64,
    length: u32,
    msn: u32,
    /// Id of the connection; 0: nothing is expected.
    pub connection: u32,
    withdrawals: u32,
    region: RegionIndex,
    stream: u16,
    entry: u16,
    /// The header of the packet that made the expectation is still to be noted.
    incomplete: bool,
}

/// The parts of each word that must be the same.
const MASKS: [u64; 5] = [
    u64::from_ne_bytes([
        0xff,
        !(Flags::ACK_REQUEST.0 | Flags::RETRANSMISSION.0),
        0,
        0,
        0xff,
        0xff,
        0xff,
        0xff,
    ]),
    u64::from_ne_bytes([0xff, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
    u64::from_ne_bytes([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
    u64::MAX,
    u64::MAX,
];

/// The masked words of a header.
#[cfg_attr(not(feature = "small"), inline(always))]
fn words(header: &[u8; DATA_SIZE]) -> [u64; 5] {
    let word = |at: usize| {
        header
            .get(at..at + 8)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u64::from_ne_bytes)
    };
    let all = [word(0), word(16), word(24), word(32), word(40)];
    core::array::from_fn(|i| all[i] & MASKS[i])
}

/// The parts of a predicted packet that differ.
#[derive(Clone, Copy)]
pub(crate) struct Varying {
    pub path: u8,
    pub generation: u8,
    pub flags: Flags,
    pub psn: u32,
    pub tsn: u32,
    pub offset: u32,
    pub demand: Demand,
}

impl Prediction {
    /// Nothing is expected.
    pub const NONE: Self = Self {
        words: [0; 5],
        base: 0,
        length: 0,
        msn: 0,
        connection: 0,
        withdrawals: 0,
        region: RegionIndex(0),
        stream: 0,
        entry: 0,
        incomplete: false,
    };

    /// Completes the expectation that a packet has just made, if it made one.
    #[inline]
    pub fn complete(&mut self, bytes: &[u8]) {
        if self.incomplete
            && let Some(header) = bytes.first_chunk()
        {
            self.incomplete = false;
            self.words = words(header);
        }
    }

    /// The varying parts of a packet, if it is what was expected.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub fn matches(&self, header: &[u8; DATA_SIZE]) -> Option<Varying> {
        let found = words(header);
        let differences = found
            .iter()
            .zip(&self.words)
            .fold(0, |all, (a, b)| all | (a ^ b));
        if differences != 0 || self.connection == 0 {
            return None;
        }
        let number = |at: usize| {
            header
                .get(at..at + 4)
                .and_then(|bytes| bytes.try_into().ok())
                .map_or(0, u32::from_be_bytes)
        };
        Some(Varying {
            path: header[2],
            generation: header[3],
            flags: Flags(header[1]),
            psn: number(8),
            tsn: number(12),
            offset: number(28),
            demand: Demand(header[17]),
        })
    }
}

impl<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>
    Connection<PATHS, SLOTS, STREAMS, MESSAGES>
{
    /// Notes where an open message goes, for the packets to come.
    #[inline]
    pub(super) fn predict<const R: usize, const V: usize>(
        &self,
        shared: &mut Shared<R, V>,
        entry: u16,
        region: RegionIndex,
        base: u64,
    ) {
        let message = self.incoming.at(entry);
        if message.progress == InProgress::Open {
            shared.prediction = Prediction {
                words: [0; 5],
                base,
                length: message.length,
                msn: message.msn,
                connection: self.local_id,
                withdrawals: shared.regions.withdrawals(),
                region,
                stream: message.stream,
                entry,
                incomplete: true,
            };
        }
    }

    /// A packet that was expected. `None`: something is out of the ordinary, and nothing has happened.
    #[cfg_attr(not(feature = "small"), inline(always))]
    pub(crate) fn handle_predicted<M: Memory, const R: usize, const V: usize>(
        &mut self,
        now: Instant,
        shared: &mut Shared<R, V>,
        memory: &mut M,
        varying: Varying,
        payload: &[u8],
        ce: bool,
    ) -> Option<()> {
        let expected = &shared.prediction;
        // spec: MR-PATH-009
        if varying.path >= self.agreed.paths {
            return None;
        }
        let path = self.receive_paths.at(u16::from(varying.path));
        let entry = self.incoming.at_mut(expected.entry);
        let length = payload.len() as u32;
        // spec: MR-PATH-007, MR-MSG-002
        if path.generation() != varying.generation
            || path.is_frozen()
            || path.classify(varying.psn) != Arrival::New
            || expected.withdrawals != shared.regions.withdrawals()
            || entry.progress != InProgress::Open
            || entry.msn != expected.msn
            || entry.stream != expected.stream
            || payload.is_empty()
            || payload.len() > MAX_PAYLOAD
            || length > entry.remaining
            || u64::from(varying.offset) + u64::from(length) > u64::from(expected.length)
            || self.streams.at(expected.stream).failed.is_some()
            || memory
                .place(
                    expected.region,
                    expected.base.wrapping_add(u64::from(varying.offset)),
                    payload,
                )
                .is_err()
        {
            return None;
        }
        entry.remaining -= length;
        if entry.remaining == 0 {
            entry.progress = InProgress::Ready;
            let (stream, msn) = (entry.stream, entry.msn);
            if self.streams.at(stream).expected_msn == msn {
                self.advance(shared, memory, stream);
            }
        }
        self.accepted(now, shared, varying, payload.len(), ce);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Data, Header, Kind, Opcode, encode_data};

    fn bytes(change: impl Fn(&mut Header, &mut Data)) -> [u8; DATA_SIZE] {
        let mut header = Header {
            path: 1,
            psn: 5,
            tsn: 6,
            ..Header::new(Kind::Data, 77)
        };
        let mut data = Data {
            opcode: Opcode::Write,
            demand: Demand(9),
            stream: 3,
            msn: 4,
            length: 9000,
            offset: 0,
            address: 1 << 40,
            key: 12,
            immediate: 0,
        };
        change(&mut header, &mut data);
        let mut out = [0; DATA_SIZE];
        encode_data(&header, &data, &mut out);
        out
    }

    #[test]
    fn only_what_may_vary_varies() {
        let mut prediction = Prediction {
            connection: 77,
            incomplete: true,
            ..Prediction::NONE
        };
        prediction.complete(&bytes(|_, _| ()));
        let same: [fn(&mut Header, &mut Data); 7] = [
            |h, _| h.path = 9,
            |h, _| h.generation = 9,
            |h, _| h.psn = 9,
            |h, _| h.tsn = 9,
            |h, _| h.flags = Flags::ACK_REQUEST | Flags::RETRANSMISSION,
            |_, d| d.offset = 4096,
            |_, d| d.demand = Demand(0),
        ];
        for change in same {
            assert!(prediction.matches(&bytes(change)).is_some());
        }
        let other: [fn(&mut Header, &mut Data); 9] = [
            |h, _| h.kind = Kind::Probe,
            |h, _| h.connection = 78,
            |h, _| h.flags = Flags::SOLICITED,
            |_, d| d.opcode = Opcode::WriteImm,
            |_, d| d.stream = 4,
            |_, d| d.msn = 5,
            |_, d| d.length = 9001,
            |_, d| d.address = 0,
            |_, d| d.key = 13,
        ];
        for change in other {
            assert!(prediction.matches(&bytes(change)).is_none());
        }
        let varying = prediction
            .matches(&bytes(|h, d| (h.psn, d.offset) = (70, 80)))
            .unwrap();
        assert_eq!(
            (
                varying.path,
                varying.psn,
                varying.tsn,
                varying.offset,
                varying.demand
            ),
            (1, 70, 6, 80, Demand(9))
        );
    }

    #[test]
    fn a_packet_of_another_message_changes_no_expectation() {
        let mut prediction = Prediction {
            connection: 77,
            incomplete: true,
            ..Prediction::NONE
        };
        prediction.complete(&bytes(|_, _| ()));
        prediction.complete(&bytes(|_, d| d.msn = 5));
        assert!(prediction.matches(&bytes(|_, _| ())).is_some());
    }

    #[test]
    fn nothing_is_expected_at_first() {
        assert!(Prediction::NONE.matches(&[0; DATA_SIZE]).is_none());
    }
}
