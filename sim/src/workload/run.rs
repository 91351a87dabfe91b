//! Hosts of one transport that carry out a program on a fabric.

use std::ops::ControlFlow;

use crate::node::{Counters, Message, Node, Progress};
use crate::packet::HostId;
use crate::simulation::{Simulation, Stop};
use crate::time::Time;

use super::program::{Action, After, Program, TaskId};

/// What became of a task. Times are those of the simulation; [`Time::NEVER`] for what did not happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record {
    /// All that it waited for had happened, and it began.
    pub started: Time,
    /// A pause ended, or the last byte was in its place at the receiver and reported there.
    pub done: Time,
    /// The sender knows.
    pub acknowledged: Time,
    /// Bytes given up (best effort).
    pub lost_bytes: u64,
    /// It was given up.
    pub failed: bool,
}

const PENDING: Record = Record {
    started: Time::NEVER,
    done: Time::NEVER,
    acknowledged: Time::NEVER,
    lost_bytes: 0,
    failed: false,
};

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Everything was done.
    Complete,
    /// The hosts were not ready in time.
    NotReady,
    /// The time limit.
    TimeLimit,
    /// Something was given up or waits for something that was, and nothing happens any more.
    Stuck,
    /// Whoever watched said stop.
    Stopped,
}

/// How a part of a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stretch {
    /// The time or the number of events was reached.
    Reached,
    /// All tasks are over.
    Over,
    /// Tasks wait, and nothing will ever happen again.
    Idle,
}

/// Where a run is, for whoever watches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// Simulated time since the program began.
    pub elapsed: Time,
    /// Tasks that are over.
    pub done: u32,
    /// All tasks.
    pub tasks: u32,
    /// Events so far.
    pub events: u64,
}

/// A change of the network while the program runs.
pub trait Change<N> {
    /// Makes it.
    fn apply(&mut self, sim: &mut Simulation<N>);
}

/// The settings of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunConfig {
    /// Time for the hosts to get ready.
    pub ready_limit: Time,
    /// Idle time before the program begins.
    pub settle: Time,
    /// Time for the program.
    pub limit: Time,
    /// How often whoever watches is called, in simulated time.
    pub watch: Time,
}

impl Default for RunConfig {
    fn default() -> Self {
        Self {
            ready_limit: Time::from_ms(1_000),
            settle: Time::from_us(500),
            limit: Time::from_ms(10_000),
            watch: Time::from_us(10),
        }
    }
}

/// Who waits for what, by task: a flat list.
#[derive(Default)]
struct Dependents {
    first: Vec<u32>,
    list: Vec<TaskId>,
}

impl Dependents {
    fn new(program: &Program, of: impl Fn(After) -> Option<TaskId>) -> Self {
        let tasks = program.tasks();
        let mut first = vec![0; tasks.len() + 1];
        let each = |visit: &mut dyn FnMut(TaskId, TaskId)| {
            for (id, task) in tasks.iter().enumerate() {
                for on in program.dependencies(task).iter().filter_map(|&on| of(on)) {
                    visit(on, id as TaskId);
                }
            }
        };
        each(&mut |on, _| first[on as usize + 1] += 1);
        for i in 1..first.len() {
            first[i] += first[i - 1];
        }
        let mut next = first.clone();
        let mut list = vec![0; first[tasks.len()] as usize];
        each(&mut |on, id| {
            list[next[on as usize] as usize] = id;
            next[on as usize] += 1;
        });
        Self { first, list }
    }

    fn of(&self, task: TaskId) -> core::ops::Range<usize> {
        let task = task as usize;
        self.first[task] as usize..self.first[task + 1] as usize
    }
}

/// A program and the hosts that carry it out.
pub struct Run<N> {
    /// The hosts and their network.
    pub sim: Simulation<N>,
    program: Program,
    records: Vec<Record>,
    /// What each task still waits for; its time counts as one more.
    waits: Vec<u32>,
    after_done: Dependents,
    after_acknowledged: Dependents,
    begin: Time,
    over: u32,
    touched: Vec<HostId>,
    changes: Vec<(Time, Box<dyn Change<N>>)>,
}

/// Alarms with tokens from here on are changes of the network.
const CHANGES: u32 = 1 << 31;

impl<N: Node> Run<N> {
    /// Puts a program on hosts.
    ///
    /// # Panics
    /// If the program is for more hosts than there are, or has more than 2^31 tasks.
    #[must_use]
    pub fn new(sim: Simulation<N>, program: Program) -> Self {
        assert!(program.hosts() as usize <= sim.hosts.len());
        assert!(program.tasks().len() < CHANGES as usize);
        let waits = program
            .tasks()
            .iter()
            .map(|task| 1 + program.dependencies(task).len() as u32)
            .collect();
        let done = |on| match on {
            After::Done(id) => Some(id),
            After::Acknowledged(_) => None,
        };
        let acknowledged = |on| match on {
            After::Acknowledged(id) => Some(id),
            After::Done(_) => None,
        };
        Self {
            records: vec![PENDING; program.tasks().len()],
            after_done: Dependents::new(&program, done),
            after_acknowledged: Dependents::new(&program, acknowledged),
            waits,
            program,
            sim,
            begin: Time::NEVER,
            over: 0,
            touched: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Lets the network change at a time after the program began.
    pub fn at(&mut self, time: Time, change: Box<dyn Change<N>>) {
        self.changes.push((time, change));
    }

    /// The program.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What became of each task so far.
    #[must_use]
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// When the program began.
    #[must_use]
    pub fn begin(&self) -> Time {
        self.begin
    }

    /// The sum of what the hosts counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.sim
            .hosts
            .iter()
            .fold(Counters::default(), |sum, host| sum.plus(host.counters()))
    }

    /// Gets the hosts ready and carries out the program. `watch` is called now and then and may stop it.
    pub fn run(
        &mut self,
        config: &RunConfig,
        mut watch: impl FnMut(&mut Self, Status) -> ControlFlow<()>,
    ) -> End {
        if !self.start(config) {
            return End::NotReady;
        }
        let limit = self.begin + config.limit;
        let mut next_watch = self.begin + config.watch;
        loop {
            match self.advance(limit.min(next_watch), u64::MAX) {
                Stretch::Over => break,
                Stretch::Idle => return End::Stuck,
                Stretch::Reached if self.sim.now() >= limit => return End::TimeLimit,
                Stretch::Reached => {
                    next_watch = self.sim.now() + config.watch;
                    let status = self.status();
                    if watch(self, status).is_break() {
                        return End::Stopped;
                    }
                }
            }
        }
        if self.records.iter().any(|record| record.failed) {
            End::Stuck
        } else {
            End::Complete
        }
    }

    /// Gets the hosts ready and lets the program begin; false if they were not ready in time.
    pub fn start(&mut self, config: &RunConfig) -> bool {
        if !self.get_ready(config) {
            return false;
        }
        self.begin = self.sim.now();
        for i in 0..self.changes.len() {
            if self.changes[i].0 == Time::ZERO {
                // Before the first packet.
                self.changes[i].1.apply(&mut self.sim);
                continue;
            }
            let at = self.begin + self.changes[i].0;
            self.sim.set_alarm(at, CHANGES + i as u32);
        }
        for id in 0..self.records.len() as TaskId {
            match self.program.tasks()[id as usize].not_before {
                Time::ZERO => self.satisfied(id),
                time => self.sim.set_alarm(self.begin + time, id),
            }
        }
        self.kick();
        true
    }

    /// Goes on until a time of the simulation, at most for so many events. However a run is cut into stretches, the same happens.
    pub fn advance(&mut self, until: Time, events: u64) -> Stretch {
        let last = self.sim.network.events_processed().saturating_add(events);
        while self.over < self.records.len() as u32 {
            let left = last - self.sim.network.events_processed();
            match self.sim.run_events(until, left) {
                Some(Stop::News(host)) => self.news(host),
                Some(Stop::Alarm(token)) if token >= CHANGES => {
                    let index = (token - CHANGES) as usize;
                    self.changes[index].1.apply(&mut self.sim);
                }
                Some(Stop::Alarm(id)) => {
                    // The time of a task has come, or its pause is over.
                    if self.records[id as usize].started == Time::NEVER {
                        self.satisfied(id);
                    } else {
                        self.finish(id);
                    }
                }
                Some(Stop::Limit) | None => return Stretch::Reached,
                Some(Stop::Idle) => return Stretch::Idle,
            }
            self.kick();
        }
        Stretch::Over
    }

    /// Where the run is.
    #[must_use]
    pub fn status(&self) -> Status {
        Status {
            elapsed: self.sim.now() - self.begin,
            done: self.over,
            tasks: self.records.len() as u32,
            events: self.sim.network.events_processed(),
        }
    }

    fn get_ready(&mut self, config: &RunConfig) -> bool {
        let mut peers: Vec<Vec<HostId>> = vec![Vec::new(); self.sim.hosts.len()];
        for (from, to) in self.program.pairs() {
            peers[from as usize].push(to);
            peers[to as usize].push(from);
        }
        let now = self.sim.now();
        for (host, mut peers) in peers.into_iter().enumerate() {
            peers.sort_unstable();
            peers.dedup();
            self.sim.hosts[host].prepare(now, &peers);
            self.sim.kick(host as HostId);
        }
        let limit = now + config.ready_limit;
        while !self.sim.hosts.iter().all(Node::is_ready) {
            let Stop::News(host) = self.sim.run(limit) else {
                return false;
            };
            self.news(host);
        }
        let settled = self.sim.now() + config.settle;
        while let Stop::News(host) = self.sim.run(settled) {
            self.news(host);
        }
        true
    }

    fn news(&mut self, host: HostId) {
        let now = self.sim.now();
        while let Some(progress) = self.sim.hosts[host as usize].poll_progress(now) {
            match progress {
                Progress::Delivered { id, lost_bytes } => {
                    self.records[id as usize].lost_bytes = lost_bytes;
                    self.records[id as usize].done = now;
                    self.go_on(id, true);
                }
                Progress::Acknowledged { id } => {
                    self.records[id as usize].acknowledged = now;
                    self.go_on(id, false);
                }
                Progress::Failed { id } => {
                    if !self.records[id as usize].failed {
                        self.records[id as usize].failed = true;
                        self.over += 1;
                    }
                }
            }
        }
        self.touched.push(host);
    }

    /// A transfer was delivered (`done`) or acknowledged; it is over when both have happened.
    fn go_on(&mut self, id: TaskId, done: bool) {
        let record = &self.records[id as usize];
        if record.done != Time::NEVER && record.acknowledged != Time::NEVER && !record.failed {
            self.over += 1;
        }
        let dependents = if done {
            self.after_done.of(id)
        } else {
            self.after_acknowledged.of(id)
        };
        for at in dependents {
            let next = if done {
                self.after_done.list[at]
            } else {
                self.after_acknowledged.list[at]
            };
            self.satisfied(next);
        }
    }

    /// One of the things that a task waits for has happened.
    fn satisfied(&mut self, id: TaskId) {
        self.waits[id as usize] -= 1;
        if self.waits[id as usize] > 0 {
            return;
        }
        let now = self.sim.now();
        self.records[id as usize].started = now;
        match self.program.tasks()[id as usize].action {
            Action::Pause { span, .. } if span == Time::ZERO => self.finish(id),
            Action::Pause { span, .. } => self.sim.set_alarm(now + span, id),
            Action::Transfer {
                from,
                to,
                bytes,
                flow,
            } => {
                let message = Message {
                    id,
                    peer: to,
                    bytes,
                    flow,
                };
                self.sim.hosts[from as usize].post(now, &message);
                self.touched.push(from);
            }
        }
    }

    /// A pause is over.
    fn finish(&mut self, id: TaskId) {
        let now = self.sim.now();
        let record = &mut self.records[id as usize];
        record.done = now;
        record.acknowledged = now;
        self.go_on(id, true);
    }

    /// Lets hosts that were given something act on it.
    fn kick(&mut self) {
        let mut touched = core::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for &host in &touched {
            self.sim.kick(host);
        }
        touched.clear();
        self.touched = touched;
    }
}
