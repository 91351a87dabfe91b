//! Conversations that end: paths, planes and peers that vanish, connections that are closed.

mod support;

use metaroce_core::*;
use support::*;

// spec: MR-CLOSE-001, MR-CLOSE-003, MR-CLOSE-009
#[test]
fn draining_delivers_everything_and_both_sides_learn_of_the_end() {
    for percent in [0, 20] {
        let mut pair = Pair::connected(plain);
        pair.filter = lossy(percent, 5);
        let local = pair.local(0, 0, 300_000);
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
        let (now, handle) = (pair.at(), pair.sides[0].connection.unwrap());
        pair.sides[0]
            .host
            .close(now, handle, CloseMode::Drain)
            .unwrap();
        pair.run_until(|pair| {
            pair.sides.iter().all(|side| {
                side.events
                    .iter()
                    .any(|event| matches!(event, Event::Closed { .. }))
            })
        });
        assert_eq!(pair.completions(0)[0].status, Status::Success);
        assert!(pair.sides[1].memory.0[0][..300_000] == pair.sides[0].memory.0[0][..300_000]);
        pair.run_for(1_000_000_000);
        for side in &mut pair.sides {
            assert_eq!(side.host.poll_timeout(), None, "the records are free");
            assert!(
                side.host
                    .connection_statistics(side.connection.unwrap())
                    .is_none()
            );
        }
    }
}

// spec: MR-CLOSE-006, MR-CLOSE-007
#[test]
fn an_abort_flushes_open_work_on_both_sides() {
    let mut pair = Pair::connected(plain);
    let local = pair.local(0, 0, 300_000);
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
    pair.post_receive(1, 3, 70, 0, 10);
    pair.run_for(20_000);
    let (now, handle) = (pair.at(), pair.sides[0].connection.unwrap());
    pair.sides[0]
        .host
        .close(now, handle, CloseMode::Abort(9))
        .unwrap();
    pair.run_until(|pair| {
        pair.sides.iter().all(|side| {
            side.events
                .iter()
                .any(|event| matches!(event, Event::Closed { .. }))
        })
    });
    assert_eq!(pair.completions(0)[0].status, Status::Flushed);
    assert_eq!(
        (pair.completions(1)[0].id, pair.completions(1)[0].status),
        (70, Status::Flushed)
    );
    assert!(matches!(
        pair.sides[1].events.last(),
        Some(Event::Closed {
            reason: work::CloseReason::PeerAbort(9),
            ..
        })
    ));
}

// spec: MR-TIME-001, MR-TIME-002
#[test]
fn a_peer_that_vanishes_fails_every_operation_within_the_failure_timeout() {
    let mut pair = Pair::connected(plain);
    let local = pair.local(0, 0, 300_000);
    for id in 0..10 {
        pair.post(
            0,
            (id % 4) as u16,
            id,
            Operation::Write {
                local: Source::Region(local),
                remote: pair.remote(0, 0),
                immediate: None,
            },
        );
    }
    pair.run_for(15_000);
    pair.filter = Box::new(|_| Fate::Drop);
    let start = pair.now;
    pair.run_until_completions(0, 10);
    assert!(
        pair.completions(0)
            .iter()
            .all(|c| c.status == Status::ConnectionLost)
    );
    assert!(pair.now - start < 2_100_000_000, "{}", pair.now - start);
    pair.run_for(10_000_000_000);
    assert!(matches!(
        pair.sides[0].events.last(),
        Some(Event::Closed {
            reason: work::CloseReason::Unreachable,
            ..
        })
    ));
    // The idle side finds out by its keep-alive.
    assert!(
        matches!(
            pair.sides[1].events.last(),
            Some(Event::Closed {
                reason: work::CloseReason::Unreachable,
                ..
            })
        ),
        "{:?}",
        pair.sides[1].events
    );
}

// spec: MR-FENCE-006, MR-FENCE-007
#[test]
fn a_dead_path_is_fenced_and_its_packets_arrive_once() {
    for (paths, forward, back) in [(8, true, false), (8, true, true), (16, true, false)] {
        let mut pair = Pair::connected(|_, _, connection| connection.paths = paths);
        let local = pair.local(0, 0, 1_000_000);
        for id in 0..10 {
            pair.post(
                0,
                0,
                id,
                Operation::Write {
                    local: Source::Region(local),
                    remote: pair.remote(0, 0),
                    immediate: None,
                },
            );
        }
        pair.run_for(30_000);
        let handle = pair.sides[0].connection.unwrap();
        let dead = pair.sides[0]
            .host
            .path_statistics(handle, 3)
            .unwrap()
            .entropy;
        pair.filter = Box::new(move |seen| {
            if (forward && seen.from == 0 && seen.transmit.entropy == dead)
                || (back && seen.from == 1 && seen.transmit.entropy == dead)
            {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        });
        pair.run_until_completions(0, 10);
        assert!(
            pair.completions(0)
                .iter()
                .all(|c| c.status == Status::Success)
        );
        assert!(pair.sides[1].memory.0[0][..1_000_000] == pair.sides[0].memory.0[0][..1_000_000]);
        let path = pair.sides[0].host.path_statistics(handle, 3).unwrap();
        assert_eq!(
            (pair.statistics(0).fences, path.generation),
            (1, 1),
            "{paths}"
        );
        assert_ne!(path.entropy, dead);
        assert_eq!(pair.statistics(1).duplicates_received, 0);
    }
}

// spec: MR-PROBE-006
#[test]
fn a_dead_way_back_is_not_taken_for_a_dead_way_out() {
    let mut pair = Pair::connected(plain);
    let local = pair.local(0, 0, 1_000_000);
    for id in 0..10 {
        pair.post(
            0,
            0,
            id,
            Operation::Write {
                local: Source::Region(local),
                remote: pair.remote(0, 0),
                immediate: None,
            },
        );
    }
    pair.run_for(30_000);
    let dead = std::rc::Rc::new(std::cell::Cell::new(None));
    let noted = dead.clone();
    pair.filter = Box::new(move |seen| {
        if seen.from == 1 && seen.header.path == 3 && noted.get().is_none() {
            noted.set(Some(seen.transmit.entropy));
        }
        if seen.from == 1 && noted.get() == Some(seen.transmit.entropy) {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    pair.run_until_completions(0, 10);
    let statistics = pair.statistics(0);
    assert_eq!((statistics.fences, statistics.retransmissions), (0, 0));
}

// spec: MR-FENCE-011
#[test]
fn a_plane_that_dies_is_survived_and_comes_back() {
    let mut pair = Pair::connected(|_, endpoint, connection| {
        endpoint.planes = 4;
        connection.paths = 16;
    });
    let local = pair.local(0, 0, 1_000_000);
    for id in 0..8 {
        pair.post(
            0,
            0,
            id,
            Operation::Write {
                local: Source::Region(local),
                remote: pair.remote(0, 0),
                immediate: None,
            },
        );
    }
    pair.run_for(60_000);
    pair.filter = Box::new(|seen| {
        if seen.transmit.plane == 2 {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    pair.run_until_completions(0, 8);
    assert!(
        pair.completions(0)
            .iter()
            .all(|c| c.status == Status::Success)
    );
    assert!(
        pair.sides[0]
            .events
            .iter()
            .any(|event| matches!(event, Event::PlaneDown { plane: 2, .. }))
    );
    pair.filter = Box::new(|_| Fate::Deliver);
    pair.run_until(|pair| {
        pair.sides[0]
            .events
            .iter()
            .any(|event| matches!(event, Event::PlaneUp { plane: 2, .. }))
    });
    assert_eq!(pair.statistics(1).duplicates_received, 0);
}
