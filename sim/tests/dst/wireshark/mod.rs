//! The Wireshark dissector beside the core's decoder (step `wireshark` of `cargo xtask test`, since it takes tshark).

mod expect;
mod tshark;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use etherparse::{SlicedPacket, TransportSlice};
use metaroce_core::wire::{self, DecodeError, Kind, Opcode, Packet, Trailer};
use metaroce_sim::capture::Capture;
use metaroce_sim::faults::Drop;
use metaroce_sim::observer::Watch;
use metaroce_sim::packet;
use metaroce_sim::random::{Purpose, Stream};
use metaroce_sim::time::Time;
use pcap_file::pcapng::{Block, PcapNgReader};

use crate::plan;
use crate::world::World;
use expect::{Agreed, FIELDS, fields};
use tshark::Shown;

/// A run as a host of it would capture it.
fn capture_of(seed: u64) -> Vec<u8> {
    let plan = plan::plan(seed);
    let mut world = World::new(&plan, false);
    let mut capture = Capture::new(Vec::new(), &format!("seed {seed}")).expect("a capture");
    capture
        .watch_host(&world.sim.network, 0)
        .expect("interfaces");
    let capture = Arc::new(Mutex::new(capture));
    world.sim.network.observer = Watch(Some(Box::new(capture.clone())));
    world.run();
    let capture = Arc::into_inner(capture).expect("the run is over");
    capture
        .into_inner()
        .expect("no panic")
        .finish()
        .expect("written")
}

/// The datagrams in a capture, as far as they are there.
fn datagrams(capture: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = PcapNgReader::new(capture).expect("pcapng");
    let mut found = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.expect("a block") {
            let sliced = SlicedPacket::from_ethernet(&packet.data).expect("a frame");
            let Some(TransportSlice::Udp(udp)) = &sliced.transport else {
                panic!("{sliced:?}");
            };
            found.push(udp.payload().to_vec());
        }
    }
    found
}

fn wanted() -> Vec<String> {
    let more = [
        "frame.number",
        "metaroce.error",
        "metaroce.retransmission",
        "metaroce.last_sent_in",
        "metaroce.first_sent_in",
        "metaroce.acked_in",
        "metaroce.request_in",
        "metaroce.response_in",
        "metaroce.same_transmission",
        "metaroce.peer_connection",
        "_ws.expert.message",
    ];
    let compared = FIELDS.iter().map(|name| format!("metaroce.{name}"));
    compared.chain(more.map(String::from)).collect()
}

fn number(shown: &Shown, field: &str) -> Option<usize> {
    shown
        .get(field)
        .and_then(|values| values.first())
        .map(|value| value.parse().unwrap_or_else(|_| panic!("{field}: {value}")))
}

fn first<'a>(shown: &'a Shown, field: &str) -> Option<&'a str> {
    shown.get(field)?.first().map(String::as_str)
}

fn no_lua_error(shown: &Shown) {
    let messages = shown.get("_ws.expert.message").into_iter().flatten();
    for message in messages {
        assert!(!message.contains("Lua"), "{message}");
    }
}

fn name(error: &DecodeError) -> &'static str {
    DecodeError::name(error.index())
}

/// That tshark shows just the fields that the core reads.
fn compare(at: usize, shown: &Shown, agreed: &mut Agreed, datagram: &[u8]) {
    no_lua_error(shown);
    match agreed.read(datagram) {
        Err(error) => assert_eq!(
            first(shown, "metaroce.error"),
            Some(name(&error)),
            "frame {at}: {error}"
        ),
        Ok((packet, trailer)) => {
            assert_eq!(
                first(shown, "metaroce.error"),
                None,
                "frame {at}: {packet:?}"
            );
            let expected = fields(datagram, &packet, trailer);
            for field in FIELDS {
                let got = shown.get(&format!("metaroce.{field}"));
                assert_eq!(
                    got.map_or(&[][..], |values| values),
                    expected.get(field).map_or(&[][..], |values| values),
                    "frame {at}, {field}: {packet:?}"
                );
            }
        }
    }
}

/// That frames refer to those that they should.
fn check_links(all: &[(Shown, Option<Packet<'_>>)]) -> usize {
    let packet = |frame: usize| all[frame - 1].1.as_ref().expect("a valid frame");
    let mut links = 0;
    for (shown, this) in all {
        let Some(this) = this else { continue };
        for field in ["metaroce.last_sent_in", "metaroce.first_sent_in"] {
            let Some(before) = number(shown, field) else {
                continue;
            };
            let (Packet::Data { header, .. }, Packet::Data { header: other, .. }) =
                (this, packet(before))
            else {
                panic!("{this:?} was sent in {before}");
            };
            let place = |h: &wire::Header| (h.connection, h.path, h.generation, h.psn);
            assert_eq!(place(header), place(other));
            assert_ne!(header.tsn, other.tsn);
            links += 1;
        }
        if let (Some(ack), Packet::Data { header, .. }) = (number(shown, "metaroce.acked_in"), this)
        {
            let (Packet::Ack { blocks, .. } | Packet::FenceAck { blocks, .. }) = packet(ack) else {
                panic!("{this:?} acknowledged in {ack}");
            };
            let mut blocks = *blocks;
            let covers = blocks.any(|block| {
                (block.path, block.generation) == (header.path, header.generation)
                    && block.acknowledges(header.psn)
            });
            assert!(covers, "{this:?} acknowledged in {ack}");
            links += 1;
        }
        if let Some(request) = number(shown, "metaroce.request_in") {
            let fits = matches!(
                (packet(request), this),
                (
                    Packet::Init(_),
                    Packet::Retry(_) | Packet::Accept(_) | Packet::Reject(_)
                ) | (Packet::Fence(_), Packet::FenceAck { .. })
                    | (Packet::Announce(_), Packet::Hint(_))
                    | (Packet::Close(_), Packet::CloseAck(_))
            );
            assert!(fits, "{this:?} answers {:?}", packet(request));
            links += 1;
        }
    }
    links
}

/// What a datagram is an example of.
fn example(agreed: &mut Agreed, datagram: &[u8]) -> String {
    match agreed.read(datagram) {
        Ok((Packet::Data { data, .. }, _)) => format!("{:?}", data.opcode),
        Ok((Packet::Ack { blocks, .. }, _)) if blocks.len() > 1 => "blocks".into(),
        Ok((Packet::Ack { .. }, Trailer::None)) => "bare".into(),
        Ok((packet, _)) => {
            let text = format!("{packet:?}");
            let end = text.find(|c: char| !c.is_alphabetic());
            text[..end.unwrap_or(text.len())].to_owned()
        }
        Err(error) => name(&error).into(),
    }
}

/// All that runs can be expected to show. (REJECT needs a listener that is full or does not listen.)
fn examples() -> BTreeSet<String> {
    let kinds = Kind::ALL.iter().map(|kind| format!("{kind:?}"));
    let opcodes = Opcode::ALL.iter().map(|opcode| format!("{opcode:?}"));
    let others = ["blocks", "bare", "checksum"].map(String::from);
    kinds
        .filter(|kind| kind != "Data" && kind != "Reject")
        .chain(opcodes)
        .chain(others)
        .collect()
}

/// Captures of short runs that show everything, one behind the other, and their datagrams.
fn everything() -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut missing = examples();
    let (mut capture, mut sent) = (Vec::new(), Vec::new());
    for seed in 1..=400 {
        let section = capture_of(seed);
        let of_run = datagrams(&section);
        let mut agreed = Agreed::default();
        let shows = of_run.iter().map(|bytes| example(&mut agreed, bytes));
        let shows: BTreeSet<String> = shows.collect();
        if of_run.len() > 1_500 || missing.is_disjoint(&shows) {
            continue;
        }
        missing = &missing - &shows;
        sent.extend(of_run);
        capture.extend(section);
        if missing.is_empty() {
            return (capture, sent);
        }
    }
    panic!("no run shows {missing:?}");
}

// spec: MR-WIRE-002, MR-WIRE-011, MR-WIRE-013, MR-WIRE-022, MR-WIRE-026, MR-SETUP-002
#[test]
fn wireshark_shows_what_the_core_reads() {
    let (capture, sent) = everything();
    let all = tshark::read("wireshark_runs", &capture, &[], &wanted());
    assert_eq!(all.len(), sent.len());
    let mut agreed = Agreed::default();
    for (index, (shown, datagram)) in all.iter().zip(&sent).enumerate() {
        compare(index + 1, shown, &mut agreed, datagram);
    }
    let mut agreed = Agreed::default();
    let read = |datagram| agreed.read(datagram).ok().map(|(packet, _)| packet);
    let packets: Vec<_> = sent.iter().map(|bytes| &bytes[..]).map(read).collect();
    let links = check_links(&all.into_iter().zip(packets).collect::<Vec<_>>());
    println!("{} frames, {links} references", sent.len());
    assert!(links > sent.len() / 4);
}

/// A datagram to change, of every kind and opcode.
fn seeds(sent: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut agreed = Agreed::default();
    let mut found: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for datagram in sent {
        if let (name, Ok((_, Trailer::Crc32c))) = (
            example(&mut agreed, datagram),
            Agreed::default().read(datagram),
        ) {
            found.entry(name).or_insert_with(|| datagram.clone());
        }
    }
    let mut reject = vec![0; 24];
    let made = wire::Reject {
        connection: 7,
        reason: wire::RejectReason::Busy,
        detail: 0,
    };
    let sealed = made
        .encode(&mut reject)
        .and_then(|length| wire::seal(&mut reject, length, Trailer::Crc32c));
    assert_eq!(sealed, Ok(24));
    found.insert("Reject".into(), reject);
    found.into_values().collect()
}

/// Changes some bytes, or the length.
fn mutate(random: &mut Stream, datagram: &mut Vec<u8>) {
    if random.one_in(1, 4) {
        let length = random.below(datagram.len() as u64 + 80) as usize;
        datagram.resize(length, random.bits() as u8);
    }
    for _ in 0..random.below(4) {
        // Headers are where the meaning is.
        let end = datagram
            .len()
            .min(if random.one_in(3, 4) { 64 } else { 10_000 });
        if end > 0 {
            let byte = &mut datagram[random.below(end as u64) as usize];
            *byte = *random.pick(&[
                0,
                1,
                0xff,
                *byte ^ 1,
                *byte ^ 0x80,
                random.clone().bits() as u8,
            ]);
        }
    }
    if random.one_in(3, 4) && datagram.len() > 4 {
        let length = datagram.len() - 4;
        assert!(wire::seal(datagram, length, Trailer::Crc32c).is_ok());
    }
}

// spec: MR-WIRE-003, MR-WIRE-004, MR-WIRE-005, MR-WIRE-006, MR-WIRE-007, MR-WIRE-008
#[test]
fn wireshark_takes_anything() {
    let (_, sent) = everything();
    let seeds = seeds(&sent);
    assert_eq!(seeds.len(), Kind::ALL.len() + Opcode::ALL.len());
    let mut random = Stream::new(1, Purpose::Plan, 0);
    let mut capture = Capture::new(Vec::new(), "mutated").expect("a capture");
    capture.watch(0, "mutated", "", 1).expect("an interface");
    let mut written = Vec::new();
    for index in 0..2_000 {
        let mut datagram = random.pick(&seeds).clone();
        // Every fourth is sound, but the capture holds only its beginning.
        let cut = index % 4 == 0;
        if !cut {
            mutate(&mut random, &mut datagram);
        }
        let here = if cut {
            random.below(datagram.len() as u64) as usize
        } else {
            datagram.len()
        };
        // Without any byte it would stand for a packet of a model.
        let here = here.max(1);
        datagram.resize(datagram.len().max(1), 0);
        let mut packet = packet::Packet::default();
        packet.bytes.extend_from_slice(&datagram[..here]);
        packet.length = datagram.len() as u32;
        capture.record(Time::from_us(index), 0, &packet, None);
        written.push((datagram, cut));
    }
    let capture = capture.finish().expect("written");
    let all = tshark::read("wireshark_mutated", &capture, &[], &wanted());
    assert_eq!(all.len(), written.len());
    let mut agreed = Agreed::default();
    let mut reasons = BTreeSet::new();
    for (index, (shown, (datagram, cut))) in all.iter().zip(&written).enumerate() {
        if *cut {
            no_lua_error(shown);
            assert_eq!(first(shown, "metaroce.error"), None, "{index}");
        } else {
            reasons.extend(first(shown, "metaroce.error").map(str::to_owned));
            compare(index + 1, shown, &mut agreed, datagram);
        }
    }
    println!("{reasons:?}");
    assert!(reasons.len() >= DecodeError::REASONS - 2, "{reasons:?}");
}

/// The same capture with another UDP port instead of the usual one.
fn moved(mut capture: Vec<u8>, port: u16) -> Vec<u8> {
    let word = |capture: &[u8], at: usize| {
        let bytes = capture[at..at + 4].try_into();
        bytes.map_or(0, u32::from_le_bytes)
    };
    let mut at = 0;
    while at < capture.len() {
        let (kind, length) = (word(&capture, at), word(&capture, at + 4) as usize);
        // Of an enhanced packet block: its header, Ethernet, IPv4, the source port.
        if kind == 6 {
            let place = at + 28 + 14 + 20 + 2;
            capture[place..place + 2].copy_from_slice(&port.to_be_bytes());
        }
        at += length;
    }
    capture
}

#[test]
fn wireshark_finds_ours_on_any_port() {
    let (capture, sent) = everything();
    let usual = tshark::read("wireshark_usual", &capture, &[], &wanted());
    let capture = moved(capture, 24_444);
    let ways: [(&str, &[&str]); 3] = [
        ("wireshark_preference", &["-o", "metaroce.port:24444"]),
        ("wireshark_decode_as", &["-d", "udp.port==24444,metaroce"]),
        ("wireshark_heuristic", &[]),
    ];
    for (name, options) in ways {
        let all = tshark::read(name, &capture, options, &wanted());
        assert_eq!(all.len(), usual.len());
        for (shown, as_usual) in all.iter().zip(&usual) {
            // A damaged header looks like anything.
            if options.is_empty() && as_usual.contains_key("metaroce.error") {
                continue;
            }
            assert_eq!(shown, as_usual, "{name}");
        }
    }
    // Where the port is given up, it is RoCEv2's again; one may also pass on only what is of another version.
    let mut capture = Capture::new(Vec::new(), "two versions").expect("a capture");
    capture.watch(0, "here", "", 1).expect("an interface");
    for version in [0x10, 0x20] {
        let mut packet = packet::Packet::default();
        packet.bytes.clone_from(&sent[0]);
        packet.bytes[0] = version;
        capture.record(Time::ZERO, 0, &packet, None);
    }
    let capture = capture.finish().expect("written");
    let ours = |options: &[&str]| {
        let all = tshark::read("wireshark_port", &capture, options, &wanted());
        let shown = all
            .iter()
            .filter(|shown| shown.contains_key("metaroce.version"));
        shown.count()
    };
    assert_eq!(ours(&["-o", "metaroce.port:0"]), 0);
    assert_eq!(ours(&["-o", "metaroce.pass_on:TRUE"]), 1);
    assert_eq!(ours(&[]), 2);
}

#[test]
fn wireshark_reads_models_and_where_they_were_seen() {
    let mut capture = Capture::new(Vec::new(), "models").expect("a capture");
    capture.watch(4, "here", "", 1).expect("an interface");
    let mut packet = packet::Packet::default();
    packet.length = 4_200;
    packet.trimmed = true;
    packet.ecn = packet::Ecn::Ce;
    packet.segment = packet::Segment {
        kind: 3,
        flags: 0x81,
        lane: 65_535,
        flow: 70_000,
        message: 5,
        offset: 6,
        payload: 4_096,
        sequence: u64::MAX,
        cumulative: 8,
        vector: 9,
        value: 10,
        stamp: Time::from_ps(11),
    };
    let now = Time::from_ns(1_234_567_891);
    capture.record(now, 4, &packet, Some(Drop::QueueFull));
    let capture = capture.finish().expect("written");
    let expected: [(&str, &[&str]); 19] = [
        ("metaroce_model.kind", &["3"]),
        ("metaroce_model.flags", &["129"]),
        ("metaroce_model.lane", &["65535"]),
        ("metaroce_model.flow", &["70000"]),
        ("metaroce_model.message", &["5"]),
        ("metaroce_model.offset", &["6"]),
        ("metaroce_model.payload", &["4096"]),
        ("metaroce_model.length", &["4200"]),
        ("metaroce_model.sequence", &["18446744073709551615"]),
        ("metaroce_model.cumulative", &["8"]),
        ("metaroce_model.vector", &["9"]),
        ("metaroce_model.value", &["10"]),
        ("metaroce_model.stamp", &["11"]),
        ("metaroce_model.trimmed", &["1"]),
        ("metaroce_model.damaged", &["0"]),
        ("frame.time_epoch", &["1.234567891"]),
        ("frame.interface_name", &["here"]),
        ("ip.dsfield.ecn", &["3"]),
        (
            "frame.comment",
            &[
                "dropped: queue_full",
                "marked: congestion experienced",
                "trimmed: payload cut off",
            ],
        ),
    ];
    let names = expected.map(|(name, _)| name.to_owned());
    let all = tshark::read("wireshark_model", &capture, &[], &names);
    assert_eq!(all.len(), 1);
    for (name, values) in expected {
        let got = all[0].get(name).map(|got| got.iter().map(String::as_str));
        assert_eq!(got.map(Vec::from_iter), Some(values.to_vec()), "{name}");
    }
}
