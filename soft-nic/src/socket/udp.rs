//! One UDP socket with ECN, segmentation offload and large buffers.

use metaroce_core::Ecn;
use quinn_udp::{EcnCodepoint, UdpSocketState};
use rustix::net::sockopt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// A bound, non-blocking UDP socket.
#[derive(Debug)]
pub(crate) struct UdpPort {
    socket: UdpSocket,
    state: UdpSocketState,
    address: SocketAddr,
}

/// What happened to a send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sent {
    /// It is on its way.
    Yes,
    /// The socket is full: try again.
    Blocked,
    /// The system will not send it; the error number.
    Refused(i32),
}

impl UdpPort {
    /// Binds to `address` and asks for buffers of these sizes (the system may give less).
    pub(crate) fn bind(
        address: SocketAddr,
        send_buffer: usize,
        receive_buffer: usize,
    ) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        let state = UdpSocketState::new((&socket).into())?;
        if sockopt::set_socket_send_buffer_size_force(&socket, send_buffer).is_err() {
            sockopt::set_socket_send_buffer_size(&socket, send_buffer)?;
        }
        if sockopt::set_socket_recv_buffer_size_force(&socket, receive_buffer).is_err() {
            sockopt::set_socket_recv_buffer_size(&socket, receive_buffer)?;
        }
        let address = socket.local_addr()?;
        Ok(Self {
            socket,
            state,
            address,
        })
    }

    /// The address it is bound to.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Datagrams that one send may carry.
    pub(crate) fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Bytes that the kernel holds for the receiver, as it accounts them.
    pub(crate) fn receive_buffer(&self) -> io::Result<usize> {
        Ok(sockopt::socket_recv_buffer_size(&self.socket)?)
    }

    /// Bytes that the kernel holds for the sender, as it accounts them.
    pub(crate) fn send_buffer(&self) -> io::Result<usize> {
        Ok(sockopt::socket_send_buffer_size(&self.socket)?)
    }

    /// Whether several datagrams may be received as one.
    pub(crate) fn coalesces(&self) -> bool {
        self.state.gro_segments() > 1
    }

    /// Sends `contents` as datagrams of `segment` bytes (the last one may be shorter).
    pub(crate) fn send(
        &self,
        destination: SocketAddr,
        ecn: Ecn,
        contents: &[u8],
        segment: usize,
    ) -> Sent {
        let transmit = quinn_udp::Transmit {
            destination,
            ecn: to_codepoint(ecn),
            contents,
            segment_size: (segment < contents.len()).then_some(segment),
            src_ip: None,
        };
        match self.state.try_send((&self.socket).into(), &transmit) {
            Ok(()) => Sent::Yes,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Sent::Blocked,
            Err(error) => Sent::Refused(error.raw_os_error().unwrap_or(0)),
        }
    }

    /// Receives into `buffers`; how many were filled, 0 if there is nothing.
    pub(crate) fn receive(
        &self,
        buffers: &mut [io::IoSliceMut<'_>],
        metas: &mut [quinn_udp::RecvMeta],
    ) -> io::Result<usize> {
        match self.state.recv((&self.socket).into(), buffers, metas) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            other => other,
        }
    }
}

impl AsFd for UdpPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

const fn to_codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

/// The core's ECN field from the socket's.
pub(crate) const fn from_codepoint(codepoint: Option<EcnCodepoint>) -> Ecn {
    match codepoint {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}
