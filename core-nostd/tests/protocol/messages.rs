//! Messages.

use metaroce_core::wire::*;
use metaroce_core::*;

use crate::puppet::*;
use crate::support::{Fate, Pair, is_data};
use crate::words::*;

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

// spec: MR-TIME-001
#[test]
fn the_wait_for_the_peer_begins_when_something_is_outstanding() {
    let mut puppet = Puppet::asked(|connection| {
        connection.paths = 1;
        connection.run = 16;
    });
    puppet.post_write(0, 1, 100 * 1024);
    let sent = only(&puppet.take(), Kind::Data);
    assert_eq!(sent.len(), 8, "the window, within a run");
    puppet.now += 10_000;
    puppet.ack_all(&sent);
    // Nobody polls for longer than the failure timeout; then the run goes on.
    puppet.now += 3_000_000_000;
    assert!(!only(&puppet.take(), Kind::Data).is_empty());
    puppet.run(1_000_000_000);
    assert!(
        !puppet
            .events
            .iter()
            .any(|event| matches!(event, Event::Closed { .. })),
        "{:?}",
        puppet.events
    );
}
