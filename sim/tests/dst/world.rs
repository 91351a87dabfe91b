//! A plan carried out: posts work at its times, hears what the endpoints say, and hands it to the judge.

use std::collections::HashMap;

use metaroce_core::config::ConnectionConfig;
use metaroce_core::endpoint::CloseMode;
use metaroce_core::memory::{Access, LocalSlice, Region, RemoteAddress};
use metaroce_core::work::{
    CloseReason, ConnectionHandle, Event, Operation, PostError, ReceiveQueue, ReceiveRequest, Source, WorkRequest,
};
use metaroce_sim::host::{Host, Payload, secret, set_addresses};
use metaroce_sim::packet::HostId;
use metaroce_sim::port::{Node, PortConfig};
use metaroce_sim::simulation::{Simulation, Stop};
use metaroce_sim::time::Time;
use metaroce_sim::topology::{self, PairConfig, StarConfig};
use metaroce_sim::transport::{Transport, address};

use crate::content;
use crate::endpoint::AnyEndpoint;
use crate::judge::Judge;
use crate::memory::{OracleMemory, RegionBytes};
use crate::operations::library_uid;
use crate::plan::{
    Bad, FORBIDDEN, INBOX, Kind, LIBRARY, Mode, OpPlan, Plan, REGIONS, Range, SHARED, SOURCE, TARGET, WORDS,
};

pub type SimHost = Host<AnyEndpoint, OracleMemory>;

#[derive(Clone, Copy, Debug)]
enum Action {
    Open(usize),
    Close(usize),
    Jump(HostId, i64),
    Deregister(HostId),
    Pump,
}

/// One side of a connection.
#[derive(Clone, Debug, Default)]
pub struct Side {
    pub handle: Option<ConnectionHandle>,
    pub established: bool,
    pub closed: Option<CloseReason>,
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
    regions: Vec<Vec<Region>>,
    names: HashMap<(HostId, u32), (usize, usize)>,
    shared_posted: Vec<[usize; SHARED]>,
    actions: Vec<(Time, Action)>,
    verbose: bool,
    finishing: bool,
    hash: u64,
}

/// What a run left behind.
pub struct Outcome {
    pub violations: Vec<String>,
    pub hash: u64,
    pub events: u64,
    pub completions: u64,
    pub refused: u64,
}

/// More events than any sound run takes.
const EVENT_LIMIT: u64 = 6_000_000;

fn rights(region: usize) -> Access {
    match region {
        SOURCE => Access::LOCAL_READ,
        TARGET => Access::LOCAL_WRITE.with(Access::REMOTE_WRITE).with(Access::REMOTE_READ),
        LIBRARY => Access::REMOTE_READ,
        WORDS => Access::REMOTE_ATOMIC.with(Access::LOCAL_WRITE),
        INBOX | FORBIDDEN => Access::LOCAL_WRITE,
        _ => Access::LOCAL_READ,
    }
}

fn network(plan: &Plan) -> topology::Topology {
    let mut topology = if plan.star {
        let port = PortConfig {
            mbps: plan.mbps,
            queue_bytes: plan.queue_bytes,
            mark_low_bytes: plan.queue_bytes / 20,
            mark_high_bytes: plan.queue_bytes / 5,
            priority: plan.priority,
            ..PortConfig::REFERENCE
        };
        let senders = plan.hosts.len() as u32 - 1;
        topology::star(&StarConfig { senders, planes: plan.planes, base_rtt: plan.base_rtt, port }, plan.seed)
    } else {
        let config = PairConfig { planes: plan.planes, mbps: plan.mbps, base_rtt: plan.base_rtt };
        topology::pair(&config, plan.seed)
    };
    let network = &mut topology.network;
    for port in 0..network.ports.len() as u32 {
        let at = &network.ports[port as usize];
        let (plane, side) = match (at.owner, plan.star) {
            (Node::Host(host), false) => (at.plane, (host != 0) as usize),
            (Node::Host(_), true) => (at.plane, 0),
            (Node::Switch(_), _) => (at.plane, 1),
        };
        network.set_faults(port, plan.faults.links[usize::from(plane)][side].clone());
        for &(flapping, down, up) in &plan.faults.flaps {
            if flapping == plane {
                network.schedule_link(down, port, false);
                network.schedule_link(up, port, true);
            }
        }
    }
    topology
}

impl<'a> World<'a> {
    pub fn new(plan: &'a Plan, verbose: bool) -> Self {
        let mut regions = Vec::new();
        let mut hosts = Vec::new();
        for (id, host) in (0..).zip(&plan.hosts) {
            let mut config = host.config;
            set_addresses(&mut config, id);
            let room = host.connections + 2;
            let make = if host.small { AnyEndpoint::small } else { <AnyEndpoint as Transport>::create };
            let mut endpoint = match make(config, host.default, secret(plan.seed, id), room) {
                Ok(endpoint) => endpoint,
                Err(error) => panic!("configuration: {error}"),
            };
            let mut memory = OracleMemory::default();
            let mut keys = Vec::new();
            for region in 0..REGIONS {
                memory.regions.push(RegionBytes::new(host.lengths[region] as usize));
                match endpoint.register(host.bases[region], host.lengths[region], rights(region)) {
                    Ok(key) => keys.push(key),
                    Err(error) => panic!("region {region}: {error}"),
                }
            }
            content::fill(library_uid(id as usize), 0, &mut memory.regions[LIBRARY].bytes);
            memory.store(WORDS, host.common_word, &[0; 8]);
            regions.push(keys);
            hosts.push(Host::with_endpoint(id, &config, endpoint, Payload::Real, memory));
        }
        let mut sim = Simulation::new(network(plan).network, hosts);
        sim.network.verbose = verbose && std::env::var_os("METAROCE_PACKETS").is_some();
        let sides = plan
            .connections
            .iter()
            .map(|connection| {
                [0, 1].map(|side: usize| {
                    let (mine, theirs) = (&connection.directions[side], &connection.directions[1 - side]);
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
                    self.sim.host(there).memory.store(WORDS, stream.word, &[0; 8]);
                    for op in &stream.ops {
                        if let Some(source) = op.source {
                            let bytes = content::bytes(op.uid, source.length as usize);
                            self.sim.host(here).memory.store(SOURCE, source.offset, &bytes);
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
            for direction in &connection.directions {
                for stream in &direction.streams {
                    actions.extend(stream.ops.iter().map(|op| (op.at, Action::Pump)));
                    actions.extend(stream.receives.iter().map(|receive| (receive.at, Action::Pump)));
                }
            }
        }
        for (id, host) in (0..).zip(&self.plan.hosts) {
            actions.extend(host.jumps.iter().map(|&(at, ns)| (at, Action::Jump(id, ns))));
            actions.extend(host.deregister.map(|at| (at, Action::Deregister(id))));
            actions.extend(host.shared.iter().flatten().map(|receive| (receive.at, Action::Pump)));
        }
        actions.sort_by_key(|action| action.0);
        for (token, action) in (1..).zip(&actions) {
            self.sim.set_alarm(action.0, token);
        }
        self.actions = actions;
        self.sim.set_alarm(Time::from_us(100), 0);
    }

    fn log(&self, text: impl FnOnce() -> String) {
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
                self.judge.violation(self.sim.now(), "livelock: too many events".into());
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
                    if !self.finishing && self.sim.now() >= self.plan.heal && self.quiet() {
                        self.finish();
                    }
                    let step = if self.sim.now() < self.plan.heal { 100 } else { 1_000 };
                    self.sim.set_alarm(self.sim.now() + Time::from_us(step), 0);
                }
                Stop::Alarm(token) => self.act(self.actions[token as usize - 1].1),
                Stop::Limit | Stop::Idle => {
                    self.judge.violation(self.sim.now(), "not everything ended in time".into());
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
            self.judge.violation(now, "the network lost count of its packets".into());
        }
        self.judge.finish(now, &self.sim.hosts, &self.sides);
        let hash = self.hash ^ self.sim.network.trace_hash();
        Outcome {
            violations: std::mem::take(&mut self.judge.violations),
            hash,
            events: self.sim.network.events_processed(),
            completions: self.judge.completions,
            refused: self.sim.hosts.iter().map(|host| host.received.refused).sum(),
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Open(index) => self.open(index),
            Action::Close(index) => {
                let Some((_, side, mode)) = self.plan.connections[index].close else { return };
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
                    self.judge.violation(self.sim.now(), "a registered region could not be withdrawn".into());
                }
                let memory = &self.sim.hosts[host as usize].memory;
                self.judge.withdrawn[host as usize] = Some(memory.regions[TARGET].placed.clone());
                self.sim.kick(host);
            }
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
        let peer: Vec<_> = (0..self.plan.planes).map(|plane| address(to, plane)).collect();
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
            None => self.judge.violation(now, format!("connection {index} refused by its own endpoint")),
        }
        self.sim.kick(from);
    }

    fn close(&mut self, index: usize, side: usize, mode: Mode) {
        let state = &self.sides[index][side];
        let (Some(handle), None) = (state.handle, state.closed) else { return };
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

    /// Everything was posted that can be, and everything posted has ended.
    fn quiet(&self) -> bool {
        self.plan.connections.iter().enumerate().all(|(index, connection)| {
            connection.directions.iter().enumerate().all(|(side, direction)| {
                let state = &self.sides[index][side];
                let over = self.sides[index].iter().any(|side| side.closed.is_some());
                over || direction.streams.iter().enumerate().all(|(stream, plan)| {
                    (state.posted[stream] == plan.ops.len() || state.dead[stream])
                        && self.judge.last_signaled_ended(index, side, stream, state.posted[stream])
                })
            })
        })
    }

    fn all_closed(&self) -> bool {
        self.finishing && self.sides.iter().flatten().all(|side| side.handle.is_none() || side.closed.is_some())
    }

    fn finish(&mut self) {
        self.finishing = true;
        self.log(|| "closing what is left".into());
        for index in 0..self.sides.len() {
            let side = usize::from(self.sides[index][0].closed.is_some());
            self.close(index, side, Mode::Drain);
        }
    }

    fn explain_unfinished(&mut self) {
        let now = self.sim.now();
        for index in 0..self.sides.len() {
            for side in 0..2 {
                let state = &self.sides[index][side];
                if state.handle.is_some() && state.closed.is_none() {
                    let text = format!(
                        "connection {index} side {side} (host {}) is open: established {}, posted {:?}, ended {:?}",
                        self.plan.connections[index].hosts[side],
                        state.established,
                        state.posted,
                        self.judge.ended(index, side)
                    );
                    self.judge.violation(now, text);
                }
            }
        }
    }

    fn event(&mut self, host: HostId, event: Event) {
        let now = self.sim.now();
        self.log(|| format!("host {host}: {event:?}"));
        match event {
            Event::Connected { connection, incoming, service } => {
                self.mix(1);
                let (index, side) = if incoming { (service as usize, 1) } else { self.name(host, connection).unwrap_or((usize::MAX, 0)) };
                if index >= self.sides.len() || self.plan.connections[index].hosts[side] != host {
                    self.judge.violation(now, format!("host {host}: connected to what it did not ask for"));
                    return;
                }
                let state = &mut self.sides[index][side];
                if state.established {
                    self.judge.violation(now, format!("connection {index} side {side} made twice"));
                    return;
                }
                state.handle = Some(connection);
                state.established = true;
                self.names.insert((host, connection.to_bits()), (index, side));
                self.attach(index, side);
            }
            Event::Closed { connection, reason } => {
                self.mix(2);
                let Some((index, side)) = self.name(host, connection) else {
                    self.judge.violation(now, format!("host {host}: an unknown connection closed, {reason:?}"));
                    return;
                };
                if self.sides[index][side].closed.replace(reason).is_some() {
                    self.judge.violation(now, format!("connection {index} side {side} closed twice"));
                }
                self.judge.closed(now, index, side, reason, &self.sides[index]);
            }
            Event::Completion(completion) => {
                self.mix(completion.id << 8 | completion.status as u64);
                match self.name(host, completion.connection) {
                    Some((index, side)) => {
                        if self.sides[index][side].closed.is_some() {
                            self.judge.violation(now, format!("completion after the end: {completion:?}"));
                        }
                        self.judge.completion(now, index, side, &completion, &mut self.sim.hosts, &self.sides[index]);
                    }
                    None => self.judge.violation(now, format!("completion of no connection: {completion:?}")),
                }
            }
            Event::StreamFailed { connection, stream, status, .. } => {
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
    fn name(&self, host: HostId, handle: ConnectionHandle) -> Option<(usize, usize)> {
        self.names.get(&(host, handle.to_bits())).copied()
    }

    fn attach(&mut self, index: usize, side: usize) {
        let connection = &self.plan.connections[index];
        let host = connection.hosts[side];
        let Some(handle) = self.sides[index][side].handle else { return };
        for (stream, plan) in connection.directions[1 - side].streams.iter().enumerate() {
            if let Some(queue) = plan.shared {
                let result = self.sim.host(host).endpoint.attach_shared_queue(handle, stream as u16, queue);
                self.sides[index][side].attached[stream] = result.is_ok();
                if let Err(error) = result {
                    self.judge.violation(self.sim.now(), format!("shared queue not attached: {error}"));
                }
            }
        }
    }

    /// Posts whatever of a host's plan is due.
    fn pump(&mut self, host: HostId) {
        let now = self.sim.now();
        for index in 0..self.sides.len() {
            for side in 0..2 {
                if self.plan.connections[index].hosts[side] != host {
                    continue;
                }
                let state = &self.sides[index][side];
                if state.established && state.closed.is_none() {
                    self.post_receives(index, side, now);
                    self.post_work(index, side, now);
                }
            }
        }
        self.post_shared(host, now);
        self.sim.kick(host);
    }

    fn post_shared(&mut self, host: HostId, now: Time) {
        for queue in 0..SHARED {
            let plan = &self.plan.hosts[host as usize].shared[queue];
            while let Some(receive) = plan.get(self.shared_posted[host as usize][queue]) {
                if receive.at > now || !self.post_buffer(host, ReceiveQueue::Shared(queue as u8), receive.uid, receive.place) {
                    break;
                }
                self.judge.shared_posted(host, queue, receive);
                self.shared_posted[host as usize][queue] += 1;
            }
        }
    }

    fn post_buffer(&mut self, host: HostId, queue: ReceiveQueue, id: u64, place: Range) -> bool {
        let region = self.regions[host as usize][place.region].index;
        let local = LocalSlice { region, offset: place.offset, length: place.length };
        let now = self.sim.now();
        let host = self.sim.host(host);
        let at = host.instant(now);
        match host.endpoint.post_receive(at, queue, &ReceiveRequest { id, local }) {
            Ok(()) => true,
            Err(PostError::QueueFull | PostError::StreamFailed | PostError::NotEstablished | PostError::UnknownConnection) => false,
            Err(error) => {
                self.judge.violation(now, format!("buffer {id} not taken: {error}"));
                false
            }
        }
    }

    fn post_receives(&mut self, index: usize, side: usize, now: Time) {
        let plan = self.plan;
        let connection = &plan.connections[index];
        let host = connection.hosts[side];
        let Some(handle) = self.sides[index][side].handle else { return };
        for (stream, from) in connection.directions[1 - side].streams.iter().enumerate() {
            while let Some(receive) = from.receives.get(self.sides[index][side].receives[stream]) {
                let queue = ReceiveQueue::Stream(handle, stream as u16);
                if receive.at > now || !self.post_buffer(host, queue, receive.uid, receive.place) {
                    break;
                }
                self.sides[index][side].receives[stream] += 1;
            }
        }
    }

    fn post_work(&mut self, index: usize, side: usize, now: Time) {
        let plan = self.plan;
        let connection = &plan.connections[index];
        let Some(handle) = self.sides[index][side].handle else { return };
        for (stream, work) in connection.directions[side].streams.iter().enumerate() {
            while let Some(op) = work.ops.get(self.sides[index][side].posted[stream]) {
                if op.at > now || self.sides[index][side].dead[stream] {
                    break;
                }
                match self.post(connection.hosts[side], connection.hosts[1 - side], handle, stream as u16, op) {
                    Ok(()) => {
                        self.log(|| format!("connection {index} side {side} stream {stream}: post {op:?}"));
                        self.sides[index][side].posted[stream] += 1;
                    }
                    Err(PostError::QueueFull) => break,
                    Err(PostError::StreamFailed | PostError::NotEstablished | PostError::UnknownConnection) => {
                        self.sides[index][side].dead[stream] = true;
                    }
                    Err(error) => {
                        self.judge.violation(now, format!("operation {op:?} not taken: {error}"));
                        self.sides[index][side].dead[stream] = true;
                    }
                }
            }
        }
    }

    fn post(&mut self, here: HostId, there: HostId, handle: ConnectionHandle, stream: u16, op: &OpPlan) -> Result<(), PostError> {
        let local = |range: Range| LocalSlice {
            region: self.regions[here as usize][range.region].index,
            offset: range.offset,
            length: range.length,
        };
        let inline;
        let source = match op.source {
            Some(range) => Source::Region(local(range)),
            None => {
                inline = content::bytes(op.uid, if op.length <= 32 { op.length as usize } else { 0 });
                Source::Inline(&inline)
            }
        };
        let peer = &self.plan.hosts[there as usize];
        let remote = |region: usize, offset: u64| {
            let region = if op.bad == Some(Bad::Denied) { FORBIDDEN } else { region };
            let offset = match op.bad {
                Some(Bad::Bounds) if region == WORDS => peer.lengths[region].next_multiple_of(8),
                Some(Bad::Bounds) => peer.lengths[region] - u64::from(op.length) + 1 + op.uid % 3,
                Some(Bad::Denied) => 0,
                _ => offset,
            };
            let key = self.regions[there as usize][region].key;
            RemoteAddress {
                address: peer.bases[region].wrapping_add(offset),
                key: if op.bad == Some(Bad::Key) { key ^ 0x0040_0400 } else { key },
            }
        };
        let word = |word: u64| if word == u64::MAX { peer.common_word } else { word };
        let operation = match op.kind {
            Kind::Write { target, immediate, .. } => {
                Operation::Write { local: source, remote: remote(TARGET, target.offset), immediate }
            }
            Kind::Send { immediate } => Operation::Send { local: source, immediate },
            Kind::Read { from, into, .. } => {
                Operation::Read { local: local(into), remote: remote(from.region, from.offset) }
            }
            Kind::FetchAdd { word: at, into, add, .. } => {
                Operation::FetchAdd { local: local(into), remote: remote(WORDS, word(at)), add }
            }
            Kind::CompareSwap { word: at, into, compare, swap, .. } => {
                Operation::CompareSwap { local: local(into), remote: remote(WORDS, word(at)), compare, swap }
            }
        };
        let now = self.sim.now();
        let work = WorkRequest { id: op.uid, operation, flags: op.flags };
        let host = self.sim.host(here);
        let at = host.instant(now);
        host.endpoint.post(at, handle, stream, &work)
    }
}
