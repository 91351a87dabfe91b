//! Posting work and buffers as their times come.

use metaroce_core::memory::{LocalSlice, RegionError, RemoteAddress};
use metaroce_core::work::{
    ConnectionHandle, Operation, PostError, ReceiveQueue, ReceiveRequest, Source, WorkFlags,
    WorkRequest,
};
use metaroce_sim::endpoint::Transport;
use metaroce_sim::packet::HostId;
use metaroce_sim::time::Time;

use crate::content;
use crate::plan::{Bad, FORBIDDEN, INBOX, Kind, OpPlan, Range, SHARED, SOURCE, TARGET, WORDS};
use crate::world::World;

impl World<'_> {
    /// Posts whatever of a host's plan is due.
    pub fn pump(&mut self, host: HostId) {
        let now = self.sim.now();
        for index in 0..self.sides.len() {
            for side in 0..2 {
                if self.plan.connections[index].hosts[side] != host {
                    continue;
                }
                let state = &self.sides[index][side];
                if state.established && state.closed.is_none() {
                    self.post_receives(index, side, now);
                    self.post_work(index, side, now);
                }
            }
        }
        self.post_shared(host, now);
        self.sim.kick(host);
    }

    fn post_shared(&mut self, host: HostId, now: Time) {
        for queue in 0..SHARED {
            let plan = &self.plan.hosts[host as usize].shared[queue];
            while let Some(receive) = plan.get(self.shared_posted[host as usize][queue]) {
                if receive.at > now
                    || !self.post_buffer(
                        host,
                        ReceiveQueue::Shared(queue as u8),
                        receive.uid,
                        receive.place,
                    )
                {
                    break;
                }
                self.judge.shared_posted(host, queue, receive);
                self.shared_posted[host as usize][queue] += 1;
            }
        }
    }

    fn post_buffer(&mut self, host: HostId, queue: ReceiveQueue, id: u64, place: Range) -> bool {
        let region = self.regions[host as usize][place.region].index;
        let local = LocalSlice {
            region,
            offset: place.offset,
            length: place.length,
        };
        let now = self.sim.now();
        let host = self.sim.host(host);
        match host
            .endpoint
            .post_receive(queue, &ReceiveRequest { id, local })
        {
            Ok(()) => true,
            Err(
                PostError::QueueFull
                | PostError::StreamFailed
                | PostError::NotEstablished
                | PostError::UnknownConnection,
            ) => false,
            Err(error) => {
                self.judge
                    .violation(now, format!("buffer {id} not taken: {error}"));
                false
            }
        }
    }

    fn post_receives(&mut self, index: usize, side: usize, now: Time) {
        let plan = self.plan;
        let connection = &plan.connections[index];
        let host = connection.hosts[side];
        let Some(handle) = self.sides[index][side].handle else {
            return;
        };
        for (stream, from) in connection.directions[1 - side].streams.iter().enumerate() {
            while let Some(receive) = from.receives.get(self.sides[index][side].receives[stream]) {
                let queue = ReceiveQueue::Stream(handle, stream as u16);
                if receive.at > now || !self.post_buffer(host, queue, receive.uid, receive.place) {
                    break;
                }
                self.sides[index][side].receives[stream] += 1;
            }
        }
    }

    /// Requests that must be refused at once, and leave no trace.
    pub fn misuse(&mut self, index: usize, side: usize) {
        let [here, there] = self.judge.ends(index, side);
        let state = &self.sides[index][side];
        let (Some(handle), true, None) = (state.handle, state.established, state.closed) else {
            return;
        };
        let now = self.sim.now();
        let region = self.regions[here as usize][INBOX].index;
        let end = self.plan.hosts[here as usize].lengths[INBOX];
        let key = self.regions[there as usize][WORDS].key;
        let base = self.plan.hosts[there as usize].bases[WORDS];
        let word = LocalSlice {
            region,
            offset: 8,
            length: 8,
        };
        let outside = LocalSlice {
            region,
            offset: end,
            length: 1,
        };
        let unwritable = LocalSlice {
            region: self.regions[here as usize][SOURCE].index,
            offset: 0,
            length: 1,
        };
        let remote = RemoteAddress { address: base, key };
        let odd = RemoteAddress {
            address: base + 4,
            key,
        };
        let cases = [
            (
                Operation::Write {
                    local: Source::Inline(&[0; 33]),
                    remote,
                    immediate: None,
                },
                PostError::BadLength,
            ),
            (
                Operation::Send {
                    local: Source::Region(outside),
                    immediate: None,
                },
                PostError::Local(RegionError::OutOfBounds),
            ),
            (
                Operation::Read {
                    local: unwritable,
                    remote,
                },
                PostError::Local(RegionError::AccessDenied),
            ),
            (
                Operation::FetchAdd {
                    local: word,
                    remote: odd,
                    add: 1,
                },
                PostError::Unaligned,
            ),
            (
                Operation::FetchAdd {
                    local: LocalSlice { length: 4, ..word },
                    remote,
                    add: 1,
                },
                PostError::BadLength,
            ),
        ];
        let host = self.sim.host(here);
        let at = host.instant(now);
        let mut answers = Vec::new();
        for (operation, expected) in cases {
            let work = WorkRequest {
                id: u64::MAX,
                operation,
                flags: WorkFlags::default(),
            };
            answers.push((expected, host.endpoint.post(at, handle, 0, &work)));
        }
        let work = WorkRequest {
            id: u64::MAX,
            operation: Operation::Send {
                local: Source::Inline(&[]),
                immediate: None,
            },
            flags: WorkFlags::default(),
        };
        answers.push((
            PostError::UnknownStream,
            host.endpoint.post(at, handle, 1_000, &work),
        ));
        let stranger = ConnectionHandle::from_bits(handle.to_bits() ^ 0x4000_0000);
        answers.push((
            PostError::UnknownConnection,
            host.endpoint.post(at, stranger, 0, &work),
        ));
        for (expected, answer) in answers {
            let allowed = match answer {
                Ok(()) => false,
                Err(PostError::QueueFull | PostError::StreamFailed | PostError::NotEstablished) => {
                    true
                }
                Err(error) => error == expected,
            };
            if !allowed {
                self.judge.violation(
                    now,
                    format!("misuse that is {expected:?} was answered {answer:?}"),
                );
            }
        }
    }

    fn post_work(&mut self, index: usize, side: usize, now: Time) {
        let plan = self.plan;
        let connection = &plan.connections[index];
        let Some(handle) = self.sides[index][side].handle else {
            return;
        };
        for (stream, work) in connection.directions[side].streams.iter().enumerate() {
            while let Some(op) = work.ops.get(self.sides[index][side].posted[stream]) {
                if op.at > now || self.sides[index][side].dead[stream] {
                    break;
                }
                match self.post(
                    connection.hosts[side],
                    connection.hosts[1 - side],
                    handle,
                    stream as u16,
                    op,
                ) {
                    Ok(()) => {
                        self.log(|| {
                            format!("connection {index} side {side} stream {stream}: post {op:?}")
                        });
                        self.sides[index][side].posted[stream] += 1;
                    }
                    Err(PostError::QueueFull) => break,
                    Err(
                        PostError::StreamFailed
                        | PostError::NotEstablished
                        | PostError::UnknownConnection,
                    ) => {
                        self.sides[index][side].dead[stream] = true;
                    }
                    Err(error) => {
                        self.judge
                            .violation(now, format!("operation {op:?} not taken: {error}"));
                        self.sides[index][side].dead[stream] = true;
                    }
                }
            }
        }
    }

    fn post(
        &mut self,
        here: HostId,
        there: HostId,
        handle: ConnectionHandle,
        stream: u16,
        op: &OpPlan,
    ) -> Result<(), PostError> {
        let local = |range: Range| LocalSlice {
            region: self.regions[here as usize][range.region].index,
            offset: range.offset,
            length: range.length,
        };
        let inline;
        let source = match op.source {
            Some(range) => Source::Region(local(range)),
            None => {
                inline = content::bytes(
                    op.uid,
                    if op.length <= 32 {
                        op.length as usize
                    } else {
                        0
                    },
                );
                Source::Inline(&inline)
            }
        };
        let peer = &self.plan.hosts[there as usize];
        let remote = |region: usize, offset: u64| {
            let region = if op.bad == Some(Bad::Denied) {
                FORBIDDEN
            } else {
                region
            };
            let offset = match op.bad {
                Some(Bad::Bounds) if region == WORDS => peer.lengths[region].next_multiple_of(8),
                Some(Bad::Bounds) => peer.lengths[region] - u64::from(op.length) + 1 + op.uid % 3,
                Some(Bad::Denied) => 0,
                _ => offset,
            };
            let key = self.regions[there as usize][region].key;
            RemoteAddress {
                address: peer.bases[region].wrapping_add(offset),
                key: if op.bad == Some(Bad::Key) {
                    key ^ 0x0040_0400
                } else {
                    key
                },
            }
        };
        let word = |word: u64| {
            if word == u64::MAX {
                peer.common_word
            } else {
                word
            }
        };
        let operation = match op.kind {
            Kind::Write {
                target, immediate, ..
            } => Operation::Write {
                local: source,
                remote: remote(TARGET, target.offset),
                immediate,
            },
            Kind::Send { immediate } => Operation::Send {
                local: source,
                immediate,
            },
            Kind::Read { from, into, .. } => Operation::Read {
                local: local(into),
                remote: remote(from.region, from.offset),
            },
            Kind::FetchAdd {
                word: at,
                into,
                add,
                ..
            } => Operation::FetchAdd {
                local: local(into),
                remote: remote(WORDS, word(at)),
                add,
            },
            Kind::CompareSwap {
                word: at,
                into,
                compare,
                swap,
                ..
            } => Operation::CompareSwap {
                local: local(into),
                remote: remote(WORDS, word(at)),
                compare,
                swap,
            },
        };
        let now = self.sim.now();
        let work = WorkRequest {
            id: op.uid,
            operation,
            flags: op.flags,
        };
        let host = self.sim.host(here);
        let at = host.instant(now);
        host.endpoint.post(at, handle, stream, &work)
    }
}
