//! Judging receive completions.

use metaroce_core::work::{Completion, CompletionKind, Status};
use metaroce_sim::time::Time;

use crate::content;
use crate::effect::written;
use crate::judge::{Judge, Returned};
use crate::plan::{Bad, Kind};
use crate::world::{Side, SimHost};

impl Judge<'_> {
    pub fn receive(
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
        let host = plan.connections[index].hosts[side];
        let from = &plan.connections[index].directions[1 - side].streams[stream];
        // Whose buffer is it?
        let place = if sides[side].attached[stream] {
            let queue = usize::from(from.shared.unwrap_or(0));
            self.shared[host as usize][queue].remove(&completion.id)
        } else {
            let next = self.inbound[index][side][stream].buffers;
            self.inbound[index][side][stream].buffers += 1;
            let posted = sides[side].receives[stream];
            from.receives[..posted]
                .get(next)
                .filter(|receive| receive.uid == completion.id)
                .map(|receive| receive.place)
        };
        let Some(place) = place else {
            self.violation(
                now,
                format!("{context}: not the buffer whose turn it is: {completion:?}"),
            );
            return;
        };
        let memory = &hosts[host as usize].memory;
        let counts = memory
            .counts(place.region, place.offset, place.length as usize)
            .to_vec();
        self.returned.push(Returned {
            host,
            place,
            counts: counts.clone(),
        });
        if completion.status != Status::Success {
            match completion.status {
                Status::Flushed | Status::ConnectionLost => {}
                Status::LengthExceedsBuffer
                    if from.ops.iter().any(|op| op.bad == Some(Bad::TooLong)) => {}
                status => self.violation(now, format!("{context}: receive failed with {status:?}")),
            }
            return;
        }
        let nth = self.inbound[index][side][stream].received;
        self.inbound[index][side][stream].received += 1;
        let Some((k, op)) = from
            .ops
            .iter()
            .enumerate()
            .filter(|(_, op)| op.consumes_receive())
            .nth(nth)
        else {
            self.violation(
                now,
                format!("{context}: more messages than were sent: {completion:?}"),
            );
            return;
        };
        if k >= sides[1 - side].posted[stream] {
            self.violation(
                now,
                format!("{context}: message {k} received before it was sent"),
            );
            return;
        }
        let (kind, immediate) = match op.kind {
            Kind::Write { immediate, .. } => (CompletionKind::ReceiveWriteImmediate, immediate),
            Kind::Send { immediate } => (CompletionKind::Receive, immediate),
            _ => (completion.kind, None),
        };
        if (
            completion.kind,
            completion.immediate,
            completion.length,
            completion.solicited,
        ) != (kind, immediate, op.length, op.flags.solicited)
        {
            self.violation(
                now,
                format!("{context}: message {k} is {op:?} but was received as {completion:?}"),
            );
        }
        let used = if kind == CompletionKind::Receive {
            op.length as usize
        } else {
            0
        };
        if used > counts.len() {
            self.violation(
                now,
                format!("{context}: message {k} does not fit its buffer: {completion:?}"),
            );
            return;
        }
        let (filled, rest) = counts.split_at(used);
        if filled.iter().any(|&count| count != 1) || rest.iter().any(|&count| count != 0) {
            self.violation(
                now,
                format!("{context}: message {k}: bytes not placed once, or beyond its end: {op:?}"),
            );
        }
        if let Some(at) =
            content::first_wrong(op.uid, 0, memory.slice(place.region, place.offset, used))
        {
            self.violation(
                now,
                format!("{context}: message {k}: byte {at} is wrong: {op:?}"),
            );
        }
        // All that was written before it is there.
        for (earlier, op) in from.ops[..=k].iter().enumerate() {
            if op.bad.is_some() {
                self.violation(
                    now,
                    format!("{context}: message {k} received though {earlier} is wrong: {op:?}"),
                );
            }
            if let Kind::Write {
                target,
                cell: false,
                ..
            } = op.kind
                && let Err(error) = written(op, target, &hosts[host as usize])
            {
                self.violation(
                    now,
                    format!(
                        "{context}: message {k} received, but of message {earlier} {error}: {op:?}"
                    ),
                );
            }
        }
        let garbage = vec![content::POISON; place.length as usize];
        hosts[host as usize]
            .memory
            .store(place.region, place.offset, &garbage);
    }
}
