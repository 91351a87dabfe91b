//! PROBE, FENCE, ANNOUNCE, HINT, CLOSE and CLOSE_ACK: the small datagrams of a connection.

use super::bytes::{exactly, put, room, u8_at, u16_at, u32_at, zero};
use super::demand::Demand;
use super::error::{BufferTooSmall, DecodeError, Field};
use super::header::{HEADER_SIZE, Header, Kind};

/// Size of a PROBE without trailer, in bytes.
pub const PROBE_SIZE: usize = HEADER_SIZE;
/// Size of a FENCE without trailer, in bytes.
pub const FENCE_SIZE: usize = HEADER_SIZE;
/// Size of an ANNOUNCE without trailer, in bytes.
pub const ANNOUNCE_SIZE: usize = 18;
/// Size of a HINT without trailer, in bytes.
pub const HINT_SIZE: usize = 20;
/// Size of a CLOSE without trailer, in bytes.
pub const CLOSE_SIZE: usize = 24;
/// Size of a CLOSE_ACK without trailer, in bytes.
pub const CLOSE_ACK_SIZE: usize = 20;

/// PROBE: asks for an ACK of a path at once. It is a common header whose PSN field carries the
/// number of the attempt.
///
/// ```
/// use metaroce_core::wire::{Header, Probe};
/// let probe = Probe { path: 1, generation: 2, connection: 3, attempt: 4, tsn: 5 };
/// let mut datagram = [0; 16];
/// assert_eq!(probe.encode(&mut datagram), Ok(16));
/// let header = Header::decode(&datagram).unwrap();
/// assert_eq!(Probe::decode(&header, &datagram), Ok(probe));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Probe {
    /// Path that is probed.
    pub path: u8,
    /// Its generation.
    pub generation: u8,
    /// Connection id of the receiver.
    pub connection: u32,
    /// Number of the attempt.
    pub attempt: u32,
    /// TSN of this transmission.
    pub tsn: u32,
}

impl Probe {
    /// Reads a PROBE whose header was read and whose trailer was taken off.
    ///
    /// # Errors
    /// [`DecodeError::Kind`], [`DecodeError::Length`].
    #[inline]
    pub fn decode(header: &Header, body: &[u8]) -> Result<Self, DecodeError> {
        header.expect(Kind::Probe)?;
        // spec: MR-WIRE-026
        exactly::<PROBE_SIZE>(Kind::Probe, body)?;
        Ok(Self {
            path: header.path,
            generation: header.generation,
            connection: header.connection,
            attempt: header.psn,
            tsn: header.tsn,
        })
    }

    /// Writes the PROBE and returns its length.
    ///
    /// # Errors
    /// [`BufferTooSmall`] when it does not fit.
    #[inline]
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let out = room::<PROBE_SIZE>(out)?;
        let header = Header {
            path: self.path,
            generation: self.generation,
            psn: self.attempt,
            tsn: self.tsn,
            ..Header::new(Kind::Probe, self.connection)
        };
        header.put(out);
        Ok(PROBE_SIZE)
    }
}

/// FENCE: asks to freeze a generation of a path. It is a common header whose path and
/// generation are those to freeze, whose PSN field carries the number of the attempt, and whose
/// TSN is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Fence {
    /// Path to freeze.
    pub path: u8,
    /// Generation to freeze.
    pub generation: u8,
    /// Connection id of the receiver.
    pub connection: u32,
    /// Number of the attempt.
    pub attempt: u32,
}

impl Fence {
    /// Reads a FENCE whose header was read and whose trailer was taken off.
    ///
    /// # Errors
    /// [`DecodeError::Kind`], [`DecodeError::Length`], [`DecodeError::Reserved`].
    pub fn decode(header: &Header, body: &[u8]) -> Result<Self, DecodeError> {
        header.expect(Kind::Fence)?;
        // spec: MR-WIRE-026
        exactly::<FENCE_SIZE>(Kind::Fence, body)?;
        header.without_tsn()?;
        Ok(Self {
            path: header.path,
            generation: header.generation,
            connection: header.connection,
            attempt: header.psn,
        })
    }

    /// Writes the FENCE and returns its length.
    ///
    /// # Errors
    /// [`BufferTooSmall`] when it does not fit.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let out = room::<FENCE_SIZE>(out)?;
        let header = Header {
            path: self.path,
            generation: self.generation,
            psn: self.attempt,
            ..Header::new(Kind::Fence, self.connection)
        };
        header.put(out);
        Ok(FENCE_SIZE)
    }
}

/// ANNOUNCE: tells how much is about to be sent, so that the receiver can answer with a rate.
///
/// The PSN field carries its number and the TSN is 0; then at 16 the demand (u8) and at 17 a
/// zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Announce {
    /// Path on which it travels.
    pub path: u8,
    /// Generation of that path.
    pub generation: u8,
    /// Connection id of the receiver.
    pub connection: u32,
    /// Number of the announcement, echoed in HINT.
    pub number: u32,
    /// What is queued for the receiver.
    pub demand: Demand,
}

impl Announce {
    /// Reads an ANNOUNCE whose header was read and whose trailer was taken off.
    ///
    /// # Errors
    /// [`DecodeError::Kind`], [`DecodeError::Length`], [`DecodeError::Reserved`].
    pub fn decode(header: &Header, body: &[u8]) -> Result<Self, DecodeError> {
        header.expect(Kind::Announce)?;
        // spec: MR-WIRE-026
        let bytes = exactly::<ANNOUNCE_SIZE>(Kind::Announce, body)?;
        header.without_tsn()?;
        zero(u8_at::<17, 18>(bytes).into(), 17)?;
        Ok(Self {
            path: header.path,
            generation: header.generation,
            connection: header.connection,
            number: header.psn,
            demand: Demand(u8_at::<16, 18>(bytes)),
        })
    }

    /// Writes the ANNOUNCE and returns its length.
    ///
    /// # Errors
    /// [`BufferTooSmall`] when it does not fit.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let out = room::<ANNOUNCE_SIZE>(out)?;
        let header = Header {
            path: self.path,
            generation: self.generation,
            psn: self.number,
            ..Header::new(Kind::Announce, self.connection)
        };
        header.put(out);
        put::<16, 2, 18>(out, [self.demand.0, 0]);
        Ok(ANNOUNCE_SIZE)
    }
}

/// HINT: a rate for the sender.
///
/// The PSN field echoes the number of the announcement and the TSN is 0; at 16 the rate (u32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Hint {
    /// Path of the announcement.
    pub path: u8,
    /// Generation of that path.
    pub generation: u8,
    /// Connection id of the sender of data, who receives this.
    pub connection: u32,
    /// Number of the announcement that this answers.
    pub number: u32,
    /// The rate, in Mbit/s; 0 = none.
    pub rate_mbps: u32,
}

impl Hint {
    /// Reads a HINT whose header was read and whose trailer was taken off.
    ///
    /// # Errors
    /// [`DecodeError::Kind`], [`DecodeError::Length`], [`DecodeError::Reserved`].
    pub fn decode(header: &Header, body: &[u8]) -> Result<Self, DecodeError> {
        header.expect(Kind::Hint)?;
        // spec: MR-WIRE-026
        let bytes = exactly::<HINT_SIZE>(Kind::Hint, body)?;
        header.without_tsn()?;
        Ok(Self {
            path: header.path,
            generation: header.generation,
            connection: header.connection,
            number: header.psn,
            rate_mbps: u32_at::<16, 20>(bytes),
        })
    }

    /// Writes the HINT and returns its length.
    ///
    /// # Errors
    /// [`BufferTooSmall`] when it does not fit.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let out = room::<HINT_SIZE>(out)?;
        let header = Header {
            path: self.path,
            generation: self.generation,
            psn: self.number,
            ..Header::new(Kind::Hint, self.connection)
        };
        header.put(out);
        put::<16, 4, 20>(out, self.rate_mbps.to_be_bytes());
        Ok(HINT_SIZE)
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum CloseMode {
    /// Once what is open is delivered.
    Drain = 0,
    /// At once; what is open fails.
    Abort = 1,
}

/// CLOSE: ends the connection.
///
/// Path, generation, PSN and TSN are 0; then at 16 the sender's connection id (u32), at 20 the
/// reason (u16), at 22 the mode (u8: 0 drain, 1 abort), at 23 a zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Close {
    /// Connection id of the receiver.
    pub connection: u32,
    /// Connection id of the sender; not 0.
    pub source: u32,
    /// Why; the numbers are the application's.
    pub reason: u16,
    /// How.
    pub mode: CloseMode,
}

impl Close {
    /// Reads a CLOSE whose header was read and whose trailer was taken off.
    ///
    /// # Errors
    /// [`DecodeError::Kind`], [`DecodeError::Length`], [`DecodeError::Reserved`],
    /// [`DecodeError::OutOfRange`].
    pub fn decode(header: &Header, body: &[u8]) -> Result<Self, DecodeError> {
        header.expect(Kind::Close)?;
        // spec: MR-WIRE-026
        let bytes = exactly::<CLOSE_SIZE>(Kind::Close, body)?;
        header.without_path()?;
        header.without_psn()?;
        header.without_tsn()?;
        zero(u8_at::<23, 24>(bytes).into(), 23)?;
        // spec: MR-WIRE-027
        let mode = match u8_at::<22, 24>(bytes) {
            0 => CloseMode::Drain,
            1 => CloseMode::Abort,
            other => {
                return Err(DecodeError::OutOfRange {
                    field: Field::CloseMode,
                    got: other.into(),
                });
            }
        };
        Ok(Self {
            connection: header.connection,
            source: source_connection(u32_at::<16, 24>(bytes))?,
            reason: u16_at::<20, 24>(bytes),
            mode,
        })
    }

    /// Writes the CLOSE and returns its length.
    ///
    /// # Errors
    /// [`BufferTooSmall`] when it does not fit.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let out = room::<CLOSE_SIZE>(out)?;
        Header::new(Kind::Close, self.connection).put(out);
        put::<16, 4, 24>(out, self.source.to_be_bytes());
        put::<20, 2, 24>(out, self.reason.to_be_bytes());
        put::<22, 2, 24>(out, [self.mode as u8, 0]);
        Ok(CLOSE_SIZE)
    }
}

/// CLOSE_ACK: confirms the end.
///
/// Path, generation, PSN and TSN are 0; then at 16 the sender's connection id (u32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct CloseAck {
    /// Connection id of the receiver.
    pub connection: u32,
    /// Connection id of the sender; not 0.
    pub source: u32,
}

impl CloseAck {
    /// Reads a CLOSE_ACK whose header was read and whose trailer was taken off.
    ///
    /// # Errors
    /// [`DecodeError::Kind`], [`DecodeError::Length`], [`DecodeError::Reserved`],
    /// [`DecodeError::OutOfRange`].
    pub fn decode(header: &Header, body: &[u8]) -> Result<Self, DecodeError> {
        header.expect(Kind::CloseAck)?;
        // spec: MR-WIRE-026
        let bytes = exactly::<CLOSE_ACK_SIZE>(Kind::CloseAck, body)?;
        header.without_path()?;
        header.without_psn()?;
        header.without_tsn()?;
        Ok(Self {
            connection: header.connection,
            source: source_connection(u32_at::<16, 20>(bytes))?,
        })
    }

    /// Writes the CLOSE_ACK and returns its length.
    ///
    /// # Errors
    /// [`BufferTooSmall`] when it does not fit.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let out = room::<CLOSE_ACK_SIZE>(out)?;
        Header::new(Kind::CloseAck, self.connection).put(out);
        put::<16, 4, 20>(out, self.source.to_be_bytes());
        Ok(CLOSE_ACK_SIZE)
    }
}

/// Refuses 0 as the sender's own connection id.
pub(super) fn source_connection(id: u32) -> Result<u32, DecodeError> {
    // spec: MR-WIRE-027
    if id == 0 {
        return Err(DecodeError::OutOfRange {
            field: Field::SourceConnection,
            got: 0,
        });
    }
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::super::{Packet, decode};
    use super::*;

    const CONNECTION: u32 = 0x0405_0607;

    fn check(packet: Packet<'_>, bytes: &[u8]) {
        let mut out = [0xee; 32];
        assert_eq!(packet.encode(&mut out), Ok(bytes.len()));
        assert_eq!(&out[..bytes.len()], bytes);
        assert_eq!(decode(bytes), Ok(packet));
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length]).is_err());
            let error = BufferTooSmall {
                needed: bytes.len(),
                got: length,
            };
            assert_eq!(packet.encode(&mut out[..length]), Err(error));
        }
        let mut longer = [0; 33];
        longer[..bytes.len()].copy_from_slice(bytes);
        assert!(decode(&longer[..=bytes.len()]).is_err());
    }

    // spec: MR-WIRE-026
    #[test]
    fn probe() {
        let probe = Probe {
            path: 2,
            generation: 3,
            connection: CONNECTION,
            attempt: 0x0809_0a0b,
            tsn: 0x0c0d_0e0f,
        };
        let bytes = [0x16, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        check(Packet::Probe(probe), &bytes);
    }

    // spec: MR-WIRE-026
    #[test]
    fn fence() {
        let fence = Fence {
            path: 2,
            generation: 3,
            connection: CONNECTION,
            attempt: 0x0809_0a0b,
        };
        let mut bytes = [0x17, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 0, 0, 0];
        check(Packet::Fence(fence), &bytes);
        bytes[15] = 1;
        assert_eq!(decode(&bytes), Err(DecodeError::Reserved { offset: 12 }));
    }

    // spec: MR-WIRE-026
    #[test]
    fn announce() {
        let announce = Announce {
            path: 2,
            generation: 3,
            connection: CONNECTION,
            number: 0x0809_0a0b,
            demand: Demand(99),
        };
        let mut bytes = [0x19, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 0, 0, 0, 99, 0];
        check(Packet::Announce(announce), &bytes);
        bytes[17] = 1;
        assert_eq!(decode(&bytes), Err(DecodeError::Reserved { offset: 17 }));
    }

    // spec: MR-WIRE-026
    #[test]
    fn hint() {
        let hint = Hint {
            path: 2,
            generation: 3,
            connection: CONNECTION,
            number: 0x0809_0a0b,
            rate_mbps: 0x1011_1213,
        };
        let mut bytes = [
            0x1a, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 0, 0, 0, 16, 17, 18, 19,
        ];
        check(Packet::Hint(hint), &bytes);
        bytes[12] = 1;
        assert_eq!(decode(&bytes), Err(DecodeError::Reserved { offset: 12 }));
    }

    // spec: MR-WIRE-026, MR-WIRE-027
    #[test]
    fn close() {
        let close = Close {
            connection: CONNECTION,
            source: 0x1011_1213,
            reason: 0x1415,
            mode: CloseMode::Abort,
        };
        let bytes = [
            0x1b, 0, 0, 0, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 16, 17, 18, 19, 20, 21, 1, 0,
        ];
        check(Packet::Close(close), &bytes);
        for (at, offset) in [(2, 2), (3, 3), (8, 8), (15, 12), (23, 23)] {
            let mut wrong = bytes;
            wrong[at] = 1;
            assert_eq!(decode(&wrong), Err(DecodeError::Reserved { offset }));
        }
        let mut wrong = bytes;
        wrong[22] = 2;
        let field = Field::CloseMode;
        let error = DecodeError::OutOfRange { field, got: 2 };
        assert_eq!(decode(&wrong), Err(error));
    }

    // spec: MR-WIRE-026, MR-WIRE-027
    #[test]
    fn close_ack() {
        let ack = CloseAck {
            connection: CONNECTION,
            source: 0x1011_1213,
        };
        let mut bytes = [
            0x1c, 0, 0, 0, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 16, 17, 18, 19,
        ];
        check(Packet::CloseAck(ack), &bytes);
        bytes[16..].fill(0);
        let field = Field::SourceConnection;
        let error = DecodeError::OutOfRange { field, got: 0 };
        assert_eq!(decode(&bytes), Err(error));
    }
}
