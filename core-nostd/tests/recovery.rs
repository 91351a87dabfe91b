//! What goes wrong ends, or is made good: small conversations, each of one mishap.

mod support;

use metaroce_core::work::CloseReason;
use metaroce_core::*;
use support::*;

fn plain(_: usize, _: &mut EndpointConfig, _: &mut ConnectionConfig) {}

fn read(pair: &mut Pair, stream: u16, id: u64, length: u32) {
    let local = pair.local(0, 0, length);
    let remote = pair.remote(0, 0);
    pair.post(0, stream, id, Operation::Read { local, remote });
}

fn statuses(pair: &Pair, side: usize) -> Vec<(u64, Status)> {
    let each = |completion: &Completion| (completion.id, completion.status);
    pair.completions(side).iter().map(each).collect()
}

fn streams_failed(pair: &Pair, side: usize) -> usize {
    let failed = |event: &&Event| matches!(event, Event::StreamFailed { .. });
    pair.sides[side].events.iter().filter(failed).count()
}

// spec: MR-READ-007, MR-MEM-005
#[test]
fn memory_that_cannot_be_read_any_more_is_reported() {
    let mut pair = Pair::connected(plain);
    pair.sides[1].memory.0.clear();
    read(&mut pair, 0, 1, 5_000);
    pair.run_until_completions(0, 1);
    assert_eq!(statuses(&pair, 0), [(1, Status::RemoteMemoryFault)]);
    assert_eq!((streams_failed(&pair, 0), streams_failed(&pair, 1)), (1, 1));
    pair.sides[0].memory.0.clear();
    let source = Source::Region(pair.local(0, 0, 5_000));
    pair.post(
        0,
        1,
        2,
        Operation::Write {
            local: source,
            remote: pair.remote(0, 0),
            immediate: None,
        },
    );
    pair.run_until_completions(0, 2);
    assert_eq!(statuses(&pair, 0)[1], (2, Status::LocalAccess));
    pair.run_for(1_000_000);
    assert_eq!(pair.statistics(0).outstanding, 0);
}

// spec: MR-TIME-005
#[test]
fn a_response_that_never_comes_from_a_peer_that_is_gone_fails() {
    let mut pair = Pair::connected(|_, _, connection| connection.keep_alive = Duration::ZERO);
    pair.run_for(100_000);
    let mut gone = false;
    pair.filter = Box::new(move |seen| {
        if seen.from == 0 {
            return Fate::Deliver;
        }
        // The request is acknowledged, and that was the last that is heard.
        let first = !std::mem::replace(&mut gone, true);
        if first && seen.header.kind == wire::Kind::Ack {
            Fate::Deliver
        } else {
            Fate::Drop
        }
    });
    read(&mut pair, 0, 1, 100);
    let began = pair.now;
    pair.run_until_completions(0, 1);
    assert_eq!(statuses(&pair, 0), [(1, Status::ConnectionLost)]);
    let took = pair.now - began;
    assert!((2_000_000_000..2_600_000_000).contains(&took), "{took}");
}

// spec: MR-TIME-005
#[test]
fn a_response_that_takes_long_does_not_fail_while_the_peer_is_there() {
    let mut pair = Pair::connected(|_, _, connection| connection.keep_alive = Duration::ZERO);
    let until = pair.now + 7_000_000_000;
    pair.filter = Box::new(move |seen| {
        if seen.from == 1 && is_data(&seen.header) && seen.now < until {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    read(&mut pair, 0, 1, 100);
    pair.run_for(1_900_000_000);
    assert!(statuses(&pair, 0).is_empty());
}

// spec: MR-TIME-004
#[test]
fn a_keep_alive_that_is_lost_is_repeated() {
    let mut pair = Pair::connected(|_, _, connection| {
        connection.paths = 1;
        connection.keep_alive = Duration::from_millis(1);
    });
    let mut probes = 0;
    pair.filter = Box::new(move |seen| {
        probes += usize::from(seen.from == 0);
        if seen.from == 0 && probes % 4 != 0 {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    pair.run_for(10_000_000_000);
    let closed = |event: &Event| matches!(event, Event::Closed { .. });
    assert!(!pair.sides[0].events.iter().any(closed));
    pair.filter = Box::new(|_| Fate::Deliver);
    read(&mut pair, 0, 1, 5_000);
    pair.run_until_completions(0, 1);
    assert_eq!(statuses(&pair, 0), [(1, Status::Success)]);
}

fn close(pair: &mut Pair, side: usize, mode: CloseMode) {
    let now = pair.at();
    let side = &mut pair.sides[side];
    side.host
        .close(now, side.connection.unwrap(), mode)
        .unwrap();
}

fn closed(pair: &Pair, side: usize) -> Option<CloseReason> {
    pair.sides[side]
        .events
        .iter()
        .find_map(|event| match event {
            Event::Closed { reason, .. } => Some(*reason),
            _ => None,
        })
}

#[test]
fn draining_ends_when_the_last_response_has_come_and_nothing_is_reported() {
    let mut pair = Pair::connected(plain);
    let flags = WorkFlags {
        signaled: false,
        ..WorkFlags::default()
    };
    let (local, remote) = (pair.local(0, 0, 50_000), pair.remote(0, 0));
    pair.try_post(0, 0, 1, Operation::Read { local, remote }, flags)
        .unwrap();
    close(&mut pair, 0, CloseMode::Drain);
    pair.run_for(2_000_000);
    assert_eq!(closed(&pair, 0), Some(CloseReason::LocalClose));
    assert_eq!(closed(&pair, 1), Some(CloseReason::PeerClose));
    assert!(pair.completions(0).is_empty());
}

// spec: MR-CLOSE-011
#[test]
fn an_abort_that_is_lost_is_told_again() {
    let mut pair = Pair::connected(plain);
    let local = pair.local(1, 0, 500_000);
    let remote = pair.remote(1, 0);
    pair.post(
        1,
        0,
        1,
        Operation::Write {
            local: Source::Region(local),
            remote,
            immediate: None,
        },
    );
    pair.run_for(20_000);
    let mut told = 0;
    pair.filter = Box::new(move |seen| {
        told += usize::from(seen.header.kind == wire::Kind::Close);
        if seen.header.kind == wire::Kind::Close && told < 3 {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    close(&mut pair, 0, CloseMode::Abort(77));
    pair.run_for(1_000_000);
    assert_eq!(closed(&pair, 1), Some(CloseReason::PeerAbort(77)));
    assert_eq!(statuses(&pair, 1), [(1, Status::Flushed)]);
}

// spec: MR-ERR-003
#[test]
fn what_was_done_out_of_turn_is_flushed_with_what_comes_before_it() {
    let mut pair = Pair::connected(plain);
    let source = Source::Inline(b"hello");
    pair.post(
        0,
        0,
        1,
        Operation::Send {
            local: source,
            immediate: None,
        },
    );
    let remote = pair.remote(0, 0);
    pair.post(
        0,
        0,
        2,
        Operation::Write {
            local: source,
            remote,
            immediate: None,
        },
    );
    pair.run_until_completions(0, 2);
    assert_eq!(
        statuses(&pair, 0),
        [(1, Status::ReceiverNotReady), (2, Status::Flushed)]
    );
}

#[test]
fn a_shared_queue_takes_what_came_before_it_was_attached() {
    let mut pair = Pair::connected(plain);
    let remote = pair.remote(0, 0);
    pair.post(
        0,
        2,
        1,
        Operation::Write {
            local: Source::Inline(b"early"),
            remote,
            immediate: Some(5),
        },
    );
    pair.run_until_completions(0, 1);
    let local = pair.local(1, 0, 0);
    let side = &mut pair.sides[1];
    side.host
        .attach_shared_queue(side.connection.unwrap(), 2, 0)
        .unwrap();
    let request = ReceiveRequest { id: 70, local };
    side.host
        .post_receive(ReceiveQueue::Shared(0), &request)
        .unwrap();
    pair.run_until_completions(1, 1);
    assert_eq!(statuses(&pair, 1), [(70, Status::Success)]);
}

// spec: MR-MEM-005
#[test]
fn a_region_withdrawn_within_a_run_is_sent_from_no_more() {
    let mut pair = Pair::connected(|_, _, connection| connection.run = 8);
    let local = pair.local(0, 0, 50_000);
    let remote = pair.remote(0, 0);
    pair.post(
        0,
        0,
        1,
        Operation::Write {
            local: Source::Region(local),
            remote,
            immediate: None,
        },
    );
    let (now, side) = (pair.at(), &mut pair.sides[0]);
    let mut buffer = vec![0; 2_000];
    for _ in 0..3 {
        side.host
            .poll_datagram(now, &side.memory, &mut buffer)
            .unwrap();
    }
    side.host.deregister(side.region.index).unwrap();
    let sent = side
        .host
        .poll_datagram(now, &side.memory, &mut buffer)
        .unwrap();
    let bytes = wire::check(&buffer[..sent.length], wire::Trailer::Crc32c).unwrap();
    let header = wire::Header::decode(bytes).unwrap();
    let (data, payload) = wire::Data::decode(&header, bytes).unwrap();
    assert_eq!((data.opcode, payload.len()), (wire::Opcode::Nop, 0));
    pair.run_until_completions(0, 1);
    assert_eq!(statuses(&pair, 0), [(1, Status::LocalAccess)]);
}

fn write(pair: &mut Pair, id: u64, length: u32) {
    let local = Source::Region(pair.local(0, 0, length));
    let remote = pair.remote(0, 0);
    let operation = Operation::Write {
        local,
        remote,
        immediate: None,
    };
    pair.post(0, 0, id, operation);
}

// spec: MR-FENCE-001
#[test]
fn a_tail_on_a_dead_path_goes_over_one_that_was_idle() {
    let mut pair = Pair::connected(plain);
    write(&mut pair, 1, 200_000);
    pair.run_until_completions(0, 1);
    let mut dead = None;
    pair.filter = Box::new(move |seen| {
        let header = seen.header;
        let on_path = seen.from == 0 && matches!(header.kind, wire::Kind::Data | wire::Kind::Probe);
        if on_path && *dead.get_or_insert(header.path) == header.path && header.generation == 0 {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    write(&mut pair, 2, 100);
    let began = pair.now;
    pair.run_until_completions(0, 2);
    let took = pair.now - began;
    assert!(took < 1_000_000, "{took}");
    assert_eq!(pair.statistics(0).fences, 1);
}

// spec: MR-LOSS-001
#[test]
fn a_tail_is_lost_though_paths_may_reorder() {
    let mut pair = Pair::connected(|_, _, connection| connection.reorder_tolerance = 16);
    write(&mut pair, 1, 200_000);
    pair.run_until_completions(0, 1);
    let before = pair.statistics(0).probes_sent;
    let mut dropped = false;
    pair.filter = Box::new(move |seen| {
        if is_data(&seen.header) && !std::mem::replace(&mut dropped, true) {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    write(&mut pair, 2, 100);
    pair.run_until_completions(0, 2);
    let statistics = pair.statistics(0);
    assert!(statistics.probes_sent - before <= 3);
    assert_eq!(statistics.retransmissions, 1);
}

// spec: MR-TIME-005
#[test]
fn what_no_path_can_carry_fails_when_the_peer_is_gone() {
    let change = |_: usize, endpoint: &mut EndpointConfig, connection: &mut ConnectionConfig| {
        endpoint.planes = 2;
        connection.paths = 1;
        connection.keep_alive = Duration::ZERO;
    };
    let mut pair = Pair::new(change);
    // The connection is made over plane 1, and nothing of the acceptor's only path, on plane 0, is answered.
    pair.filter = Box::new(|seen| {
        let setup = seen.header.kind.is_setup();
        if seen.transmit.plane == 0 && (setup || seen.from == 1) {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    pair.connect(change);
    pair.filter = Box::new(|_| Fate::Drop);
    let local = Source::Inline(b"never");
    let remote = pair.remote(1, 0);
    let operation = Operation::Write {
        local,
        remote,
        immediate: None,
    };
    pair.post(1, 0, 1, operation);
    pair.run_until_completions(1, 1);
    assert_eq!(statuses(&pair, 1), [(1, Status::ConnectionLost)]);
}

// spec: MR-PROBE-003
#[test]
fn a_path_that_was_dark_is_asked_often_enough_before_the_connection_fails() {
    let mut pair = Pair::connected(|_, _, connection| {
        connection.paths = 1;
        connection.failure_timeout = Duration::from_millis(50);
    });
    let until = pair.now + 20_000_000;
    pair.filter = Box::new(move |seen| {
        if seen.now < until {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    write(&mut pair, 1, 100);
    pair.run_until_completions(0, 1);
    assert_eq!(statuses(&pair, 0), [(1, Status::Success)]);
    assert!(pair.now < until + 5_000_000, "{}", pair.now - until);
}
