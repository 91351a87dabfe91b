//! READ and atomics.

use metaroce_core::wire::*;
use metaroce_core::*;

use crate::puppet::*;
use crate::words::*;

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
