//! The software NIC: the core on UDP sockets.

mod faults;
mod queues;
mod sleep;

pub use faults::*;
pub use queues::*;
pub use sleep::*;

use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metaroce_soft::fault::FaultPlan;
use metaroce_soft::{CompletionQueue, Connection, Error, MemoryRegion, Nic};

use crate::address::{MR_MAX_PLANES, Peer, mr_address};
use crate::boundary::{Answer, detailed, guard, read, slice_mut, text, writable, write};
use crate::config::mr_connection_config;
use crate::error::mr_error;
use crate::event::mr_event;
use crate::statistics::{mr_connection_statistics, mr_endpoint_statistics};
use crate::work::{access, close_mode, mr_receive, mr_region, mr_work};

/// Waits for as long as it takes.
pub const MR_FOREVER: u64 = u64::MAX;

/// A NIC in software, on UDP sockets. Several threads may use it at once, but not while it is freed.
pub struct mr_nic {
    magic: u32,
    nic: Nic,
    state: Mutex<State>,
    /// After a panic: it may be half changed.
    broken: AtomicBool,
}

#[derive(Default)]
struct State {
    regions: HashMap<u16, MemoryRegion>,
    connections: HashMap<u32, Connection>,
    /// Those that the application made.
    queues: Vec<CompletionQueue>,
}

const MAGIC: u32 = 0x4d52_4e49;

/// Settings of a NIC. All zero but the planes is right.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mr_nic_config {
    /// A local address for each plane, and the UDP port on which it receives (0: any free one).
    pub addresses: [mr_address; MR_MAX_PLANES],
    /// What the network is to do to this NIC's datagrams, for tests: a text as of the option `--faults` of the command, such as
    /// "loss=1%,out.delay=50us,seed=7"; NULL: nothing. It is read when the NIC is made.
    pub faults: *const c_char,
    /// Rate of one plane, Mbit/s; 0: that of the slowest plane's interface.
    pub plane_mbps: u32,
    /// Connections at one time; 0: 64.
    pub connections: u32,
    /// Most payload of a packet, 256 to 9000; 0: what the interfaces carry, 4096 at most.
    pub payload_bytes: u16,
    /// UDP source ports per plane; 0: 64.
    pub entropies: u16,
    /// Planes, 1 to `MR_MAX_PLANES`.
    pub planes: u8,
    /// Not 0: peers may connect.
    pub listen: u8,
    /// Not 0: progress is made on a thread of its own; 0: by the application's calls to functions that wait or `mr_nic_progress`.
    pub background: u8,
}

fn failed(error: &Error) -> mr_error {
    use mr_error::*;
    let code = match error {
        Error::Planes { .. } => MR_ERROR_CONFIG_PLANES,
        Error::UnspecifiedAddress { .. } | Error::Bind { .. } | Error::PayloadTooLarge { .. } => {
            MR_ERROR_PLANE
        }
        Error::Config(error) => (*error).into(),
        Error::Connect(error) => (*error).into(),
        Error::Closed(_) => MR_ERROR_CLOSED,
        Error::TimedOut { .. } => MR_ERROR_TIMED_OUT,
        Error::Region(error) => (*error).into(),
        Error::Post(error) => (*error).into(),
        Error::CompletionQueueFull { .. } => MR_ERROR_COMPLETIONS_FULL,
        // Freeing is what shuts a NIC down, and nobody may use it then: else it was a bug that ended its thread.
        Error::ShutDown => MR_ERROR_INTERNAL,
        _ => MR_ERROR_SYSTEM,
    };
    detailed(error, code)
}

/// Runs what a function does with a NIC, which takes no further calls after a panic.
fn guard_nic(nic: *const mr_nic, work: impl FnOnce() -> Answer) -> i32 {
    let code = guard(work);
    if code == mr_error::MR_ERROR_INTERNAL as i32 {
        // SAFETY: work that is done with a NIC has opened it before it can panic; else it is NULL or not one, which is looked at first.
        if let Ok(nic) = unsafe { find(nic) } {
            nic.broken.store(true, Ordering::Relaxed);
        }
    }
    code
}

/// # Safety
/// The pointer is NULL or to a NIC.
unsafe fn open<'a>(nic: *const mr_nic) -> Result<&'a mr_nic, mr_error> {
    // SAFETY: the caller's promise.
    let nic = unsafe { find(nic) }?;
    if nic.broken.load(Ordering::Relaxed) {
        return Err(mr_error::MR_ERROR_INTERNAL);
    }
    Ok(nic)
}

/// The same of one that may be broken.
///
/// # Safety
/// The pointer is NULL or to a NIC.
unsafe fn find<'a>(nic: *const mr_nic) -> Result<&'a mr_nic, mr_error> {
    writable(nic.cast_mut())?;
    // SAFETY: not NULL and aligned; the rest is the caller's promise.
    let nic = unsafe { &*nic };
    if nic.magic == MAGIC {
        Ok(nic)
    } else {
        Err(mr_error::MR_ERROR_NOT_AN_OBJECT)
    }
}

impl mr_nic {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connection(&self, handle: u32) -> Result<Connection, mr_error> {
        let known = self.state().connections.get(&handle).cloned();
        known.ok_or(mr_error::MR_ERROR_UNKNOWN_CONNECTION)
    }

    fn keep(&self, connection: Connection) -> u32 {
        let handle = connection.handle().to_bits();
        self.state().connections.insert(handle, connection);
        handle
    }
}

/// How long to wait; `None`: for ever.
fn timeout(timeout_ns: u64) -> Option<Duration> {
    (timeout_ns != MR_FOREVER).then(|| Duration::from_nanos(timeout_ns))
}

/// As above for what has no "for ever": long enough (100 years).
fn deadline(timeout_ns: u64) -> Duration {
    timeout(timeout_ns).unwrap_or(Duration::from_secs(3_155_760_000))
}

/// Makes a NIC: binds its service ports, starts its thread if it has one. It is to be given back by `mr_nic_free`.
///
/// Errors: `MR_ERROR_CONFIG_...`, `MR_ERROR_PLANE`, `MR_ERROR_FAULTS`, `MR_ERROR_NOT_UTF8`, `MR_ERROR_SYSTEM`; `mr_error_detail` says more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_create(config: *const mr_nic_config, nic: *mut *mut mr_nic) -> i32 {
    guard(|| {
        writable(nic)?;
        // SAFETY: the caller's promise (see the crate's documentation).
        let config = unsafe { read(config) }?;
        let addresses = config
            .addresses
            .get(..usize::from(config.planes))
            .ok_or(mr_error::MR_ERROR_CONFIG_PLANES)?;
        let mut builder = addresses
            .iter()
            .fold(Nic::builder(), |builder, address| {
                builder.plane(address.to_socket())
            })
            .listen(config.listen != 0)
            .background(config.background != 0);
        if !config.faults.is_null() {
            // SAFETY: as above.
            let plan = unsafe { text(config.faults) }?.parse::<FaultPlan>();
            builder =
                builder.faults(plan.map_err(|error| detailed(error, mr_error::MR_ERROR_FAULTS))?);
        }
        if config.plane_mbps != 0 {
            builder = builder.rate_mbps(config.plane_mbps);
        }
        if config.connections != 0 {
            builder = builder.connections(config.connections as usize);
        }
        if config.payload_bytes != 0 {
            builder = builder.payload_bytes(config.payload_bytes);
        }
        if config.entropies != 0 {
            builder = builder.entropies(config.entropies);
        }
        let made = mr_nic {
            magic: MAGIC,
            nic: builder.build().map_err(|error| failed(&error))?,
            state: Mutex::default(),
            broken: AtomicBool::new(false),
        };
        // SAFETY: as above.
        unsafe { write(nic, Box::into_raw(Box::new(made))) }?;
        Ok(0)
    })
}

/// Closes all connections after what is posted is done, aborts those that are not through after `timeout_ns` (0: at once, as after
/// `MR_ERROR_INTERNAL`), and gives the NIC back with its registrations. NULL does nothing. Returns 1 if all connections were through, 0 if
/// some were aborted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_free(nic: *mut mr_nic, timeout_ns: u64) -> i32 {
    guard(|| {
        if nic.is_null() {
            return Ok(1);
        }
        // SAFETY: the caller's promise (see the crate's documentation).
        unsafe { find(nic) }?;
        // SAFETY: `mr_nic_create` made it of a box, and it is given back once.
        let made = *unsafe { Box::from_raw(nic) };
        // A broken one might never be through.
        let broken = made.broken.into_inner();
        let most = if broken { 0 } else { timeout_ns };
        let drained = made.nic.shut_down(deadline(most));
        drop(made.state);
        Ok(drained.into())
    })
}

/// Stores the addresses on which the NIC receives, one for each plane, to `addresses`, which has room for `capacity`. Returns how many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_addresses(
    nic: *const mr_nic,
    addresses: *mut mr_address,
    capacity: usize,
) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let (nic, places) = unsafe { (open(nic)?, slice_mut(addresses, capacity)?) };
        let known = nic.nic.addresses();
        if places.len() < known.len() {
            return Err(mr_error::MR_ERROR_BUFFER_TOO_SMALL);
        }
        for (place, address) in places.iter_mut().zip(known) {
            *place = mr_address::of(*address);
        }
        Ok(known.len() as i32)
    })
}

/// Registers `length` bytes with `MR_ACCESS_...` rights. Peers know them by their address. They must be valid for reads and writes from any
/// thread until `mr_nic_deregister` or `mr_nic_free`; what a peer may write should be read after the completion that tells of it.
///
/// Errors: `MR_ERROR_REGIONS_FULL`, `MR_ERROR_BAD_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_register(
    nic: *const mr_nic,
    bytes: *mut c_void,
    length: usize,
    rights: u8,
    region: *mut mr_region,
) -> i32 {
    guard_nic(nic, || {
        writable(region)?;
        writable(bytes.cast::<u8>())?;
        // SAFETY: the caller's promise (see the crate's documentation).
        let nic = unsafe { open(nic) }?;
        let rights = access(rights)?;
        // SAFETY: the application's promise, as is said above.
        let made = unsafe { nic.nic.register_raw(bytes.cast(), length, rights) };
        let made = made.map_err(|error| failed(&error))?;
        let known = mr_region {
            key: made.key(),
            index: made.region().index.0,
        };
        nic.state().regions.insert(known.index, made);
        // SAFETY: as above.
        unsafe { write(region, known) }?;
        Ok(0)
    })
}

/// Takes a region's rights away: its memory is the application's alone again. Errors: `MR_ERROR_UNKNOWN_REGION`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_deregister(nic: *const mr_nic, region: u16) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let known = unsafe { open(nic) }?.state().regions.remove(&region);
        known.ok_or(mr_error::MR_ERROR_UNKNOWN_REGION)?;
        Ok(0)
    })
}

/// Settings of a connection that suit this NIC's sockets and packets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_connection_config(
    nic: *const mr_nic,
    config: *mut mr_connection_config,
) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let nic = unsafe { open(nic) }?;
        let suits = mr_connection_config::of(&nic.nic.connection_config());
        // SAFETY: as above.
        unsafe { write(config, suits) }?;
        Ok(0)
    })
}

/// Connects to a peer, given its address on each of `planes` planes, and waits until it is done. `config` may be NULL: settings that suit.
///
/// Errors: those of `mr_endpoint_connect`, `MR_ERROR_CLOSED`, `MR_ERROR_TIMED_OUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_connect(
    nic: *const mr_nic,
    peer: *const mr_address,
    planes: usize,
    config: *const mr_connection_config,
    timeout_ns: u64,
    connection: *mut u32,
) -> i32 {
    guard_nic(nic, || {
        writable(connection)?;
        // SAFETY: the caller's promise (see the crate's documentation).
        let (nic, peer) = unsafe { (open(nic)?, Peer::read(peer, planes)?) };
        let config = if config.is_null() {
            nic.nic.connection_config()
        } else {
            // SAFETY: as above.
            unsafe { read(config) }?.to_core()?
        };
        let made = nic
            .nic
            .connect(peer.as_slice(), config, deadline(timeout_ns))
            .map_err(|error| failed(&error))?;
        // SAFETY: as above.
        unsafe { write(connection, nic.keep(made)) }?;
        Ok(0)
    })
}

/// Takes a connection that a peer made, waiting for it. `service`, which may be NULL, is the number that the initiator gave.
///
/// Errors: `MR_ERROR_TIMED_OUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_accept(
    nic: *const mr_nic,
    timeout_ns: u64,
    connection: *mut u32,
    service: *mut u32,
) -> i32 {
    guard_nic(nic, || {
        writable(connection)?;
        // SAFETY: the caller's promise (see the crate's documentation).
        let nic = unsafe { open(nic) }?;
        let taken = nic
            .nic
            .accept(timeout(timeout_ns))
            .map_err(|error| failed(&error))?;
        if !service.is_null() {
            // SAFETY: as above.
            unsafe { write(service, taken.service()) }?;
        }
        // SAFETY: as above.
        unsafe { write(connection, nic.keep(taken)) }?;
        Ok(0)
    })
}

/// Posts an operation on a stream of a connection. Without a background thread it is sent by the next progress.
///
/// Errors: as `mr_endpoint_post`, `MR_ERROR_COMPLETIONS_FULL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_post(
    nic: *const mr_nic,
    connection: u32,
    stream: u16,
    work: *const mr_work,
) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let (nic, work) = unsafe { (open(nic)?, read(work)?.to_core()?) };
        let connection = nic.connection(connection)?;
        connection
            .post(stream, &work)
            .map_err(|error| failed(&error))?;
        Ok(0)
    })
}

/// Posts a buffer for a message to come on a stream of a connection. Errors: as `mr_nic_post`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_post_receive(
    nic: *const mr_nic,
    connection: u32,
    stream: u16,
    receive: *const mr_receive,
) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let (nic, receive) = unsafe { (open(nic)?, read(receive)?.to_core()) };
        let connection = nic.connection(connection)?;
        connection
            .post_receive(stream, &receive)
            .map_err(|error| failed(&error))?;
        Ok(0)
    })
}

/// Posts a buffer to a queue (0 to 7) that streams share. Errors: as `mr_endpoint_post_shared_receive`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_post_shared_receive(
    nic: *const mr_nic,
    queue: u8,
    receive: *const mr_receive,
) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let (nic, receive) = unsafe { (open(nic)?, read(receive)?.to_core()) };
        nic.nic
            .post_shared_receive(queue, &receive)
            .map_err(|error| failed(&error))?;
        Ok(0)
    })
}

/// Lets a stream take its receive buffers from a shared queue, before it receives anything. Errors: as `mr_endpoint_attach_shared_queue`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_attach_shared_queue(
    nic: *const mr_nic,
    connection: u32,
    stream: u16,
    queue: u8,
) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let connection = unsafe { open(nic) }?.connection(connection)?;
        connection
            .attach_shared_queue(stream, queue)
            .map_err(|error| failed(&error))?;
        Ok(0)
    })
}

/// Asks the peer for a share of its capacity ahead of a burst. Errors: as `mr_endpoint_announce`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_announce(nic: *const mr_nic, connection: u32) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let connection = unsafe { open(nic) }?.connection(connection)?;
        connection.announce().map_err(|error| failed(&error))?;
        Ok(0)
    })
}

/// Takes one event other than a completion. Returns 1 and stores it, or 0 if there is none. Events that nobody takes are dropped, oldest first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_poll_event(nic: *const mr_nic, event: *mut mr_event) -> i32 {
    guard_nic(nic, || {
        writable(event)?;
        // SAFETY: the caller's promise (see the crate's documentation).
        let Some(happened) = unsafe { open(nic) }?.nic.poll_event() else {
            return Ok(0);
        };
        // SAFETY: as above.
        unsafe { write(event, mr_event::of(&happened)) }?;
        Ok(1)
    })
}

/// One pass: receives, sends, reports. Returns 1 if there was anything to do, else 0. Never sleeps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_progress(nic: *const mr_nic) -> i32 {
    // SAFETY: the caller's promise (see the crate's documentation).
    guard_nic(nic, || Ok(unsafe { open(nic) }?.nic.progress().into()))
}

/// Starts closing a connection, in one of `enum mr_close_mode`; `code` is told to the peer of an abort.
///
/// Errors: `MR_ERROR_UNKNOWN_CONNECTION` if it is over already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_close(
    nic: *const mr_nic,
    connection: u32,
    mode: u8,
    code: u16,
) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let nic = unsafe { open(nic) }?;
        let mode = close_mode(mode, code)?;
        let connection = nic.connection(connection)?;
        connection.close(mode).map_err(|error| failed(&error))?;
        Ok(0)
    })
}

/// Waits until a connection is over, stores why (one of `enum mr_close_reason`, and its code; each may be NULL), and forgets the connection.
///
/// Errors: `MR_ERROR_TIMED_OUT`, `MR_ERROR_UNKNOWN_CONNECTION`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_wait_closed(
    nic: *const mr_nic,
    connection: u32,
    timeout_ns: u64,
    reason: *mut u8,
    code: *mut u16,
) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let nic = unsafe { open(nic) }?;
        let why = nic
            .connection(connection)?
            .wait_closed(deadline(timeout_ns))
            .map_err(|error| failed(&error))?;
        nic.state().connections.remove(&connection);
        let (why, number) = crate::event::close_reason(why);
        if !reason.is_null() {
            // SAFETY: as above.
            unsafe { write(reason, why) }?;
        }
        if !code.is_null() {
            // SAFETY: as above.
            unsafe { write(code, number) }?;
        }
        Ok(0)
    })
}

/// Counters of the NIC's endpoint.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_statistics(
    nic: *const mr_nic,
    statistics: *mut mr_endpoint_statistics,
) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let now = unsafe { open(nic) }?.nic.statistics();
        // SAFETY: as above.
        unsafe { write(statistics, mr_endpoint_statistics::of(&now.endpoint)) }?;
        Ok(0)
    })
}

/// Counters of a connection; after its end the last. Errors: `MR_ERROR_UNKNOWN_CONNECTION`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_nic_connection_statistics(
    nic: *const mr_nic,
    connection: u32,
    statistics: *mut mr_connection_statistics,
) -> i32 {
    guard_nic(nic, || {
        // SAFETY: the caller's promise (see the crate's documentation).
        let now = unsafe { open(nic) }?
            .connection(connection)?
            .statistics()
            .ok_or(mr_error::MR_ERROR_UNKNOWN_CONNECTION)?;
        // SAFETY: as above.
        unsafe { write(statistics, mr_connection_statistics::of(&now)) }?;
        Ok(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nic_takes_no_calls_but_its_end_after_a_panic_inside_of_it() {
        let mut addresses = [mr_address::default(); MR_MAX_PLANES];
        addresses[0] = mr_address::of(([127, 0, 0, 1], 0).into());
        let config = mr_nic_config {
            addresses,
            faults: core::ptr::null(),
            plane_mbps: 0,
            connections: 1,
            payload_bytes: 0,
            entropies: 1,
            planes: 1,
            listen: 0,
            background: 0,
        };
        let mut nic = core::ptr::null_mut();
        let internal = mr_error::MR_ERROR_INTERNAL as i32;
        // SAFETY: every pointer is to something that outlives the call.
        unsafe {
            assert_eq!(mr_nic_create(&raw const config, &raw mut nic), 0);
            assert_eq!(mr_nic_poll(nic, 0, core::ptr::null_mut(), 0), 0);
            assert_eq!(guard_nic(nic, || panic!("planted")), internal);
            assert_eq!(mr_nic_progress(nic), internal);
            assert_eq!(mr_nic_poll(nic, 0, core::ptr::null_mut(), 0), internal);
            assert_eq!(mr_nic_free(nic, 0), 1);
        }
    }
}
