//! Two connected endpoints in whatever state the input brings them into: posts, closes, faults of the network, and a peer
//! that says anything under a valid checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metaroce_core::wire::{Flags, HEADER_SIZE, Header, Kind};
use metaroce_core::{
    CloseMode, Ecn, LocalSlice, Operation, ReceiveQueue, ReceiveRequest, RegionIndex,
    RemoteAddress, Source, WorkFlags, WorkRequest,
};
use metaroce_fuzz::input::Input;
use metaroce_fuzz::pair::{BASE, Pair, REGION, seal_again};

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let mut pair = Pair::connected();
    let mut next_id = 1;
    while !input.is_empty() {
        step(&mut pair, &mut input, &mut next_id);
    }
    pair.finish();
});

fn step(pair: &mut Pair, input: &mut Input<'_>, next_id: &mut u64) {
    let choice = input.byte();
    let side = usize::from(choice >> 7);
    match choice & 15 {
        0..=2 => {
            for _ in 0..=input.below(8) {
                take_and_deliver(pair, side, 0, Ecn::Ect0);
            }
        }
        3 => {
            pair.sides[side].inbound.pop_front();
        }
        4 => {
            // Out of order, marked.
            let place = input.byte();
            take_and_deliver(pair, side, place, Ecn::Ce);
        }
        5 => {
            // Twice.
            let place = usize::from(input.byte());
            if let Some((plane, bytes)) = pair.sides[side].inbound.get(place).cloned() {
                pair.deliver(side, plane, &bytes, Ecn::Ect0);
            }
        }
        6 | 7 => {
            // Changed, under a valid checksum; often only a little.
            let place = input.byte();
            if let Some((plane, mut bytes)) = pair.taken(side, place) {
                for _ in 0..=input.below(3) {
                    let at = input.below(72).min(bytes.len() - 1);
                    let change = input.byte();
                    bytes[at] = if change & 1 == 0 {
                        bytes[at].wrapping_add((change as i8 >> 1) as u8)
                    } else {
                        input.byte()
                    };
                }
                seal_again(&mut bytes);
                pair.deliver(side, plane, &bytes, Ecn::Ect0);
            }
        }
        8 => {
            // Another length, under a valid checksum.
            let place = input.byte();
            if let Some((plane, mut bytes)) = pair.taken(side, place) {
                bytes.resize(input.below(bytes.len() + 40), 0xa5);
                seal_again(&mut bytes);
                pair.deliver(side, plane, &bytes, Ecn::Ect0);
            }
        }
        9 => invent(pair, input, side),
        10 | 11 => {
            let ns = u64::from(input.short());
            pair.now += match choice >> 4 & 3 {
                0 => ns / 16,
                1 => ns,
                2 => ns * 64,
                _ => ns * 2048,
            };
            for side in 0..2 {
                pair.let_time_pass(side);
            }
        }
        12 | 13 => post(pair, input, side, next_id),
        14 => post_receive(pair, input, side, next_id),
        _ => rarely(pair, input, side),
    }
}

fn take_and_deliver(pair: &mut Pair, side: usize, place: u8, ecn: Ecn) {
    if let Some((plane, bytes)) = pair.taken(side, place) {
        pair.deliver(side, plane, &bytes, ecn);
    }
}

/// A datagram that nobody sent, with the right connection.
fn invent(pair: &mut Pair, input: &mut Input<'_>, side: usize) {
    let Some(connection) = pair.sides[side].connection else {
        return;
    };
    const KINDS: [Kind; 9] = [
        Kind::Data,
        Kind::Ack,
        Kind::Probe,
        Kind::Fence,
        Kind::FenceAck,
        Kind::Announce,
        Kind::Hint,
        Kind::Close,
        Kind::CloseAck,
    ];
    let header = Header {
        kind: KINDS[input.below(KINDS.len())],
        flags: Flags(input.byte()),
        path: input.byte() & 7,
        generation: input.byte() & 3,
        connection: connection.to_bits(),
        psn: input.word(),
        tsn: input.word(),
    };
    let mut fixed = [0; HEADER_SIZE];
    header.encode(&mut fixed);
    let mut bytes = fixed.to_vec();
    bytes.extend(input.bytes(255));
    bytes.extend([0; 4]);
    seal_again(&mut bytes);
    pair.deliver(side, 0, &bytes, Ecn::NotEct);
}

fn slice(pair: &Pair, input: &mut Input<'_>, side: usize) -> LocalSlice {
    let which = input.byte();
    let region = pair.sides[side].regions[usize::from(which & 3) % 3].index;
    let length = match which >> 2 & 3 {
        0 => 8,
        1 => u32::from(input.byte()),
        _ => u32::from(input.short()) % 4200,
    };
    let offset = (u64::from(which) << 4).min((REGION as u64).saturating_sub(u64::from(length)));
    LocalSlice {
        region,
        offset,
        length,
    }
}

fn post(pair: &mut Pair, input: &mut Input<'_>, side: usize, next_id: &mut u64) {
    let Some(connection) = pair.sides[side].connection else {
        return;
    };
    let how = input.byte();
    let local = slice(pair, input, side);
    let remote = RemoteAddress {
        address: BASE + u64::from(input.byte()) * 16,
        key: pair.sides[1 - side].regions[usize::from(input.byte() & 7) % 5 % 3].key,
    };
    let inline = [7; 32];
    let source = if how & 8 == 0 {
        Source::Region(local)
    } else {
        Source::Inline(&inline[..usize::from(how >> 4) * 2])
    };
    let immediate = (how & 16 != 0).then_some(5);
    let operation = match how & 7 {
        0 | 1 => Operation::Write {
            local: source,
            remote,
            immediate,
        },
        2 | 3 => Operation::Send {
            local: source,
            immediate,
        },
        4 | 5 => Operation::Read { local, remote },
        6 => Operation::FetchAdd {
            local,
            remote,
            add: 1,
        },
        _ => Operation::CompareSwap {
            local,
            remote,
            compare: 0,
            swap: 1,
        },
    };
    let flags = WorkFlags {
        signaled: true,
        solicited: how & 32 != 0,
        fence: how & 64 != 0,
    };
    let (now, id) = (pair.at(), *next_id);
    let work = WorkRequest {
        id,
        operation,
        flags,
    };
    let owner = &mut pair.sides[side];
    if owner
        .host
        .post(now, connection, u16::from(how >> 7), &work)
        .is_ok()
    {
        owner.work.insert(id);
        *next_id += 1;
    }
    pair.settle(side);
}

fn post_receive(pair: &mut Pair, input: &mut Input<'_>, side: usize, next_id: &mut u64) {
    let Some(connection) = pair.sides[side].connection else {
        return;
    };
    let how = input.byte();
    let local = slice(pair, input, side);
    let queue = if how & 6 == 0 {
        ReceiveQueue::Shared(how & 8)
    } else {
        ReceiveQueue::Stream(connection, u16::from(how & 1))
    };
    let id = *next_id;
    let request = ReceiveRequest { id, local };
    let owner = &mut pair.sides[side];
    if owner.host.post_receive(queue, &request).is_ok() {
        owner.receives.insert(id);
        *next_id += 1;
    }
    pair.settle(side);
}

/// What ends or changes much.
fn rarely(pair: &mut Pair, input: &mut Input<'_>, side: usize) {
    let how = input.byte();
    let now = pair.at();
    let owner = &mut pair.sides[side];
    match (how & 15, owner.connection) {
        (0, Some(connection)) => {
            let _ = owner.host.close(now, connection, CloseMode::Drain);
        }
        (1, Some(connection)) => {
            let _ = owner.host.close(now, connection, CloseMode::Abort(3));
        }
        (2, Some(connection)) => {
            let _ = owner
                .host
                .attach_shared_queue(connection, u16::from(how >> 7), 0);
        }
        (3, Some(connection)) => {
            let _ = owner.host.announce(connection);
        }
        (4, _) => {
            let which = usize::from(how >> 4) % 3;
            let index: RegionIndex = owner.regions[which].index;
            if owner.host.deregister(index).is_ok() {
                owner.memory.regions[usize::from(index.0)] = None;
            }
        }
        (5, _) => owner.memory.fault = true,
        (6, _) => pair.now = pair.now.saturating_sub(u64::from(input.short()) * 16),
        (7, _) => pair.connect(),
        (8, _) => owner.inbound.clear(),
        _ => {}
    }
    pair.settle(side);
}
