//! `decode` on a capture of the simulator, in which payloads are virtual: only headers are there.

use std::sync::{Arc, Mutex};

use assert_cmd::Command;
use metaroce_sim::capture::Capture;
use metaroce_sim::faults::FaultConfig;
use metaroce_sim::lab::setup::{Lab, Settings};
use metaroce_sim::observer::Watch;
use metaroce_sim::random::Probability;
use metaroce_sim::time::Time;
use metaroce_sim::topology::{PairConfig, pair};
use metaroce_soft::core::config::ConnectionConfig;
use serde_json::Value;

#[test]
fn a_simulated_capture_is_read() {
    let mut topology = pair(&PairConfig::default(), 1);
    for port in 0..2 {
        let faults = FaultConfig::loss(Probability::new(0.05));
        topology.network.set_faults(port, faults);
    }
    let mut capture = Capture::new(Vec::new(), "seed 1").unwrap();
    capture.watch_host(&topology.network, 0).unwrap();
    let capture = Arc::new(Mutex::new(capture));
    topology.network.observer = Watch(Some(Box::new(capture.clone())));
    let mut lab = Lab::new(topology, &Settings::default());
    let connection = lab.connect(0, 1, ConnectionConfig::default()).unwrap();
    lab.write(0, 1, connection, 0, 1_000_000, 1).unwrap();
    lab.completion(Time::from_ms(100)).unwrap();
    // A packet of a model is somebody else's.
    let model = metaroce_sim::packet::Packet::default();
    let mut file = capture.lock().unwrap();
    file.record(lab.sim.now(), 0, &model, None);
    let bytes = file.get_ref().clone();

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run.pcapng");
    std::fs::write(&path, &bytes).unwrap();
    let mut command = Command::cargo_bin("metaroce").unwrap();
    let assert = command.arg("decode").arg(&path).arg("--json").assert();
    let output = assert.success().get_output().stdout.clone();
    let result: Value = serde_json::from_slice(&output).unwrap();
    assert_eq!(result["frames"], file.packets());
    assert_eq!(result["packets_of_ours"], file.packets() - 1);
    assert_eq!(result["malformed"], 0);
    let sent = lab.sim.hosts[0].sent;
    assert_eq!(
        result["by_kind"]["DATA WRITE"],
        sent.packets[metaroce_sim::inspect::DATA]
    );
    let new_bytes: u64 = result["packets"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|packet| packet["kind"] == "DATA WRITE")
        .filter(|packet| {
            !packet["fields"]["flags"]
                .as_str()
                .is_some_and(|flags| flags.contains("RETRANSMISSION"))
        })
        .map(|packet| packet["fields"]["payload"].as_u64().unwrap())
        .sum();
    assert_eq!(new_bytes, 1_000_000);
    assert!(sent.retransmissions > 0);
}
