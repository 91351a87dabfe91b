//! What is predicted of packets to come: every one is checked all the same.

use metaroce_core::wire::*;
use metaroce_core::*;

use crate::puppet::*;
use crate::words::*;

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

// spec: MR-MSG-007
#[test]
fn a_whole_message_that_contradicts_its_earlier_packets_is_dropped() {
    let mut puppet = Puppet::asking(|_, _| ());
    let begun = Data {
        length: 100,
        ..puppet.write(0, 0, 0, 4)
    };
    puppet.data(0, 0, begun, b"four").unwrap();
    let whole = puppet.write(0, 0, 0, 4);
    let result = puppet.data(0, 1, whole, b"four");
    assert_eq!(result, Err(DropReason::InconsistentMessage), "accepted");
}
