//! Making an endpoint, its regions and its connections.

use metaroce_core::memory::RegionIndex;
use metaroce_core::{Instant, RegionIndex as Index};

use super::place::{Parts, init, mr_endpoint, size};
use crate::address::{Peer, mr_address};
use crate::boundary::{guard, read, writable, write};
use crate::config::{mr_connection_config, mr_endpoint_config};
use crate::error::mr_error;
use crate::memory::mr_memory;
use crate::work::{access, mr_region};

/// Bytes of memory that an endpoint of this profile (one of `enum mr_profile`) with so many connections takes; 0 if this build has no
/// such profile.
#[unsafe(no_mangle)]
pub extern "C" fn mr_endpoint_size(profile: u8, connections: u32) -> usize {
    size(profile, connections)
}

/// Makes an endpoint in `memory`, which is `size` bytes, aligned to `MR_ENDPOINT_ALIGNMENT`, and the endpoint's alone until `mr_endpoint_end`.
/// It must stay where it is.
///
/// `acceptor` are the settings of connections that peers ask for (NULL: default), `secret` is 32 random bytes, `callbacks` is where
/// regions without bytes are (NULL: all have bytes). One thread at a time may use the endpoint.
///
/// `endpoint` is set to the endpoint. Errors: `MR_ERROR_NULL`, `MR_ERROR_ALIGNMENT`, `MR_ERROR_SIZE`, `MR_ERROR_PROFILE`,
/// `MR_ERROR_CONFIG_...`, `MR_ERROR_BAD_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_init(
    memory: *mut core::ffi::c_void,
    size: usize,
    profile: u8,
    connections: u32,
    config: *const mr_endpoint_config,
    acceptor: *const mr_connection_config,
    secret: *const u8,
    callbacks: *const mr_memory,
    endpoint: *mut *mut mr_endpoint,
) -> i32 {
    guard(|| {
        writable(endpoint)?;
        // SAFETY: the caller's promise (see the crate's documentation).
        let (config, secret) = unsafe { (read(config)?, read(secret.cast::<[u8; 32]>())?) };
        let default = if acceptor.is_null() {
            metaroce_core::ConnectionConfig::default()
        } else {
            // SAFETY: as above.
            unsafe { read(acceptor) }?.to_core()?
        };
        let callbacks = if callbacks.is_null() {
            mr_memory::NONE
        } else {
            // SAFETY: as above.
            let given = unsafe { read(callbacks) }?;
            if !given.is_usable() {
                return Err(mr_error::MR_ERROR_NULL);
            }
            given
        };
        if connections == 0 || connections > u32::from(u16::MAX) {
            return Err(mr_error::MR_ERROR_CONFIG_CONNECTIONS);
        }
        let parts = Parts {
            connections: connections as usize,
            config: config.to_core(),
            default,
            secret,
            callbacks,
        };
        // SAFETY: as above.
        unsafe { init(memory.cast(), size, profile, &parts) }?;
        // SAFETY: as above.
        unsafe { write(endpoint, memory.cast()) }?;
        Ok(0)
    })
}

/// Not 0: accepts connections from now on; 0: no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_listen(endpoint: *mut mr_endpoint, on: u8) -> i32 {
    with!(endpoint, |core, _bytes| {
        core.listen(on != 0);
        Ok(0)
    })
}

/// Registers `length` bytes that peers know as starting at `base`, with `MR_ACCESS_...` rights.
///
/// `bytes` is where they are, valid for reads and writes until the region is deregistered; NULL: behind the endpoint's callbacks.
///
/// Errors: `MR_ERROR_REGIONS_FULL`, `MR_ERROR_REGION_WRAPS`, `MR_ERROR_NO_CALLBACKS`, `MR_ERROR_BAD_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_register(
    endpoint: *mut mr_endpoint,
    base: u64,
    length: u64,
    rights: u8,
    bytes: *mut core::ffi::c_void,
    region: *mut mr_region,
) -> i32 {
    with!(endpoint, |core, memory| {
        writable(region)?;
        let rights = access(rights)?;
        if bytes.is_null() && !memory.callbacks.is_usable() {
            return Err(mr_error::MR_ERROR_NO_CALLBACKS);
        }
        if !bytes.is_null() && isize::try_from(length).is_err() {
            return Err(mr_error::MR_ERROR_BAD_ARGUMENT);
        }
        let made = core.register(base, length, rights)?;
        memory.set_base(made.index, bytes.cast());
        let known = mr_region {
            key: made.key,
            index: made.index.0,
        };
        // SAFETY: the caller's promise (see the crate's documentation).
        unsafe { write(region, known) }?;
        Ok(0)
    })
}

/// Invalidates a region. Operations that still need it fail. Takes time in proportion to open messages and posted buffers.
///
/// Errors: `MR_ERROR_UNKNOWN_REGION`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_deregister(endpoint: *mut mr_endpoint, region: u16) -> i32 {
    with!(endpoint, |core, memory| {
        let index: Index = RegionIndex(region);
        core.deregister(index)?;
        memory.set_base(index, core::ptr::null_mut());
        Ok(0)
    })
}

/// Asks a peer for a connection: its service address on each of `planes` planes. `config` may be NULL: default settings.
/// `MR_EVENT_CONNECTED` or `MR_EVENT_CLOSED` tells the outcome for the handle that is stored to `connection`.
///
/// Errors: `MR_ERROR_TABLE_FULL`, `MR_ERROR_BAD_ADDRESS`, `MR_ERROR_BAD_CONFIGURATION`, `MR_ERROR_BAD_ARGUMENT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_connect(
    endpoint: *mut mr_endpoint,
    now_ns: u64,
    peer: *const mr_address,
    planes: usize,
    config: *const mr_connection_config,
    connection: *mut u32,
) -> i32 {
    with!(endpoint, |core, _bytes| {
        writable(connection)?;
        // SAFETY: the caller's promise (see the crate's documentation).
        let peer = unsafe { Peer::read(peer, planes) }?;
        let config = if config.is_null() {
            metaroce_core::ConnectionConfig::default()
        } else {
            // SAFETY: as above.
            unsafe { read(config) }?.to_core()?
        };
        let handle = core.connect(Instant::from_nanos(now_ns), peer.as_slice(), config)?;
        // SAFETY: as above.
        unsafe { write(connection, handle.to_bits()) }?;
        Ok(0)
    })
}
