//! The wire between the two: loses, delays and so reorders, by a counter-based generator.

use metaroce_core::Instant;

/// Most bytes of a datagram: 512 of payload, 52 around them, and what set-up needs.
pub const DATAGRAM: usize = 640;
/// Datagrams on their way at once.
const CAPACITY: usize = 24;

/// A datagram on its way.
#[derive(Clone, Copy)]
struct Flight {
    arrives_ns: u64,
    number: u32,
    to: u8,
    source_port: u16,
    length: u16,
    bytes: [u8; DATAGRAM],
}

/// The wire.
pub struct Wire {
    state: u64,
    loss_percent: u64,
    sent: u32,
    lost: u32,
    hash: u64,
    flights: [Option<Flight>; CAPACITY],
}

/// A datagram that arrived.
pub struct Arrival {
    /// Which of the two it is for.
    pub to: u8,
    /// The UDP source port it came from.
    pub source_port: u16,
    length: u16,
    bytes: [u8; DATAGRAM],
}

impl Arrival {
    /// The datagram.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&[])
    }
}

impl Wire {
    pub const fn new(seed: u64, loss_percent: u8) -> Self {
        Self {
            state: seed,
            loss_percent: loss_percent as u64,
            sent: 0,
            lost: 0,
            hash: 0xcbf2_9ce4_8422_2325,
            flights: [None; CAPACITY],
        }
    }

    /// SplitMix64 (Steele, Lea, Flood, 2014).
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// FNV-1a, 64 bits.
    fn digest(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Takes a datagram for `to`. False if there are more on their way than the wire holds.
    pub fn send(&mut self, now: Instant, to: u8, source_port: u16, bytes: &[u8]) -> bool {
        self.digest(&[to]);
        self.digest(&now.as_nanos().to_le_bytes());
        self.digest(&source_port.to_le_bytes());
        self.digest(bytes);
        let number = self.sent;
        self.sent += 1;
        let random = self.random();
        if random % 100 < self.loss_percent {
            self.lost += 1;
            return true;
        }
        let Some(place) = self.flights.iter_mut().find(|place| place.is_none()) else {
            return false;
        };
        let mut flight = Flight {
            arrives_ns: now.as_nanos() + 5_000 + (random >> 32) % 10_000,
            number,
            to,
            source_port,
            length: bytes.len() as u16,
            bytes: [0; DATAGRAM],
        };
        let Some(room) = flight.bytes.get_mut(..bytes.len()) else {
            return false;
        };
        room.copy_from_slice(bytes);
        *place = Some(flight);
        true
    }

    /// When the next one arrives.
    pub fn next(&self) -> Option<Instant> {
        let times = self
            .flights
            .iter()
            .flatten()
            .map(|flight| flight.arrives_ns);
        times.min().map(Instant::from_nanos)
    }

    /// The first of those that have arrived: the earliest, of equals the one that was sent first.
    pub fn arrival(&mut self, now: Instant) -> Option<Arrival> {
        let first = self
            .flights
            .iter_mut()
            .filter(|place| matches!(place, Some(flight) if flight.arrives_ns <= now.as_nanos()))
            .min_by_key(|place| {
                place
                    .as_ref()
                    .map(|flight| (flight.arrives_ns, flight.number))
            })?;
        let flight = first.take()?;
        Some(Arrival {
            to: flight.to,
            source_port: flight.source_port,
            length: flight.length,
            bytes: flight.bytes,
        })
    }

    /// Sent, lost, hash.
    pub const fn figures(&self) -> (u32, u32, u64) {
        (self.sent, self.lost, self.hash)
    }
}
