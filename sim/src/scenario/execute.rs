//! Runs a scenario.

use std::ops::ControlFlow;

use super::error::ScenarioError;
use super::fault;
use super::report::{self, Bin, Distribution, Ideal, Report, Summary};
use super::transport::{self, Build, Transport};
use super::{RunSettings, Scenario};
use crate::endpoint::{self, LargeEndpoint, LongHaulEndpoint, WideEndpoint};
use crate::explore::Peek;
use crate::fabric::{Fabric, Link};
use crate::network::Network;
use crate::node::{Counters, Node, OTHERS};
use crate::packet::HostId;
use crate::port::PortId;
use crate::random::{Purpose, Stream};
use crate::simulation::Simulation;
use crate::time::Time;
use crate::transport::celeris::CelerisHost;
use crate::transport::infiniband::InfinibandHost;
use crate::transport::metaroce::{self, MetaroceConfig};
use crate::transport::roce::RoceHost;
use crate::transport::uec::UecHost;
use crate::workload::Workload;
use crate::workload::poisson::Poisson;
use crate::workload::program::{Action, After, Program};
use crate::workload::run::{End, Record, Run, Status};

/// Where a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// Simulated time since the workload began.
    pub elapsed: Time,
    /// Tasks of the workload that are over.
    pub done: u32,
    /// All tasks of the workload.
    pub tasks: u32,
    /// Events so far.
    pub events: u64,
}

/// Whoever watches a run.
pub trait Watch {
    /// The network is built, and nothing has happened: the time to set an observer.
    ///
    /// # Errors
    /// Why there cannot be a run.
    fn begin(&mut self, network: &mut Network) -> Result<(), String> {
        let _ = network;
        Ok(())
    }

    /// The run is so far; it goes on if it may.
    fn progress(&mut self, moment: &Moment) -> ControlFlow<()> {
        let _ = moment;
        ControlFlow::Continue(())
    }

    /// It is over: the network as it is then.
    fn end(&mut self, network: &mut Network) {
        let _ = network;
    }
}

/// Nobody watches.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Watch for Unwatched {}

/// Runs a scenario for a seed. Connections of the core are built on the stack: those of 32,768 slots, which long links ask for, need
/// some 8 MiB of it, more than threads have if nothing else is said.
///
/// # Errors
/// What is wrong with its settings.
pub fn execute(
    scenario: &Scenario,
    seed: u64,
    watch: &mut dyn Watch,
) -> Result<Report, ScenarioError> {
    with_hosts(scenario, seed, Whole(watch))
}

/// What is done with the hosts of a scenario, whatever they speak.
pub(crate) trait Plan {
    /// What comes of it.
    type Outcome;
    /// Does it.
    fn carry_out<N: Peek + 'static>(
        self,
        setting: Setting<'_>,
        hosts: Vec<N>,
    ) -> Result<Self::Outcome, ScenarioError>;
}

/// A run from the beginning to the end.
struct Whole<'a>(&'a mut dyn Watch);

impl Plan for Whole<'_> {
    type Outcome = Report;
    fn carry_out<N: Peek + 'static>(
        self,
        setting: Setting<'_>,
        hosts: Vec<N>,
    ) -> Result<Report, ScenarioError> {
        setting.run(hosts, self.0)
    }
}

/// Builds the network, the program and the hosts of a scenario.
pub(crate) fn with_hosts<P: Plan>(
    scenario: &Scenario,
    seed: u64,
    plan: P,
) -> Result<P::Outcome, ScenarioError> {
    let fabric = Fabric::new(&scenario.fabric, seed)?;
    let hosts = scenario.fabric.hosts();
    scenario.transport.check(&scenario.fabric)?;
    if let Workload::Poisson(flows) = &scenario.workload {
        check_flows("workload", flows, hosts)?;
    }
    let mut program = scenario.workload.program(hosts, seed)?;
    let foreground = program.tasks().len();
    if let Some(background) = &scenario.background {
        check_flows("background", background, hosts)?;
        let seed = Stream::new(seed, Purpose::Background, 0).bits();
        let more = background
            .program(hosts, seed)
            .map_err(|error| ScenarioError::settings("background", error.to_string()))?;
        append(&mut program, &more)?;
    }
    let setting = Setting {
        scenario,
        seed,
        fabric,
        program,
        foreground,
    };
    let all = 0..hosts;
    match &scenario.transport {
        Transport::Metaroce(config) => {
            let round_trip = scenario.fabric.round_trip()?;
            match transport::build(config, round_trip) {
                Build::Large => metaroce_hosts::<LargeEndpoint, P>(setting, config, plan),
                Build::Wide => metaroce_hosts::<WideEndpoint, P>(setting, config, plan),
                Build::LongHaul => metaroce_hosts::<LongHaulEndpoint, P>(setting, config, plan),
            }
        }
        Transport::RoceV2(config) => {
            let host = |id| RoceHost::new(id, config.clone(), seed);
            plan.carry_out(setting, all.map(host).collect())
        }
        Transport::Infiniband(config) => {
            let host = |id| InfinibandHost::new(id, config.clone(), seed);
            plan.carry_out(setting, all.map(host).collect())
        }
        Transport::UltraEthernet(config) => {
            let host = |id| UecHost::new(id, *config, seed);
            plan.carry_out(setting, all.map(host).collect())
        }
        Transport::Celeris(config) => {
            let host = |id| CelerisHost::new(id, *config, seed);
            plan.carry_out(setting, all.map(host).collect())
        }
    }
}

/// More flows than this are a mistake.
const MOST_FLOWS: f64 = 1e7;

/// Whether there would be too many flows to begin with.
fn check_flows(key: &str, flows: &Poisson, hosts: u32) -> Result<(), ScenarioError> {
    let sizes = flows
        .sizes
        .sampler()
        .map_err(|error| ScenarioError::settings(format!("{key}.sizes"), error.to_string()))?;
    let bits = f64::from(hosts) * flows.line_mbps as f64 / 1e3 * flows.duration_ns as f64;
    let expected = bits * f64::from(flows.load_percent) / 100.0 / (sizes.mean() * 8.0).max(8.0);
    if expected > MOST_FLOWS {
        let message = format!("there would be about {expected:.0} flows");
        return Err(ScenarioError::settings(key, message));
    }
    Ok(())
}

/// Adds the tasks of another program, in groups of their own.
fn append(program: &mut Program, more: &Program) -> Result<(), ScenarioError> {
    let first = program.tasks().len() as u32;
    let mut group = None;
    for task in more.tasks() {
        if group != Some(task.group) {
            group = Some(task.group);
            program.begin_group(more.groups()[task.group as usize].clone());
        }
        let after: Vec<After> = more
            .dependencies(task)
            .iter()
            .map(|&dependency| match dependency {
                After::Done(id) => After::Done(first + id),
                After::Acknowledged(id) => After::Acknowledged(first + id),
            })
            .collect();
        let action = match task.action {
            Action::Transfer {
                from,
                to,
                bytes,
                flow,
            } => Action::Transfer {
                from,
                to,
                bytes,
                flow: flow | OTHERS,
            },
            pause @ Action::Pause { .. } => pause,
        };
        program.add(action, task.not_before, &after)?;
    }
    Ok(())
}

fn metaroce_hosts<T: endpoint::Transport + 'static, P: Plan>(
    setting: Setting<'_>,
    config: &MetaroceConfig,
    plan: P,
) -> Result<P::Outcome, ScenarioError> {
    let mut peers: Vec<(HostId, HostId)> = setting
        .program
        .pairs()
        .into_iter()
        .flat_map(|(from, to)| [(from, to), (to, from)])
        .collect();
    peers.sort_unstable();
    peers.dedup();
    let mut connections = vec![0; setting.scenario.fabric.hosts() as usize];
    for (host, _) in peers {
        connections[host as usize] += 1;
    }
    let hosts = metaroce::hosts::<T>(config, setting.seed, &connections)
        .map_err(|error| ScenarioError::settings("transport", error))?;
    plan.carry_out(setting, hosts)
}

/// All of a run but the hosts.
pub(crate) struct Setting<'a> {
    pub scenario: &'a Scenario,
    seed: u64,
    fabric: Fabric,
    program: Program,
    foreground: usize,
}

impl Setting<'_> {
    /// The run before it begins, with the changes that faults will make, and the links of its fabric.
    pub fn prepare<N: Node>(self, hosts: Vec<N>) -> Result<(Run<N>, Vec<Link>), ScenarioError> {
        let limit = self.scenario.run.limit;
        let changes = fault::changes(&self.scenario.fault, &self.fabric, limit, self.seed)?;
        let Fabric { network, links } = self.fabric;
        let mut run = Run::new(Simulation::new(network, hosts), self.program);
        for (time, change) in changes {
            run.at(time, Box::new(change));
        }
        Ok((run, links))
    }

    fn run<N: Node>(self, hosts: Vec<N>, watch: &mut dyn Watch) -> Result<Report, ScenarioError> {
        let (scenario, seed, foreground) = (self.scenario, self.seed, self.foreground);
        let settings = &scenario.run;
        let queues = watched_ports(settings, &self.fabric.network)?;
        // Before anything is down: the ways of the empty fabric.
        let ideal = ideal_times(&self.fabric, &self.program, foreground);
        let (mut run, links) = self.prepare(hosts)?;
        watch
            .begin(&mut run.sim.network)
            .map_err(|error| ScenarioError::settings("run", error))?;
        let mut observer = Observer {
            series: settings.series.map(|_| Series::new(queues)),
            foreground,
            over: 0,
            watch,
        };
        let end = run.run(&settings.config(), |run, status| {
            observer.look(run, &status)
        });
        // Other people's flows may be under way, or have failed: the workload is what counts.
        let records = &run.records()[..foreground];
        let end = match end {
            End::NotReady => end,
            _ if !records.iter().all(is_over) => end,
            _ if records.iter().any(|record| record.failed) => End::Stuck,
            _ => End::Complete,
        };
        observer.watch.end(&mut run.sim.network);
        let series = observer.series.map_or_else(Vec::new, |series| series.bins);
        Ok(finish(
            scenario, seed, &run, &links, end, foreground, &ideal, series,
        ))
    }
}

/// The ports whose queues are watched.
fn watched_ports(settings: &RunSettings, network: &Network) -> Result<Vec<PortId>, ScenarioError> {
    let find = |(index, name): (usize, &String)| {
        network
            .ports
            .iter()
            .position(|port| report::port_name(port) == *name)
            .map(|port| port as PortId)
            .ok_or_else(|| {
                ScenarioError::settings(
                    format!("run.queues.{index}"),
                    format!("there is no port `{name}`: names are like p0:h3>s1"),
                )
            })
    };
    settings.queues.iter().enumerate().map(find).collect()
}

/// By task of the workload, how long it would take in the empty fabric.
fn ideal_times(fabric: &Fabric, program: &Program, foreground: usize) -> Vec<Time> {
    let planes = fabric.links.iter().map(|link| link.plane).max();
    let ideal = Ideal::new(planes.unwrap_or(0) + 1);
    program.tasks()[..foreground]
        .iter()
        .map(|task| match task.action {
            Action::Transfer {
                from, to, bytes, ..
            } => ideal.time(fabric, from, to, bytes),
            Action::Pause { span, .. } => span,
        })
        .collect()
}

/// A time series in the making.
struct Series {
    queues: Vec<PortId>,
    last: Counters,
    last_time: Time,
    bins: Vec<Bin>,
}

impl Series {
    fn new(queues: Vec<PortId>) -> Self {
        Self {
            queues,
            last: Counters::default(),
            last_time: Time::ZERO,
            bins: Vec::new(),
        }
    }

    fn take<N: Node>(&mut self, run: &Run<N>, elapsed: Time) {
        let (now, counters) = (run.sim.now(), run.counters());
        let queue = |&port: &PortId| run.sim.network.ports[port as usize].backlog_bytes(now);
        self.bins.push(Bin {
            time_ns: elapsed.ns(),
            goodput_gbps: report::gbps(
                counters.placed_bytes - self.last.placed_bytes,
                elapsed - self.last_time,
            ),
            retransmissions: counters.retransmissions - self.last.retransmissions,
            queues: self.queues.iter().map(queue).collect(),
        });
        (self.last, self.last_time) = (counters, elapsed);
    }
}

/// Looks at a run now and then.
struct Observer<'a> {
    series: Option<Series>,
    foreground: usize,
    /// So many tasks from the first on are over.
    over: usize,
    watch: &'a mut dyn Watch,
}

impl Observer<'_> {
    fn look<N: Node>(&mut self, run: &Run<N>, status: &Status) -> ControlFlow<()> {
        if let Some(series) = &mut self.series {
            series.take(run, status.elapsed);
        }
        let records = &run.records()[..self.foreground];
        while records.get(self.over).is_some_and(is_over) {
            self.over += 1;
        }
        let moment = Moment {
            elapsed: status.elapsed,
            done: if self.foreground == run.records().len() {
                status.done
            } else {
                self.over as u32
            },
            tasks: self.foreground as u32,
            events: status.events,
        };
        if self.over == self.foreground {
            return ControlFlow::Break(());
        }
        self.watch.progress(&moment)
    }
}

fn is_over(record: &Record) -> bool {
    record.failed || record.done != Time::NEVER && record.acknowledged != Time::NEVER
}

#[expect(clippy::too_many_arguments, reason = "all that a run leaves behind")]
fn finish<N: Node>(
    scenario: &Scenario,
    seed: u64,
    run: &Run<N>,
    links: &[Link],
    end: End,
    foreground: usize,
    ideal: &[Time],
    series: Vec<Bin>,
) -> Report {
    let network = &run.sim.network;
    let records = &run.records()[..foreground];
    let begin = if run.begin() == Time::NEVER {
        run.sim.now()
    } else {
        run.begin()
    };
    let flows = report::flows(run.program(), records, begin, ideal);
    let groups = report::groups(run.program(), records, begin);
    let ports = report::ports(links, network);
    let delivered = flows.iter().filter(|flow| flow.delivered_ns.is_some());
    let delivered_bytes = delivered
        .clone()
        .map(|flow| flow.bytes - flow.lost_bytes.min(flow.bytes))
        .sum();
    let first = flows.iter().filter_map(|flow| flow.started_ns).min();
    let last = flows.iter().filter_map(|flow| flow.delivered_ns).max();
    let span = Time::from_ns(last.unwrap_or(0).saturating_sub(first.unwrap_or(0)));
    let us = |ns: u64| ns as f64 / 1e3;
    let rates: Vec<f64> = delivered
        .clone()
        .filter_map(|flow| Some(flow.bytes as f64 / flow.fct_ns? as f64))
        .collect();
    let acknowledged = flows.iter().filter_map(|flow| {
        let ns = flow.acknowledged_ns?.saturating_sub(flow.started_ns?);
        Some(us(ns))
    });
    let background = run.records()[foreground..].iter().filter_map(|record| {
        let is_done = record.started != Time::NEVER && record.done != Time::NEVER;
        is_done.then(|| us((record.done - record.started).ns()))
    });
    let group_times = groups
        .iter()
        .filter_map(|group| Some(us(group.ended_ns? - group.started_ns?)));
    let last_end = records
        .iter()
        .flat_map(|record| [record.done, record.acknowledged])
        .filter(|&time| time != Time::NEVER)
        .max();
    let elapsed = match (end, last_end) {
        (End::Complete, Some(last)) => last - begin,
        _ => run.sim.now() - begin,
    };
    let summary = Summary {
        name: scenario.name.clone(),
        transport: scenario.transport.name(),
        seed,
        end: report::end_name(end),
        hosts: scenario.fabric.hosts(),
        round_trip_ns: scenario.fabric.round_trip().unwrap_or(Time::ZERO).ns(),
        begin_ns: begin.ns(),
        elapsed_ns: elapsed.ns(),
        events: network.events_processed(),
        packet_hops: network.hops(),
        hash: format!("{:016x}", network.trace_hash()),
        conserved: network.is_conserved(),
        transfers: flows.len() as u64,
        completed: flows
            .iter()
            .filter(|flow| flow.delivered_ns.is_some() && flow.acknowledged_ns.is_some())
            .count() as u64,
        failed: flows.iter().filter(|flow| flow.failed).count() as u64,
        delivered_bytes,
        lost_bytes: flows.iter().map(|flow| flow.lost_bytes).sum(),
        goodput_gbps: report::gbps(delivered_bytes, span),
        fct_us: Distribution::of(flows.iter().filter_map(|f| f.fct_ns.map(us)).collect()),
        background_fct_us: Distribution::of(background.collect()),
        acknowledged_us: Distribution::of(acknowledged.collect()),
        slowdown: Distribution::of(flows.iter().filter_map(|flow| flow.slowdown).collect()),
        group_us: Distribution::of(group_times.collect()),
        busbw_gbps: Distribution::of(groups.iter().filter_map(|g| g.busbw_gbps).collect()),
        jain: report::jain(&rates),
        counters: run.counters(),
        network: report::network(&ports, network),
    };
    Report {
        summary,
        flows,
        groups,
        ports,
        series,
    }
}
