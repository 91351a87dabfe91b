//! Who asks for a connection is not known before a cookie came back: nothing is kept, little is answered.

use crate::puppet::*;
use crate::support::address;
use metaroce_core::wire::*;
use metaroce_core::*;

// spec: MR-SETUP-005, MR-SETUP-007, MR-SEC-002
#[test]
fn a_listener_keeps_nothing_before_a_valid_cookie() {
    let mut puppet = Puppet::listening();
    let init = puppet.init(None);
    for _ in 0..3 {
        puppet.send(&Packet::Init(init)).unwrap();
        let sent = puppet.take();
        assert_eq!(sent.len(), 1);
        assert!(sent[0].is(Kind::Retry) && sent[0].bytes.len() < INIT_SIZE);
        assert_eq!(sent[0].transmit.destination(), address(1, 0));
    }
    let forged = puppet.init(Some(Cookie {
        issued_ms: 1,
        tag: [9; 16],
    }));
    assert_eq!(
        puppet.send(&Packet::Init(forged)),
        Err(DropReason::BadCookie)
    );
    let sent = puppet.take();
    assert!(sent.len() == 1 && sent[0].is(Kind::Retry));
    assert_eq!(puppet.host.endpoint_statistics().connections_opened, 0);
    assert_eq!(puppet.host.poll_timeout(), None, "nothing is remembered");
}

// spec: MR-SEC-003
#[test]
fn at_most_four_answers_wait() {
    let mut puppet = Puppet::listening();
    let init = puppet.init(None);
    for _ in 0..20 {
        puppet.send(&Packet::Init(init)).unwrap();
    }
    assert_eq!(puppet.take().len(), 4);
}

// spec: MR-SETUP-004
#[test]
fn an_init_that_names_another_address_is_not_answered() {
    let mut puppet = Puppet::listening();
    puppet.source = address(5, 0);
    let init = puppet.init(None);
    assert_eq!(
        puppet.send(&Packet::Init(init)),
        Err(DropReason::AddressMismatch)
    );
    puppet.source = address(1, 0);
    puppet.plane = 1;
    assert_eq!(
        puppet.send(&Packet::Init(init)),
        Err(DropReason::AddressMismatch)
    );
    assert!(puppet.take().is_empty());
    assert_eq!(puppet.dropped(DropReason::AddressMismatch), 2);
}

// spec: MR-SETUP-006
#[test]
fn a_cookie_opens_for_its_address_and_id_and_for_ten_seconds() {
    let mut puppet = Puppet::listening();
    let init = puppet.with_cookie(puppet.init(None));
    let other = Init {
        source: MINE + 1,
        ..init
    };
    assert_eq!(
        puppet.send(&Packet::Init(other)),
        Err(DropReason::BadCookie)
    );
    puppet.now += 10_002_000_000;
    assert_eq!(puppet.send(&Packet::Init(init)), Err(DropReason::BadCookie));
    assert_eq!(puppet.host.endpoint_statistics().connections_opened, 0);
}

fn reject_of(puppet: &mut Puppet, init: Init) -> (RejectReason, u32) {
    assert_eq!(
        puppet.send(&Packet::Init(init)),
        Err(DropReason::NotAccepted)
    );
    let sent = puppet.take();
    let Packet::Reject(reject) = sent[0].packet() else {
        panic!("{sent:?}")
    };
    (reject.reason, reject.connection)
}

// spec: MR-SETUP-009
#[test]
fn a_listener_says_why_it_refuses() {
    let mut puppet = Puppet::listening();
    let newer = Init {
        lowest_version: 2,
        highest_version: 3,
        ..puppet.init(None)
    };
    assert_eq!(reject_of(&mut puppet, newer), (RejectReason::Version, MINE));
    puppet.host.listen(false);
    let init = puppet.init(None);
    assert_eq!(
        reject_of(&mut puppet, init),
        (RejectReason::NotListening, MINE)
    );
    puppet.host.listen(true);
    // Four connections are all there is room for.
    for id in 0..5 {
        let mut init = Init {
            source: 100 + id,
            ..puppet.init(None)
        };
        puppet.send(&Packet::Init(init)).unwrap();
        let sent = puppet.take();
        let retry = sent.iter().find(|sent| sent.is(Kind::Retry)).unwrap();
        let Packet::Retry(retry) = retry.packet() else {
            panic!()
        };
        init.cookie = Some(retry.cookie);
        if id < 4 {
            puppet.send(&Packet::Init(init)).unwrap();
            assert!(puppet.take().iter().any(|sent| sent.is(Kind::Accept)));
        } else {
            assert_eq!(reject_of(&mut puppet, init), (RejectReason::Busy, 104));
        }
    }
}
