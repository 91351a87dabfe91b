//! Unit tests of `data.rs`.

use super::*;
use std::vec::Vec;

const DATA: Data = Data {
    opcode: Opcode::WriteImm,
    demand: Demand(0x11),
    stream: 0x1213,
    msn: 0x1415_1617,
    length: 0x1819_1a1b,
    offset: 0x0c0d_0e0f,
    address: 0x2021_2223_2425_2627,
    key: 0x2829_2a2b,
    immediate: 0x2c2d_2e2f,
};

fn datagram(flags: Flags, data: &Data, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        flags,
        ..Header::new(Kind::Data, 7)
    };
    let mut fixed = [0; DATA_SIZE];
    encode_data(&header, data, &mut fixed);
    [&fixed[..], payload].concat()
}

fn result(flags: Flags, data: &Data, payload: &[u8]) -> Result<(), DecodeError> {
    let bytes = datagram(flags, data, payload);
    let header = Header::decode(&bytes)?;
    let (decoded, rest) = Data::decode(&header, &bytes)?;
    assert_eq!((decoded, rest), (*data, payload));
    Ok(())
}

/// A valid message of one packet of each opcode, and its payload.
fn valid(opcode: Opcode) -> (Data, Vec<u8>) {
    let blank = Data {
        opcode,
        demand: Demand(3),
        stream: 4,
        msn: 5,
        length: 8,
        offset: 0,
        address: 0,
        key: 0,
        immediate: 0,
    };
    let send = SendAddress { rsn: 9, attempt: 2 }.to_bits();
    let report = ErrorReport {
        code: ErrorCode::InvalidKey,
        attempt: 0,
        stream: 4,
        msn: 1,
        token: 0,
    };
    let (address, key, immediate, payload) = match opcode {
        Opcode::Write => (64, 1, 0, [1; 8].into()),
        Opcode::WriteImm => (64, 1, 2, [1; 8].into()),
        Opcode::Send => (send, 0, 0, [1; 8].into()),
        Opcode::SendImm => (send, 0, 2, [1; 8].into()),
        Opcode::ReadRequest => (64, 1, 2, Vec::new()),
        Opcode::ReadResponse => (0, 2, 0, [1; 8].into()),
        Opcode::AtomicRequest => (64, 1, 2, AtomicRequest::FetchAdd { add: 1 }.encode().into()),
        Opcode::AtomicResponse => (0, 2, 0, [1; 8].into()),
        Opcode::Error => (0, 0, 0, report.encode().into()),
        Opcode::Nop => (0, 0, 0, Vec::new()),
    };
    let length = match opcode {
        Opcode::Error => 16,
        Opcode::Nop => 0,
        _ => 8,
    };
    let data = Data {
        address,
        key,
        immediate,
        length,
        ..blank
    };
    (data, payload)
}

// spec: MR-WIRE-013
#[test]
fn exact_bytes() {
    let bytes = datagram(Flags::SOLICITED, &DATA, b"x");
    let mut expected: Vec<u8> = (0..48).collect();
    expected[..16].copy_from_slice(&[0x14, 4, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
    expected[16] = 1;
    expected[28..32].copy_from_slice(&[12, 13, 14, 15]);
    expected.push(b'x');
    assert_eq!(bytes, expected);
    assert_eq!(result(Flags::SOLICITED, &DATA, b"x"), Ok(()));
}

#[test]
fn opcodes_and_codes_are_numbered_in_order() {
    for (number, opcode) in (0u8..).zip(Opcode::ALL) {
        assert_eq!(opcode as u8, number);
        assert_eq!(Opcode::from_u8(number), Some(opcode));
    }
    for (number, code) in (1u8..).zip(ErrorCode::ALL) {
        assert_eq!(code as u8, number);
        assert_eq!(ErrorCode::from_u8(number), Some(code));
    }
    assert_eq!(Opcode::from_u8(10), None);
    assert_eq!(ErrorCode::from_u8(0), None);
    assert_eq!(ErrorCode::from_u8(10), None);
}

// spec: MR-WIRE-013
#[test]
fn each_opcode_is_accepted_and_truncations_of_the_fixed_part_are_not() {
    for opcode in Opcode::ALL {
        let (data, payload) = valid(opcode);
        assert_eq!(result(Flags::ACK_REQUEST, &data, &payload), Ok(()));
        let bytes = datagram(Flags::NONE, &data, &payload);
        let header = Header::decode(&bytes).unwrap();
        for length in 0..DATA_SIZE {
            let error = DecodeError::Truncated {
                needed: 48,
                got: length as u16,
            };
            assert_eq!(Data::decode(&header, &bytes[..length]), Err(error));
        }
        let other = Header::new(Kind::Probe, 7);
        let error = DecodeError::Kind { got: 6 };
        assert_eq!(Data::decode(&other, &bytes), Err(error));
    }
    let mut bytes = datagram(Flags::NONE, &DATA, b"x");
    bytes[16] = 10;
    let header = Header::decode(&bytes).unwrap();
    let error = DecodeError::Opcode { got: 10 };
    assert_eq!(Data::decode(&header, &bytes), Err(error));
}

// spec: MR-WIRE-006
#[test]
fn solicited_where_a_receiver_completes() {
    for opcode in Opcode::ALL {
        let (data, payload) = valid(opcode);
        let expected = matches!(opcode, Opcode::Send | Opcode::SendImm | Opcode::WriteImm);
        let solicited = result(Flags::SOLICITED, &data, &payload);
        let error = DecodeError::Flags {
            kind: Kind::Data,
            got: 4,
        };
        assert_eq!(solicited, if expected { Ok(()) } else { Err(error) });
    }
}

// spec: MR-WIRE-007
#[test]
fn fields_without_meaning_are_zero() {
    use Opcode::*;
    for opcode in Opcode::ALL {
        let (data, payload) = valid(opcode);
        let check = |data: Data, offset, refused| {
            let expected = if refused {
                Err(DecodeError::Reserved { offset })
            } else {
                Ok(())
            };
            assert_eq!(result(Flags::NONE, &data, &payload), expected, "{opcode:?}");
        };
        let no_address = matches!(opcode, ReadResponse | AtomicResponse | Error | Nop);
        for bit in 0..64 {
            let address = data.address ^ 1 << bit;
            let between = opcode.is_send() && (8..32).contains(&bit);
            check(Data { address, ..data }, 32, no_address || between);
        }
        for bit in 0..32 {
            let key = data.key ^ 1 << bit;
            let none = opcode.is_send() || matches!(opcode, Error | Nop);
            check(Data { key, ..data }, 40, none);
            let immediate = data.immediate ^ 1 << bit;
            let some = matches!(opcode, WriteImm | SendImm | ReadRequest | AtomicRequest);
            check(Data { immediate, ..data }, 44, !some);
        }
    }
}

// spec: MR-WIRE-014, MR-WIRE-015
#[test]
fn a_payload_lies_inside_its_message() {
    for opcode in Opcode::ALL.into_iter().filter(|o| o.is_bulk()) {
        let (blank, _) = valid(opcode);
        let check = |length, offset, payload: usize| {
            let data = Data {
                length,
                offset,
                ..blank
            };
            result(Flags::NONE, &data, &std::vec![1; payload])
        };
        let bounds = |offset, payload, length| {
            Err(DecodeError::Bounds {
                offset,
                payload,
                length,
            })
        };
        let payload = |got| Err(DecodeError::Payload { got });
        let too_long = |got| Err(DecodeError::MessageLength { got });
        assert_eq!(check(0, 0, 0), Ok(()));
        assert_eq!(check(0, 1, 0), bounds(1, 0, 0));
        assert_eq!(check(0, 0, 1), payload(1));
        assert_eq!(check(1, 0, 0), payload(0));
        assert_eq!(check(1, 1, 0), payload(0));
        assert_eq!(check(10, 9, 1), Ok(()));
        assert_eq!(check(10, 9, 2), bounds(9, 2, 10));
        assert_eq!(check(10, u32::MAX, 1), bounds(u32::MAX, 1, 10));
        assert_eq!(check(MAX_MESSAGE, MAX_MESSAGE - 9000, 9000), Ok(()));
        assert_eq!(check(MAX_MESSAGE, 0, 9001), payload(9001));
        assert_eq!(check(MAX_MESSAGE + 1, 0, 1), too_long(1 << 31));
    }
}

// spec: MR-WIRE-016
#[test]
fn one_packet_opcodes_have_one_shape() {
    for opcode in Opcode::ALL.into_iter().filter(|o| !o.is_bulk()) {
        let (data, payload) = valid(opcode);
        let offset = Data { offset: 1, ..data };
        let refused = Err(DecodeError::Reserved { offset: 28 });
        assert_eq!(result(Flags::NONE, &offset, &payload), refused);
        for wrong in (0..40).filter(|&n| n != payload.len()) {
            let got = wrong as u16;
            let refused = Err(DecodeError::Payload { got });
            let bytes = std::vec![0; wrong];
            assert_eq!(result(Flags::NONE, &data, &bytes), refused);
        }
        for length in [0, 7, 9, 24, MAX_MESSAGE] {
            let other = Data { length, ..data };
            let expected = match opcode {
                Opcode::ReadRequest => Ok(()),
                Opcode::Nop if length == 0 => Ok(()),
                _ => Err(DecodeError::MessageLength { got: length }),
            };
            assert_eq!(result(Flags::NONE, &other, &payload), expected);
        }
    }
}

// spec: MR-WIRE-017
#[test]
fn send_address() {
    let address = SendAddress {
        rsn: 0x0102_0304,
        attempt: 5,
    };
    assert_eq!(address.to_bits(), 0x0102_0304_0000_0005);
    assert_eq!(SendAddress::from_bits(address.to_bits()), address);
}

// spec: MR-WIRE-020
#[test]
fn atomic_request() {
    let add = AtomicRequest::FetchAdd { add: 0x0102 };
    let mut bytes = [0; 24];
    bytes[14..16].copy_from_slice(&[1, 2]);
    assert_eq!(add.encode(), bytes);
    assert_eq!(AtomicRequest::decode(&bytes), Ok(add));
    bytes[23] = 9;
    let reserved = DecodeError::Reserved { offset: 64 };
    assert_eq!(AtomicRequest::decode(&bytes), Err(reserved));
    bytes[7] = 1;
    let swap = AtomicRequest::CompareSwap {
        compare: 0x0102,
        swap: 9,
    };
    assert_eq!(AtomicRequest::decode(&bytes), Ok(swap));
    assert_eq!(swap.encode(), bytes);
    bytes[0] = 1;
    let unknown = DecodeError::AtomicOperation { got: 1 << 56 | 1 };
    assert_eq!(AtomicRequest::decode(&bytes), Err(unknown));
}

// spec: MR-WIRE-021
#[test]
fn error_report() {
    let report = ErrorReport {
        code: ErrorCode::AccessDenied,
        attempt: 1,
        stream: 0x0203,
        msn: 0x0405_0607,
        token: 0x0809_0a0b,
    };
    let bytes = [4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 0, 0, 0];
    assert_eq!(report.encode(), bytes);
    assert_eq!(ErrorReport::decode(&bytes), Ok(report));
    let mut wrong = bytes;
    wrong[15] = 1;
    let reserved = DecodeError::Reserved { offset: 60 };
    assert_eq!(ErrorReport::decode(&wrong), Err(reserved));
    wrong[0] = 10;
    let unknown = DecodeError::ErrorCode { got: 10 };
    assert_eq!(ErrorReport::decode(&wrong), Err(unknown));
}
