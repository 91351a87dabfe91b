//! Paths: sequences, windows, acknowledgments, the choice among them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use metaroce_core::path::send::PathState;
use metaroce_core::wire::*;
use metaroce_core::*;

use crate::puppet::*;
use crate::support::{Fate, Pair, is_data};
use crate::words::*;

// spec: MR-PATH-001, MR-PATH-002, MR-LOSS-003, MR-WIRE-009, MR-WIRE-010, MR-MSG-001
#[test]
fn sequences_as_seen_on_a_lossy_wire() {
    #[derive(Default)]
    struct Path {
        next_psn: u32,
        next_tsn: u32,
        contents: BTreeMap<u32, (u32, u32, usize)>,
    }
    let paths: Rc<RefCell<BTreeMap<(u8, u8), Path>>> = Rc::default();
    let (noted, repeats) = (paths.clone(), Rc::new(RefCell::new(0)));
    let count = repeats.clone();
    let mut pair = Pair::connected(plain);
    let mut state = 99u64;
    pair.filter = Box::new(move |seen| {
        let kind = seen.header.kind;
        if seen.from == 0 && matches!(kind, Kind::Data | Kind::Probe) {
            assert_eq!(
                (seen.transmit.class, seen.transmit.ecn),
                (Class::Data, Ecn::Ect0)
            );
            let mut paths = noted.borrow_mut();
            let path = paths
                .entry((seen.header.path, seen.header.generation))
                .or_default();
            if (seen.header.path, seen.header.generation) == (0, 0) && path.next_tsn == 0 {
                // The PROBE of the set-up was before.
                path.next_tsn = 1;
            }
            assert_eq!(seen.header.tsn, path.next_tsn, "consecutive, never twice");
            path.next_tsn += 1;
            if kind == Kind::Data {
                let body = check(seen.bytes, Trailer::Crc32c).unwrap();
                let (data, payload) = Data::decode(&seen.header, body).unwrap();
                let content = (data.msn, data.offset, payload.len());
                let again = seen.header.flags.contains(Flags::RETRANSMISSION);
                if seen.header.psn == path.next_psn {
                    assert!(!again);
                    path.next_psn += 1;
                    path.contents.insert(seen.header.psn, content);
                } else {
                    assert!(again, "a PSN that is not the next is one that was lost");
                    assert_eq!(path.contents[&seen.header.psn], content);
                    *count.borrow_mut() += 1;
                }
            }
        }
        if matches!(
            kind,
            Kind::Ack | Kind::Fence | Kind::FenceAck | Kind::Announce | Kind::Hint
        ) {
            assert_eq!(seen.transmit.class, Class::Control);
        }
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if state >> 33 & 15 == 0 {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    for id in 0..3 {
        write_megabyte(&mut pair, id);
    }
    pair.run_until_completions(0, 3);
    assert!(*repeats.borrow() > 50, "{}", repeats.borrow());
    assert_eq!(paths.borrow().len(), 8);
    let last = paths
        .borrow()
        .values()
        .flat_map(|path| path.contents.values())
        .map(|content| content.0)
        .max();
    assert_eq!(last, Some(2), "messages are numbered from 0");
}

// spec: MR-PATH-003
#[test]
fn no_path_goes_further_than_the_agreed_window() {
    let mut puppet = Puppet::asked_with(
        |_, _| (),
        |connection| {
            connection.paths = 1;
            connection.controller = config::ControllerChoice::None;
        },
        |offer| offer.window = 9,
    );
    puppet.post_write(0, 1, 50 * 1024);
    let sent = only(&puppet.take(), Kind::Data);
    assert_eq!(sent.last().unwrap().header().psn, 8);
    // PSN 0 is missing: whatever else arrived, nothing may follow.
    puppet
        .ack(block(0, 0, 9, &[1, 2, 3, 4, 5, 6, 7, 8]))
        .unwrap();
    let sent = only(&puppet.take(), Kind::Data);
    let psns: Vec<_> = sent.iter().map(|sent| sent.header().psn).collect();
    assert_eq!(psns, [0], "the lost one alone");
    puppet.ack(block(0, 1, 10, &[2, 3, 4, 5, 6, 7, 8])).unwrap();
    let sent = only(&puppet.take(), Kind::Data);
    assert_eq!(sent.last().unwrap().header().psn, 9);
}

// spec: MR-PATH-004
#[test]
fn acknowledgments_of_what_was_not_sent_are_dropped() {
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 3 * 1024);
    assert_eq!(only(&puppet.take(), Kind::Data).len(), 3);
    // TSN 0 was the PROBE, 1 to 3 are DATA.
    for bad in [
        block(0, 4, 3, &[]),
        block(0, 3, 4, &[]),
        block(0, 1, 3, &[3]),
        block(0, u32::MAX - 5, u32::MAX - 9, &[]),
    ] {
        let wrong = bad.cumulative > 3 || bad.newest_tsn > 3 || bad.sack != [0; 4];
        let result = puppet.ack(bad);
        if bad.cumulative < 1 << 31 {
            assert!(wrong);
            assert_eq!(result, Err(DropReason::BadAcknowledgment), "{bad:?}");
        }
    }
    puppet.take();
    assert!(puppet.completions().is_empty());
    puppet.ack(block(0, 3, 3, &[])).unwrap();
    assert_eq!(puppet.completions().len(), 1);
}

// spec: MR-PATH-005, MR-PATH-006
#[test]
fn acknowledgments_of_other_generations_and_overtaken_ones_are_no_news() {
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 8 * 1024);
    assert_eq!(only(&puppet.take(), Kind::Data).len(), 8);
    let other = AckBlock {
        generation: 1,
        ..block(0, 8, 8, &[])
    };
    puppet.ack(other).unwrap();
    assert!(puppet.completions().is_empty());
    puppet.ack(block(0, 6, 6, &[])).unwrap();
    // An older one that was overtaken.
    puppet.ack(block(0, 2, 2, &[])).unwrap();
    assert_eq!(puppet.path(0).inflight, 2);
    assert_eq!(puppet.path(0).losses, 0);
    puppet.ack(block(0, 8, 8, &[])).unwrap();
    assert_eq!(puppet.completions().len(), 1);
}

// spec: MR-WIRE-025
#[test]
fn a_bad_block_spoils_the_good_ones_before_it() {
    let mut puppet = Puppet::asked(|connection| connection.paths = 2);
    puppet.post_write(0, 1, 2 * 1024);
    assert_eq!(only(&puppet.take(), Kind::Data).len(), 2);
    let good = block(0, 1, 1, &[]);
    assert_eq!(
        puppet.acks(AckKind::Ack, &[good, block(1, 9, 0, &[])]),
        Err(DropReason::BadAcknowledgment)
    );
    assert_eq!((puppet.path(0).inflight, puppet.path(1).inflight), (1, 1));
    assert!(matches!(
        puppet.acks(
            AckKind::Ack,
            &[
                good,
                AckBlock {
                    sack: [1, 0, 0, 0],
                    ..block(1, 0, 0, &[])
                }
            ]
        ),
        Err(DropReason::Malformed(DecodeError::Sack { block: 1 }))
    ));
    assert_eq!(puppet.path(0).inflight, 1);
    puppet
        .acks(AckKind::Ack, &[good, block(1, 1, 0, &[])])
        .unwrap();
    assert_eq!(puppet.completions().len(), 1);
}

// spec: MR-PATH-007, MR-PATH-008, MR-PATH-010, MR-PATH-013
#[test]
fn each_psn_is_placed_once_and_told() {
    let mut puppet = Puppet::asking(|_, _| ());
    for (psn, text) in [(2, b"two!"), (0, b"zero"), (255, b"last")] {
        let write = puppet.write(
            psn as u16 % 4,
            if psn == 255 { 0 } else { psn / 4 },
            u64::from(psn) * 4,
            4,
        );
        puppet.data(0, psn, write, text).unwrap();
    }
    let sent = puppet.take();
    let told = Puppet::last_block(&sent, 0).unwrap();
    assert_eq!((told.cumulative, told.sack), (1, [0b10, 0, 0, 1 << 62]));
    // Again, with other bytes: acknowledged, not placed.
    let write = puppet.write(2, 0, 8, 4);
    assert_eq!(
        puppet.data(0, 2, write, b"TWO?"),
        Err(DropReason::Duplicate)
    );
    assert_eq!(puppet.bytes(8, 4), b"two!");
    let sent = puppet.take();
    assert_eq!(Puppet::last_block(&sent, 0).unwrap().received, 4);
    // The first that is too far ahead.
    let write = puppet.write(1, 0, 0, 4);
    assert_eq!(
        puppet.data(0, 257, write, b"far!"),
        Err(DropReason::BeyondWindow)
    );
    assert_eq!(puppet.bytes(0, 4), b"zero");
    assert!(puppet.take().is_empty());
    assert_eq!(puppet.dropped(DropReason::BeyondWindow), 1);
}

// spec: MR-PATH-009
#[test]
fn unknown_paths_and_generations_are_dropped() {
    let mut puppet = Puppet::asking(|_, _| ());
    let write = puppet.write(0, 0, 0, 4);
    assert_eq!(
        puppet.data(4, 0, write, b"evil"),
        Err(DropReason::UnknownPath)
    );
    assert_eq!(puppet.probe(200, 0), Err(DropReason::UnknownPath));
    assert_eq!(puppet.probe_of(1, 1, 0), Err(DropReason::WrongGeneration));
    let header = Header {
        generation: 255,
        ..puppet.header(Kind::Data)
    };
    assert_eq!(
        puppet.data_as(header, write, b"evil"),
        Err(DropReason::WrongGeneration)
    );
    let fence = Fence {
        path: 9,
        generation: 0,
        connection: puppet.theirs,
        attempt: 0,
    };
    assert_eq!(
        puppet.send(&Packet::Fence(fence)),
        Err(DropReason::UnknownPath)
    );
    let fence = Fence {
        path: 1,
        generation: 1,
        ..fence
    };
    assert_eq!(
        puppet.send(&Packet::Fence(fence)),
        Err(DropReason::WrongGeneration)
    );
    assert!(puppet.take().is_empty());
}

// spec: MR-PATH-011, MR-PATH-012, MR-WIRE-024
#[test]
fn what_an_acknowledgment_tells_beside_the_psns() {
    let mut puppet = Puppet::asking(|endpoint, _| endpoint.ack_delay = Duration::from_nanos(700));
    let at = |puppet: &Puppet, tsn| Header {
        path: 1,
        tsn,
        psn: tsn,
        ..puppet.header(Kind::Data)
    };
    let marked = |puppet: &mut Puppet, tsn: u32, ecn| {
        let packet = Packet::Data {
            header: at(puppet, tsn),
            data: Data {
                stream: tsn as u16 % 4,
                msn: tsn / 4,
                ..puppet.write(0, 0, 0, 4)
            },
            payload: b"four",
        };
        let mut buffer = [0; 100];
        let length = packet.encode(&mut buffer).unwrap();
        let length = seal(&mut buffer, length, Trailer::Crc32c).unwrap();
        puppet.send_bytes(&buffer[..length], ecn).unwrap();
    };
    marked(&mut puppet, 0, Ecn::Ect0);
    marked(&mut puppet, 3, Ecn::Ce);
    marked(&mut puppet, 4, Ecn::Ce);
    marked(&mut puppet, 1, Ecn::Ect1);
    let told = Puppet::last_block(&puppet.take(), 1).unwrap();
    assert_eq!(
        (told.newest_tsn, told.newest_psn),
        (4, 4),
        "one that was overtaken is not the newest"
    );
    assert_eq!((told.received, told.ce_count), (4, 2));
    let duplicate = puppet.write(0, 0, 0, 4);
    let header = at(&puppet, 0);
    let _ = puppet.data_as(Header { tsn: 5, ..header }, duplicate, b"four");
    puppet
        .send(&Packet::Probe(Probe {
            path: 1,
            generation: 0,
            connection: puppet.theirs,
            attempt: 0,
            tsn: 6,
        }))
        .unwrap();
    let told = Puppet::last_block(&puppet.take(), 1).unwrap();
    assert_eq!(
        (told.received, told.newest_tsn, told.newest_psn),
        (5, 6, PSN_OF_PROBE)
    );
    // A packet that need not be acknowledged at once: after 700 ns, and that is told.
    marked(&mut puppet, 7, Ecn::Ect0);
    let sent = puppet.run(10_000);
    let told = Puppet::last_block(&sent, 1).unwrap();
    assert_eq!(told.delay, 700 / 16);
}

// spec: MR-PATH-013, MR-PATH-014
#[test]
fn when_an_acknowledgment_is_due() {
    let mut puppet = Puppet::asking(|endpoint, _| {
        endpoint.ack_packets = 3;
        endpoint.ack_delay = Duration::from_nanos(5_000);
    });
    let mut psn = 0;
    let mut next = |puppet: &mut Puppet, flags: Flags, skip: u32, ecn: Ecn| -> bool {
        let header = Header {
            path: 2,
            psn,
            tsn: puppet.tsn[2] + skip,
            flags,
            ..puppet.header(Kind::Data)
        };
        puppet.tsn[2] += skip + 1;
        let packet = Packet::Data {
            header,
            data: puppet.write(0, psn, 0, 4),
            payload: b"four",
        };
        psn += 1;
        let mut buffer = [0; 100];
        let length = packet.encode(&mut buffer).unwrap();
        let length = seal(&mut buffer, length, Trailer::Crc32c).unwrap();
        puppet.send_bytes(&buffer[..length], ecn).unwrap();
        Puppet::last_block(&puppet.take(), 2).is_some()
    };
    assert!(!next(&mut puppet, Flags::NONE, 0, Ecn::Ect0));
    assert!(!next(&mut puppet, Flags::NONE, 0, Ecn::Ect0));
    assert!(next(&mut puppet, Flags::NONE, 0, Ecn::Ect0), "the third");
    assert!(
        next(&mut puppet, Flags::ACK_REQUEST, 0, Ecn::Ect0),
        "asked for"
    );
    assert!(next(&mut puppet, Flags::NONE, 1, Ecn::Ect0), "a gap");
    assert!(!next(&mut puppet, Flags::NONE, 0, Ecn::Ect0));
    assert!(next(&mut puppet, Flags::NONE, 0, Ecn::Ce), "a mark");
    assert!(!next(&mut puppet, Flags::NONE, 0, Ecn::Ce));
    assert!(
        next(&mut puppet, Flags::NONE, 0, Ecn::Ect0),
        "no mark any more"
    );
    assert!(!next(&mut puppet, Flags::NONE, 0, Ecn::Ect0));
    let start = puppet.now;
    let sent = puppet.run(100_000);
    assert!(Puppet::last_block(&sent, 2).is_some() && sent[0].at - start == 5_000);
}

// spec: MR-PATH-016, MR-PATH-017, MR-PATH-018, MR-CC-001, MR-CC-008
#[test]
fn a_window_of_eight_on_sixteen_paths() {
    let mut puppet = Puppet::asked_with(
        |_, _| (),
        |connection| connection.paths = 16,
        |offer| offer.paths = 16,
    );
    puppet.post_write(0, 1, 64 * 1024);
    let sent = only(&puppet.run(10_000), Kind::Data);
    let paths: BTreeSet<_> = sent.iter().map(|sent| sent.header().path).collect();
    assert_eq!(
        (sent.len(), paths.len()),
        (8, 8),
        "eight packets, one a path"
    );
    let mut puppet = Puppet::asked(|connection| connection.paths = 2);
    puppet.post_write(0, 1, 64 * 1024);
    let sent = only(&puppet.run(10_000), Kind::Data);
    let on = |path| {
        sent.iter()
            .filter(|sent| sent.header().path == path)
            .count()
    };
    assert_eq!((on(0), on(1)), (4, 4));
}

// spec: MR-PATH-019, MR-PATH-020, MR-PATH-021
#[test]
fn a_path_moves_when_it_is_marked_and_drained_and_not_before() {
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 2 * 1024);
    puppet.take();
    let before = puppet.path(0);
    let marked = |cumulative, newest_tsn, ce_count| AckBlock {
        ce_count,
        ..block(0, cumulative, newest_tsn, &[])
    };
    puppet.ack(marked(1, 1, 1)).unwrap();
    assert_eq!(puppet.path(0).entropy, before.entropy, "one is outstanding");
    puppet.ack(marked(2, 2, 2)).unwrap();
    let after = puppet.path(0);
    assert_ne!(after.entropy, before.entropy);
    assert_eq!(
        (after.generation, after.state),
        (before.generation, PathState::Active)
    );
    puppet.post_write(0, 2, 1024);
    let sent = only(&puppet.take(), Kind::Data);
    assert_eq!(
        (sent[0].transmit.entropy, sent[0].header().psn),
        (after.entropy, 2),
        "the sequence goes on"
    );
    // No two paths of a plane have the same.
    let puppet = Puppet::asked_with(
        |endpoint, _| endpoint.entropies = 20,
        |connection| connection.paths = 16,
        |offer| offer.paths = 16,
    );
    let ports: BTreeSet<_> = (0..16).map(|path| puppet.path(path).entropy).collect();
    assert_eq!(ports.len(), 16);
}

// spec: MR-PATH-022
#[test]
fn a_path_that_is_worse_than_the_others_is_drained_and_moved() {
    let mut pair = Pair::connected(|_, _, connection| connection.paths = 8);
    let handle = pair.sides[0].connection.unwrap();
    let bad = pair.sides[0]
        .host
        .path_statistics(handle, 5)
        .unwrap()
        .entropy;
    let mut count = 0;
    pair.filter = Box::new(move |seen| {
        count += 1;
        if seen.from == 0 && is_data(&seen.header) && seen.transmit.entropy == bad && count % 3 == 0
        {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    for id in 0..12 {
        write_megabyte(&mut pair, id);
    }
    pair.run_until_completions(0, 12);
    let path = pair.sides[0].host.path_statistics(handle, 5).unwrap();
    assert_ne!(path.entropy, bad);
    assert_eq!(
        (path.generation, pair.statistics(0).fences),
        (0, 0),
        "drained, not fenced"
    );
}

// spec: MR-PATH-022, MR-PROBE-008
#[test]
fn a_path_that_falls_silent_while_it_is_drained_is_moved_nevertheless() {
    let mut pair = Pair::connected(|_, _, connection| connection.paths = 8);
    let handle = pair.sides[0].connection.unwrap();
    let path = move |pair: &Pair| pair.sides[0].host.path_statistics(handle, 5).unwrap();
    let bad = path(&pair).entropy;
    let losing = |share: u32| {
        let mut count = 0;
        move |seen: &mut crate::support::Seen<'_>| {
            count += 1;
            let from = seen.from == 0 && seen.transmit.entropy == bad;
            if from && (share == 1 || (is_data(&seen.header) && count % share == 0)) {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        }
    };
    pair.filter = Box::new(losing(3));
    for id in 0..12 {
        write_megabyte(&mut pair, id);
    }
    pair.run_until(|pair| path(pair).state == PathState::Draining);
    pair.filter = Box::new(losing(1));
    pair.run_until(|pair| path(pair).state == PathState::Suspect);
    assert_eq!(path(&pair).entropy, bad);
    pair.filter = Box::new(|_| Fate::Deliver);
    pair.run_until_completions(0, 12);
    assert_ne!(path(&pair).entropy, bad);
    assert_eq!((path(&pair).generation, pair.statistics(0).fences), (0, 0));
}

// spec: MR-PATH-013
#[test]
fn an_acknowledgment_after_a_gap_does_not_say_the_same_twice() {
    let mut puppet = Puppet::asking(|_, _| ());
    let write = puppet.write(0, 0, 0, 100 * 1024);
    let part = |psn: u32| Data {
        offset: psn * 1024,
        ..write
    };
    for psn in [0, 2, 3] {
        // What was sent between did not come.
        puppet.tsn[0] = psn;
        puppet.data(0, psn, part(psn), &[1; 1024]).unwrap();
        for ack in only(&puppet.run(5_000), Kind::Ack) {
            let Packet::Ack { blocks, .. } = ack.packet() else {
                panic!()
            };
            assert_eq!(blocks.count(), 1);
        }
    }
}

// spec: MR-PATH-015
#[test]
fn one_acknowledgment_tells_less_right_after_a_gap() {
    let mut puppet = Puppet::asked_with(
        |endpoint, _| endpoint.ack_blocks = 8,
        |connection| connection.paths = 16,
        |offer| offer.paths = 16,
    );
    puppet.run(1_000_000);
    let write = puppet.write(0, 0, 0, 100 * 1024);
    let mut next = 0;
    let mut blocks_after = |puppet: &mut Puppet, gap: bool| {
        puppet.tsn[0] += u32::from(gap);
        for path in 0..16 {
            let data = Data {
                offset: next * 1024,
                ..write
            };
            puppet.data(path, next / 16, data, &[1; 1024]).unwrap();
            next += 1;
        }
        let acks = only(&puppet.run(5_000), Kind::Ack);
        let count = |sent: &Sent| match sent.packet() {
            Packet::Ack { blocks, .. } => blocks.count(),
            _ => 0,
        };
        acks.iter().map(count).max().unwrap()
    };
    assert_eq!(blocks_after(&mut puppet, false), 8);
    assert_eq!(blocks_after(&mut puppet, true), 2);
    puppet.run(10_000);
    assert_eq!(blocks_after(&mut puppet, false), 8);
}
