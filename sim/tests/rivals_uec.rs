//! Ultra Ethernet and best effort against published figures, and what must hold whatever happens.

use metaroce_sim::node::{Message, Node, Progress};
use metaroce_sim::packet::HostId;
use metaroce_sim::simulation::{Simulation, Stop};
use metaroce_sim::time::Time;
use metaroce_sim::topology::{self, StarConfig, Topology};
use metaroce_sim::transport::uec::{Control, UecConfig, UecHost};

/// A run of messages that all start at once.
struct Run<H> {
    sim: Simulation<H>,
    /// When each message was acknowledged, by its number.
    acknowledged: Vec<Option<Time>>,
    /// When each message was delivered, and what was lost of it.
    delivered: Vec<Option<(Time, u64)>>,
}

impl<H: Node> Run<H> {
    fn new(topology: Topology, host: impl Fn(HostId) -> H) -> Self {
        let hosts = (0..topology.network.hosts() as HostId).map(host).collect();
        Self {
            sim: Simulation::new(topology.network, hosts),
            acknowledged: Vec::new(),
            delivered: Vec::new(),
        }
    }

    fn post(&mut self, from: HostId, to: HostId, bytes: u64, flow: u32) -> u32 {
        let id = self.acknowledged.len() as u32;
        self.acknowledged.push(None);
        self.delivered.push(None);
        let message = Message {
            id,
            peer: to,
            bytes,
            flow,
        };
        let now = self.sim.now();
        self.sim.host(from).post(now, &message);
        self.sim.kick(from);
        id
    }

    /// Until all are acknowledged and delivered; panics if they are not by `limit`.
    fn finish(&mut self, limit: Time) {
        loop {
            let done = self.acknowledged.iter().all(Option::is_some)
                && self.delivered.iter().all(Option::is_some);
            if done {
                break;
            }
            match self.sim.run(limit) {
                Stop::News(host) => self.note(host),
                stop => panic!(
                    "{stop:?} at {}: {:?}",
                    self.sim.now(),
                    self.sim.hosts[0].counters()
                ),
            }
        }
    }

    fn note(&mut self, host: HostId) {
        let now = self.sim.now();
        while let Some(progress) = self.sim.host(host).poll_progress(now) {
            match progress {
                Progress::Acknowledged { id } => {
                    assert!(self.acknowledged[id as usize].replace(now).is_none());
                }
                Progress::Delivered { id, lost_bytes } => {
                    assert!(
                        self.delivered[id as usize]
                            .replace((now, lost_bytes))
                            .is_none()
                    );
                }
                Progress::Failed { id } => panic!("message {id} failed"),
            }
        }
    }

    /// Times of acknowledgment in microseconds, in order.
    fn times(&self) -> Vec<f64> {
        let mut times: Vec<f64> = self
            .acknowledged
            .iter()
            .flatten()
            .map(|at| at.us_f64())
            .collect();
        times.sort_by(f64::total_cmp);
        times
    }
}

fn incast(config: UecConfig, star: &StarConfig, bytes: u64, seed: u64) -> Run<UecHost> {
    let mut run = Run::new(topology::star(star, seed), |id| {
        UecHost::new(id, config, seed)
    });
    for sender in 0..star.senders {
        run.post(sender, star.senders, bytes, 0);
    }
    run.finish(Time::from_ms(100));
    run
}

#[test]
fn explore() {
    for (name, control) in [
        ("nscc", Control::Sender),
        ("rccc", Control::Receiver),
        ("both", Control::Both),
    ] {
        for sleek in [false, true] {
            for senders in [1, 2, 15, 127] {
                let config = UecConfig {
                    control,
                    sleek,
                    ..UecConfig::default()
                };
                let run = incast(config, &StarConfig::new(senders), 2_000_000, 1);
                let times = run.times();
                let sum = run
                    .sim
                    .hosts
                    .iter()
                    .fold(Default::default(), |a: metaroce_sim::node::Counters, h| {
                        a.plus(h.counters())
                    });
                println!(
                    "{name} sleek {sleek} {senders}: first {:.1} last {:.1} rtx {} to {} dup {}",
                    times[0],
                    times[times.len() - 1],
                    sum.retransmissions,
                    sum.timeouts,
                    sum.duplicates
                );
            }
        }
    }
}
