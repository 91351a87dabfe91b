//! INIT, RETRY, ACCEPT and REJECT: how a connection is set up. They always carry a CRC32C.

use super::bytes::{exactly, put, room, take, u8_at, u16_at, u32_at, zero};
use super::control::source_connection;
use super::error::{BufferTooSmall, DecodeError, Field, short};
use super::header::{Header, Kind};
use super::parameters::{Parameters, in_range};

/// Size of an INIT without trailer, in bytes. It is padded to this with zeros, so that it is
/// longer than any RETRY, ACCEPT or REJECT that it may provoke (at most 212 bytes): a listener
/// cannot be used to amplify.
pub const INIT_SIZE: usize = 288;

/// Size of a cookie, in bytes.
pub const COOKIE_SIZE: usize = 20;

/// Size of a RETRY without trailer, in bytes.
pub const RETRY_SIZE: usize = 36;

/// Size of the longest ACCEPT (eight planes) without trailer, in bytes.
pub const MAX_ACCEPT_SIZE: usize = 212;

/// Size of a REJECT without trailer, in bytes.
pub const REJECT_SIZE: usize = 20;

/// Where the parameters begin in an INIT.
const INIT_PARAMETERS: usize = 44;

/// Where the parameters begin in an ACCEPT.
const ACCEPT_PARAMETERS: usize = 28;

/// The highest version that fits into the first byte of a datagram.
const LAST_VERSION: u16 = 15;

/// What a listener gives out in RETRY and wants back in INIT, so that it need not remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Cookie {
    /// When it was issued, in milliseconds of the listener's clock, modulo 2^32.
    pub issued_ms: u32,
    /// The listener's proof that it issued it.
    pub tag: [u8; 16],
}

impl Cookie {
    fn decode(bytes: &[u8; COOKIE_SIZE]) -> Self {
        Self {
            issued_ms: u32_at::<0, 20>(bytes),
            tag: take::<4, 16, 20>(bytes),
        }
    }

    fn encode(&self) -> [u8; COOKIE_SIZE] {
        let mut out = [0; COOKIE_SIZE];
        put::<0, 4, 20>(&mut out, self.issued_ms.to_be_bytes());
        put::<4, 16, 20>(&mut out, self.tag);
        out
    }
}

/// INIT: asks for a connection.
///
/// The connection id, path, generation and PSN of the header are 0, the TSN is the number of the
/// attempt; then
///
/// | offset | size | field |
/// |---|---|---|
/// | 16 | u32 | source connection id |
/// | 20 | u8 | lowest version |
/// | 21 | u8 | highest version |
/// | 22 | u8 | cookie length: 0 or 20 |
/// | 23 | u8 | zero |
/// | 24 | 20 bytes | cookie, or zeros |
/// | 44 | 44..=184 bytes | [`Parameters`] |
/// | .. 288 | | zeros |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Init {
    /// Number of the attempt.
    pub attempt: u32,
    /// Connection id that the initiator has chosen; not 0.
    pub source: u32,
    /// Lowest version that the initiator speaks, 1..=`highest_version`.
    pub lowest_version: u8,
    /// Highest version that the initiator speaks, at most 15.
    pub highest_version: u8,
    /// The cookie, once RETRY has given one.
    pub cookie: Option<Cookie>,
    /// What the initiator can do and wants.
    pub parameters: Parameters,
}

impl Init {
    /// Reads an INIT whose header was read and whose trailer was taken off.
    ///
    /// # Errors
    /// [`DecodeError::Kind`], [`DecodeError::Length`] when it is not 288 bytes,
    /// [`DecodeError::Reserved`], [`DecodeError::OutOfRange`].
    pub fn decode(header: &Header, body: &[u8]) -> Result<Self, DecodeError> {
        header.expect(Kind::Init)?;
        // spec: MR-SETUP-002, MR-SETUP-003
        let bytes = exactly::<INIT_SIZE>(Kind::Init, body)?;
        header.without_path()?;
        zero(header.connection.into(), 4)?;
        header.without_psn()?;
        let lowest = u8_at::<20, 288>(bytes);
        let highest = u8_at::<21, 288>(bytes);
        in_range(Field::HighestVersion, highest.into(), 1, LAST_VERSION)?;
        in_range(Field::LowestVersion, lowest.into(), 1, highest.into())?;
        zero(u8_at::<23, 288>(bytes).into(), 23)?;
        let cookie = take::<24, COOKIE_SIZE, 288>(bytes);
        let cookie = match usize::from(u8_at::<22, 288>(bytes)) {
            COOKIE_SIZE => Some(Cookie::decode(&cookie)),
            0 => {
                all_zero(&cookie, 24)?;
                None
            }
            got => {
                return Err(DecodeError::OutOfRange {
                    field: Field::CookieLength,
                    got: short(got).into(),
                });
            }
        };
        let rest = take::<INIT_PARAMETERS, { INIT_SIZE - INIT_PARAMETERS }, 288>(bytes);
        let (parameters, padding) = Parameters::decode(&rest, INIT_PARAMETERS as u16)?;
        all_zero(padding, short(INIT_SIZE - padding.len()))?;
        Ok(Self {
            attempt: header.tsn,
            source: source_connection(u32_at::<16, 288>(bytes))?,
            lowest_version: lowest,
            highest_version: highest,
            cookie,
            parameters,
        })
    }

    /// Writes the INIT with its padding and returns its length, 288. The numbers are not checked:
    /// see [`Parameters::check`].
    ///
    /// # Errors
    /// [`BufferTooSmall`] when it does not fit.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let out = room::<INIT_SIZE>(out)?;
        // spec: MR-SETUP-003
        *out = [0; INIT_SIZE];
        let header = Header {
            tsn: self.attempt,
            ..Header::new(Kind::Init, 0)
        };
        header.put(out);
        put::<16, 4, 288>(out, self.source.to_be_bytes());
        put::<20, 2, 288>(out, [self.lowest_version, self.highest_version]);
        if let Some(cookie) = &self.cookie {
            put::<22, 1, 288>(out, [COOKIE_SIZE as u8]);
            put::<24, COOKIE_SIZE, 288>(out, cookie.encode());
        }
        let rest = out.get_mut(INIT_PARAMETERS..).unwrap_or_default();
        self.parameters.encode(rest)?;
        Ok(INIT_SIZE)
    }
}

/// RETRY: asks to repeat an INIT with the cookie that it brings.
///
/// Path, generation, PSN and TSN are 0; then at 16 the cookie: the time of issue (u32) and the
/// tag (16 bytes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Retry {
    /// Connection id of the initiator.
    pub connection: u32,
    /// The cookie to bring back.
    pub cookie: Cookie,
}

impl Retry {
    /// Reads a RETRY whose header was read and whose trailer was taken off.
    ///
    /// # Errors
    /// [`DecodeError::Kind`], [`DecodeError::Length`], [`DecodeError::Reserved`].
    pub fn decode(header: &Header, body: &[u8]) -> Result<Self, DecodeError> {
        header.expect(Kind::Retry)?;
        // spec: MR-WIRE-026
        let bytes = exactly::<RETRY_SIZE>(Kind::Retry, body)?;
        header.without_path()?;
        header.without_psn()?;
        header.without_tsn()?;
        Ok(Self {
            connection: header.connection,
            cookie: Cookie::decode(&take::<16, COOKIE_SIZE, 36>(bytes)),
        })
    }

    /// Writes the RETRY and returns its length.
    ///
    /// # Errors
    /// [`BufferTooSmall`] when it does not fit.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let out = room::<RETRY_SIZE>(out)?;
        Header::new(Kind::Retry, self.connection).put(out);
        put::<16, COOKIE_SIZE, 36>(out, self.cookie.encode());
        Ok(RETRY_SIZE)
    }
}

/// ACCEPT: opens the connection.
///
/// Path, generation, PSN and TSN are 0; then
///
/// | offset | size | field |
/// |---|---|---|
/// | 16 | u32 | source connection id |
/// | 20 | u32 | rate hint |
/// | 24 | u8 | chosen version |
/// | 25 | 3 bytes | zero |
/// | 28 | 44..=184 bytes | [`Parameters`] |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Accept {
    /// Connection id of the initiator.
    pub connection: u32,
    /// Connection id that the acceptor has chosen; not 0.
    pub source: u32,
    /// Rate hint for the initiator in Mbit/s; 0 = none.
    pub hint_mbps: u32,
    /// The version that both speak from now on, 1..=15.
    pub version: u8,
    /// What the acceptor can do and wants.
    pub parameters: Parameters,
}

impl Accept {
    /// Length without trailer, in bytes: 72..=212.
    #[must_use]
    pub fn size(&self) -> usize {
        ACCEPT_PARAMETERS + self.parameters.size()
    }

    /// Reads an ACCEPT whose header was read and whose trailer was taken off.
    ///
    /// # Errors
    /// [`DecodeError::Kind`], [`DecodeError::Truncated`], [`DecodeError::Length`] when something
    /// follows the last plane, [`DecodeError::Reserved`], [`DecodeError::OutOfRange`].
    pub fn decode(header: &Header, body: &[u8]) -> Result<Self, DecodeError> {
        header.expect(Kind::Accept)?;
        // spec: MR-SETUP-002
        let Some((bytes, rest)) = body.split_first_chunk::<ACCEPT_PARAMETERS>() else {
            return Err(DecodeError::Truncated {
                needed: ACCEPT_PARAMETERS as u16,
                got: short(body.len()),
            });
        };
        header.without_path()?;
        header.without_psn()?;
        header.without_tsn()?;
        let version = u8_at::<24, 28>(bytes);
        in_range(Field::ChosenVersion, version.into(), 1, LAST_VERSION)?;
        all_zero(&take::<25, 3, 28>(bytes), 25)?;
        let (parameters, rest) = Parameters::decode(rest, ACCEPT_PARAMETERS as u16)?;
        if !rest.is_empty() {
            return Err(DecodeError::Length {
                kind: Kind::Accept,
                got: short(body.len()),
            });
        }
        Ok(Self {
            connection: header.connection,
            source: source_connection(u32_at::<16, 28>(bytes))?,
            hint_mbps: u32_at::<20, 28>(bytes),
            version,
            parameters,
        })
    }

    /// Writes the ACCEPT and returns its length. The numbers are not checked: see
    /// [`Parameters::check`].
    ///
    /// # Errors
    /// [`BufferTooSmall`] when it does not fit.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let needed = self.size();
        let error = BufferTooSmall {
            needed,
            got: out.len(),
        };
        let out = out.get_mut(..needed).ok_or(error)?;
        let (fixed, rest) = out
            .split_first_chunk_mut::<ACCEPT_PARAMETERS>()
            .ok_or(error)?;
        Header::new(Kind::Accept, self.connection).put(fixed);
        put::<16, 4, 28>(fixed, self.source.to_be_bytes());
        put::<20, 4, 28>(fixed, self.hint_mbps.to_be_bytes());
        put::<24, 4, 28>(fixed, [self.version, 0, 0, 0]);
        self.parameters.encode(rest)?;
        Ok(needed)
    }
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u16)]
pub enum RejectReason {
    /// No common version.
    Version = 1,
    /// Nobody listens for this service.
    NotListening = 2,
    /// No room for another connection.
    Busy = 3,
    /// The parameters cannot be met.
    Parameters = 4,
    /// The cookie is wrong or too old.
    Cookie = 5,
    /// The addresses are not acceptable.
    Address = 6,
}

impl RejectReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [RejectReason; 6] = [
        Self::Version,
        Self::NotListening,
        Self::Busy,
        Self::Parameters,
        Self::Cookie,
        Self::Address,
    ];

    /// The reason with this number.
    #[must_use]
    pub const fn from_u16(number: u16) -> Option<Self> {
        Some(match number {
            1 => Self::Version,
            2 => Self::NotListening,
            3 => Self::Busy,
            4 => Self::Parameters,
            5 => Self::Cookie,
            6 => Self::Address,
            _ => return None,
        })
    }
}

/// REJECT: refuses the connection.
///
/// Path, generation, PSN and TSN are 0; then at 16 the reason (u16) and at 18 a detail (u16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Reject {
    /// Connection id of the initiator.
    pub connection: u32,
    /// Why.
    pub reason: RejectReason,
    /// More about why, by reason.
    pub detail: u16,
}

impl Reject {
    /// Reads a REJECT whose header was read and whose trailer was taken off.
    ///
    /// # Errors
    /// [`DecodeError::Kind`], [`DecodeError::Length`], [`DecodeError::Reserved`],
    /// [`DecodeError::RejectReason`].
    pub fn decode(header: &Header, body: &[u8]) -> Result<Self, DecodeError> {
        header.expect(Kind::Reject)?;
        // spec: MR-WIRE-026
        let bytes = exactly::<REJECT_SIZE>(Kind::Reject, body)?;
        header.without_path()?;
        header.without_psn()?;
        header.without_tsn()?;
        let got = u16_at::<16, 20>(bytes);
        Ok(Self {
            connection: header.connection,
            // spec: MR-WIRE-027
            reason: RejectReason::from_u16(got).ok_or(DecodeError::RejectReason { got })?,
            detail: u16_at::<18, 20>(bytes),
        })
    }

    /// Writes the REJECT and returns its length.
    ///
    /// # Errors
    /// [`BufferTooSmall`] when it does not fit.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, BufferTooSmall> {
        let out = room::<REJECT_SIZE>(out)?;
        Header::new(Kind::Reject, self.connection).put(out);
        put::<16, 2, 20>(out, (self.reason as u16).to_be_bytes());
        put::<18, 2, 20>(out, self.detail.to_be_bytes());
        Ok(REJECT_SIZE)
    }
}

/// Refuses bytes that have to be zero; the first of them is at `offset`.
fn all_zero(bytes: &[u8], offset: u16) -> Result<(), DecodeError> {
    match bytes.iter().position(|&byte| byte != 0) {
        None => Ok(()),
        Some(at) => Err(DecodeError::Reserved {
            offset: offset.saturating_add(short(at)),
        }),
    }
}

#[cfg(test)]
#[path = "setup_tests.rs"]
mod tests;
