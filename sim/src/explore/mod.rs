//! Going through a run step by step, with a look at everything and a hand in it.
//!
//! An [`Exploration`] is a run of a scenario that stands still between calls: it goes on for a time or for one event, shows its network, its
//! connections and its memory, and takes [`Action`]s. Its state follows from the scenario, the seed, the interventions and its
//! [`Position`] alone: however it was cut into steps, the same comes out, to the last bit, and [`Exploration::seek`] goes to any
//! position, forwards or back.
//!
//! ```
//! use metaroce_sim::explore::{Action, Exploration};
//! use metaroce_sim::scenario::{Document, NoFiles};
//! use metaroce_sim::time::Time;
//!
//! let text = r#"
//! schema = 1
//! fabric.shape = { kind = "star", hosts = 3 }
//! transport = { kind = "metaroce", paths = 4 }
//! workload = { kind = "incast", size_bytes = "64KiB" }
//! "#;
//! let scenario = Document::parse("incast.toml", text, &[""; 0], &NoFiles).unwrap().scenario;
//! let mut run = Exploration::new(scenario, 1).unwrap();
//! run.advance(Time::from_us(3));
//! run.act(Action::Lose { link: 0, permille: 500 }).unwrap();
//! run.advance(Time::from_ms(100));
//! assert!(run.is_over() && run.network().is_conserved());
//! ```

mod intervention;
mod peek;
mod placement;
mod stage;

pub use intervention::{Action, Intervention, Position};
pub use peek::{ConnectionView, Part, PathView, Peek};
pub use placement::{BIN, CELLS, Placements, Transfer};

use std::cell::Ref;

use crate::fabric::Link;
use crate::network::Network;
use crate::node::Counters;
use crate::packet::{HostId, Packet};
use crate::scenario::{Scenario, ScenarioError, with_hosts};
use crate::time::Time;
use crate::workload::run::{Status, Stretch};
use stage::{Opening, Stage};

/// A run that stands still between calls.
pub struct Exploration {
    scenario: Scenario,
    seed: u64,
    stage: Box<dyn Stage>,
    /// In the order of time; those before `applied` have been made.
    interventions: Vec<Intervention>,
    applied: usize,
    end: Stretch,
}

impl Exploration {
    /// Gets the hosts of a scenario ready, and stops as its workload begins.
    ///
    /// # Errors
    /// What is wrong with the scenario, or that its hosts do not get ready.
    pub fn new(scenario: Scenario, seed: u64) -> Result<Self, ScenarioError> {
        Self::with_interventions(scenario, seed, Vec::new())
    }

    /// The same with what will be done to it, each when its time comes.
    ///
    /// # Errors
    /// As [`Self::new`], and interventions at links that are not there.
    pub fn with_interventions(
        scenario: Scenario,
        seed: u64,
        mut interventions: Vec<Intervention>,
    ) -> Result<Self, ScenarioError> {
        interventions.sort_by_key(|intervention| intervention.at);
        let stage = with_hosts(&scenario, seed, Opening)?;
        let this = Self {
            scenario,
            seed,
            stage,
            interventions,
            applied: 0,
            end: Stretch::Reached,
        };
        for intervention in &this.interventions {
            this.check(intervention.action)
                .map_err(|error| ScenarioError::settings("interventions", error))?;
        }
        Ok(this)
    }

    /// Where it is.
    #[must_use]
    pub fn position(&self) -> Position {
        Position {
            elapsed: self.stage.status().elapsed,
            events: self.network().events_processed(),
        }
    }

    /// Tasks that are over, and all.
    #[must_use]
    pub fn status(&self) -> Status {
        self.stage.status()
    }

    /// Whether every task is over, or nothing will happen any more. The clock stands still then.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.end != Stretch::Reached
    }

    /// Goes on until so long after the workload began. What lies behind is not undone.
    pub fn advance(&mut self, elapsed: Time) {
        while let Some(&next) = self.interventions.get(self.applied) {
            if next.at.elapsed > elapsed || self.is_over() {
                break;
            }
            self.make(next);
        }
        self.end = self.stage.advance(elapsed, u64::MAX);
    }

    /// Goes on for one event.
    pub fn step(&mut self) {
        let here = self.position();
        let due = |next: &Intervention| next.at <= here;
        while let Some(next) = self.interventions.get(self.applied).copied().filter(due) {
            self.apply(next.action);
            self.applied += 1;
        }
        self.end = self.stage.advance(Time::NEVER, 1);
    }

    /// Goes to a position: forwards, or from the beginning if it lies behind.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn seek(&mut self, to: Position) -> Result<(), ScenarioError> {
        if to < self.position() {
            self.stage = with_hosts(&self.scenario, self.seed, Opening)?;
            (self.applied, self.end) = (0, Stretch::Reached);
        }
        while let Some(&next) = self.interventions.get(self.applied) {
            if next.at > to {
                break;
            }
            self.make(next);
        }
        self.go_to(to);
        Ok(())
    }

    /// Goes to a time, and there behind all that is due: forwards, or from the beginning if it lies behind.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn seek_time(&mut self, elapsed: Time) -> Result<(), ScenarioError> {
        if elapsed < self.position().elapsed {
            self.seek(Position::default())?;
        }
        self.advance(elapsed);
        Ok(())
    }

    /// Does something now. Interventions that were to come are forgotten: what they were meant for will not be there.
    ///
    /// # Errors
    /// That there is no such link or packet.
    pub fn act(&mut self, action: Action) -> Result<(), String> {
        self.check(action)?;
        let at = self.position();
        if !self.apply(action) {
            return Err("that packet has left the network".to_owned());
        }
        self.interventions.truncate(self.applied);
        self.interventions.push(Intervention { at, action });
        self.applied += 1;
        Ok(())
    }

    /// What was and will be done to it.
    #[must_use]
    pub fn interventions(&self) -> &[Intervention] {
        &self.interventions
    }

    /// The network as it is.
    #[must_use]
    pub fn network(&self) -> &Network {
        self.stage.network()
    }

    /// The links of the fabric.
    #[must_use]
    pub fn links(&self) -> &[Link] {
        self.stage.links()
    }

    /// Who sends to whom.
    #[must_use]
    pub fn pairs(&self) -> Vec<(HostId, HostId)> {
        self.stage.pairs()
    }

    /// A connection, if its transport shows it and it is there.
    #[must_use]
    pub fn connection(&self, from: HostId, to: HostId) -> Option<ConnectionView> {
        self.stage.connection(from, to)
    }

    /// The path or queue pair of a packet.
    #[must_use]
    pub fn path(&self, packet: &Packet) -> u8 {
        self.stage.path(packet)
    }

    /// The messages that were posted, and what of them is in its place.
    #[must_use]
    pub fn placements(&self) -> Ref<'_, Placements> {
        self.stage.placements()
    }

    /// The sum of what the hosts counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.stage.counters()
    }

    /// The name of its transport.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        self.scenario.transport.name()
    }

    /// Goes on to where the next intervention is made, and makes it. One of no events is made when all that is due by its time has happened.
    fn make(&mut self, next: Intervention) {
        if next.at.events == 0 {
            self.end = self.stage.advance(next.at.elapsed, u64::MAX);
            self.interventions[self.applied].at = self.position();
        } else {
            self.go_to(next.at);
        }
        self.apply(next.action);
        self.applied += 1;
    }

    /// Goes on to a position; no intervention lies between.
    fn go_to(&mut self, to: Position) {
        let here = self.position();
        if to.events > here.events {
            let events = to.events - here.events;
            self.end = self.stage.advance(Time::NEVER, events);
        }
        // Nothing happens meanwhile.
        if to.elapsed > self.position().elapsed && !self.is_over() {
            self.stage.wait(to.elapsed);
        }
    }

    /// Whether there is the link that it is for. Packets come and go: those are looked for when the time has come.
    fn check(&self, action: Action) -> Result<(), String> {
        let links = self.links().len();
        match action.link() {
            Some(link) if link as usize >= links => {
                Err(format!("there is no link {link}: there are {links}"))
            }
            _ => Ok(()),
        }
    }

    fn apply(&mut self, action: Action) -> bool {
        self.stage.apply(&action)
    }
}
