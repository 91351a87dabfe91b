//! Ports, switches and wires put together: which packet is where, without knowing what hosts do.

mod conservation;
mod removal;

use crate::engine::EventQueue;
use crate::faults::{Drop, FaultConfig, Faults, Verdict};
use crate::observer::{PacketEvent, Watch};
use crate::packet::{Class, Ecn, HostId, PacketId, Packets};
use crate::port::{FlowControl, Node, Port, PortConfig, PortId, TRIMMED_WIRE_BYTES};
use crate::routing;
use crate::switch::{Switch, SwitchConfig, fold};
use crate::time::Time;

/// What can happen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A port's line is free.
    LineFree(PortId),
    /// The first packet on a port's wire arrives.
    Arrive(PortId),
    /// A packet that does not keep the order arrives.
    Stray(PortId, PacketId),
    /// A host wants to be called.
    Timer(HostId),
    /// A link goes up or down.
    Link(PortId, bool),
    /// The switches know by now that a link went up or down.
    Reroute(PortId, bool),
    /// A port is told to pause, or to go on.
    Pause(PortId, bool),
    /// A port is given back credit for so many bytes.
    Credit(PortId, u32),
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
    /// How long switches need to learn that a link went up or down; never, if not set.
    pub reroute_after: Option<Time>,
    seed: u64,
    trace: u64,
    hops: u64,
    /// What links are routed over has changed since the routes were reckoned.
    routes_stale: bool,
    unroutable: u64,
    overrun: u64,
    /// Print every packet that arrives or is dropped.
    pub verbose: bool,
    /// Who watches.
    pub observer: Watch,
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
            reroute_after: None,
            seed,
            trace: 0,
            hops: 0,
            routes_stale: false,
            unroutable: 0,
            overrun: 0,
            verbose: false,
            observer: Watch::default(),
        }
    }

    /// Adds a host, to be linked plane by plane.
    pub fn add_host(&mut self) -> HostId {
        self.host_ports.push(Vec::new());
        self.host_ports.len() as HostId - 1
    }

    /// Adds a switch.
    pub fn add_switch(&mut self, config: SwitchConfig) -> u32 {
        let index = self.switches.len();
        self.switches
            .push(Switch::new(config, self.seed, index as u64));
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

    /// Lets every switch send to every host over all shortest routes. To be called when all ports are there.
    pub fn set_routes(&mut self) {
        self.routes_stale = false;
        let routes = routing::compute(&self.ports, self.host_ports.len(), self.switches.len());
        for (switch, routes) in self.switches.iter_mut().zip(routes) {
            switch.set_routes(routes);
        }
    }

    /// The ports over which a switch sends to a host.
    #[must_use]
    pub fn choices(&self, switch: u32, host: HostId) -> &[PortId] {
        self.switches[switch as usize].choices(host)
    }

    /// Lets things go wrong on a port's wire.
    pub fn set_faults(&mut self, port: PortId, config: FaultConfig) {
        let faults = Faults::new(config, self.seed, u64::from(port));
        self.ports[port as usize].faults = Some(Box::new(faults));
    }

    /// Lets other things go wrong on a port's wire from now on.
    pub fn change_faults(&mut self, port: PortId, config: FaultConfig) {
        match &mut self.ports[port as usize].faults {
            Some(faults) => faults.change(config),
            None => self.set_faults(port, config),
        }
    }

    /// The rate of a port's line from its next packet on, Mbit/s, at least 1.
    pub fn set_rate(&mut self, port: PortId, mbps: u64) {
        self.ports[port as usize].config.mbps = mbps.max(1);
    }

    /// Takes a link up or down at a time. What is queued and what is on the line then is lost; what is on the
    /// wire arrives.
    pub fn schedule_link(&mut self, at: Time, port: PortId, up: bool) {
        self.events.push(at, Event::Link(port, up));
        if let Some(after) = self.reroute_after {
            self.events.push(at + after, Event::Reroute(port, up));
        }
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

    /// How many switches there are.
    #[must_use]
    pub fn switches(&self) -> usize {
        self.switches.len()
    }

    /// The most bytes that the queues of a switch held together.
    #[must_use]
    pub fn max_used_bytes(&self, switch: u32) -> u64 {
        self.switches[switch as usize].max_used_bytes
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

    /// Packets that came to a switch that knew no way for them.
    #[must_use]
    pub fn unroutable(&self) -> u64 {
        self.unroutable
    }

    /// Packets for which a switch had no room though it had asked for a pause in time: its headroom is too small.
    #[must_use]
    pub fn overrun(&self) -> u64 {
        self.overrun
    }

    /// Events so far.
    #[must_use]
    pub fn events_processed(&self) -> u64 {
        self.events.processed()
    }

    /// Puts a packet into the queue of a port.
    pub(crate) fn enqueue(&mut self, port: PortId, id: PacketId) {
        let now = self.events.now();
        let at = &mut self.ports[port as usize];
        let packet = self.packets.get_mut(id);
        let before = (packet.trimmed, packet.ecn);
        let taken = match at.owner {
            Node::Host(_) => at.enqueue(now, id, packet, u64::MAX, u64::MAX),
            Node::Switch(switch) => {
                let switch = &mut self.switches[switch as usize];
                let limit = switch.limit(u64::from(packet.wire_bytes));
                let trimmed = switch.limit(u64::from(TRIMMED_WIRE_BYTES.min(packet.wire_bytes)));
                let taken = at.enqueue(now, id, packet, limit, trimmed);
                if taken.is_ok() {
                    switch.take(u64::from(packet.wire_bytes));
                }
                taken
            }
        };
        if let Err(reason) = taken {
            self.discard(port, id, reason);
            return;
        }
        if self.observer.is_watched() {
            let packet = self.packets.get(id);
            let trimmed = packet.trimmed && !before.0;
            let marked = packet.ecn == Ecn::Ce && before.1 != Ecn::Ce;
            let happened = [
                trimmed.then_some(PacketEvent::Trimmed),
                marked.then_some(PacketEvent::Marked),
                Some(PacketEvent::Queued),
            ];
            for event in happened.into_iter().flatten() {
                self.observer.packet(now, port, packet, event);
            }
        }
        self.start(port);
    }

    /// Handles an event, and says which host it concerns.
    pub(crate) fn handle(&mut self, event: Event) -> Outcome {
        match event {
            Event::LineFree(port) => {
                self.ports[port as usize].line_event = false;
                self.start(port);
                self.free(port)
            }
            Event::Arrive(port) => {
                let now = self.events.now();
                let at = &mut self.ports[port as usize];
                // A packet that was on the line when the link went down left its event behind.
                if at.wire.front().is_none_or(|&(time, _)| time != now) {
                    return Outcome::None;
                }
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
            Event::Link(port, up) => self.link(port, up),
            Event::Reroute(port, up) => {
                let routed = &mut self.ports[port as usize].routed;
                self.routes_stale |= *routed != up;
                *routed = up;
                Outcome::None
            }
            Event::Pause(port, paused) => {
                let now = self.events.now();
                self.ports[port as usize].set_paused(now, paused);
                self.observer.paused(now, port, Class::Data, paused);
                self.go_on(port)
            }
            Event::Credit(port, bytes) => {
                self.ports[port as usize].gone(bytes);
                self.go_on(port)
            }
        }
    }

    fn link(&mut self, port: PortId, up: bool) -> Outcome {
        let now = self.events.now();
        let at = &mut self.ports[port as usize];
        let owner = at.owner;
        self.observer.link(now, port, up);
        let flying = at.wire.len();
        let lost = at.set_up(now, up);
        // The packet on the line was no longer in the switch.
        let on_line = flying - at.wire.len();
        for (i, id) in lost.into_iter().enumerate() {
            let packet = self.packets.get(id);
            self.ports[port as usize].count(Drop::LinkDown, packet);
            let bytes = u64::from(packet.wire_bytes);
            if i >= on_line {
                if let Node::Switch(switch) = owner {
                    self.switches[switch as usize].give(bytes);
                }
                self.discard(port, id, Drop::LinkDown);
            } else {
                self.lose(port, id, Drop::LinkDown);
            }
        }
        self.free(port)
    }

    /// The host whose line is free.
    fn free(&self, port: PortId) -> Outcome {
        match self.ports[port as usize].owner {
            Node::Host(host) => Outcome::Free(host),
            Node::Switch(_) => Outcome::None,
        }
    }

    /// A port that was held back may go on.
    fn go_on(&mut self, port: PortId) -> Outcome {
        if self.ports[port as usize].line_event {
            return Outcome::None;
        }
        self.start(port);
        self.free(port)
    }

    /// Puts the next packet of a port on its line, if it is free.
    fn start(&mut self, port: PortId) {
        let now = self.events.now();
        let at = &mut self.ports[port as usize];
        let started = at.start(now, &self.packets);
        let until = at.line_until();
        let owner = at.owner;
        // Hosts are asked for more whenever their line is free; queues only if something waits.
        if now < until && !at.line_event && (at.queued() > 0 || matches!(owner, Node::Host(_))) {
            at.line_event = true;
            self.events.push(until, Event::LineFree(port));
        }
        let Some(started) = started else {
            return;
        };
        if let Node::Switch(switch) = owner {
            self.switches[switch as usize].give(u64::from(started.bytes));
            if started.data {
                let from = self.packets.get(started.id).ingress;
                self.leave(from, started.bytes, until);
            }
        }
        let at = &mut self.ports[port as usize];
        let packet = self.packets.get_mut(started.id);
        let up = at.is_up();
        let verdict = match &mut at.faults {
            _ if !up => Verdict::Lost(Drop::LinkDown),
            Some(faults) => {
                let before = packet.corrupted;
                let verdict = faults.judge(until, packet);
                at.statistics.corrupted += u64::from(packet.corrupted && !before);
                verdict
            }
            None => Verdict::Through {
                extra: Time::ZERO,
                copy: None,
            },
        };
        match verdict {
            Verdict::Lost(reason) => {
                at.count(reason, packet);
                self.lose(port, started.id, reason);
            }
            Verdict::Through { extra, copy } => {
                self.observer.packet(now, port, packet, PacketEvent::Sent);
                if let Some(later) = copy {
                    let twin = self.packets.duplicate(started.id);
                    let at = &mut self.ports[port as usize];
                    at.statistics.copies += 1;
                    at.statistics.copied_bytes += u64::from(started.bytes);
                    if started.data {
                        at.copied(started.bytes);
                    }
                    self.launch(port, twin, until, extra + later + Time::from_ps(1));
                }
                self.launch(port, started.id, until, extra);
            }
        }
    }

    /// A data packet that came over `link` has left the queue of the switch; its last bit will at `at`.
    fn leave(&mut self, link: PortId, bytes: u32, at: Time) {
        let from = &mut self.ports[link as usize];
        match from.config.flow {
            FlowControl::None => {}
            FlowControl::Pause { .. } => {
                // At once, as a pause is asked for: one must not overtake the other.
                let heard = self.events.now() + from.config.delay;
                if from.gone(bytes) {
                    self.events.push(heard, Event::Pause(link, false));
                }
            }
            FlowControl::Credit { .. } => {
                let heard = at + from.config.delay;
                self.events.push(heard, Event::Credit(link, bytes));
            }
        }
    }

    /// Ends a packet that a port did not take or could not keep.
    fn discard(&mut self, port: PortId, id: PacketId, reason: Drop) {
        self.note_drop(port, id, reason);
        if let Node::Switch(_) = self.ports[port as usize].owner {
            let packet = self.packets.get(id);
            if packet.class == Class::Data {
                let (link, bytes) = (packet.ingress, packet.wire_bytes);
                self.leave(link, bytes, self.events.now());
            }
        }
        self.packets.release(id);
    }

    /// Ends a packet on the line or the wire. The credit that it used comes back: links watch over that.
    fn lose(&mut self, port: PortId, id: PacketId, reason: Drop) {
        self.note_drop(port, id, reason);
        let packet = self.packets.get(id);
        let at = &self.ports[port as usize];
        if packet.class == Class::Data && matches!(at.config.flow, FlowControl::Credit { .. }) {
            let bytes = packet.wire_bytes;
            let heard = self.events.now() + at.config.delay + at.config.delay;
            self.events.push(heard, Event::Credit(port, bytes));
        }
        self.packets.release(id);
    }

    fn launch(&mut self, port: PortId, id: PacketId, left: Time, extra: Time) {
        let bytes = u64::from(self.packets.get(id).wire_bytes);
        let at = &mut self.ports[port as usize];
        let arrival = left + at.config.delay + extra;
        at.flying_bytes += bytes;
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
        let now = self.events.now();
        let packet = self.packets.get_mut(id);
        let bytes = packet.wire_bytes;
        let at = &mut self.ports[port as usize];
        at.statistics.delivered += 1;
        at.statistics.delivered_bytes += u64::from(bytes);
        at.flying_bytes -= u64::from(bytes);
        self.hops += 1;
        self.trace = fold(self.trace, now.ps());
        self.trace = fold(self.trace, u64::from(port) << 32 | u64::from(packet.length));
        self.trace = fold(self.trace, packet.fingerprint());
        let to = at.to;
        let governed = packet.class == Class::Data && at.config.flow != FlowControl::None;
        if self.verbose {
            self.note(port, id, None);
        }
        let packet = self.packets.get(id);
        self.observer
            .packet(now, port, packet, PacketEvent::Delivered);
        match to {
            Node::Host(host) => {
                if governed {
                    self.arrive_governed(port, id, true);
                }
                Outcome::Deliver(host, id)
            }
            Node::Switch(switch) => {
                self.packets.get_mut(id).ingress = port;
                if governed && !self.arrive_governed(port, id, false) {
                    return Outcome::None;
                }
                if self.routes_stale {
                    self.set_routes();
                }
                let packet = self.packets.get(id);
                match self.switches[switch as usize].route(now, packet, &self.ports) {
                    Some(next) => self.enqueue(next, id),
                    None => {
                        self.unroutable += 1;
                        if governed {
                            self.leave(port, bytes, now);
                        }
                        self.note_drop(port, id, Drop::NoRoute);
                        self.packets.release(id);
                    }
                }
                Outcome::None
            }
        }
    }

    /// Flow control of a data packet that has come over `port`; false if there was no room left for it.
    fn arrive_governed(&mut self, port: PortId, id: PacketId, host: bool) -> bool {
        let now = self.events.now();
        let bytes = self.packets.get(id).wire_bytes;
        let at = &mut self.ports[port as usize];
        if host {
            // A host takes what comes at the rate of its line.
            if matches!(at.config.flow, FlowControl::Credit { .. }) {
                let heard = now + at.config.delay;
                self.events.push(heard, Event::Credit(port, bytes));
            }
            return true;
        }
        let (taken, pause) = at.came(bytes);
        if pause {
            let heard = now + at.config.delay;
            self.events.push(heard, Event::Pause(port, true));
        }
        if !taken {
            self.overrun += 1;
            self.note_drop(port, id, Drop::QueueFull);
            self.packets.release(id);
        }
        taken
    }

    fn note_drop(&mut self, port: PortId, id: PacketId, reason: Drop) {
        self.note(port, id, Some(reason));
        let (now, packet) = (self.events.now(), self.packets.get(id));
        self.observer
            .packet(now, port, packet, PacketEvent::Dropped(reason));
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
}
