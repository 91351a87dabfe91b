//! Whole conversations of two endpoints in memory.

mod support;

use metaroce_core::work::PostError;
use metaroce_core::*;
use support::*;

// spec: MR-READ-003, MR-MSG-002
#[test]
fn every_operation_does_what_it_says() {
    let mut pair = Pair::connected(plain);
    let local = pair.local(0, 0, 10_000);
    pair.post(
        0,
        0,
        1,
        Operation::Write {
            local: Source::Region(local),
            remote: pair.remote(0, 500),
            immediate: None,
        },
    );
    pair.post_receive(1, 1, 70, 100_000, 9_000);
    pair.post_receive(1, 1, 71, 0, 0);
    let local = pair.local(0, 3, 9_000);
    pair.post(
        0,
        1,
        2,
        Operation::Send {
            local: Source::Region(local),
            immediate: Some(0xabcd),
        },
    );
    pair.post(
        0,
        1,
        3,
        Operation::Write {
            local: Source::Inline(b"hello"),
            remote: pair.remote(0, 200_000),
            immediate: Some(7),
        },
    );
    pair.run_until_completions(0, 3);
    let read = pair.local(0, 300_000, 10_000);
    pair.post(
        0,
        0,
        4,
        Operation::Read {
            local: read,
            remote: pair.remote(0, 500),
        },
    );
    pair.sides[1].memory.0[0][4096..4104].copy_from_slice(&41u64.to_ne_bytes());
    let word = pair.local(0, 400_000, 8);
    pair.post(
        0,
        2,
        5,
        Operation::FetchAdd {
            local: word,
            remote: pair.remote(0, 4096),
            add: 1,
        },
    );
    let word = pair.local(0, 400_008, 8);
    pair.post(
        0,
        2,
        6,
        Operation::CompareSwap {
            local: word,
            remote: pair.remote(0, 4096),
            compare: 42,
            swap: 99,
        },
    );
    pair.run_until_completions(0, 6);
    for completion in pair.completions(0) {
        assert_eq!(completion.status, Status::Success, "{completion:?}");
    }
    let received = pair.completions(1);
    assert_eq!(received.len(), 2);
    assert_eq!(
        (
            received[0].id,
            received[0].length,
            received[0].immediate,
            received[0].kind
        ),
        (70, 9_000, Some(0xabcd), CompletionKind::Receive)
    );
    assert_eq!(
        (
            received[1].id,
            received[1].length,
            received[1].immediate,
            received[1].kind
        ),
        (71, 5, Some(7), CompletionKind::ReceiveWriteImmediate)
    );
    let (mine, theirs) = (&pair.sides[0].memory.0[0], &pair.sides[1].memory.0[0]);
    assert_eq!(theirs[500..4_096], mine[..3_596]);
    assert_eq!(theirs[100_000..109_000], mine[3..9_003]);
    assert_eq!(&theirs[200_000..200_005], b"hello");
    assert_eq!(mine[300_000..303_596], mine[..3_596]);
    assert_eq!(mine[400_000..400_008], 41u64.to_ne_bytes());
    assert_eq!(mine[400_008..400_016], 42u64.to_ne_bytes());
    assert_eq!(theirs[4096..4104], 99u64.to_ne_bytes());
}

// spec: MR-LOSS-001, MR-LOSS-003
#[test]
fn a_megabyte_crosses_a_wire_that_loses_a_tenth_both_ways() {
    for seed in 1..20 {
        let mut pair = Pair::connected(plain);
        pair.filter = lossy(10, seed);
        let local = pair.local(0, 0, 1_000_000);
        pair.post(
            0,
            0,
            1,
            Operation::Write {
                local: Source::Region(local),
                remote: pair.remote(0, 0),
                immediate: None,
            },
        );
        pair.run_until_completions(0, 1);
        assert_eq!(pair.completions(0)[0].status, Status::Success);
        assert!(pair.sides[1].memory.0[0][..1_000_000] == pair.sides[0].memory.0[0][..1_000_000]);
        let (sent, received) = (pair.statistics(0), pair.statistics(1));
        assert_eq!(received.duplicates_received, 0, "seed {seed}");
        assert_eq!(sent.spurious_retransmissions, 0);
        assert_eq!(sent.fences, 0, "seed {seed}");
        assert!(sent.retransmissions > 50);
    }
}

// spec: MR-RNR-003, MR-MSG-006, MR-STREAM-002
#[test]
fn a_send_without_a_buffer_is_tried_again_and_nothing_else_waits() {
    let mut pair = Pair::connected(plain);
    let local = pair.local(0, 0, 5_000);
    pair.post(
        0,
        0,
        1,
        Operation::Send {
            local: Source::Region(local),
            immediate: None,
        },
    );
    pair.post(
        0,
        1,
        2,
        Operation::Write {
            local: Source::Region(local),
            remote: pair.remote(0, 0),
            immediate: None,
        },
    );
    pair.run_until_completions(0, 1);
    assert_eq!(pair.completions(0)[0].id, 2);
    pair.run_for(50_000);
    assert!(pair.statistics(1).rnr_sent >= 1);
    pair.post_receive(1, 0, 70, 50_000, 5_000);
    pair.run_until_completions(0, 2);
    assert_eq!(
        (pair.completions(0)[1].id, pair.completions(0)[1].status),
        (1, Status::Success)
    );
    assert_eq!(pair.completions(1)[0].length, 5_000);
    assert!(pair.sides[1].memory.0[0][50_000..55_000] == pair.sides[0].memory.0[0][..5_000]);
}

// spec: MR-RNR-005, MR-STREAM-003
#[test]
fn a_send_that_never_finds_a_buffer_fails_its_stream_alone() {
    let mut pair = Pair::connected(plain);
    let local = pair.local(0, 0, 100);
    pair.post(
        0,
        0,
        1,
        Operation::Send {
            local: Source::Region(local),
            immediate: None,
        },
    );
    pair.post(
        0,
        0,
        2,
        Operation::Send {
            local: Source::Region(local),
            immediate: None,
        },
    );
    pair.run_until_completions(0, 2);
    let statuses: Vec<_> = pair
        .completions(0)
        .iter()
        .map(|c| (c.id, c.status))
        .collect();
    assert_eq!(
        statuses,
        [(1, Status::ReceiverNotReady), (2, Status::Flushed)]
    );
    assert_eq!(
        pair.try_post(
            0,
            0,
            3,
            Operation::Send {
                local: Source::Region(local),
                immediate: None
            },
            WorkFlags::default()
        ),
        Err(PostError::StreamFailed)
    );
    pair.post(
        0,
        1,
        4,
        Operation::Write {
            local: Source::Region(local),
            remote: pair.remote(0, 0),
            immediate: None,
        },
    );
    pair.run_until_completions(0, 3);
    assert_eq!(pair.completions(0)[2].status, Status::Success);
    pair.run_for(1_000_000);
    assert!(
        pair.sides[1]
            .events
            .iter()
            .any(|event| matches!(event, Event::StreamFailed { stream: 0, .. })),
        "the other side is told, too"
    );
}

// spec: MR-ERR-002, MR-ERR-003, MR-MEM-003
#[test]
fn a_bad_key_is_reported_to_both_sides_and_touches_nothing() {
    let mut pair = Pair::connected(plain);
    let local = pair.local(0, 0, 3_000);
    let before = pair.sides[1].memory.0[0].clone();
    let remote = RemoteAddress {
        address: BASE,
        key: 12,
    };
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
    let outside = RemoteAddress {
        address: BASE + REGION as u64 - 2_999,
        key: pair.sides[1].region.key,
    };
    pair.post(
        0,
        1,
        2,
        Operation::Write {
            local: Source::Region(local),
            remote: outside,
            immediate: None,
        },
    );
    pair.post(0, 2, 3, Operation::Read { local, remote });
    pair.run_until_completions(0, 3);
    let mut statuses: Vec<_> = pair
        .completions(0)
        .iter()
        .map(|c| (c.id, c.status))
        .collect();
    statuses.sort_by_key(|(id, _)| *id);
    assert_eq!(
        statuses,
        [
            (1, Status::RemoteInvalidKey),
            (2, Status::RemoteOutOfBounds),
            (3, Status::RemoteInvalidKey)
        ]
    );
    assert!(pair.sides[1].memory.0[0] == before);
    let failed = |side: &Side| {
        side.events
            .iter()
            .filter(|event| matches!(event, Event::StreamFailed { .. }))
            .count()
    };
    assert_eq!((failed(&pair.sides[0]), failed(&pair.sides[1])), (3, 3));
}

// spec: MR-MSG-014, MR-READ-001
#[test]
fn fences_and_flags_order_what_users_expect() {
    let mut pair = Pair::connected(plain);
    // A READ sees the WRITE before it, though every packet of the WRITE is late.
    pair.filter = Box::new(|seen| {
        let opcode = seen.bytes.get(16).copied();
        if is_data(&seen.header) && opcode == Some(0) {
            Fate::Delay(40_000)
        } else {
            Fate::Deliver
        }
    });
    let write = pair.local(0, 0, 20_000);
    pair.post(
        0,
        0,
        1,
        Operation::Write {
            local: Source::Region(write),
            remote: pair.remote(0, 0),
            immediate: None,
        },
    );
    let read = pair.local(0, 500_000, 20_000);
    pair.post(
        0,
        0,
        2,
        Operation::Read {
            local: read,
            remote: pair.remote(0, 0),
        },
    );
    pair.post_receive(1, 0, 70, 900_000, 8);
    pair.try_post(
        0,
        0,
        3,
        Operation::Send {
            local: Source::Inline(b"after"),
            immediate: None,
        },
        WorkFlags {
            fence: true,
            ..WorkFlags::default()
        },
    )
    .unwrap();
    pair.run_until_completions(0, 3);
    let ids: Vec<_> = pair
        .completions(0)
        .iter()
        .map(|c| (c.id, c.status))
        .collect();
    assert_eq!(
        ids,
        [
            (1, Status::Success),
            (2, Status::Success),
            (3, Status::Success)
        ]
    );
    let mine = &pair.sides[0].memory.0[0];
    assert!(mine[500_000..520_000] == mine[..20_000]);
}

// spec: MR-MSG-015
#[test]
fn unsignaled_work_reports_only_failure() {
    let mut pair = Pair::connected(plain);
    let silent = WorkFlags {
        signaled: false,
        ..WorkFlags::default()
    };
    for id in 0..5 {
        pair.try_post(
            0,
            0,
            id,
            Operation::Write {
                local: Source::Inline(b"x"),
                remote: pair.remote(0, id),
                immediate: None,
            },
            silent,
        )
        .unwrap();
    }
    pair.post(
        0,
        0,
        9,
        Operation::Write {
            local: Source::Inline(b"y"),
            remote: pair.remote(0, 9),
            immediate: None,
        },
    );
    pair.run_until_completions(0, 1);
    assert_eq!(pair.completions(0)[0].id, 9);
    pair.try_post(
        0,
        0,
        10,
        Operation::Write {
            local: Source::Inline(b"x"),
            remote: RemoteAddress { address: 0, key: 0 },
            immediate: None,
        },
        silent,
    )
    .unwrap();
    pair.run_until_completions(0, 2);
    assert_eq!(
        (pair.completions(0)[1].id, pair.completions(0)[1].status),
        (10, Status::RemoteInvalidKey)
    );
}

// spec: MR-RNR-001
#[test]
fn shared_queues_serve_several_streams_in_order_of_arrival() {
    let mut pair = Pair::connected(plain);
    let handle = pair.sides[1].connection.unwrap();
    for stream in 0..3 {
        pair.sides[1]
            .host
            .attach_shared_queue(handle, stream, 5)
            .unwrap();
    }
    for id in 0..6u64 {
        let local = pair.local(1, id * 1000, 1000);
        pair.sides[1]
            .host
            .post_receive(ReceiveQueue::Shared(5), &ReceiveRequest { id, local })
            .unwrap();
    }
    for id in 0..6u64 {
        pair.post(
            0,
            (id % 3) as u16,
            id,
            Operation::Send {
                local: Source::Inline(&id.to_ne_bytes()),
                immediate: Some(id as u32),
            },
        );
    }
    pair.run_until_completions(0, 6);
    pair.run_until_completions(1, 6);
    for completion in pair.completions(1) {
        let at = completion.id as usize * 1000;
        let sent = u64::from_ne_bytes(pair.sides[1].memory.0[0][at..at + 8].try_into().unwrap());
        assert_eq!(
            (u64::from(completion.stream), completion.immediate),
            (sent % 3, Some(sent as u32))
        );
    }
}
