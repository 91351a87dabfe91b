//! Every transport in every situation.

use std::fmt;
use std::ops::ControlFlow;

use metaroce_sim::capture::Capture;
use metaroce_sim::fabric::Fabric;
use metaroce_sim::network::Network;
use metaroce_sim::node::Node;
use metaroce_sim::simulation::Simulation;
use metaroce_sim::time::Time;
use metaroce_sim::trace::{Header, NetworkTrace};
use metaroce_sim::workload::Workload;
use metaroce_sim::workload::program::Program;
use metaroce_sim::workload::run::{End, Run, RunConfig};

use crate::digest::{Digest, DigestFile};
use crate::situations::{ALL, Situation};
use crate::transports::{Hosts, Transport};

/// What came of a case: hashes of all there is to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// Packets that crossed a link.
    pub hops: u64,
    /// Events.
    pub events: u64,
    /// Every hop.
    pub trace: u64,
    /// What became of every task.
    pub records: u64,
    /// What hosts and ports counted.
    pub counters: u64,
    /// The bytes of the capture and of the trace, if they were written.
    pub files: u64,
}

impl Outcome {
    /// One number for all of it.
    #[must_use]
    pub fn hash(&self) -> u64 {
        Digest::of(self).value()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}, {} hops, {} events, trace {:016x}, records {:016x}, counters {:016x}, files {:016x}",
            self.end, self.hops, self.events, self.trace, self.records, self.counters, self.files
        )
    }
}

/// How many cases there are.
#[must_use]
pub const fn count() -> usize {
    ALL.len() * Transport::ALL.len()
}

fn parts(case: usize) -> Option<(&'static Situation, Transport)> {
    let situation = ALL.get(case / Transport::ALL.len())?;
    let transport = Transport::ALL[case % Transport::ALL.len()];
    Some((situation, transport))
}

/// The name of a case.
#[must_use]
pub fn name(case: usize) -> String {
    parts(case).map_or_else(
        || format!("case {case}"),
        |(situation, transport)| format!("{}: {transport:?}", situation.name),
    )
}

/// Runs a case.
///
/// # Errors
/// If there is no such case, or it makes no sense.
pub fn run(case: usize, seed: u64) -> Result<Outcome, String> {
    let (situation, transport) = parts(case).ok_or("there is no such case")?;
    let mut config = (situation.fabric)();
    transport.prepare(&mut config);
    let mut fabric = Fabric::new(&config, seed).map_err(|error| error.to_string())?;
    (situation.disturb)(&mut fabric);
    let workload: Workload =
        serde_json::from_str(situation.workload).map_err(|error| error.to_string())?;
    let program = workload
        .program(config.hosts(), seed)
        .map_err(|error| error.to_string())?;
    let mut files = None;
    if situation.written {
        files = Some(watch(&mut fabric.network, situation.name, seed)?);
    }
    let hosts = transport.hosts(&config, &program, seed)?;
    let mut outcome = match hosts {
        Hosts::Metaroce(hosts) => carry_out(fabric.network, hosts, program),
        Hosts::Roce(hosts) => carry_out(fabric.network, hosts, program),
        Hosts::Infiniband(hosts) => carry_out(fabric.network, hosts, program),
        Hosts::Uec(hosts) => carry_out(fabric.network, hosts, program),
        Hosts::Celeris(hosts) => carry_out(fabric.network, hosts, program),
    };
    if let Some(files) = files {
        outcome.files = Digest::of(&files.map(|file| file.digest())).value();
    }
    Ok(outcome)
}

/// Lets a capture and a trace be written.
fn watch(network: &mut Network, name: &str, seed: u64) -> Result<[DigestFile; 2], String> {
    let files = [DigestFile::default(), DigestFile::default()];
    let mut capture = Capture::new(files[0].clone(), name).map_err(|error| error.to_string())?;
    capture
        .watch_host(network, 0)
        .map_err(|error| error.to_string())?;
    let header = Header::new(name, seed);
    let trace = NetworkTrace::new(files[1].clone(), header, network, true)
        .map_err(|error| error.to_string())?;
    network.observer.0 = Some(Box::new((capture, trace)));
    Ok(files)
}

fn carry_out<N: Node>(network: Network, hosts: Vec<N>, program: Program) -> Outcome {
    let config = RunConfig {
        limit: Time::from_ms(100),
        ..RunConfig::default()
    };
    let mut run = Run::new(Simulation::new(network, hosts), program);
    let end = run.run(&config, |_, _| ControlFlow::Continue(()));
    let network = &run.sim.network;
    // What came is what left, was dropped, cut off or is still there, in packets and bytes, at every port and switch.
    assert!(network.is_conserved(), "a packet or byte was lost count of");
    let ports: Vec<_> = network.ports.iter().map(|port| port.statistics).collect();
    Outcome {
        end,
        hops: network.hops(),
        events: network.events_processed(),
        trace: network.trace_hash(),
        records: Digest::of(&run.records()).value(),
        counters: Digest::of(&(run.counters(), ports, run.sim.now())).value(),
        files: 0,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_case_runs_and_is_like_no_other() {
        let all = || (0..count()).map(|case| run(case, 1).expect("a case that runs"));
        let first: Vec<Outcome> = all().collect();
        assert!(first.iter().copied().eq(all()));
        let hashes: BTreeSet<u64> = first.iter().map(Outcome::hash).collect();
        assert_eq!(hashes.len(), count());
        // A host that waits for a timeout after the limit is a case too, but an exception.
        let complete = first.iter().filter(|o| o.end == End::Complete).count();
        assert!(complete * 20 >= count() * 19, "{complete}");
        assert!(run(count(), 1).is_err());
    }

    #[test]
    fn every_kind_of_workload_is_there() {
        let kinds: BTreeSet<&str> = ALL
            .iter()
            .filter_map(|situation| situation.workload.split('"').nth(1))
            .collect();
        let expected = [
            "collective",
            "goal",
            "htsim",
            "incast",
            "kv-cache",
            "moe",
            "outcast",
            "permutation",
            "pipeline",
            "poisson",
            "storage",
            "training",
        ];
        assert!(kinds.iter().eq(expected.iter()), "{kinds:?}");
    }
}
