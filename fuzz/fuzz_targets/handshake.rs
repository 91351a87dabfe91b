//! Setting up under fire: a listener and an initiator among INITs, RETRYs, ACCEPTs and REJECTs that others made up.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metaroce_core::wire::{
    Accept, Capabilities, Cookie, Init, Parameters, PlaneAddress, Planes, Reject, RejectReason,
    Retry,
};
use metaroce_core::{Ecn, Operation, Source, WorkFlags, WorkRequest};
use metaroce_fuzz::input::Input;
use metaroce_fuzz::pair::{BASE, Pair, address, seal_again};

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let mut pair = Pair::new();
    pair.connect();
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
            let place = choice >> 4 & 3;
            if let Some((plane, bytes)) = pair.taken(side, place) {
                pair.deliver(side, plane, &bytes, Ecn::NotEct);
            }
        }
        3 => {
            pair.sides[side].inbound.pop_front();
        }
        4 => {
            let place = usize::from(input.byte());
            if let Some((plane, bytes)) = pair.sides[side].inbound.get(place).cloned() {
                pair.deliver(side, plane, &bytes, Ecn::NotEct);
            }
        }
        5 | 6 => {
            if let Some((plane, mut bytes)) = pair.taken(side, input.byte()) {
                let at = input.below(bytes.len());
                bytes[at] = input.byte();
                if choice & 64 != 0 {
                    bytes.resize(input.below(400), 0);
                }
                seal_again(&mut bytes);
                pair.deliver(side, plane ^ (choice >> 5 & 1), &bytes, Ecn::NotEct);
            }
        }
        7 | 8 => init(pair, input),
        9 | 10 => answer(pair, input),
        11 | 12 => {
            let ns = u64::from(input.short());
            pair.now += if choice & 16 == 0 { ns } else { ns * 4096 };
            for side in 0..2 {
                pair.let_time_pass(side);
            }
        }
        13 => pair.connect(),
        14 => pair.sides[1].host.listen(choice & 16 == 0),
        _ => post(pair, side, next_id),
    }
}

fn parameters(input: &mut Input<'_>) -> Option<Parameters> {
    let count = input.below(5);
    let list: Vec<_> = (0..count)
        .map(|_| {
            let who = input.byte();
            let payload = 256 + (u16::from(who) << 5);
            PlaneAddress::new(address(usize::from(who & 1), who >> 1 & 3), payload)
        })
        .collect();
    let shape = input.byte();
    Some(Parameters {
        paths: 1 + (shape & 7),
        window: 1 + u16::from(input.byte()),
        streams: 1 + u16::from(shape >> 3 & 3),
        open_messages: 1 + u16::from(shape >> 5 & 1),
        open_responses: 1 + u16::from(shape >> 6 & 1),
        capabilities: if shape >> 7 == 0 {
            Capabilities::NONE
        } else {
            Capabilities::NO_CHECKSUM
        },
        ingress_mbps: u32::from(input.byte()) * 1_000,
        service: 1,
        planes: Planes::new(&list)?,
    })
}

fn cookie(input: &mut Input<'_>, now: u64) -> Cookie {
    Cookie {
        issued_ms: (now / 1_000_000) as u32 - u32::from(input.byte() & 1),
        tag: [input.byte(); 16],
    }
}

/// An INIT that somebody made up: without a cookie of the listener's it opens nothing and is answered with less than it brought.
fn init(pair: &mut Pair, input: &mut Input<'_>) {
    let Some(parameters) = parameters(input) else {
        return;
    };
    let how = input.byte();
    let init = Init {
        attempt: 0,
        source: input.word().max(1),
        lowest_version: 1,
        highest_version: 1 + (how & 1),
        cookie: (how & 2 != 0).then(|| cookie(input, pair.now)),
        parameters,
    };
    let mut bytes = vec![0; 500];
    let Ok(length) = init.encode(&mut bytes) else {
        return;
    };
    bytes.truncate(length + 4);
    seal_again(&mut bytes);
    let opened = pair.sides[1].host.endpoint_statistics().connections_opened;
    let sent = pair.sides[1].host.endpoint_statistics().bytes_sent;
    pair.settle(1);
    pair.sides[0].inbound.clear();
    pair.deliver(1, how >> 2 & 1, &bytes, Ecn::NotEct);
    let statistics = pair.sides[1].host.endpoint_statistics();
    assert_eq!(statistics.connections_opened, opened, "no cookie, no state");
    let answered: usize = pair.sides[0]
        .inbound
        .iter()
        .filter(|(_, answer)| answer[0] & 15 <= 3)
        .map(|(_, answer)| answer.len())
        .sum();
    assert!(answered <= bytes.len(), "no amplification");
    assert!(statistics.bytes_sent - sent >= answered as u64);
}

/// An answer to the initiator that somebody made up who knows its connection id.
fn answer(pair: &mut Pair, input: &mut Input<'_>) {
    let Some(connection) = pair.sides[0].connection else {
        return;
    };
    let connection = connection.to_bits();
    let mut bytes = vec![0; 500];
    let how = input.byte();
    let length = match how & 3 {
        0 => Retry {
            connection,
            cookie: cookie(input, pair.now),
        }
        .encode(&mut bytes),
        1 => Reject {
            connection,
            reason: RejectReason::ALL[usize::from(how >> 2) % RejectReason::ALL.len()],
            detail: 0,
        }
        .encode(&mut bytes),
        _ => {
            let Some(parameters) = parameters(input) else {
                return;
            };
            Accept {
                connection,
                source: input.word().max(1),
                hint_mbps: u32::from(input.short()),
                version: 1 + (how >> 7),
                parameters,
            }
            .encode(&mut bytes)
        }
    };
    let Ok(length) = length else {
        return;
    };
    bytes.truncate(length + 4);
    seal_again(&mut bytes);
    pair.deliver(0, 0, &bytes, Ecn::NotEct);
}

fn post(pair: &mut Pair, side: usize, next_id: &mut u64) {
    let now = pair.at();
    let key = pair.sides[1 - side].regions[0].key;
    let owner = &mut pair.sides[side];
    let Some(connection) = owner.connection else {
        return;
    };
    let work = WorkRequest {
        id: *next_id,
        operation: Operation::Write {
            local: Source::Inline(&[1, 2, 3]),
            remote: metaroce_core::RemoteAddress { address: BASE, key },
            immediate: None,
        },
        flags: WorkFlags::default(),
    };
    if owner.host.post(now, connection, 0, &work).is_ok() {
        owner.work.insert(*next_id);
        *next_id += 1;
    }
    pair.settle(side);
}
