//! The sender's windows and pacing.

use crate::puppet::*;
use metaroce_core::config::ControllerChoice;
use metaroce_core::rate::controller::{Controller, Network, ONE_PACKET};
use metaroce_core::rate::coupled::Coupled;
use metaroce_core::wire::*;
use metaroce_core::*;

const NETWORK: Network = Network {
    loop_rtt_ns: 14_090,
    link_mbps: 100_000,
    packet_bytes: 4214,
};

fn opened(paths: u8) -> Coupled<16> {
    let mut controller = Coupled::new(NETWORK);
    for path in 0..paths {
        controller.open(path);
    }
    controller
}

fn packets(fixed: u32) -> f64 {
    f64::from(fixed) / f64::from(ONE_PACKET)
}

// spec: MR-CC-005, MR-CC-004
#[test]
fn growth_is_one_packet_a_window_and_more_under_a_hint() {
    let mut controller = opened(4);
    let before = packets(controller.window());
    controller.acknowledged(0, 1, 0, true);
    let grown = packets(controller.window()) - before;
    assert!((grown - 1.0 / before).abs() < 0.001, "{grown}");
    controller.acknowledged(0, 1, 0, false);
    assert!(
        (packets(controller.window()) - before - grown).abs() < 1e-9,
        "not limited"
    );
    // Under a hint: 0.25 (T - W)/W more. Two cut packets away from T.
    controller.hinted(Instant::ZERO, 100_000);
    let target = packets(controller.window());
    controller.acknowledged(0, 8, 8, true);
    let before = packets(controller.window());
    assert!((target - before - 2.0).abs() < 0.001);
    controller.acknowledged(1, 1, 0, true);
    let grown = packets(controller.window()) - before;
    let expected = (1.0 + 0.25 * (target - before)) / before;
    assert!((grown - expected).abs() < 0.001, "{grown} {expected}");
}

// spec: MR-CC-009
#[test]
fn a_burst_begins_anew_unless_the_hint_is_fresh() {
    let at = |rtts: u64| Instant::from_nanos(rtts * 14_090);
    let mut controller = opened(4);
    controller.hinted(at(10), 100_000);
    let full = controller.window();
    controller.burst(at(14));
    assert_eq!(controller.window(), full);
    controller.burst(at(15));
    assert_eq!(controller.window(), 8 * ONE_PACKET);
    assert!(!controller.is_hinted());
}

// spec: MR-CC-010
#[test]
fn a_stale_hint_halves_the_window_each_round_trip_down_to_eight() {
    let mut controller = opened(4);
    controller.hinted(Instant::from_nanos(1_000_000), 100_000);
    let full = controller.window();
    let mut now = Instant::from_nanos(1_000_000 + 4 * 14_090);
    controller.tick(now);
    assert_eq!(controller.window(), full, "four round trips are not stale");
    now += Duration::from_nanos(1);
    controller.tick(now);
    let half = controller.window();
    assert!((packets(half) - packets(full) / 2.0).abs() < 0.1);
    now += Duration::from_nanos(14_000);
    controller.tick(now);
    assert_eq!(controller.window(), half, "once a round trip");
    for _ in 0..20 {
        now += Duration::from_nanos(14_100);
        controller.tick(now);
    }
    assert_eq!(controller.window(), 8 * ONE_PACKET);
}

/// The round-trip time of a packet that met no other.
const LEAST_RTT: u64 = 10_000;

/// Eight packets are out on one path; what does the window become after this acknowledgment?
fn after(hint_mbps: u32, cumulative: u32, beyond: &[u32], ce_count: u16, rtt: u64) -> (f64, f64) {
    let mut puppet = Puppet::asked(|connection| connection.paths = 1);
    // A full packet tells the round-trip time, and maybe its acknowledgment the hint; then a window that is not full.
    puppet.post_write(0, 1, 1024);
    puppet.run(9_000);
    puppet.now += LEAST_RTT - 9_000;
    puppet
        .ack(AckBlock {
            hint_mbps,
            newest_psn: 0,
            ..block(0, 1, 1, &[])
        })
        .unwrap();
    puppet.post_write(0, 2, 100 * 1024);
    let sent = puppet.run(9_000);
    let count = only(&sent, Kind::Data).len() as u32;
    puppet.now += rtt - 9_000;
    let before = packets(puppet.statistics().window);
    let newest = count.min(beyond.iter().max().map_or(cumulative, |psn| psn + 1));
    let beyond: Vec<u32> = beyond.iter().map(|psn| psn + 1).collect();
    puppet
        .ack(AckBlock {
            ce_count,
            hint_mbps,
            newest_psn: newest,
            ..block(0, 1 + cumulative, 1 + newest, &beyond)
        })
        .unwrap();
    (before, packets(puppet.statistics().window))
}

// spec: MR-LOSS-008
#[test]
fn the_window_is_made_of_the_round_trip_of_full_packets() {
    let window = |length, rtt| {
        let mut puppet = Puppet::asked(|connection| connection.paths = 1);
        puppet.post_write(0, 0, length);
        puppet.take();
        puppet.now += rtt;
        let first = AckBlock {
            newest_psn: 0,
            ..block(0, 1, 1, &[])
        };
        puppet.ack(first).unwrap();
        let hinted = AckBlock {
            hint_mbps: 20_000,
            ..first
        };
        puppet.ack(hinted).unwrap();
        packets(puppet.statistics().window)
    };
    // Set-up took 10 us, in short packets, which tell 12. A short one that was faster says so; a full one is believed, whatever it took.
    let of_setup = window(1, 10_000);
    assert!((window(1, 5_000) / of_setup - 0.5).abs() < 0.01);
    assert!((window(1024, 14_400) / of_setup - 1.2).abs() < 0.01);
    assert!((window(1024, 6_000) / of_setup - 0.5).abs() < 0.01);
}

// spec: MR-CC-015
#[test]
fn the_window_covers_the_delay_of_acknowledgments() {
    let target = |delay_ns: u64| {
        let mut puppet = Puppet::asked(|connection| connection.paths = 1);
        let mut psn = 0;
        // Of a round trip the peer holds back some. The window limits, and grows to T.
        for id in 0..100 {
            while puppet.statistics().queued_bytes < 300 * 1024 {
                puppet.post_write(0, id, 100 * 1024);
            }
            let count = only(&puppet.take(), Kind::Data).len() as u32;
            puppet.now += LEAST_RTT + delay_ns;
            psn += count;
            puppet
                .ack(AckBlock {
                    hint_mbps: 100_000,
                    newest_psn: psn - 1,
                    delay: (delay_ns / 16) as u16,
                    ..block(0, psn, psn, &[])
                })
                .unwrap();
        }
        packets(puppet.statistics().window)
    };
    let (at_once, later) = (target(0), target(1_600));
    assert!((later / at_once - 1.16).abs() < 0.01, "{at_once} {later}");
}

// spec: MR-CC-003, MR-CC-006
#[test]
fn what_a_mark_and_a_loss_cost() {
    // Four marked of four: a packet.
    let (before, now) = after(0, 4, &[], 4, 10_000);
    assert!((before - now - 1.0).abs() < 0.01, "{before} {now}");
    // Two lost of eight, no hint: congestion. (Six clean ones grow it again.)
    let (before, now) = after(0, 0, &[2, 3, 4, 5, 6, 7], 0, 10_000);
    let grown = 6.0 / before;
    assert!((before + grown - now - 0.5).abs() < 0.1, "{before} {now}");
    // The same under a hint: the fabric's. (What is to be compared with is the window without the loss.)
    let (_, clean) = after(100_000, 8, &[], 0, 10_000);
    let (_, now) = after(100_000, 0, &[2, 3, 4, 5, 6, 7], 0, 10_000);
    assert!((now - clean).abs() < 0.01, "{clean} {now}");
    // Under a hint with a mark: both losses cut, like the mark.
    let (_, now) = after(100_000, 0, &[2, 3, 4, 5, 6, 7], 1, 10_000);
    assert!(now < clean - 0.4, "{clean} {now}");
    // Under a hint with a long round trip: delay stands in for the marks of six, and the losses cut.
    let (before, slow) = after(100_000, 8, &[], 0, 40_000);
    let (_, now) = after(100_000, 0, &[2, 3, 4, 5, 6, 7], 0, 40_000);
    assert!((now - slow).abs() < 0.01, "{slow} {now}");
    assert!((before - slow - 2.0).abs() < 0.01, "{before} {slow}");
    // Four of ten: more than 30 %.
    let (_, clean) = after(100_000, 10, &[], 0, 10_000);
    let (_, now) = after(100_000, 0, &[4, 5, 6, 7, 8, 9], 0, 10_000);
    assert!(now < clean - 0.9, "{clean} {now}");
}

// spec: MR-CC-007
#[test]
fn most_of_a_round_trip_lost_halves_the_window() {
    let (before, now) = after(0, 0, &[6, 7], 0, 10_000);
    assert!(now <= before / 2.0 + 0.01, "{before} {now}");
    let (before, now) = after(0, 0, &[5, 6, 7], 0, 10_000);
    assert!(now > before / 2.0, "five are not enough: {before} {now}");
}

// spec: MR-CC-011
#[test]
fn delay_stands_in_for_marks_where_there_are_none() {
    let (before, now) = after(0, 8, &[], 0, 16_000);
    assert!((before - now - 2.0).abs() < 0.01, "{before} {now}");
    let (before, now) = after(0, 8, &[], 0, 14_000);
    assert!(now > before, "{before} {now}");
    // One mark ever: marks are what counts.
    let (before, now) = after(0, 8, &[], 1, 16_000);
    assert!(now > before - 0.3, "{before} {now}");
}

// spec: MR-CC-002
#[test]
fn a_cut_is_not_handed_to_siblings() {
    let mut controller = opened(8);
    controller.hinted(Instant::ZERO, 100_000);
    let others: Vec<_> = (1..8).map(|path| controller.weight(path)).collect();
    controller.acknowledged(0, 4, 4, true);
    controller.lost(0, 3);
    assert_eq!(
        others,
        (1..8)
            .map(|path| controller.weight(path))
            .collect::<Vec<_>>()
    );
    let sum: u32 = (0..8).map(|path| controller.weight(path)).sum();
    assert_eq!(controller.window(), sum);
}

// spec: MR-CC-001
#[test]
fn the_window_holds_back_new_and_repeated_packets_alike() {
    let mut puppet = Puppet::asked(|connection| connection.paths = 1);
    puppet.post_write(0, 1, 100 * 1024);
    assert_eq!(only(&puppet.take(), Kind::Data).len(), 8);
    // Seven of eight lost: half the window and less is left, and no more than that goes out again.
    puppet.ack(block(0, 0, 8, &[7])).unwrap();
    let again = only(&puppet.take(), Kind::Data).len();
    let window = packets(puppet.statistics().window);
    assert!(
        again as f64 <= window.ceil() && again >= 1,
        "{again} {window}"
    );
    assert_eq!(puppet.statistics().outstanding as usize, again);
}

// spec: MR-CC-012
#[test]
fn a_hint_is_kept_on_the_wire() {
    let mut puppet = Puppet::asked(|connection| connection.paths = 1);
    puppet
        .ack(AckBlock {
            hint_mbps: 1_000,
            ..block(0, 0, 0, &[])
        })
        .unwrap();
    puppet.post_write(0, 1, 100 * 1024);
    let start = puppet.now;
    let (mut all, mut told) = (vec![], 0);
    for _ in 0..100 {
        let sent = puppet.run(5_000);
        all.extend(only(&sent, Kind::Data));
        if all.len() > told {
            told = all.len();
            let newest = all.last().unwrap().header();
            puppet
                .ack(AckBlock {
                    hint_mbps: 1_000,
                    newest_psn: newest.psn,
                    ..block(0, newest.psn + 1, newest.tsn, &[])
                })
                .unwrap();
        }
    }
    // 1024 + 48 + 4 + 66 bytes at 1 Gbit/s: 9.136 us a packet.
    let expected = (puppet.now - start) as f64 / 9_136.0;
    let count = all.len() as f64;
    assert!(
        count <= expected + 3.0 && count > expected * 0.9,
        "{count} of {expected}"
    );
    for window in all.windows(12) {
        let span = window[11].at - window[0].at;
        assert!(span >= 9 * 9_136 - 1_000, "{span}");
    }
}

// spec: MR-CC-008, MR-HINT-003
#[test]
fn the_first_hint_is_worth_one_jump() {
    let window = |hint_mbps, ce_count| {
        let mut puppet = Puppet::asked(|connection| connection.paths = 1);
        puppet.post_write(0, 1, 100 * 1024);
        puppet.take();
        puppet.now += 10_000;
        puppet
            .ack(AckBlock {
                ce_count,
                ..block(0, 1, 1, &[])
            })
            .unwrap();
        puppet
            .ack(AckBlock {
                hint_mbps,
                ce_count,
                ..block(0, 2, 2, &[])
            })
            .unwrap();
        packets(puppet.statistics().window)
    };
    // 100 Gbit/s x 10 us in packets of 1142 bytes, and a quarter.
    let bdp = 100e9 * 10e-6 / 8.0 / 1142.0;
    assert!(
        (window(100_000, 0) - 1.25 * bdp).abs() < 0.5,
        "{}",
        window(100_000, 0)
    );
    assert!(window(0, 0) < 9.0);
    assert!(
        window(100_000, 1) < 20.0,
        "not after a mark: {}",
        window(100_000, 1)
    );
}

// spec: MR-CC-013
#[test]
fn a_smaller_share_brings_the_window_down_step_by_step() {
    let mut controller = opened(4);
    controller.hinted(Instant::ZERO, 100_000);
    controller.hinted(Instant::ZERO, 20_000);
    let mut before = controller.window();
    for index in 0..200 {
        let path = index % 4;
        let weight = controller.weight(path);
        controller.acknowledged(path, 1, 0, true);
        assert!(before - controller.window() <= weight / 8 + 1);
        before = controller.window();
    }
    let share = 20e9 * 14.09e-6 / 8.0 / 4214.0 * 1.25;
    assert!((packets(before) - share).abs() < 0.1, "{}", packets(before));
}

// spec: MR-CC-001, MR-CC-012
#[test]
fn without_a_controller_only_the_peer_s_window_limits() {
    let mut puppet = Puppet::asked(|connection| {
        connection.paths = 1;
        connection.controller = ControllerChoice::None;
    });
    puppet.post_write(0, 1, 100 * 1024);
    assert_eq!(only(&puppet.take(), Kind::Data).len(), 100);
}

// spec: MR-CC-003, MR-LOSS-006, MR-PATH-006
#[test]
fn an_acknowledgment_is_not_believed_beyond_what_can_be() {
    let mut puppet = Puppet::asked(|connection| connection.paths = 1);
    puppet.post_write(0, 1, 20 * 1024);
    let sent = only(&puppet.take(), Kind::Data);
    puppet.now += 10_000;
    let told = |count: usize| {
        let header = sent[count - 1].header();
        AckBlock {
            newest_psn: header.psn,
            hint_mbps: 50_000,
            ..block(0, header.psn + 1, header.tsn, &[])
        }
    };
    let lies = AckBlock {
        ce_count: 60_000,
        delay: 0xffff,
        ..told(2)
    };
    puppet.ack(lies).unwrap();
    assert_eq!(puppet.path(0).ce_marks, 2);
    assert_eq!(puppet.statistics().min_rtt_ns, 10_000);
    let overtaken = AckBlock {
        hint_mbps: 1_000,
        ..told(1)
    };
    puppet.ack(overtaken).unwrap();
    assert_eq!(puppet.statistics().hint_mbps, 50_000);
}

// spec: MR-CC-014
#[test]
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

// spec: MR-CC-014
#[test]
fn probes_do_not_hold_a_window_below_one_packet_back() {
    let mut puppet = Puppet::asked(|connection| {
        connection.paths = 1;
        connection.keep_alive = Duration::from_micros(15);
    });
    puppet.post_write(0, 1, 100 * 1024);
    let (mut marks, mut next) = (0u16, 0);
    let mut round = |puppet: &mut Puppet| {
        let sent = puppet.run(10_000);
        let data = only(&sent, Kind::Data);
        marks += data.len() as u16;
        next += data.len() as u32;
        let carries = |sent: &&Sent| sent.is(Kind::Data) || sent.is(Kind::Probe);
        if let Some(newest) = sent.iter().rfind(carries) {
            let psn = if newest.is(Kind::Data) {
                newest.header().psn
            } else {
                PSN_OF_PROBE
            };
            let block = AckBlock {
                ce_count: marks,
                newest_psn: psn,
                ..block(0, next, newest.header().tsn, &[])
            };
            puppet.ack(block).unwrap();
        }
        data.len()
    };
    for _ in 0..40 {
        round(&mut puppet);
    }
    assert!(puppet.statistics().window < 1 << 15);
    let told: usize = (0..400).map(|_| round(&mut puppet)).sum();
    assert!(told >= 10, "{told} in 400 round trips");
}
