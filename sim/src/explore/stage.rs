//! A run, whatever its hosts speak.

use std::cell::{Ref, RefCell};
use std::rc::Rc;

use super::intervention::Action;
use super::peek::{ConnectionView, Peek};
use super::placement::{Noting, Placements};
use crate::fabric::Link;
use crate::faults::FaultConfig;
use crate::network::Network;
use crate::node::Counters;
use crate::packet::{HostId, Packet, PacketId};
use crate::random::Probability;
use crate::scenario::{Plan, ScenarioError, Setting};
use crate::time::Time;
use crate::workload::run::{Run, Status, Stretch};

/// A run that has begun.
pub(super) trait Stage {
    /// Goes on until so long after the beginning, at most for so many events.
    fn advance(&mut self, elapsed: Time, events: u64) -> Stretch;
    /// Moves the clock on, if nothing is due before.
    fn wait(&mut self, elapsed: Time);
    fn status(&self) -> Status;
    fn network(&self) -> &Network;
    fn links(&self) -> &[Link];
    fn pairs(&self) -> Vec<(HostId, HostId)>;
    fn connection(&self, from: HostId, to: HostId) -> Option<ConnectionView>;
    fn path(&self, packet: &Packet) -> u8;
    fn placements(&self) -> Ref<'_, Placements>;
    fn counters(&self) -> Counters;
    /// False if what it is for is not there.
    fn apply(&mut self, action: &Action) -> bool;
}

/// Builds a run and lets it begin.
pub(super) struct Opening;

impl Plan for Opening {
    type Outcome = Box<dyn Stage>;

    fn carry_out<N: Peek + 'static>(
        self,
        setting: Setting<'_>,
        hosts: Vec<N>,
    ) -> Result<Box<dyn Stage>, ScenarioError> {
        let placements = Rc::new(RefCell::new(Placements::default()));
        let hosts = (0..)
            .zip(hosts)
            .map(|(id, host)| Noting::new(host, id, Rc::clone(&placements)));
        let config = setting.scenario.run.config();
        let (mut run, links) = setting.prepare(hosts.collect())?;
        if !run.start(&config) {
            let message = "the hosts are not ready in time".to_owned();
            return Err(ScenarioError::settings("run.ready_limit", message));
        }
        placements.borrow_mut().begin = run.begin();
        let rates = run.sim.network.ports.iter().map(|port| port.config.mbps);
        Ok(Box::new(Open {
            rates: rates.collect(),
            faults: run
                .sim
                .network
                .ports
                .iter()
                .map(|port| port.faults.as_ref().map(|faults| faults.config().clone()))
                .collect(),
            limit: config.limit,
            run,
            links,
            placements,
        }))
    }
}

struct Open<N> {
    run: Run<Noting<N>>,
    links: Vec<Link>,
    placements: Rc<RefCell<Placements>>,
    /// By port, as the scenario has them at the beginning.
    rates: Vec<u64>,
    faults: Vec<Option<FaultConfig>>,
    limit: Time,
}

impl<N: Peek> Stage for Open<N> {
    fn advance(&mut self, elapsed: Time, events: u64) -> Stretch {
        let (begin, limit) = (self.run.begin(), self.limit);
        let end = self.run.advance(begin + elapsed.min(limit), events);
        if end == Stretch::Reached && self.run.status().elapsed >= limit {
            return Stretch::Idle;
        }
        end
    }

    fn wait(&mut self, elapsed: Time) {
        self.run.sim.wait(self.run.begin() + elapsed);
    }

    fn status(&self) -> Status {
        self.run.status()
    }

    fn network(&self) -> &Network {
        &self.run.sim.network
    }

    fn links(&self) -> &[Link] {
        &self.links
    }

    fn pairs(&self) -> Vec<(HostId, HostId)> {
        self.run.program().pairs()
    }

    fn connection(&self, from: HostId, to: HostId) -> Option<ConnectionView> {
        let host = |id: HostId| Some(&self.run.sim.hosts.get(id as usize)?.node);
        host(from)?.connection(from, to, host(to)?)
    }

    fn path(&self, packet: &Packet) -> u8 {
        let host = self.run.sim.hosts.get(packet.source as usize);
        host.map_or(0, |host| host.node.path(packet))
    }

    fn placements(&self) -> Ref<'_, Placements> {
        self.placements.borrow()
    }

    fn counters(&self) -> Counters {
        self.run.counters()
    }

    fn apply(&mut self, action: &Action) -> bool {
        let network = &mut self.run.sim.network;
        if let Action::Drop { packet } = *action {
            return network.drop_packet(PacketId(packet));
        }
        let link = action.link().and_then(|link| self.links.get(link as usize));
        let Some(link) = link else {
            return false;
        };
        let now = network.now();
        for port in [link.up, link.down] {
            let index = port as usize;
            match *action {
                Action::Cut { .. } => network.schedule_link(now, port, false),
                Action::Repair { .. } => {
                    if !network.ports[index].is_up() {
                        network.schedule_link(now, port, true);
                    }
                    network.set_rate(port, self.rates[index]);
                    if network.ports[index].faults.is_some() {
                        let before = self.faults[index].clone().unwrap_or_default();
                        network.change_faults(port, before);
                    }
                }
                Action::Slow { mbps, .. } => network.set_rate(port, mbps.into()),
                Action::Lose { permille, .. } => {
                    let loss = Probability::ratio(permille.min(1_000).into(), 1_000);
                    network.change_faults(port, FaultConfig::loss(loss));
                }
                Action::Drop { .. } => {}
            }
        }
        true
    }
}
