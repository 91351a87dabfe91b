//! Keys, bounds, rights, regions that are gone.

use metaroce_core::wire::*;
use metaroce_core::work::PostError;
use metaroce_core::*;

use crate::puppet::*;
use crate::words::*;

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
    let queue = ReceiveQueue::Stream(puppet.handle(), 0);
    let receive = ReceiveRequest {
        id: 1,
        local: slice(0, 8),
    };
    assert!(matches!(
        puppet.host.post_receive(queue, &receive),
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

// spec: MR-MEM-007
#[test]
fn a_posted_buffer_does_not_become_another_region_s() {
    let mut puppet = Puppet::asking(|_, _| ());
    let old = puppet.host.register(0, 64, Access::ALL).unwrap();
    puppet.memory.0.push(vec![0; 64]);
    let local = LocalSlice {
        region: old.index,
        offset: 0,
        length: 4,
    };
    let queue = ReceiveQueue::Stream(puppet.handle(), 0);
    let receive = ReceiveRequest { id: 1, local };
    puppet.host.post_receive(queue, &receive).unwrap();
    puppet.host.deregister(old.index).unwrap();
    let new = puppet.host.register(0, 64, Access::LOCAL_READ).unwrap();
    assert_eq!(new.index, old.index);
    let _ = puppet.data(0, 0, Puppet::send_message(0, 0, 0, 0, 4), b"evil");
    assert!(
        puppet.memory.0[1][..4] == [0; 4],
        "placed in another region"
    );
}

// spec: MR-MEM-007
#[test]
fn a_message_does_not_go_on_from_another_region() {
    let mut puppet = Puppet::asked(|connection| connection.paths = 1);
    let old = puppet.host.register(0, 4096, Access::ALL).unwrap();
    puppet.memory.0.push(vec![1; 4096]);
    let local = LocalSlice {
        region: old.index,
        offset: 0,
        length: 1024,
    };
    let remote = RemoteAddress { address: 0, key: 1 };
    let write = Operation::Write {
        local: Source::Region(local),
        remote,
        immediate: None,
    };
    puppet.post(0, 1, write).unwrap();
    puppet.host.deregister(old.index).unwrap();
    puppet.host.register(0, 4096, Access::LOCAL_READ).unwrap();
    puppet.memory.0[1].fill(0x55);
    let sent = only(&puppet.take(), Kind::Data);
    let secret = sent.iter().any(|sent| sent.data().2.contains(&0x55));
    assert!(!secret, "sent from another region");
}
