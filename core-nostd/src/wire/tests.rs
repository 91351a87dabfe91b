//! What holds for datagrams of all kinds.

use core::net::Ipv6Addr;
use proptest::prelude::*;
use std::vec::Vec;

use super::*;

/// A valid datagram that owns what [`Packet`] borrows.
#[derive(Clone, Debug)]
enum Owned {
    Data(Header, Data, Vec<u8>),
    Ack(AckKind, Flags, u32, Vec<AckBlock>),
    Other(Packet<'static>),
}

impl Owned {
    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Data(header, data, payload) => {
                let mut fixed = [0xee; DATA_SIZE];
                encode_data(header, data, &mut fixed);
                [&fixed[..], payload].concat()
            }
            Self::Ack(kind, flags, connection, blocks) => {
                let (first, more) = blocks.split_first().unwrap();
                let mut fixed = [0xee; ACK_SIZE];
                let length = encode_ack(*kind, *flags, *connection, first, &mut fixed);
                let mut bytes = fixed[..length].to_vec();
                for block in more {
                    let mut further = [0xee; ACK_BLOCK_SIZE];
                    let length = append_ack_block(block, &mut further);
                    bytes.extend(&further[..length]);
                }
                bytes
            }
            Self::Other(packet) => {
                let mut bytes = [0xee; INIT_SIZE];
                let length = packet.encode(&mut bytes).unwrap();
                bytes[..length].to_vec()
            }
        }
    }

    /// Whether `packet` says the same.
    fn is(&self, packet: &Packet<'_>) -> bool {
        let same = |kind: AckKind, header: &Header, blocks: &AckBlocks<'_>, own: &Self| {
            let Self::Ack(own_kind, flags, connection, own_blocks) = own else {
                return false;
            };
            let redirect = header.flags.and(Flags::REDIRECT);
            let head = (header.kind, redirect, header.connection);
            kind == *own_kind
                && head == (kind.into(), *flags, *connection)
                && (*blocks).eq(own_blocks.iter().copied())
        };
        match packet {
            Packet::Data {
                header,
                data,
                payload,
            } => {
                matches!(self, Self::Data(h, d, p) if (h, d, &p[..]) == (header, data, *payload))
            }
            Packet::Ack { header, blocks } => same(AckKind::Ack, header, blocks, self),
            Packet::FenceAck { header, blocks } => same(AckKind::FenceAck, header, blocks, self),
            other => matches!(self, Self::Other(own) if own == other),
        }
    }

    /// Whether a shorter one of this length is valid too: a packet with less of its message, an
    /// ACK with fewer blocks. Only a checksum can tell.
    fn may_be_cut_to(&self, length: usize) -> bool {
        match self {
            Self::Data(_, data, _) => data.opcode.is_bulk() && length > DATA_SIZE,
            Self::Ack(kind, flags, connection, blocks) => (1..blocks.len()).any(|count| {
                let fewer = blocks[..count].to_vec();
                Self::Ack(*kind, *flags, *connection, fewer).encode().len() == length
            }),
            Self::Other(_) => false,
        }
    }
}

fn data() -> impl Strategy<Value = Owned> {
    let header = (
        0u8..4,
        any::<(u8, u8)>(),
        any::<(u32, u32, u32)>(),
        any::<bool>(),
    );
    let fields = (
        prop::sample::select(&Opcode::ALL[..]),
        any::<(u8, u16, u32)>(),
        any::<(u64, u32, u32)>(),
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            prop::collection::vec(any::<u8>(), 8999..=MAX_PAYLOAD),
        ],
        any::<(u32, u32)>(),
    );
    let payloads = (
        any::<(bool, u64, u64)>(),
        prop::sample::select(&ErrorCode::ALL[..]),
        any::<(u8, u16, u32, u32)>(),
    );
    (header, fields, payloads).prop_map(|(header, fields, payloads)| {
        let (flags, (path, generation), (connection, psn, tsn), solicited) = header;
        let (opcode, (demand, stream, msn), (address, key, immediate), bytes, place) = fields;
        let ((swaps, operand, swap), code, (attempt, refused_stream, refused_msn, token)) =
            payloads;
        let header = Header {
            flags: Flags(flags).with(Flags::SOLICITED, solicited && opcode.may_solicit()),
            path,
            generation,
            psn,
            tsn,
            ..Header::new(Kind::Data, connection)
        };
        let atomic = if swaps {
            AtomicRequest::CompareSwap {
                compare: operand,
                swap,
            }
        } else {
            AtomicRequest::FetchAdd { add: operand }
        };
        let report = ErrorReport {
            code,
            attempt,
            stream: refused_stream,
            msn: refused_msn,
            token,
        };
        let send = SendAddress {
            rsn: address as u32,
            attempt,
        };
        let (payload, length, offset) = match opcode {
            Opcode::ReadRequest => (Vec::new(), place.0 & MAX_MESSAGE, 0),
            Opcode::AtomicRequest => (atomic.encode().to_vec(), 8, 0),
            Opcode::AtomicResponse => (operand.to_be_bytes().to_vec(), 8, 0),
            Opcode::Error => (report.encode().to_vec(), 16, 0),
            Opcode::Nop => (Vec::new(), 0, 0),
            _ if bytes.is_empty() => (bytes, 0, 0),
            _ => {
                let size = bytes.len() as u32;
                let offset = place.0 % (MAX_MESSAGE - size + 1);
                let room = MAX_MESSAGE - size - offset;
                (bytes, offset + size + place.1 % (room + 1), offset)
            }
        };
        let address = match opcode {
            Opcode::Send | Opcode::SendImm => send.to_bits(),
            Opcode::ReadResponse | Opcode::AtomicResponse | Opcode::Error | Opcode::Nop => 0,
            _ => address,
        };
        let has_key = !opcode.is_send() && !matches!(opcode, Opcode::Error | Opcode::Nop);
        let has_token = matches!(opcode, Opcode::ReadRequest | Opcode::AtomicRequest);
        let has_immediate = opcode.has_immediate() || has_token;
        let data = Data {
            opcode,
            demand: Demand(demand),
            stream,
            msn,
            length,
            offset,
            address,
            key: if has_key { key } else { 0 },
            immediate: if has_immediate { immediate } else { 0 },
        };
        Owned::Data(header, data, payload)
    })
}

fn ack() -> impl Strategy<Value = Owned> {
    let block = (
        any::<(u8, u8, u32, u32, u32)>(),
        any::<(u16, u16, u32, u32)>(),
        (any::<[u64; 4]>(), 0usize..5),
    )
        .prop_map(|(front, middle, (mut sack, words))| {
            sack[words..].fill(0);
            let (path, generation, cumulative, newest_tsn, newest_psn) = front;
            let (delay, ce_count, received, hint_mbps) = middle;
            sack[0] &= !1;
            AckBlock {
                path,
                generation,
                cumulative,
                newest_tsn,
                newest_psn,
                delay,
                ce_count,
                received,
                hint_mbps,
                sack,
            }
        });
    let blocks = prop::collection::vec(block, 1..6);
    (any::<(bool, bool, u32)>(), blocks).prop_map(|((fence, redirect, connection), blocks)| {
        let flags = Flags::NONE.with(Flags::REDIRECT, redirect);
        if fence {
            Owned::Ack(AckKind::FenceAck, flags, connection, blocks[..1].to_vec())
        } else {
            Owned::Ack(AckKind::Ack, flags, connection, blocks)
        }
    })
}

fn parameters() -> impl Strategy<Value = Parameters> {
    let plane =
        (any::<u128>(), 1u16.., 256u16..=9000).prop_map(|(ip, port, max_payload)| PlaneAddress {
            ip: Ipv6Addr::from(ip),
            port,
            max_payload,
        });
    (
        (1u8.., 1u16..=256, 1u16.., 1u16.., 1u16..),
        any::<(u32, u32, u32)>(),
        prop::collection::vec(plane, 1..=MAX_PLANES),
    )
        .prop_map(|(counts, (capabilities, ingress_mbps, service), planes)| {
            let (paths, window, streams, open_messages, open_responses) = counts;
            Parameters {
                paths,
                window,
                streams,
                open_messages,
                open_responses,
                capabilities: Capabilities(capabilities),
                ingress_mbps,
                service,
                planes: Planes::new(&planes).unwrap(),
            }
        })
}

fn setup() -> impl Strategy<Value = Packet<'static>> {
    let cookie = || any::<(u32, [u8; 16])>().prop_map(|(issued_ms, tag)| Cookie { issued_ms, tag });
    let versions = (1u8..=15).prop_flat_map(|highest| (1..=highest, Just(highest)));
    let init = (
        any::<u32>(),
        1u32..,
        versions,
        prop::option::of(cookie()),
        parameters(),
    )
        .prop_map(|(attempt, source, versions, cookie, parameters)| Init {
            attempt,
            source,
            lowest_version: versions.0,
            highest_version: versions.1,
            cookie,
            parameters,
        });
    let retry =
        (any::<u32>(), cookie()).prop_map(|(connection, cookie)| Retry { connection, cookie });
    let accept = (any::<(u32, u32)>(), 1u32.., 1u8..=15, parameters()).prop_map(
        |((connection, hint_mbps), source, version, parameters)| Accept {
            connection,
            source,
            hint_mbps,
            version,
            parameters,
        },
    );
    let reasons = prop::sample::select(&RejectReason::ALL[..]);
    let reject = (any::<(u32, u16)>(), reasons).prop_map(|((connection, detail), reason)| Reject {
        connection,
        reason,
        detail,
    });
    prop_oneof![
        init.prop_map(Packet::Init),
        retry.prop_map(Packet::Retry),
        accept.prop_map(Packet::Accept),
        reject.prop_map(Packet::Reject),
    ]
}

fn control() -> impl Strategy<Value = Packet<'static>> {
    let fields = (any::<(u8, u8, u32, u32, u32)>(), 1u32.., any::<bool>());
    (0..6, fields).prop_map(
        |(kind, ((path, generation, connection, a, b), source, abort))| match kind {
            0 => Packet::Probe(Probe {
                path,
                generation,
                connection,
                attempt: a,
                tsn: b,
            }),
            1 => Packet::Fence(Fence {
                path,
                generation,
                connection,
                attempt: a,
            }),
            2 => Packet::Announce(Announce {
                path,
                generation,
                connection,
                number: a,
                demand: Demand(b as u8),
            }),
            3 => Packet::Hint(Hint {
                path,
                generation,
                connection,
                number: a,
                rate_mbps: b,
            }),
            4 => Packet::Close(Close {
                connection,
                source,
                reason: a as u16,
                mode: if abort {
                    CloseMode::Abort
                } else {
                    CloseMode::Drain
                },
            }),
            _ => Packet::CloseAck(CloseAck { connection, source }),
        },
    )
}

fn any_datagram() -> impl Strategy<Value = Owned> {
    prop_oneof![
        4 => data(),
        3 => ack(),
        4 => setup().prop_map(Owned::Other),
        4 => control().prop_map(Owned::Other),
    ]
}

/// Datagrams that are valid but for a few bytes, so that every check is reached.
fn nearly_valid() -> impl Strategy<Value = Vec<u8>> {
    let small = any::<u8>().prop_map(|byte| byte >> (byte & 7));
    let changes = prop::collection::vec((any::<prop::sample::Index>(), small), 0..4);
    (any_datagram(), changes, any::<prop::sample::Index>(), 0..4).prop_map(
        |(owned, changes, cut, cuts)| {
            let mut bytes = owned.encode();
            let front = bytes.len().min(96);
            for (at, byte) in changes {
                bytes[at.index(front)] = byte;
            }
            if cuts == 0 {
                bytes.truncate(cut.index(bytes.len() + 1));
            }
            bytes
        },
    )
}

/// What is accepted is written again as the same bytes.
fn check_identity(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(packet) = decode(bytes) {
        let mut again = std::vec![0xee; bytes.len()];
        prop_assert_eq!(packet.encode(&mut again), Ok(bytes.len()));
        prop_assert_eq!(&again, bytes);
        let error = BufferTooSmall {
            needed: bytes.len(),
            got: bytes.len() - 1,
        };
        prop_assert_eq!(packet.encode(&mut again[1..]), Err(error));
    }
    Ok(())
}

proptest! {
    #[test]
    fn round_trip(owned in any_datagram()) {
        let bytes = owned.encode();
        prop_assert!(bytes.len() <= MAX_DATAGRAM);
        let packet = decode(&bytes);
        prop_assert!(packet.is_ok_and(|packet| owned.is(&packet)), "{:?}", packet);
        check_identity(&bytes)?;
    }

    // spec: MR-WIRE-003, MR-WIRE-008
    #[test]
    fn truncations_are_refused(owned in any_datagram()) {
        let mut bytes = owned.encode();
        for length in (0..bytes.len()).filter(|&length| !owned.may_be_cut_to(length)) {
            prop_assert!(decode(&bytes[..length]).is_err(), "cut to {}", length);
        }
        let length = bytes.len();
        bytes.extend([0; CRC_SIZE]);
        prop_assert_eq!(seal(&mut bytes, length, Trailer::Crc32c), Ok(length + 4));
        // The checksum of 9000 prefixes takes a while: the first and the last will do.
        for length in (0..bytes.len()).filter(|&l| l < 300 || l + 300 > bytes.len()) {
            prop_assert!(check(&bytes[..length], Trailer::Crc32c).and_then(decode).is_err());
        }
    }

    // spec: MR-WIRE-012
    #[test]
    fn single_flipped_bits_are_refused(owned in any_datagram(), start in 0usize..8) {
        let mut bytes = owned.encode();
        let length = bytes.len();
        bytes.extend([0; CRC_SIZE]);
        seal(&mut bytes, length, Trailer::Crc32c).unwrap();
        prop_assert_eq!(check(&bytes, Trailer::Crc32c), Ok(&bytes[..length]));
        let step = if length > 400 { 211 } else { 1 };
        let first = if step == 1 { 0 } else { start };
        for bit in (first..bytes.len() * 8).step_by(step) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(check(&bytes, Trailer::Crc32c).is_err(), "bit {}", bit);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    // spec: MR-SEC-001
    #[test]
    fn random_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..400), kind in 0u8..16) {
        check_identity(&bytes)?;
        let _ = check(&bytes, Trailer::Crc32c).and_then(decode);
        if let Some(first) = bytes.first_mut() {
            *first = VERSION << 4 | kind;
        }
        if let Some(flags) = bytes.get_mut(1) {
            *flags = 0;
        }
        check_identity(&bytes)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    // spec: MR-WIRE-007
    #[test]
    fn there_is_one_encoding(bytes in nearly_valid()) {
        check_identity(&bytes)?;
    }
}

#[test]
fn every_kind_is_generated() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..2000 {
        let bytes = any_datagram()
            .new_tree(&mut runner)
            .unwrap()
            .current()
            .encode();
        seen.insert(Header::decode(&bytes).unwrap().kind);
    }
    assert_eq!(seen.len(), Kind::ALL.len());
}
