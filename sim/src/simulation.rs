//! Hosts on a network, and time that passes.

use std::collections::VecDeque;

use crate::network::{Event, Network, Outcome};
use crate::packet::{HostId, Packet};
use crate::time::Time;

/// What a host is to the network: something that takes packets, gives packets and has a deadline.
pub trait Station {
    /// A packet has arrived.
    fn receive(&mut self, now: Time, packet: &Packet);
    /// Which planes' lines are busy (bit p: plane p), for a host of several planes, before [`Self::transmit`] is called.
    fn set_busy_planes(&mut self, _busy: u8) {}
    /// A line is free: the next packet is written to `packet`, if there is one.
    fn transmit(&mut self, now: Time, packet: &mut Packet) -> bool;
    /// The line is free but flow control holds data back: the next packet of the control class, if there is one. A transport that is
    /// never under flow control need not answer.
    fn transmit_control(&mut self, _now: Time, _packet: &mut Packet) -> bool {
        false
    }
    /// When it wants to be called next.
    fn deadline(&mut self, now: Time) -> Option<Time>;
    /// The deadline has come.
    fn timeout(&mut self, now: Time);
    /// Whether the scenario should look at it.
    fn has_news(&self) -> bool;
}

/// Why a simulation stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// A host has news.
    News(HostId),
    /// An alarm that was set.
    Alarm(u32),
    /// The time limit.
    Limit,
    /// Nothing will ever happen again.
    Idle,
}

/// Packets a host may have waiting on the lines of other planes while one plane's line is free.
const NIC_BACKLOG: u32 = 8;

/// A network with hosts.
#[derive(Clone, Debug)]
pub struct Simulation<S> {
    /// The network.
    pub network: Network,
    /// The hosts, in the order of their numbers.
    pub hosts: Vec<S>,
    armed: Vec<Time>,
    news: VecDeque<HostId>,
}

impl<S: Station> Simulation<S> {
    /// Puts hosts on a network.
    ///
    /// # Panics
    /// If there are not as many as the network has places for.
    #[must_use]
    pub fn new(network: Network, hosts: Vec<S>) -> Self {
        assert_eq!(network.hosts(), hosts.len(), "one station per host");
        Self {
            armed: vec![Time::NEVER; hosts.len()],
            network,
            hosts,
            news: VecDeque::new(),
        }
    }

    /// The present.
    #[must_use]
    pub fn now(&self) -> Time {
        self.network.now()
    }

    /// A host.
    pub fn host(&mut self, host: HostId) -> &mut S {
        &mut self.hosts[host as usize]
    }

    /// Stops the next run at `at` with this token.
    pub fn set_alarm(&mut self, at: Time, token: u32) {
        self.network.events.push(at, Event::Alarm(token));
    }

    /// To be called after a host was given work from outside.
    pub fn kick(&mut self, host: HostId) {
        self.service(host);
    }

    /// Lets time pass until something happens that the scenario should know, at most until `limit`.
    pub fn run(&mut self, limit: Time) -> Stop {
        self.run_events(limit, u64::MAX).unwrap_or(Stop::Limit)
    }

    /// The same, and at most so many events; none: they have happened, and there is nothing that the scenario should know.
    pub fn run_events(&mut self, limit: Time, most: u64) -> Option<Stop> {
        let last = self.network.events.processed().saturating_add(most);
        Some(loop {
            if let Some(host) = self.news.pop_front() {
                if self.hosts[host as usize].has_news() {
                    break Stop::News(host);
                }
                continue;
            }
            if self.network.events.processed() >= last {
                return None;
            }
            let Some((now, event)) = self.network.events.pop_until(limit) else {
                if self.network.events.is_empty() {
                    break Stop::Idle;
                }
                self.network.events.advance_to(limit);
                break Stop::Limit;
            };
            match self.network.handle(event) {
                Outcome::None => {}
                Outcome::Free(host) => self.service(host),
                Outcome::Deliver(host, id) => {
                    self.hosts[host as usize].receive(now, self.network.packets.get(id));
                    self.network.packets.release(id);
                    self.service(host);
                }
                Outcome::Timer(host) => {
                    if self.armed[host as usize] == now {
                        self.armed[host as usize] = Time::NEVER;
                        self.service(host);
                    }
                }
                Outcome::Alarm(token) => break Stop::Alarm(token),
            }
        })
    }

    /// Moves the clock on, if nothing is due before.
    pub fn wait(&mut self, until: Time) {
        self.network.events.advance_to(until);
    }

    /// Sends what a host has to send, calls it if its deadline has come, and sees when to call it next.
    fn service(&mut self, host: HostId) {
        let now = self.now();
        self.pull(host);
        let mut deadline = self.hosts[host as usize].deadline(now);
        if deadline.is_some_and(|at| at <= now) {
            self.hosts[host as usize].timeout(now);
            self.pull(host);
            deadline = self.hosts[host as usize].deadline(now);
        }
        if let Some(at) = deadline {
            self.arm(host, at);
        }
        if self.hosts[host as usize].has_news() && !self.news.contains(&host) {
            self.news.push_back(host);
        }
    }

    fn arm(&mut self, host: HostId, at: Time) {
        let now = self.now();
        let at = if at > now {
            at
        } else if self.has_room(host) {
            // Nothing to send and nothing to do, but it wants to be called at once.
            now + Time::from_ns(1)
        } else {
            return; // called when the line is free
        };
        if at < self.armed[host as usize] {
            self.armed[host as usize] = at;
            self.network.events.push(at, Event::Timer(host));
        }
    }

    /// Whether a host may put a packet on a line: one is free, and none has a long queue.
    fn has_room(&self, host: HostId) -> bool {
        let mut free = false;
        let now = self.now();
        for &port in self.network.host_ports(host) {
            let backlog = self.network.ports[port as usize].backlog(now);
            free |= backlog == 0;
            if backlog > NIC_BACKLOG {
                return false;
            }
        }
        free
    }

    fn busy_planes(&self, host: HostId) -> u8 {
        let now = self.now();
        let ports = self.network.host_ports(host).iter().enumerate();
        ports.fold(0, |busy, (plane, &port)| {
            let backlog = self.network.ports[port as usize].backlog(now);
            busy | u8::from(backlog != 0) << plane
        })
    }

    /// Whether only data waits at a host's ports, and flow control lets none of it go.
    fn is_held_back(&self, host: HostId) -> bool {
        let now = self.now();
        let ports = self.network.host_ports(host);
        ports
            .iter()
            .all(|&port| self.network.ports[port as usize].is_held_back(now))
    }

    fn pull(&mut self, host: HostId) {
        let planes = self.network.host_ports(host).len();
        while self.has_room(host) {
            if planes > 1 {
                let busy = self.busy_planes(host);
                self.hosts[host as usize].set_busy_planes(busy);
            }
            if !self.take(host, S::transmit) {
                break;
            }
        }
        while self.is_held_back(host) && self.take(host, S::transmit_control) {}
    }

    /// Puts the packet that a host gives on its line; false if it gives none.
    fn take(&mut self, host: HostId, give: fn(&mut S, Time, &mut Packet) -> bool) -> bool {
        let now = self.now();
        let id = self.network.packets.allocate();
        let packet = self.network.packets.get_mut(id);
        packet.source = host;
        if !give(&mut self.hosts[host as usize], now, packet) {
            self.network.packets.release(id);
            return false;
        }
        let plane = packet.plane;
        let port = self.network.host_port(host, plane);
        self.network.enqueue(port, id);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::FaultConfig;
    use crate::packet::{Class, Ecn};
    use crate::random::Probability;
    use crate::topology;

    /// Sends numbered packets as fast as it can; answers each with a short one.
    #[derive(Clone, Default)]
    struct Talker {
        peer: HostId,
        to_send: u32,
        to_answer: u32,
        got: Vec<(Time, u32)>,
        marked: u32,
        wake: Option<Time>,
        news: bool,
    }

    impl Station for Talker {
        fn receive(&mut self, now: Time, packet: &Packet) {
            self.got.push((now, packet.wire_bytes));
            self.marked += u32::from(packet.ecn == Ecn::Ce);
            self.to_answer += u32::from(packet.wire_bytes == 4214);
        }
        fn transmit_control(&mut self, now: Time, packet: &mut Packet) -> bool {
            self.to_answer > 0 && self.transmit(now, packet)
        }
        fn transmit(&mut self, _: Time, packet: &mut Packet) -> bool {
            let answer = self.to_answer > 0;
            let left = if answer {
                &mut self.to_answer
            } else {
                &mut self.to_send
            };
            if *left == 0 {
                return false;
            }
            *left -= 1;
            packet.bytes.resize(16, 0);
            packet.wire_bytes = if answer { 134 } else { 4214 };
            packet.class = if answer { Class::Control } else { Class::Data };
            packet.ecn = if answer { Ecn::NotEct } else { Ecn::Ect0 };
            packet.destination = self.peer;
            packet.plane = 0;
            true
        }
        fn deadline(&mut self, _: Time) -> Option<Time> {
            self.wake
        }
        fn timeout(&mut self, _: Time) {
            self.wake = None;
            self.news = true;
        }
        fn has_news(&self) -> bool {
            self.news
        }
    }

    #[test]
    fn the_round_trip_is_exact() {
        let base = topology::BASE_RTT;
        for build in [
            topology::pair(&topology::PairConfig::default(), 1),
            topology::star(&topology::StarConfig::new(1), 1),
        ] {
            let mut sim =
                Simulation::new(build.network, vec![Talker::default(), Talker::default()]);
            sim.host(0).peer = 1;
            sim.host(0).to_send = 1;
            sim.kick(0);
            assert_eq!(sim.run(Time::from_ms(1)), Stop::Idle);
            assert_eq!(sim.host(0).got, [(base, 134)]);
            assert!(sim.network.is_conserved());
        }
    }

    #[test]
    fn a_line_carries_what_it_can_and_no_more() {
        let topology = topology::pair(&topology::PairConfig::default(), 1);
        let mut sim = Simulation::new(topology.network, vec![Talker::default(), Talker::default()]);
        sim.host(0).peer = 1;
        sim.host(0).to_send = 1000;
        sim.kick(0);
        sim.run(Time::from_ms(10));
        let got = &sim.hosts[1].got;
        assert_eq!(got.len(), 1000);
        assert_eq!((got[999].0 - got[0].0).ps(), 999 * 337_120);
        assert_eq!(sim.network.hops(), 2000);
    }

    #[test]
    fn a_paused_host_still_answers() {
        let mut topology = topology::pair(&topology::PairConfig::default(), 1);
        let port = topology.network.host_port(0, 0) as usize;
        topology.network.ports[port].config.flow = crate::port::FlowControl::Pause {
            xoff_bytes: 1,
            xon_bytes: 0,
            headroom_bytes: 1,
        };
        topology.network.ports[port].set_paused(Time::ZERO, true);
        let mut sim = Simulation::new(topology.network, vec![Talker::default(), Talker::default()]);
        for host in 0..2 {
            sim.host(host).peer = 1 - host;
            sim.host(host).to_send = 5;
            sim.kick(host);
        }
        sim.run(Time::from_us(100));
        let sizes: Vec<u32> = sim.host(1).got.iter().map(|&(_, bytes)| bytes).collect();
        assert_eq!(sizes, [134; 5], "answers, and no data");
        assert!(sim.network.is_conserved());
    }

    #[test]
    fn an_incast_queues_marks_and_drops_at_the_switch() {
        let topology = topology::star(&topology::StarConfig::new(8), 1);
        let bottleneck = topology.bottleneck[0];
        let mut sim = Simulation::new(topology.network, vec![Talker::default(); 9]);
        for host in 0..8 {
            sim.host(host).peer = 8;
            sim.host(host).to_send = 100;
            sim.kick(host);
        }
        sim.run(Time::from_ms(10));
        let s = sim.network.ports[bottleneck as usize].statistics;
        assert_eq!(s.offered, 800);
        assert_eq!(s.delivered + s.drops(), 800);
        assert!(s.drops() > 300 && s.marked > 100, "{s:?}");
        assert!(s.max_backlog_bytes <= 892_250 && s.max_backlog_bytes > 887_000);
        assert!(sim.network.is_conserved());
        assert_eq!(
            sim.network.packets.live(),
            0,
            "packets that nobody sends on"
        );
    }

    #[test]
    fn a_run_repeats_and_faults_are_conserved() {
        let run = |seed| {
            let mut topology = topology::pair(&topology::PairConfig::default(), seed);
            let port = topology.network.host_port(0, 0);
            let faults = FaultConfig {
                duplication: Probability::new(0.05),
                reordering: Some(crate::faults::Reordering {
                    probability: Probability::new(0.1),
                    max_delay: Time::from_us(20),
                }),
                ..FaultConfig::loss(Probability::new(0.1))
            };
            topology.network.set_faults(port, faults);
            topology
                .network
                .schedule_link(Time::from_us(100), port, false);
            topology
                .network
                .schedule_link(Time::from_us(150), port, true);
            let mut sim =
                Simulation::new(topology.network, vec![Talker::default(), Talker::default()]);
            sim.host(0).peer = 1;
            sim.host(0).to_send = 1000;
            sim.kick(0);
            for step in 1..100 {
                sim.run(Time::from_us(step * 5));
                assert!(sim.network.is_conserved());
            }
            let s = sim.network.ports[port as usize].statistics;
            assert!(s.drops() > 200 && s.copies >= 5, "{s:?}");
            assert_eq!(
                u64::try_from(sim.hosts[1].got.len()).ok(),
                Some(s.delivered)
            );
            sim.network.trace_hash()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn timers_and_alarms_stop_a_run() {
        let topology = topology::pair(&topology::PairConfig::default(), 1);
        let mut sim = Simulation::new(topology.network, vec![Talker::default(), Talker::default()]);
        sim.host(1).wake = Some(Time::from_us(3));
        sim.kick(1);
        sim.set_alarm(Time::from_us(2), 77);
        assert_eq!(sim.run(Time::from_us(1)), Stop::Limit);
        assert_eq!(sim.now(), Time::from_us(1));
        assert_eq!(sim.run(Time::from_us(9)), Stop::Alarm(77));
        assert_eq!(sim.run(Time::from_us(9)), Stop::News(1));
        assert_eq!(sim.now(), Time::from_us(3));
    }
}
