//! `decode` on captures made here: pcap and pcapng, IPv4 and IPv6, whole and damaged packets.

use assert_cmd::Command;
use etherparse::PacketBuilder;
use metaroce_soft::core::wire::{
    ACK_SIZE, AckBlock, AckKind, DATA_SIZE, Data, Demand, Header, Hint, Kind, MAX_DATAGRAM, Opcode,
    Probe, Trailer, encode_ack, encode_data, seal,
};
use serde_json::Value;
use std::path::PathBuf;

fn probe() -> Vec<u8> {
    let probe = Probe {
        path: 3,
        generation: 1,
        connection: 0x1122_3344,
        attempt: 0,
        tsn: 77,
    };
    let mut buffer = [0; 64];
    let length = probe.encode(&mut buffer).unwrap();
    let length = seal(&mut buffer, length, Trailer::Crc32c).unwrap();
    buffer[..length].to_vec()
}

fn hint() -> Vec<u8> {
    let hint = Hint {
        path: 0,
        generation: 0,
        connection: 9,
        number: 1,
        rate_mbps: 12_345,
    };
    let mut buffer = [0; 64];
    let length = hint.encode(&mut buffer).unwrap();
    let length = seal(&mut buffer, length, Trailer::Crc32c).unwrap();
    buffer[..length].to_vec()
}

fn data() -> Vec<u8> {
    let mut header = Header::new(Kind::Data, 0xabcd);
    (header.path, header.psn, header.tsn) = (2, 5, 6);
    let data = Data {
        opcode: Opcode::Write,
        demand: Demand::NONE,
        stream: 4,
        msn: 8,
        length: 100,
        offset: 0,
        address: 0x1000,
        key: 0x8000_0001,
        immediate: 0,
    };
    let mut start = [0; DATA_SIZE];
    encode_data(&header, &data, &mut start);
    let mut buffer = vec![0; MAX_DATAGRAM];
    buffer[..DATA_SIZE].copy_from_slice(&start);
    buffer[DATA_SIZE..DATA_SIZE + 100].fill(0x77);
    let length = seal(&mut buffer, DATA_SIZE + 100, Trailer::Crc32c).unwrap();
    buffer.truncate(length);
    buffer
}

/// Frames: a probe, a hint over IPv6, DATA marked CE, a damaged probe, somebody else's datagram, and an ARP-like frame.
fn frames() -> Vec<Vec<u8>> {
    let v4 = |payload: &[u8], ecn: u8| {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .udp(50_000, 14_791)
            .write(&mut frame, payload)
            .unwrap();
        frame[15] |= ecn;
        frame
    };
    let v6 = |payload: &[u8]| {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv6([1; 16], [2; 16], 64)
            .udp(50_001, 14_791)
            .write(&mut frame, payload)
            .unwrap();
        frame
    };
    let mut damaged = probe();
    damaged[12] ^= 1;
    vec![
        v4(&probe(), 2),
        v6(&hint()),
        v4(&data(), 3),
        v4(&damaged, 2),
        v4(b"somebody else's datagram", 0),
        vec![0; 20],
    ]
}

fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4u32, 4 << 16 | 2, 0, 0, 65_535, 1] {
        file.extend(word.to_le_bytes());
    }
    for (number, frame) in frames.iter().enumerate() {
        for word in [
            1_000,
            number as u32 * 10,
            frame.len() as u32,
            frame.len() as u32,
        ] {
            file.extend(word.to_le_bytes());
        }
        file.extend(frame);
    }
    file
}

fn pcapng(frames: &[Vec<u8>]) -> Vec<u8> {
    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (12 + body.len().next_multiple_of(4)) as u32;
        let mut block = Vec::new();
        block.extend(kind.to_le_bytes());
        block.extend(length.to_le_bytes());
        block.extend(body);
        block.resize(length as usize - 4, 0);
        block.extend(length.to_le_bytes());
        block
    }
    let mut section = Vec::new();
    section.extend(0x1a2b_3c4du32.to_le_bytes());
    section.extend([1, 0, 0, 0]);
    section.extend(u64::MAX.to_le_bytes());
    let mut file = block(0x0a0d_0d0a, &section);
    file.extend(block(1, &[1, 0, 0, 0, 0, 0, 1, 0]));
    for frame in frames {
        let mut body = Vec::new();
        for word in [0, 0, 1_000_000, frame.len() as u32, frame.len() as u32] {
            body.extend(u32::to_le_bytes(word));
        }
        body.extend(frame);
        file.extend(block(6, &body));
    }
    file
}

fn decode(file: &[u8], more: &[&str]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let path: PathBuf = directory.path().join("capture");
    std::fs::write(&path, file).unwrap();
    let mut command = Command::cargo_bin("metaroce").unwrap();
    let output = command
        .arg("decode")
        .arg(&path)
        .arg("--json")
        .args(more)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    serde_json::from_slice(&output).unwrap()
}

#[test]
fn packets_are_named_with_their_fields_and_reasons() {
    for file in [pcap(&frames()), pcapng(&frames())] {
        let result = decode(&file, &[]);
        assert_eq!(
            (&result["frames"], &result["packets_of_ours"]),
            (&Value::from(6), &Value::from(4))
        );
        assert_eq!(
            (&result["malformed"], &result["ce_marked"]),
            (&Value::from(1), &Value::from(1))
        );
        let packets = result["packets"].as_array().unwrap();
        assert_eq!(packets[0]["kind"], "PROBE");
        assert_eq!(packets[0]["fields"]["tsn"], 77);
        assert_eq!(packets[0]["fields"]["connection"], "11223344");
        assert_eq!(packets[1]["kind"], "HINT");
        assert_eq!(packets[1]["fields"]["rate_mbps"], 12_345);
        assert!(
            packets[1]["source"]
                .as_str()
                .unwrap()
                .starts_with("[101:101")
        );
        assert_eq!(packets[2]["kind"], "DATA WRITE");
        assert_eq!(
            (&packets[2]["fields"]["payload"], &packets[2]["ecn"]),
            (&Value::from(100), &Value::from(3))
        );
        assert!(
            packets[3]["malformed"]
                .as_str()
                .unwrap()
                .starts_with("CRC32C is"),
            "{}",
            packets[3]
        );
    }
}

#[test]
fn a_port_takes_everything_on_it_for_ours() {
    let result = decode(&pcap(&frames()), &["--port", "14791", "--summary"]);
    assert_eq!(
        (&result["packets_of_ours"], &result["malformed"]),
        (&Value::from(5), &Value::from(2))
    );
    assert!(result["packets"].as_array().unwrap().is_empty());
    assert_eq!(
        decode(&pcap(&frames()), &["--port", "1"])["packets_of_ours"],
        0
    );
}

#[test]
fn a_file_that_ends_early_is_said_to() {
    let mut file = pcap(&frames());
    file.truncate(file.len() - 7);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("capture");
    std::fs::write(&path, &file).unwrap();
    let assert = Command::cargo_bin("metaroce")
        .unwrap()
        .arg("decode")
        .arg(&path)
        .assert()
        .code(3);
    let output = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(output.contains("ends in the middle of a block"), "{output}");
}

#[test]
fn acknowledgments_show_their_blocks() {
    let mut start = [0; ACK_SIZE];
    let block = AckBlock {
        path: 1,
        generation: 0,
        cumulative: 10,
        newest_tsn: 14,
        newest_psn: 13,
        delay: 2,
        ce_count: 0,
        received: 12,
        hint_mbps: 5,
        sack: [0b1100, 0, 0, 0],
    };
    let length = encode_ack(AckKind::Ack, Default::default(), 7, &block, &mut start);
    let mut buffer = [&start[..length], &[0; 4]].concat();
    seal(&mut buffer, length, Trailer::Crc32c).unwrap();
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4([1; 4], [2; 4], 64)
        .udp(1, 2)
        .write(&mut frame, &buffer)
        .unwrap();
    let result = decode(&pcap(&[frame]), &[]);
    let blocks = &result["packets"][0]["fields"]["blocks"];
    assert_eq!(
        (&blocks[0]["cumulative"], &blocks[0]["beyond"]),
        (&Value::from(10), &Value::from(2))
    );
}
