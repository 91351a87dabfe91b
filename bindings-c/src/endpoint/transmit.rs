//! Datagrams out.

use metaroce_core::{Class, HEADER_BUFFER, Instant, Transmit, wire};

use super::place::mr_endpoint;
use crate::address::mr_address;
use crate::boundary::{slice_mut, writable, write};
use crate::error::mr_error;
use crate::work::mr_slice;

/// Room for everything in front of a payload, and for whole datagrams without one.
pub const MR_HEADER_BUFFER: usize = 1408;
const _: () = assert!(MR_HEADER_BUFFER == HEADER_BUFFER);

/// Which traffic class a datagram may travel in (`traffic_class` of `mr_transmit`).
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum mr_traffic_class {
    /// Data, probes and setting up.
    MR_CLASS_DATA = 0,
    /// Acknowledgments and the like, which profit from a higher class.
    MR_CLASS_CONTROL = 1,
}

/// A datagram to be sent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mr_transmit {
    /// Bytes of the whole datagram.
    pub length: usize,
    /// Bytes of it in the header buffer.
    pub header_length: usize,
    /// The payload's first byte, if `has_payload` and its region is not behind callbacks; else NULL. It is `payload.length` bytes.
    pub payload_bytes: *const u8,
    /// The payload that follows the header, if `has_payload`.
    pub payload: mr_slice,
    /// The connection, if `has_connection`.
    pub connection: u32,
    /// Where to.
    pub destination: mr_address,
    /// Index of the UDP source port, 0 to `entropies` - 1.
    pub entropy: u16,
    /// By which plane.
    pub plane: u8,
    /// The two ECN bits for its IP header.
    pub ecn: u8,
    /// One of `enum mr_traffic_class`.
    pub traffic_class: u8,
    /// 1 if it is of a connection.
    pub has_connection: u8,
    /// 1 if there is a payload to be gathered.
    pub has_payload: u8,
    /// 1 if a CRC32C of all the bytes follows them (big-endian, see `mr_crc32c`).
    pub trailer: u8,
}

impl mr_transmit {
    fn of(transmit: &Transmit, payload_bytes: *const u8) -> Self {
        let class = match transmit.class {
            Class::Data => mr_traffic_class::MR_CLASS_DATA,
            Class::Control => mr_traffic_class::MR_CLASS_CONTROL,
        };
        Self {
            length: transmit.length,
            header_length: transmit.header_length,
            payload_bytes,
            payload: transmit.payload.map(mr_slice::of).unwrap_or_default(),
            connection: transmit.connection.map_or(0, |handle| handle.to_bits()),
            destination: mr_address::of(transmit.destination()),
            entropy: transmit.entropy,
            plane: transmit.plane,
            ecn: transmit.ecn as u8,
            traffic_class: class as u8,
            has_connection: transmit.connection.is_some().into(),
            has_payload: transmit.payload.is_some().into(),
            trailer: transmit.trailer.into(),
        }
    }
}

/// The next datagram to send, for those that gather payloads and append the CRC32C themselves: everything in front of the payload is written
/// to `header`, which is `size` bytes, at least `MR_HEADER_BUFFER`; the payload is named.
///
/// Returns 1, or 0 if there is none. Errors: `MR_ERROR_BUFFER_TOO_SMALL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_poll_transmit(
    endpoint: *mut mr_endpoint,
    now_ns: u64,
    header: *mut u8,
    size: usize,
    transmit: *mut mr_transmit,
) -> i32 {
    with!(endpoint, |core, memory| {
        writable(transmit)?;
        writable(header)?;
        // SAFETY: the caller's promise (see the crate's documentation).
        let header = unsafe { slice_mut(header, size) }?;
        let header = header
            .first_chunk_mut::<HEADER_BUFFER>()
            .ok_or(mr_error::MR_ERROR_BUFFER_TOO_SMALL)?;
        let Some(next) = core.poll_transmit(Instant::from_nanos(now_ns), header) else {
            return Ok(0);
        };
        let payload = next.payload.and_then(|slice| {
            let offset = usize::try_from(slice.offset).ok()?;
            Some(memory.base(slice.region)?.wrapping_add(offset).cast_const())
        });
        let next = mr_transmit::of(&next, payload.unwrap_or(core::ptr::null()));
        // SAFETY: the caller's promise (see the crate's documentation).
        unsafe { write(transmit, next) }?;
        Ok(1)
    })
}

/// The next datagram to send, whole, at the start of `buffer`, which is `size` bytes: at least `payload_bytes` of the endpoint's settings + 52,
/// and `MR_HEADER_BUFFER`. It must not lie in a registered region.
///
/// Returns 1, or 0 if there is none. Errors: `MR_ERROR_BUFFER_TOO_SMALL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_endpoint_poll_datagram(
    endpoint: *mut mr_endpoint,
    now_ns: u64,
    buffer: *mut u8,
    size: usize,
    transmit: *mut mr_transmit,
) -> i32 {
    with!(endpoint, |core, memory| {
        writable(transmit)?;
        writable(buffer)?;
        // SAFETY: the caller's promise (see the crate's documentation).
        let buffer = unsafe { slice_mut(buffer, size) }?;
        let most = usize::from(core.config().payload_bytes) + wire::DATA_SIZE + wire::CRC_SIZE;
        if size < most.max(HEADER_BUFFER) {
            return Err(mr_error::MR_ERROR_BUFFER_TOO_SMALL);
        }
        let Some(next) = core.poll_datagram(Instant::from_nanos(now_ns), memory, buffer) else {
            return Ok(0);
        };
        // SAFETY: as above.
        unsafe { write(transmit, mr_transmit::of(&next, core::ptr::null())) }?;
        Ok(1)
    })
}
