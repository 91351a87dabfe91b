//! Socket addresses.

use core::net::{Ipv4Addr, SocketAddr};

use crate::boundary::{guard, slice, write};
use crate::error::mr_error;
use metaroce_core::config::MAX_PLANES;
use metaroce_core::wire::PlaneAddress;

/// Planes of an endpoint, at most.
pub const MR_MAX_PLANES: usize = 8;
const _: () = assert!(MR_MAX_PLANES == MAX_PLANES);

/// An IP address and a UDP port.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct mr_address {
    /// IPv6, or IPv4 mapped into it (::ffff:a.b.c.d), in network order. See `mr_address_ipv4`.
    pub ip: [u8; 16],
    /// The port, in the machine's order; 0 where there is no address.
    pub port: u16,
}

impl mr_address {
    pub(crate) fn of(address: SocketAddr) -> Self {
        let plane = PlaneAddress::new(address, 0);
        Self {
            ip: plane.ip.octets(),
            port: plane.port,
        }
    }

    pub(crate) fn to_socket(self) -> SocketAddr {
        let plane = PlaneAddress {
            ip: self.ip.into(),
            port: self.port,
            max_payload: 0,
        };
        plane.socket()
    }
}

/// Addresses of a peer, one for each plane.
pub(crate) struct Peer {
    list: [SocketAddr; MAX_PLANES],
    count: usize,
}

impl Peer {
    /// # Safety
    /// As [`slice`].
    pub unsafe fn read(addresses: *const mr_address, count: usize) -> Result<Self, mr_error> {
        if count > MAX_PLANES {
            return Err(mr_error::MR_ERROR_BAD_ADDRESS);
        }
        // SAFETY: the caller's promise.
        let given = unsafe { slice(addresses, count) }?;
        let mut list = [SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)); MAX_PLANES];
        for (place, address) in list.iter_mut().zip(given) {
            *place = address.to_socket();
        }
        Ok(Self { list, count })
    }

    pub fn as_slice(&self) -> &[SocketAddr] {
        self.list.get(..self.count).unwrap_or(&[])
    }
}

/// Makes an IPv4 address a.b.c.d with a UDP port.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_address_ipv4(
    address: *mut mr_address,
    a: u8,
    b: u8,
    c: u8,
    d: u8,
    port: u16,
) -> i32 {
    guard(|| {
        let socket = SocketAddr::from((Ipv4Addr::new(a, b, c, d), port));
        // SAFETY: the caller's promise (see the crate's documentation).
        unsafe { write(address, mr_address::of(socket)) }?;
        Ok(0)
    })
}
