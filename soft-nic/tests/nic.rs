//! Two NICs on loopback: what an application may rely on.

use metaroce_core::memory::Access;
use metaroce_core::work::{
    CloseMode, CloseReason, CompletionKind, Operation, ReceiveRequest, Source, Status, WorkFlags,
    WorkRequest,
};
use metaroce_soft::fault::{FaultPlan, Faults};
use metaroce_soft::{
    Armed, Buffer, CompletionQueue, Connection, Error, MemoryRegion, Nic, NicBuilder, Phase,
    default_connection,
};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Long enough for any scheduler; nothing here is judged by it.
const PATIENCE: Duration = Duration::from_secs(20);

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A NIC with a background thread, so that a test needs no second one of its own.
fn passive(builder: NicBuilder) -> Nic {
    builder.plane(loopback()).background(true).build().unwrap()
}

fn active(builder: NicBuilder) -> Nic {
    builder.plane(loopback()).listen(false).build().unwrap()
}

struct Pair {
    here: Nic,
    there: Nic,
    /// From `here` to `there`, and as `there` sees it.
    out: Connection,
    back: Connection,
}

fn pair_of(here: Nic, there: Nic) -> Pair {
    let out = here
        .connect(there.addresses(), default_connection(), PATIENCE)
        .unwrap();
    // The acceptor knows the connection when it hears this side, which nobody else drives: what it sends first may be lost.
    let end = Instant::now() + PATIENCE;
    let back = loop {
        here.progress();
        match there.accept(Some(Duration::from_millis(5))) {
            Ok(back) => break back,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
    };
    Pair {
        here,
        there,
        out,
        back,
    }
}

fn pair() -> Pair {
    pair_of(active(Nic::builder()), passive(Nic::builder()))
}

fn region(nic: &Nic, length: usize) -> (Buffer, MemoryRegion) {
    let buffer = Buffer::new(length).unwrap();
    let region = nic.register(&buffer, Access::ALL).unwrap();
    (buffer, region)
}

fn succeed(
    queue: &CompletionQueue,
    id: u64,
    kind: CompletionKind,
) -> metaroce_core::work::Completion {
    let completion = queue.wait(Some(PATIENCE)).expect("a completion");
    assert_eq!(
        (completion.id, completion.kind, completion.status),
        (id, kind, Status::Success)
    );
    completion
}

#[test]
fn a_write_lands_and_a_read_brings_it_back() {
    let pair = pair();
    let (mine, local) = region(&pair.here, 1 << 20);
    let (theirs, remote) = region(&pair.there, 1 << 20);
    let content: Vec<u8> = (0..1 << 19)
        .map(|number: u32| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    mine.write_at(0, &content).unwrap();
    pair.out
        .write(0, 1, local.slice(0, 1 << 19), remote.remote(100))
        .unwrap();
    succeed(pair.here.completions(), 1, CompletionKind::Write);
    assert_eq!(theirs.to_vec(100, 1 << 19).unwrap(), content);
    assert_eq!(theirs.to_vec(0, 100).unwrap(), [0; 100]);
    assert_eq!(theirs.to_vec(100 + (1 << 19), 1000).unwrap(), [0; 1000]);

    pair.out
        .read(3, 2, local.slice(1 << 19, 1 << 19), remote.remote(100))
        .unwrap();
    succeed(pair.here.completions(), 2, CompletionKind::Read);
    assert_eq!(mine.to_vec(1 << 19, 1 << 19).unwrap(), content);
}

#[test]
fn sends_find_their_buffers_and_immediates_their_completions() {
    let pair = pair();
    let (mine, local) = region(&pair.here, 4096);
    let (theirs, remote) = region(&pair.there, 4096);
    for id in 0..2 {
        pair.back
            .post_receive(
                5,
                &ReceiveRequest {
                    id,
                    local: remote.slice(id * 1024, 1024),
                },
            )
            .unwrap();
    }
    mine.write_at(0, b"hello").unwrap();
    pair.out.send(5, 7, local.slice(0, 5)).unwrap();
    let operation = Operation::Write {
        local: Source::Inline(b"written"),
        remote: remote.remote(3000),
        immediate: Some(0xabcd),
    };
    pair.out
        .post(
            5,
            &WorkRequest {
                id: 8,
                operation,
                flags: WorkFlags::default(),
            },
        )
        .unwrap();
    succeed(pair.here.completions(), 7, CompletionKind::Send);
    succeed(pair.here.completions(), 8, CompletionKind::Write);
    let first = succeed(pair.there.completions(), 0, CompletionKind::Receive);
    assert_eq!((first.length, first.stream, first.immediate), (5, 5, None));
    let second = succeed(
        pair.there.completions(),
        1,
        CompletionKind::ReceiveWriteImmediate,
    );
    assert_eq!((second.length, second.immediate), (7, Some(0xabcd)));
    assert_eq!(theirs.to_vec(0, 5).unwrap(), b"hello");
    assert_eq!(theirs.to_vec(3000, 7).unwrap(), b"written");
}

#[test]
fn atomics_count_together_with_the_owner() {
    let pair = pair();
    let (mine, local) = region(&pair.here, 64);
    let (theirs, remote) = region(&pair.there, 64);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..1000 {
                theirs
                    .word(8)
                    .unwrap()
                    .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        });
        for id in 0..100 {
            let operation = Operation::FetchAdd {
                local: local.slice(0, 8),
                remote: remote.remote(8),
                add: 1,
            };
            pair.out
                .post(
                    0,
                    &WorkRequest {
                        id,
                        operation,
                        flags: WorkFlags::default(),
                    },
                )
                .unwrap();
            succeed(pair.here.completions(), id, CompletionKind::FetchAdd);
        }
    });
    assert_eq!(theirs.load_u64(8), Ok(1100));
    let operation = Operation::CompareSwap {
        local: local.slice(0, 8),
        remote: remote.remote(8),
        compare: 1100,
        swap: 5,
    };
    pair.out
        .post(
            0,
            &WorkRequest {
                id: 1,
                operation,
                flags: WorkFlags::default(),
            },
        )
        .unwrap();
    succeed(pair.here.completions(), 1, CompletionKind::CompareSwap);
    assert_eq!((mine.load_u64(0), theirs.load_u64(8)), (Ok(1100), Ok(5)));
}

#[test]
fn everything_arrives_once_over_a_network_that_misbehaves() {
    let plan: FaultPlan =
        "loss=3%,burst=1%:4,duplicate=1%,corrupt=0.5%,reorder=0.5%:300us,jitter=30us,seed=4"
            .parse()
            .unwrap();
    let pair = pair_of(
        active(Nic::builder().faults(plan).payload_bytes(1024)),
        passive(Nic::builder()),
    );
    let length = 8 << 20;
    let (mine, local) = region(&pair.here, length);
    let (theirs, remote) = region(&pair.there, length);
    let content: Vec<u8> = (0..length as u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 23) as u8)
        .collect();
    mine.write_at(0, &content).unwrap();
    let part = 128 << 10;
    let mut posted = 0;
    let mut done = 0;
    while done < length / part {
        while posted < length / part && posted - done < 16 {
            let offset = (posted * part) as u64;
            pair.out
                .write(
                    (posted % 4) as u16,
                    posted as u64,
                    local.slice(offset, part as u32),
                    remote.remote(offset),
                )
                .unwrap();
            posted += 1;
        }
        let completion = pair
            .here
            .completions()
            .wait(Some(PATIENCE))
            .expect("a completion");
        assert_eq!(completion.status, Status::Success);
        done += 1;
    }
    assert!(
        theirs.to_vec(0, length).unwrap() == content,
        "content differs"
    );
    let statistics = pair.out.statistics().unwrap();
    assert!(statistics.retransmissions > 0);
    let counts = pair.here.statistics();
    assert!(counts.faults_outgoing.dropped() > 100 && counts.faults_outgoing.corrupted > 10);
}

#[test]
fn a_connection_to_nobody_fails_in_time_and_says_so() {
    let here = active(Nic::builder());
    // A port that was free a moment ago.
    let nobody = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let error = here
        .connect(
            &[nobody.local_addr().unwrap()],
            default_connection(),
            PATIENCE,
        )
        .unwrap_err();
    assert!(
        matches!(error, Error::Closed(CloseReason::Unreachable)),
        "{error}"
    );
    assert!(error.to_string().contains("no path to the peer answers"));
}

#[test]
fn an_abort_ends_a_connection_on_both_sides() {
    let pair = pair();
    pair.out.close(CloseMode::Abort(9)).unwrap();
    assert_eq!(
        pair.out.wait_closed(PATIENCE).unwrap(),
        CloseReason::LocalClose
    );
    assert_eq!(
        pair.back.wait_closed(PATIENCE).unwrap(),
        CloseReason::PeerAbort(9)
    );
    assert!(matches!(pair.back.phase(), Phase::Closed(_)));
    let (_mine, local) = region(&pair.here, 64);
    assert!(matches!(
        pair.out.send(0, 1, local.slice(0, 8)),
        Err(Error::Post(_))
    ));
}

#[test]
fn a_connection_s_figures_outlive_it() {
    let pair = pair();
    let (_mine, local) = region(&pair.here, 64);
    let (_theirs, remote) = region(&pair.there, 64);
    pair.out
        .write(0, 1, local.slice(0, 64), remote.remote(0))
        .unwrap();
    succeed(pair.here.completions(), 1, CompletionKind::Write);
    pair.out.close(CloseMode::Abort(9)).unwrap();
    for connection in [&pair.out, &pair.back] {
        connection.wait_closed(PATIENCE).unwrap();
        while pair.here.progress() {}
    }
    let last = |connection: &Connection| connection.statistics().unwrap();
    assert_eq!(
        (last(&pair.out).bytes_sent, last(&pair.back).bytes_received),
        (64, 64)
    );
}

#[test]
fn a_wait_ends_with_the_nic() {
    for nic in [active(Nic::builder()), passive(Nic::builder())] {
        let queue = nic.completions().clone();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(move || queue.wait(None));
            nic.shut_down(Duration::ZERO);
            assert_eq!(waiting.join().unwrap(), None);
        });
    }
}

#[test]
fn connections_that_nobody_accepts_do_not_pile_up() {
    let there = passive(Nic::builder());
    let here = active(Nic::builder());
    let (_mine, local) = region(&here, 64);
    let (_theirs, remote) = region(&there, 64);
    for id in 0..300 {
        let config = default_connection();
        let connection = here.connect(there.addresses(), config, PATIENCE).unwrap();
        // The acceptor knows a connection by what comes after the handshake; an abort at once may come in its place.
        connection
            .write(0, id, local.slice(0, 8), remote.remote(0))
            .unwrap();
        succeed(here.completions(), id, CompletionKind::Write);
        connection.close(CloseMode::Abort(1)).unwrap();
        connection.wait_closed(PATIENCE).unwrap();
    }
    let mut waiting = 0;
    while there.try_accept().is_some() {
        waiting += 1;
    }
    assert_eq!(waiting, 256);
}

#[test]
fn silence_ends_every_open_operation_with_an_error() {
    let plan: FaultPlan = "blackhole=all@300ms".parse().unwrap();
    let here = active(Nic::builder().faults(plan));
    let there = passive(Nic::builder());
    let mut config = default_connection();
    config.failure_timeout = metaroce_core::time::Duration::from_millis(400);
    let out = here.connect(there.addresses(), config, PATIENCE).unwrap();
    let (_mine, local) = region(&here, 1 << 20);
    let (_theirs, remote) = region(&there, 1 << 20);
    let mut ids = Vec::new();
    let mut failed = Vec::new();
    let mut next = 0;
    while failed.is_empty() || failed.len() < ids.len() {
        while failed.is_empty() && ids.len() < 8 {
            out.write(0, next, local.slice(0, 1 << 20), remote.remote(0))
                .unwrap();
            ids.push(next);
            next += 1;
        }
        let completion = here
            .completions()
            .wait(Some(PATIENCE))
            .expect("every operation ends");
        if completion.status == Status::Success {
            assert_eq!(ids.remove(0), completion.id);
        } else {
            assert_eq!(completion.status, Status::ConnectionLost);
            failed.push(completion.id);
        }
    }
    assert_eq!(failed, ids);
    assert_eq!(out.wait_closed(PATIENCE).unwrap(), CloseReason::Unreachable);
}

#[test]
fn a_drained_close_delivers_everything_first() {
    let Pair {
        here,
        there,
        out,
        back,
    } = pair();
    let (mine, local) = region(&here, 1 << 20);
    let (theirs, remote) = region(&there, 1 << 20);
    mine.write_at(0, &[7; 1 << 20]).unwrap();
    for id in 0..4 {
        out.write(
            0,
            id,
            local.slice(id << 18, 1 << 18),
            remote.remote(id << 18),
        )
        .unwrap();
    }
    assert!(here.shut_down(PATIENCE));
    assert_eq!(back.wait_closed(PATIENCE).unwrap(), CloseReason::PeerClose);
    assert_eq!(theirs.to_vec(0, 1 << 20).unwrap(), [7; 1 << 20]);
}

#[test]
fn an_armed_queue_makes_its_descriptor_readable() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let there = passive(Nic::builder());
    let here = Nic::builder()
        .plane(loopback())
        .background(true)
        .listen(false)
        .build()
        .unwrap();
    let pair = pair_of(here, there);
    let (_mine, local) = region(&pair.here, 64);
    let (_theirs, remote) = region(&pair.there, 64);
    let queue = pair.here.create_queue().unwrap();
    pair.out.set_queues(&queue, &queue);
    let readable = |timeout: i64| {
        let mut descriptors = [PollFd::new(&queue, PollFlags::IN)];
        poll(
            &mut descriptors,
            Some(&Timespec {
                tv_sec: timeout,
                tv_nsec: 0,
            }),
        )
        .unwrap()
            > 0
    };
    assert!(queue.arm(Armed::Any));
    assert!(!readable(0));
    pair.out
        .write(0, 3, local.slice(0, 8), remote.remote(0))
        .unwrap();
    assert!(readable(20));
    assert_eq!(queue.poll().unwrap().id, 3);
    queue.disarm();
    assert!(!readable(0));
    assert!(pair.here.completions().is_empty());
}

#[test]
fn many_connections_share_a_nic() {
    let there = passive(Nic::builder().connections(32));
    let here = active(Nic::builder().connections(32));
    let (_theirs, remote) = region(&there, 4096);
    let (_mine, local) = region(&here, 4096);
    let connections: Vec<_> = (0..20)
        .map(|_| {
            here.connect(there.addresses(), default_connection(), PATIENCE)
                .unwrap()
        })
        .collect();
    for (id, connection) in connections.iter().enumerate() {
        connection
            .write(0, id as u64, local.slice(0, 64), remote.remote(0))
            .unwrap();
    }
    let mut ids: Vec<_> = (0..20)
        .map(|_| here.completions().wait(Some(PATIENCE)).unwrap().id)
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..20).collect::<Vec<_>>());
    assert_eq!(here.statistics().connections, 20);
    assert!(here.shut_down(PATIENCE));
}

#[test]
fn settings_that_cannot_work_are_refused_with_advice() {
    let error = |builder: NicBuilder| builder.build().unwrap_err().to_string();
    assert!(error(Nic::builder()).contains("call `plane` once"));
    assert!(
        error(Nic::builder().plane("0.0.0.0:0".parse().unwrap()))
            .contains("not the address of one interface")
    );
    assert!(
        error(Nic::builder().plane("192.0.2.1:0".parse().unwrap()))
            .contains("is the address on this machine")
    );
    assert!(error(Nic::builder().plane(loopback()).payload_bytes(100)).contains("payload_bytes"));
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(error(Nic::builder().plane(taken.local_addr().unwrap())).contains("cannot receive on"));
}

#[test]
fn raw_memory_and_ipv6_work_alike() {
    let v6 = "[::1]:0".parse().unwrap();
    let there = Nic::builder().plane(v6).background(true).build().unwrap();
    let here = Nic::builder().plane(v6).listen(false).build().unwrap();
    let pair = pair_of(here, there);
    let mut memory = vec![0u64; 512];
    // SAFETY: the vector lives longer than the region and is not used while the region exists.
    let remote = unsafe {
        pair.there
            .register_raw(memory.as_mut_ptr().cast(), 4096, Access::REMOTE_WRITE)
    }
    .unwrap();
    let (mine, local) = region(&pair.here, 4096);
    mine.write_at(0, &[9; 4096]).unwrap();
    pair.out
        .write(0, 1, local.slice(0, 4096), remote.remote(0))
        .unwrap();
    succeed(pair.here.completions(), 1, CompletionKind::Write);
    drop(remote);
    assert!(
        memory
            .iter()
            .all(|word| *word == u64::from_ne_bytes([9; 8]))
    );
}

#[test]
fn faults_may_be_on_one_side_only() {
    let plan = FaultPlan {
        seed: 1,
        outgoing: Faults::with_loss(1.0),
        incoming: Faults::default(),
    };
    let here = active(Nic::builder().faults(plan));
    let there = passive(Nic::builder());
    let start = Instant::now();
    let mut config = default_connection();
    config.failure_timeout = metaroce_core::time::Duration::from_millis(200);
    assert!(here.connect(there.addresses(), config, PATIENCE).is_err());
    assert!(start.elapsed() < PATIENCE);
    assert_eq!(there.statistics().endpoint.datagrams_received, 0);
}
