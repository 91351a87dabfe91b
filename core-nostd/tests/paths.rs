//! Paths: sequences, acknowledgments, losses, probes, fences; against a scripted peer, or as seen on the wire.

mod puppet;
mod support;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use metaroce_core::path::send::PathState;
use metaroce_core::wire::*;
use metaroce_core::*;
use puppet::*;
use support::{Fate, Pair, is_data};

fn plain(_: usize, _: &mut EndpointConfig, _: &mut ConnectionConfig) {}

fn write_megabyte(pair: &mut Pair, id: u64) {
    let local = pair.local(0, 0, 1_000_000);
    let remote = pair.remote(0, 0);
    pair.post(
        0,
        0,
        id,
        Operation::Write {
            local: Source::Region(local),
            remote,
            immediate: None,
        },
    );
}

/// One path, so that the order of things is plain.
fn single(change: impl Fn(&mut ConnectionConfig)) -> Puppet {
    Puppet::asked(|connection| {
        connection.paths = 1;
        change(connection);
    })
}

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

// spec: MR-LOSS-001, MR-LOSS-003, MR-LOSS-005, MR-WIRE-019
#[test]
fn a_gap_is_a_loss_and_is_sent_again_first() {
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 20 * 1024);
    let sent = only(&puppet.take(), Kind::Data);
    assert_eq!(sent.len(), 8);
    for (index, sent) in sent.iter().enumerate() {
        let left = 20 * 1024 - (index as u64 + 1) * 1024;
        assert_eq!(sent.data().1.demand, Demand::from_bytes(left));
    }
    // The bytes change meanwhile: nothing was copied.
    puppet.memory.0[0][1024] ^= 0xff;
    let changed = puppet.memory.0[0][1024];
    puppet.ack(block(0, 1, 3, &[2])).unwrap();
    let again = only(&puppet.take(), Kind::Data);
    let (header, data, payload) = again[0].data();
    assert_eq!((header.psn, header.tsn, header.path), (1, 9, 0));
    assert!(header.flags.contains(Flags::RETRANSMISSION));
    assert_eq!((data.offset, payload[0]), (1024, changed));
    assert!(
        again[1..].iter().all(|sent| sent.header().psn >= 8),
        "then what is new"
    );
    // Lost again: the same rule.
    puppet.ack(block(0, 1, 10, &[2, 3, 4, 5, 6, 7, 8])).unwrap();
    let (header, ..) = only(&puppet.take(), Kind::Data)[0].data();
    assert_eq!(header.psn, 1);
    assert_eq!(puppet.path(0).losses, 2);
}

// spec: MR-LOSS-001
#[test]
fn a_tolerance_waits_for_that_many_later_packets() {
    let mut puppet = single(|connection| connection.reorder_tolerance = 3);
    puppet.post_write(0, 1, 8 * 1024);
    puppet.take();
    puppet.ack(block(0, 0, 4, &[3])).unwrap();
    assert_eq!(puppet.path(0).losses, 0);
    puppet.ack(block(0, 0, 5, &[3, 4])).unwrap();
    assert_eq!(puppet.path(0).losses, 1);
}

// spec: MR-LOSS-002, MR-PROBE-001, MR-PROBE-003
#[test]
fn time_alone_loses_nothing_and_probes_are_backed_off() {
    let mut puppet = single(|connection| connection.failure_timeout = Duration::from_millis(1_500));
    puppet.post_write(0, 1, 3 * 1024);
    puppet.take();
    let start = puppet.now;
    let sent = puppet.run(1_400_000_000);
    assert!(
        sent.iter().all(|sent| sent.is(Kind::Probe)),
        "no packet is sent again"
    );
    let times: Vec<_> = sent.iter().map(|sent| sent.at - start).collect();
    // The one sample was 10 us: srtt 10 us, rttvar 5 us, hence 30 us; the first two are not backed off.
    assert_eq!(times[..5], [30_000, 60_000, 90_000, 150_000, 270_000]);
    assert!(
        times
            .windows(2)
            .all(|pair| pair[1] - pair[0] <= 100_000_000)
    );
    assert_eq!(puppet.path(0).losses, 0);
    let tsns: Vec<_> = sent.iter().take(3).map(|sent| sent.header().tsn).collect();
    assert_eq!(tsns, [4, 5, 6]);
    // The echo of a probe proves the loss of what was sent before it.
    puppet.ack(block(0, 1, 4, &[])).unwrap();
    assert_eq!(puppet.path(0).losses, 2);
}

// spec: MR-PROBE-003
#[test]
fn marks_back_probes_off_at_once() {
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 4 * 1024);
    puppet.take();
    let marked = |cumulative, tsn, ce_count| AckBlock {
        ce_count,
        ..block(0, cumulative, tsn, &[])
    };
    puppet.now += 10_000;
    puppet.ack(marked(1, 1, 1)).unwrap();
    puppet.now += 11_000;
    // This begins the next epoch: the one before had marks.
    puppet.ack(marked(2, 2, 1)).unwrap();
    puppet.now += 11_000;
    let sent = only(&puppet.run(2_000_000), Kind::Probe);
    let gaps: Vec<_> = sent
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .collect();
    assert!(
        gaps[1] > gaps[0] * 19 / 10 && gaps[2] > gaps[1] * 19 / 10,
        "{gaps:?}"
    );
}

// spec: MR-LOSS-004
#[test]
fn what_arrived_after_all_is_not_sent_again() {
    let mut puppet =
        single(|connection| connection.controller = config::ControllerChoice::FixedRate(10));
    puppet.post_write(0, 1, 5 * 1024);
    // 10 Mbit/s: a packet takes about 0.9 ms; catching up gives a few at once.
    let sent = only(&puppet.run(1), Kind::Data);
    let count = sent.len() as u32;
    assert!((2..5).contains(&count), "{count}");
    puppet
        .ack(block(0, 0, count, &(1..count).collect::<Vec<_>>()))
        .unwrap();
    assert_eq!(puppet.path(0).losses, 1);
    puppet.ack(block(0, count, count, &[])).unwrap();
    let more = only(&puppet.run(20_000_000), Kind::Data);
    assert!(more.iter().all(|sent| sent.header().psn >= count));
    assert_eq!(puppet.path(0).retransmissions, 0);
}

// spec: MR-LOSS-006
#[test]
fn the_delay_of_the_acknowledgment_is_not_round_trip_time() {
    let mut puppet = single(|_| ());
    assert_eq!(puppet.path(0).srtt_ns, 10_000, "of the first PROBE");
    for index in 0..100u32 {
        puppet.post_write(0, 1, 1024);
        puppet.take();
        puppet.now += 10_000;
        let newest = index + 1;
        puppet
            .ack(AckBlock {
                newest_psn: index,
                delay: AckBlock::delay_from_ns(4_000),
                ..block(0, index + 1, newest, &[])
            })
            .unwrap();
        puppet.take();
    }
    let srtt = puppet.path(0).srtt_ns;
    assert!((6_000..6_100).contains(&srtt), "{srtt}");
    assert_eq!(puppet.statistics().min_rtt_ns, 6_000);
    // An acknowledgment that brings no news of a transmission is no sample.
    puppet.now += 5_000_000;
    puppet.ack(block(0, 100, 100, &[])).unwrap();
    assert_eq!(puppet.path(0).srtt_ns, srtt);
}

// spec: MR-PROBE-002, MR-PROBE-006
#[test]
fn a_probe_is_answered_at_once_and_a_repeated_one_another_way() {
    let mut puppet = Puppet::asking(|_, _| ());
    let mut ways = vec![];
    for attempt in [0, 0, 1, 2, 0] {
        puppet.probe(3, attempt).unwrap();
        let sent = puppet.take();
        assert_eq!(sent.len(), 1);
        let told = Puppet::last_block(&sent, 3).unwrap();
        assert_eq!(
            (told.newest_tsn, told.newest_psn),
            (puppet.tsn[3] - 1, PSN_OF_PROBE)
        );
        ways.push(sent[0].transmit.entropy);
    }
    assert_eq!(ways[0], ways[1]);
    assert_ne!(ways[1], ways[2]);
    assert_ne!(ways[2], ways[3]);
    assert_eq!(ways[3], ways[4], "what works is kept");
    // And what the endpoint itself sends is numbered.
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 1024);
    puppet.take();
    let numbers: Vec<_> = only(&puppet.run(1_000_000), Kind::Probe)
        .iter()
        .map(|sent| sent.header().psn)
        .collect();
    assert_eq!(numbers[..3], [0, 1, 2]);
    let tsn = puppet.path(0).packets_sent + numbers.len() as u32;
    puppet.ack(block(0, 0, tsn, &[])).unwrap();
    let again = puppet.run(1_000_000);
    let numbers: Vec<_> = only(&again, Kind::Probe)
        .iter()
        .map(|sent| sent.header().psn)
        .collect();
    assert_eq!(numbers[0], 0, "an answer starts the count anew");
}

// spec: MR-PROBE-004
#[test]
fn after_a_loss_the_end_of_a_burst_is_probed_early() {
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 3 * 1024);
    puppet.take();
    puppet.now += 10_000;
    puppet.ack(block(0, 0, 3, &[1, 2])).unwrap();
    let again = only(&puppet.take(), Kind::Data);
    assert_eq!(again.len(), 1);
    let sent = only(&puppet.run(100_000), Kind::Probe);
    let pause = sent[0].at - again[0].at;
    assert!((900..=1_100).contains(&pause), "{pause}");
}

// spec: MR-PROBE-005
#[test]
fn probes_of_many_silent_paths_do_not_become_a_storm() {
    let mut puppet = Puppet::asked_with(
        |_, _| (),
        |connection| {
            connection.paths = 16;
            connection.controller = config::ControllerChoice::None;
        },
        |offer| offer.paths = 16,
    );
    puppet.post_write(0, 1, 16 * 1024);
    assert_eq!(only(&puppet.take(), Kind::Data).len(), 16);
    let start = puppet.now;
    let sent = only(&puppet.run(10_000_000), Kind::Probe);
    let paths: BTreeSet<_> = sent
        .iter()
        .take(16)
        .map(|sent| sent.header().path)
        .collect();
    assert_eq!(paths.len(), 16, "the one that waits longest goes first");
    for pair in sent.windows(2) {
        // min_rtt is 10 us; silence since the DATA left.
        let silence = pair[0].at - start;
        assert!(
            pair[1].at - pair[0].at >= (10_000 / 16).max(silence / 64),
            "{} {}",
            pair[0].at - start,
            pair[1].at - start
        );
    }
}

// spec: MR-PROBE-007, MR-PROBE-008
#[test]
fn a_path_in_doubt_does_not_count_until_it_answers() {
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 20 * 1024);
    puppet.take();
    assert_eq!(
        (puppet.path(0).state, puppet.statistics().outstanding),
        (PathState::Active, 8)
    );
    let sent = puppet.run(100_000);
    assert_eq!(puppet.path(0).state, PathState::Suspect);
    assert_eq!(
        (puppet.statistics().outstanding, puppet.path(0).inflight),
        (0, 8)
    );
    assert!(only(&sent, Kind::Data).is_empty(), "it carries nothing new");
    // An answer that acknowledges nothing still is an answer.
    puppet
        .ack(AckBlock {
            newest_psn: 0,
            ..block(0, 1, 1, &[])
        })
        .unwrap();
    assert_eq!(puppet.path(0).state, PathState::Active);
    assert_eq!(puppet.statistics().outstanding, 7);
}

// spec: MR-PROBE-009
#[test]
fn the_last_packet_asks_for_its_acknowledgment() {
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 4 * 1024);
    let asks: Vec<_> = only(&puppet.take(), Kind::Data)
        .iter()
        .map(|sent| sent.header().flags.contains(Flags::ACK_REQUEST))
        .collect();
    assert_eq!(asks, [false, false, false, true]);
}

fn fence(
    puppet: &mut Puppet,
    path: u8,
    generation: u8,
    attempt: u32,
) -> Result<Vec<Sent>, DropReason> {
    let connection = puppet.theirs;
    puppet.send(&Packet::Fence(Fence {
        path,
        generation,
        connection,
        attempt,
    }))?;
    Ok(puppet.take())
}

// spec: MR-FENCE-004, MR-FENCE-005, MR-FENCE-008
#[test]
fn a_fence_ends_a_generation_for_good() {
    let mut puppet = Puppet::asking(|_, _| ());
    let write = |puppet: &Puppet, msn| puppet.write(0, msn, u64::from(msn) * 4, 4);
    for psn in [0, 2] {
        let data = write(&puppet, psn);
        puppet.data(1, psn, data, b"good").unwrap();
    }
    puppet.take();
    let first = fence(&mut puppet, 1, 0, 0).unwrap();
    assert!(first.len() == 1 && first[0].is(Kind::FenceAck));
    let Packet::FenceAck { mut blocks, .. } = first[0].packet() else {
        panic!()
    };
    let told = blocks.next().unwrap();
    assert_eq!(
        (told.path, told.generation, told.cumulative, told.sack),
        (1, 0, 1, [0b10, 0, 0, 0])
    );
    // What comes later is dropped, and the answer stays the same.
    let before = puppet.bytes(4, 4).to_vec();
    let data = write(&puppet, 1);
    assert_eq!(puppet.data(1, 1, data, b"late"), Err(DropReason::Frozen));
    assert_eq!(puppet.probe(1, 0), Err(DropReason::Frozen));
    assert_eq!(puppet.bytes(4, 4), before);
    let again = fence(&mut puppet, 1, 0, 1).unwrap();
    let Packet::FenceAck { mut blocks, .. } = again[0].packet() else {
        panic!()
    };
    let repeated = blocks.next().unwrap();
    assert_eq!(
        (repeated.cumulative, repeated.sack, repeated.newest_tsn),
        (told.cumulative, told.sack, told.newest_tsn)
    );
    // Only the next generation may begin, with its own sequences.
    let of = |puppet: &Puppet, generation| Header {
        path: 1,
        generation,
        ..puppet.header(Kind::Data)
    };
    let data = write(&puppet, 1);
    assert_eq!(
        puppet.data_as(of(&puppet, 2), data, b"skip"),
        Err(DropReason::WrongGeneration)
    );
    assert_eq!(
        puppet.data_as(of(&puppet, 255), data, b"past"),
        Err(DropReason::WrongGeneration)
    );
    puppet.data_as(of(&puppet, 1), data, b"next").unwrap();
    assert_eq!(puppet.bytes(4, 4), b"next");
    assert_eq!(puppet.path(1).packets_received, 1);
    let data = write(&puppet, 3);
    assert_eq!(
        puppet.data_as(of(&puppet, 2), data, b"skip"),
        Err(DropReason::WrongGeneration),
        "not without a FENCE"
    );
    // A generation of which nothing ever arrived can be ended, too.
    fence(&mut puppet, 1, 1, 0).unwrap();
    let sent = fence(&mut puppet, 1, 2, 0).unwrap();
    let Packet::FenceAck { mut blocks, .. } = sent[0].packet() else {
        panic!()
    };
    let told = blocks.next().unwrap();
    assert_eq!(
        (told.generation, told.cumulative, told.newest_tsn),
        (2, 0, u32::MAX)
    );
}

// spec: MR-FENCE-009
#[test]
fn a_fence_ack_that_was_not_asked_for_is_dropped() {
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 2 * 1024);
    puppet.take();
    assert_eq!(
        puppet.acks(AckKind::FenceAck, &[block(0, 1, 1, &[])]),
        Err(DropReason::WrongGeneration)
    );
    assert_eq!((puppet.path(0).inflight, puppet.path(0).generation), (2, 0));
}

/// A connection of two paths whose path 1 goes silent, up to the first FENCE. Path 0 answers.
fn fenced(prepare: impl Fn(&mut Puppet)) -> (Puppet, Vec<Sent>) {
    let mut puppet = Puppet::asked(|connection| connection.paths = 2);
    // Both paths have answered before.
    puppet.post_write(0, 1, 2 * 1024);
    let sent = puppet.take();
    puppet.now += 10_000;
    puppet.ack_all(&sent);
    prepare(&mut puppet);
    for id in 2..8 {
        puppet.post_write(0, id, 100 * 1024);
    }
    let mut all = puppet.take();
    for _ in 0..100 {
        puppet.now += 10_000;
        let now = puppet.at();
        puppet.host.handle_timeout(now);
        // Path 0 answers what was sent on it before.
        let zero: Vec<_> = all
            .iter()
            .filter(|sent| sent.header().path == 0)
            .cloned()
            .collect();
        let newest = zero
            .iter()
            .rev()
            .find(|sent| matches!(sent.kind(), Kind::Data | Kind::Probe))
            .unwrap()
            .header();
        let next = only(&zero, Kind::Data)
            .iter()
            .map(|sent| sent.header().psn + 1)
            .max()
            .unwrap();
        puppet.ack(block(0, next, newest.tsn, &[])).unwrap();
        all.extend(puppet.take());
        if all.iter().any(|sent| sent.is(Kind::Fence)) {
            return (puppet, all);
        }
    }
    panic!("no FENCE: {:?}", puppet.path(1));
}

// spec: MR-FENCE-001, MR-FENCE-002, MR-FENCE-003
#[test]
fn a_silent_path_is_fenced_over_the_others() {
    let (mut puppet, all) = fenced(|_| ());
    let probes = only(&all, Kind::Probe)
        .iter()
        .filter(|sent| sent.header().path == 1)
        .count();
    assert!(probes >= 2, "{probes}");
    assert_eq!(puppet.path(1).state, PathState::Fencing);
    let start = puppet.now;
    let (zero, one) = (puppet.path(0).entropy, puppet.path(1).entropy);
    let sent = puppet.run(3_000_000);
    assert!(
        sent.iter()
            .all(|sent| sent.is(Kind::Fence) || sent.header().path == 0),
        "nothing goes over it"
    );
    let fences = only(&sent, Kind::Fence);
    assert!(fences.len() >= 3);
    for sent in &fences {
        assert_eq!(
            (
                sent.transmit.entropy,
                sent.header().path,
                sent.header().generation
            ),
            (zero, 1, 0)
        );
        assert_ne!(sent.transmit.entropy, one);
    }
    let gaps: Vec<_> = fences
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .collect();
    assert!(fences[0].at - start >= 10_000);
    // Each is between half and all of twice the one before.
    assert!(gaps[4] > 4 * gaps[0], "{gaps:?}");
}

// spec: MR-FENCE-006, MR-FENCE-007
#[test]
fn after_the_fence_exactly_what_is_missing_goes_elsewhere() {
    let (mut puppet, all) = fenced(|_| ());
    let on_one: Vec<_> = only(&all, Kind::Data)
        .into_iter()
        .filter(|sent| sent.header().path == 1)
        .collect();
    let offsets: BTreeMap<_, _> = on_one
        .iter()
        .map(|sent| {
            (
                sent.header().psn,
                (
                    sent.data().1.msn,
                    sent.data().1.offset,
                    sent.data().1.stream,
                ),
            )
        })
        .collect();
    let highest = *offsets.keys().max().unwrap();
    assert!(highest >= 2, "{offsets:?}");
    let old = puppet.path(1).entropy;
    // All but the last had arrived.
    let final_state = AckBlock {
        newest_psn: PSN_OF_PROBE,
        ..block(1, highest, on_one.last().unwrap().header().tsn, &[])
    };
    puppet.acks(AckKind::FenceAck, &[final_state]).unwrap();
    let mut sent = puppet.take();
    let path = puppet.path(1);
    assert_eq!((path.generation, path.state), (1, PathState::Reopening));
    assert_ne!(path.entropy, old);
    puppet.now += 10_000;
    let zero: Vec<_> = all
        .iter()
        .filter(|sent| sent.header().path == 0)
        .cloned()
        .collect();
    puppet.ack_all(&zero);
    sent.extend(puppet.run(1_000));
    let moved = only(&sent, Kind::Data);
    let again: Vec<_> = moved
        .iter()
        .map(|sent| sent.data())
        .map(|(_, data, _)| (data.msn, data.offset, data.stream))
        .filter(|content| offsets.values().any(|old| old == content))
        .collect();
    assert_eq!(again, [offsets[&highest]]);
    assert!(moved.iter().all(|sent| sent.header().path == 0));
    // The new generation begins with a PROBE and nothing but it.
    let first: Vec<_> = sent
        .iter()
        .filter(|sent| sent.header().path == 1 && sent.header().generation == 1)
        .collect();
    assert!(first.iter().all(|sent| sent.is(Kind::Probe)));
    assert_eq!(first[0].header().tsn, 0);
    puppet
        .ack(AckBlock {
            generation: 1,
            ..block(1, 0, 0, &[])
        })
        .unwrap();
    assert_eq!(puppet.path(1).state, PathState::Active);
    puppet.ack_all(
        &only(&all, Kind::Data)
            .into_iter()
            .chain(moved)
            .filter(|sent| sent.header().path == 0)
            .collect::<Vec<_>>(),
    );
    puppet.post_write(2, 3, 4 * 1024);
    let fresh = only(&puppet.run(1_000), Kind::Data)
        .into_iter()
        .find(|sent| sent.header().path == 1)
        .unwrap();
    assert_eq!(
        (
            fresh.header().psn,
            fresh.header().generation,
            fresh.header().tsn
        ),
        (0, 1, 1)
    );
}

// spec: MR-FENCE-010
#[test]
fn a_path_that_reopens_tries_other_ways() {
    let (mut puppet, all) = fenced(|_| ());
    let tsn = only(&all, Kind::Probe)
        .iter()
        .filter(|sent| sent.header().path == 1)
        .map(|sent| sent.header().tsn)
        .max()
        .unwrap();
    let psn = only(&all, Kind::Data)
        .iter()
        .filter(|sent| sent.header().path == 1)
        .map(|sent| sent.header().psn + 1)
        .max()
        .unwrap();
    puppet
        .acks(AckKind::FenceAck, &[block(1, psn, tsn, &[])])
        .unwrap();
    let start = puppet.now;
    let sent: Vec<_> = puppet
        .run(500_000_000)
        .into_iter()
        .filter(|sent| sent.is(Kind::Probe) && sent.header().path == 1)
        .collect();
    assert_eq!(sent[0].at, start, "at once");
    let ways: BTreeSet<_> = sent
        .iter()
        .take(6)
        .map(|sent| sent.transmit.entropy)
        .collect();
    assert!(ways.len() >= 5, "{ways:?}");
    let gaps: Vec<_> = sent
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .collect();
    assert!(gaps[0] <= 40_000, "{gaps:?}");
    assert!(gaps.iter().all(|gap| *gap <= 100_000_000), "{gaps:?}");
    let last = &gaps[gaps.len() - 4..];
    assert!(last.iter().all(|gap| *gap >= 50_000_000), "{gaps:?}");
}

// spec: MR-FENCE-001
#[test]
fn when_everything_is_silent_nothing_is_fenced() {
    for paths in [2, 8, 16] {
        let mut pair = Pair::connected(|_, _, connection| connection.paths = paths);
        for id in 0..5 {
            write_megabyte(&mut pair, id);
        }
        pair.run_for(60_000);
        pair.filter = Box::new(|_| Fate::Drop);
        pair.run_for(1_000_000_000);
        assert_eq!(pair.statistics(0).fences, 0, "{paths}");
        // When the fabric is back, so is everything.
        pair.filter = Box::new(|_| Fate::Deliver);
        pair.run_until_completions(0, 5);
        assert_eq!(pair.statistics(1).duplicates_received, 0);
    }
}
