//! Probes, and paths in doubt.

use std::collections::BTreeSet;

use metaroce_core::path::send::PathState;
use metaroce_core::wire::*;
use metaroce_core::*;

use crate::puppet::*;
use crate::words::*;

// spec: MR-PROBE-003
#[test]
fn marks_back_probes_off_at_once() {
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 4 * 1024);
    puppet.take();
    let marked = |cumulative, tsn, ce_count| AckBlock {
        ce_count,
        ..block(0, cumulative, tsn, &[])
    };
    puppet.now += 10_000;
    puppet.ack(marked(1, 1, 1)).unwrap();
    puppet.now += 11_000;
    // This begins the next epoch: the one before had marks.
    puppet.ack(marked(2, 2, 1)).unwrap();
    puppet.now += 11_000;
    let sent = only(&puppet.run(2_000_000), Kind::Probe);
    let gaps: Vec<_> = sent
        .windows(2)
        .map(|pair| pair[1].at - pair[0].at)
        .collect();
    assert!(
        gaps[1] > gaps[0] * 19 / 10 && gaps[2] > gaps[1] * 19 / 10,
        "{gaps:?}"
    );
}

// spec: MR-PROBE-002, MR-PROBE-006
#[test]
fn a_probe_is_answered_at_once_and_a_repeated_one_another_way() {
    let mut puppet = Puppet::asking(|_, _| ());
    let mut ways = vec![];
    for attempt in [0, 0, 1, 2, 0] {
        puppet.probe(3, attempt).unwrap();
        let sent = puppet.take();
        assert_eq!(sent.len(), 1);
        let told = Puppet::last_block(&sent, 3).unwrap();
        assert_eq!(
            (told.newest_tsn, told.newest_psn),
            (puppet.tsn[3] - 1, PSN_OF_PROBE)
        );
        ways.push(sent[0].transmit.entropy);
        let told = sent[0].header().flags.contains(Flags::REDIRECT);
        assert_eq!(told, attempt != 0);
    }
    assert_eq!(ways[0], ways[1]);
    assert_ne!(ways[1], ways[2]);
    assert_ne!(ways[2], ways[3]);
    assert_eq!(ways[3], ways[4], "what works is kept");
    // And what the endpoint itself sends is numbered.
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 1024);
    puppet.take();
    let numbers: Vec<_> = only(&puppet.run(1_000_000), Kind::Probe)
        .iter()
        .map(|sent| sent.header().psn)
        .collect();
    assert_eq!(numbers[..3], [0, 1, 2]);
    let tsn = puppet.path(0).packets_sent + numbers.len() as u32;
    puppet.ack(block(0, 0, tsn, &[])).unwrap();
    let again = puppet.run(1_000_000);
    let numbers: Vec<_> = only(&again, Kind::Probe)
        .iter()
        .map(|sent| sent.header().psn)
        .collect();
    assert_eq!(numbers[0], 0, "an answer starts the count anew");
}

// spec: MR-PROBE-004
#[test]
fn after_a_loss_the_end_of_a_burst_is_probed_early() {
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 3 * 1024);
    puppet.take();
    puppet.now += 10_000;
    puppet.ack(block(0, 0, 3, &[1, 2])).unwrap();
    let again = only(&puppet.take(), Kind::Data);
    assert_eq!(again.len(), 1);
    let sent = only(&puppet.run(100_000), Kind::Probe);
    let pause = sent[0].at - again[0].at;
    assert!((900..=1_100).contains(&pause), "{pause}");
}

// spec: MR-PROBE-005
#[test]
fn probes_of_many_silent_paths_do_not_become_a_storm() {
    let mut puppet = Puppet::asked_with(
        |_, _| (),
        |connection| {
            connection.paths = 16;
            connection.controller = config::ControllerChoice::None;
        },
        |offer| offer.paths = 16,
    );
    puppet.post_write(0, 1, 16 * 1024);
    assert_eq!(only(&puppet.take(), Kind::Data).len(), 16);
    let start = puppet.now;
    let sent = only(&puppet.run(10_000_000), Kind::Probe);
    let paths: BTreeSet<_> = sent
        .iter()
        .take(16)
        .map(|sent| sent.header().path)
        .collect();
    assert_eq!(paths.len(), 16, "the one that waits longest goes first");
    for pair in sent.windows(2) {
        // min_rtt is 10 us; silence since the DATA left.
        let silence = pair[0].at - start;
        assert!(
            pair[1].at - pair[0].at >= (10_000 / 16).max(silence / 64),
            "{} {}",
            pair[0].at - start,
            pair[1].at - start
        );
    }
}

// spec: MR-PROBE-005
#[test]
fn probes_keep_to_the_share_but_a_small_one_does_not_silence_them() {
    let pauses = |hint_mbps: u32| {
        let mut puppet = Puppet::asked_with(
            |_, _| (),
            |connection| connection.paths = 16,
            |offer| offer.paths = 16,
        );
        puppet.post_write(0, 1, 1024);
        let first = puppet.take()[0].header();
        puppet.now += 10_000;
        let told = AckBlock {
            newest_psn: 0,
            hint_mbps,
            ..block(first.path, 1, first.tsn, &[])
        };
        puppet.ack(told).unwrap();
        puppet.post_write(0, 2, 16 * 1024);
        let sent = only(&puppet.run(10_000_000), Kind::Probe);
        // With the probe of a silent path may go one of a path that could witness that others live.
        let pauses = sent.windows(2).map(|pair| pair[1].at - pair[0].at);
        let pauses = pauses.filter(|&pause| pause != 0);
        (pauses.clone().min().unwrap(), pauses.max().unwrap())
    };
    // A full packet of 1,024 bytes takes 92 us at 100 Mbit/s, 9.2 ms at 1 Mbit/s.
    let (least, _) = pauses(100);
    assert!((85_000..100_000).contains(&least), "{least}");
    let (least, most) = pauses(1);
    assert!(least >= 900_000 && most < 3_000_000, "{least} {most}");
}

// spec: MR-PROBE-007, MR-PROBE-008
#[test]
fn a_path_in_doubt_does_not_count_until_it_answers() {
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 20 * 1024);
    puppet.take();
    assert_eq!(
        (puppet.path(0).state, puppet.statistics().outstanding),
        (PathState::Active, 8)
    );
    let sent = puppet.run(100_000);
    assert_eq!(puppet.path(0).state, PathState::Suspect);
    assert_eq!(
        (puppet.statistics().outstanding, puppet.path(0).inflight),
        (0, 8)
    );
    assert!(only(&sent, Kind::Data).is_empty(), "it carries nothing new");
    // An answer that acknowledges nothing still is an answer.
    puppet
        .ack(AckBlock {
            newest_psn: 0,
            ..block(0, 1, 1, &[])
        })
        .unwrap();
    assert_eq!(puppet.path(0).state, PathState::Active);
    assert_eq!(puppet.statistics().outstanding, 7);
}

// spec: MR-PROBE-009
#[test]
fn the_last_packet_asks_for_its_acknowledgment() {
    let mut puppet = single(|_| ());
    puppet.post_write(0, 1, 4 * 1024);
    let asks: Vec<_> = only(&puppet.take(), Kind::Data)
        .iter()
        .map(|sent| sent.header().flags.contains(Flags::ACK_REQUEST))
        .collect();
    assert_eq!(asks, [false, false, false, true]);
}

// spec: MR-PROBE-010
#[test]
fn a_receiver_that_coalesces_is_not_probed() {
    let mut pair = crate::support::Pair::connected(|_, endpoint, _| {
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
