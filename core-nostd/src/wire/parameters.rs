//! What the two sides of a connection tell each other about themselves, in INIT and ACCEPT.

use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::bytes::{put, take, u8_at, u16_at, u32_at, zero};
use super::data::MAX_PAYLOAD;
use super::error::{BufferTooSmall, DecodeError, Field, short};

/// Most planes that an endpoint can have.
pub const MAX_PLANES: usize = 8;

/// Largest window of a path, in packets.
pub const MAX_WINDOW: u16 = 256;

/// Least that the largest payload of a plane may be, in bytes.
pub const MIN_MAX_PAYLOAD: u16 = 256;

/// Size of the parameters without the planes, in bytes.
const FIXED_SIZE: usize = 24;

/// Size of a plane's address and payload limit, in bytes.
const PLANE_SIZE: usize = 20;

/// What a side is able and willing to do, as a set of bits. Bits without a name are ignored, but
/// kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Capabilities(pub u32);

impl Capabilities {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Willing to leave the checksum out.
    pub const NO_CHECKSUM: Self = Self(1);

    /// Whether all bits of `other` are set.
    #[inline]
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// What both sides are able and willing to do.
    #[inline]
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// One plane of an endpoint: where it is reached and how much a datagram may carry there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlaneAddress {
    /// Its address; an IPv4 address is mapped (`::ffff:a.b.c.d`).
    pub ip: Ipv6Addr,
    /// Its UDP port; not 0.
    pub port: u16,
    /// Most payload bytes of a DATA datagram, 256..=9000.
    pub max_payload: u16,
}

impl PlaneAddress {
    /// What stands in the places of a list that are not used.
    pub(crate) const UNUSED: Self = Self {
        ip: Ipv6Addr::UNSPECIFIED,
        port: 0,
        max_payload: 0,
    };

    /// A plane at a socket address. Scope id and flow information are left out.
    ///
    /// ```
    /// use metaroce_core::wire::PlaneAddress;
    /// let socket = "192.0.2.1:4791".parse().unwrap();
    /// assert_eq!(PlaneAddress::new(socket, 4096).socket(), socket);
    /// ```
    #[must_use]
    pub const fn new(socket: SocketAddr, max_payload: u16) -> Self {
        let ip = match socket {
            SocketAddr::V4(v4) => v4.ip().to_ipv6_mapped(),
            SocketAddr::V6(v6) => *v6.ip(),
        };
        Self {
            ip,
            port: socket.port(),
            max_payload,
        }
    }

    /// The socket address; a mapped IPv4 address comes back as IPv4.
    #[must_use]
    pub const fn socket(&self) -> SocketAddr {
        let ip = match self.ip.to_ipv4_mapped() {
            Some(v4) => IpAddr::V4(v4),
            None => IpAddr::V6(self.ip),
        };
        SocketAddr::new(ip, self.port)
    }

    fn decode(bytes: &[u8; PLANE_SIZE]) -> Result<Self, DecodeError> {
        let plane = Self {
            ip: Ipv6Addr::from(take::<0, 16, 20>(bytes)),
            port: u16_at::<16, 20>(bytes),
            max_payload: u16_at::<18, 20>(bytes),
        };
        plane.check()?;
        Ok(plane)
    }

    fn check(&self) -> Result<(), DecodeError> {
        in_range(Field::Port, self.port, 1, u16::MAX)?;
        in_range(
            Field::MaxPayload,
            self.max_payload,
            MIN_MAX_PAYLOAD,
            MAX_PAYLOAD as u16,
        )
    }

    fn encode(&self, out: &mut [u8; PLANE_SIZE]) {
        put::<0, 16, 20>(out, self.ip.octets());
        put::<16, 2, 20>(out, self.port.to_be_bytes());
        put::<18, 2, 20>(out, self.max_payload.to_be_bytes());
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for PlaneAddress {
    fn format(&self, f: defmt::Formatter<'_>) {
        let Self {
            port, max_payload, ..
        } = self;
        let ip = self.ip.octets();
        defmt::write!(f, "{=[u8]:x} port {} payload {}", ip, port, max_payload);
    }
}

/// The planes of an endpoint, 1 to [`MAX_PLANES`] of them, in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Planes {
    /// The unused ones at the end are all alike, so that lists compare as they should.
    list: [PlaneAddress; MAX_PLANES],
    count: u8,
}

impl Planes {
    /// A list of planes; `None` when there are none or more than [`MAX_PLANES`].
    #[must_use]
    pub fn new(planes: &[PlaneAddress]) -> Option<Self> {
        let mut list = [PlaneAddress::UNUSED; MAX_PLANES];
        for (place, plane) in list.iter_mut().zip(planes) {
            *place = *plane;
        }
        let count = u8::try_from(planes.len()).ok()?;
        (1..=MAX_PLANES as u8)
            .contains(&count)
            .then_some(Self { list, count })
    }

    /// The planes.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[PlaneAddress] {
        self.list.get(..self.count()).unwrap_or(&[])
    }

    /// How many there are, 1..=8.
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// The plane with this number, from 0.
    #[inline]
    #[must_use]
    pub fn get(&self, plane: usize) -> Option<&PlaneAddress> {
        self.as_slice().get(plane)
    }
}

/// What a side can do and wants, in INIT and ACCEPT.
///
/// | offset | size | field |
/// |---|---|---|
/// | 0 | u8 | paths |
/// | 1 | u8 | planes |
/// | 2 | u16 | window |
/// | 4 | u16 | streams |
/// | 6 | u16 | open messages |
/// | 8 | u16 | open responses |
/// | 10 | u16 | zero |
/// | 12 | u32 | capabilities |
/// | 16 | u32 | ingress capacity of one plane |
/// | 20 | u32 | service |
/// | 24 + 20 i | 16 bytes | address of plane i |
/// | 40 + 20 i | u16 | its UDP port |
/// | 42 + 20 i | u16 | its largest payload |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Parameters {
    /// Paths each way, 1..=255.
    pub paths: u8,
    /// Packets between the oldest unacknowledged and the newest of a path, 1..=256.
    pub window: u16,
    /// Streams each way, at least 1.
    pub streams: u16,
    /// Messages that may be open at the receiver, at least 1.
    pub open_messages: u16,
    /// Responses that may be open at the responder, at least 1.
    pub open_responses: u16,
    /// What the side is able and willing to do.
    pub capabilities: Capabilities,
    /// What one plane of the side can take in, in Mbit/s.
    pub ingress_mbps: u32,
    /// The application's number for what is asked for.
    pub service: u32,
    /// Where the side is reached.
    pub planes: Planes,
}

impl Parameters {
    /// Length of the encoded parameters, in bytes: 44..=184.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        FIXED_SIZE + self.planes.count() * PLANE_SIZE
    }

    /// Checks the ranges of all numbers: what passes is what a receiver accepts.
    ///
    /// # Errors
    /// [`DecodeError::OutOfRange`].
    // spec: MR-SETUP-002
    pub fn check(&self) -> Result<(), DecodeError> {
        in_range(Field::Paths, self.paths.into(), 1, u16::MAX)?;
        in_range(Field::Window, self.window, 1, MAX_WINDOW)?;
        in_range(Field::Streams, self.streams, 1, u16::MAX)?;
        in_range(Field::OpenMessages, self.open_messages, 1, u16::MAX)?;
        in_range(Field::OpenResponses, self.open_responses, 1, u16::MAX)?;
        self.planes
            .as_slice()
            .iter()
            .try_for_each(PlaneAddress::check)
    }

    /// Reads parameters from the front of `bytes`, and returns what follows them. They begin at
    /// byte `at` of their datagram, for errors.
    pub(super) fn decode(bytes: &[u8], at: u16) -> Result<(Self, &[u8]), DecodeError> {
        let Some((fixed, rest)) = bytes.split_first_chunk::<FIXED_SIZE>() else {
            return Err(truncated(at, FIXED_SIZE, bytes));
        };
        let count = u8_at::<1, 24>(fixed);
        in_range(Field::Planes, count.into(), 1, MAX_PLANES as u16)?;
        zero(u16_at::<10, 24>(fixed).into(), at + 10)?;
        let size = usize::from(count) * PLANE_SIZE;
        let Some((addresses, rest)) = rest.split_at_checked(size) else {
            return Err(truncated(at, FIXED_SIZE + size, bytes));
        };
        let mut planes = Planes {
            list: [PlaneAddress::UNUSED; MAX_PLANES],
            count,
        };
        let (addresses, _) = addresses.as_chunks::<PLANE_SIZE>();
        for (plane, address) in planes.list.iter_mut().zip(addresses) {
            *plane = PlaneAddress::decode(address)?;
        }
        let parameters = Self {
            paths: u8_at::<0, 24>(fixed),
            window: u16_at::<2, 24>(fixed),
            streams: u16_at::<4, 24>(fixed),
            open_messages: u16_at::<6, 24>(fixed),
            open_responses: u16_at::<8, 24>(fixed),
            capabilities: Capabilities(u32_at::<12, 24>(fixed)),
            ingress_mbps: u32_at::<16, 24>(fixed),
            service: u32_at::<20, 24>(fixed),
            planes,
        };
        parameters.check()?;
        Ok((parameters, rest))
    }

    /// Writes the parameters at the front of `out`.
    pub(super) fn encode(&self, out: &mut [u8]) -> Result<(), BufferTooSmall> {
        let error = BufferTooSmall {
            needed: self.size(),
            got: out.len(),
        };
        let out = out.get_mut(..self.size()).ok_or(error)?;
        let (fixed, rest) = out.split_first_chunk_mut::<FIXED_SIZE>().ok_or(error)?;
        put::<0, 1, 24>(fixed, [self.paths]);
        put::<1, 1, 24>(fixed, [self.planes.count]);
        put::<2, 2, 24>(fixed, self.window.to_be_bytes());
        put::<4, 2, 24>(fixed, self.streams.to_be_bytes());
        put::<6, 2, 24>(fixed, self.open_messages.to_be_bytes());
        put::<8, 2, 24>(fixed, self.open_responses.to_be_bytes());
        put::<10, 2, 24>(fixed, [0; 2]);
        put::<12, 4, 24>(fixed, self.capabilities.0.to_be_bytes());
        put::<16, 4, 24>(fixed, self.ingress_mbps.to_be_bytes());
        put::<20, 4, 24>(fixed, self.service.to_be_bytes());
        let (places, _) = rest.as_chunks_mut::<PLANE_SIZE>();
        for (place, plane) in places.iter_mut().zip(self.planes.as_slice()) {
            plane.encode(place);
        }
        Ok(())
    }
}

fn truncated(at: u16, needed: usize, bytes: &[u8]) -> DecodeError {
    DecodeError::Truncated {
        needed: short(usize::from(at) + needed),
        got: short(usize::from(at) + bytes.len()),
    }
}

/// Refuses a number outside `least..=most`.
pub(super) fn in_range(field: Field, got: u16, least: u16, most: u16) -> Result<(), DecodeError> {
    if (least..=most).contains(&got) {
        Ok(())
    } else {
        let got = got.into();
        Err(DecodeError::OutOfRange { field, got })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(planes: &[&str]) -> Parameters {
        let mut list = [PlaneAddress::UNUSED; MAX_PLANES];
        for (place, text) in list.iter_mut().zip(planes) {
            *place = PlaneAddress::new(text.parse().unwrap(), 0x1213);
        }
        Parameters {
            paths: 1,
            window: 0x0100,
            streams: 0x0405,
            open_messages: 0x0607,
            open_responses: 0x0809,
            capabilities: Capabilities(0x0c0d_0e0f),
            ingress_mbps: 0x1011_1213,
            service: 0x1415_1617,
            planes: Planes::new(&list[..planes.len()]).unwrap(),
        }
    }

    #[test]
    fn exact_bytes() {
        let parameters = parameters(&["192.0.2.1:4791", "[2001:db8::9]:4660"]);
        let expected = [
            1, 2, 1, 0, 4, 5, 6, 7, 8, 9, 0, 0, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
            23, //
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1, 0x12, 0xb7, 0x12, 0x13, //
            0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0x12, 0x34, 0x12, 0x13,
        ];
        let mut out = [0xee; 64];
        assert_eq!(parameters.encode(&mut out), Ok(()));
        assert_eq!(out, expected);
        assert_eq!(parameters.size(), 64);
        let mut longer = [9; 65];
        longer[..64].copy_from_slice(&expected);
        assert_eq!(
            Parameters::decode(&longer, 44),
            Ok((parameters, &[9u8][..]))
        );
        for length in 0..64 {
            let error = DecodeError::Truncated {
                needed: if length < 24 { 68 } else { 108 },
                got: 44 + length as u16,
            };
            assert_eq!(Parameters::decode(&out[..length], 44), Err(error));
            let error = BufferTooSmall {
                needed: 64,
                got: length,
            };
            assert_eq!(parameters.encode(&mut [0; 64][..length]), Err(error));
        }
    }

    // spec: MR-SETUP-002
    #[test]
    fn ranges() {
        let valid = parameters(&["192.0.2.1:4791"]);
        let mut bytes = [0; 44];
        valid.encode(&mut bytes).unwrap();
        let cases: [(usize, &[u8], Field, u32); 13] = [
            (0, &[0], Field::Paths, 0),
            (1, &[0], Field::Planes, 0),
            (1, &[9], Field::Planes, 9),
            (2, &[0, 0], Field::Window, 0),
            (2, &[1, 1], Field::Window, 257),
            (4, &[0, 0], Field::Streams, 0),
            (6, &[0, 0], Field::OpenMessages, 0),
            (8, &[0, 0], Field::OpenResponses, 0),
            (40, &[0, 0], Field::Port, 0),
            (42, &[0, 255], Field::MaxPayload, 255),
            (42, &[0x23, 0x29], Field::MaxPayload, 9001),
            (42, &[0, 0], Field::MaxPayload, 0),
            (42, &[255, 255], Field::MaxPayload, 65535),
        ];
        for (at, change, field, got) in cases {
            let mut wrong = bytes;
            wrong[at..at + change.len()].copy_from_slice(change);
            let error = DecodeError::OutOfRange { field, got };
            assert_eq!(Parameters::decode(&wrong, 0), Err(error));
        }
        let mut wrong = bytes;
        wrong[11] = 1;
        let error = DecodeError::Reserved { offset: 38 };
        assert_eq!(Parameters::decode(&wrong, 28), Err(error));
    }

    #[test]
    fn lists_of_planes() {
        let plane = PlaneAddress::new("[::1]:1".parse().unwrap(), 256);
        assert_eq!(Planes::new(&[]), None);
        assert_eq!(Planes::new(&[plane; 9]), None);
        let planes = Planes::new(&[plane; 8]).unwrap();
        assert_eq!((planes.count(), planes.as_slice().len()), (8, 8));
        assert_eq!(planes.get(7), Some(&plane));
        assert_eq!(planes.get(8), None);
    }

    #[test]
    fn capabilities_are_a_set() {
        let set = Capabilities(0x8000_0001);
        assert!(set.contains(Capabilities::NO_CHECKSUM));
        assert_eq!(set.and(Capabilities::NO_CHECKSUM), Capabilities(1));
        assert!(!Capabilities::NONE.contains(Capabilities::NO_CHECKSUM));
    }
}
