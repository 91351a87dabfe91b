//! How a run ends: everything quiet, everything closed, nothing dropped without reason.

use metaroce_core::wire::DecodeError;
use metaroce_sim::endpoint::{DropReason, Transport};
use metaroce_sim::time::Time;

use crate::plan::Mode;
use crate::world::World;

impl World<'_> {
    /// Everything was posted that can be, and everything posted has ended.
    pub fn quiet(&self) -> bool {
        self.plan
            .connections
            .iter()
            .enumerate()
            .all(|(index, connection)| {
                connection
                    .directions
                    .iter()
                    .enumerate()
                    .all(|(side, direction)| {
                        let state = &self.sides[index][side];
                        let over = self.sides[index].iter().any(|side| side.closed.is_some());
                        over || direction.streams.iter().enumerate().all(|(stream, plan)| {
                            (state.posted[stream] == plan.ops.len() || state.dead[stream])
                                && self.judge.last_signaled_ended(
                                    index,
                                    side,
                                    stream,
                                    state.posted[stream],
                                )
                        })
                    })
            })
    }

    pub fn all_closed(&self) -> bool {
        self.finishing
            && self.ghosts.is_empty()
            && self
                .sides
                .iter()
                .flatten()
                .all(|side| side.handle.is_none() || side.closed.is_some())
    }

    pub fn finish(&mut self) {
        self.finishing = true;
        self.log(|| "closing what is left".into());
        for index in 0..self.sides.len() {
            let side = usize::from(self.sides[index][0].closed.is_some());
            self.close(index, side, Mode::Drain);
        }
    }

    /// A side with nothing to do and no keep-alive need not notice that its peer is gone: it is told.
    pub fn close_widowed(&mut self) {
        let patience = Time::from_ns(self.plan.failure_timeout.as_nanos() * 3 / 2);
        for index in 0..self.sides.len() {
            let [one, other] = &self.sides[index];
            let side = match (one.closed, other.closed) {
                (Some(_), None) if self.sim.now() > one.closed_at + patience => 1,
                (None, Some(_)) if self.sim.now() > other.closed_at + patience => 0,
                _ => continue,
            };
            if self.sides[index][side].established && !self.sides[index][side].widowed {
                self.sides[index][side].widowed = true;
                self.close(index, side, Mode::Drain);
            }
        }
    }

    pub fn explain_unfinished(&mut self) {
        let now = self.sim.now();
        for ghost in &self.ghosts {
            let text = format!("connection {ghost:?}, made by a late INIT, is not over");
            self.judge.violation(now, text);
        }
        for index in 0..self.sides.len() {
            for side in 0..2 {
                let state = &self.sides[index][side];
                let (Some(handle), None) = (state.handle, state.closed) else {
                    continue;
                };
                let host = self.plan.connections[index].hosts[side];
                let endpoint = &self.sim.hosts[host as usize].endpoint;
                let mut text = format!(
                    "connection {index} side {side} (host {host}) is open: established {}, posted {:?}, ended {:?}",
                    state.established,
                    state.posted,
                    self.judge.ended(index, side)
                );
                if self.verbose {
                    text += &format!("\n  {:?}", endpoint.connection_statistics(handle));
                    for path in 0..64 {
                        if let Some(statistics) = endpoint.path_statistics(handle, path) {
                            text += &format!("\n  path {path}: {statistics:?}");
                        }
                    }
                }
                self.judge.violation(now, text);
            }
        }
    }

    /// Endpoints that keep the rules give each other no reason for most drops.
    pub fn judge_drops(&mut self, now: Time) {
        let dropped: [u64; DropReason::COUNT] = std::array::from_fn(|i| {
            self.sim
                .hosts
                .iter()
                .map(|host| host.received.dropped[i])
                .sum()
        });
        let never = [
            DropReason::UnknownPath,
            DropReason::BeyondWindow,
            DropReason::BadAcknowledgment,
            DropReason::UnknownStream,
            DropReason::InconsistentMessage,
            DropReason::AddressMismatch,
        ];
        for reason in never {
            let count = dropped[reason.index()];
            if count > 0 {
                self.judge
                    .violation(now, format!("{count} datagrams dropped as {reason:?}"));
            }
        }
        let malformed: u64 = dropped[DropReason::COUNT - DecodeError::REASONS..]
            .iter()
            .sum();
        // Without checksums agreed on, a datagram that overtakes the ACCEPT seems to lack one.
        let checked = self
            .plan
            .hosts
            .iter()
            .all(|host| !host.config.omit_checksum);
        if malformed > 0 && checked && !self.plan.faults.corruption {
            self.judge.violation(
                now,
                format!("{malformed} datagrams malformed though none was damaged"),
            );
        }
        let copies = dropped[DropReason::Duplicate.index()];
        if copies > 0 && self.plan.orderly {
            self.judge.violation(
                now,
                format!("{copies} data packets were sent again that had arrived"),
            );
        }
    }
}
