//! What this machine's sockets can do.

use crate::socket::UdpPort;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// What sockets on this machine can do, found out by asking for it on loopback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostCapabilities {
    /// Datagrams in one send (UDP GSO); 1: not to be had.
    pub send_segments: usize,
    /// Whether the kernel joins datagrams for the receiver (UDP GRO).
    pub receive_coalescing: bool,
    /// Bytes of send buffer that a socket gets.
    pub send_buffer: usize,
    /// Bytes of receive buffer that a socket gets.
    pub receive_buffer: usize,
    /// Whether a datagram's ECN field arrives as it was sent, over IPv4.
    pub ecn_ipv4: bool,
    /// The same over IPv6; `None` where there is no IPv6.
    pub ecn_ipv6: Option<bool>,
    /// Descriptors that this process may open: each source port takes one.
    pub descriptors: Option<u64>,
}

/// Asks the system.
///
/// # Errors
/// Those of opening a socket on IPv4 loopback.
pub fn host_capabilities() -> std::io::Result<HostCapabilities> {
    let port = UdpPort::bind(
        SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        64 << 20,
        64 << 20,
    )?;
    Ok(HostCapabilities {
        send_segments: port.max_segments(),
        receive_coalescing: port.coalesces(),
        send_buffer: port.send_buffer()?,
        receive_buffer: port.receive_buffer()?,
        ecn_ipv4: ecn_survives(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap_or(false),
        ecn_ipv6: ecn_survives(SocketAddr::from((Ipv6Addr::LOCALHOST, 0))).ok(),
        descriptors: rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum,
    })
}

fn ecn_survives(address: SocketAddr) -> std::io::Result<bool> {
    use crate::socket::{Inbox, SocketCounts};
    use metaroce_core::Ecn;
    let (from, to) = (
        UdpPort::bind(address, 65_536, 65_536)?,
        UdpPort::bind(address, 65_536, 65_536)?,
    );
    from.send(to.address(), Ecn::Ce, b"ecn", 3);
    // A busy system may deliver a little later, on loopback too.
    let end = Instant::now() + Duration::from_millis(100);
    let mut inbox = Inbox::new();
    let mut seen = None;
    while seen.is_none() && Instant::now() < end {
        inbox.receive(&to, &mut SocketCounts::default(), |_, ecn, _| {
            seen = Some(ecn)
        });
    }
    Ok(seen == Some(Ecn::Ce))
}
