//! Goes to a device with the soft NIC, over several connections at once: writes, reads and adds to its memory, and checks every byte.
//!
//! `metaroce-device-peer LOCAL DEVICE [--loss PERCENT] [--rounds N] [--connections N] [--seed N] [--timeout SECONDS]`

#![forbid(unsafe_code)]

mod arguments;
mod visit;

use std::process::ExitCode;
use std::time::Instant;

use arguments::Arguments;
use metaroce_soft::Nic;
use metaroce_soft::fault::{FaultPlan, Faults};

fn main() -> ExitCode {
    let outcome = Arguments::parse(std::env::args().skip(1)).and_then(|arguments| run(&arguments));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("metaroce-device-peer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let mut builder = Nic::builder()
        .plane(arguments.local)
        .listen(false)
        .rate_mbps(arguments.mbps)
        .connections(arguments.connections);
    if arguments.loss > 0.0 {
        let faults = Faults::with_loss(arguments.loss / 100.0);
        builder = builder.faults(FaultPlan::both_ways(arguments.seed, faults));
    }
    let nic = builder.build().map_err(|error| error.to_string())?;
    let start = Instant::now();
    let tally = visit::run(&nic, arguments)?;
    let seconds = start.elapsed().as_secs_f64();
    let statistics = nic.statistics();
    let (out, back) = (statistics.faults_outgoing, statistics.faults_incoming);
    println!(
        "{} connections, {} rounds each: {} B written, {} B read, {} additions, every byte good; {} and {} datagrams, {} and {} of them dropped; {} sent again; {seconds:.2} s",
        arguments.connections,
        arguments.rounds,
        tally.written,
        tally.read,
        tally.additions,
        statistics.endpoint.datagrams_sent,
        statistics.endpoint.datagrams_received + back.dropped(),
        out.dropped(),
        back.dropped(),
        tally.retransmissions,
    );
    // A loss that was asked for and did not happen would prove nothing.
    if arguments.loss > 0.0 && out.dropped() + back.dropped() == 0 {
        return Err("nothing was dropped: more rounds are needed".to_owned());
    }
    Ok(())
}
