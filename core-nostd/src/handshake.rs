//! Setting up: cookies that let a listener keep no state, and the parameters both sides end up with.

use core::hash::Hasher;
use core::net::SocketAddr;

use siphasher::sip128::{Hasher128, SipHasher24};

use crate::storage;
use crate::time::Instant;
use crate::wire::{Capabilities, Cookie, Parameters};

/// How long a cookie is good for, milliseconds.
pub const COOKIE_LIFE_MS: u32 = 10_000;

/// Keyed pseudo-randomness of an endpoint: connection ids, keys and cookies that nobody can guess without the secret.
///
/// SipHash-2-4-128 (Aumasson and Bernstein, 2012) as a pseudo-random function of a counter or of what a cookie vouches for.
#[derive(Debug)]
pub struct Secret {
    cookies: [u8; 16],
    numbers: [u8; 16],
    counter: u64,
}

impl Secret {
    /// From 32 bytes that the caller drew at random.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        let cookies = *seed.first_chunk::<16>().unwrap_or(&[0; 16]);
        let numbers = *seed.last_chunk::<16>().unwrap_or(&[0; 16]);
        Self {
            cookies,
            numbers,
            counter: 0,
        }
    }

    /// The next unguessable number.
    // spec: MR-SETUP-001, MR-MEM-001
    pub fn number(&mut self) -> u32 {
        self.counter = self.counter.wrapping_add(1);
        let mut hasher = SipHasher24::new_with_key(&self.numbers);
        hasher.write_u64(self.counter);
        hasher.finish128().h1 as u32
    }

    /// The cookie for whoever asks from `address` with connection id `source`.
    #[must_use]
    pub fn cookie(&self, now: Instant, address: SocketAddr, source: u32) -> Cookie {
        self.cookie_of((now.as_nanos() / 1_000_000) as u32, address, source)
    }

    /// Whether a cookie was issued to this address and id, and not too long ago.
    #[must_use]
    pub fn is_valid(
        &self,
        now: Instant,
        cookie: &Cookie,
        address: SocketAddr,
        source: u32,
    ) -> bool {
        let age = ((now.as_nanos() / 1_000_000) as u32).wrapping_sub(cookie.issued_ms);
        // spec: MR-SETUP-006
        if age > COOKIE_LIFE_MS {
            return false;
        }
        let expected = self.cookie_of(cookie.issued_ms, address, source);
        // Without an early exit, so that the time does not tell how much of a guess was right.
        let difference = expected
            .tag
            .iter()
            .zip(cookie.tag)
            .fold(0, |all, (a, b)| all | (a ^ b));
        difference == 0
    }

    // spec: MR-SETUP-006
    fn cookie_of(&self, issued_ms: u32, address: SocketAddr, source: u32) -> Cookie {
        let mut hasher = SipHasher24::new_with_key(&self.cookies);
        let ip = match address {
            SocketAddr::V4(v4) => v4.ip().to_ipv6_mapped(),
            SocketAddr::V6(v6) => *v6.ip(),
        };
        hasher.write(&ip.octets());
        hasher.write_u16(address.port());
        hasher.write_u32(source);
        hasher.write_u32(issued_ms);
        let hash = hasher.finish128();
        let mut tag = [0; 16];
        let halves = [hash.h1.to_le_bytes(), hash.h2.to_le_bytes()];
        storage::copy(&mut tag, halves.as_flattened());
        Cookie { issued_ms, tag }
    }
}

/// What a connection works with: the lesser of what both sides can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreed {
    /// Paths this side may send on.
    pub paths: u8,
    /// Planes that both have.
    pub planes: u8,
    /// PSNs a path may span.
    pub window: u16,
    /// Streams.
    pub streams: u16,
    /// Messages this side may have begun and not completed.
    pub open_messages: u16,
    /// READs and atomics this side may have open.
    pub open_responses: u16,
    /// Payload bytes of a full packet.
    pub payload_bytes: u16,
    /// Leave the CRC32C out.
    pub omit_checksum: bool,
}

/// Combines what this side offers with what the peer does.
#[must_use]
// spec: MR-SETUP-011
pub fn agree(own: &Parameters, peer: &Parameters) -> Agreed {
    let planes = own.planes.count().min(peer.planes.count());
    let payload = |parameters: &Parameters| {
        parameters
            .planes
            .as_slice()
            .iter()
            .take(planes)
            .map(|plane| plane.max_payload)
            .min()
            .unwrap_or(256)
    };
    let capabilities = own.capabilities.and(peer.capabilities);
    Agreed {
        paths: own.paths.min(peer.paths),
        planes: planes as u8,
        window: own.window.min(peer.window),
        streams: own.streams.min(peer.streams),
        open_messages: own.open_messages.min(peer.open_messages),
        open_responses: own.open_responses.min(peer.open_responses),
        // spec: MR-SETUP-012
        payload_bytes: payload(own).min(payload(peer)),
        omit_checksum: capabilities.contains(Capabilities::NO_CHECKSUM),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, SocketAddrV4};

    fn address(port: u16) -> SocketAddr {
        SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))
    }

    // spec: MR-SETUP-006
    #[test]
    fn a_cookie_vouches_for_one_address_one_id_and_ten_seconds() {
        let secret = Secret::new([7; 32]);
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let cookie = secret.cookie(at(5_000), address(1), 42);
        assert!(secret.is_valid(at(5_000), &cookie, address(1), 42));
        assert!(secret.is_valid(at(15_000), &cookie, address(1), 42));
        assert!(!secret.is_valid(at(15_001), &cookie, address(1), 42));
        assert!(
            !secret.is_valid(at(4_999), &cookie, address(1), 42),
            "from the future"
        );
        assert!(!secret.is_valid(at(5_000), &cookie, address(2), 42));
        assert!(!secret.is_valid(at(5_000), &cookie, address(1), 43));
        let mut forged = cookie;
        forged.tag[15] ^= 1;
        assert!(!secret.is_valid(at(5_000), &forged, address(1), 42));
        assert!(!Secret::new([8; 32]).is_valid(at(5_000), &cookie, address(1), 42));
    }

    // spec: MR-SETUP-001
    #[test]
    fn numbers_do_not_repeat_soon() {
        let mut secret = Secret::new([1; 32]);
        let numbers: std::collections::BTreeSet<u32> =
            (0..1_000).map(|_| secret.number()).collect();
        assert!(numbers.len() > 998);
    }
}
