//! The receiver's hints: shares, demand and announcements.

use crate::puppet::*;
use crate::support::{Fate, Pair, is_data};
use metaroce_core::rate::allocator::{Allocator, Share, ShareTable};
use metaroce_core::wire::*;
use metaroce_core::*;

struct Table(Vec<Share>);

impl ShareTable for Table {
    fn share(&mut self, sender: u16) -> &mut Share {
        &mut self.0[usize::from(sender)]
    }
}

// spec: MR-HINT-001, MR-HINT-005
#[test]
fn shares_are_max_min_fair_and_tiny_ones_overcommitted() {
    let at = |us: u64| Instant::from_nanos(us * 1_000);
    let level = |senders: &[u64]| {
        let mut table = Table(vec![Share::IDLE; senders.len()]);
        let mut allocator = Allocator::new(100_000, 4214, 14_000);
        for (sender, bytes) in senders.iter().enumerate() {
            allocator.observe(
                at(10),
                sender as u16,
                Demand::from_bytes(*bytes),
                &mut table,
            );
        }
        allocator.level(at(12), 0, &mut table)
    };
    assert_eq!(level(&[1 << 30; 1]), 100_000);
    assert_eq!(level(&[1 << 30; 8]), 12_500);
    // A small demand is met and leaves the rest to the other: 12 KiB in 14 us are 7.0 Gbit/s.
    let rest = level(&[1 << 30, 10_000]);
    assert!((92_000..94_000).contains(&rest), "{rest}");
    // 100 senders of 8 KiB: a packet per round trip is 2.4 Gbit/s, the share 1: a fifth more.
    assert_eq!(level(&[8_192; 100]), 1_200);
    assert_eq!(
        level(&[1 << 20; 100]),
        1_000,
        "not if the demands are large"
    );
}

/// One more connection of the same peer, under an id of its own.
fn another(puppet: &mut Puppet, source: u32) -> Accept {
    let init = Init {
        source,
        ..puppet.init(None)
    };
    let init = puppet.with_cookie(init);
    puppet.send(&Packet::Init(init)).unwrap();
    let Packet::Accept(accept) = only(&puppet.take(), Kind::Accept)[0].packet() else {
        panic!()
    };
    accept
}

/// A connection says how much it is about to send.
fn say(puppet: &mut Puppet, connection: u32, demand: Demand) {
    puppet.theirs = connection;
    let announce = Announce {
        path: 0,
        generation: 0,
        connection,
        number: 1,
        demand,
    };
    puppet.send(&Packet::Announce(announce)).unwrap();
    puppet.take();
}

/// What a connection is told a little later.
fn told(puppet: &mut Puppet, connection: u32) -> u32 {
    puppet.now += 1_500;
    puppet.theirs = connection;
    puppet.probe(0, 0).unwrap();
    Puppet::last_block(&puppet.take(), 0).unwrap().hint_mbps
}

// spec: MR-HINT-012
#[test]
fn those_who_connect_together_are_told_shares() {
    let mut puppet = Puppet::asking(|_, _| ());
    let told: Vec<u32> = (10..13)
        .map(|source| {
            puppet.now += 1_500;
            another(&mut puppet, source).hint_mbps
        })
        .collect();
    assert_eq!(told, [100_000, 100_000, 50_000]);
}

// spec: MR-HINT-010, MR-HINT-011
#[test]
fn what_nobody_sends_is_offered_to_all_and_taken_back_from_newcomers() {
    let mut puppet = Puppet::asking(|_, _| ());
    let large = Demand::from_bytes(1 << 30);
    let ids = [puppet.theirs, another(&mut puppet, 9).source];
    let third = another(&mut puppet, 10).source;
    // Two say that they have much to send, and send next to nothing.
    let mut shares = vec![];
    for _ in 0..100 {
        for id in ids {
            say(&mut puppet, id, large);
        }
        shares.push(told(&mut puppet, ids[0]));
    }
    assert_eq!((shares[1], shares[99]), (50_000, 100_000));
    say(&mut puppet, third, large);
    let share = told(&mut puppet, ids[0]);
    assert!((33_334..45_000).contains(&share), "{share}");
}

// spec: MR-HINT-002, MR-HINT-003
#[test]
fn who_leaves_gives_its_share_back_and_every_answer_tells_the_share() {
    let mut puppet = Puppet::asking(|_, _| ());
    let second = another(&mut puppet, 9);
    assert_eq!(second.hint_mbps, 100_000);
    let (first, second) = (puppet.theirs, second.source);
    let large = Demand::from_bytes(1 << 30);
    let told = |puppet: &mut Puppet| told(puppet, first);
    say(&mut puppet, first, large);
    assert_eq!(told(&mut puppet), 100_000);
    say(&mut puppet, second, large);
    assert_eq!(told(&mut puppet), 50_000);
    say(&mut puppet, second, Demand::NONE);
    assert_eq!(told(&mut puppet), 100_000);
    say(&mut puppet, second, large);
    assert_eq!(told(&mut puppet), 50_000);
    // Silence: 4 round trips of the assumed 20 us.
    puppet.now += 81_000;
    say(&mut puppet, first, large);
    assert_eq!(told(&mut puppet), 100_000);
    // Without hints: none.
    let mut puppet = Puppet::asking(|endpoint, _| endpoint.hints = false);
    puppet.probe(0, 0).unwrap();
    assert_eq!(Puppet::last_block(&puppet.take(), 0).unwrap().hint_mbps, 0);
}

// spec: MR-HINT-007
#[test]
fn an_announcement_is_answered_with_its_number() {
    let announce = |puppet: &Puppet| Announce {
        path: 0,
        generation: 0,
        connection: puppet.theirs,
        number: 77,
        demand: Demand::from_bytes(1 << 20),
    };
    let mut puppet = Puppet::asking(|_, _| ());
    let packet = Packet::Announce(announce(&puppet));
    puppet.send(&packet).unwrap();
    let sent = only(&puppet.run(3_000), Kind::Hint);
    let Packet::Hint(hint) = sent[0].packet() else {
        panic!()
    };
    assert_eq!(
        (hint.number, hint.rate_mbps, hint.connection, sent.len()),
        (77, 100_000, MINE, 1)
    );
    let mut puppet = Puppet::asking(|endpoint, _| endpoint.hints = false);
    let packet = Packet::Announce(announce(&puppet));
    puppet.send(&packet).unwrap();
    assert!(only(&puppet.run(3_000), Kind::Hint).is_empty());
}

// spec: MR-HINT-006, MR-HINT-008
#[test]
fn a_burst_is_announced_and_only_its_answer_counts() {
    let mut puppet = Puppet::asked(|connection| connection.announce = true);
    let announced = |sent: &[Sent]| {
        only(sent, Kind::Announce)
            .iter()
            .map(|sent| match sent.packet() {
                Packet::Announce(announce) => (announce.number, announce.demand),
                _ => unreachable!(),
            })
            .collect::<Vec<_>>()
    };
    puppet.post_write(0, 1, 8 * 1024);
    let sent = puppet.take();
    assert!(
        announced(&sent).is_empty(),
        "eight packets are not worth it"
    );
    puppet.ack_all(&sent);
    puppet.now += 1_000_000;
    puppet.post_write(0, 2, 50 * 1024);
    let sent = puppet.take();
    let (number, demand) = announced(&sent)[0];
    assert!(demand >= Demand::from_bytes(40 * 1024));
    let hint = |puppet: &mut Puppet, number, rate_mbps| {
        let connection = puppet.theirs;
        puppet
            .send(&Packet::Hint(Hint {
                path: 0,
                generation: 0,
                connection,
                number,
                rate_mbps,
            }))
            .unwrap();
        puppet.statistics().hint_mbps
    };
    assert_eq!(hint(&mut puppet, number + 1, 5_000), 0);
    assert_eq!(hint(&mut puppet, number.wrapping_sub(1), 5_000), 0);
    assert_eq!(hint(&mut puppet, number, 0), 0);
    assert_eq!(hint(&mut puppet, number, 40_000), 40_000);
    let handle = puppet.handle();
    puppet.host.announce(handle).unwrap();
    assert_eq!(announced(&puppet.take())[0].0, number + 1);
}

// spec: MR-HINT-001, MR-HINT-004
#[test]
fn a_level_is_between_one_and_the_capacity() {
    let mut pair = Pair::connected(|_, endpoint, _| endpoint.plane_mbps = 10_000);
    let levels = std::rc::Rc::new(std::cell::RefCell::new(vec![]));
    let noted = levels.clone();
    pair.filter = Box::new(move |seen| {
        if seen.from == 1 && seen.header.kind == Kind::Ack {
            let body = check(seen.bytes, Trailer::Crc32c).unwrap();
            let mut blocks = AckBlocks::decode(&seen.header, body).unwrap();
            noted.borrow_mut().push(blocks.next().unwrap().hint_mbps);
        }
        assert!(!is_data(&seen.header) || seen.from == 0);
        Fate::Deliver
    });
    let local = pair.local(0, 0, 1_000_000);
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
    assert!(
        levels
            .borrow()
            .iter()
            .all(|level| (1..=10_000).contains(level))
    );
    assert!(levels.borrow().len() > 100);
}

// spec: MR-HINT-009
#[test]
fn the_bytes_of_a_response_are_demand() {
    let mut puppet = Puppet::asking(|_, _| ());
    let read = Data {
        opcode: Opcode::ReadRequest,
        immediate: 1 << 31,
        ..puppet.write(0, 0, 0, 100 * 1024)
    };
    puppet.data(0, 0, read, b"").unwrap();
    let sent = only(&puppet.take(), Kind::Data);
    assert_ne!(sent[0].data().1.demand, Demand::NONE, "no demand");
    // The region goes: an error takes the place of what is left, and when all was sent there is no demand.
    let index = puppet.region.index;
    puppet.host.deregister(index).unwrap();
    let mut all = sent;
    for _ in 0..200 {
        puppet.now += 10_000;
        puppet.ack_all(&all);
        all.extend(only(&puppet.take(), Kind::Data));
    }
    assert_eq!(puppet.statistics().queued_bytes, 0);
}
