//! Which PSNs a path has received: the receiver's record alone, as a reference model.

use metaroce_core::Instant;
use metaroce_core::path::receive::{Arrival, ReceivePath};

use crate::boundary::{guard, slice_mut, write};
use crate::codec::mr_ack_block;
use crate::error::mr_error;

const MAGIC: u64 = 0x4d52_5053_4e53_4554;

/// The set of PSNs that a path has received, and what its acknowledgments say. Begin with `mr_psn_set_init`; may be copied.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mr_psn_set {
    /// Not for applications.
    pub opaque: [u64; 14],
}

/// What it holds.
#[repr(C)]
struct Inside {
    magic: u64,
    path: ReceivePath,
}
const _: () = assert!(
    size_of::<Inside>() <= size_of::<mr_psn_set>()
        && align_of::<Inside>() <= align_of::<mr_psn_set>()
);

/// What a PSN meant to the receiver.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum mr_arrival {
    /// Not seen before: it is in the set now.
    MR_ARRIVAL_NEW = 0,
    /// Accepted before.
    MR_ARRIVAL_DUPLICATE = 1,
    /// 256 or more ahead of the oldest that is missing: refused.
    MR_ARRIVAL_BEYOND_WINDOW = 2,
}

/// # Safety
/// The pointer is NULL, misaligned, or to a set, which nobody else uses for as long as `'a`.
unsafe fn open<'a>(set: *mut mr_psn_set) -> Result<&'a mut ReceivePath, mr_error> {
    let inside = set.cast::<Inside>();
    // SAFETY: the caller's promise; of one item, which may be anything so far: only its first number is looked at.
    let magic = unsafe { slice_mut(inside.cast::<u64>(), 1) }?;
    if magic.first() != Some(&MAGIC) {
        return Err(mr_error::MR_ERROR_NOT_AN_OBJECT);
    }
    // SAFETY: `mr_psn_set_init` made one there.
    Ok(unsafe { &mut (*inside).path })
}

/// An empty set: the next PSN expected is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_psn_set_init(set: *mut mr_psn_set) -> i32 {
    guard(|| {
        let inside = Inside {
            magic: MAGIC,
            path: ReceivePath::new(0, 0),
        };
        // SAFETY: the caller's promise (see the crate's documentation); it fits, as is asserted above.
        unsafe { write(set.cast::<Inside>(), inside) }?;
        Ok(0)
    })
}

/// A data packet arrived, transmission number `tsn`, `ce` not 0 if it was marked. Returns one of `enum mr_arrival`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_psn_set_insert(
    set: *mut mr_psn_set,
    now_ns: u64,
    psn: u32,
    tsn: u32,
    ce: u8,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise (see the crate's documentation).
        let path = unsafe { open(set) }?;
        let arrival = match path.classify(psn) {
            Arrival::New => {
                path.accept(psn);
                mr_arrival::MR_ARRIVAL_NEW
            }
            Arrival::Duplicate => {
                path.note_duplicate();
                mr_arrival::MR_ARRIVAL_DUPLICATE
            }
            Arrival::BeyondWindow => return Ok(mr_arrival::MR_ARRIVAL_BEYOND_WINDOW as i32),
        };
        path.note_transmission(Instant::from_nanos(now_ns), tsn, psn, ce != 0);
        Ok(arrival as i32)
    })
}

/// What an acknowledgment of this path says at a time: the next PSN expected, the 256-bit vector, the newest transmission and the counts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_psn_set_block(
    set: *mut mr_psn_set,
    now_ns: u64,
    path: u8,
    hint_mbps: u32,
    block: *mut mr_ack_block,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise (see the crate's documentation).
        let now = unsafe { open(set) }?.block(Instant::from_nanos(now_ns), path, hint_mbps);
        // SAFETY: as above.
        unsafe { write(block, mr_ack_block::of(&now)) }?;
        Ok(0)
    })
}
