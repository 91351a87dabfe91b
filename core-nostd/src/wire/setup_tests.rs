//! Unit tests of `setup.rs`.

use super::super::parameters::{Capabilities, MAX_PLANES, PlaneAddress, Planes};
use super::super::{Packet, decode};
use super::*;

fn parameters(planes: usize) -> Parameters {
    let plane = PlaneAddress::new("192.0.2.1:4791".parse().unwrap(), 4096);
    Parameters {
        paths: 64,
        window: 256,
        streams: 1024,
        open_messages: 32,
        open_responses: 16,
        capabilities: Capabilities::NO_CHECKSUM,
        ingress_mbps: 400_000,
        service: 7,
        planes: Planes::new(&[plane; MAX_PLANES][..planes]).unwrap(),
    }
}

/// The bytes of `parameters(1)`.
const PARAMETERS: [u8; 44] = [
    64, 1, 1, 0, 4, 0, 0, 32, 0, 16, 0, 0, 0, 0, 0, 1, 0, 6, 0x1a, 0x80, 0, 0, 0, 7, //
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1, 0x12, 0xb7, 16, 0,
];

const COOKIE: Cookie = Cookie {
    issued_ms: 0x0102_0304,
    tag: [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20],
};

const COOKIE_BYTES: [u8; 20] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
];

fn init(cookie: Option<Cookie>) -> Init {
    Init {
        attempt: 0x0c0d_0e0f,
        source: 0x1011_1213,
        lowest_version: 1,
        highest_version: 3,
        cookie,
        parameters: parameters(1),
    }
}

fn init_bytes(cookie: bool) -> [u8; 288] {
    let mut bytes = [0; 288];
    bytes[..24].copy_from_slice(&[
        0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 12, 13, 14, 15, 16, 17, 18, 19, 1, 3, 0, 0,
    ]);
    if cookie {
        bytes[22] = 20;
        bytes[24..44].copy_from_slice(&COOKIE_BYTES);
    }
    bytes[44..88].copy_from_slice(&PARAMETERS);
    bytes
}

fn accept(planes: usize) -> Accept {
    Accept {
        connection: 0x0405_0607,
        source: 0x1011_1213,
        hint_mbps: 0x1415_1617,
        version: 1,
        parameters: parameters(planes),
    }
}

fn check(packet: Packet<'_>, bytes: &[u8]) {
    let mut out = [0xee; INIT_SIZE];
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
    let mut longer = [0; INIT_SIZE + 1];
    longer[..bytes.len()].copy_from_slice(bytes);
    assert!(decode(&longer[..=bytes.len()]).is_err());
}

// spec: MR-SETUP-002
#[test]
fn init_exact_bytes() {
    check(Packet::Init(init(None)), &init_bytes(false));
    check(Packet::Init(init(Some(COOKIE))), &init_bytes(true));
}

// spec: MR-SETUP-002
#[test]
fn init_wrong_bytes() {
    let range = |field, got| DecodeError::OutOfRange { field, got };
    let reserved = |offset| DecodeError::Reserved { offset };
    let cases = [
        (2, 1, reserved(2)),
        (3, 1, reserved(3)),
        (7, 1, reserved(4)),
        (11, 1, reserved(8)),
        (20, 0, range(Field::LowestVersion, 0)),
        (20, 4, range(Field::LowestVersion, 4)),
        (21, 0, range(Field::HighestVersion, 0)),
        (21, 16, range(Field::HighestVersion, 16)),
        (22, 19, range(Field::CookieLength, 19)),
        (23, 1, reserved(23)),
        (24, 1, reserved(24)),
        (43, 1, reserved(43)),
        (54, 1, reserved(54)),
        (88, 1, reserved(88)),
        (287, 1, reserved(287)),
    ];
    for (at, byte, error) in cases {
        let mut wrong = init_bytes(false);
        wrong[at] = byte;
        assert_eq!(decode(&wrong), Err(error), "{at}");
    }
    let mut wrong = init_bytes(false);
    wrong[16..20].fill(0);
    assert_eq!(decode(&wrong), Err(range(Field::SourceConnection, 0)));
}

// spec: MR-SETUP-003, MR-SEC-002
#[test]
fn an_init_is_longer_than_what_it_provokes() {
    let longest = accept(MAX_PLANES).size();
    assert_eq!(longest, MAX_ACCEPT_SIZE);
    assert!(INIT_SIZE > longest && INIT_SIZE > RETRY_SIZE && INIT_SIZE > REJECT_SIZE);
}

// spec: MR-WIRE-026
#[test]
fn retry() {
    let mut bytes = [0; 36];
    bytes[..8].copy_from_slice(&[0x11, 0, 0, 0, 4, 5, 6, 7]);
    bytes[16..].copy_from_slice(&COOKIE_BYTES);
    let retry = Retry {
        connection: 0x0405_0607,
        cookie: COOKIE,
    };
    check(Packet::Retry(retry), &bytes);
    bytes[15] = 1;
    assert_eq!(decode(&bytes), Err(DecodeError::Reserved { offset: 12 }));
}

// spec: MR-SETUP-002
#[test]
fn accept_exact_and_wrong_bytes() {
    let mut bytes = [0; 72];
    bytes[..8].copy_from_slice(&[0x12, 0, 0, 0, 4, 5, 6, 7]);
    bytes[16..28].copy_from_slice(&[16, 17, 18, 19, 20, 21, 22, 23, 1, 0, 0, 0]);
    bytes[28..].copy_from_slice(&PARAMETERS);
    check(Packet::Accept(accept(1)), &bytes);
    for (at, offset) in [(2, 2), (8, 8), (12, 12), (25, 25), (27, 27), (39, 38)] {
        let mut wrong = bytes;
        wrong[at] = 1;
        assert_eq!(decode(&wrong), Err(DecodeError::Reserved { offset }));
    }
    for version in [0, 16] {
        let mut wrong = bytes;
        wrong[24] = version;
        let error = DecodeError::OutOfRange {
            field: Field::ChosenVersion,
            got: version.into(),
        };
        assert_eq!(decode(&wrong), Err(error));
    }
}

// spec: MR-WIRE-026, MR-WIRE-027
#[test]
fn reject() {
    let mut bytes = [
        0x13, 0, 0, 0, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 18, 19,
    ];
    let reject = Reject {
        connection: 0x0405_0607,
        reason: RejectReason::Busy,
        detail: 0x1213,
    };
    check(Packet::Reject(reject), &bytes);
    for got in [0, 7] {
        bytes[17] = got;
        let got = got.into();
        assert_eq!(decode(&bytes), Err(DecodeError::RejectReason { got }));
    }
    for (number, reason) in (1u16..).zip(RejectReason::ALL) {
        assert_eq!(reason as u16, number);
        assert_eq!(RejectReason::from_u16(number), Some(reason));
    }
}
