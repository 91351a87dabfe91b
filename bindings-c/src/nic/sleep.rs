//! A NIC without a background thread in an event loop.

use std::os::fd::AsRawFd;

use super::{MR_FOREVER, guard_nic, mr_nic, open};
use crate::boundary::{slice_mut, writable, write};
use crate::error::mr_error;

/// Stores the descriptors on which datagrams come in, one for each plane, to `descriptors`, which has room for `capacity`. Returns how many.
/// They are the NIC's: to be watched only, until `mr_nic_free`, where it has no background thread.
///
/// Errors: `MR_ERROR_BUFFER_TOO_SMALL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_descriptors(
    nic: *const mr_nic,
    descriptors: *mut i32,
    capacity: usize,
) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let (nic, places) = unsafe { (open(nic)?, slice_mut(descriptors, capacity)?) };
        let known = nic.nic.descriptors();
        if places.len() < known.len() {
            return Err(mr_error::MR_ERROR_BUFFER_TOO_SMALL);
        }
        for (place, descriptor) in places.iter_mut().zip(&known) {
            *place = descriptor.as_raw_fd();
        }
        Ok(known.len() as i32)
    })
}

/// Makes progress until there is nothing to do, and stores after how many nanoseconds there is if nothing comes in on `mr_nic_descriptors` and
/// nothing is posted; `MR_FOREVER`: not before. The next call is due then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_prepare_sleep(nic: *const mr_nic, timeout_ns: *mut u64) -> i32 {
    guard_nic(nic, || {
        writable(timeout_ns)?;
        // SAFETY: the caller's promise (see the crate's documentation).
        let most = unsafe { open(nic) }?.nic.prepare_sleep();
        let most = most.and_then(|most| u64::try_from(most.as_nanos()).ok());
        // SAFETY: as above.
        unsafe { write(timeout_ns, most.unwrap_or(MR_FOREVER)) }?;
        Ok(0)
    })
}
