//! One pass of the NIC: datagrams in, timers, datagrams out, events.

use crate::clock::Clock;
use crate::completion::CompletionQueue;
use crate::connection::{Link, Phase};
use crate::faulty::{Fate, Faulty};
use crate::memory::RegionMap;
use crate::profile::Core;
use crate::socket::{Inbox, Label, MAX_DATAGRAM, Outbox, Senders, SocketCounts, UdpPort};
use metaroce_core::ReceiveMeta;
use metaroce_core::time::Instant;
use metaroce_core::work::{CompletionKind, ConnectionHandle, Event};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Bytes that a pass sends before it looks for acknowledgments again.
const SEND_BUDGET: usize = 256 << 10;
/// Events kept for an application that does not take them.
const EVENTS_KEPT: usize = 1024;
/// Connections that wait to be accepted before those that are over make room.
const UNACCEPTED_KEPT: usize = 256;

/// Everything that a pass works on. There is one lock around it.
#[derive(Debug)]
pub(crate) struct Driver {
    pub clock: Clock,
    pub core: Core,
    pub memory: RegionMap,
    pub services: Vec<Arc<UdpPort>>,
    pub senders: Vec<Senders>,
    pub inbox: Inbox,
    pub outbox: Outbox,
    pub faulty: Option<Faulty>,
    pub counts: SocketCounts,
    pub links: HashMap<ConnectionHandle, Arc<Link>>,
    pub accepted: VecDeque<Arc<Link>>,
    pub events: VecDeque<Event>,
    pub events_lost: u64,
    /// Passes that reported something.
    pub reports: u64,
    pub completions: CompletionQueue,
}

/// What a pass did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Pass {
    /// Something was received, sent or reported.
    pub busy: bool,
    /// Completions or other events were reported.
    pub reported: bool,
    /// Events other than completions were reported.
    pub changed: bool,
}

impl Driver {
    /// Does everything that can be done now, within a budget.
    pub(crate) fn pass(&mut self) -> Pass {
        let mut busy = self.receive();
        let now = self.clock.now();
        if self.core.poll_timeout().is_some_and(|at| at <= now) {
            self.core.handle_timeout(now);
            busy = true;
        }
        busy |= self.transmit(now);
        let (reported, changed) = self.report();
        self.reports += u64::from(reported);
        Pass {
            busy: busy | reported,
            reported,
            changed,
        }
    }

    /// When there will be something to do if nothing comes in.
    pub(crate) fn next_time(&mut self) -> Option<Instant> {
        let held = self.faulty.as_ref().and_then(Faulty::next_time);
        let times = [self.core.poll_timeout(), held, self.outbox.gives_up_at()];
        times.into_iter().flatten().min()
    }

    fn receive(&mut self) -> bool {
        let Self {
            core,
            memory,
            services,
            inbox,
            faulty,
            counts,
            clock,
            ..
        } = self;
        let mut busy = false;
        for (plane, service) in services.iter().enumerate() {
            // Read once the datagrams are here: a time from before would make round trips look shorter than they are.
            let mut arrived = None;
            let received = inbox.receive(service, counts, |source, ecn, bytes| {
                let now = *arrived.get_or_insert_with(|| clock.now());
                let mut meta = ReceiveMeta {
                    source,
                    plane: plane as u8,
                    ecn,
                    checksum_verified: false,
                };
                if let Some(faulty) = faulty {
                    match faulty.receive(now, &meta, bytes) {
                        Fate::Pass(ecn) => meta.ecn = ecn,
                        Fate::Gone => return,
                    }
                }
                // A datagram that is refused is counted by the core under its reason.
                let _ = core.handle_datagram(now, &meta, bytes, memory);
            });
            busy |= received > 0;
        }
        if let Some(faulty) = faulty {
            let now = clock.now();
            while let Some(held) = faulty.incoming.pop_due(now) {
                let _ = core.handle_datagram(now, &held.meta, &held.bytes, memory);
                busy = true;
            }
        }
        busy
    }

    /// Sends what the core has to send, up to a budget.
    pub(crate) fn transmit(&mut self, now: Instant) -> bool {
        let Self {
            core,
            memory,
            senders,
            outbox,
            faulty,
            counts,
            ..
        } = self;
        if outbox.is_blocked() {
            outbox.flush(now, senders, counts);
        }
        let mut sent = 0;
        if let Some(faulty) = faulty {
            while !outbox.is_blocked() {
                let Some(held) = faulty.outgoing.pop_due(now) else {
                    break;
                };
                outbox.push_copy(now, held.label, &held.bytes, senders, counts);
                sent += held.bytes.len();
            }
        }
        while sent < SEND_BUDGET && !outbox.is_blocked() {
            let space = outbox.space();
            let Some(transmit) = core.poll_datagram(now, memory, space) else {
                break;
            };
            sent += transmit.length;
            let mut label = Label {
                plane: transmit.plane,
                entropy: transmit.entropy,
                destination: transmit.destination(),
                ecn: transmit.ecn,
            };
            if let Some(faulty) = faulty {
                let port = senders.get_mut(usize::from(label.plane)).and_then(|plane| {
                    plane
                        .get(label.entropy, counts)
                        .ok()
                        .map(|port| port.address().port())
                });
                let bytes = outbox.space().get(..transmit.length).unwrap_or_default();
                match faulty.send(now, label, port.unwrap_or(0), bytes) {
                    Fate::Pass(ecn) => label.ecn = ecn,
                    Fate::Gone => continue,
                }
            }
            outbox.push(
                now,
                label,
                transmit.length.min(MAX_DATAGRAM),
                senders,
                counts,
            );
        }
        if !outbox.is_blocked() {
            outbox.flush(now, senders, counts);
        }
        sent > 0
    }

    /// Passes the core's events on. Returns whether there were any, and any but completions.
    fn report(&mut self) -> (bool, bool) {
        let (mut any, mut changed) = (false, false);
        while let Some(event) = self.core.poll_event() {
            any = true;
            match event {
                Event::Completion(completion) => {
                    let receive = matches!(
                        completion.kind,
                        CompletionKind::Receive | CompletionKind::ReceiveWriteImmediate
                    );
                    match self.links.get(&completion.connection) {
                        Some(link) => link.queue(completion.stream, receive).push(completion),
                        None => self.completions.push(completion),
                    }
                    continue;
                }
                Event::Connected {
                    connection,
                    incoming,
                    service,
                } => {
                    let link = self
                        .links
                        .entry(connection)
                        .or_insert_with(|| {
                            Arc::new(Link::new(connection, service, self.completions.clone()))
                        })
                        .clone();
                    link.open();
                    if incoming {
                        self.waits_to_be_accepted(link);
                    }
                }
                Event::Closed { connection, reason } => {
                    if let Some(link) = self.links.remove(&connection) {
                        link.close(reason, self.core.connection_statistics(connection));
                    }
                }
                Event::StreamFailed { .. } | Event::PlaneDown { .. } | Event::PlaneUp { .. } => {}
            }
            changed = true;
            if self.events.len() >= EVENTS_KEPT {
                self.events.pop_front();
                self.events_lost += 1;
            }
            self.events.push_back(event);
        }
        (any, changed)
    }

    /// Of connections that are over before anybody accepted them only so many are kept; those that are not, the core's table bounds.
    fn waits_to_be_accepted(&mut self, link: Arc<Link>) {
        if self.accepted.len() >= UNACCEPTED_KEPT
            && let Some(over) = self
                .accepted
                .iter()
                .position(|link| matches!(link.phase(), Phase::Closed(_)))
        {
            self.accepted.remove(over);
        }
        self.accepted.push_back(link);
    }
}
