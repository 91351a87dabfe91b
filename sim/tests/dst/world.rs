//! A plan carried out: posts work at its times, hears what the endpoints say, and hands it to the judge.

use std::collections::{HashMap, HashSet};

use metaroce_core::config::ConnectionConfig;
use metaroce_core::memory::Region;
use metaroce_core::work::{CloseReason, ConnectionHandle, Event};
use metaroce_sim::endpoint::{CloseMode, DropReason, Transport, address};
use metaroce_sim::host::{Host, Payload, secret, set_addresses};
use metaroce_sim::packet::HostId;
use metaroce_sim::simulation::{Simulation, Stop};
use metaroce_sim::time::Time;

use crate::content;
use crate::endpoint::AnyEndpoint;
use crate::fabric::{network, rights};
use crate::judge::Judge;
use crate::memory::{OracleMemory, RegionBytes};
use crate::operations::library_uid;
use crate::plan::{LIBRARY, Mode, Plan, REGIONS, SHARED, SOURCE, TARGET, WORDS};

pub type SimHost = Host<AnyEndpoint, OracleMemory>;

#[derive(Clone, Copy, Debug)]
pub enum Action {
    Open(usize),
    Close(usize),
    Jump(HostId, i64),
    Deregister(HostId),
    Misuse(usize, usize),
    Pump,
}

/// One side of a connection.
#[derive(Clone, Debug, Default)]
pub struct Side {
    pub handle: Option<ConnectionHandle>,
    pub established: bool,
    pub closed: Option<CloseReason>,
    pub closed_at: Time,
    /// Its peer is gone, and it was told to close.
    pub widowed: bool,
    /// Operations posted, by stream.
    pub posted: Vec<usize>,
    /// Streams on which nothing more can be posted.
    pub dead: Vec<bool>,
    /// Buffers posted for the other side's operations, by stream.
    pub receives: Vec<usize>,
    /// The other side's streams whose receives come from a shared queue here.
    pub attached: Vec<bool>,
}

pub struct World<'a> {
    pub plan: &'a Plan,
    pub sim: Simulation<SimHost>,
    pub sides: Vec<[Side; 2]>,
    pub judge: Judge<'a>,
    pub regions: Vec<Vec<Region>>,
    /// Connections that were made by a late copy of an INIT, and are not over.
    pub ghosts: HashSet<(HostId, u32)>,
    pub names: HashMap<(HostId, u32), (usize, usize)>,
    pub shared_posted: Vec<[usize; SHARED]>,
    pub actions: Vec<(Time, Action)>,
    pub verbose: bool,
    pub finishing: bool,
    pub hash: u64,
}

/// What a run left behind.
pub struct Outcome {
    pub violations: Vec<String>,
    pub hash: u64,
    pub events: u64,
    pub completions: u64,
    /// Datagrams that the endpoints dropped, by reason.
    pub dropped: [u64; DropReason::COUNT],
}

/// More events than any sound run takes.
const EVENT_LIMIT: u64 = 6_000_000;

impl<'a> World<'a> {
    pub fn new(plan: &'a Plan, verbose: bool) -> Self {
        let mut regions = Vec::new();
        let mut hosts = Vec::new();
        for (id, host) in (0..).zip(&plan.hosts) {
            let mut config = host.config;
            set_addresses(&mut config, id);
            let room = host.connections + 2;
            let make = if host.small {
                AnyEndpoint::small
            } else {
                <AnyEndpoint as Transport>::create
            };
            let mut endpoint = match make(config, host.default, secret(plan.seed, id), room) {
                Ok(endpoint) => endpoint,
                Err(error) => panic!("configuration: {error}"),
            };
            let mut memory = OracleMemory::default();
            memory.unreadable = host.unreadable;
            let mut keys = Vec::new();
            for region in 0..REGIONS {
                memory
                    .regions
                    .push(RegionBytes::new(host.lengths[region] as usize));
                match endpoint.register(host.bases[region], host.lengths[region], rights(region)) {
                    Ok(key) => keys.push(key),
                    Err(error) => panic!("region {region}: {error}"),
                }
            }
            content::fill(
                library_uid(id as usize),
                0,
                &mut memory.regions[LIBRARY].bytes,
            );
            memory.store(WORDS, host.common_word, &[0; 8]);
            regions.push(keys);
            hosts.push(Host::with_endpoint(
                id,
                &config,
                endpoint,
                Payload::Real,
                memory,
            ));
        }
        let mut sim = Simulation::new(network(plan).network, hosts);
        sim.network.verbose = verbose && std::env::var_os("METAROCE_PACKETS").is_some();
        for host in &mut sim.hosts {
            host.verbose = sim.network.verbose;
        }
        let sides = plan
            .connections
            .iter()
            .map(|connection| {
                [0, 1].map(|side: usize| {
                    let (mine, theirs) = (
                        &connection.directions[side],
                        &connection.directions[1 - side],
                    );
                    Side {
                        posted: vec![0; mine.streams.len()],
                        dead: vec![false; mine.streams.len()],
                        receives: vec![0; theirs.streams.len()],
                        attached: vec![false; theirs.streams.len()],
                        ..Side::default()
                    }
                })
            })
            .collect();
        let mut world = Self {
            plan,
            sim,
            sides,
            judge: Judge::new(plan),
            regions,
            ghosts: HashSet::new(),
            names: HashMap::new(),
            shared_posted: vec![[0; SHARED]; plan.hosts.len()],
            actions: Vec::new(),
            verbose,
            finishing: false,
            hash: 0,
        };
        world.prepare_memory();
        world.schedule();
        world
    }

    fn prepare_memory(&mut self) {
        for connection in &self.plan.connections {
            for (side, direction) in connection.directions.iter().enumerate() {
                let (here, there) = (connection.hosts[side], connection.hosts[1 - side]);
                for stream in &direction.streams {
                    self.sim
                        .host(there)
                        .memory
                        .store(WORDS, stream.word, &[0; 8]);
                    for op in &stream.ops {
                        if let Some(source) = op.source {
                            let bytes = content::bytes(op.uid, source.length as usize);
                            self.sim
                                .host(here)
                                .memory
                                .store(SOURCE, source.offset, &bytes);
                        }
                    }
                }
            }
        }
    }

    fn schedule(&mut self) {
        let mut actions = Vec::new();
        for (index, connection) in self.plan.connections.iter().enumerate() {
            actions.push((connection.open_at, Action::Open(index)));
            if let Some((at, ..)) = connection.close {
                actions.push((at, Action::Close(index)));
            }
            if let Some((at, side)) = connection.misuse {
                actions.push((at, Action::Misuse(index, side)));
            }
            for direction in &connection.directions {
                for stream in &direction.streams {
                    actions.extend(stream.ops.iter().map(|op| (op.at, Action::Pump)));
                    actions.extend(
                        stream
                            .receives
                            .iter()
                            .map(|receive| (receive.at, Action::Pump)),
                    );
                }
            }
        }
        for (id, host) in (0..).zip(&self.plan.hosts) {
            actions.extend(
                host.jumps
                    .iter()
                    .map(|&(at, ns)| (at, Action::Jump(id, ns))),
            );
            actions.extend(host.deregister.map(|at| (at, Action::Deregister(id))));
            actions.extend(
                host.shared
                    .iter()
                    .flatten()
                    .map(|receive| (receive.at, Action::Pump)),
            );
        }
        actions.sort_by_key(|action| action.0);
        for (token, action) in (1..).zip(&actions) {
            self.sim.set_alarm(action.0, token);
        }
        self.actions = actions;
        self.sim.set_alarm(Time::from_us(100), 0);
    }

    pub fn log(&self, text: impl FnOnce() -> String) {
        if self.verbose {
            eprintln!("{} {}", self.sim.now(), text());
        }
    }

    fn mix(&mut self, value: u64) {
        self.hash = (self.hash.rotate_left(17) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    pub fn run(mut self) -> Outcome {
        loop {
            if self.sim.network.events_processed() > EVENT_LIMIT {
                self.judge
                    .violation(self.sim.now(), "livelock: too many events".into());
                break;
            }
            match self.sim.run(self.plan.deadline) {
                Stop::News(host) => {
                    while let Some(event) = self.sim.host(host).next_event() {
                        self.event(host, event);
                    }
                    self.pump(host);
                    self.sim.kick(host);
                }
                Stop::Alarm(0) => {
                    for host in 0..self.plan.hosts.len() as HostId {
                        self.pump(host);
                    }
                    if self.all_closed() {
                        break;
                    }
                    if self.finishing {
                        self.close_widowed();
                    } else if self.sim.now() >= self.plan.heal && self.quiet() {
                        self.finish();
                    }
                    let step = if self.sim.now() < self.plan.heal {
                        100
                    } else {
                        1_000
                    };
                    self.sim.set_alarm(self.sim.now() + Time::from_us(step), 0);
                }
                Stop::Alarm(token) => self.act(self.actions[token as usize - 1].1),
                Stop::Limit | Stop::Idle => {
                    self.judge
                        .violation(self.sim.now(), "not everything ended in time".into());
                    self.explain_unfinished();
                    break;
                }
            }
            if self.judge.violations.len() > 20 {
                break;
            }
        }
        let now = self.sim.now();
        if !self.sim.network.is_conserved() {
            self.judge
                .violation(now, "the network lost count of its packets".into());
        }
        self.judge_drops(now);
        self.judge.finish(now, &self.sim.hosts, &self.sides);
        let hash = self.hash ^ self.sim.network.trace_hash();
        Outcome {
            violations: std::mem::take(&mut self.judge.violations),
            hash,
            events: self.sim.network.events_processed(),
            completions: self.judge.completions,
            dropped: std::array::from_fn(|i| {
                self.sim
                    .hosts
                    .iter()
                    .map(|host| host.received.dropped[i])
                    .sum()
            }),
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Open(index) => self.open(index),
            Action::Close(index) => {
                let Some((_, side, mode)) = self.plan.connections[index].close else {
                    return;
                };
                if self.sides[index].iter().all(|side| side.established) {
                    self.close(index, side, mode);
                }
            }
            Action::Jump(host, ns) => {
                self.log(|| format!("host {host}: clock jumps by {ns} ns"));
                self.sim.host(host).jump_clock(ns);
                self.sim.kick(host);
            }
            Action::Deregister(host) => {
                self.log(|| format!("host {host}: target region withdrawn"));
                let index = self.regions[host as usize][TARGET].index;
                if self.sim.host(host).endpoint.deregister(index).is_err() {
                    self.judge.violation(
                        self.sim.now(),
                        "a registered region could not be withdrawn".into(),
                    );
                }
                let memory = &self.sim.hosts[host as usize].memory;
                self.judge.withdrawn[host as usize] = Some(memory.regions[TARGET].placed.clone());
                self.sim.kick(host);
            }
            Action::Misuse(index, side) => self.misuse(index, side),
            Action::Pump => {
                for host in 0..self.plan.hosts.len() as HostId {
                    self.pump(host);
                }
            }
        }
    }

    fn open(&mut self, index: usize) {
        let connection = &self.plan.connections[index];
        let [from, to] = connection.hosts;
        let peer: Vec<_> = (0..self.plan.planes)
            .map(|plane| address(to, plane))
            .collect();
        let now = self.sim.now();
        let host = self.sim.host(from);
        let at = host.instant(now);
        let config: ConnectionConfig = connection.config;
        match Transport::connect(&mut host.endpoint, at, &peer, config) {
            Some(handle) => {
                self.log(|| format!("connection {index}: host {from} to {to}, handle {handle:?}"));
                self.sides[index][0].handle = Some(handle);
                self.names.insert((from, handle.to_bits()), (index, 0));
            }
            None => self.judge.violation(
                now,
                format!("connection {index} refused by its own endpoint"),
            ),
        }
        self.sim.kick(from);
    }

    pub fn close(&mut self, index: usize, side: usize, mode: Mode) {
        let state = &self.sides[index][side];
        let (Some(handle), None) = (state.handle, state.closed) else {
            return;
        };
        let host = self.plan.connections[index].hosts[side];
        self.log(|| format!("connection {index}: host {host} closes, {mode:?}"));
        let now = self.sim.now();
        let at = self.sim.hosts[host as usize].instant(now);
        let mode = match mode {
            Mode::Drain => CloseMode::Drain,
            Mode::Abort(code) => CloseMode::Abort(code),
        };
        self.judge.closing(index, mode);
        // A connection that is closing already may refuse.
        let _ = self.sim.host(host).endpoint.close(at, handle, mode);
        self.sim.kick(host);
    }

    fn event(&mut self, host: HostId, event: Event) {
        let now = self.sim.now();
        self.log(|| format!("host {host}: {event:?}"));
        match event {
            Event::Connected {
                connection,
                incoming,
                service,
            } => {
                self.mix(1);
                let (index, side) = if incoming {
                    (service as usize, 1)
                } else {
                    self.name(host, connection).unwrap_or((usize::MAX, 0))
                };
                if index >= self.sides.len() || self.plan.connections[index].hosts[side] != host {
                    self.judge.violation(
                        now,
                        format!("host {host}: connected to what it did not ask for"),
                    );
                    return;
                }
                let state = &mut self.sides[index][side];
                if incoming && state.closed.is_some() {
                    // A copy of the INIT that was under way for long: nobody is there, which shows soon.
                    self.ghosts.insert((host, connection.to_bits()));
                    return;
                }
                if state.established {
                    self.judge
                        .violation(now, format!("connection {index} side {side} made twice"));
                    return;
                }
                state.handle = Some(connection);
                state.established = true;
                self.names
                    .insert((host, connection.to_bits()), (index, side));
                self.attach(index, side);
            }
            Event::Closed { connection, reason } => {
                self.mix(2);
                if self.ghosts.remove(&(host, connection.to_bits())) {
                    return;
                }
                let Some((index, side)) = self.name(host, connection) else {
                    self.judge.violation(
                        now,
                        format!("host {host}: an unknown connection closed, {reason:?}"),
                    );
                    return;
                };
                self.sides[index][side].closed_at = now;
                if self.sides[index][side].closed.replace(reason).is_some() {
                    self.judge
                        .violation(now, format!("connection {index} side {side} closed twice"));
                }
                self.judge
                    .closed(now, index, side, reason, &self.sides[index]);
            }
            Event::Completion(completion) => {
                self.mix(completion.id << 8 | completion.status as u64);
                match self.name(host, completion.connection) {
                    Some((index, side)) => {
                        if self.sides[index][side].closed.is_some() {
                            self.judge.violation(
                                now,
                                format!("completion after the end: {completion:?}"),
                            );
                        }
                        self.judge.completion(
                            now,
                            index,
                            side,
                            &completion,
                            &mut self.sim.hosts,
                            &self.sides[index],
                        );
                    }
                    None => self
                        .judge
                        .violation(now, format!("completion of no connection: {completion:?}")),
                }
            }
            Event::StreamFailed {
                connection,
                stream,
                status,
                ..
            } => {
                self.mix(3);
                if let Some((index, side)) = self.name(host, connection) {
                    self.judge.stream_failed(index, side, stream, status);
                }
            }
            Event::PlaneDown { .. } => self.mix(4),
            Event::PlaneUp { .. } => self.mix(5),
        }
    }

    /// The connection and side of a host's handle.
    pub fn name(&self, host: HostId, handle: ConnectionHandle) -> Option<(usize, usize)> {
        self.names.get(&(host, handle.to_bits())).copied()
    }

    fn attach(&mut self, index: usize, side: usize) {
        let connection = &self.plan.connections[index];
        let host = connection.hosts[side];
        let Some(handle) = self.sides[index][side].handle else {
            return;
        };
        for (stream, plan) in connection.directions[1 - side].streams.iter().enumerate() {
            if let Some(queue) = plan.shared {
                let result =
                    self.sim
                        .host(host)
                        .endpoint
                        .attach_shared_queue(handle, stream as u16, queue);
                self.sides[index][side].attached[stream] = result.is_ok();
                if let Err(error) = result {
                    self.judge.violation(
                        self.sim.now(),
                        format!("shared queue not attached: {error}"),
                    );
                }
            }
        }
    }
}
