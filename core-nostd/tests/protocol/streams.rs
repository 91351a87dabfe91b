//! Streams: which there are, turns, and how one fails.

use metaroce_core::wire::*;
use metaroce_core::work::PostError;
use metaroce_core::*;

use crate::puppet::*;
use crate::words::*;

// spec: MR-STREAM-001
#[test]
fn streams_that_do_not_exist_take_nothing() {
    let mut puppet = acceptor();
    for stream in [4, 500, 0xfffe, 0xffff] {
        let write = puppet.write(stream, 0, 0, 4);
        assert_eq!(
            puppet.data(0, 0, write, b"evil"),
            Err(DropReason::UnknownStream)
        );
    }
    let answer = Data {
        opcode: Opcode::ReadResponse,
        stream: 2,
        address: 0,
        key: 1 << 31,
        ..puppet.write(0, 0, 0, 4)
    };
    assert_eq!(
        puppet.data(0, 0, answer, b"evil"),
        Err(DropReason::UnknownStream)
    );
    assert_ne!(puppet.bytes(0, 4), b"evil");
}

// spec: MR-STREAM-002, MR-STREAM-003, MR-STREAM-004, MR-ERR-002
#[test]
fn a_stream_fails_in_both_directions_and_alone() {
    let mut puppet = acceptor();
    for stream in 0..2 {
        puppet.post_receive(stream, u64::from(stream), 0, 4);
        puppet.post_write(stream, 10 + u64::from(stream), 2048);
    }
    let out = only(&puppet.take(), Kind::Data);
    let bad = Data {
        key: 1,
        ..puppet.write(0, 0, 0, 4)
    };
    assert_eq!(
        puppet.data(0, 0, bad, b"evil"),
        refused(ErrorCode::InvalidKey)
    );
    let sent = puppet.take();
    let expected = ErrorReport {
        code: ErrorCode::InvalidKey,
        attempt: 0,
        stream: 0,
        msn: 0,
        token: 0,
    };
    assert_eq!(reports(&sent), [expected]);
    let mut told: Vec<_> = puppet
        .completions()
        .iter()
        .map(|done| (done.id, done.status))
        .collect();
    told.sort_by_key(|told| told.0);
    assert_eq!(
        told,
        [(0, Status::Flushed), (10, Status::Flushed)],
        "its own work and buffers"
    );
    assert!(puppet.events.iter().any(|event| matches!(
        event,
        Event::StreamFailed {
            stream: 0,
            status: Status::RemoteInvalidKey,
            by_peer: true,
            ..
        }
    )));
    let inline = Operation::Send {
        local: Source::Inline(b"x"),
        immediate: None,
    };
    assert_eq!(puppet.post(0, 1, inline), Err(PostError::StreamFailed));
    // What is on its way is refused without another report.
    let good = puppet.write(0, 1, 0, 4);
    assert_eq!(
        puppet.data(0, 0, good, b"late"),
        refused(ErrorCode::StreamError)
    );
    assert!(reports(&puppet.take()).is_empty());
    // The other stream is as it was.
    puppet.ack_all(&out);
    puppet
        .data(0, 0, Puppet::send_message(1, 0, 0, 0, 4), b"fine")
        .unwrap();
    let told: Vec<_> = puppet.completions()[2..]
        .iter()
        .map(|done| (done.id, done.status))
        .collect();
    assert!(
        told.contains(&(11, Status::Success)) && told.contains(&(1, Status::Success)),
        "{told:?}"
    );
}

// spec: MR-STREAM-005
#[test]
fn streams_take_turns() {
    let mut puppet = Puppet::asked(|_| ());
    for stream in 0..4 {
        puppet.post_write(stream, 1, 4 * 1024);
    }
    let streams: Vec<_> = only(&puppet.take(), Kind::Data)
        .iter()
        .map(|sent| sent.data().1.stream)
        .collect();
    assert_eq!(streams, [0, 1, 2, 3, 0, 1, 2, 3]);
}
