//! Fences, and what comes after them.

use std::collections::{BTreeMap, BTreeSet};

use metaroce_core::path::send::PathState;
use metaroce_core::wire::*;
use metaroce_core::*;

use crate::puppet::*;
use crate::support::{Fate, Pair};
use crate::words::*;

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
    fenced_where(prepare, false)
}

/// The same; `marked`: all that path 0 carries was marked.
fn fenced_where(prepare: impl Fn(&mut Puppet), marked: bool) -> (Puppet, Vec<Sent>) {
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
    for _ in 0..1_000 {
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
        let count = |kind| only(&zero, kind).len() as u16;
        let told = AckBlock {
            ce_count: u16::from(marked) * (count(Kind::Data) + count(Kind::Probe)),
            ..block(0, next, newest.tsn, &[])
        };
        puppet.ack(told).unwrap();
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

// spec: MR-FENCE-001
#[test]
fn where_all_is_marked_it_takes_longer_to_be_sure() {
    let probes = |marked| {
        let (_, all) = fenced_where(|_| (), marked);
        let silent = |sent: &&Sent| sent.header().path == 1;
        only(&all, Kind::Probe).iter().filter(silent).count()
    };
    let (clear, marked) = (probes(false), probes(true));
    assert!(marked >= 4 * clear, "{clear} {marked}");
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

// spec: MR-FENCE-001
#[test]
fn what_was_only_sent_over_another_path_proves_nothing() {
    let mut puppet = Puppet::asked(|connection| connection.paths = 2);
    puppet.post_write(0, 1, 2 * 1024);
    let sent = only(&puppet.take(), Kind::Data);
    puppet.now += 10_000;
    let other: Vec<_> = sent
        .into_iter()
        .filter(|sent| sent.header().path == 1)
        .collect();
    puppet.ack_all(&other);
    puppet.take();
    // Whenever the silent path is probed something leaves over the other, and nobody answers.
    for id in 2..200 {
        let sent = puppet.run(1_000);
        assert!(only(&sent, Kind::Fence).is_empty(), "{id}");
        let probed = |sent: &Sent| sent.is(Kind::Probe) && sent.header().path == 0;
        if sent.iter().any(probed) {
            puppet.now += 1_000;
            puppet.post_write(0, id, 64);
            puppet.take();
        }
    }
}
