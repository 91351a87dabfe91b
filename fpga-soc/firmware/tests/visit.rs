//! Two devices on one wire that drops, repeats and delays frames: one goes to the other, as on boards, with time as an input.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};

use metaroce_core::wire::{Header, Kind};
use metaroce_core::{Duration, Ecn, Instant};
use metaroce_firmware::device::{
    Connections, Device, FIRST_SOURCE_PORT, FRAME_BYTES, PORT, SOURCE_PORTS, Settings,
};
use metaroce_firmware::frame::{self, Envelope, Mac, OVERHEAD};
use metaroce_firmware::initiator::ROUNDS;
use metaroce_firmware::ram::REGION_BYTES;
use proptest::prelude::*;

/// What a frame takes at least, and what a delayed one takes.
const DELAY: Duration = Duration::from_micros(20);
const LATE: Duration = Duration::from_micros(300);
/// A visit that is not over by then is stuck.
const LIMIT: Instant = Instant::from_nanos(20_000_000_000);
const ADDED_EACH_ROUND: u64 = 3;

const fn mac(side: usize) -> Mac {
    [2, 0, 0, 0, 0, 1 + side as u8]
}

const fn address(side: usize) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, 1 + side as u8)
}

fn settings(side: usize) -> Settings {
    Settings {
        mac: mac(side),
        address: address(side),
        mbps: 100,
        secret: [1 + side as u8; 32],
        peer: (side == 0).then(|| address(1)),
    }
}

/// What becomes of each frame in turn, for as long as it says; afterwards all arrive.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Arrives,
    Dropped,
    Twice,
    Late,
    Damaged,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        12 => Just(Fate::Arrives),
        2 => Just(Fate::Dropped),
        1 => Just(Fate::Twice),
        2 => Just(Fate::Late),
        1 => Just(Fate::Damaged),
    ];
    prop::collection::vec(fate, 0..600)
}

#[derive(Default)]
struct Wire {
    /// By the time of arrival and in the order of sending: for which side.
    frames: BTreeMap<(Instant, usize), (usize, Vec<u8>)>,
    sent: usize,
    /// UDP source ports of each side's data.
    ports: [BTreeSet<u16>; 2],
}

impl Wire {
    fn send(&mut self, now: Instant, from: usize, frame: &[u8], fates: &[Fate]) {
        let datagram = frame::udp(frame).expect("all that devices send");
        assert_eq!(
            (datagram.source.ip(), datagram.destination.port()),
            (&address(from), PORT)
        );
        let header = Header::decode(datagram.bytes).expect("all that devices send");
        if header.kind == Kind::Data {
            self.ports[from].insert(datagram.source.port());
        }
        let fate = fates.get(self.sent).copied().unwrap_or(Fate::Arrives);
        let mut bytes = frame.to_vec();
        let mut delay = DELAY;
        match fate {
            Fate::Dropped => {
                self.sent += 1;
                return;
            }
            Fate::Damaged => {
                // In what UDP carries, which nobody checks but the datagram's CRC.
                let middle = OVERHEAD + (bytes.len() - OVERHEAD) / 2;
                bytes[middle] ^= 0x10;
            }
            Fate::Late => delay = LATE,
            Fate::Twice => {
                self.frames
                    .insert((now + LATE, self.sent), (1 - from, bytes.clone()));
            }
            Fate::Arrives => {}
        }
        self.frames
            .insert((now + delay, self.sent), (1 - from, bytes));
        self.sent += 1;
    }
}

/// Lets a device send all that it has.
fn flush(device: &mut Device<'_>, side: usize, now: Instant, wire: &mut Wire, fates: &[Fate]) {
    device.handle_events(now);
    while let Some(outgoing) = device.poll_transmit(now) {
        let mut frame = [0; FRAME_BYTES];
        let place = &mut frame[..outgoing.frame_length()];
        match outgoing.unresolved() {
            // On a board the network stack asks for the address; nobody has been heard yet.
            Some(destination) => {
                let envelope = Envelope {
                    macs: (mac(side), mac(1 - side)),
                    source: SocketAddrV4::new(address(side), PORT),
                    destination,
                    ecn: Ecn::NotEct,
                };
                let (headers, datagram) = place.split_first_chunk_mut::<OVERHEAD>().unwrap();
                *headers = frame::header(&envelope, outgoing.datagram_length());
                device.write_datagram(&outgoing, datagram).unwrap();
            }
            None => device.write_frame(&outgoing, place).unwrap(),
        }
        wire.send(now, side, place, fates);
    }
}

struct Visit {
    /// Memory of the one that was gone to.
    host: Box<[u8; REGION_BYTES]>,
    /// Memory of the one that went.
    guest: Box<[u8; REGION_BYTES]>,
    wire: Wire,
    over: Instant,
}

/// From the first frame to the last: until neither has anything to send or to wait for.
fn visit(fates: &[Fate]) -> Visit {
    let mut memory = [(); 2].map(|()| Box::new([0; REGION_BYTES]));
    let mut tables: [Connections; 2] = Default::default();
    let mut wire = Wire::default();
    let mut now = Instant::from_nanos(1_000_000);
    {
        let [guest, host] = &mut memory;
        let [one, other] = &mut tables;
        let mut devices = [
            Device::new(&settings(0), guest, one, now).unwrap(),
            Device::new(&settings(1), host, other, now).unwrap(),
        ];
        for (side, device) in devices.iter_mut().enumerate() {
            flush(device, side, now, &mut wire, fates);
        }
        loop {
            let arrival = wire.frames.keys().next().map(|(at, _)| *at);
            let timers = devices.iter_mut().filter_map(Device::poll_timeout).min();
            let Some(next) = arrival.into_iter().chain(timers).min() else {
                break;
            };
            now = now.max(next);
            assert!(now < LIMIT, "stuck");
            while let Some(entry) = wire
                .frames
                .first_entry()
                .filter(|entry| entry.key().0 <= now)
            {
                let (to, frame) = entry.remove();
                assert!(devices[to].receive(now, &frame), "not for the service?");
                flush(&mut devices[to], to, now, &mut wire, fates);
            }
            for (side, device) in devices.iter_mut().enumerate() {
                device.handle_timeout(now);
                flush(device, side, now, &mut wire, fates);
            }
        }
    }
    let [guest, host] = memory;
    Visit {
        host,
        guest,
        wire,
        over: now,
    }
}

fn counter(visit: &Visit) -> u64 {
    let word = visit.host[REGION_BYTES - 8..].first_chunk::<8>().unwrap();
    u64::from_ne_bytes(*word)
}

#[test]
fn paths_have_source_ports_of_their_own() {
    let visit = visit(&[]);
    assert_eq!(counter(&visit), ADDED_EACH_ROUND * u64::from(ROUNDS));
    let of_paths = FIRST_SOURCE_PORT..FIRST_SOURCE_PORT + SOURCE_PORTS;
    for side in 0..2 {
        let ports = &visit.wire.ports[side];
        assert_eq!(ports.len(), 4, "four paths: {ports:?}");
        assert!(
            ports.iter().all(|port| of_paths.contains(port)),
            "{ports:?}"
        );
    }
    // Three round trips for each of the rounds, at least, and no timer but the end's waits in between.
    assert!(
        visit.over < Instant::from_nanos(10_000_000),
        "{:?}",
        visit.over
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the wire does to frames, each byte is in its place and each addition was made once.
    #[test]
    fn everything_happens_exactly_once(fates in fates()) {
        let visit = visit(&fates);
        prop_assert_eq!(counter(&visit), ADDED_EACH_ROUND * u64::from(ROUNDS));
        // The last round's pattern: where it was written from, where it was written to, where it was read to.
        let last = usize::try_from(ROUNDS - 1).unwrap() * 64;
        prop_assert!(visit.guest[..3_000].iter().any(|byte| *byte != 0));
        prop_assert_eq!(&visit.host[last..last + 3_000], &visit.guest[..3_000]);
        prop_assert_eq!(&visit.guest[3_072..6_072], &visit.guest[..3_000]);
    }
}
