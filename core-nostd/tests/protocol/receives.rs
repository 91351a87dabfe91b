//! SENDs, posted buffers, attempts.

use metaroce_core::wire::*;
use metaroce_core::*;

use crate::puppet::*;
use crate::words::*;

// spec: MR-RNR-001, MR-RNR-002, MR-RNR-004
#[test]
fn a_refused_attempt_is_refused_for_good() {
    let mut puppet = acceptor();
    let attempt = |attempt| Puppet::send_message(0, 0, 0, attempt, 8);
    assert_eq!(
        puppet.data(0, 0, attempt(0), b"half"),
        refused(ErrorCode::ReceiverNotReady)
    );
    let expected = ErrorReport {
        code: ErrorCode::ReceiverNotReady,
        attempt: 0,
        stream: 0,
        msn: 0,
        token: 0,
    };
    assert_eq!(reports(&puppet.take()), [expected]);
    puppet.post_receive(0, 70, 0, 8);
    puppet.post_receive(0, 71, 100, 8);
    assert_eq!(
        puppet.data(
            0,
            1,
            Data {
                offset: 4,
                ..attempt(0)
            },
            b"HALF"
        ),
        Err(DropReason::StaleMessage)
    );
    // A later message is not held up by it, and finds its own buffer.
    puppet
        .data(0, 2, Puppet::send_message(0, 1, 1, 0, 6), b"second")
        .unwrap();
    assert_eq!(puppet.bytes(100, 6), b"second");
    puppet.data(0, 3, attempt(1), b"good").unwrap();
    assert_eq!(
        puppet.data(
            0,
            4,
            Data {
                offset: 4,
                ..attempt(0)
            },
            b"evil"
        ),
        Err(DropReason::StaleMessage)
    );
    assert_eq!(
        puppet.data(
            0,
            4,
            Data {
                offset: 4,
                ..attempt(2)
            },
            b"evil"
        ),
        Err(DropReason::StaleMessage)
    );
    puppet
        .data(
            0,
            4,
            Data {
                offset: 4,
                ..attempt(1)
            },
            b"best",
        )
        .unwrap();
    assert_eq!(puppet.bytes(0, 8), b"goodbest");
    let told: Vec<_> = puppet
        .completions()
        .iter()
        .map(|done| (done.id, done.length))
        .collect();
    assert_eq!(told, [(70, 8), (71, 6)]);
    assert!(reports(&puppet.take()).is_empty());
}

// spec: MR-RNR-005, MR-RNR-006, MR-ERR-003
#[test]
fn attempts_are_counted() {
    let mut puppet = Puppet::asked(|connection| connection.rnr_attempts = 2);
    puppet.post_send(0, 1, 100);
    puppet.post_send(0, 2, 100);
    let mut psn = 0;
    let mut report = |puppet: &mut Puppet, attempt| {
        let report = ErrorReport {
            code: ErrorCode::ReceiverNotReady,
            attempt,
            stream: 0,
            msn: 0,
            token: 0,
        };
        puppet.error(0, psn, report).unwrap();
        psn += 1;
    };
    let attempts = |sent: &[Sent]| {
        only(sent, Kind::Data)
            .iter()
            .map(Sent::data)
            .filter(|(_, data, _)| data.opcode == Opcode::Send && data.msn == 0)
            .map(|(_, data, _)| SendAddress::from_bits(data.address).attempt)
            .collect::<Vec<_>>()
    };
    assert_eq!(attempts(&puppet.take()), [0]);
    report(&mut puppet, 0);
    assert_eq!(attempts(&puppet.run(150_000)), [1]);
    report(&mut puppet, 0);
    assert!(attempts(&puppet.run(150_000)).is_empty(), "an old report");
    report(&mut puppet, 1);
    assert_eq!(attempts(&puppet.run(150_000)), [2]);
    assert!(puppet.completions().is_empty());
    report(&mut puppet, 2);
    let told: Vec<_> = puppet
        .completions()
        .iter()
        .map(|done| (done.id, done.status))
        .collect();
    assert_eq!(told, [(1, Status::ReceiverNotReady), (2, Status::Flushed)]);
    let told = reports(&puppet.run(150_000));
    assert_eq!((told[0].code, told[0].stream), (ErrorCode::StreamError, 0));
}

// spec: MR-RNR-007, MR-MEM-003
#[test]
fn a_message_that_is_too_long_for_its_buffer_is_refused_whole() {
    let mut puppet = acceptor();
    puppet.post_receive(0, 70, 0, 8);
    let before = puppet.bytes(0, 16).to_vec();
    let long = Puppet::send_message(0, 0, 0, 0, 9);
    assert_eq!(
        puppet.data(0, 0, long, b"four"),
        refused(ErrorCode::LengthExceedsBuffer)
    );
    assert_eq!(
        reports(&puppet.take())[0].code,
        ErrorCode::LengthExceedsBuffer
    );
    assert_eq!(puppet.bytes(0, 16), before);
    assert_eq!(puppet.completions()[0].status, Status::Flushed);
}

// spec: MR-RNR-008
#[test]
fn a_send_is_told_in_the_buffer_in_which_it_was_placed() {
    let mut puppet = Puppet::asking(|_, _| ());
    puppet.post_receive(0, 70, 0, 4);
    puppet.post_receive(0, 71, 100, 50);
    // The first message of the stream claims to be the second that uses a buffer up.
    let _ = puppet.data(0, 0, Puppet::send_message(0, 0, 1, 0, 50), &[9; 50]);
    let done = puppet.completions();
    let wrong = done
        .iter()
        .any(|done| done.id == 70 && done.status == Status::Success);
    assert!(!wrong, "told in another buffer: 50 bytes in one of 4");
    let told = reports(&puppet.take());
    assert_eq!(told[0].code, ErrorCode::InvalidRequest);
}

// spec: MR-RNR-009
#[test]
fn each_refused_message_pauses_for_itself() {
    let mut puppet = Puppet::asked(|connection| connection.paths = 2);
    let report = |stream| ErrorReport {
        code: ErrorCode::ReceiverNotReady,
        attempt: 0,
        stream,
        msn: 0,
        token: 0,
    };
    puppet.post_send(0, 1, 100);
    puppet.post_send(1, 2, 100);
    let sent = only(&puppet.take(), Kind::Data);
    puppet.now += 10_000;
    puppet.error(0, 0, report(0)).unwrap();
    puppet.now += 90_000;
    puppet.error(0, 1, report(1)).unwrap();
    let start = puppet.now;
    puppet.ack_all(&sent);
    let sent = only(&puppet.run(300_000), Kind::Data);
    let second = sent
        .iter()
        .find(|sent| sent.data().1.stream == 1 && sent.data().1.opcode == Opcode::Send);
    assert!(second.unwrap().at - start >= 100_000, "too early");
}

// spec: MR-RNR-006
#[test]
fn only_a_send_is_not_ready() {
    let mut puppet = Puppet::asked(|_| ());
    puppet.post_write(0, 1, 100);
    let sent = only(&puppet.take(), Kind::Data);
    let report = ErrorReport {
        code: ErrorCode::ReceiverNotReady,
        attempt: 0,
        stream: 0,
        msn: 0,
        token: 0,
    };
    puppet.error(0, 0, report).unwrap();
    puppet.ack_all(&sent);
    assert_eq!(puppet.completions()[0].status, Status::Success);
    assert!(only(&puppet.run(300_000), Kind::Data).is_empty());
}
