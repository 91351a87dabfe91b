//! Completion queues: taken from by polling, by waiting, or when their descriptor says so.

use std::os::fd::{AsFd, AsRawFd};

use metaroce_soft::{Armed, CompletionQueue};

use super::{failed, guard_nic, mr_nic, open, timeout};
use crate::boundary::{slice_mut, writable, write};
use crate::error::mr_error;
use crate::event::mr_completion;

impl mr_nic {
    /// Queue 0 is the NIC's, the others are those that the application made.
    fn queue(&self, number: u32) -> Result<CompletionQueue, mr_error> {
        let Some(index) = (number as usize).checked_sub(1) else {
            return Ok(self.nic.completions().clone());
        };
        let made = self.state().queues.get(index).cloned();
        made.ok_or(mr_error::MR_ERROR_BAD_ARGUMENT)
    }
}

/// Makes another completion queue, which is there until `mr_nic_free`. Returns its number: 1, 2 and so on. (Queue 0 is there from the start.)
///
/// Errors: `MR_ERROR_SYSTEM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_create_queue(nic: *const mr_nic) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let nic = unsafe { open(nic) }?;
        let mut state = nic.state();
        let made = nic.nic.create_queue();
        state.queues.push(made.map_err(|error| failed(&error))?);
        // Each has a descriptor of its own: there are not so many.
        Ok(state.queues.len() as i32)
    })
}

/// Reports completions of a connection to these queues instead of queue 0 from now on: of operations to `send`, of receives to `receive`.
///
/// Errors: `MR_ERROR_UNKNOWN_CONNECTION`; `MR_ERROR_BAD_ARGUMENT` if there is no such queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_set_queues(
    nic: *const mr_nic,
    connection: u32,
    send: u32,
    receive: u32,
) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let nic = unsafe { open(nic) }?;
        let connection = nic.connection(connection)?;
        connection.set_queues(&nic.queue(send)?, &nic.queue(receive)?);
        Ok(0)
    })
}

/// The same for one stream, whatever its connection's queues are. Errors: as `mr_nic_set_queues`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_set_stream_queues(
    nic: *const mr_nic,
    connection: u32,
    stream: u16,
    send: u32,
    receive: u32,
) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let nic = unsafe { open(nic) }?;
        let connection = nic.connection(connection)?;
        connection.set_stream_queues(stream, &nic.queue(send)?, &nic.queue(receive)?);
        Ok(0)
    })
}

/// Takes up to `capacity` completions that are in a queue, without making progress. Returns how many.
///
/// Errors: `MR_ERROR_BAD_ARGUMENT` if there is no such queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_poll(
    nic: *const mr_nic,
    queue: u32,
    completions: *mut mr_completion,
    capacity: usize,
) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let (nic, places) = unsafe { (open(nic)?, slice_mut(completions, capacity)?) };
        let queue = nic.queue(queue)?;
        let mut count = 0;
        for place in places.iter_mut().take(i32::MAX as usize) {
            let Some(completion) = queue.poll() else {
                break;
            };
            *place = mr_completion::of(&completion);
            count += 1;
        }
        Ok(count)
    })
}

/// Takes one completion from a queue, waiting for it. Without a background thread this makes progress meanwhile.
///
/// Errors: `MR_ERROR_TIMED_OUT`; `MR_ERROR_BAD_ARGUMENT` if there is no such queue; `MR_ERROR_INTERNAL` if the NIC's thread has ended by a bug.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_wait(
    nic: *const mr_nic,
    queue: u32,
    timeout_ns: u64,
    completion: *mut mr_completion,
) -> i32 {
    guard_nic(nic, || {
        writable(completion)?;
        // SAFETY: the caller's promise (see the crate's documentation).
        let nic = unsafe { open(nic) }?;
        let taken = nic.queue(queue)?.wait(timeout(timeout_ns));
        let taken = taken.ok_or(if nic.nic.is_shut_down() {
            mr_error::MR_ERROR_INTERNAL
        } else {
            mr_error::MR_ERROR_TIMED_OUT
        })?;
        // SAFETY: as above.
        unsafe { write(completion, mr_completion::of(&taken)) }?;
        Ok(0)
    })
}

/// The descriptor (0 or more) that becomes readable when a completion comes to a queue after `mr_nic_arm`. It is the NIC's: to be watched
/// only (by poll, epoll and the like), until `mr_nic_free`.
///
/// Errors: `MR_ERROR_BAD_ARGUMENT` if there is no such queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_queue_descriptor(nic: *const mr_nic, queue: u32) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let queue = unsafe { open(nic) }?.queue(queue)?;
        Ok(queue.as_fd().as_raw_fd())
    })
}

/// Makes a queue's descriptor readable at the next completion; with `solicited_only` not 0 at the next receive that the peer asked to wake a
/// waiter for, or failure. It stays readable until `mr_nic_disarm`. Returns 1 if no completion is in the queue, 0 if there are some: they are
/// to be taken before sleeping.
///
/// Errors: `MR_ERROR_BAD_ARGUMENT` if there is no such queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_arm(nic: *const mr_nic, queue: u32, solicited_only: u8) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let queue = unsafe { open(nic) }?.queue(queue)?;
        let armed = if solicited_only == 0 {
            Armed::Any
        } else {
            Armed::Solicited
        };
        Ok(queue.arm(armed).into())
    })
}

/// Makes a queue's descriptor unreadable, until `mr_nic_arm` and a completion.
///
/// Errors: `MR_ERROR_BAD_ARGUMENT` if there is no such queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_disarm(nic: *const mr_nic, queue: u32) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        unsafe { open(nic) }?.queue(queue)?.disarm();
        Ok(0)
    })
}
