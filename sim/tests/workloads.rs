//! Workloads carried out by MetaRoCE hosts on a fat tree: all come to their end, and take as long as they should.

use std::ops::ControlFlow;

use metaroce_sim::endpoint::LargeEndpoint;
use metaroce_sim::fabric::{Fabric, FabricConfig, Shape};
use metaroce_sim::simulation::Simulation;
use metaroce_sim::time::Time;
use metaroce_sim::transport::metaroce::{self, MetaroceConfig};
use metaroce_sim::workload::Workload;
use metaroce_sim::workload::program::{Action, Program};
use metaroce_sim::workload::run::{End, Record, Run, RunConfig};

/// Runs a description on 16 hosts of 100 Gb/s: how long each task took from the beginning, and all of them.
fn run(text: &str) -> (Program, Vec<Record>, Time) {
    let workload: Workload = toml::from_str(text).expect("a description");
    let config = FabricConfig {
        shape: Shape::fat_tree(4),
        ..FabricConfig::default()
    };
    let count = config.shape.hosts();
    let fabric = Fabric::new(&config, 1).expect("a fabric");
    let program = workload.program(count, 1).expect("a program");
    let pairs = program.pairs();
    let peers: Vec<usize> = (0..count)
        .map(|host| {
            (0..count)
                .filter(|&other| pairs.contains(&(host, other)) || pairs.contains(&(other, host)))
                .count()
        })
        .collect();
    let paths = MetaroceConfig {
        paths: 64,
        ..MetaroceConfig::default()
    };
    let hosts = metaroce::hosts::<LargeEndpoint>(&paths, 1, &peers).expect("hosts");
    let mut run = Run::new(Simulation::new(fabric.network, hosts), program.clone());
    let end = run.run(&RunConfig::default(), |_, _| ControlFlow::Continue(()));
    assert_eq!(end, End::Complete, "{text}");
    let begin = run.begin();
    let records = run.records().to_vec();
    for (task, record) in program.tasks().iter().zip(&records) {
        assert!(record.started >= begin + task.not_before);
        if let Action::Transfer { .. } = task.action {
            assert!(record.done > record.started && record.lost_bytes == 0);
        }
    }
    let last = records.iter().map(|record| record.acknowledged).max();
    (program, records, last.unwrap_or(Time::ZERO) - begin)
}

/// Bus bandwidth of the only group, in Gbit/s.
fn bus_gbps(text: &str) -> f64 {
    let (program, _, time) = run(text);
    let group = &program.groups()[0];
    let (numerator, denominator) = group.bus_factor;
    let bits = group.bytes as f64 * 8.0 * numerator as f64 / denominator as f64;
    bits / (time.us_f64() * 1e3)
}

#[test]
fn flows_take_as_long_as_published() {
    // Ultra Ethernet's htsim on the same fabric: a flow alone 176.2 us, a permutation over 128 paths 194.0 and over one 527.8.
    let (_, _, time) = run("[permutation]");
    assert!((176.0..300.0).contains(&time.us_f64()), "{time}");
    // 15:1 takes 2478.5 us with trimming and 2737.8 without; less than its bytes on one line nothing can.
    let (_, _, time) = run("[incast]");
    assert!((2468.0..2738.0).contains(&time.us_f64()), "{time}");
}

#[test]
fn collectives_use_the_lines() {
    for (what, least) in [
        ("operation = { all-reduce = \"ring\" }", 70.0),
        ("operation = { all-reduce = \"halving-doubling\" }", 60.0),
        ("operation = { all-reduce = \"double-tree\" }", 60.0),
        ("operation = \"all-gather\"", 70.0),
        ("operation = \"reduce-scatter\"", 70.0),
        ("operation = { broadcast = \"ring\" }", 45.0),
        ("operation = \"all-to-all\"", 75.0),
        ("operation = { all-to-all-in-rounds = 4 }", 60.0),
    ] {
        let gbps = bus_gbps(&format!("[collective]\n{what}\nsize_bytes = 4194304\n"));
        // Of 4,214 bytes on the line 4,096 are data.
        assert!((least..97.21).contains(&gbps), "{what}: {gbps}");
    }
}

#[test]
fn all_kinds_come_to_their_end() {
    for text in [
        "[outcast]\nsize_bytes = 100000",
        "[poisson]\nduration_ns = 300000\nsizes = \"hadoop\"",
        "[training]\nsteps = 2\ngradient_bytes = 2000000\nbucket_bytes = 500000\nstragglers = { uniform = 20 }",
        "[pipeline]\nactivation_bytes = 100000\nforward_ns = 10000\nbackward_ns = 20000",
        "[moe]\ntokens = 16\nwindow = 4",
        "[kv-cache]\nprefill = 8\ndecode = 8\nlayers = 4\nmean_gap_ns = 100000\ntoken_layer_ns = 10",
        "[storage]\nclients = 4\nwrite_percent = 30\nobjects = \"storage\"",
        "[htsim]",
        "[goal]",
    ] {
        run(text);
    }
}
