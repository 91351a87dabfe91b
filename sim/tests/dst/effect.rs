//! What a successful operation must have done, and what an ended one gives back.

use metaroce_core::work::CompletionKind;
use metaroce_sim::packet::HostId;

use crate::content;
use crate::judge::Returned;
use crate::plan::{Kind, OpPlan, Range, SOURCE};
use crate::world::SimHost;

pub fn kind_of(op: &OpPlan) -> CompletionKind {
    match op.kind {
        Kind::Write { .. } => CompletionKind::Write,
        Kind::Send { .. } => CompletionKind::Send,
        Kind::Read { .. } => CompletionKind::Read,
        Kind::FetchAdd { .. } => CompletionKind::FetchAdd,
        Kind::CompareSwap { .. } => CompletionKind::CompareSwap,
    }
}

/// Whether a write is in its place, whole, exact and once.
pub fn written(op: &OpPlan, target: Range, host: &SimHost) -> Result<(), String> {
    let length = target.length as usize;
    let counts = host.memory.counts(target.region, target.offset, length);
    if let Some(at) = counts.iter().position(|&count| count != 1) {
        return Err(format!("byte {at} was placed {} times", counts[at]));
    }
    match content::first_wrong(
        op.uid,
        0,
        host.memory.slice(target.region, target.offset, length),
    ) {
        Some(at) => Err(format!("byte {at} is wrong")),
        None => Ok(()),
    }
}

/// Whether a successful operation has had its effect.
pub fn effect(
    op: &OpPlan,
    here: HostId,
    there: HostId,
    hosts: &[SimHost],
    fresh: bool,
) -> Result<(), String> {
    let mine = &hosts[here as usize].memory;
    let arrived = |place: Range| {
        let counts = mine.counts(place.region, place.offset, place.length as usize);
        match counts.iter().position(|&count| count != 1) {
            Some(at) => Err(format!("byte {at} was placed {} times here", counts[at])),
            None => Ok(()),
        }
    };
    match op.kind {
        Kind::Write {
            target,
            cell: false,
            ..
        } => written(op, target, &hosts[there as usize]),
        Kind::Write { target, .. } if fresh => {
            let found = hosts[there as usize].memory.slice(
                target.region,
                target.offset,
                target.length as usize,
            );
            content::first_wrong(op.uid, 0, found)
                .map_or(Ok(()), |at| Err(format!("byte {at} of the cell is wrong")))
        }
        // Checked when it is received.
        Kind::Write { .. } | Kind::Send { .. } => Ok(()),
        Kind::Read {
            into,
            content: (uid, offset),
            ..
        } => {
            arrived(into)?;
            let found = mine.slice(into.region, into.offset, into.length as usize);
            content::first_wrong(uid, offset, found)
                .map_or(Ok(()), |at| Err(format!("byte {at} read is wrong")))
        }
        Kind::FetchAdd { into, old, .. } => {
            arrived(into)?;
            let found = mine.word(into.region, into.offset);
            match old {
                Some(old) if old != found => {
                    Err(format!("the old word is {found:#x}, not {old:#x}"))
                }
                _ => Ok(()),
            }
        }
        Kind::CompareSwap { into, old, .. } => {
            arrived(into)?;
            let found = mine.word(into.region, into.offset);
            if found == old {
                Ok(())
            } else {
                Err(format!("the old word is {found:#x}, not {old:#x}"))
            }
        }
    }
}

/// The operation has ended: its memory is the application's again.
pub fn give_back(op: &OpPlan, here: HostId, hosts: &mut [SimHost], returned: &mut Vec<Returned>) {
    let memory = &mut hosts[here as usize].memory;
    if let Some(source) = op.source {
        memory.store(
            SOURCE,
            source.offset,
            &vec![content::POISON; source.length as usize],
        );
    }
    if let Kind::Read { into, .. } | Kind::FetchAdd { into, .. } | Kind::CompareSwap { into, .. } =
        op.kind
    {
        let counts = memory
            .counts(into.region, into.offset, into.length as usize)
            .to_vec();
        returned.push(Returned {
            host: here,
            place: into,
            counts,
        });
    }
}
