//! What goes between the core and whoever owns the sockets.

use core::net::SocketAddr;

use crate::memory::LocalSlice;
use crate::wire::PlaneAddress;
use crate::work::ConnectionHandle;

/// Room for everything in front of a gathered payload: the largest control datagram is an ACK with 20 blocks.
pub const HEADER_BUFFER: usize = 1408;

/// Explicit congestion notification, as in the IP header's two bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Ecn {
    /// The transport does not speak ECN.
    NotEct = 0,
    /// ECN-capable, codepoint ECT(1).
    Ect1 = 1,
    /// ECN-capable, codepoint ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// From the two bits; higher bits are ignored.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// Which traffic class a datagram may travel in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Class {
    /// DATA and PROBE (which must not overtake data), and setting up.
    Data,
    /// ACK, FENCE, FENCE_ACK, ANNOUNCE and HINT, which profit from a higher class.
    Control,
}

/// What is known of a datagram that came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiveMeta {
    /// Address it came from.
    pub source: SocketAddr,
    /// Plane it came in on.
    pub plane: u8,
    /// Its ECN bits.
    pub ecn: Ecn,
    /// The device has checked the CRC32C already; the trailer, if there is one, is still in the bytes.
    pub checksum_verified: bool,
}

/// A datagram to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// The connection, if it is of one.
    pub connection: Option<ConnectionHandle>,
    pub(crate) to: PlaneAddress,
    /// By which plane.
    pub plane: u8,
    /// Index of the UDP source port.
    pub entropy: u16,
    /// Its traffic class.
    pub class: Class,
    /// Its ECN bits.
    pub ecn: Ecn,
    /// Bytes in the header buffer.
    pub header_length: usize,
    /// Bytes to be gathered behind them.
    pub payload: Option<LocalSlice>,
    /// A CRC32C of all that follows behind them.
    pub trailer: bool,
    /// Bytes of the whole datagram.
    pub length: usize,
    /// The slot it came from, for the report of a gather fault.
    pub(crate) slot: u16,
}

impl Transmit {
    /// Where to.
    #[must_use]
    pub const fn destination(&self) -> SocketAddr {
        self.to.socket()
    }
}
