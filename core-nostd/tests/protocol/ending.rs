//! How connections end: drained, aborted, failed.

use crate::puppet::*;
use crate::support::{Fate, Pair};
use metaroce_core::wire::*;
use metaroce_core::work::{CloseMode as Mode, CloseReason, PostError};
use metaroce_core::*;

fn plain(_: usize, _: &mut EndpointConfig, _: &mut ConnectionConfig) {}

fn close(puppet: &mut Puppet, mode: Mode) {
    let (now, handle) = (puppet.at(), puppet.handle());
    puppet.host.close(now, handle, mode).unwrap();
}

fn peer_closes(puppet: &mut Puppet, reason: u16, mode: wire::CloseMode) -> Result<(), DropReason> {
    let close = Close {
        connection: puppet.theirs,
        source: MINE,
        reason,
        mode,
    };
    puppet.send(&Packet::Close(close))
}

fn acks_close(puppet: &mut Puppet) -> Result<(), DropReason> {
    let ack = CloseAck {
        connection: puppet.theirs,
        source: MINE,
    };
    puppet.send(&Packet::CloseAck(ack))
}

fn ended(puppet: &Puppet) -> Vec<CloseReason> {
    puppet
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Closed { reason, .. } => Some(*reason),
            _ => None,
        })
        .collect()
}

const NOTHING: Operation<'_> = Operation::Send {
    local: Source::Inline(b"x"),
    immediate: None,
};

// spec: MR-CLOSE-001, MR-CLOSE-002
#[test]
fn draining_finishes_first_and_repeats_itself() {
    let mut puppet = Puppet::asked(|connection| connection.paths = 1);
    puppet.post_write(0, 1, 2 * 1024);
    let sent = only(&puppet.take(), Kind::Data);
    close(&mut puppet, Mode::Drain);
    assert_eq!(puppet.post(0, 2, NOTHING), Err(PostError::NotEstablished));
    assert!(
        only(&puppet.run(10_000), Kind::Close).is_empty(),
        "not before its work is done"
    );
    puppet.ack_all(&sent);
    let start = puppet.now;
    let closes = only(&puppet.run(1_900_000_000), Kind::Close);
    let times: Vec<_> = closes.iter().map(|sent| sent.at - start).collect();
    // min_rtt is 10 us: after 40 us, 80 us, ...
    assert_eq!(times[..4], [0, 40_000, 120_000, 280_000]);
    assert!(
        times
            .windows(2)
            .all(|pair| pair[1] - pair[0] <= 250_000_000)
    );
    let Packet::Close(one) = closes[0].packet() else {
        panic!()
    };
    assert_eq!(
        (one.connection, one.source, one.mode),
        (MINE, puppet.theirs, wire::CloseMode::Drain)
    );
    assert!(ended(&puppet).is_empty());
    acks_close(&mut puppet).unwrap();
    puppet.take();
    assert_eq!(ended(&puppet), [CloseReason::LocalClose]);
    assert_eq!(puppet.completions()[0].status, Status::Success);
}

// spec: MR-CLOSE-002
#[test]
fn a_peer_that_talks_on_does_not_hasten_the_repetition() {
    let mut puppet = Puppet::asked(|_| ());
    close(&mut puppet, Mode::Drain);
    let mut closes = only(&puppet.take(), Kind::Close).len();
    for _ in 0..40 {
        puppet.probe(0, 0).unwrap();
        closes += only(&puppet.run(10_000), Kind::Close).len();
    }
    // At 0, 40, 120 and 280 us of 400.
    assert_eq!(closes, 4);
}

// spec: MR-CLOSE-002
#[test]
fn draining_without_an_answer_ends_all_the_same() {
    let mut puppet = Puppet::asked(|_| ());
    close(&mut puppet, Mode::Drain);
    puppet.run(3_000_000_000);
    assert_eq!(ended(&puppet).len(), 1);
    assert!(puppet.run(1_000_000_000).is_empty());
}

// spec: MR-CLOSE-003, MR-CLOSE-005, MR-CLOSE-009
#[test]
fn a_peer_that_drains_is_answered_when_the_own_work_is_done() {
    let mut puppet = Puppet::asked(|connection| connection.paths = 1);
    puppet.post_write(0, 1, 2 * 1024);
    let sent = only(&puppet.take(), Kind::Data);
    peer_closes(&mut puppet, 0, wire::CloseMode::Drain).unwrap();
    assert!(only(&puppet.take(), Kind::CloseAck).is_empty());
    assert_eq!(puppet.post(0, 2, NOTHING), Err(PostError::NotEstablished));
    puppet.ack_all(&sent);
    assert_eq!(only(&puppet.take(), Kind::CloseAck).len(), 1);
    assert_eq!(ended(&puppet), [CloseReason::PeerClose]);
    // The answer was lost: again, for a millisecond.
    puppet.run(900_000);
    peer_closes(&mut puppet, 0, wire::CloseMode::Drain).unwrap();
    assert_eq!(only(&puppet.take(), Kind::CloseAck).len(), 1);
    puppet.run(200_000);
    assert_eq!(
        peer_closes(&mut puppet, 0, wire::CloseMode::Drain),
        Err(DropReason::UnknownConnection)
    );
    assert_eq!(puppet.probe(0, 0), Err(DropReason::UnknownConnection));
    assert_eq!(
        puppet.post(0, 2, NOTHING),
        Err(PostError::UnknownConnection)
    );
    assert_eq!(ended(&puppet).len(), 1);
}

// spec: MR-CLOSE-004
#[test]
fn both_may_drain_at_once() {
    for percent in [0, 30] {
        let mut pair = Pair::connected(plain);
        let mut state = 5u64;
        pair.filter = Box::new(move |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            if state >> 33 & 127 < percent {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        });
        for side in 0..2 {
            let local = pair.local(side, 0, 100_000);
            let remote = pair.remote(side, 500_000);
            pair.post(
                side,
                0,
                1,
                Operation::Write {
                    local: Source::Region(local),
                    remote,
                    immediate: None,
                },
            );
            let (now, handle) = (pair.at(), pair.sides[side].connection.unwrap());
            pair.sides[side]
                .host
                .close(now, handle, Mode::Drain)
                .unwrap();
        }
        pair.run_until(|pair| {
            pair.sides
                .iter()
                .all(|side| matches!(side.events.last(), Some(Event::Closed { .. })))
        });
        for side in 0..2 {
            assert_eq!(pair.completions(side)[0].status, Status::Success);
            assert!(
                pair.sides[1 - side].memory.0[0][500_000..600_000]
                    == pair.sides[side].memory.0[0][..100_000]
            );
        }
    }
    // Word by word: the own CLOSE is out, and the peer's comes.
    let mut puppet = Puppet::asked(|_| ());
    close(&mut puppet, Mode::Drain);
    assert_eq!(only(&puppet.take(), Kind::Close).len(), 1);
    peer_closes(&mut puppet, 0, wire::CloseMode::Drain).unwrap();
    assert_eq!(only(&puppet.take(), Kind::CloseAck).len(), 1);
    assert_eq!(ended(&puppet).len(), 1);
}

// spec: MR-CLOSE-006, MR-CLOSE-008
#[test]
fn an_abort_flushes_everything_and_tells_why() {
    let mut puppet = Puppet::asked(|_| ());
    puppet.post_write(0, 1, 20 * 1024);
    puppet.post_receive(2, 2, 0, 4);
    puppet.take();
    close(&mut puppet, Mode::Abort(0x1234));
    let sent = puppet.take();
    let Packet::Close(told) = only(&sent, Kind::Close)[0].packet() else {
        panic!()
    };
    assert_eq!((told.reason, told.mode), (0x1234, wire::CloseMode::Abort));
    assert!(only(&sent, Kind::Data).is_empty());
    let mut told: Vec<_> = puppet
        .completions()
        .iter()
        .map(|done| (done.id, done.status))
        .collect();
    told.sort_by_key(|told| told.0);
    assert_eq!(told, [(1, Status::Flushed), (2, Status::Flushed)]);
    assert_eq!(ended(&puppet), [CloseReason::LocalClose]);
    assert!(
        matches!(puppet.events.last(), Some(Event::Closed { .. })),
        "the end comes last"
    );
}

// spec: MR-CLOSE-007, MR-CLOSE-008, MR-CLOSE-009
#[test]
fn a_peer_that_aborts_ends_everything() {
    let mut puppet = Puppet::asked(|_| ());
    puppet.post_write(0, 1, 20 * 1024);
    puppet.post_receive(2, 2, 0, 4);
    puppet.take();
    peer_closes(&mut puppet, 77, wire::CloseMode::Abort).unwrap();
    assert!(puppet.take().is_empty());
    let mut told: Vec<_> = puppet
        .completions()
        .iter()
        .map(|done| (done.id, done.status))
        .collect();
    told.sort_by_key(|told| told.0);
    assert_eq!(told, [(1, Status::Flushed), (2, Status::Flushed)]);
    assert_eq!(ended(&puppet), [CloseReason::PeerAbort(77)]);
    assert!(matches!(puppet.events.last(), Some(Event::Closed { .. })));
    assert_eq!(puppet.probe(0, 0), Err(DropReason::UnknownConnection));
}

// spec: MR-TIME-001
#[test]
fn silence_fails_everything_that_is_open() {
    let mut puppet =
        Puppet::asked(|connection| connection.failure_timeout = Duration::from_millis(50));
    puppet.post_write(0, 1, 2 * 1024);
    puppet.post_receive(1, 2, 0, 4);
    let sent = only(&puppet.take(), Kind::Data);
    puppet.run(40_000_000);
    // Part of an answer is an answer.
    puppet.ack_all(&sent[..1]);
    puppet.run(49_000_000);
    assert!(ended(&puppet).is_empty());
    puppet.run(2_000_000);
    assert_eq!(ended(&puppet), [CloseReason::Unreachable]);
    let told: Vec<_> = puppet.completions().iter().map(|done| done.id).collect();
    assert_eq!(told.len(), 2);
    assert!(
        puppet
            .completions()
            .iter()
            .all(|done| done.status != Status::Success)
    );
}

// spec: MR-TIME-002
#[test]
fn an_idle_peer_is_asked_whether_it_is_there() {
    let mut puppet = Puppet::asked(|connection| {
        connection.keep_alive = Duration::from_millis(10);
        connection.failure_timeout = Duration::from_millis(5);
    });
    let start = puppet.now;
    let sent = only(&puppet.run(11_000_000), Kind::Probe);
    assert!(
        !sent.is_empty() && sent[0].at - start == 10_000_000,
        "{sent:?}"
    );
    // It is.
    let header = sent[0].header();
    puppet.ack(block(header.path, 0, header.tsn, &[])).unwrap();
    assert!(only(&puppet.run(9_000_000), Kind::Probe).is_empty());
    assert!(!only(&puppet.run(2_000_000), Kind::Probe).is_empty());
    puppet.run(6_000_000);
    assert_eq!(ended(&puppet), [CloseReason::Unreachable]);
    // Zero: never.
    let mut puppet = Puppet::asked(|_| ());
    puppet.run(60_000_000_000);
    assert!(ended(&puppet).is_empty());
}

// spec: MR-TIME-003
#[test]
fn a_clock_that_goes_back_breaks_nothing() {
    let mut puppet = Puppet::asked(|connection| connection.paths = 1);
    puppet.now = 5_000_000_000;
    for step in 0..50u32 {
        puppet.post_write(0, 1, 1024);
        let sent = only(&puppet.take(), Kind::Data);
        // One step forward, two back.
        puppet.now = if step % 2 == 0 {
            puppet.now + 10_000
        } else {
            puppet.now - 30_000
        };
        let now = puppet.at();
        puppet.host.handle_timeout(now);
        puppet.ack_all(&sent);
        puppet.take();
    }
    let done = puppet.completions();
    assert_eq!(done.len(), 50);
    assert!(done.iter().all(|done| done.status == Status::Success));
    assert!(ended(&puppet).is_empty());
}

// spec: MR-TIME-004
#[test]
fn a_keep_alive_probe_is_repeated() {
    let mut puppet = Puppet::asked(|connection| {
        connection.paths = 1;
        connection.keep_alive = Duration::from_millis(5_000);
    });
    let first = only(&puppet.run(5_500_000_000), Kind::Probe);
    assert!(!first.is_empty());
    // It was lost. The peer would answer another one.
    for _ in 0..1_000 {
        for probe in only(&puppet.run(2_000_000), Kind::Probe) {
            puppet.ack(block(0, 0, probe.header().tsn, &[])).unwrap();
        }
    }
    puppet.completions();
    let ended = puppet
        .events
        .iter()
        .any(|event| matches!(event, Event::Closed { .. }));
    assert!(!ended, "one lost probe ends an idle connection");
}

// spec: MR-TIME-002
#[test]
fn the_pause_of_keep_alive_does_not_depend_on_the_failure_timeout() {
    let mut puppet = Puppet::asked(|connection| {
        connection.paths = 1;
        connection.keep_alive = Duration::from_millis(10);
        connection.failure_timeout = Duration::from_millis(50);
    });
    let first = only(&puppet.run(11_000_000), Kind::Probe);
    puppet.ack(block(0, 0, first[0].header().tsn, &[])).unwrap();
    let second = only(&puppet.run(12_000_000), Kind::Probe);
    assert!(!second.is_empty(), "not asked in time");
}

// spec: MR-CLOSE-011
#[test]
fn an_abort_that_was_lost_is_told_again() {
    let mut puppet = Puppet::asked(|_| ());
    let (now, handle) = (puppet.at(), puppet.handle());
    puppet.host.close(now, handle, Mode::Abort(1)).unwrap();
    assert_eq!(only(&puppet.take(), Kind::Close).len(), 1);
    puppet.now += 20_000;
    let write = puppet.write(0, 0, 0, 4);
    let _ = puppet.data(0, 0, write, b"more");
    let told = only(&puppet.take(), Kind::Close).len();
    assert_eq!(told, 1, "the peer is not told again");
}

// spec: MR-CLOSE-010
#[test]
fn a_close_of_another_source_is_dropped() {
    let mut puppet = Puppet::asked(|_| ());
    let close = Close {
        connection: puppet.theirs,
        source: MINE + 1,
        reason: 0,
        mode: wire::CloseMode::Abort,
    };
    let _ = puppet.send(&Packet::Close(close));
    puppet.take();
    let ended = puppet
        .events
        .iter()
        .any(|event| matches!(event, Event::Closed { .. }));
    assert!(!ended, "ended by a stranger");
    let (now, handle) = (puppet.at(), puppet.handle());
    puppet.host.close(now, handle, Mode::Drain).unwrap();
    assert_eq!(only(&puppet.take(), Kind::Close).len(), 1);
    let closed = CloseAck {
        connection: puppet.theirs,
        source: MINE + 1,
    };
    let result = puppet.send(&Packet::CloseAck(closed));
    assert_eq!(result, Err(DropReason::UnknownConnection));
}
