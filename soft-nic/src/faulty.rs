//! The injector's place between the core and the sockets, with the packets that it holds back.

use crate::fault::{
    DelayQueue, Delivery, Direction, FaultCounts, FaultPlan, Injector, Packet, Verdict,
};
use crate::socket::Label;
use metaroce_core::time::Instant;
use metaroce_core::{Ecn, ReceiveMeta};

/// A datagram that is held back on its way out.
#[derive(Debug)]
pub(crate) struct HeldOut {
    pub label: Label,
    pub bytes: Vec<u8>,
}

/// A datagram that is held back on its way in.
#[derive(Debug)]
pub(crate) struct HeldIn {
    pub meta: ReceiveMeta,
    pub bytes: Vec<u8>,
}

/// What to do with a datagram now.
pub(crate) enum Fate {
    /// Pass it on with this ECN field.
    Pass(Ecn),
    /// Nothing: it is lost, or held back as a copy.
    Gone,
}

#[derive(Debug)]
pub(crate) struct Faulty {
    injector: Injector,
    pub outgoing: DelayQueue<HeldOut>,
    pub incoming: DelayQueue<HeldIn>,
}

impl Faulty {
    /// `None` for a plan without faults.
    pub(crate) fn new(plan: &FaultPlan, start: Instant) -> Option<Self> {
        (!plan.is_empty()).then(|| Self {
            injector: Injector::new(plan, start),
            outgoing: DelayQueue::default(),
            incoming: DelayQueue::default(),
        })
    }

    /// A datagram leaves by source port `port`.
    pub(crate) fn send(&mut self, now: Instant, label: Label, port: u16, bytes: &[u8]) -> Fate {
        if self.injector.is_transparent(Direction::Outgoing) {
            return Fate::Pass(label.ecn);
        }
        let packet = Packet {
            direction: Direction::Outgoing,
            plane: label.plane,
            port,
            ecn: label.ecn,
            bytes,
        };
        match self.injector.judge(now, &packet) {
            Verdict::Drop(_) => Fate::Gone,
            Verdict::Deliver(delivery) if passes(&delivery, now) => Fate::Pass(delivery.ecn),
            Verdict::Deliver(delivery) => {
                let label = Label {
                    ecn: delivery.ecn,
                    ..label
                };
                hold(&mut self.outgoing, &delivery, bytes, |bytes| HeldOut {
                    label,
                    bytes,
                });
                Fate::Gone
            }
        }
    }

    /// A datagram has come from `source`.
    pub(crate) fn receive(&mut self, now: Instant, meta: &ReceiveMeta, bytes: &[u8]) -> Fate {
        if self.injector.is_transparent(Direction::Incoming) {
            return Fate::Pass(meta.ecn);
        }
        let packet = Packet {
            direction: Direction::Incoming,
            plane: meta.plane,
            port: meta.source.port(),
            ecn: meta.ecn,
            bytes,
        };
        match self.injector.judge(now, &packet) {
            Verdict::Drop(_) => Fate::Gone,
            Verdict::Deliver(delivery) if passes(&delivery, now) => Fate::Pass(delivery.ecn),
            Verdict::Deliver(delivery) => {
                let meta = ReceiveMeta {
                    ecn: delivery.ecn,
                    ..*meta
                };
                hold(&mut self.incoming, &delivery, bytes, |bytes| HeldIn {
                    meta,
                    bytes,
                });
                Fate::Gone
            }
        }
    }

    /// When a held datagram is due.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        let times = [self.outgoing.next_time(), self.incoming.next_time()];
        times.into_iter().flatten().min()
    }

    pub(crate) fn counts(&self, direction: Direction) -> FaultCounts {
        self.injector.counts(direction)
    }
}

fn passes(delivery: &Delivery, now: Instant) -> bool {
    delivery.at <= now && delivery.flip.is_none() && delivery.copy_at.is_none()
}

fn hold<T>(
    queue: &mut DelayQueue<T>,
    delivery: &Delivery,
    bytes: &[u8],
    make: impl Fn(Vec<u8>) -> T,
) {
    if let Some(at) = delivery.copy_at {
        queue.push(at, make(bytes.to_vec()));
    }
    let mut bytes = bytes.to_vec();
    if let Some(bit) = delivery.flip
        && let Some(byte) = bytes.get_mut(bit / 8)
    {
        *byte ^= 1 << (bit % 8);
    }
    queue.push(delivery.at, make(bytes));
}
