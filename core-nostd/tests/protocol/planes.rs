//! Planes whose lines are busy.

use metaroce_core::wire::*;
use metaroce_core::*;

use crate::puppet::*;

/// Eight paths over two planes, without congestion control; all that belongs to setting up is done.
fn two_planes() -> Puppet {
    let mut puppet = Puppet::asked_with(
        |endpoint, _| endpoint.planes = 2,
        |connection| {
            connection.paths = 8;
            connection.controller = config::ControllerChoice::None;
        },
        |offer| *offer = parameters(8, 2),
    );
    puppet.take();
    puppet.run(100_000);
    puppet
}

// spec: MR-PATH-023
#[test]
fn data_goes_where_a_line_is_free() {
    let mut puppet = two_planes();
    let planes = |sent: &[Sent]| -> Vec<u8> {
        let of = |sent: &Sent| sent.transmit.plane;
        only(sent, Kind::Data).iter().map(of).collect()
    };
    puppet.host.set_busy_planes(0b01);
    puppet.post_write(0, 1, 20 * 1024);
    let sent = puppet.take();
    assert_eq!(planes(&sent), [1; 20]);
    // Both busy: nothing. Then one is free, and nothing else happens.
    puppet.host.set_busy_planes(0b11);
    puppet.post_write(0, 2, 20 * 1024);
    assert_eq!(planes(&puppet.take()), [0; 0]);
    puppet.host.set_busy_planes(0b10);
    let second = puppet.take();
    assert_eq!(planes(&second), [0; 20]);
    // What was lost keeps to its path, and so to its plane.
    let path = sent[0].header().path;
    let newest = sent
        .iter()
        .filter(|sent| sent.header().path == path)
        .count() as u32;
    let lost = AckBlock {
        newest_psn: newest - 1,
        ..block(
            path,
            0,
            sent.iter()
                .rfind(|sent| sent.header().path == path)
                .unwrap()
                .header()
                .tsn,
            &[newest - 1],
        )
    };
    puppet.host.set_busy_planes(0b10);
    puppet.ack(lost).unwrap();
    assert_eq!(planes(&puppet.take()), [0; 0]);
    puppet.host.set_busy_planes(0b00);
    let again = puppet.take();
    assert_eq!(planes(&again), vec![1; newest as usize - 1]);
}

// spec: MR-PATH-023, MR-PATH-018
#[test]
fn paths_whose_line_is_busy_keep_their_turn() {
    let mut puppet = two_planes();
    let mut carried = [0; 8];
    for id in 0..800 {
        let busy = if id % 4 == 3 { 0b10 } else { 0b01 };
        puppet.host.set_busy_planes(busy);
        puppet.post_write(0, id, 1024);
        let sent = only(&puppet.take(), Kind::Data);
        assert_eq!(sent.len(), 1);
        carried[usize::from(sent[0].header().path)] += 1;
        puppet.now += 1_000;
        puppet.ack_all(&sent);
        puppet.take();
    }
    for plane in 0..2 {
        let paths = || carried.iter().skip(plane).step_by(2);
        let (least, most) = (paths().min().unwrap(), paths().max().unwrap());
        assert!(most - least <= 2, "{carried:?}");
    }
}
