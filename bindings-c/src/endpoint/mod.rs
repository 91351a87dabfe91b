//! The sans-IO core: datagrams, events and time go in and out of an endpoint in memory of the caller's. Nothing is allocated.

#[macro_use]
mod place;
mod setup;
mod transmit;

pub use place::{MR_ENDPOINT_ALIGNMENT, mr_endpoint, mr_profile};
pub use setup::*;
pub use transmit::*;

use metaroce_core::work::ConnectionHandle;
use metaroce_core::{DropReason, Ecn, Instant, ReceiveMeta, ReceiveQueue};

use crate::boundary::{guard, read, slice, writable, write};
use crate::error::mr_error;
use crate::event::mr_event;
use crate::statistics::{
    mr_agreed, mr_connection_statistics, mr_endpoint_statistics, mr_path_statistics,
};
use crate::work::{close_mode, mr_receive, mr_work};

/// Gives a connection a work request on a stream. Nothing has changed if it is refused.
///
/// Errors: `MR_ERROR_UNKNOWN_CONNECTION` to `MR_ERROR_WRONG_QUEUE`, those of regions, `MR_ERROR_BAD_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_post(
    endpoint: *mut mr_endpoint,
    now_ns: u64,
    connection: u32,
    stream: u16,
    work: *const mr_work,
) -> i32 {
    with!(endpoint, |core, _bytes| {
        // SAFETY: the caller's promise (see the crate's documentation).
        let work = unsafe { read(work)?.to_core() }?;
        let connection = ConnectionHandle::from_bits(connection);
        core.post(Instant::from_nanos(now_ns), connection, stream, &work)?;
        Ok(0)
    })
}

/// Posts a buffer to a stream's own queue: its k-th receive-consuming message goes to its k-th buffer.
///
/// Errors: as `mr_endpoint_post`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_post_receive(
    endpoint: *mut mr_endpoint,
    connection: u32,
    stream: u16,
    receive: *const mr_receive,
) -> i32 {
    with!(endpoint, |core, _bytes| {
        // SAFETY: the caller's promise (see the crate's documentation).
        let receive = unsafe { read(receive) }?.to_core();
        let queue = ReceiveQueue::Stream(ConnectionHandle::from_bits(connection), stream);
        core.post_receive(queue, &receive)?;
        Ok(0)
    })
}

/// Posts a buffer to a queue (0 to 7) that is shared by the streams that were attached to it.
///
/// Errors: `MR_ERROR_WRONG_QUEUE`, `MR_ERROR_QUEUE_FULL`, those of regions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_post_shared_receive(
    endpoint: *mut mr_endpoint,
    queue: u8,
    receive: *const mr_receive,
) -> i32 {
    with!(endpoint, |core, _bytes| {
        // SAFETY: the caller's promise (see the crate's documentation).
        let receive = unsafe { read(receive) }?.to_core();
        core.post_receive(ReceiveQueue::Shared(queue), &receive)?;
        Ok(0)
    })
}

/// Lets a stream take its buffers from a shared queue (0 to 7), if it never had one of its own.
///
/// Errors: as `mr_endpoint_post`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_attach_shared_queue(
    endpoint: *mut mr_endpoint,
    connection: u32,
    stream: u16,
    queue: u8,
) -> i32 {
    with!(endpoint, |core, _bytes| {
        core.attach_shared_queue(ConnectionHandle::from_bits(connection), stream, queue)?;
        Ok(0)
    })
}

/// Asks the peer for a share of its capacity ahead of a burst. (A large burst after a pause does so by itself.)
///
/// Errors: `MR_ERROR_UNKNOWN_CONNECTION`, `MR_ERROR_NOT_ESTABLISHED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_announce(endpoint: *mut mr_endpoint, connection: u32) -> i32 {
    with!(endpoint, |core, _bytes| {
        core.announce(ConnectionHandle::from_bits(connection))?;
        Ok(0)
    })
}

/// Ends a connection in one of `enum mr_close_mode`; `code` is told to the peer of an abort. `MR_EVENT_CLOSED` follows when it has ended.
///
/// Errors: `MR_ERROR_UNKNOWN_CONNECTION`, `MR_ERROR_BAD_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_close(
    endpoint: *mut mr_endpoint,
    now_ns: u64,
    connection: u32,
    mode: u8,
    code: u16,
) -> i32 {
    with!(endpoint, |core, _bytes| {
        let mode = close_mode(mode, code)?;
        let connection = ConnectionHandle::from_bits(connection);
        core.close(Instant::from_nanos(now_ns), connection, mode)?;
        Ok(0)
    })
}

/// What is known of a datagram that came in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mr_receive_meta {
    /// Address it came from.
    pub source: crate::address::mr_address,
    /// Plane it came in on.
    pub plane: u8,
    /// The two ECN bits of its IP header: 0 not ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// Not 0: the device has checked the CRC32C already; the trailer, if there is one, is still in the bytes.
    pub checksum_verified: u8,
}

/// Takes a datagram in, trailer included. Its bytes must not lie in a registered region.
///
/// Returns 0, or 1 if it had no effect (it is counted as well): then `drop_reason`, which may be NULL, is the index of the reason
/// (see `mr_drop_reason_name`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_handle_datagram(
    endpoint: *mut mr_endpoint,
    now_ns: u64,
    meta: *const mr_receive_meta,
    datagram: *const u8,
    length: usize,
    drop_reason: *mut u32,
) -> i32 {
    with!(endpoint, |core, bytes| {
        // SAFETY: the caller's promise (see the crate's documentation).
        let (meta, datagram) = unsafe { (read(meta)?, slice(datagram, length)?) };
        if meta.ecn > 3 {
            return Err(mr_error::MR_ERROR_BAD_ARGUMENT);
        }
        let meta = ReceiveMeta {
            source: meta.source.to_socket(),
            plane: meta.plane,
            ecn: Ecn::from_bits(meta.ecn),
            checksum_verified: meta.checksum_verified != 0,
        };
        let taken = core.handle_datagram(Instant::from_nanos(now_ns), &meta, datagram, bytes);
        match taken {
            Ok(()) => Ok(0),
            Err(reason) => {
                if !drop_reason.is_null() {
                    // SAFETY: the caller's promise (see the crate's documentation).
                    unsafe { write(drop_reason, DropReason::index(&reason) as u32) }?;
                }
                Ok(1)
            }
        }
    })
}

/// The earliest time at which `mr_endpoint_handle_timeout` has something to do. Returns 1 and stores it, or 0 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_poll_timeout(
    endpoint: *mut mr_endpoint,
    at_ns: *mut u64,
) -> i32 {
    with!(endpoint, |core, _bytes| {
        writable(at_ns)?;
        match core.poll_timeout() {
            Some(at) => {
                // SAFETY: the caller's promise (see the crate's documentation).
                unsafe { write(at_ns, at.as_nanos()) }?;
                Ok(1)
            }
            None => Ok(0),
        }
    })
}

/// Lets the timers fire whose time has come.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_handle_timeout(
    endpoint: *mut mr_endpoint,
    now_ns: u64,
) -> i32 {
    with!(endpoint, |core, _bytes| {
        core.handle_timeout(Instant::from_nanos(now_ns));
        Ok(0)
    })
}

/// The next thing that happened. Returns 1 and stores it, or 0 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_poll_event(
    endpoint: *mut mr_endpoint,
    event: *mut mr_event,
) -> i32 {
    with!(endpoint, |core, _bytes| {
        writable(event)?;
        match core.poll_event() {
            Some(happened) => {
                // SAFETY: the caller's promise (see the crate's documentation).
                unsafe { write(event, mr_event::of(&happened)) }?;
                Ok(1)
            }
            None => Ok(0),
        }
    })
}

/// Counters of the endpoint.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_get_statistics(
    endpoint: *mut mr_endpoint,
    statistics: *mut mr_endpoint_statistics,
) -> i32 {
    with!(endpoint, |core, _bytes| {
        let now = mr_endpoint_statistics::of(core.endpoint_statistics());
        // SAFETY: the caller's promise (see the crate's documentation).
        unsafe { write(statistics, now) }?;
        Ok(0)
    })
}

/// Counters of a connection, or `MR_ERROR_UNKNOWN_CONNECTION`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_connection_statistics(
    endpoint: *mut mr_endpoint,
    connection: u32,
    statistics: *mut mr_connection_statistics,
) -> i32 {
    with!(endpoint, |core, _bytes| {
        let now = core
            .connection_statistics(ConnectionHandle::from_bits(connection))
            .ok_or(mr_error::MR_ERROR_UNKNOWN_CONNECTION)?;
        // SAFETY: the caller's promise (see the crate's documentation).
        unsafe { write(statistics, mr_connection_statistics::of(&now)) }?;
        Ok(0)
    })
}

/// Counters of a path, by its number. `MR_ERROR_UNKNOWN_CONNECTION` if there is no such connection or path.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_path_statistics(
    endpoint: *mut mr_endpoint,
    connection: u32,
    path: u8,
    statistics: *mut mr_path_statistics,
) -> i32 {
    with!(endpoint, |core, _bytes| {
        let now = core
            .path_statistics(ConnectionHandle::from_bits(connection), path)
            .ok_or(mr_error::MR_ERROR_UNKNOWN_CONNECTION)?;
        // SAFETY: the caller's promise (see the crate's documentation).
        unsafe { write(statistics, mr_path_statistics::of(&now)) }?;
        Ok(0)
    })
}

/// What was agreed on with the peer of a connection. Errors: `MR_ERROR_UNKNOWN_CONNECTION`, also while it is being set up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_agreed(
    endpoint: *mut mr_endpoint,
    connection: u32,
    agreed: *mut mr_agreed,
) -> i32 {
    with!(endpoint, |core, _bytes| {
        let known = core
            .agreed(ConnectionHandle::from_bits(connection))
            .ok_or(mr_error::MR_ERROR_UNKNOWN_CONNECTION)?;
        // SAFETY: the caller's promise (see the crate's documentation).
        unsafe { write(agreed, mr_agreed::of(&known)) }?;
        Ok(0)
    })
}

/// Says which planes' lines take no data now (bit p: plane p), until told otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_set_busy_planes(
    endpoint: *mut mr_endpoint,
    planes: u8,
) -> i32 {
    with!(endpoint, |core, _bytes| {
        core.set_busy_planes(planes);
        Ok(0)
    })
}

/// Ends the endpoint: its memory is the application's again. Peers are not told: close connections before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_end(endpoint: *mut mr_endpoint) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise (see the crate's documentation).
        unsafe { place::Entered::new(endpoint) }?.end();
        Ok(0)
    })
}
