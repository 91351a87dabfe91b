//! The source ports of a plane: one socket for each, opened when first used.

use super::{SocketCounts, UdpPort};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The sending sockets of one plane, by entropy index.
#[derive(Debug)]
pub(crate) struct Senders {
    ip: IpAddr,
    scope: SocketAddr,
    first_port: Option<u16>,
    buffer: usize,
    open: Vec<Option<Arc<UdpPort>>>,
}

/// A sending socket receives nothing; this keeps the kernel's minimum.
const NO_RECEIVE_BUFFER: usize = 4_096;

impl Senders {
    /// Room for `entropies` sockets on the address (its port does not matter). With `first_port` they get consecutive
    /// ports from there if those are free, otherwise whatever the system gives.
    pub(crate) fn new(
        address: SocketAddr,
        entropies: u16,
        first_port: Option<u16>,
        buffer: usize,
    ) -> Self {
        let mut open = Vec::new();
        open.resize_with(usize::from(entropies.max(1)), || None);
        Self {
            ip: address.ip(),
            scope: address,
            first_port,
            buffer,
            open,
        }
    }

    /// The socket of an entropy index.
    ///
    /// # Errors
    /// Those of the system, if not a single socket can be opened.
    pub(crate) fn get(
        &mut self,
        entropy: u16,
        counts: &mut SocketCounts,
    ) -> io::Result<&Arc<UdpPort>> {
        let index = usize::from(entropy) % self.open.len();
        if self.open[index].is_none() {
            match self.bind(index) {
                Ok(port) => self.open[index] = Some(Arc::new(port)),
                Err(error) => {
                    // Out of descriptors or ports: a path without a route of its own is better than none.
                    let other = self.open.iter().flatten().next().cloned().ok_or(error)?;
                    counts.ports_shared += 1;
                    self.open[index] = Some(other);
                }
            }
        }
        self.open[index]
            .as_ref()
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        self.open.iter().flatten().count()
    }

    fn bind(&self, index: usize) -> io::Result<UdpPort> {
        let wanted = self
            .first_port
            .and_then(|first| u16::try_from(usize::from(first) + index).ok());
        if let Some(port) = wanted
            && let Ok(port) = UdpPort::bind(self.address(port), self.buffer, NO_RECEIVE_BUFFER)
        {
            return Ok(port);
        }
        UdpPort::bind(self.address(0), self.buffer, NO_RECEIVE_BUFFER)
    }

    fn address(&self, port: u16) -> SocketAddr {
        let mut address = self.scope;
        address.set_ip(self.ip);
        address.set_port(port);
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaroce_core::Ecn;

    #[test]
    fn every_index_has_its_own_port_and_the_range_is_used_if_free() {
        let mut counts = SocketCounts::default();
        let address = "127.0.0.1:1".parse().unwrap();
        let mut senders = Senders::new(address, 4, None, 65_536);
        let ports: Vec<_> = (0..4)
            .map(|index| senders.get(index, &mut counts).unwrap().address().port())
            .collect();
        let mut distinct = ports.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 4);
        assert_eq!(
            senders.get(5, &mut counts).unwrap().address().port(),
            ports[1]
        );
        assert_eq!(senders.count(), 4);

        let taken = ports[0];
        let mut others = Senders::new(address, 2, Some(taken), 65_536);
        let first = others.get(0, &mut counts).unwrap().address().port();
        assert_ne!(first, taken, "a port in use is replaced by another");
        assert_eq!(
            others
                .get(0, &mut counts)
                .unwrap()
                .send(address, Ecn::Ect0, b"x", 1),
            crate::socket::udp::Sent::Yes
        );
    }
}
