//! Watches one run: its progress, its trace and its capture.

use super::progress::Bar;
use super::{SimArgs, system};
use crate::failure::Failure;
use metaroce_sim::capture::Capture;
use metaroce_sim::network::Network;
use metaroce_sim::observer::{Observer, Watch as Place};
use metaroce_sim::scenario::report::port_name;
use metaroce_sim::scenario::{Moment, Scenario, Watch};
use metaroce_sim::trace::{Header, NetworkTrace};
use std::fs::File;
use std::io::BufWriter;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

type Out = BufWriter<File>;

/// Watches a run.
pub struct Watcher<'a> {
    pub bar: Bar,
    args: &'a SimArgs,
    scenario: &'a Scenario,
    seed: u64,
    trace: Option<Arc<Mutex<NetworkTrace<Out>>>>,
    capture: Option<Arc<Mutex<Capture<Out>>>>,
}

impl<'a> Watcher<'a> {
    pub fn new(args: &'a SimArgs, scenario: &'a Scenario, seed: u64, bar: Bar) -> Self {
        Self {
            bar,
            args,
            scenario,
            seed,
            trace: None,
            capture: None,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.args.out.clone().unwrap_or_default().join(name)
    }

    fn create(&self, name: &str) -> Result<Out, String> {
        let path = self.path(name);
        let file = File::create(&path).map_err(|error| system(&path, error).to_string())?;
        Ok(BufWriter::new(file))
    }

    /// Ends the files.
    ///
    /// # Errors
    /// The first error that there was.
    pub fn finish(self) -> Result<Bar, Failure> {
        let (trace_path, capture_path) = (self.path("trace.ndjson"), self.path("capture.pcapng"));
        if let Some(trace) = self.trace.and_then(Arc::into_inner) {
            let trace = trace.into_inner().unwrap_or_else(|lock| lock.into_inner());
            let written = trace.finish().and_then(|out| Ok(out.into_inner()?));
            written.map_err(|error| system(&trace_path, error))?;
        }
        if let Some(capture) = self.capture.and_then(Arc::into_inner) {
            let capture = capture
                .into_inner()
                .unwrap_or_else(|lock| lock.into_inner());
            let out = capture
                .finish()
                .map_err(|error| system(&capture_path, error))?;
            out.into_inner()
                .map_err(|error| system(&capture_path, error))?;
        }
        Ok(self.bar)
    }
}

/// The ports of these names; that of a host's link stands for both ways.
fn named(network: &Network, names: &[String]) -> Result<Vec<u32>, String> {
    let all: Vec<String> = network.ports.iter().map(port_name).collect();
    let mut found = Vec::new();
    for name in names {
        let before = found.len();
        for (id, port) in all.iter().enumerate() {
            let (plane, ends) = port.split_once(':').unwrap_or(("", port));
            let either = name
                .split_once(':')
                .is_some_and(|(p, node)| p == plane && ends.split('>').any(|end| end == node));
            if port == name || either {
                found.push(id as u32);
            }
        }
        if found.len() == before {
            return Err(format!(
                "--pcap {name}: there is no such port; names are like p0:h3>s1, or p0:h3"
            ));
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

impl Watch for Watcher<'_> {
    fn begin(&mut self, network: &mut Network) -> Result<(), String> {
        let name = if self.scenario.name.is_empty() {
            self.args.file.display().to_string()
        } else {
            self.scenario.name.clone()
        };
        if self.args.trace {
            let out = self.create("trace.ndjson")?;
            let header = Header {
                transport: Some(self.scenario.transport.name().to_owned()),
                ..Header::new(&name, self.seed)
            };
            let trace = NetworkTrace::new(out, header, network, true)
                .map_err(|error| system(&self.path("trace.ndjson"), error).to_string())?;
            self.trace = Some(Arc::new(Mutex::new(trace)));
        }
        if !self.args.pcap.is_empty() {
            let out = self.create("capture.pcapng")?;
            let wrong = |error| system(&self.path("capture.pcapng"), error).to_string();
            let about = format!("scenario {name}, seed {}", self.seed);
            let mut capture = Capture::new(out, &about).map_err(wrong)?;
            for id in named(network, &self.args.pcap)? {
                let port = &network.ports[id as usize];
                let name = port_name(port);
                capture
                    .watch(id, &name, &format!("port {id}"), port.config.mbps)
                    .map_err(wrong)?;
            }
            self.capture = Some(Arc::new(Mutex::new(capture)));
        }
        let observer: Option<Box<dyn Observer>> = match (self.trace.clone(), self.capture.clone()) {
            (Some(trace), Some(capture)) => Some(Box::new((trace, capture))),
            (Some(trace), None) => Some(Box::new(trace)),
            (None, Some(capture)) => Some(Box::new(capture)),
            (None, None) => None,
        };
        network.observer = Place(observer);
        Ok(())
    }

    fn progress(&mut self, moment: &Moment) -> ControlFlow<()> {
        self.bar.show(moment)
    }

    fn end(&mut self, network: &mut Network) {
        network.observer = Place::default();
    }
}
