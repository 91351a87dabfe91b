//! The end of a run: every byte of every host accounted for.

use metaroce_core::work::Status;
use metaroce_sim::time::Time;

use crate::content;
use crate::effect::written;
use crate::judge::Judge;
use crate::plan::{Kind, REGIONS, Range, TARGET, WORDS};
use crate::world::{Side, SimHost};

impl Judge<'_> {
    /// Judges what is left in memory.
    pub fn finish(&mut self, now: Time, hosts: &[SimHost], sides: &[[Side; 2]]) {
        let mut allowed: Vec<Vec<Vec<u8>>> = hosts
            .iter()
            .map(|host| {
                host.memory
                    .regions
                    .iter()
                    .map(|r| vec![0; r.bytes.len()])
                    .collect()
            })
            .collect();
        for (index, connection) in self.plan.connections.iter().enumerate() {
            for side in 0..2 {
                for stream in 0..connection.directions[side].streams.len() {
                    self.operations(now, index, side, stream, hosts, &sides[index], &mut allowed);
                    self.word(now, index, side, stream, hosts, &sides[index]);
                    self.flushes(now, index, side, stream);
                }
                for (stream, plan) in connection.directions[1 - side].streams.iter().enumerate() {
                    let posted = sides[index][side].receives[stream];
                    for receive in &plan.receives[..posted] {
                        allow(
                            &mut allowed[connection.hosts[side] as usize],
                            receive.place,
                            1,
                        );
                    }
                }
            }
        }
        for (id, host) in hosts.iter().enumerate() {
            for receive in self.plan.hosts[id].shared.iter().flatten() {
                allow(&mut allowed[id], receive.place, 1);
            }
            for text in host.memory.violations.clone() {
                self.violation(now, format!("host {id}: {text}"));
            }
            self.untouched(now, id, host, &allowed[id]);
            self.common_word(now, id, host, sides);
            if let Some(before) = &self.withdrawn[id]
                && *before != host.memory.regions[TARGET].placed
            {
                self.violation(
                    now,
                    format!("host {id}: bytes were placed in a region after it was withdrawn"),
                );
            }
        }
        for returned in std::mem::take(&mut self.returned) {
            let place = returned.place;
            let memory = &hosts[returned.host as usize].memory;
            if memory.counts(place.region, place.offset, place.length as usize) != returned.counts {
                self.violation(
                    now,
                    format!(
                        "host {}: {place:?} was written to after it was given back",
                        returned.host
                    ),
                );
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "where, which, and the world")]
    fn operations(
        &mut self,
        now: Time,
        index: usize,
        side: usize,
        stream: usize,
        hosts: &[SimHost],
        sides: &[Side; 2],
        allowed: &mut [Vec<Vec<u8>>],
    ) {
        let [here, there] = self.ends(index, side);
        let plan = self.plan;
        let ops = &plan.connections[index].directions[side].streams[stream].ops;
        let posted = sides[side].posted[stream];
        for (k, op) in ops[..posted].iter().enumerate() {
            let status = self.streams[index][side][stream].status[k];
            // What was not reported is unsignaled and succeeded, or its connection is still open.
            let over = sides[side].closed.is_some();
            let succeeded = status == Some(Status::Success) || (status.is_none() && over);
            match op.kind {
                Kind::Write { target, cell, .. } => {
                    if op.bad.is_some() {
                        continue;
                    }
                    allow(&mut allowed[there as usize], target, 1);
                    if cell {
                        continue;
                    }
                    let host = &hosts[there as usize];
                    let verdict = if succeeded {
                        written(op, target, host)
                    } else {
                        partly(op.uid, target, host)
                    };
                    if let Err(error) = verdict {
                        self.violation(
                            now,
                            format!("at the end, connection {index} side {side} stream {stream} operation {k} ({status:?}): {error}: {op:?}"),
                        );
                    }
                }
                Kind::Send { .. } => {}
                Kind::Read { into, .. }
                | Kind::FetchAdd { into, .. }
                | Kind::CompareSwap { into, .. } => {
                    allow(&mut allowed[here as usize], into, 1);
                }
            }
        }
    }

    /// The word that only this stream changes: each operation executed once, in order.
    fn word(
        &mut self,
        now: Time,
        index: usize,
        side: usize,
        stream: usize,
        hosts: &[SimHost],
        sides: &[Side; 2],
    ) {
        let [_, there] = self.ends(index, side);
        let plan = self.plan;
        let work = &plan.connections[index].directions[side].streams[stream];
        let posted = &work.ops[..sides[side].posted[stream]];
        let is_atomic = |kind| matches!(kind, Kind::FetchAdd { .. } | Kind::CompareSwap { .. });
        let mut possible = vec![0];
        let mut atomics = 0;
        let over = sides[side].closed.is_some();
        for (k, op) in posted.iter().enumerate() {
            if op.bad.is_some() {
                break;
            }
            if !is_atomic(op.kind) {
                continue;
            }
            let value = work.word_values[atomics];
            atomics += 1;
            let status = self.streams[index][side][stream].status[k];
            if status == Some(Status::Success) || (status.is_none() && over) {
                possible.clear();
            }
            possible.push(value);
        }
        let found = hosts[there as usize].memory.word(WORDS, work.word);
        if !possible.contains(&found) {
            self.violation(
                now,
                format!("connection {index} side {side} stream {stream}: its word is {found:#x}, possible are {possible:x?}"),
            );
        }
    }

    /// The word that all streams add to: the old words form a chain.
    fn common_word(&mut self, now: Time, id: usize, host: &SimHost, sides: &[[Side; 2]]) {
        let mut uncertain = 0;
        for (index, connection) in self.plan.connections.iter().enumerate() {
            for (side, state) in sides[index].iter().enumerate() {
                if connection.hosts[1 - side] as usize != id {
                    continue;
                }
                for (stream, plan) in connection.directions[side].streams.iter().enumerate() {
                    for (k, op) in plan.ops[..state.posted[stream]].iter().enumerate() {
                        if let Kind::FetchAdd {
                            word: u64::MAX,
                            add,
                            ..
                        } = op.kind
                            && op.bad.is_none()
                            && self.streams[index][side][stream].status[k] != Some(Status::Success)
                        {
                            uncertain += add;
                        }
                    }
                }
            }
        }
        let mut chain = self.common[id].clone();
        chain.sort_unstable();
        let last = host.memory.word(WORDS, self.plan.hosts[id].common_word);
        let mut at = 0;
        for (old, add) in chain.into_iter().chain([(last, 0)]) {
            let Some(gap) = old.checked_sub(at) else {
                self.violation(
                    now,
                    format!(
                        "host {id}: an add to the common word was lost or done twice, at {old}"
                    ),
                );
                return;
            };
            if gap > uncertain {
                self.violation(
                    now,
                    format!("host {id}: the common word jumps by {gap} at {old}"),
                );
                return;
            }
            uncertain -= gap;
            at = old + add;
        }
    }

    /// Operations are flushed only when their stream or connection failed or was aborted; a drain lets them end.
    fn flushes(&mut self, now: Time, index: usize, side: usize, stream: usize) {
        let status = self.streams[index][side][stream].status.clone();
        let cause = self.failed.contains(&(index, stream))
            || self.lost.contains(&index)
            || self.is_aborted(index);
        if let Some(k) = status
            .iter()
            .position(|status| *status == Some(Status::Flushed))
            && !cause
        {
            self.violation(
                now,
                format!("connection {index} side {side} stream {stream}: operation {k} flushed without a cause"),
            );
        }
    }

    /// Nothing was placed where nothing may be.
    fn untouched(&mut self, now: Time, id: usize, host: &SimHost, allowed: &[Vec<u8>]) {
        for region in (0..REGIONS).filter(|&region| region != WORDS) {
            let placed = &host.memory.regions[region].placed;
            let wrong = placed
                .iter()
                .zip(&allowed[region])
                .position(|(placed, allowed)| placed > allowed);
            if let Some(at) = wrong {
                self.violation(
                    now,
                    format!(
                        "host {id}: byte {at} of region {region} was placed {} times, allowed {}",
                        placed[at], allowed[region][at]
                    ),
                );
            }
        }
    }
}

fn allow(regions: &mut [Vec<u8>], place: Range, times: u8) {
    let range = place.offset as usize..place.offset as usize + place.length as usize;
    for count in &mut regions[place.region][range] {
        *count = count.saturating_add(times);
    }
}

/// Of an operation that did not succeed: each byte is there once and right, or not at all.
fn partly(uid: u64, target: Range, host: &SimHost) -> Result<(), String> {
    let length = target.length as usize;
    let counts = host.memory.counts(target.region, target.offset, length);
    let bytes = host.memory.slice(target.region, target.offset, length);
    let expected = content::bytes(uid, length);
    for at in 0..length {
        match counts[at] {
            0 => {}
            1 if bytes[at] == expected[at] => {}
            1 => return Err(format!("byte {at} is wrong")),
            n => return Err(format!("byte {at} was placed {n} times")),
        }
    }
    Ok(())
}
