//! Ports, switches and wires put together: which packet is where, without knowing what hosts do.

use crate::engine::EventQueue;
use crate::faults::{Drop, FaultConfig, Faults, Verdict};
use crate::packet::{HostId, Packet, PacketId, Packets};
use crate::port::{Node, Port, PortConfig, PortId};
use crate::random::{Purpose, Stream};
use crate::time::Time;

/// What can happen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The packet on a port's line has left it.
    LineFree(PortId),
    /// The first packet on a port's wire arrives.
    Arrive(PortId),
    /// A packet that does not keep the order arrives.
    Stray(PortId, PacketId),
    /// A host wants to be called.
    Timer(HostId),
    /// A link goes up or down.
    Link(PortId, bool),
    /// A time that the scenario asked for.
    Alarm(u32),
}

/// What an event means for a host.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome {
    /// Nothing.
    None,
    /// A packet is there for it.
    Deliver(HostId, PacketId),
    /// One of its lines is free.
    Free(HostId),
    /// It wanted to be called.
    Timer(HostId),
    /// The scenario wanted to be called.
    Alarm(u32),
}

/// A switch: for every host the ports that lead to it.
#[derive(Clone, Debug, Default)]
struct Switch {
    /// By host: where in `choices`, and how many.
    routes: Vec<(u32, u32)>,
    choices: Vec<PortId>,
    salt: u64,
}

/// The network.
#[derive(Clone, Debug)]
pub struct Network {
    /// All output ports.
    pub ports: Vec<Port>,
    /// All packets.
    pub packets: Packets,
    pub(crate) events: EventQueue<Event>,
    switches: Vec<Switch>,
    /// By host and plane.
    host_ports: Vec<Vec<PortId>>,
    seed: u64,
    trace: u64,
    hops: u64,
    unroutable: u64,
    /// Print every packet that arrives or is dropped.
    pub verbose: bool,
}

impl Network {
    /// An empty network.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            ports: Vec::new(),
            packets: Packets::new(),
            events: EventQueue::new(),
            switches: Vec::new(),
            host_ports: Vec::new(),
            seed,
            trace: 0,
            hops: 0,
            unroutable: 0,
            verbose: false,
        }
    }

    /// Adds a host, to be linked plane by plane.
    pub fn add_host(&mut self) -> HostId {
        self.host_ports.push(Vec::new());
        self.host_ports.len() as HostId - 1
    }

    /// Adds a switch.
    pub fn add_switch(&mut self) -> u32 {
        let index = self.switches.len() as u64;
        let salt = Stream::new(self.seed, Purpose::Salt, index).bits();
        self.switches.push(Switch {
            salt,
            ..Switch::default()
        });
        index as u32
    }

    /// Adds the port of `from` whose wire leads to `to`. A host's ports are its planes, in this order.
    pub fn add_port(&mut self, from: Node, to: Node, plane: u8, config: PortConfig) -> PortId {
        let id = self.ports.len() as PortId;
        self.ports
            .push(Port::new(config, from, to, plane, self.seed, u64::from(id)));
        if let Node::Host(host) = from {
            self.host_ports[host as usize].push(id);
        }
        id
    }

    /// Lets a switch reach a host over any of `ports`, chosen by a hash of addresses and source port.
    pub fn add_route(&mut self, switch: u32, host: HostId, ports: &[PortId]) {
        let switch = &mut self.switches[switch as usize];
        let first = switch.choices.len() as u32;
        switch.choices.extend_from_slice(ports);
        if switch.routes.len() <= host as usize {
            switch.routes.resize(host as usize + 1, (0, 0));
        }
        switch.routes[host as usize] = (first, ports.len() as u32);
    }

    /// Lets things go wrong on a port's wire.
    pub fn set_faults(&mut self, port: PortId, config: FaultConfig) {
        let faults = Faults::new(config, self.seed, u64::from(port));
        self.ports[port as usize].faults = Some(Box::new(faults));
    }

    /// Takes a link up or down at a time. What is queued and what is on the line then is lost; what is on the
    /// wire arrives.
    pub fn schedule_link(&mut self, at: Time, port: PortId, up: bool) {
        self.events.push(at, Event::Link(port, up));
    }

    /// The port of a host on a plane.
    #[must_use]
    pub fn host_port(&self, host: HostId, plane: u8) -> PortId {
        self.host_ports[host as usize][usize::from(plane)]
    }

    /// All ports of a host, by plane.
    #[must_use]
    pub fn host_ports(&self, host: HostId) -> &[PortId] {
        &self.host_ports[host as usize]
    }

    /// How many hosts there are.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.host_ports.len()
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> Time {
        self.events.now()
    }

    /// A hash of every hop so far: equal for equal runs.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.trace
    }

    /// Packets that crossed a link, summed over links.
    #[must_use]
    pub fn hops(&self) -> u64 {
        self.hops
    }

    /// Events so far.
    #[must_use]
    pub fn events_processed(&self) -> u64 {
        self.events.processed()
    }

    /// Whether no port lost count of a packet, and none is in the slab that is at no port.
    #[must_use]
    pub fn is_conserved(&self) -> bool {
        let at_ports: u64 = self
            .ports
            .iter()
            .map(|port| u64::from(port.backlog()) + port.wire.len() as u64 + u64::from(port.astray))
            .sum();
        self.ports.iter().all(Port::is_conserved)
            && at_ports == self.packets.live() as u64
            && self.unroutable == 0
    }

    /// Puts a packet into the queue of a port.
    pub(crate) fn enqueue(&mut self, port: PortId, id: PacketId) {
        let at = &mut self.ports[port as usize];
        if let Err(reason) = at.enqueue(id, self.packets.get_mut(id)) {
            self.note(port, id, Some(reason));
            self.packets.release(id);
            return;
        }
        self.start(port);
    }

    /// Handles an event, and says which host it concerns.
    pub(crate) fn handle(&mut self, event: Event) -> Outcome {
        match event {
            Event::LineFree(port) => self.line_free(port),
            Event::Arrive(port) => {
                let at = &mut self.ports[port as usize];
                let Some((_, id)) = at.wire.pop_front() else {
                    return Outcome::None;
                };
                if let Some(&(time, _)) = at.wire.front() {
                    self.events.push(time, Event::Arrive(port));
                }
                self.arrive(port, id)
            }
            Event::Stray(port, id) => {
                self.ports[port as usize].astray -= 1;
                self.arrive(port, id)
            }
            Event::Timer(host) => Outcome::Timer(host),
            Event::Alarm(token) => Outcome::Alarm(token),
            Event::Link(port, up) => {
                let dropped = self.ports[port as usize].set_up(up);
                for id in dropped {
                    self.ports[port as usize].forget(self.packets.get(id));
                    self.packets.release(id);
                }
                Outcome::None
            }
        }
    }

    fn start(&mut self, port: PortId) {
        let at = &mut self.ports[port as usize];
        if let Some(id) = at.start() {
            let bytes = u64::from(self.packets.get(id).wire_bytes);
            let takes = Time::to_send(bytes, at.config.mbps);
            at.statistics.busy += takes;
            self.events
                .push(self.events.now() + takes, Event::LineFree(port));
        }
    }

    fn line_free(&mut self, port: PortId) -> Outcome {
        let now = self.events.now();
        let at = &mut self.ports[port as usize];
        let Some(id) = at.on_line() else {
            return Outcome::None;
        };
        let packet = self.packets.get_mut(id);
        at.finish(u64::from(packet.wire_bytes));
        let up = at.is_up();
        let verdict = match &mut at.faults {
            _ if !up => Verdict::Lost(Drop::LinkDown),
            Some(faults) => {
                let verdict = faults.judge(now, packet);
                at.statistics.corrupted += u64::from(packet.corrupted);
                verdict
            }
            None => Verdict::Through {
                extra: Time::ZERO,
                copy: None,
            },
        };
        match verdict {
            Verdict::Lost(reason) => {
                at.count(reason, self.packets.get(id));
                self.note(port, id, Some(reason));
                self.packets.release(id);
            }
            Verdict::Through { extra, copy } => {
                if let Some(later) = copy {
                    let twin = self.packets.duplicate(id);
                    self.ports[port as usize].statistics.copies += 1;
                    self.launch(port, twin, extra + later + Time::from_ps(1));
                }
                self.launch(port, id, extra);
            }
        }
        self.start(port);
        match self.ports[port as usize].owner {
            Node::Host(host) => Outcome::Free(host),
            Node::Switch(_) => Outcome::None,
        }
    }

    fn launch(&mut self, port: PortId, id: PacketId, extra: Time) {
        let at = &mut self.ports[port as usize];
        let arrival = self.events.now() + at.config.delay + extra;
        if extra == Time::ZERO {
            at.wire.push_back((arrival, id));
            if at.wire.len() == 1 {
                self.events.push(arrival, Event::Arrive(port));
            }
        } else {
            at.astray += 1;
            self.events.push(arrival, Event::Stray(port, id));
        }
    }

    fn arrive(&mut self, port: PortId, id: PacketId) -> Outcome {
        let at = &mut self.ports[port as usize];
        at.statistics.delivered += 1;
        self.hops += 1;
        self.note(port, id, None);
        let at = &self.ports[port as usize];
        let packet = self.packets.get(id);
        self.trace = fold(self.trace, self.events.now().ps());
        self.trace = fold(self.trace, u64::from(port) << 32 | u64::from(packet.length));
        for word in packet.bytes.chunks_exact(8).take(2) {
            self.trace = fold(
                self.trace,
                u64::from_le_bytes(word.try_into().unwrap_or_default()),
            );
        }
        match at.to {
            Node::Host(host) => Outcome::Deliver(host, id),
            Node::Switch(switch) => {
                match self.route(switch, id) {
                    Some(next) => self.enqueue(next, id),
                    None => {
                        self.unroutable += 1;
                        self.packets.release(id);
                    }
                }
                Outcome::None
            }
        }
    }

    fn note(&self, port: PortId, id: PacketId, dropped: Option<Drop>) {
        if self.verbose {
            let packet = self.packets.get(id);
            let what =
                dropped.map_or_else(|| String::from("->"), |reason| format!("XX {reason:?}"));
            let damaged = if packet.corrupted { " damaged" } else { "" };
            eprintln!(
                "{} port {port} {what} {}->{} via {} plane {} {:?}: {}{damaged}",
                self.now(),
                packet.source,
                packet.destination,
                packet.source_port,
                packet.plane,
                packet.ecn,
                crate::inspect::describe(&packet.bytes)
            );
        }
    }

    fn route(&self, switch: u32, id: PacketId) -> Option<PortId> {
        let packet: &Packet = self.packets.get(id);
        let switch = self.switches.get(switch as usize)?;
        let &(first, count) = switch.routes.get(packet.destination as usize)?;
        let choice = match count {
            0 => return None,
            1 => 0,
            _ => {
                let flow = u64::from(packet.source) << 40
                    | u64::from(packet.destination) << 16
                    | u64::from(packet.source_port);
                ((u128::from(fold(switch.salt, flow)) * u128::from(count)) >> 64) as u32
            }
        };
        switch.choices.get((first + choice) as usize).copied()
    }
}

/// One step of a multiplicative hash; fast, and good in the high bits.
fn fold(hash: u64, word: u64) -> u64 {
    let x = (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ (x >> 32)
}
