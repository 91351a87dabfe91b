//! What a NIC's fault plan has done.

use metaroce_soft::fault::FaultCounts;

use super::{guard_nic, mr_nic, open};
use crate::boundary::write;

/// Datagrams to which faults were injected, in one direction, by what was done to them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mr_fault_counts {
    /// All datagrams that came by.
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

impl mr_fault_counts {
    fn of(from: &FaultCounts) -> Self {
        Self {
            packets: from.packets,
            lost: from.lost,
            lost_in_bursts: from.lost_in_bursts,
            dropped_by_queue: from.dropped_by_queue,
            blackholed: from.blackholed,
            duplicated: from.duplicated,
            corrupted: from.corrupted,
            marked: from.marked,
            reordered: from.reordered,
        }
    }
}

/// What the NIC's fault plan has done to datagrams that were sent (`incoming` 0) or received (not 0). All 0 if it has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_fault_counts(
    nic: *const mr_nic,
    incoming: u8,
    counts: *mut mr_fault_counts,
) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let now = unsafe { open(nic) }?.nic.statistics();
        let now = if incoming == 0 {
            now.faults_outgoing
        } else {
            now.faults_incoming
        };
        // SAFETY: as above.
        unsafe { write(counts, mr_fault_counts::of(&now)) }?;
        Ok(0)
    })
}
