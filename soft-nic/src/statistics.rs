//! The NIC's figures at one moment.

use crate::fault::FaultCounts;
use crate::socket::SocketCounts;
use metaroce_core::stats::EndpointStatistics;

/// What a NIC has done so far.
#[derive(Clone, Debug)]
pub struct NicStatistics {
    /// The protocol's figures, with every refused datagram under its reason.
    pub endpoint: EndpointStatistics,
    /// The sockets' figures.
    pub sockets: SocketCounts,
    /// Faults injected into what was sent.
    pub faults_outgoing: FaultCounts,
    /// Faults injected into what was received.
    pub faults_incoming: FaultCounts,
    /// Connections that exist.
    pub connections: usize,
    /// Source ports that are open, all planes together.
    pub source_ports: usize,
    /// Events that nobody took and that were dropped for newer ones.
    pub events_lost: u64,
}
