//! Writes a capture and a trace of one write between two hosts over a link that loses packets:
//! `cargo run --release -p metaroce-sim --example capture -- FOLDER`, then
//! `tshark -X lua_script:tools/wireshark/metaroce.lua -r FOLDER/run.pcapng`.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use clap::Parser;
use metaroce_core::config::ConnectionConfig;
use metaroce_sim::capture::Capture;
use metaroce_sim::faults::FaultConfig;
use metaroce_sim::lab::setup::{Lab, Settings};
use metaroce_sim::observer::Watch;
use metaroce_sim::random::Probability;
use metaroce_sim::time::Time;
use metaroce_sim::topology::{PairConfig, pair};
use metaroce_sim::trace::{Header, NetworkTrace, Snapshots};

/// A write, captured and traced.
#[derive(Parser)]
struct Args {
    /// Where `run.pcapng` and `run.ndjson` go.
    folder: PathBuf,
    /// Length of the write, bytes.
    #[arg(long, default_value_t = 100_000)]
    bytes: u32,
    /// Share of packets lost, each way.
    #[arg(long, default_value_t = 0.02)]
    loss: f64,
    /// Paths.
    #[arg(long, default_value_t = 4)]
    paths: u8,
    /// Seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let mut topology = pair(&PairConfig::default(), args.seed);
    let network = &mut topology.network;
    for port in 0..network.ports.len() as u32 {
        network.set_faults(port, FaultConfig::loss(Probability::new(args.loss)));
    }
    let create = |name| File::create(args.folder.join(name)).map(BufWriter::new);
    let about = format!(
        "a write of {} bytes, {} lost, seed {}",
        args.bytes, args.loss, args.seed
    );
    let mut capture = Capture::new(create("run.pcapng")?, &about)?;
    capture.watch_host(network, 0)?;
    let header = Header::new(&about, args.seed);
    let trace = NetworkTrace::new(create("run.ndjson")?, header, network, true)?;
    let (capture, trace) = (Arc::new(Mutex::new(capture)), Arc::new(Mutex::new(trace)));
    network.observer = Watch(Some(Box::new((capture.clone(), trace.clone()))));

    let settings = Settings {
        seed: args.seed,
        ..Settings::default()
    };
    let mut lab = Lab::new(topology, &settings);
    let config = ConnectionConfig {
        paths: args.paths,
        ..ConnectionConfig::default()
    };
    let connection = lab.connect(0, 1, config)?;
    lab.write(0, 1, connection, 0, args.bytes, 1)?;
    // The statistics every 5 us, until all is acknowledged.
    let mut snapshots = Snapshots::default();
    loop {
        let now = lab.sim.now();
        let events = snapshots.take(0, 0, connection, &lab.sim.hosts[0].endpoint);
        if let Ok(mut trace) = trace.lock() {
            for event in events {
                trace.event(now, Some(0), &event);
            }
        }
        if lab.completion(now + Time::from_us(5)).is_ok() {
            break;
        }
    }
    println!("{about}: done at {}", lab.sim.now());

    lab.sim.network.observer = Watch::default();
    let gone = "the observer is gone from the network";
    let capture = Arc::into_inner(capture).ok_or(gone)?.into_inner();
    capture.map_err(|_| gone)?.finish()?;
    let trace = Arc::into_inner(trace).ok_or(gone)?.into_inner();
    trace.map_err(|_| gone)?.finish()?;
    Ok(())
}
