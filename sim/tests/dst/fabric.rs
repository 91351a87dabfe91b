//! The network of a run and the rights of its regions.

use metaroce_core::memory::Access;
use metaroce_sim::port::{Node, PortConfig};
use metaroce_sim::topology::{self, PairConfig, StarConfig};

use crate::plan::{FORBIDDEN, INBOX, LIBRARY, Plan, SOURCE, TARGET, WORDS};

pub fn rights(region: usize) -> Access {
    match region {
        SOURCE => Access::LOCAL_READ,
        TARGET => Access::LOCAL_WRITE
            .with(Access::REMOTE_WRITE)
            .with(Access::REMOTE_READ),
        LIBRARY => Access::REMOTE_READ,
        WORDS => Access::REMOTE_ATOMIC.with(Access::LOCAL_WRITE),
        INBOX | FORBIDDEN => Access::LOCAL_WRITE,
        _ => Access::LOCAL_READ,
    }
}

pub fn network(plan: &Plan) -> topology::Topology {
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
        topology::star(
            &StarConfig {
                senders,
                planes: plan.planes,
                base_rtt: plan.base_rtt,
                port,
            },
            plan.seed,
        )
    } else {
        let config = PairConfig {
            planes: plan.planes,
            mbps: plan.mbps,
            base_rtt: plan.base_rtt,
        };
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
