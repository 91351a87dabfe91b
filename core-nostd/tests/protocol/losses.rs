//! Losses and round-trip times.

use metaroce_core::wire::*;
use metaroce_core::*;

use crate::puppet::*;
use crate::words::*;

// spec: MR-LOSS-001, MR-LOSS-003, MR-LOSS-005, MR-WIRE-019
#[test]
fn a_gap_is_a_loss_and_is_sent_again_first() {
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 20 * 1024);
    let sent = only(&puppet.take(), Kind::Data);
    assert_eq!(sent.len(), 8);
    for (index, sent) in sent.iter().enumerate() {
        let left = 20 * 1024 - (index as u64 + 1) * 1024;
        assert_eq!(sent.data().1.demand, Demand::from_bytes(left));
    }
    // The bytes change meanwhile: nothing was copied.
    puppet.memory.0[0][1024] ^= 0xff;
    let changed = puppet.memory.0[0][1024];
    puppet.ack(block(0, 1, 3, &[2])).unwrap();
    let again = only(&puppet.take(), Kind::Data);
    let (header, data, payload) = again[0].data();
    assert_eq!((header.psn, header.tsn, header.path), (1, 9, 0));
    assert!(header.flags.contains(Flags::RETRANSMISSION));
    assert_eq!((data.offset, payload[0]), (1024, changed));
    assert!(
        again[1..].iter().all(|sent| sent.header().psn >= 8),
        "then what is new"
    );
    // Lost again: the same rule.
    puppet.ack(block(0, 1, 10, &[2, 3, 4, 5, 6, 7, 8])).unwrap();
    let (header, ..) = only(&puppet.take(), Kind::Data)[0].data();
    assert_eq!(header.psn, 1);
    assert_eq!(puppet.path(0).losses, 2);
}

// spec: MR-LOSS-001
#[test]
fn a_tolerance_waits_for_that_many_later_packets() {
    let mut puppet = single(|connection| connection.reorder_tolerance = 3);
    puppet.post_write(0, 1, 8 * 1024);
    puppet.take();
    puppet.ack(block(0, 0, 4, &[3])).unwrap();
    assert_eq!(puppet.path(0).losses, 0);
    puppet.ack(block(0, 0, 5, &[3, 4])).unwrap();
    assert_eq!(puppet.path(0).losses, 1);
}

// spec: MR-LOSS-002, MR-PROBE-001, MR-PROBE-003
#[test]
fn time_alone_loses_nothing_and_probes_are_backed_off() {
    let mut puppet = single(|connection| connection.failure_timeout = Duration::from_millis(1_500));
    puppet.post_write(0, 1, 3 * 1024);
    puppet.take();
    let start = puppet.now;
    let sent = puppet.run(1_400_000_000);
    assert!(
        sent.iter().all(|sent| sent.is(Kind::Probe)),
        "no packet is sent again"
    );
    let times: Vec<_> = sent.iter().map(|sent| sent.at - start).collect();
    // The one sample was 10 us: srtt 10 us, rttvar 5 us, hence 30 us; the first two are not backed off.
    assert_eq!(times[..5], [30_000, 60_000, 90_000, 150_000, 270_000]);
    assert!(
        times
            .windows(2)
            .all(|pair| pair[1] - pair[0] <= 100_000_000)
    );
    assert_eq!(puppet.path(0).losses, 0);
    let tsns: Vec<_> = sent.iter().take(3).map(|sent| sent.header().tsn).collect();
    assert_eq!(tsns, [4, 5, 6]);
    // The echo of a probe proves the loss of what was sent before it.
    puppet.ack(block(0, 1, 4, &[])).unwrap();
    assert_eq!(puppet.path(0).losses, 2);
}

// spec: MR-LOSS-004
#[test]
fn what_arrived_after_all_is_not_sent_again() {
    let mut puppet =
        single(|connection| connection.controller = config::ControllerChoice::FixedRate(10));
    puppet.post_write(0, 1, 5 * 1024);
    // 10 Mbit/s: a packet takes about 0.9 ms; catching up gives a few at once.
    let sent = only(&puppet.run(1), Kind::Data);
    let count = sent.len() as u32;
    assert!((2..5).contains(&count), "{count}");
    puppet
        .ack(block(0, 0, count, &(1..count).collect::<Vec<_>>()))
        .unwrap();
    assert_eq!(puppet.path(0).losses, 1);
    puppet.ack(block(0, count, count, &[])).unwrap();
    let more = only(&puppet.run(20_000_000), Kind::Data);
    assert!(more.iter().all(|sent| sent.header().psn >= count));
    assert_eq!(puppet.path(0).retransmissions, 0);
}

// spec: MR-LOSS-006
#[test]
fn the_delay_of_the_acknowledgment_is_not_round_trip_time() {
    let mut puppet = single(|_| ());
    assert_eq!(puppet.path(0).srtt_ns, 10_000, "of the first PROBE");
    for index in 0..100u32 {
        puppet.post_write(0, 1, 1024);
        puppet.take();
        puppet.now += 10_000;
        let newest = index + 1;
        puppet
            .ack(AckBlock {
                newest_psn: index,
                delay: AckBlock::delay_from_ns(4_000),
                ..block(0, index + 1, newest, &[])
            })
            .unwrap();
        puppet.take();
    }
    let srtt = puppet.path(0).srtt_ns;
    assert!((6_000..6_100).contains(&srtt), "{srtt}");
    assert_eq!(puppet.statistics().min_rtt_ns, 6_000);
    // An acknowledgment that brings no news of a transmission is no sample.
    puppet.now += 5_000_000;
    puppet.ack(block(0, 100, 100, &[])).unwrap();
    assert_eq!(puppet.path(0).srtt_ns, srtt);
}

// spec: MR-LOSS-003
#[test]
fn a_report_does_not_wait_behind_what_is_lost_again_and_again() {
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 20 * 1024);
    puppet.take();
    let refused = Puppet::send_message(1, 0, 0, 0, 8);
    let _ = puppet.data(0, 0, refused, b"unwanted");
    puppet.ack(block(0, 0, 8, &[5, 6, 7])).unwrap();
    let sent = only(&puppet.take(), Kind::Data);
    let opcodes: Vec<_> = sent.iter().map(|sent| sent.data().1.opcode).collect();
    assert_eq!(opcodes[..2], [Opcode::Error, Opcode::Write], "{opcodes:?}");
    assert_eq!(sent[1].header().psn, 0);
}
