//! InfiniBand: reliable connections over links that lose nothing.
//!
//! The queue pairs are those of [`roce`](super::roce), whose transport is InfiniBand's (IBTA, Annex A17); what differs is the framing, and that
//! credits of the links take the place of a reaction to congestion. With adaptive routing switches choose a port per packet, and the receiver
//! places packets in any order and acknowledges cumulatively, as NVIDIA describes for its adaptive routing. Routing and credits are settings
//! of the fabric; virtual lanes are reduced to the two classes of the simulator.

use serde::{Deserialize, Serialize};

use super::roce::config::local_ack_timeout;
use super::roce::{Congestion, Framing, Recovery, RoceConfig, RoceHost};
use crate::node::{Counters, Message, Node, Progress};
use crate::packet::{HostId, Packet};
use crate::simulation::Station;
use crate::time::Time;

/// How the fabric routes packets of one queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Routing {
    /// All the same way: they stay in order.
    #[default]
    Static,
    /// Each its own way: the receiver has to place them in any order.
    Adaptive,
}

/// The settings of a host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InfinibandConfig {
    /// Payload of a full packet, bytes; the largest MTU is 4096.
    pub payload_bytes: u32,
    /// Rate of the host's line, Mbit/s.
    pub line_mbps: u64,
    /// Queue pairs to each peer, at least 1; flows share them by their number modulo this.
    pub queue_pairs: u32,
    /// What the host is to expect of the fabric.
    pub routing: Routing,
    /// Local ACK timeout, 4.096 us x 2^n; the usual n is 14, NCCL uses 18 to 20. Without faults it never expires.
    pub timeout: Time,
    /// Timeouts without progress after which a queue pair fails, usually 7; none: never.
    pub retries: Option<u32>,
    /// Reaction to marks. InfiniBand's own (FECN, BECN, a table of delays) is off in most fabrics and is not modelled;
    /// DCQCN may stand in for it.
    pub congestion: Congestion,
}

impl Default for InfinibandConfig {
    fn default() -> Self {
        Self {
            payload_bytes: 4096,
            line_mbps: 100_000,
            queue_pairs: 1,
            routing: Routing::Static,
            timeout: local_ack_timeout(14),
            retries: Some(7),
            congestion: Congestion::None,
        }
    }
}

impl From<InfinibandConfig> for RoceConfig {
    fn from(config: InfinibandConfig) -> Self {
        Self {
            payload_bytes: config.payload_bytes,
            line_mbps: config.line_mbps,
            queue_pairs: config.queue_pairs,
            recovery: match config.routing {
                Routing::Static => Recovery::GoBackN,
                Routing::Adaptive => Recovery::AnyOrder,
            },
            window_packets: None,
            ack_every: 1,
            timeout: config.timeout,
            retries: config.retries,
            congestion: config.congestion,
            framing: Framing::INFINIBAND,
        }
    }
}

/// A host channel adapter.
#[derive(Clone, Debug)]
pub struct InfinibandHost(RoceHost);

impl InfinibandHost {
    /// The host of this number; `seed` chooses what stands for the routes of its queue pairs.
    #[must_use]
    pub fn new(id: HostId, config: InfinibandConfig, seed: u64) -> Self {
        Self(RoceHost::new(id, config.into(), seed))
    }
}

impl Station for InfinibandHost {
    fn receive(&mut self, now: Time, packet: &Packet) {
        self.0.receive(now, packet);
    }

    fn transmit(&mut self, now: Time, packet: &mut Packet) -> bool {
        self.0.transmit(now, packet)
    }

    fn deadline(&mut self, now: Time) -> Option<Time> {
        self.0.deadline(now)
    }

    fn timeout(&mut self, now: Time) {
        self.0.timeout(now);
    }

    fn has_news(&self) -> bool {
        self.0.has_news()
    }
}

impl Node for InfinibandHost {
    fn prepare(&mut self, now: Time, peers: &[HostId]) {
        self.0.prepare(now, peers);
    }

    fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    fn post(&mut self, now: Time, message: &Message) {
        self.0.post(now, message);
    }

    fn poll_progress(&mut self, now: Time) -> Option<Progress> {
        self.0.poll_progress(now)
    }

    fn counters(&self) -> Counters {
        self.0.counters()
    }
}
