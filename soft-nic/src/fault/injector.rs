//! The judge: what happens to a packet.

use super::plan::{FaultPlan, Faults, Target, active};
use super::random::Random;
use metaroce_core::Ecn;
use metaroce_core::time::{Duration, Instant};
use metaroce_core::wire::{Header, Kind};
use std::collections::HashMap;

/// Which way a packet goes, seen from the NIC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// From this NIC.
    Outgoing,
    /// To this NIC.
    Incoming,
}

/// What the injector looks at.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Which way it goes.
    pub direction: Direction,
    /// The plane it is on.
    pub plane: u8,
    /// Its UDP source port: its route through a fabric.
    pub port: u16,
    /// Its ECN field.
    pub ecn: Ecn,
    /// The datagram.
    pub bytes: &'a [u8],
}

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropCause {
    /// Random loss.
    Loss,
    /// A burst.
    Burst,
    /// The slow link's queue was full.
    Queue,
    /// A blackhole.
    Blackhole,
}

/// How a packet is passed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// When, not before it was shown.
    pub at: Instant,
    /// Its ECN field from now on.
    pub ecn: Ecn,
    /// The bit to flip, counted from the first byte's lowest.
    pub flip: Option<usize>,
    /// When a second copy is to arrive.
    pub copy_at: Option<Instant>,
}

/// What happens to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is lost.
    Drop(DropCause),
    /// It is passed on.
    Deliver(Delivery),
}

/// What was done so far in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultCounts {
    /// Packets shown.
    pub packets: u64,
    /// Dropped at random.
    pub lost: u64,
    /// Dropped in bursts.
    pub lost_in_bursts: u64,
    /// Dropped by the slow link's queue.
    pub dropped_by_queue: u64,
    /// Dropped by blackholes.
    pub blackholed: u64,
    /// Delivered twice.
    pub duplicated: u64,
    /// With a bit flipped.
    pub corrupted: u64,
    /// CE-marked.
    pub marked: u64,
    /// Held back so that others pass.
    pub reordered: u64,
}

impl FaultCounts {
    /// Packets that never arrived.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.lost + self.lost_in_bursts + self.dropped_by_queue + self.blackholed
    }
}

/// Decides the fate of packets by a plan.
#[derive(Clone, Debug)]
pub struct Injector {
    start: Instant,
    outgoing: Side,
    incoming: Side,
}

impl Injector {
    /// An injector whose time windows count from `start`.
    #[must_use]
    pub fn new(plan: &FaultPlan, start: Instant) -> Self {
        Self {
            start,
            outgoing: Side::new(plan.outgoing.clone(), plan.seed),
            incoming: Side::new(plan.incoming.clone(), plan.seed ^ 0x5bd1_e995_9e37_79b9),
        }
    }

    /// Whether a direction has no faults at all, so that packets need not be shown.
    #[must_use]
    pub fn is_transparent(&self, direction: Direction) -> bool {
        match direction {
            Direction::Outgoing => self.outgoing.transparent,
            Direction::Incoming => self.incoming.transparent,
        }
    }

    /// What happens to a packet that is shown at `now`.
    pub fn judge(&mut self, now: Instant, packet: &Packet<'_>) -> Verdict {
        let start = self.start;
        match packet.direction {
            Direction::Outgoing => self.outgoing.judge(start, now, packet),
            Direction::Incoming => self.incoming.judge(start, now, packet),
        }
    }

    /// What was done so far.
    #[must_use]
    pub fn counts(&self, direction: Direction) -> FaultCounts {
        match direction {
            Direction::Outgoing => self.outgoing.counts,
            Direction::Incoming => self.incoming.counts,
        }
    }
}

/// A route through the fabric: plane and source port.
type Route = (u8, u16);

#[derive(Clone, Debug)]
struct Side {
    faults: Faults,
    transparent: bool,
    random: Random,
    counts: FaultCounts,
    in_burst: HashMap<u8, bool>,
    /// When the slow link of a plane will have sent what waits.
    link_free: HashMap<u8, Instant>,
    /// Latest release per route, so that delays that change do not reorder.
    released: HashMap<Route, Instant>,
    /// The route last used by (connection, path).
    routes: HashMap<(u32, u8), Route>,
    /// What each path blackhole swallows: fixed when it began, or as soon as the path has a route after that.
    swallowed: Vec<Vec<Route>>,
}

impl Side {
    fn new(faults: Faults, seed: u64) -> Self {
        Self {
            transparent: faults.is_empty(),
            swallowed: vec![Vec::new(); faults.blackhole.len()],
            faults,
            random: Random::new(seed),
            counts: FaultCounts::default(),
            in_burst: HashMap::new(),
            link_free: HashMap::new(),
            released: HashMap::new(),
            routes: HashMap::new(),
        }
    }

    fn judge(&mut self, start: Instant, now: Instant, packet: &Packet<'_>) -> Verdict {
        self.counts.packets += 1;
        if self.blackholed(start, now, packet) {
            self.counts.blackholed += 1;
            return Verdict::Drop(DropCause::Blackhole);
        }
        if active(&self.faults.loss, start, now).is_some_and(|share| share.hit(self.random.next()))
        {
            self.counts.lost += 1;
            return Verdict::Drop(DropCause::Loss);
        }
        if self.burst_hits(start, now, packet.plane) {
            self.counts.lost_in_bursts += 1;
            return Verdict::Drop(DropCause::Burst);
        }
        let mut ecn = packet.ecn;
        let Some(mut at) = self.through_link(start, now, packet, &mut ecn) else {
            self.counts.dropped_by_queue += 1;
            return Verdict::Drop(DropCause::Queue);
        };
        if active(&self.faults.ce, start, now).is_some_and(|share| share.hit(self.random.next())) {
            self.mark(&mut ecn);
        }
        at = self.delayed(start, now, at, packet);
        let flip = active(&self.faults.corrupt, start, now)
            .is_some_and(|share| share.hit(self.random.next()) && !packet.bytes.is_empty())
            .then(|| self.random.below(packet.bytes.len() as u64 * 8) as usize);
        self.counts.corrupted += u64::from(flip.is_some());
        let copied = active(&self.faults.duplicate, start, now)
            .is_some_and(|share| share.hit(self.random.next()));
        self.counts.duplicated += u64::from(copied);
        Verdict::Deliver(Delivery {
            at,
            ecn,
            flip,
            copy_at: copied.then_some(at),
        })
    }

    fn mark(&mut self, ecn: &mut Ecn) {
        if matches!(*ecn, Ecn::Ect0 | Ecn::Ect1) {
            *ecn = Ecn::Ce;
            self.counts.marked += 1;
        }
    }

    fn burst_hits(&mut self, start: Instant, now: Instant, plane: u8) -> bool {
        let Some(burst) = active(&self.faults.burst, start, now) else {
            return false;
        };
        let in_burst = self.in_burst.entry(plane).or_default();
        let change = if *in_burst { burst.leave } else { burst.enter };
        if change.hit(self.random.next()) {
            *in_burst = !*in_burst;
        }
        *in_burst && burst.loss.hit(self.random.next())
    }

    /// When the packet has left the slow link; `None` if its queue was full.
    fn through_link(
        &mut self,
        start: Instant,
        now: Instant,
        packet: &Packet<'_>,
        ecn: &mut Ecn,
    ) -> Option<Instant> {
        let Some(queue) = active(&self.faults.queue, start, now) else {
            return Some(now);
        };
        let free = self
            .link_free
            .get(&packet.plane)
            .copied()
            .unwrap_or(now)
            .max(now);
        let waiting =
            u128::from(free.since(now).as_nanos()) * u128::from(queue.rate_bps) / 8_000_000_000;
        let bytes = packet.bytes.len() as u64 + u64::from(queue.overhead);
        if waiting + u128::from(bytes) > u128::from(queue.limit_bytes) {
            return None;
        }
        if waiting > u128::from(queue.mark_bytes) {
            self.mark(ecn);
        }
        let time = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(queue.rate_bps.max(1)));
        let free = free + Duration::from_nanos(u64::try_from(time).unwrap_or(u64::MAX));
        self.link_free.insert(packet.plane, free);
        Some(free)
    }

    fn delayed(
        &mut self,
        start: Instant,
        now: Instant,
        at: Instant,
        packet: &Packet<'_>,
    ) -> Instant {
        let mut at = at;
        if let Some(delay) = active(&self.faults.delay, start, now) {
            at += delay;
        }
        if let Some(jitter) = active(&self.faults.jitter, start, now) {
            at += Duration::from_nanos(self.random.below(jitter.as_nanos().saturating_add(1)));
        }
        if !self.faults.delay.is_empty()
            || !self.faults.jitter.is_empty()
            || !self.faults.queue.is_empty()
        {
            let latest = self
                .released
                .entry((packet.plane, packet.port))
                .or_insert(at);
            at = at.max(*latest);
            *latest = at;
        }
        if let Some((share, pause)) = active(&self.faults.reorder, start, now)
            && share.hit(self.random.next())
        {
            self.counts.reordered += 1;
            at += pause;
        }
        at
    }

    fn blackholed(&mut self, start: Instant, now: Instant, packet: &Packet<'_>) -> bool {
        if self.faults.blackhole.is_empty() {
            return false;
        }
        let age = now.since(start);
        let route = (packet.plane, packet.port);
        if let Some(key) = connection_and_path(packet.bytes) {
            self.routes.insert(key, route);
        }
        let mut hit = false;
        for (blackhole, swallowed) in self.faults.blackhole.iter().zip(&mut self.swallowed) {
            if !blackhole.window.contains(age) {
                continue;
            }
            hit |= match blackhole.fault {
                Target::All => true,
                Target::Plane(plane) => plane == packet.plane,
                Target::Port(port) => port == packet.port,
                Target::Path(path) => {
                    if swallowed.is_empty() {
                        let of_path = self.routes.iter().filter(|(key, _)| key.1 == path);
                        swallowed.extend(of_path.map(|(_, route)| *route));
                    }
                    swallowed.contains(&route)
                }
            };
        }
        hit
    }
}

/// The destination connection and the path that the common header names, of packets that belong to a path.
fn connection_and_path(bytes: &[u8]) -> Option<(u32, u8)> {
    let header = Header::decode(bytes).ok()?;
    matches!(header.kind, Kind::Data | Kind::Ack | Kind::Probe)
        .then_some((header.connection, header.path))
}
