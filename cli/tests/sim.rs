//! `metaroce sim`: runs, files, sweeps that are taken up again, and interrupts.

use assert_cmd::Command;
use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::contains;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn sim(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("metaroce").unwrap();
    command.arg("sim").args(arguments);
    command
}

fn scenario(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    folder.join(name).display().to_string()
}

fn stdout(arguments: &[&str]) -> Vec<u8> {
    sim(arguments)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone()
}

/// Every ready scenario, small enough for a test.
const READY: [(&str, &[&str]); 10] = [
    (
        "loss.toml",
        &["fabric.shape.leaves=2", "workload.size_bytes=1MiB"],
    ),
    (
        "incast.toml",
        &[
            "fabric.shape.k=4",
            "workload.senders=15",
            "workload.size_bytes=100000",
        ],
    ),
    (
        "permutation.toml",
        &["fabric.shape.k=4", "workload.size_bytes=200000"],
    ),
    (
        "collectives.toml",
        &[
            "fabric.shape.leaves=2",
            "workload.size_bytes=1MiB",
            "workload.repeat=2",
        ],
    ),
    (
        "planes.toml",
        &["fabric.shape.leaves=2", "workload.size_bytes=1MiB"],
    ),
    (
        "failure.toml",
        &[
            "workload.size_bytes=4MiB",
            "fault.0.from=100us",
            "fault.0.until=200us",
        ],
    ),
    (
        "buffers.toml",
        &["fabric.shape.leaves=2", "workload.size_bytes=1MiB"],
    ),
    (
        "scale-across.toml",
        &["workload.size_bytes=2MiB", "fabric.tiers.site.delay=500us"],
    ),
    (
        "kv-cache.toml",
        &["workload.requests=4", "workload.layers=4"],
    ),
    (
        "cloud.toml",
        &["fabric.shape.leaves=2", "workload.size_bytes=1MiB"],
    ),
];

const KINDS: [&str; 5] = [
    "metaroce",
    "rocev2",
    "infiniband",
    "ultra-ethernet",
    "celeris",
];

#[test]
fn every_ready_scenario_runs_to_its_end_with_every_transport() {
    let folder = std::fs::read_dir(scenario("")).unwrap();
    let mut files: Vec<String> = folder
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let mut known: Vec<&str> = READY.iter().map(|(file, _)| *file).collect();
    known.sort_unstable();
    assert_eq!(files, known);
    for (file, overrides) in READY {
        for kind in KINDS {
            let path = scenario(file);
            let transport = format!("transport.kind={kind}");
            let mut arguments = vec![path.as_str(), "--json", "--set", &transport];
            arguments.extend(overrides.iter().flat_map(|set| ["--set", set]));
            let summary: Value = serde_json::from_slice(&stdout(&arguments)).unwrap();
            assert_eq!(summary["end"], "complete", "{file}, {kind}");
            assert_eq!(summary["conserved"], true, "{file}, {kind}");
            assert_eq!(summary["transport"], kind, "{file}");
            assert_eq!(format!("{}.toml", summary["name"].as_str().unwrap()), file);
        }
    }
}

#[test]
fn equal_runs_print_equal_bytes_and_a_table_is_for_people() {
    let path = scenario("permutation.toml");
    let small = [path.as_str(), "--set", "fabric.shape.k=4", "--seed", "7"];
    let json = [&small[..], &["--json"]].concat();
    assert_eq!(stdout(&json), stdout(&json));
    sim(&small)
        .assert()
        .success()
        .stdout(contains(
            "permutation: metaroce on 16 hosts, seed 7: complete",
        ))
        .stdout(contains("Slowdown"))
        .stdout(contains("16 of 16 completed"));
}

#[test]
fn all_figures_become_files() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let path = scenario("incast.toml");
    let printed = stdout(&[
        &path,
        "--set",
        "fabric.shape.k=4",
        "--set",
        "workload.senders=3",
        "--set",
        "workload.size_bytes=40000",
        "--set",
        "run.series=1us",
        "--out",
        &out,
        "--json",
        "--trace",
        "--pcap",
        "p0:h0",
    ]);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let summary: Value = serde_json::from_str(&read("summary.json")).unwrap();
    assert_eq!(summary, serde_json::from_slice::<Value>(&printed).unwrap());
    let flows = read("flows.csv");
    assert!(
        flows.starts_with("task,group,from,to,bytes,started_ns"),
        "{flows}"
    );
    assert_eq!(flows.lines().count(), 4);
    assert_eq!(read("groups.csv").lines().count(), 2);
    // 16 links of hosts, 16 and 16 above, two ports each.
    assert_eq!(read("ports.csv").lines().count(), 1 + 96);
    assert!(
        read("series.csv").starts_with("time_ns,goodput_gbps,retransmissions,queue_bytes p0:s0>h0")
    );
    assert!(read("trace.ndjson").lines().count() > 100);
    // What was run can be run again: the scenario with all its defaults.
    let again: Value = serde_json::from_str(&read("scenario.json")).unwrap();
    assert_eq!(again["workload"]["incast"]["senders"], 3);
    // The capture has both ways of the receiver's link.
    Command::cargo_bin("metaroce")
        .unwrap()
        .args([
            "decode",
            &folder.path().join("capture.pcapng").display().to_string(),
        ])
        .assert()
        .success()
        .stdout(contains("DATA").and(contains("ACK")));
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_files_have_the_same_rows() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let path = scenario("incast.toml");
    stdout(&[
        &path,
        "--set",
        "fabric.shape.k=4",
        "--set",
        "workload.senders=5",
        "--out",
        &out,
        "--format",
        "parquet",
        "--json",
    ]);
    let file = std::fs::File::open(folder.path().join("flows.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows: Vec<_> = reader
        .get_row_iter(None)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(rows.len(), 5);
    let row = rows[4].to_string();
    assert!(
        row.contains("from: 5") && row.contains("failed: false"),
        "{row}"
    );
}

fn run_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder.join("runs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

#[test]
fn a_sweep_is_taken_up_where_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let path = scenario("permutation.toml");
    let sweep = |values: &str, seeds: &str| {
        stdout(&[
            &path,
            "--set",
            "fabric.shape.k=4",
            "--set",
            "workload.size_bytes=50000",
            "--sweep",
            values,
            "--sweep",
            "transport.kind=metaroce,rocev2",
            "--seeds",
            seeds,
            "--jobs",
            "2",
            "--out",
            &out,
        ])
    };
    let table = String::from_utf8(sweep("fabric.tiers.core.mbps=100G,25G", "1..3")).unwrap();
    assert!(
        table.starts_with("| fabric.tiers.core.mbps | transport.kind | runs | complete |"),
        "{table}"
    );
    assert_eq!(
        table
            .lines()
            .filter(|line| line.contains("| 3 | 3 |"))
            .count(),
        4,
        "{table}"
    );
    let files = run_files(folder.path());
    assert_eq!(files.len(), 12);
    // A result that is there is not computed again: a changed one shows in the table.
    let mut known: Value = serde_json::from_slice(&std::fs::read(&files[0]).unwrap()).unwrap();
    known["summary"]["jain"] = Value::from(1000.0);
    std::fs::write(&files[0], known.to_string()).unwrap();
    // One that is broken is.
    std::fs::write(&files[1], "{\"values\": [").unwrap();
    std::fs::remove_file(&files[2]).unwrap();
    let csv = |seeds| {
        sweep("fabric.tiers.core.mbps=100G,25G", seeds);
        std::fs::read_to_string(folder.path().join("sweep.csv")).unwrap()
    };
    let second = csv("1..3");
    assert_eq!(second.lines().count(), 13);
    assert_eq!(second.matches(",1000.0,").count(), 1);
    assert_eq!(run_files(folder.path()), files);
    // More seeds are more files.
    assert_eq!(csv("1..4").lines().count(), 17);
    // The same runs by other axes are known, and are called what they are now.
    let files = run_files(folder.path());
    let table = stdout(&[
        &path,
        "--set",
        "fabric.shape.k=4",
        "--set",
        "workload.size_bytes=50000",
        "--set",
        "transport.kind=rocev2",
        "--sweep",
        "fabric.tiers.core.mbps=25000,100000",
        "--out",
        &out,
    ]);
    assert_eq!(run_files(folder.path()), files);
    let table = String::from_utf8(table).unwrap();
    assert!(
        table.contains("| 25000 | 1 | 1 |") && table.contains("| 100000 | 1 | 1 |"),
        "{table}"
    );
}

#[test]
fn sweeps_say_what_cannot_be_before_they_begin() {
    let path = scenario("permutation.toml");
    sim(&[&path, "--sweep", "fabric.shape.k=4,5"])
        .assert()
        .code(2)
        .stderr(contains(
            "--set fabric.shape.k=5: fabric.shape.k: an even number",
        ));
    sim(&[&path, "--seeds", "3..1"])
        .assert()
        .code(2)
        .stderr(contains("such as 1..5"));
    sim(&[&path, "--set", "fabric.planes=two"])
        .assert()
        .code(2)
        .stderr(contains(
            "fabric.planes: text, where an integer is expected",
        ));
    sim(&["/nonexistent.toml"])
        .assert()
        .code(3)
        .stderr(contains("cannot read"));
}

#[test]
fn a_workload_that_does_not_end_fails() {
    let path = scenario("permutation.toml");
    sim(&[
        &path,
        "--set",
        "fabric.shape.k=4",
        "--set",
        "run.limit=10us",
        "--json",
    ])
    .assert()
    .code(1)
    .stdout(contains("\"time-limit\""));
}

/// Runs until files of it are there, and interrupts.
fn interrupted(arguments: &[&str], ready: impl Fn() -> bool) -> std::process::Output {
    let process = std::process::Command::new(env!("CARGO_BIN_EXE_metaroce"))
        .arg("sim")
        .args(arguments)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while !ready() {
        std::thread::yield_now();
    }
    let kill = format!("kill -INT {}", process.id());
    assert!(
        std::process::Command::new("sh")
            .args(["-c", &kill])
            .status()
            .unwrap()
            .success()
    );
    process.wait_with_output().unwrap()
}

#[test]
fn an_interrupt_leaves_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let path = scenario("loss.toml");
    let trace = folder.path().join("trace.ndjson");
    let endless = [
        path.as_str(),
        "--set",
        "workload.size_bytes=1GiB",
        "--out",
        &out,
        "--json",
    ];
    let begun = || std::fs::metadata(&trace).is_ok_and(|file| file.len() > 1_000_000);
    let output = interrupted(&[&endless[..], &["--trace"]].concat(), begun);
    assert_eq!(output.status.code(), Some(130));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&summary["end"], &summary["conserved"]),
        (&Value::from("stopped"), &Value::from(true))
    );
    assert!(
        std::fs::read_to_string(folder.path().join("flows.csv"))
            .unwrap()
            .lines()
            .count()
            > 10
    );
    // A sweep keeps the runs that are done.
    let sweep = [
        path.as_str(),
        "--set",
        "fabric.shape.leaves=2",
        "--sweep",
        "workload.size_bytes=64KiB,1GiB",
        "--jobs",
        "1",
        "--out",
        &out,
    ];
    let runs = folder.path().join("runs");
    let one_is_done = || {
        std::fs::read_dir(&runs).is_ok_and(|mut files| {
            files.any(|file| {
                file.unwrap()
                    .path()
                    .extension()
                    .is_some_and(|end| end == "json")
            })
        })
    };
    let output = interrupted(&sweep, one_is_done);
    assert_eq!(output.status.code(), Some(130));
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("1 of 2 runs are done.")
    );
}
