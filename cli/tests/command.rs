//! The command as a script sees it: output, JSON, exit codes.

use assert_cmd::Command;
use predicates::str::contains;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

fn metaroce(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("metaroce").unwrap();
    command.args(arguments);
    command
}

fn json(arguments: &[&str]) -> Value {
    let output = metaroce(arguments)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    serde_json::from_slice(&output).unwrap()
}

/// A server on a free port of loopback, ended with the test.
struct Server {
    process: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    address: String,
}

impl Server {
    fn start(more: &[&str]) -> Self {
        let mut process = std::process::Command::new(env!("CARGO_BIN_EXE_metaroce"))
            .args(["serve", "--json", "--plane", "127.0.0.1:0"])
            .args(more)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let listening: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(listening["event"], "listening");
        let address = listening["addresses"][0].as_str().unwrap().to_owned();
        Self {
            process,
            lines,
            address,
        }
    }

    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn the_demo_checks_every_byte_and_says_what_was_lost() {
    let result = json(&["demo", "--json", "--size", "24MiB", "--loss", "2%"]);
    assert_eq!(result["verified_bytes"], 24 << 20);
    assert_eq!(result["wrong"], Value::Null);
    assert_eq!(result["paths"].as_array().unwrap().len(), 8);
    for direction in ["injected_forward", "injected_backward"] {
        let share = result["loss"][direction].as_f64().unwrap();
        assert!(share < 0.06, "{direction} {share}");
    }
    assert!(result["loss"]["dropped_forward"].as_u64().unwrap() > 20);
    assert!(result["retransmissions"].as_u64().unwrap() > 20);
    assert!(result["goodput_gbit"].as_f64().unwrap() > 0.0);
    assert!(result["duplicates_dropped"].is_u64());
}

#[test]
fn the_demo_is_for_people_too() {
    metaroce(&["demo", "--size", "1MiB", "--paths", "3", "--ipv6"])
        .assert()
        .success()
        .stdout(contains("over 3 paths"))
        .stdout(contains("Bytes checked"))
        .stdout(contains("Every byte was in its place, once."));
}

#[test]
fn the_demo_survives_every_fault_at_once() {
    let plan = "loss=2%,burst=1%:5,duplicate=2%,corrupt=1%,reorder=1%:200us,jitter=50us,ce=2%,blackhole=path:3@50ms-400ms";
    let result = json(&["demo", "--json", "--size", "16MiB", "--faults", plan]);
    assert_eq!(result["verified_bytes"], 16 << 20);
}

#[test]
fn reads_writes_and_atomics_are_verified() {
    for kind in ["write", "read"] {
        let result = json(&[
            "perf", kind, "--local", "--json", "--verify", "--bytes", "24M", "--window", "8M",
            "--faults", "loss=1%",
        ]);
        let size = &result["results"][0];
        assert_eq!(size["verified_bytes"], 24 << 20, "{kind}: {result}");
        assert_eq!(size["unreported"], 0);
    }
    let result = json(&[
        "perf", "atomic", "--local", "--json", "--verify", "--count", "3000", "--faults", "loss=1%",
    ]);
    assert_eq!(result["results"][0]["operations"], 3000);
    metaroce(&["perf", "send", "--local", "--verify"])
        .assert()
        .code(2)
        .stderr(contains("cannot be verified"));
}

#[test]
fn a_sweep_and_a_latency_have_all_their_figures() {
    let result = json(&[
        "perf",
        "send",
        "--local",
        "--json",
        "--size",
        "64,4K,64K",
        "--count",
        "200",
        "--streams",
        "4",
    ]);
    let sizes: Vec<_> = result["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|size| size["size"].as_u64().unwrap())
        .collect();
    assert_eq!(sizes, [64, 4096, 65_536]);
    let result = json(&[
        "perf",
        "write",
        "--local",
        "--json",
        "--latency",
        "--count",
        "200",
    ]);
    let latency = &result["results"][0]["latency_us"];
    let at = |name: &str| latency[name].as_f64().unwrap();
    assert!(
        at("min") <= at("p50") && at("p50") <= at("p99") && at("p99") <= at("max"),
        "{latency}"
    );
    metaroce(&["perf", "write", "--local", "--latency", "--count", "50"])
        .assert()
        .success()
        .stdout(contains("p99.9"));
}

#[test]
fn a_server_serves_one_client_after_the_other() {
    let mut server = Server::start(&[]);
    for _ in 0..2 {
        let address = server.address.clone();
        let result = json(&[
            "perf", "write", &address, "--json", "--verify", "--bytes", "4M",
        ]);
        assert_eq!(result["results"][0]["verified_bytes"], 4 << 20);
        assert_eq!(server.next()["event"], "connected");
        let closed = server.next();
        assert_eq!(
            (&closed["event"], &closed["reason"]),
            (&Value::from("closed"), &Value::from("PeerClose"))
        );
        assert!(closed["received_bytes"].as_u64().unwrap() >= 4 << 20);
    }
}

#[test]
fn a_server_that_is_wanted_once_ends_by_itself() {
    let mut server = Server::start(&["--once"]);
    let address = server.address.clone();
    metaroce(&["perf", "read", &address, "--count", "10"])
        .assert()
        .success();
    assert!(server.process.wait().unwrap().success());
}

#[test]
fn an_interrupt_ends_with_the_figures_so_far() {
    let mut perf = std::process::Command::new(env!("CARGO_BIN_EXE_metaroce"))
        .args([
            "perf",
            "write",
            "--local",
            "--json",
            "--events",
            "--duration",
            "10m",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(perf.stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("opened"), "{line}");
    let kill = format!("kill -INT {}", perf.id());
    assert!(
        std::process::Command::new("sh")
            .args(["-c", &kill])
            .status()
            .unwrap()
            .success()
    );
    let output = perf.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["interrupted"], true);
    assert_eq!(result["results"][0]["unreported"], 0);
}

#[test]
fn what_cannot_be_is_said_with_its_exit_code() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    metaroce(&["serve", "--plane", &address])
        .assert()
        .code(3)
        .stderr(contains(
            "is the address on this machine and the port free?",
        ));
    metaroce(&["perf", "write", &address, "--failure-timeout", "200ms"])
        .assert()
        .code(4)
        .stderr(contains("no path to the peer answers"));
    metaroce(&["perf", "write", "localhost"])
        .assert()
        .code(2)
        .stderr(contains("names are not looked up"));
    metaroce(&["perf", "write", "127.0.0.1", "127.0.0.2"])
        .assert()
        .code(2)
        .stderr(contains("one peer address for each --plane"));
    metaroce(&["demo", "--faults", "los=1%"])
        .assert()
        .code(2)
        .stderr(contains("character 1: `los=1%`: unknown fault `los`"));
    metaroce(&["decode", "/nonexistent"])
        .assert()
        .code(3)
        .stderr(contains("cannot open"));
    metaroce(&["perf", "write", "--local", "--size", "128M"])
        .assert()
        .code(2)
        .stderr(contains("do not fit into the window"));
    let output = metaroce(&["decode", "/nonexistent", "--json"])
        .assert()
        .code(3)
        .get_output()
        .stdout
        .clone();
    let error: Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(error["error"]["exit_code"], 3);
}

#[test]
fn info_knows_the_host_and_the_limits() {
    let info = json(&["info", "--json"]);
    assert_eq!(info["wire_version"], 1);
    assert_eq!(info["limits"]["paths"], 64);
    assert!(info["host"]["send_segments"].as_u64().unwrap() >= 1);
    metaroce(&["info"])
        .assert()
        .success()
        .stdout(contains("Datagrams per send"));
    metaroce(&["--help"])
        .assert()
        .success()
        .stdout(contains("Exit codes"));
}
