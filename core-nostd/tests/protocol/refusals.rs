//! Refusals, reports, drops.

use metaroce_core::wire::*;
use metaroce_core::*;

use crate::puppet::*;
use crate::words::*;

// spec: MR-ERR-001
#[test]
fn a_refusal_is_a_gap() {
    let mut puppet = acceptor();
    let good = puppet.write(1, 0, 0, 4);
    puppet.data(0, 0, good, b"good").unwrap();
    let before = Puppet::last_block(&puppet.run(10_000), 0).unwrap();
    let bad = Data {
        key: 1,
        ..puppet.write(0, 0, 0, 4)
    };
    assert_eq!(
        puppet.data(0, 1, bad, b"evil"),
        refused(ErrorCode::InvalidKey)
    );
    assert_eq!(
        puppet.data(0, 2, Puppet::send_message(2, 0, 0, 0, 4), b"evil"),
        refused(ErrorCode::ReceiverNotReady)
    );
    assert!(
        Puppet::last_block(&puppet.run(10_000), 0).is_none(),
        "it is not acknowledged"
    );
    let next = puppet.write(1, 1, 0, 4);
    puppet.data(0, 3, next, b"next").unwrap();
    let after = Puppet::last_block(&puppet.take(), 0).unwrap();
    assert_eq!(
        (after.cumulative, after.sack[0], after.received),
        (1, 0b100, before.received + 1)
    );
}

// spec: MR-ERR-002
#[test]
fn without_room_for_the_report_nothing_is_refused() {
    let mut puppet = acceptor();
    // Sixteen responses that are not acknowledged take all the room.
    for msn in 0..16 {
        let data = request(&puppet, Opcode::ReadRequest, msn, 0, 4);
        puppet.data(0, msn, data, b"").unwrap();
    }
    let answers = only(&puppet.take(), Kind::Data);
    let bad = Data {
        key: 1,
        ..puppet.write(1, 0, 0, 4)
    };
    assert_eq!(puppet.data(1, 0, bad, b"evil"), Err(DropReason::NoRoom));
    assert_eq!(
        puppet.data(1, 1, Puppet::send_message(2, 0, 0, 0, 4), b"evil"),
        Err(DropReason::NoRoom)
    );
    puppet.completions();
    assert!(
        !puppet
            .events
            .iter()
            .any(|event| matches!(event, Event::StreamFailed { .. }))
    );
    let mut all = answers;
    for _ in 0..4 {
        puppet.now += 10_000;
        puppet.ack_all(&all);
        all.extend(only(&puppet.run(100), Kind::Data));
    }
    assert_eq!(
        puppet.data(1, 0, bad, b"evil"),
        refused(ErrorCode::InvalidKey)
    );
    assert_eq!(
        puppet.data(1, 1, Puppet::send_message(2, 0, 0, 0, 4), b"evil"),
        refused(ErrorCode::ReceiverNotReady)
    );
}

// spec: MR-ERR-003
#[test]
fn each_code_is_told_as_what_it_is() {
    for (code, status) in [
        (ErrorCode::InvalidKey, Status::RemoteInvalidKey),
        (ErrorCode::OutOfBounds, Status::RemoteOutOfBounds),
        (ErrorCode::AccessDenied, Status::RemoteAccessDenied),
        (ErrorCode::LengthExceedsBuffer, Status::LengthExceedsBuffer),
        (ErrorCode::InvalidRequest, Status::RemoteInvalidRequest),
        (ErrorCode::StreamError, Status::Flushed),
        (ErrorCode::MemoryFault, Status::RemoteMemoryFault),
        (ErrorCode::ResourceExhausted, Status::RemoteInvalidRequest),
    ] {
        let mut puppet = Puppet::asked(|_| ());
        for id in 0..3 {
            puppet.post_send(1, id, 100);
        }
        puppet.take();
        puppet
            .error(
                0,
                0,
                ErrorReport {
                    code,
                    attempt: 0,
                    stream: 1,
                    msn: 1,
                    token: 0,
                },
            )
            .unwrap();
        let told: Vec<_> = puppet
            .completions()
            .iter()
            .map(|done| (done.id, done.status))
            .collect();
        assert_eq!(
            told,
            [(0, Status::Flushed), (1, status), (2, Status::Flushed)]
        );
    }
}

// spec: MR-ERR-004
#[test]
fn every_drop_has_its_counter() {
    let mut puppet = acceptor();
    let write = puppet.write(0, 0, 0, 4);
    puppet.data(0, 0, write, b"good").unwrap();
    puppet.run(10_000);
    let before = *puppet.host.endpoint_statistics();
    let (state, memory) = (format!("{:?}", puppet.path(0)), puppet.memory.0[0].clone());
    let sum = |puppet: &Puppet| puppet.host.endpoint_statistics().drops.iter().sum::<u64>();
    let stale = Data {
        msn: u32::MAX,
        ..write
    };
    assert_eq!(
        puppet.data(0, 9, stale, b"evil"),
        Err(DropReason::StaleMessage)
    );
    assert_eq!(
        puppet.data(0, 300, write, b"evil"),
        Err(DropReason::BeyondWindow)
    );
    assert_eq!(
        puppet.data(7, 0, write, b"evil"),
        Err(DropReason::UnknownPath)
    );
    assert!(puppet.send_bytes(&[0x14; 30], Ecn::Ect0).is_err());
    assert!(puppet.send_bytes(&[], Ecn::Ect0).is_err());
    assert_eq!(sum(&puppet), before.drops.iter().sum::<u64>() + 5);
    assert_eq!(puppet.dropped(DropReason::StaleMessage), 1);
    assert_eq!(format!("{:?}", puppet.path(0)), state);
    assert!(puppet.memory.0[0] == memory);
    assert!(puppet.run(100_000).is_empty());
}

// spec: MR-SEC-004
#[test]
fn one_connection_s_words_mean_nothing_to_another() {
    let mut puppet = acceptor();
    let (first, handle) = (puppet.theirs, puppet.handle());
    let init = Init {
        source: 9,
        ..puppet.init(None)
    };
    let init = puppet.with_cookie(init);
    puppet.send(&Packet::Init(init)).unwrap();
    let sent = only(&puppet.take(), Kind::Accept);
    let Packet::Accept(accept) = sent[0].packet() else {
        panic!()
    };
    puppet.post_write(0, 1, 100);
    let sent = only(&puppet.take(), Kind::Data);
    assert_eq!(puppet.handle(), handle);
    puppet.theirs = accept.source;
    let header = sent[0].header();
    assert_eq!(
        puppet.ack(AckBlock {
            newest_psn: 0,
            ..block(header.path, 1, header.tsn, &[])
        }),
        Err(DropReason::BadAcknowledgment)
    );
    let report = ErrorReport {
        code: ErrorCode::InvalidKey,
        attempt: 0,
        stream: 0,
        msn: 0,
        token: 0,
    };
    puppet.tsn = [0; 16];
    puppet.error(0, 0, report).unwrap();
    assert!(
        puppet
            .completions()
            .iter()
            .all(|done| done.connection != handle)
    );
    puppet.theirs = first;
    puppet.ack_all(&sent);
    assert_eq!(puppet.completions()[0].status, Status::Success);
}

// spec: MR-ERR-002
#[test]
fn a_message_too_long_is_refused_once_there_is_room_for_the_report() {
    let mut puppet = Puppet::asking(|_, _| ());
    puppet.post_receive(1, 70, 0, 4);
    for msn in 0..16 {
        let read = Data {
            opcode: Opcode::ReadRequest,
            immediate: 1 << 31 | msn,
            ..puppet.write(0, msn, 0, 4)
        };
        puppet.data(0, msn, read, b"").unwrap();
    }
    let mut all = only(&puppet.take(), Kind::Data);
    let long = Puppet::send_message(1, 0, 0, 0, 8);
    assert_eq!(
        puppet.data(1, 0, long, b"toolong!"),
        Err(DropReason::NoRoom)
    );
    for _ in 0..4 {
        puppet.now += 10_000;
        puppet.ack_all(&all);
        all.extend(only(&puppet.run(100), Kind::Data));
    }
    let expected = Err(DropReason::Refused(ErrorCode::LengthExceedsBuffer));
    assert_eq!(
        puppet.data(1, 0, long, b"toolong!"),
        expected,
        "never refused"
    );
}
