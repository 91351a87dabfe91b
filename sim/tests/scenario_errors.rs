//! What is wrong with a scenario file is said with its place, its key, and what would do.

use metaroce_sim::scenario::{Document, Files, NoFiles, Transport, Unwatched, execute};
use metaroce_sim::transport::roce::Congestion;

/// A file that is right.
const RIGHT: &str = r#"schema = 1
name = "right"

[fabric]
shape = { kind = "star", hosts = 4 }
base_rtt = "14.09us"
tiers = { all = { mbps = "100Gb/s" } }

[transport]
kind = "metaroce"
paths = 8

[workload]
kind = "incast"
size_bytes = "64KiB"

[[fault]]
effect = { kind = "loss", probability = "1%" }
from = "10us"

[run]
limit = "1s"
"#;

/// What is said of the file with one part replaced by another.
fn said(from: &str, to: &str) -> String {
    assert!(RIGHT.contains(from), "{from}");
    let text = RIGHT.replacen(from, to, 1);
    let none: [&str; 0] = [];
    let document = match Document::parse("f.toml", &text, &none, &NoFiles) {
        Ok(document) => document,
        Err(error) => return error.to_string(),
    };
    match execute(&document.scenario, 1, &mut Unwatched) {
        Ok(_) => "nothing".to_owned(),
        Err(error) => document.place(error).to_string(),
    }
}

#[test]
fn every_mistake_is_named_with_its_place() {
    let table = [
        ("schema = 1", "", "1:1: schema: missing: write `schema = 1`"),
        (
            "schema = 1",
            "schema = 2",
            "1:10: schema: this program reads version 1",
        ),
        (
            "name = \"right\"",
            "name = right",
            "2:8: string values must be quoted, expected literal string",
        ),
        (
            "name = \"right\"",
            "nmae = \"right\"",
            "2:1: nmae: there is no key `nmae` here: there are `schema`, `name`, `description`, `fabric`, `fault`, `transport`, `workload`, `background`, `run`",
        ),
        (
            "name = \"right\"",
            "name = 7",
            "2:8: name: `7`, where text in quotes is expected",
        ),
        (
            "hosts = 4",
            "hosts = 4.5",
            "5:34: fabric.shape.hosts: a number, where an integer is expected",
        ),
        (
            "hosts = 4",
            "hosts = -1",
            "5:34: fabric.shape.hosts: -1 does not do: an integer from 0 to 4294967295 is expected",
        ),
        (
            "hosts = 4",
            "hosts = 0",
            "5:26: fabric.shape.hosts: must be at least 1",
        ),
        (
            "hosts = 4",
            "host = 4",
            "5:26: fabric.shape.host: there is no key `host` here: only `hosts` is",
        ),
        ("hosts = 4", "", "5:9: fabric.shape: `hosts` is missing"),
        (
            "\"star\", hosts = 4",
            "\"sphere\"",
            "5:18: fabric.shape.kind: `sphere` is no choice here: there are `pair`, `star`, `leaf-spine`, `fat-tree`, `two-sites`",
        ),
        (
            "\"star\", hosts = 4",
            "\"fat-tree\", k = 5",
            "5:34: fabric.shape.k: an even number of ports from 2 to 64 is expected",
        ),
        (
            "\"star\", hosts = 4",
            "\"fat-tree\", pods = 5",
            "5:9: fabric.shape: `edges` is missing",
        ),
        (
            "kind = \"star\", ",
            "",
            "5:9: fabric.shape: `kind` is missing: there are `pair`, `star`, `leaf-spine`, `fat-tree`, `two-sites`",
        ),
        (
            "kind = \"star\", ",
            "kind = 3, ",
            "5:18: fabric.shape.kind: an integer, where one of `pair`, `star`, `leaf-spine`, `fat-tree`, `two-sites` is expected",
        ),
        (
            "\"14.09us\"",
            "\"14.09 parsecs\"",
            "6:12: fabric.base_rtt: unknown unit `parsecs`: use ns, us, ms, s or m, such as 500ms",
        ),
        (
            "\"14.09us\"",
            "true",
            "6:12: fabric.base_rtt: `true`, where a time such as \"14.09us\", or whole nanoseconds is expected",
        ),
        (
            "\"14.09us\"",
            "\"1ns\"",
            "6:1: fabric.base_rtt: serialisation and the delays that are set take 0.695680 us on the longest way",
        ),
        (
            "\"100Gb/s\"",
            "\"100GB\"",
            "7:26: fabric.tiers.all.mbps: `100GB` is not a rate, such as 100Gb/s",
        ),
        (
            "\"100Gb/s\"",
            "0",
            "7:1: fabric.tiers.mbps: must be at least 1",
        ),
        (
            "base_rtt",
            "planes = 300\nbase_rtt",
            "6:10: fabric.planes: 300 does not do: an integer from 0 to 255 is expected",
        ),
        (
            "base_rtt",
            "planes = 9\nbase_rtt",
            "6:1: fabric.planes: at most 8",
        ),
        (
            "base_rtt",
            "ecn = 1\nbase_rtt",
            "6:7: fabric.ecn: an integer, where true or false is expected",
        ),
        (
            "base_rtt",
            "priority = false\ntrim = true\nbase_rtt",
            "7:1: fabric.trim: headers need the control class's queue (priority)",
        ),
        (
            "base_rtt",
            "flow = { kind = \"credit\", bytes = 4000 }\nbase_rtt",
            "6:27: fabric.flow.bytes: at least a full packet, 4214",
        ),
        (
            "base_rtt",
            "flow = { kind = \"pause\", xoff_bytes = 9000, xon_bytes = 9001, headroom_bytes = 100000 }\nbase_rtt",
            "6:45: fabric.flow.xon_bytes: at most xoff_bytes",
        ),
        (
            "base_rtt",
            "trim = true\nflow = { kind = \"credit\", bytes = 9 }\nbase_rtt",
            "6:1: fabric.trim: a queue that trims has no flow control",
        ),
        (
            "base_rtt",
            "mark_low_bytes = 9\nmark_high_bytes = 8\nbase_rtt",
            "7:1: fabric.mark_high_bytes: must be above mark_low_bytes",
        ),
        (
            "base_rtt",
            "buffer = { bytes = 9 }\nbase_rtt",
            "6:10: fabric.buffer: `alpha_eighths` is missing",
        ),
        (
            "kind = \"metaroce\"",
            "",
            "9:1: transport: `kind` is missing: there are `metaroce`, `rocev2`, `infiniband`, `ultra-ethernet`, `celeris`",
        ),
        (
            "kind = \"metaroce\"",
            "kind = \"tcp\"",
            "10:8: transport.kind: `tcp` is no choice here: there are `metaroce`, `rocev2`, `infiniband`, `ultra-ethernet`, `celeris`",
        ),
        (
            "paths = 8",
            "paths = 8\npats = 9",
            "12:1: transport.pats: there is no key `pats` here: there are `paths`, `planes`, `mbps`, `payload_bytes`, `hints`, `announce`, `reorder_tolerance`",
        ),
        (
            "paths = 8",
            "paths = 129",
            "11:1: transport.paths: 129 does not do: 1 to 128 is expected",
        ),
        (
            "paths = 8",
            "paths = 0",
            "11:1: transport.paths: 0 does not do: 1 to 128 is expected",
        ),
        (
            "kind = \"metaroce\"\npaths = 8",
            "kind = \"rocev2\"\npreset = \"best\"",
            "11:10: transport.preset: one of `dcqcn`, `pause-only`, `irn` is expected",
        ),
        (
            "kind = \"metaroce\"\npaths = 8",
            "kind = \"ultra-ethernet\"\nnscc = { jump_gates = 1 }",
            "11:10: transport.nscc.jump_gates: there is no key `jump_gates` here: there are `line_mbps`, `network_rtt`, `packet_bytes`, `target_delay`",
        ),
        (
            "kind = \"incast\"",
            "kind = \"outrage\"",
            "14:8: workload.kind: `outrage` is no choice here: there are `permutation`, `incast`, `outcast`, `collective`, `poisson`, `training`, `pipeline`, `moe`, `kv-cache`, `storage`, `htsim`, `goal`",
        ),
        (
            "\"64KiB\"",
            "\"64 KiBit\"",
            "15:14: workload.size_bytes: unknown unit `KiBit`: use K, M or G, such as 64K",
        ),
        (
            "\"64KiB\"",
            "0",
            "13:2: workload: a transfer needs at least one byte",
        ),
        (
            "size_bytes",
            "senders = 9\nsize_bytes",
            "13:2: workload: 10 hosts are needed, there are 4",
        ),
        (
            "kind = \"incast\"\nsize_bytes = \"64KiB\"",
            "kind = \"htsim\"\nfile = \"a.cm\"",
            "15:8: workload.file: `a.cm`: files cannot be read here",
        ),
        (
            "\"1%\"",
            "\"101%\"",
            "18:41: fault.0.effect.probability: `101%` is not a share: write 1% or 0.01",
        ),
        (
            "\"1%\"",
            "1.5",
            "18:41: fault.0.effect.probability: 1.5 is not a probability: write \"1%\" or 0.01",
        ),
        (
            "probability",
            "chance",
            "18:27: fault.0.effect.chance: there is no key `chance` here: only `probability` is",
        ),
        (
            "kind = \"loss\", probability = \"1%\"",
            "kind = \"rain\"",
            "18:19: fault.0.effect.kind: `rain` is no choice here: there are `down`, `flap`, `loss`, `burst`, `corruption`, `duplication`, `reordering`, `slow`, `blackhole`",
        ),
        (
            "from = \"10us\"",
            "from = \"10us\"\nuntil = \"5us\"",
            "20:1: fault.0.until: must be after `from`, 10.000000 us",
        ),
        (
            "from = \"10us\"",
            "links = { tier = \"core\" }",
            "19:1: fault.0.links: there is no such link in this fabric",
        ),
        (
            "from = \"10us\"",
            "links = { tier = \"cellar\" }",
            "19:18: fault.0.links.tier: `cellar` is no choice here: there are `host`, `leaf`, `core`, `site`",
        ),
        (
            "from = \"10us\"",
            "links = { nth = 7 }",
            "19:11: fault.0.links.nth: there are 4 such links, from 0 on",
        ),
        (
            "from = \"10us\"",
            "direction = \"left\"",
            "19:13: fault.0.direction: `left` is no choice here: there are `both`, `up`, `down`",
        ),
        (
            "limit = \"1s\"",
            "limit = \"1s\"\nlimit = \"2s\"",
            "23:1: duplicate key",
        ),
        (
            "limit = \"1s\"",
            "queues = [\"p0:h9>s0\"]",
            "22:11: run.queues.0: there is no port `p0:h9>s0`: names are like p0:h3>s1",
        ),
        (
            "[[fault]]",
            "[fault]",
            "17:1: fault: a table, where a list ([[...]] for tables) is expected",
        ),
        ("[run]", "[run", "21:5: unclosed table, expected `]`"),
    ];
    for (from, to, expected) in table {
        let said = said(from, to);
        let found = said.strip_prefix("f.toml:").unwrap_or(&said);
        // Long lists of keys are given by their beginnings.
        assert!(found.starts_with(expected), "{from} -> {to}: {said}");
    }
}

#[test]
fn overrides_are_read_like_the_file_and_named_in_errors() {
    let parse = |overrides: &[&str]| Document::parse("f.toml", RIGHT, overrides, &NoFiles);
    let said = |text: &str| {
        parse(&[text])
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    for (text, expected) in [
        (
            "fabric.planes",
            "--set fabric.planes: write KEY=VALUE, such as fabric.planes=4",
        ),
        (
            "fabric..planes=4",
            "--set fabric..planes=4: write KEY=VALUE, such as fabric.planes=4",
        ),
        (
            "fabric.planes=many",
            "--set fabric.planes=many: fabric.planes: text, where an integer is expected",
        ),
        (
            "fabric.plains=4",
            "--set fabric.plains=4: fabric.plains: there is no key `plains` here",
        ),
        (
            "transport.paths.first=1",
            "--set transport.paths.first=1: transport.paths.first: `transport.paths` is an integer, not a table",
        ),
        (
            "fault.3.from=1us",
            "--set fault.3.from=1us: fault.3.from: `fault.3` is not there",
        ),
        (
            "workload.kind=none",
            "--set workload.kind=none: workload.kind: `none` is no choice here",
        ),
        ("fault.0.effect.probability=1", ""),
        ("run.limit=\"5ms\"", ""),
    ] {
        let found = said(text).err().unwrap_or_default();
        assert!(
            found.starts_with(expected) && found.is_empty() == expected.is_empty(),
            "{text}: {found}"
        );
    }
    let both = [
        "transport.queue_pairs=4",
        "transport.kind=rocev2",
        "fabric.shape.kind=fat-tree",
        "fabric.shape.k=4",
        "fabric.tiers.core={mbps=\"25G\"}",
    ];
    let scenario = parse(&both).unwrap().scenario;
    let Transport::RoceV2(roce) = &scenario.transport else {
        panic!("{:?}", scenario.transport)
    };
    // Another kind drops what the file says of the old one; the order of overrides does not matter.
    assert_eq!((roce.queue_pairs, roce.line_mbps), (4, 100_000));
    assert_eq!(scenario.fabric.shape.hosts(), 16);
    assert_eq!(
        scenario.fabric.tiers.map(|tier| tier.mbps),
        [100_000, 100_000, 25_000, 100_000]
    );
}

#[test]
fn settings_that_follow_from_the_fabric_do() {
    let scenario = |overrides: &[&str]| {
        Document::parse("f.toml", RIGHT, overrides, &NoFiles)
            .unwrap()
            .scenario
    };
    let planes = scenario(&["fabric.planes=4", "fabric.tiers.host.mbps=400Gb/s"]);
    let Transport::Metaroce(metaroce) = planes.transport else {
        panic!()
    };
    assert_eq!(
        (metaroce.planes, metaroce.mbps, metaroce.paths),
        (4, 400_000, 8)
    );
    let said = scenario(&["fabric.planes=4", "transport.planes=2"]);
    assert!(matches!(said.transport, Transport::Metaroce(m) if m.planes == 2));
    let trimming = scenario(&[
        "transport.kind=ultra-ethernet",
        "fabric.trim=true",
        "transport.nscc.fair=0.5",
    ]);
    let Transport::UltraEthernet(uec) = trimming.transport else {
        panic!()
    };
    assert!(!uec.sleek && uec.nscc.fair == 0.5);
    let irn = scenario(&["transport.kind=rocev2", "transport.preset=irn"]);
    // A round trip of 14.09 us at 100 Gb/s, in packets of 4194 bytes.
    assert!(
        matches!(irn.transport, Transport::RoceV2(r) if r.window_packets == Some(42) && r.retries.is_none())
    );
    let infiniband = scenario(&[
        "transport.kind=infiniband",
        "fabric.tiers.host.mbps=200G",
        "transport.congestion.kind=dcqcn",
        "transport.congestion.gain=0.5",
    ]);
    let Transport::Infiniband(infiniband) = infiniband.transport else {
        panic!()
    };
    assert_eq!(infiniband.line_mbps, 200_000);
    assert!(matches!(infiniband.congestion, Congestion::Dcqcn(d) if d.gain == 0.5));
    let load = scenario(&["background.load_percent=20%", "fabric.planes=2"])
        .background
        .unwrap();
    assert_eq!((load.load_percent, load.line_mbps), (20, 200_000));
}

/// A matrix beside the scenario.
struct Matrix;

impl Files for Matrix {
    fn read(&self, path: &str) -> Result<String, String> {
        assert_eq!(path, "two.cm");
        Ok(
            "Nodes 4\nConnections 2\n0->1 id 1 start 0 size 4096\n2->3 id 2 start 0 size 8192\n"
                .to_owned(),
        )
    }
}

#[test]
fn a_workload_may_be_a_file() {
    let text = RIGHT.replace(
        "kind = \"incast\"\nsize_bytes = \"64KiB\"",
        "kind = \"htsim\"\nfile = \"two.cm\"",
    );
    let none: [&str; 0] = [];
    let document = Document::parse("f.toml", &text, &none, &Matrix).unwrap();
    let report = execute(&document.scenario, 1, &mut Unwatched).unwrap();
    let bytes: Vec<u64> = report.flows.iter().map(|flow| flow.bytes).collect();
    assert_eq!(bytes, [4096, 8192]);
}
