//! What the specification says and the core does not do yet (section 20). Each of these tests panics until it does:
//! then its `should_panic` goes, and its requirement moves into the specification.

use crate::puppet::*;
use crate::support::Pair;
use metaroce_core::wire::*;
use metaroce_core::*;

// MR-CC-014
#[test]
#[should_panic(expected = "a packet a round trip")]
fn a_window_below_one_packet_is_less_than_a_packet_a_round_trip() {
    let mut puppet = Puppet::asked(|connection| connection.paths = 1);
    puppet.post_write(0, 1, 100 * 1024);
    let (mut marks, mut told, mut all) = (0u16, 0, vec![]);
    let mut round = |puppet: &mut Puppet| {
        let sent = only(&puppet.run(10_000), Kind::Data);
        all.extend(sent.clone());
        if let Some(newest) = sent.last() {
            marks += sent.len() as u16;
            let header = newest.header();
            let block = AckBlock {
                ce_count: marks,
                newest_psn: header.psn,
                ..block(0, header.psn + 1, header.tsn, &[])
            };
            puppet.ack(block).unwrap();
        }
        sent.len()
    };
    // Everything is marked: the window falls to a twentieth of a packet.
    for _ in 0..40 {
        round(&mut puppet);
    }
    assert!(puppet.statistics().window < 1 << 15);
    for _ in 0..20 {
        told += round(&mut puppet);
    }
    assert!(told <= 10, "a packet a round trip: {told} in 20");
}

// MR-PROBE-010
#[test]
#[should_panic(expected = "probes for nothing")]
fn a_receiver_that_coalesces_is_not_probed() {
    let mut pair = Pair::connected(|_, endpoint, _| {
        endpoint.ack_delay = Duration::from_micros(60);
        endpoint.ack_packets = 200;
    });
    let (local, remote) = (pair.local(0, 0, 1_000_000), pair.remote(0, 0));
    let before = pair.statistics(0).probes_sent;
    for id in 0..3 {
        let local = Source::Region(local);
        let write = Operation::Write {
            local,
            remote,
            immediate: None,
        };
        pair.post(0, 0, id, write);
    }
    pair.run_until_completions(0, 3);
    let probes = pair.statistics(0).probes_sent - before;
    assert!(probes < 20, "probes for nothing: {probes}");
}
