//! What goes wrong in a scenario: where, what, from when and until when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::ScenarioError;
use crate::fabric::{Fabric, Link, Tier};
use crate::faults::{Burst, FaultConfig, Reordering, Selector};
use crate::packet::HostId;
use crate::port::{Node, PortId};
use crate::random::{Probability, Purpose, Stream};
use crate::simulation::Simulation;
use crate::time::Time;
use crate::workload::run::Change;

/// A fault. Times are after the start of the workload.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Which links it hits.
    #[serde(default)]
    pub links: Links,
    /// Which of their directions.
    #[serde(default)]
    pub direction: Direction,
    /// What it does.
    pub effect: Effect,
    /// From when.
    #[serde(default)]
    pub from: Time,
    /// Until when.
    #[serde(default = "never")]
    pub until: Time,
}

const fn never() -> Time {
    Time::NEVER
}

/// Links that have all that is said: none said, all links.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Links {
    /// Those of a tier.
    pub tier: Option<Tier>,
    /// Those of a plane.
    pub plane: Option<u8>,
    /// Those of a host.
    pub host: Option<HostId>,
    /// Those at a switch, by its number.
    pub switch: Option<u32>,
    /// Of these only the one with this number, from 0.
    pub nth: Option<u32>,
    /// Of these only so many, chosen by the seed.
    pub random: Option<u32>,
}

/// A direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Both.
    #[default]
    Both,
    /// Away from the hosts.
    Up,
    /// Towards the hosts.
    Down,
}

/// What a fault does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Effect {
    /// The link is down: switches know at once which of their own links are, the others after `fabric.reroute_after`.
    Down,
    /// It goes down again and again.
    Flap {
        /// From one time that it goes down to the next.
        period: Time,
        /// How long it is down each time.
        down: Time,
    },
    /// Packets vanish independently, and nobody is told.
    Loss {
        /// How many.
        probability: Probability,
    },
    /// Packets vanish in bursts (Gilbert and Elliott).
    Burst(Burst),
    /// Bits are flipped.
    Corruption {
        /// In how many packets.
        probability: Probability,
    },
    /// Packets arrive twice.
    Duplication {
        /// How many.
        probability: Probability,
    },
    /// Packets are delayed, and others overtake them.
    Reordering(Reordering),
    /// The line is slow.
    Slow {
        /// Its rate meanwhile, Mbit/s.
        mbps: u64,
    },
    /// All packets vanish, and nobody is told.
    Blackhole,
}

/// Changes of ports at a time.
pub(super) struct PortChanges(Vec<(PortId, PortChange)>);

#[derive(Clone, PartialEq, Debug)]
enum PortChange {
    Up(bool),
    Rate(u64),
    Faults(FaultConfig),
}

impl<N> Change<N> for PortChanges {
    fn apply(&mut self, sim: &mut Simulation<N>) {
        let now = sim.network.now();
        for (port, change) in self.0.drain(..) {
            match change {
                PortChange::Up(up) => sim.network.schedule_link(now, port, up),
                PortChange::Rate(mbps) => sim.network.set_rate(port, mbps),
                PortChange::Faults(config) => sim.network.change_faults(port, config),
            }
        }
    }
}

/// More changes than this are a mistake.
const MOST_CHANGES: usize = 1_000_000;

/// All changes that faults make until a time, in the order of time.
pub(super) fn changes(
    faults: &[Fault],
    fabric: &Fabric,
    limit: Time,
    seed: u64,
) -> Result<Vec<(Time, PortChanges)>, ScenarioError> {
    let mut hit: BTreeMap<PortId, Vec<usize>> = BTreeMap::new();
    for (index, fault) in faults.iter().enumerate() {
        check(fault, index)?;
        for link in chosen(&fault.links, fabric, index, seed)? {
            let [up, down] = [link.up, link.down];
            match fault.direction {
                Direction::Both => [Some(up), Some(down)],
                Direction::Up => [Some(up), None],
                Direction::Down => [None, Some(down)],
            }
            .into_iter()
            .flatten()
            .for_each(|port| hit.entry(port).or_default().push(index));
        }
    }
    let mut by_time: BTreeMap<Time, Vec<(PortId, PortChange)>> = BTreeMap::new();
    let mut count = 0;
    for (port, indices) in hit {
        let sound = State::new(fabric.network.ports[port as usize].config.mbps);
        let mut last = sound.clone();
        let mut times: Vec<Time> = Vec::new();
        for &index in &indices {
            turns(&faults[index], limit, &mut times);
            if times.len() > MOST_CHANGES {
                let message = format!("it would change more than {MOST_CHANGES} times");
                return Err(ScenarioError::settings(format!("fault.{index}"), message));
            }
        }
        times.sort_unstable();
        times.dedup();
        for time in times {
            let mut state = sound.clone();
            for &index in &indices {
                state.add(&faults[index], time);
            }
            let changes = by_time.entry(time).or_default();
            let before = changes.len();
            if state.up != last.up {
                changes.push((port, PortChange::Up(state.up)));
            }
            if state.mbps != last.mbps {
                changes.push((port, PortChange::Rate(state.mbps)));
            }
            if state.config != last.config {
                changes.push((port, PortChange::Faults(state.config.clone())));
            }
            count += changes.len() - before;
            last = state;
        }
        if count > MOST_CHANGES {
            let message = format!("there would be more than {MOST_CHANGES} changes");
            return Err(ScenarioError::settings("fault", message));
        }
    }
    Ok(by_time
        .into_iter()
        .filter(|(_, changes)| !changes.is_empty())
        .map(|(time, changes)| (time, PortChanges(changes)))
        .collect())
}

/// What a port is like.
#[derive(Clone, PartialEq, Debug)]
struct State {
    up: bool,
    mbps: u64,
    config: FaultConfig,
}

impl State {
    fn new(mbps: u64) -> Self {
        Self {
            up: true,
            mbps,
            config: FaultConfig::default(),
        }
    }

    /// What a fault makes of it at a time.
    fn add(&mut self, fault: &Fault, now: Time) {
        if now < fault.from || now >= fault.until {
            return;
        }
        let config = &mut self.config;
        match fault.effect {
            Effect::Down => self.up = false,
            Effect::Flap { period, down } => {
                self.up &= now.since(fault.from).ps() % period.ps() >= down.ps();
            }
            Effect::Loss { probability } => config.loss = config.loss.or(probability),
            Effect::Blackhole => {
                let all = (Selector::All, Time::ZERO, Time::NEVER);
                *config = std::mem::take(config).with_blackhole(all.0, all.1, all.2);
            }
            Effect::Burst(burst) => config.burst = Some(burst),
            Effect::Corruption { probability } => {
                config.corruption = config.corruption.or(probability);
            }
            Effect::Duplication { probability } => {
                config.duplication = config.duplication.or(probability);
            }
            Effect::Reordering(reordering) => config.reordering = Some(reordering),
            Effect::Slow { mbps } => self.mbps = self.mbps.min(mbps),
        }
    }
}

/// The times at which a fault changes something.
fn turns(fault: &Fault, limit: Time, times: &mut Vec<Time>) {
    let end = fault.until.min(limit);
    times.push(fault.from);
    if let Effect::Flap { period, down } = fault.effect {
        let mut at = fault.from;
        while at < end && times.len() <= MOST_CHANGES {
            times.push(at);
            times.push((at + down).min(end));
            at += period;
        }
    }
    if fault.until < limit {
        times.push(fault.until);
    }
}

fn check(fault: &Fault, index: usize) -> Result<(), ScenarioError> {
    let wrong = |key: &str, message: String| {
        Err(ScenarioError::settings(
            format!("fault.{index}.{key}"),
            message,
        ))
    };
    if fault.until <= fault.from {
        return wrong("until", format!("must be after `from`, {}", fault.from));
    }
    match fault.effect {
        Effect::Flap { period, down } if down == Time::ZERO || down >= period => wrong(
            "effect.down",
            format!("must be above 0 and below the period, {period}"),
        ),
        Effect::Slow { mbps: 0 } => wrong("effect.mbps", "must be at least 1".to_owned()),
        _ => Ok(()),
    }
}

/// The links that a fault hits.
fn chosen<'a>(
    links: &Links,
    fabric: &'a Fabric,
    index: usize,
    seed: u64,
) -> Result<Vec<&'a Link>, ScenarioError> {
    let at = |link: &Link, node: Node| link.lower == node || link.upper == node;
    let mut matching: Vec<&Link> = fabric
        .links
        .iter()
        .filter(|link| links.tier.is_none_or(|tier| link.tier == tier))
        .filter(|link| links.plane.is_none_or(|plane| link.plane == plane))
        .filter(|link| links.host.is_none_or(|host| at(link, Node::Host(host))))
        .filter(|link| {
            links
                .switch
                .is_none_or(|switch| at(link, Node::Switch(switch)))
        })
        .collect();
    let count = matching.len();
    let wrong = |key: &str, message: String| {
        Err(ScenarioError::settings(
            format!("fault.{index}.links{key}"),
            message,
        ))
    };
    if count == 0 {
        return wrong("", "there is no such link in this fabric".to_owned());
    }
    if let Some(nth) = links.nth {
        match matching.get(nth as usize) {
            Some(&link) => matching = vec![link],
            None => return wrong(".nth", format!("there are {count} such links, from 0 on")),
        }
    }
    if let Some(random) = links.random {
        if random as usize > matching.len() || random == 0 {
            return wrong(
                ".random",
                format!("there are {} such links", matching.len()),
            );
        }
        let mut stream = Stream::new(seed, Purpose::FaultPlace, index as u64);
        for i in 0..random as usize {
            let other = i + stream.below((matching.len() - i) as u64) as usize;
            matching.swap(i, other);
        }
        matching.truncate(random as usize);
    }
    Ok(matching)
}
