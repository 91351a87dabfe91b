//! What is allowed: a model of the promises, written without looking at how they are kept.
//!
//! - An operation ends once, in the order of its stream; success means that its effect is there, whole and exact.
//! - A wrong operation fails with the status that says what was wrong, has no effect, and takes only its stream with it.
//! - The n-th message that uses a buffer arrives as the n-th receive completion of its stream, when all messages
//!   before it have arrived.
//! - When an operation has ended its memory belongs to the application again: the judge overwrites it.

use std::collections::{BTreeMap, HashSet};

use metaroce_core::work::{CloseReason, Completion, CompletionKind, Status};
use metaroce_sim::endpoint::CloseMode;
use metaroce_sim::packet::HostId;
use metaroce_sim::time::Time;

use crate::effect::{effect, give_back, kind_of};
use crate::operations::DirectionPlan;
use crate::plan::{Bad, INBOX, Kind, OpPlan, Plan, Range, ReceivePlan, SHARED, SOURCE, TARGET};
use crate::world::{Side, SimHost};

/// What is known of the operations of one side on one stream.
#[derive(Clone, Debug, Default)]
pub struct StreamRecord {
    /// How each operation ended. An unsignaled one is known to have succeeded when a later one is reported.
    pub status: Vec<Option<Status>>,
    /// Operations up to here have ended.
    pub ended: usize,
}

/// What is known of the messages that arrive on one stream.
#[derive(Clone, Debug, Default)]
pub struct InboundRecord {
    /// Buffers of the stream's own queue that were used up or given back.
    pub buffers: usize,
    /// Messages that were received.
    pub received: usize,
}

/// A place that belongs to the application again, and how often its bytes had been placed.
#[derive(Clone, Debug)]
pub struct Returned {
    pub host: HostId,
    pub place: Range,
    pub counts: Vec<u8>,
}

pub struct Judge<'a> {
    pub plan: &'a Plan,
    pub violations: Vec<String>,
    pub completions: u64,
    /// Counts of the target region when it was withdrawn, by host.
    pub withdrawn: Vec<Option<Vec<u8>>>,
    pub streams: Vec<[Vec<StreamRecord>; 2]>,
    pub inbound: Vec<[Vec<InboundRecord>; 2]>,
    pub returned: Vec<Returned>,
    /// Old words that adds to a host's common word returned: the word, the addend.
    pub common: Vec<Vec<(u64, u64)>>,
    pub shared: Vec<[BTreeMap<u64, Range>; SHARED]>,
    pub closes: Vec<Vec<CloseMode>>,
    /// Streams that something went wrong on: flushes there have a cause.
    pub failed: HashSet<(usize, usize)>,
    pub lost: HashSet<usize>,
}

impl<'a> Judge<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let record = |direction: &DirectionPlan| -> Vec<StreamRecord> {
            let each = |ops: usize| StreamRecord {
                status: vec![None; ops],
                ..StreamRecord::default()
            };
            direction
                .streams
                .iter()
                .map(|stream| each(stream.ops.len()))
                .collect()
        };
        let hosts = plan.hosts.len();
        Self {
            plan,
            violations: Vec::new(),
            completions: 0,
            withdrawn: vec![None; hosts],
            streams: plan
                .connections
                .iter()
                .map(|c| [0, 1].map(|side: usize| record(&c.directions[side])))
                .collect(),
            inbound: plan
                .connections
                .iter()
                .map(|c| {
                    [0, 1].map(|side: usize| {
                        vec![InboundRecord::default(); c.directions[1 - side].streams.len()]
                    })
                })
                .collect(),
            returned: Vec::new(),
            common: vec![Vec::new(); hosts],
            shared: vec![Default::default(); hosts],
            closes: vec![Vec::new(); plan.connections.len()],
            failed: HashSet::new(),
            lost: HashSet::new(),
        }
    }

    pub fn violation(&mut self, now: Time, text: String) {
        self.violations.push(format!("{now}: {text}"));
    }

    pub fn closing(&mut self, index: usize, mode: CloseMode) {
        self.closes[index].push(mode);
    }

    pub fn is_closing(&self, index: usize) -> bool {
        !self.closes[index].is_empty()
    }

    /// Whether the plan let an application end it without waiting.
    pub fn is_aborted(&self, index: usize) -> bool {
        self.closes[index]
            .iter()
            .any(|mode| matches!(mode, CloseMode::Abort(_)))
    }

    pub fn shared_posted(&mut self, host: HostId, queue: usize, receive: &ReceivePlan) {
        self.shared[host as usize][queue].insert(receive.uid, receive.place);
    }

    pub fn stream_failed(&mut self, index: usize, _side: usize, stream: u16, status: Status) {
        if status != Status::Flushed {
            self.failed.insert((index, usize::from(stream)));
        }
    }

    pub fn ended(&self, index: usize, side: usize) -> Vec<usize> {
        self.streams[index][side]
            .iter()
            .map(|stream| stream.ended)
            .collect()
    }

    /// Whether the last of the first `posted` operations that reports its success has ended.
    pub fn last_signaled_ended(
        &self,
        index: usize,
        side: usize,
        stream: usize,
        posted: usize,
    ) -> bool {
        let ops = &self.plan.connections[index].directions[side].streams[stream].ops;
        let last = ops[..posted].iter().rposition(|op| op.flags.signaled);
        let record = &self.streams[index][side][stream];
        last.is_none_or(|last| record.ended > last)
    }

    /// Whether a connection may be lost for good.
    fn may_lose(&self, index: usize) -> bool {
        self.plan.faults.may_lose || self.plan.faults.clock_jumps || self.is_closing(index)
    }

    pub fn closed(
        &mut self,
        now: Time,
        index: usize,
        side: usize,
        reason: CloseReason,
        sides: &[Side; 2],
    ) {
        let allowed = match reason {
            CloseReason::LocalClose | CloseReason::PeerClose => self.is_closing(index),
            CloseReason::PeerAbort(code) => self.closes[index]
                .iter()
                .any(|mode| matches!(mode, CloseMode::Abort(given) if *given == code)),
            CloseReason::Unreachable => self.may_lose(index),
            CloseReason::Refused(_) => false,
        };
        if !allowed {
            self.violation(
                now,
                format!("connection {index} side {side} closed without a cause: {reason:?}"),
            );
        }
        if matches!(reason, CloseReason::Unreachable) {
            self.lost.insert(index);
        }
        // Every completion was reported before.
        let direction = &self.plan.connections[index].directions[side];
        for (stream, plan) in direction.streams.iter().enumerate() {
            let posted = sides[side].posted[stream];
            for k in self.streams[index][side][stream].ended..posted {
                if plan.ops[k].flags.signaled {
                    self.violation(
                        now,
                        format!("connection {index} side {side} stream {stream}: operation {k} never ended: {:?}", plan.ops[k]),
                    );
                    break;
                }
            }
        }
        for stream in 0..self.inbound[index][side].len() {
            let (posted, ended) = (
                sides[side].receives[stream],
                self.inbound[index][side][stream].buffers,
            );
            if !sides[side].attached[stream] && ended != posted {
                self.violation(
                    now,
                    format!("connection {index} side {side} stream {stream}: {posted} buffers posted, {ended} ended at the close"),
                );
            }
        }
    }

    pub fn completion(
        &mut self,
        now: Time,
        index: usize,
        side: usize,
        completion: &Completion,
        hosts: &mut [SimHost],
        sides: &[Side; 2],
    ) {
        self.completions += 1;
        if usize::from(completion.stream)
            >= self.streams[index][side]
                .len()
                .max(self.inbound[index][side].len())
        {
            self.violation(
                now,
                format!("completion on an unused stream: {completion:?}"),
            );
            return;
        }
        match completion.kind {
            CompletionKind::Receive | CompletionKind::ReceiveWriteImmediate => {
                self.receive(now, index, side, completion, hosts, sides);
            }
            _ => self.operation(now, index, side, completion, hosts, sides),
        }
    }

    fn operation(
        &mut self,
        now: Time,
        index: usize,
        side: usize,
        completion: &Completion,
        hosts: &mut [SimHost],
        sides: &[Side; 2],
    ) {
        let stream = usize::from(completion.stream);
        let plan = self.plan;
        let context = format!("connection {index} side {side} stream {stream}");
        let Some(work) = plan.connections[index].directions[side].streams.get(stream) else {
            self.violation(
                now,
                format!("{context}: completion of nothing: {completion:?}"),
            );
            return;
        };
        let Some(k) = work.ops.iter().position(|op| op.uid == completion.id) else {
            self.violation(
                now,
                format!("{context}: completion of another stream's operation: {completion:?}"),
            );
            return;
        };
        if k >= sides[side].posted[stream] {
            self.violation(
                now,
                format!("{context}: completion of what was not posted: {completion:?}"),
            );
            return;
        }
        let ended = self.streams[index][side][stream].ended;
        if k < ended {
            self.violation(
                now,
                format!("{context}: operation {k} ended twice or out of order: {completion:?}"),
            );
            return;
        }
        for skipped in ended..k {
            let op = &work.ops[skipped];
            if op.flags.signaled {
                self.violation(
                    now,
                    format!("{context}: operation {k} ended before {skipped}"),
                );
            }
            self.ended_well(now, index, side, stream, skipped, op, hosts, false);
        }
        let op = &work.ops[k];
        if !op.flags.signaled && completion.status == Status::Success {
            self.violation(
                now,
                format!("{context}: unsignaled operation {k} was reported"),
            );
        }
        if completion.kind != kind_of(op) {
            self.violation(
                now,
                format!("{context}: operation {k} has another kind: {completion:?}"),
            );
        }
        if completion.status == Status::Success {
            if completion.length != op.length {
                self.violation(
                    now,
                    format!(
                        "{context}: operation {k} of {} bytes: {completion:?}",
                        op.length
                    ),
                );
            }
            // A later write of the cell may have begun: its turn comes when the read before it is done.
            let posted = sides[side].posted[stream];
            let fresh = !work.ops[k + 1..posted]
                .iter()
                .any(|op| matches!(op.kind, Kind::Write { cell: true, .. }));
            self.ended_well(now, index, side, stream, k, op, hosts, fresh);
        } else {
            self.ended_badly(now, index, side, stream, k, op, completion.status, hosts);
        }
        self.streams[index][side][stream].ended = k + 1;
    }

    /// Success: the effect must be there. `fresh`: nothing later can have changed it.
    #[expect(clippy::too_many_arguments, reason = "where, which, and the world")]
    fn ended_well(
        &mut self,
        now: Time,
        index: usize,
        side: usize,
        stream: usize,
        k: usize,
        op: &OpPlan,
        hosts: &mut [SimHost],
        fresh: bool,
    ) {
        self.streams[index][side][stream].status[k] = Some(Status::Success);
        if let Some(bad) = op.bad {
            self.violation(
                now,
                format!("operation {} succeeded in spite of {bad:?}", op.uid),
            );
        }
        let [here, there] = self.ends(index, side);
        if let Err(error) = effect(op, here, there, hosts, fresh) {
            self.violation(now, format!("connection {index} side {side} stream {stream}: operation {k} ended, but {error}: {op:?}"));
        }
        if let Kind::FetchAdd {
            word: u64::MAX,
            into,
            add,
            ..
        } = op.kind
        {
            let old = hosts[here as usize].memory.word(INBOX, into.offset);
            self.common[there as usize].push((old, add));
        }
        give_back(op, here, hosts, &mut self.returned);
    }

    #[expect(clippy::too_many_arguments, reason = "where, which, and the world")]
    fn ended_badly(
        &mut self,
        now: Time,
        index: usize,
        side: usize,
        stream: usize,
        k: usize,
        op: &OpPlan,
        status: Status,
        hosts: &mut [SimHost],
    ) {
        self.streams[index][side][stream].status[k] = Some(status);
        let connection = &self.plan.connections[index];
        let [here, there] = self.ends(index, side);
        let config = if side == 0 {
            &connection.config
        } else {
            &self.plan.hosts[here as usize].default
        };
        let touches_target = matches!(
            op.kind,
            Kind::Write { .. }
                | Kind::Read {
                    from: Range { region: TARGET, .. },
                    ..
                }
        );
        let allowed = match status {
            Status::RemoteInvalidKey => {
                op.bad == Some(Bad::Key)
                    || (touches_target && self.withdrawn[there as usize].is_some())
            }
            // Withdrawn, or not to be read any more, while the answer was on its way.
            Status::RemoteMemoryFault => {
                (touches_target && self.withdrawn[there as usize].is_some())
                    || (matches!(op.kind, Kind::Read { .. })
                        && self.plan.hosts[there as usize].unreadable.is_some())
            }
            Status::LocalAccess => {
                let unreadable = self.plan.hosts[here as usize].unreadable;
                op.source.is_some() && unreadable.is_some_and(|(_, region)| region == SOURCE)
            }
            Status::RemoteOutOfBounds => op.bad == Some(Bad::Bounds),
            Status::RemoteAccessDenied => op.bad == Some(Bad::Denied),
            Status::LengthExceedsBuffer => op.bad == Some(Bad::TooLong),
            Status::ReceiverNotReady => op.consumes_receive() && config.rnr_attempts != 255,
            // Whether there was a cause is seen at the end.
            Status::Flushed => true,
            Status::ConnectionLost => self.may_lose(index),
            _ => false,
        };
        if !allowed {
            self.violation(
                now,
                format!("connection {index} side {side} stream {stream}: operation {k} failed with {status:?}: {op:?}"),
            );
        }
        if !matches!(status, Status::Flushed | Status::ConnectionLost) {
            self.failed.insert((index, stream));
        }
        give_back(op, here, hosts, &mut self.returned);
    }

    /// The hosts of an operation's two ends.
    pub fn ends(&self, index: usize, side: usize) -> [HostId; 2] {
        let hosts = self.plan.connections[index].hosts;
        [hosts[side], hosts[1 - side]]
    }
}
