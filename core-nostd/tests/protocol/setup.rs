//! Setting up, word by word.

use crate::puppet::*;
use crate::support::{Pair, address};
use metaroce_core::wire::*;
use metaroce_core::work::{CloseReason, Event};
use metaroce_core::*;

// spec: MR-SETUP-008
#[test]
fn an_initiator_brings_the_cookie_at_once() {
    let mut puppet = Puppet::listening();
    puppet.connect(|_| ());
    let sent = puppet.take();
    let Packet::Init(first) = sent[0].packet() else {
        panic!()
    };
    assert_eq!(first.cookie, None);
    puppet.theirs = first.source;
    let cookie = Cookie {
        issued_ms: 77,
        tag: [5; 16],
    };
    let retry = Retry {
        connection: first.source,
        cookie,
    };
    puppet.send(&Packet::Retry(retry)).unwrap();
    let sent = puppet.take();
    let Packet::Init(second) = sent[0].packet() else {
        panic!("{sent:?}")
    };
    assert_eq!((second.cookie, second.source), (Some(cookie), first.source));
}

// spec: MR-SETUP-010
#[test]
fn a_version_that_was_not_offered_is_not_accepted() {
    let mut puppet = Puppet::listening();
    puppet.connect(|_| ());
    puppet.theirs = puppet.take()[0].init_source();
    let accept = Accept {
        connection: puppet.theirs,
        source: MINE,
        hint_mbps: 0,
        version: 2,
        parameters: puppet.parameters,
    };
    assert!(matches!(
        puppet.send(&Packet::Accept(accept)),
        Err(DropReason::Malformed(DecodeError::Version { got: 2 }))
    ));
    puppet.take();
    assert!(puppet.events.is_empty());
}

trait InitSource {
    fn init_source(&self) -> u32;
}
impl InitSource for Sent {
    fn init_source(&self) -> u32 {
        match self.packet() {
            Packet::Init(init) => init.source,
            other => panic!("{other:?}"),
        }
    }
}

// spec: MR-SETUP-011, MR-SETUP-012
#[test]
fn the_lesser_of_both_offers_is_what_both_work_with() {
    let puppet = Puppet::asked_with(
        |_, _| (),
        |connection| connection.paths = 6,
        |offer| {
            offer.paths = 9;
            offer.window = 17;
            offer.streams = 3;
            offer.open_messages = 5;
            offer.open_responses = 2;
            let plane = PlaneAddress::new(address(1, 0), 600);
            offer.planes = Planes::new(&[plane]).unwrap();
        },
    );
    let agreed = puppet.host.agreed(puppet.handle()).unwrap();
    assert_eq!((agreed.paths, agreed.planes, agreed.window), (6, 1, 17));
    assert_eq!(
        (agreed.streams, agreed.open_messages, agreed.open_responses),
        (3, 5, 2)
    );
    let mut puppet = puppet;
    puppet.post_write(0, 1, 1500);
    let lengths: Vec<_> = only(&puppet.take(), Kind::Data)
        .iter()
        .map(|sent| sent.data().2.len())
        .collect();
    assert_eq!(lengths, [600, 600, 300]);
    // The same offer from the other side.
    let agreed = Puppet::asking(|_, _| ());
    let agreed = agreed.host.agreed(agreed.handle()).unwrap();
    assert_eq!((agreed.paths, agreed.window, agreed.streams), (4, 256, 4));
}

// spec: MR-SETUP-013, MR-PATH-015
#[test]
fn path_and_plane() {
    let mut puppet = Puppet::asked_with(
        |endpoint, _| endpoint.planes = 3,
        |connection| connection.paths = 7,
        |offer| *offer = parameters(8, 3),
    );
    puppet.post_write(0, 1, 7 * 1024);
    let sent = only(&puppet.take(), Kind::Data);
    assert_eq!(sent.len(), 7);
    for sent in &sent {
        let plane = sent.header().path % 3;
        assert_eq!(sent.transmit.plane, plane);
        assert_eq!(sent.transmit.destination(), address(1, plane));
    }
    // An acknowledgment takes the plane of the path that it is about.
    for path in [2, 4] {
        puppet.plane = path % 3;
        puppet.source = address(1, path % 3);
        puppet.probe(path, 0).unwrap();
        let sent = puppet.take();
        assert_eq!(sent[0].transmit.plane, path % 3);
        assert_eq!(sent[0].transmit.destination(), address(1, path % 3));
    }
}

// spec: MR-SETUP-014
#[test]
fn init_is_repeated_with_pauses_that_double_until_the_failure_timeout() {
    let mut puppet = Puppet::new(|endpoint, _| endpoint.planes = 2);
    puppet.parameters = parameters(4, 2);
    puppet.connect(|_| ());
    let start = puppet.now;
    let sent = puppet.run(3_000_000_000);
    let times: Vec<_> = sent.iter().map(|sent| sent.at - start).collect();
    // The assumed round trip is 20 us: 80 us, 160 us, ...
    assert_eq!(times[..4], [0, 80_000, 240_000, 560_000]);
    assert!(
        times
            .windows(2)
            .all(|pair| pair[1] - pair[0] <= 250_000_000)
    );
    assert!(*times.last().unwrap() < 2_000_000_000);
    for (index, pair) in sent.windows(2).enumerate() {
        assert_ne!(pair[0].transmit.plane, pair[1].transmit.plane, "{index}");
    }
    let ports: std::collections::BTreeSet<_> =
        sent.iter().map(|sent| sent.transmit.entropy).collect();
    assert!(ports.len() > sent.len() / 2);
    assert!(matches!(
        puppet.events[..],
        [Event::Closed {
            reason: CloseReason::Unreachable,
            ..
        }]
    ));
}

// spec: MR-SETUP-015, MR-SETUP-016
#[test]
fn the_same_init_again_is_the_same_connection() {
    let mut puppet = Puppet::listening();
    let init = puppet.with_cookie(puppet.init(None));
    puppet.send(&Packet::Init(init)).unwrap();
    let first = only(&puppet.take(), Kind::Accept);
    puppet.send(&Packet::Init(init)).unwrap();
    let second = only(&puppet.take(), Kind::Accept);
    assert_eq!(first[0].bytes, second[0].bytes);
    assert_eq!(puppet.host.endpoint_statistics().connections_opened, 1);
    // It is repeated until something comes.
    let again = only(&puppet.run(2_000_000), Kind::Accept);
    assert!(again.len() >= 3, "{}", again.len());
    let Packet::Accept(accept) = first[0].packet() else {
        panic!()
    };
    puppet.theirs = accept.source;
    puppet.probe(0, 0).unwrap();
    puppet.take();
    assert!(only(&puppet.run(1_000_000_000), Kind::Accept).is_empty());
    assert_eq!(puppet.host.endpoint_statistics().connections_closed, 0);
}

// spec: MR-SETUP-016
#[test]
fn an_acceptor_that_hears_nothing_gives_up() {
    let mut puppet = Puppet::listening();
    let init = puppet.with_cookie(puppet.init(None));
    puppet.send(&Packet::Init(init)).unwrap();
    puppet.run(3_000_000_000);
    assert!(puppet.events.is_empty(), "nobody was told of it");
}

// spec: MR-SETUP-017
#[test]
fn every_accept_is_answered_with_a_probe() {
    let mut puppet = Puppet::listening();
    puppet.connect(|_| ());
    puppet.theirs = puppet.take()[0].init_source();
    for _ in 0..3 {
        puppet.accept(0).unwrap();
        assert_eq!(only(&puppet.take(), Kind::Probe).len(), 1);
    }
}

// spec: MR-SETUP-022
#[test]
fn the_acceptor_is_told_its_share_at_once() {
    let hints = |hints: bool| {
        let mut puppet = Puppet::new(|endpoint, _| endpoint.hints = hints);
        puppet.connect(|_| ());
        puppet.theirs = puppet.take()[0].init_source();
        puppet.accept(0).unwrap();
        only(&puppet.take(), Kind::Hint)
    };
    let told = hints(true);
    let Packet::Hint(hint) = told[0].packet() else {
        panic!()
    };
    assert_eq!((told.len(), hint.number), (1, 0));
    assert!(hint.rate_mbps > 0);
    assert!(hints(false).is_empty());
}

// spec: MR-LOSS-009
#[test]
fn setting_up_gives_the_first_round_trip_time() {
    let mut puppet = Puppet::listening();
    puppet.connect(|_| ());
    puppet.theirs = puppet.take()[0].init_source();
    puppet.now += 7_000;
    puppet.accept(0).unwrap();
    assert_eq!(puppet.statistics().min_rtt_ns, 7_000);

    let mut puppet = Puppet::listening();
    puppet.connect(|_| ());
    puppet.theirs = puppet.take()[0].init_source();
    assert!(!puppet.run(200_000).is_empty(), "a second INIT");
    puppet.accept(0).unwrap();
    assert_eq!(puppet.statistics().min_rtt_ns, 0, "of which INIT?");

    let acceptor = |twice: bool| {
        let mut puppet = Puppet::listening();
        let init = puppet.with_cookie(puppet.init(None));
        puppet.send(&Packet::Init(init)).unwrap();
        let sent = only(&puppet.take(), Kind::Accept);
        let Packet::Accept(accept) = sent[0].packet() else {
            panic!()
        };
        puppet.theirs = accept.source;
        puppet.now += 9_000;
        if twice {
            puppet.send(&Packet::Init(init)).unwrap();
            puppet.take();
        }
        puppet.probe(0, 0).unwrap();
        puppet.take();
        puppet.connected();
        puppet.statistics().min_rtt_ns
    };
    assert_eq!(acceptor(false), 9_000);
    assert_eq!(acceptor(true), 0, "of which ACCEPT?");
}

// spec: MR-SETUP-018
#[test]
fn a_rejection_is_told() {
    let mut puppet = Puppet::listening();
    puppet.connect(|_| ());
    let connection = puppet.take()[0].init_source();
    let reject = Reject {
        connection,
        reason: RejectReason::Busy,
        detail: 0,
    };
    puppet.send(&Packet::Reject(reject)).unwrap();
    puppet.take();
    assert!(matches!(
        puppet.events[..],
        [Event::Closed {
            reason: CloseReason::Refused(RejectReason::Busy),
            ..
        }]
    ));
    assert!(puppet.run(1_000_000_000).is_empty());
}

// spec: MR-SETUP-019
#[test]
fn data_goes_only_where_the_initiator_has_answered() {
    let mut puppet = Puppet::new(|endpoint, _| endpoint.planes = 2);
    puppet.parameters = parameters(4, 2);
    puppet.ask();
    puppet.post_write(0, 1, 4 * 1024);
    let sent = puppet.run(100_000);
    let data = only(&sent, Kind::Data);
    assert!(!data.is_empty() && data.iter().all(|sent| sent.transmit.plane == 0));
    let probe = only(&puppet.run(200_000), Kind::Probe)
        .into_iter()
        .find(|sent| sent.transmit.plane == 1)
        .unwrap();
    let header = probe.header();
    puppet.ack(block(header.path, 0, header.tsn, &[])).unwrap();
    puppet.ack_all(&data);
    puppet.post_write(0, 2, 8 * 1024);
    assert!(
        only(&puppet.run(10_000), Kind::Data)
            .iter()
            .any(|sent| sent.header().path == header.path)
    );
}

// spec: MR-SETUP-020
#[test]
fn before_accept_nothing_else_counts() {
    let mut puppet = Puppet::listening();
    puppet.connect(|_| ());
    puppet.theirs = puppet.take()[0].init_source();
    let write = puppet.write(0, 0, 0, 4);
    assert_eq!(
        puppet.data(0, 0, write, b"evil"),
        Err(DropReason::UnexpectedKind)
    );
    assert_eq!(puppet.probe(0, 0), Err(DropReason::UnexpectedKind));
    assert!(puppet.take().is_empty());
}

// spec: MR-SETUP-001
#[test]
fn ids_are_not_zero_and_do_not_repeat() {
    let mut ids = std::collections::BTreeSet::new();
    let mut puppet = Puppet::listening();
    for _ in 0..200 {
        puppet.connect(|_| ());
        ids.insert(puppet.take()[0].init_source());
        let (now, handle) = (puppet.at(), puppet.handle());
        puppet
            .host
            .close(now, handle, work::CloseMode::Drain)
            .unwrap();
        puppet.take();
    }
    assert_eq!(ids.len(), 200);
    assert!(!ids.contains(&0));
    // The high bits are spread, not counted.
    let high: std::collections::BTreeSet<_> = ids.iter().map(|id| id >> 24).collect();
    assert!(high.len() > 80, "{}", high.len());
}

// spec: MR-WIRE-001
#[test]
fn the_source_port_means_nothing() {
    let mut puppet = Puppet::asking(|_, _| ());
    puppet.source.set_port(999);
    let write = puppet.write(0, 0, 0, 5);
    puppet.data(0, 0, write, b"hello").unwrap();
    assert_eq!(puppet.bytes(0, 5), b"hello");
    let theirs = std::mem::replace(&mut puppet.theirs, 12_345);
    assert_eq!(
        puppet.data(0, 1, write, b"other"),
        Err(DropReason::UnknownConnection)
    );
    puppet.theirs = theirs;
    assert_eq!(puppet.bytes(0, 5), b"hello");
}

// spec: MR-WIRE-011, MR-WIRE-012
#[test]
fn the_trailer_is_left_out_only_where_both_want_that() {
    for (ours, theirs) in [(false, true), (true, false), (true, true)] {
        let mut seen = vec![];
        let agreed = {
            let mut pair = Pair::new(|which, endpoint, _| {
                endpoint.omit_checksum = if which == 0 { ours } else { theirs };
            });
            let log = std::rc::Rc::new(std::cell::RefCell::new(vec![]));
            let noted = log.clone();
            pair.filter = Box::new(move |seen| {
                let body = if seen.transmit.trailer {
                    check(seen.bytes, Trailer::Crc32c).unwrap()
                } else {
                    &seen.bytes[..]
                };
                decode(body).unwrap();
                noted
                    .borrow_mut()
                    .push((seen.header.kind, seen.transmit.trailer));
                crate::support::Fate::Deliver
            });
            pair.connect(|_, endpoint, _| endpoint.omit_checksum = ours);
            let local = pair.local(0, 0, 10_000);
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
            seen.extend(log.borrow().iter().copied());
            ours && theirs
        };
        for (kind, trailer) in seen {
            assert_eq!(trailer, kind.is_setup() || !agreed, "{kind:?}");
        }
    }
    // A wrong one is refused.
    let mut puppet = Puppet::asking(|_, _| ());
    puppet.trailer = Trailer::None;
    let write = puppet.write(0, 0, 0, 5);
    assert!(matches!(
        puppet.data(0, 0, write, b"hello"),
        Err(DropReason::Malformed(DecodeError::Checksum { .. }))
    ));
}

// spec: MR-SETUP-021
#[test]
fn an_accept_from_an_address_that_was_not_asked_is_dropped() {
    let mut puppet = Puppet::new(|_, _| ());
    puppet.connect(|_| ());
    let sent = puppet.take();
    let Packet::Init(init) = sent[0].packet() else {
        panic!()
    };
    puppet.theirs = init.source;
    puppet.source = address(9, 0);
    let _ = puppet.accept(0);
    puppet.take();
    let connected = puppet
        .events
        .iter()
        .any(|event| matches!(event, Event::Connected { .. }));
    assert!(!connected, "established by a stranger");
}

// spec: MR-SETUP-021
#[test]
fn many_retries_are_answered_with_one_init() {
    let mut puppet = Puppet::new(|_, _| ());
    puppet.connect(|_| ());
    let sent = puppet.take();
    puppet.theirs = match sent[0].packet() {
        Packet::Init(init) => init.source,
        other => panic!("{other:?}"),
    };
    let retry = |puppet: &mut Puppet, issued_ms| {
        let cookie = Cookie {
            issued_ms,
            tag: [7; 16],
        };
        let connection = puppet.theirs;
        let _ = puppet.send(&Packet::Retry(Retry { connection, cookie }));
        only(&puppet.take(), Kind::Init).len()
    };
    assert_eq!(retry(&mut puppet, 1), 1);
    assert_eq!((2..9).map(|n| retry(&mut puppet, n)).sum::<usize>(), 0);
    // The timer sends the next, with the latest cookie; then one more RETRY is taken.
    let sent = only(&puppet.run(100_000), Kind::Init);
    let Packet::Init(init) = sent[0].packet() else {
        panic!()
    };
    assert_eq!(init.cookie.unwrap().issued_ms, 8);
    assert_eq!(retry(&mut puppet, 9), 1);
    puppet.source = address(9, 0);
    puppet.run(1_000_000);
    assert_eq!(retry(&mut puppet, 10), 0);
}
