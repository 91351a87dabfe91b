//! Messages, streams, receives, READ and atomics, memory, refusals.

mod puppet;
mod support;

use metaroce_core::wire::*;
use metaroce_core::work::PostError;
use metaroce_core::*;
use puppet::*;
use support::{Fate, Pair, is_data};

fn acceptor() -> Puppet {
    Puppet::asking(|_, _| ())
}

/// The ERROR reports in what was sent.
fn reports(sent: &[Sent]) -> Vec<ErrorReport> {
    only(sent, Kind::Data)
        .iter()
        .map(Sent::data)
        .filter(|(_, data, _)| data.opcode == Opcode::Error)
        .map(|(_, _, payload)| ErrorReport::decode(&payload).unwrap())
        .collect()
}

fn opcodes(sent: &[Sent]) -> Vec<Opcode> {
    only(sent, Kind::Data)
        .iter()
        .map(|sent| sent.data().1.opcode)
        .collect()
}

fn refused(code: ErrorCode) -> Result<(), DropReason> {
    Err(DropReason::Refused(code))
}

// spec: MR-MSG-002, MR-MSG-003
#[test]
fn packets_are_placed_in_whatever_order_they_come() {
    let mut puppet = acceptor();
    puppet.post_receive(0, 70, 50_000, 100);
    let text: Vec<u8> = (0..100).collect();
    for (psn, part) in [(0, 3), (1, 0), (2, 2), (3, 1)] {
        let offset = part * 25;
        let data = Data {
            offset,
            ..puppet.write(1, 0, 1_000, 100)
        };
        let payload = &text[offset as usize..][..25];
        puppet
            .data((psn % 4) as u8, psn / 4, data, payload)
            .unwrap();
        let data = Data {
            offset,
            ..Puppet::send_message(0, 0, 0, 0, 100)
        };
        assert!(puppet.completions().is_empty(), "not before all is there");
        puppet
            .data((psn % 4) as u8, psn / 4 + 1, data, payload)
            .unwrap();
    }
    assert_eq!(puppet.bytes(1_000, 100), text);
    assert_eq!(puppet.bytes(50_000, 100), text);
    let completions = puppet.completions();
    assert_eq!(
        (completions.len(), completions[0].id, completions[0].length),
        (1, 70, 100)
    );
    // Without bytes: one packet.
    puppet.post_receive(0, 71, 0, 0);
    puppet
        .data(0, 2, Puppet::send_message(0, 1, 1, 0, 0), b"")
        .unwrap();
    assert_eq!(puppet.completions()[1].id, 71);
}

// spec: MR-MSG-004
#[test]
fn a_message_is_complete_when_every_packet_is_acknowledged() {
    let mut puppet = Puppet::asked(|connection| connection.paths = 4);
    puppet.post_write(0, 1, 4 * 1024);
    let sent = only(&puppet.take(), Kind::Data);
    assert_eq!(sent.len(), 4);
    for (index, one) in sent.iter().enumerate() {
        puppet.now += 1_000;
        assert_eq!(puppet.completions().len(), 0, "{index}");
        puppet.ack_all(std::slice::from_ref(one));
        puppet.take();
    }
    assert_eq!(puppet.completions()[0].status, Status::Success);
    // A READ: not when its request is acknowledged, but when its bytes are there.
    let local = puppet.local(90_000, 4);
    let remote = RemoteAddress { address: 1, key: 2 };
    puppet
        .post(0, 2, Operation::Read { local, remote })
        .unwrap();
    let sent = only(&puppet.take(), Kind::Data);
    puppet.ack_all(&sent);
    assert_eq!(puppet.completions().len(), 1);
    let response = response(&sent[0], 4, Opcode::ReadResponse);
    puppet.data(0, 0, response, b"read").unwrap();
    assert_eq!(puppet.completions().len(), 2);
    assert_eq!(puppet.bytes(90_000, 4), b"read");
}

/// What answers a request.
fn response(request: &Sent, length: u32, opcode: Opcode) -> Data {
    Data {
        opcode,
        demand: Demand::NONE,
        stream: 0xffff,
        msn: 0,
        length,
        offset: 0,
        address: 0,
        key: request.data().1.immediate,
        immediate: 0,
    }
}

// spec: MR-MSG-005, MR-MSG-006
#[test]
fn completions_are_in_order_in_a_stream_and_free_between_streams() {
    // At the receiver.
    let mut puppet = acceptor();
    for id in 0..3 {
        puppet.post_receive(0, id, id * 10, 4);
        puppet.post_receive(1, 10 + id, 100 + id * 10, 4);
    }
    puppet
        .data(0, 0, Puppet::send_message(0, 2, 2, 0, 4), b"two!")
        .unwrap();
    puppet
        .data(0, 1, Puppet::send_message(0, 1, 1, 0, 4), b"one!")
        .unwrap();
    assert!(puppet.completions().is_empty());
    puppet
        .data(0, 2, Puppet::send_message(1, 0, 0, 0, 4), b"zero")
        .unwrap();
    assert_eq!(
        puppet.completions()[0].id,
        10,
        "another stream does not wait"
    );
    puppet
        .data(0, 3, Puppet::send_message(0, 0, 0, 0, 4), b"zero")
        .unwrap();
    let ids: Vec<_> = puppet.completions().iter().map(|done| done.id).collect();
    assert_eq!(ids, [10, 0, 1, 2]);
    assert_eq!(
        (puppet.bytes(0, 4), puppet.bytes(20, 4)),
        (&b"zero"[..], &b"two!"[..])
    );
    // At the sender.
    let mut puppet = Puppet::asked(|connection| connection.paths = 4);
    for id in 0..3 {
        puppet.post_write((id / 2) as u16, id, 100);
    }
    let sent = only(&puppet.take(), Kind::Data);
    let of = |stream, msn| {
        sent.iter()
            .find(|sent| (sent.data().1.stream, sent.data().1.msn) == (stream, msn))
            .unwrap()
            .clone()
    };
    puppet.ack_all(&[of(0, 1)]);
    assert!(puppet.completions().is_empty());
    puppet.ack_all(&[of(1, 0)]);
    puppet.ack_all(&[of(0, 0)]);
    let ids: Vec<_> = puppet.completions().iter().map(|done| done.id).collect();
    assert_eq!(ids, [2, 0, 1]);
}

// spec: MR-MSG-007
#[test]
fn packets_that_contradict_each_other_are_dropped() {
    let mut puppet = acceptor();
    puppet.post_receive(0, 1, 0, 100);
    let whole = Puppet::send_message(0, 0, 0, 0, 100);
    puppet.data(0, 0, whole, &[1; 50]).unwrap();
    let longer = Data {
        length: 101,
        offset: 50,
        ..whole
    };
    assert_eq!(
        puppet.data(0, 1, longer, &[2; 50]),
        Err(DropReason::InconsistentMessage)
    );
    let other = Data {
        opcode: Opcode::SendImm,
        offset: 50,
        ..whole
    };
    assert_eq!(
        puppet.data(0, 1, other, &[2; 50]),
        Err(DropReason::InconsistentMessage)
    );
    let more = Data {
        offset: 49,
        ..whole
    };
    assert_eq!(
        puppet.data(0, 1, more, &[2; 51]),
        Err(DropReason::InconsistentMessage)
    );
    assert_ne!(puppet.bytes(50, 1), [2]);
    puppet
        .data(
            0,
            1,
            Data {
                offset: 50,
                ..whole
            },
            &[3; 50],
        )
        .unwrap();
    assert_eq!(puppet.completions().len(), 1);
}

// spec: MR-MSG-008
#[test]
fn a_message_that_is_complete_takes_nothing_more() {
    let mut puppet = acceptor();
    let write = puppet.write(0, 0, 0, 4);
    puppet.data(0, 0, write, b"done").unwrap();
    assert_eq!(
        puppet.data(0, 1, write, b"more"),
        Err(DropReason::StaleMessage)
    );
    assert_eq!(puppet.bytes(0, 4), b"done");
    puppet
        .data(0, 1, Data { msn: 1, ..write }, b"next")
        .unwrap();
}

// spec: MR-MSG-009, MR-ERR-001
#[test]
fn open_messages_are_limited_at_both_ends() {
    let mut puppet = Puppet::asked_with(|_, _| (), |_| (), |offer| offer.open_messages = 2);
    for id in 0..4 {
        puppet.post_write(0, id, 100);
    }
    let sent = only(&puppet.take(), Kind::Data);
    assert_eq!(sent.len(), 2);
    puppet.ack_all(&sent[..1]);
    assert_eq!(only(&puppet.take(), Kind::Data).len(), 1);
    // A peer that goes beyond it: as if lost.
    let mut puppet = acceptor();
    for msn in 1..17 {
        let data = puppet.write(0, msn, 0, 4);
        puppet.data(0, msn - 1, data, b"four").unwrap();
    }
    puppet.take();
    let data = puppet.write(1, 5, 0, 4);
    assert_eq!(puppet.data(1, 0, data, b"four"), Err(DropReason::NoRoom));
    puppet.probe(1, 0).unwrap();
    assert_eq!(Puppet::last_block(&puppet.take(), 1).unwrap().cumulative, 0);
    // The one that was waited for makes room.
    let data = puppet.write(0, 0, 0, 4);
    puppet.data(0, 16, data, b"four").unwrap();
    let data = puppet.write(1, 5, 0, 4);
    puppet.data(1, 0, data, b"four").unwrap();
}

// spec: MR-MSG-010, MR-WIRE-018, MR-RNR-003
#[test]
fn a_withdrawn_packet_fills_its_psn_with_nothing() {
    let mut puppet = Puppet::asked(|connection| connection.paths = 1);
    puppet.post_send(0, 1, 3 * 1024);
    let first = only(&puppet.take(), Kind::Data);
    assert_eq!(first.len(), 3);
    let report = ErrorReport {
        code: ErrorCode::ReceiverNotReady,
        attempt: 0,
        stream: 0,
        msn: 0,
        token: 0,
    };
    puppet.now += 10_000;
    let start = puppet.now;
    puppet.error(0, 0, report).unwrap();
    // All three were refused: to the sender they are lost.
    puppet.post_write(1, 2, 100);
    let sent = only(&puppet.take(), Kind::Data);
    let newest = sent[0].header();
    assert_eq!(newest.psn, 3);
    puppet.now += 10_000;
    puppet
        .ack(AckBlock {
            newest_psn: 3,
            ..block(0, 0, newest.tsn, &[3])
        })
        .unwrap();
    let again = only(&puppet.take(), Kind::Data);
    let nops: Vec<_> = again
        .iter()
        .map(Sent::data)
        .filter(|(_, data, _)| data.opcode == Opcode::Nop)
        .collect();
    assert_eq!(
        nops.iter()
            .map(|(header, ..)| header.psn)
            .collect::<Vec<_>>(),
        [0, 1, 2]
    );
    for (_, data, payload) in &nops {
        assert_eq!(
            (data.stream, data.msn, data.length, payload.len()),
            (0xffff, 0, 0, 0)
        );
    }
    // After the pause: the next attempt, the same MSN and RSN.
    let before = again
        .iter()
        .filter(|sent| sent.data().1.opcode == Opcode::Send)
        .count();
    assert_eq!(before, 0);
    puppet.now += 10_000;
    puppet.ack_all(&again);
    let sent = puppet.run(200_000);
    let second: Vec<_> = only(&sent, Kind::Data)
        .into_iter()
        .filter(|sent| sent.data().1.opcode == Opcode::Send)
        .collect();
    assert_eq!(second[0].at - start, 100_000);
    let (_, data, _) = second[0].data();
    assert_eq!(
        (data.msn, SendAddress::from_bits(data.address)),
        (0, SendAddress { rsn: 0, attempt: 1 })
    );
    assert_eq!(second.len(), 3);
}

// spec: MR-MSG-011
#[test]
fn nothing_is_always_accepted() {
    let mut puppet = acceptor();
    let nop = Data {
        opcode: Opcode::Nop,
        length: 0,
        stream: 0xffff,
        address: 0,
        key: 0,
        ..puppet.write(0, 0, 0, 0)
    };
    puppet.data(0, 0, nop, b"").unwrap();
    puppet.data(0, 2, nop, b"").unwrap();
    puppet.probe(0, 0).unwrap();
    let told = Puppet::last_block(&puppet.take(), 0).unwrap();
    assert_eq!((told.cumulative, told.sack[0]), (1, 0b10));
}

// spec: MR-MSG-012, MR-MSG-013
#[test]
fn a_write_with_immediate_waits_for_a_buffer_alone() {
    let mut puppet = acceptor();
    let write = Data {
        opcode: Opcode::WriteImm,
        immediate: 5,
        ..puppet.write(0, 0, 0, 4)
    };
    let header = Header {
        flags: Flags::SOLICITED,
        ..puppet.header(Kind::Data)
    };
    puppet.data_as(header, write, b"imm!").unwrap();
    assert_eq!(puppet.bytes(0, 4), b"imm!");
    assert!(puppet.completions().is_empty());
    // The stream goes on meanwhile.
    let plain = puppet.write(0, 1, 8, 4);
    puppet
        .data_as(
            Header {
                psn: 1,
                tsn: 1,
                flags: Flags::NONE,
                ..header
            },
            plain,
            b"next",
        )
        .unwrap();
    let sent = puppet.take();
    assert_eq!(Puppet::last_block(&sent, 0).unwrap().cumulative, 2);
    assert!(reports(&sent).is_empty());
    puppet
        .data_as(
            Header {
                psn: 2,
                tsn: 2,
                flags: Flags::NONE,
                ..header
            },
            Data {
                msn: 2,
                immediate: 6,
                ..write
            },
            b"imm2",
        )
        .unwrap();
    let before = puppet.bytes(60_000, 8).to_vec();
    puppet.post_receive(0, 70, 60_000, 8);
    puppet.post_receive(0, 71, 60_000, 8);
    let told: Vec<_> = puppet
        .completions()
        .iter()
        .map(|done| {
            (
                done.id,
                done.immediate,
                done.length,
                done.solicited,
                done.kind,
            )
        })
        .collect();
    let kind = CompletionKind::ReceiveWriteImmediate;
    assert_eq!(
        told,
        [(70, Some(5), 4, true, kind), (71, Some(6), 4, false, kind)]
    );
    assert_eq!(puppet.bytes(60_000, 8), before, "the buffer is not touched");
}

// spec: MR-MSG-014
#[test]
fn a_fence_waits_for_reads() {
    let mut puppet = Puppet::asked(|_| ());
    let local = puppet.local(90_000, 4);
    let remote = RemoteAddress { address: 0, key: 1 };
    puppet
        .post(0, 1, Operation::Read { local, remote })
        .unwrap();
    let inline = Operation::Write {
        local: Source::Inline(b"after"),
        remote,
        immediate: None,
    };
    let flags = WorkFlags {
        fence: true,
        ..WorkFlags::default()
    };
    puppet.post_with(0, 2, inline, flags).unwrap();
    puppet.post_with(1, 3, inline, flags).unwrap();
    let sent = only(&puppet.take(), Kind::Data);
    assert_eq!(
        opcodes(&sent),
        [Opcode::ReadRequest, Opcode::Write],
        "another stream has no READ"
    );
    puppet.ack_all(&sent);
    assert!(only(&puppet.take(), Kind::Data).is_empty());
    puppet
        .data(0, 0, response(&sent[0], 4, Opcode::ReadResponse), b"data")
        .unwrap();
    assert_eq!(opcodes(&puppet.take()), [Opcode::Write]);
}

// spec: MR-MSG-015
#[test]
fn silence_is_success() {
    let mut puppet = Puppet::asked(|_| ());
    let remote = RemoteAddress { address: 0, key: 1 };
    let inline = Operation::Write {
        local: Source::Inline(b"x"),
        remote,
        immediate: None,
    };
    let flags = WorkFlags {
        signaled: false,
        ..WorkFlags::default()
    };
    puppet.post_with(0, 1, inline, flags).unwrap();
    puppet.post_with(0, 2, inline, flags).unwrap();
    let sent = only(&puppet.take(), Kind::Data);
    puppet.ack_all(&sent[..1]);
    assert!(puppet.completions().is_empty());
    let report = ErrorReport {
        code: ErrorCode::AccessDenied,
        attempt: 0,
        stream: 0,
        msn: 1,
        token: 0,
    };
    puppet.error(0, 0, report).unwrap();
    let done = puppet.completions();
    assert_eq!(
        (done.len(), done[0].id, done[0].status),
        (1, 2, Status::RemoteAccessDenied)
    );
}

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

fn request(puppet: &Puppet, opcode: Opcode, msn: u32, offset: u64, length: u32) -> Data {
    Data {
        opcode,
        immediate: 1 << 31 | msn,
        ..puppet.write(0, msn, offset, length)
    }
}

// spec: MR-READ-001, MR-READ-002, MR-READ-003
#[test]
fn requests_execute_once_and_in_their_turn() {
    let mut puppet = acceptor();
    puppet.memory.0[0][..8].copy_from_slice(&40u64.to_ne_bytes());
    let word = |puppet: &Puppet| u64::from_ne_bytes(puppet.bytes(0, 8).try_into().unwrap());
    let atomic = |puppet: &Puppet, msn| request(puppet, Opcode::AtomicRequest, msn, 0, 8);
    let add = AtomicRequest::FetchAdd { add: u64::MAX }.encode();
    let data = atomic(&puppet, 1);
    puppet.data(0, 1, data, &add).unwrap();
    let data = request(&puppet, Opcode::ReadRequest, 2, 0, 8);
    puppet.data(0, 2, data, b"").unwrap();
    assert!(
        opcodes(&puppet.take()).is_empty() && word(&puppet) == 40,
        "not yet its turn"
    );
    let data = puppet.write(0, 0, 16, 4);
    puppet.data(0, 0, data, b"now!").unwrap();
    assert_eq!(word(&puppet), 39);
    let sent = only(&puppet.take(), Kind::Data);
    assert_eq!(
        opcodes(&sent),
        [Opcode::AtomicResponse, Opcode::ReadResponse]
    );
    let (_, old, payload) = sent[0].data();
    assert_eq!(
        (old.key, old.stream, payload),
        (1 << 31 | 1, 0xffff, 40u64.to_be_bytes().to_vec())
    );
    assert_eq!(sent[1].data().2, 39u64.to_ne_bytes());
    // The same packet again, and the same request in another packet: not executed again.
    let data = atomic(&puppet, 1);
    assert_eq!(puppet.data(0, 1, data, &add), Err(DropReason::Duplicate));
    assert_eq!(puppet.data(0, 3, data, &add), Err(DropReason::StaleMessage));
    assert_eq!(word(&puppet), 39);
    for (msn, compare, expected) in [(3, 5, 39), (4, 39, 1_000)] {
        let swap = AtomicRequest::CompareSwap {
            compare,
            swap: 1_000,
        }
        .encode();
        let data = atomic(&puppet, msn);
        puppet.data(0, msn, data, &swap).unwrap();
        assert_eq!(word(&puppet), expected);
    }
    let data = Data {
        address: BASE + 4,
        ..atomic(&puppet, 5)
    };
    assert_eq!(
        puppet.data(0, 5, data, &add),
        refused(ErrorCode::InvalidRequest)
    );
}

// spec: MR-READ-004, MR-READ-006
#[test]
fn a_response_fits_its_request_or_has_no_effect() {
    let mut puppet = Puppet::asked(|_| ());
    let local = puppet.local(90_000, 4);
    let remote = RemoteAddress { address: 0, key: 1 };
    puppet
        .post(0, 1, Operation::Read { local, remote })
        .unwrap();
    let sent = only(&puppet.take(), Kind::Data);
    let before = puppet.bytes(90_000, 8).to_vec();
    let good = response(&sent[0], 4, Opcode::ReadResponse);
    puppet.ack_all(&sent);
    let longer = Data { length: 8, ..good };
    assert_eq!(
        puppet.data(0, 0, longer, b"too long"),
        Err(DropReason::InconsistentMessage)
    );
    let atomic = Data {
        length: 8,
        opcode: Opcode::AtomicResponse,
        ..good
    };
    assert_eq!(
        puppet.data(0, 0, atomic, b"too long"),
        Err(DropReason::InconsistentMessage)
    );
    // No such token: nothing happens, but the packet is accepted.
    puppet
        .data(
            0,
            0,
            Data {
                key: good.key ^ 1 << 20,
                ..good
            },
            b"evil",
        )
        .unwrap();
    assert_eq!(puppet.bytes(90_000, 8), before);
    puppet.data(0, 1, good, b"data").unwrap();
    assert_eq!(puppet.bytes(90_000, 4), b"data");
    assert_eq!(puppet.completions().len(), 1);
    puppet.data(0, 2, good, b"evil").unwrap();
    assert_eq!(puppet.bytes(90_000, 4), b"data", "it is over");
    puppet.probe(0, 0).unwrap();
    assert_eq!(Puppet::last_block(&puppet.take(), 0).unwrap().cumulative, 3);
}

// spec: MR-READ-005
#[test]
fn open_responses_are_limited_at_both_ends() {
    let mut puppet = Puppet::asked_with(|_, _| (), |_| (), |offer| offer.open_responses = 2);
    let remote = RemoteAddress { address: 0, key: 1 };
    for id in 0..4 {
        let local = puppet.local(90_000 + id * 8, 4);
        puppet
            .post(0, id, Operation::Read { local, remote })
            .unwrap();
    }
    let sent = only(&puppet.take(), Kind::Data);
    assert_eq!(sent.len(), 2);
    puppet.ack_all(&sent);
    assert!(only(&puppet.take(), Kind::Data).is_empty());
    puppet
        .data(0, 0, response(&sent[0], 4, Opcode::ReadResponse), b"data")
        .unwrap();
    assert_eq!(only(&puppet.take(), Kind::Data).len(), 1);
    // A responder whose sixteen places are taken lets the stream wait.
    let mut puppet = acceptor();
    let mut answers = vec![];
    for msn in 0..20 {
        let data = request(&puppet, Opcode::ReadRequest, msn, 0, 4);
        puppet.data(0, msn, data, b"").unwrap();
        answers.extend(only(&puppet.take(), Kind::Data));
    }
    assert!(answers.len() <= 16, "{}", answers.len());
    for _ in 0..20 {
        puppet.now += 10_000;
        puppet.ack_all(&answers);
        answers.extend(only(&puppet.run(100), Kind::Data));
    }
    let tokens: std::collections::BTreeSet<_> =
        answers.iter().map(|sent| sent.data().1.key).collect();
    assert_eq!(tokens.len(), 20);
}

// spec: MR-READ-007
#[test]
fn rights_are_looked_at_when_a_response_leaves() {
    let mut puppet = acceptor();
    let data = request(&puppet, Opcode::ReadRequest, 1, 0, 4);
    puppet.data(0, 1, data, b"").unwrap();
    let data = request(&puppet, Opcode::ReadRequest, 0, 0, 4);
    let index = puppet.region.index;
    puppet.host.deregister(index).unwrap();
    assert_eq!(
        puppet.data(0, 0, data, b""),
        refused(ErrorCode::InvalidKey),
        "when it comes"
    );
    // When it is executed.
    let mut puppet = acceptor();
    let data = request(&puppet, Opcode::ReadRequest, 1, 0, 4);
    puppet.data(0, 1, data, b"").unwrap();
    puppet.host.deregister(index).unwrap();
    let empty = Data {
        length: 0,
        ..puppet.write(0, 0, 0, 0)
    };
    puppet.data(0, 0, empty, b"").unwrap();
    let told = reports(&puppet.take());
    assert_eq!(
        (told[0].code, told[0].msn, told[0].token),
        (ErrorCode::InvalidKey, 1, 1 << 31 | 1)
    );
    // When it is sent again.
    let mut puppet = acceptor();
    let data = request(&puppet, Opcode::ReadRequest, 0, 0, 2 * 1024);
    puppet.data(0, 0, data, b"").unwrap();
    let sent = only(&puppet.take(), Kind::Data);
    assert_eq!(opcodes(&sent), [Opcode::ReadResponse; 2]);
    puppet.host.deregister(index).unwrap();
    let header = sent[0].header();
    let (now, theirs) = (puppet.now + 10_000, header.path);
    puppet.now = now;
    // A probe's echo proves the loss of the first.
    let probe = only(&puppet.run(1_000_000), Kind::Probe)
        .into_iter()
        .find(|sent| sent.header().path == theirs)
        .unwrap();
    puppet
        .ack(block(theirs, 0, probe.header().tsn, &[]))
        .unwrap();
    let sent = puppet.take();
    assert!(
        opcodes(&sent).contains(&Opcode::Nop) && !opcodes(&sent).contains(&Opcode::ReadResponse),
        "{:?}",
        opcodes(&sent)
    );
    assert_eq!(reports(&sent)[0].code, ErrorCode::MemoryFault);
}

// spec: MR-READ-008, MR-MEM-006
#[test]
fn nothing_needs_no_region() {
    let mut puppet = acceptor();
    let read = Data {
        key: 0,
        address: u64::MAX,
        ..request(&puppet, Opcode::ReadRequest, 0, 0, 0)
    };
    puppet.data(0, 0, read, b"").unwrap();
    let write = Data {
        key: 0,
        address: u64::MAX,
        ..puppet.write(0, 1, 0, 0)
    };
    puppet.data(0, 1, write, b"").unwrap();
    let sent = puppet.take();
    assert!(opcodes(&sent).is_empty());
    let nowhere = LocalSlice {
        region: RegionIndex(7),
        offset: 9,
        length: 0,
    };
    let remote = RemoteAddress { address: 0, key: 0 };
    puppet
        .post(
            1,
            1,
            Operation::Read {
                local: nowhere,
                remote,
            },
        )
        .unwrap();
    puppet
        .post(
            1,
            2,
            Operation::Write {
                local: Source::Region(nowhere),
                remote,
                immediate: None,
            },
        )
        .unwrap();
    let sent = only(&puppet.take(), Kind::Data);
    puppet.ack_all(&sent);
    let told: Vec<_> = puppet
        .completions()
        .iter()
        .map(|done| (done.id, done.status))
        .collect();
    assert_eq!(told, [(1, Status::Success), (2, Status::Success)]);
}

// spec: MR-MEM-002, MR-MEM-003, MR-ERR-002
#[test]
fn memory_is_touched_only_where_a_key_allows() {
    let rights = [
        (Access::REMOTE_WRITE, Opcode::Write),
        (Access::REMOTE_READ, Opcode::ReadRequest),
        (Access::REMOTE_ATOMIC, Opcode::AtomicRequest),
    ];
    for (granted, _) in rights {
        for (needed, opcode) in rights {
            let mut puppet = acceptor();
            let region = puppet.host.register(BASE * 16, 64, granted).unwrap();
            puppet.memory.0.push(vec![1; 64]);
            let payload = match opcode {
                Opcode::Write => vec![9; 8],
                Opcode::AtomicRequest => AtomicRequest::FetchAdd { add: 1 }.encode().to_vec(),
                _ => vec![],
            };
            let data = Data {
                key: region.key,
                address: BASE * 16,
                ..request(&puppet, opcode, 0, 0, 8)
            };
            let data = if opcode == Opcode::Write {
                Data {
                    immediate: 0,
                    ..data
                }
            } else {
                data
            };
            let result = puppet.data(0, 0, data, &payload);
            if granted == needed {
                assert_eq!(result, Ok(()));
            } else {
                assert_eq!(result, refused(ErrorCode::AccessDenied));
                assert_eq!(puppet.memory.0[1], [1; 64]);
            }
        }
    }
    // One byte outside, on either side; and far outside.
    for (address, length) in [
        (BASE - 1, 8),
        (BASE + REGION as u64 - 7, 8),
        (u64::MAX - 3, 8),
        (0, 8),
    ] {
        let mut puppet = acceptor();
        let before = puppet.memory.0[0].clone();
        let data = Data {
            address,
            ..puppet.write(0, 0, 0, length)
        };
        assert_eq!(
            puppet.data(0, 0, data, b"evil"),
            refused(ErrorCode::OutOfBounds),
            "{address:#x}"
        );
        assert!(puppet.memory.0[0] == before);
        assert_eq!(reports(&puppet.take())[0].code, ErrorCode::OutOfBounds);
    }
}

// spec: MR-MEM-001
#[test]
fn an_old_key_opens_nothing() {
    let mut puppet = acceptor();
    let old = puppet.region;
    puppet.host.deregister(old.index).unwrap();
    let new = puppet
        .host
        .register(BASE, REGION as u64, Access::ALL)
        .unwrap();
    assert_eq!(old.index, new.index);
    assert!(old.key != 0 && new.key != 0 && old.key != new.key);
    let data = puppet.write(0, 0, 0, 4);
    assert_eq!(
        puppet.data(0, 0, data, b"evil"),
        refused(ErrorCode::InvalidKey)
    );
}

// spec: MR-MEM-004
#[test]
fn local_places_are_looked_at_when_they_are_posted() {
    let mut puppet = Puppet::asked(|_| ());
    let read_only = puppet.host.register(0, 100, Access::LOCAL_READ).unwrap();
    let remote = RemoteAddress { address: 0, key: 1 };
    let slice = |offset, length| LocalSlice {
        region: read_only.index,
        offset,
        length,
    };
    let write = |local| Operation::Write {
        local: Source::Region(local),
        remote,
        immediate: None,
    };
    assert!(matches!(
        puppet.post(0, 1, write(slice(1, 100))),
        Err(PostError::Local(_))
    ));
    assert!(matches!(
        puppet.post(0, 1, write(slice(u64::MAX, 2))),
        Err(PostError::Local(_))
    ));
    assert_eq!(puppet.post(0, 1, write(slice(0, 100))), Ok(()));
    assert!(matches!(
        puppet.post(
            0,
            2,
            Operation::Read {
                local: slice(0, 8),
                remote
            }
        ),
        Err(PostError::Local(_))
    ));
    let (now, queue) = (puppet.at(), ReceiveQueue::Stream(puppet.handle(), 0));
    let receive = ReceiveRequest {
        id: 1,
        local: slice(0, 8),
    };
    assert!(matches!(
        puppet.host.post_receive(now, queue, &receive),
        Err(PostError::Local(_))
    ));
}

// spec: MR-MEM-005
#[test]
fn a_message_whose_region_is_gone_fails_here_and_there() {
    let mut puppet = Puppet::asked(|connection| connection.paths = 1);
    puppet.post_write(0, 1, 20 * 1024);
    let sent = only(&puppet.take(), Kind::Data);
    let index = puppet.region.index;
    puppet.host.deregister(index).unwrap();
    puppet.ack_all(&sent);
    let sent = puppet.take();
    assert!(
        !opcodes(&sent).contains(&Opcode::Write),
        "{:?}",
        opcodes(&sent)
    );
    let told = reports(&sent);
    assert_eq!(
        (told[0].code, told[0].stream, told[0].msn),
        (ErrorCode::StreamError, 0, 0)
    );
    assert_eq!(puppet.completions()[0].status, Status::LocalAccess);
    assert!(puppet.events.iter().any(|event| matches!(
        event,
        Event::StreamFailed {
            stream: 0,
            by_peer: false,
            ..
        }
    )));
}

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
    let mut init = Init {
        source: 9,
        ..puppet.init(None)
    };
    puppet.send(&Packet::Init(init)).unwrap();
    let sent = puppet.take();
    let Packet::Retry(retry) = sent[0].packet() else {
        panic!()
    };
    init.cookie = Some(retry.cookie);
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

// spec: MR-MSG-002, MR-MSG-003, MR-PATH-007
#[test]
fn a_wire_that_reorders_and_doubles_changes_nothing() {
    let mut pair = Pair::connected(|_, _, connection| connection.reorder_tolerance = 8);
    let mut state = 7u64;
    pair.filter = Box::new(move |seen| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if is_data(&seen.header) && state >> 40 & 3 == 0 {
            Fate::Delay(state >> 50 & 0x7ff)
        } else {
            Fate::Deliver
        }
    });
    let local = pair.local(0, 0, 500_000);
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
    pair.run_until_completions(0, 1);
    assert!(pair.sides[1].memory.0[0][..500_000] == pair.sides[0].memory.0[0][..500_000]);
}

// spec: MR-MEM-005
#[test]
fn a_message_that_waits_for_its_next_attempt_notices_that_its_region_is_gone() {
    let mut puppet = Puppet::asked(|connection| connection.paths = 1);
    puppet.post_send(0, 1, 100);
    let sent = only(&puppet.take(), Kind::Data);
    let report = ErrorReport {
        code: ErrorCode::ReceiverNotReady,
        attempt: 0,
        stream: 0,
        msn: 0,
        token: 0,
    };
    puppet.now += 10_000;
    puppet.error(0, 0, report).unwrap();
    puppet.ack_all(&sent);
    let index = puppet.region.index;
    puppet.host.deregister(index).unwrap();
    let remote = RemoteAddress { address: 0, key: 1 };
    let inline = Operation::Write {
        local: Source::Inline(b"x"),
        remote,
        immediate: None,
    };
    puppet.post(1, 2, inline).unwrap();
    let other = only(&puppet.take(), Kind::Data);
    puppet.now += 10_000;
    puppet.ack_all(&other);
    let sent = only(&puppet.run(200_000), Kind::Data);
    let wrong = sent.iter().any(|sent| sent.data().1.opcode == Opcode::Send);
    assert!(!wrong, "sent from a region that is gone");
}

// spec: MR-MSG-002, MR-MSG-007, MR-PATH-007, MR-MEM-001, MR-MEM-002
#[test]
fn the_later_packets_of_a_write_are_checked_like_the_first() {
    let begun = || {
        let mut puppet = acceptor();
        let part = puppet.write(0, 0, 0, 400);
        for psn in 0..2 {
            let data = Data {
                offset: psn * 100,
                ..part
            };
            puppet.data(0, psn, data, &[1; 100]).unwrap();
        }
        puppet.take();
        let at = move |offset| Data { offset, ..part };
        let before = puppet.memory.0[0].clone();
        (puppet, at, before)
    };
    let (mut puppet, at, before) = begun();
    let result = puppet.data(0, 2, at(301), &[2; 100]);
    assert!(matches!(
        result,
        Err(DropReason::Malformed(DecodeError::Bounds { .. }))
    ));
    assert_eq!(
        puppet.data(0, 2, at(0), &[2; 201]),
        Err(DropReason::InconsistentMessage)
    );
    assert_eq!(
        puppet.data(0, 1, at(200), &[2; 100]),
        Err(DropReason::Duplicate)
    );
    assert_eq!(
        puppet.data(0, 300, at(200), &[2; 100]),
        Err(DropReason::BeyondWindow)
    );
    assert_eq!(
        puppet.data(9, 2, at(200), &[2; 100]),
        Err(DropReason::UnknownPath)
    );
    let header = Header {
        generation: 1,
        psn: 2,
        ..puppet.header(Kind::Data)
    };
    assert_eq!(
        puppet.data_as(header, at(200), &[2; 100]),
        Err(DropReason::WrongGeneration)
    );
    assert!(puppet.memory.0[0] == before);
    puppet.data(0, 2, at(200), &[3; 100]).unwrap();
    puppet.data(3, 0, at(300), &[3; 100]).unwrap();
    assert_eq!(puppet.bytes(200, 200), [3; 200]);
    // The region is gone.
    let (mut puppet, at, before) = begun();
    let index = puppet.region.index;
    puppet.host.deregister(index).unwrap();
    let again = puppet
        .host
        .register(BASE, REGION as u64, Access::ALL)
        .unwrap();
    assert_eq!(again.index, index);
    assert_eq!(
        puppet.data(0, 2, at(200), &[2; 100]),
        refused(ErrorCode::InvalidKey)
    );
    assert!(puppet.memory.0[0] == before);
    // The stream has failed.
    let (mut puppet, at, before) = begun();
    let report = ErrorReport {
        code: ErrorCode::StreamError,
        attempt: 0,
        stream: 0,
        msn: 0,
        token: 0,
    };
    puppet.error(1, 0, report).unwrap();
    assert_eq!(
        puppet.data(0, 2, at(200), &[2; 100]),
        refused(ErrorCode::StreamError)
    );
    assert!(puppet.memory.0[0] == before);
}
