//! Whatever a peer sends: nothing panics, nothing grows, nothing hangs.

use crate::puppet::*;
use metaroce_core::wire::*;
use metaroce_core::*;
use proptest::prelude::*;

/// Fields near the values that mean something.
fn near() -> impl Strategy<Value = u32> {
    prop_oneof![
        0u32..4,
        250u32..260,
        Just(u32::MAX),
        Just(1 << 31),
        Just((1 << 31) - 1),
        any::<u32>()
    ]
}

fn datagram() -> impl Strategy<Value = (u8, [u8; 8], [u32; 8], Vec<u8>)> {
    let small = prop_oneof![3 => 0u8..5, 1 => any::<u8>()];
    (
        4u8..13,
        prop::array::uniform8(small),
        prop::array::uniform8(near()),
        prop::collection::vec(any::<u8>(), 0..40),
    )
}

/// A datagram that is valid in its frame and arbitrary in what it says.
fn build(puppet: &Puppet, kind: u8, bytes: [u8; 8], numbers: [u32; 8], payload: &[u8]) -> Vec<u8> {
    let kind = Kind::from_u8(kind).unwrap();
    let header = Header {
        flags: Flags(bytes[0] & kind.allowed_flags().0),
        path: bytes[1],
        generation: bytes[2],
        psn: numbers[0],
        tsn: numbers[1],
        ..puppet.header(kind)
    };
    let mut out = vec![0; 16];
    header.encode(out.first_chunk_mut().unwrap());
    match kind {
        Kind::Data => {
            let data = Data {
                opcode: Opcode::ALL[usize::from(bytes[3]) % 10],
                demand: Demand(bytes[4]),
                stream: if bytes[5] == 4 {
                    0xffff
                } else {
                    bytes[5].into()
                },
                msn: numbers[2],
                length: numbers[3],
                offset: numbers[4],
                address: if bytes[6] == 0 {
                    BASE + u64::from(numbers[5])
                } else {
                    u64::from(numbers[5]) << 32 | u64::from(bytes[7])
                },
                key: if bytes[7] == 0 {
                    numbers[6]
                } else {
                    puppet.region.key
                },
                immediate: numbers[7],
            };
            out.resize(DATA_SIZE, 0);
            encode_data(&header, &data, out.first_chunk_mut().unwrap());
            out.extend(payload);
        }
        Kind::Ack | Kind::FenceAck => {
            let block = AckBlock {
                path: bytes[1],
                generation: bytes[2],
                cumulative: numbers[0],
                newest_tsn: numbers[1],
                newest_psn: numbers[2],
                delay: numbers[3] as u16,
                ce_count: numbers[4] as u16,
                received: numbers[5],
                hint_mbps: numbers[6],
                sack: [u64::from(numbers[7]) & !1, 0, u64::from(numbers[3]), 0],
            };
            out.resize(ACK_SIZE, 0);
            let ack = if kind == Kind::Ack {
                AckKind::Ack
            } else {
                AckKind::FenceAck
            };
            let place = out.first_chunk_mut().unwrap();
            let length = encode_ack(ack, Flags::NONE, puppet.theirs, &block, place);
            out.truncate(length);
        }
        _ => out.extend(payload),
    }
    out
}

// spec: MR-PATH-009, MR-SEC-001
#[test]
fn the_next_part_of_a_message_on_a_path_that_is_none() {
    let mut puppet = Puppet::asking(|_, _| ());
    let write = puppet.write(0, 0, 0, 3 * 1024);
    puppet.data(0, 0, write, &[1; 1024]).unwrap();
    let next = Data {
        offset: 1024,
        ..write
    };
    for path in [4, 63, 64, 255] {
        assert_eq!(
            puppet.data(path, 1, next, &[1; 1024]),
            Err(DropReason::UnknownPath),
            "{path}"
        );
    }
    puppet.data(1, 0, next, &[1; 1024]).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    // spec: MR-SEC-001, MR-SEC-003
    #[test]
    fn any_words_of_a_peer(words in prop::collection::vec((datagram(), 0u64..40_000), 1..60), asks: bool) {
        let mut puppet = if asks { Puppet::asked(|_| ()) } else { Puppet::asking(|_, _| ()) };
        for stream in 0..2 {
            puppet.post_receive(stream, 1, 100, 50);
            puppet.post_write(stream, 2, 3_000);
            puppet.post_send(stream, 3, 100);
            let local = puppet.local(90_000, 100);
            puppet.post(stream, 4, Operation::Read { local, remote: RemoteAddress::default() }).unwrap();
        }
        for ((kind, bytes, numbers, payload), later) in words {
            let mut datagram = build(&puppet, kind, bytes, numbers, &payload);
            let length = datagram.len();
            datagram.extend([0; 4]);
            let length = seal(&mut datagram, length, puppet.trailer).unwrap();
            let _ = puppet.send_bytes(&datagram[..length], if bytes[0] & 1 == 0 { Ecn::Ect0 } else { Ecn::Ce });
            prop_assert!(puppet.run(later).len() < 5_000);
        }
        // It ends, or has nothing more to say: nothing is repeated forever.
        puppet.run(30_000_000_000);
        prop_assert!(puppet.run(10_000_000_000).is_empty());
        prop_assert!(puppet.memory.0.len() == 1);
    }

    // spec: MR-SEC-001
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), first in 0x10u8..0x20) {
        let mut puppet = Puppet::asking(|_, _| ());
        let mut bytes = bytes;
        if let Some(place) = bytes.first_mut() { *place = first; }
        if let Some(place) = bytes.get_mut(4..8) { place.copy_from_slice(&puppet.theirs.to_be_bytes()); }
        let memory = puppet.memory.0[0].clone();
        prop_assert!(puppet.send_bytes(&bytes, Ecn::Ect0).is_err());
        prop_assert!(puppet.take().is_empty());
        prop_assert!(puppet.memory.0[0] == memory);
    }
}

// spec: MR-SEC-001
#[test]
fn a_batch_of_datagrams_before_the_next_answer() {
    let mut puppet = Puppet::asking(|endpoint, _| endpoint.ack_packets = 255);
    for psn in 0..256u32 {
        let write = puppet.write(0, psn, 0, 4);
        let _ = puppet.data(0, psn, write, b"four");
    }
    puppet.take();
}
