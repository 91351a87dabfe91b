//! Batched receiving.

use super::udp::from_codepoint;
use super::{SocketCounts, UdpPort};
use metaroce_core::Ecn;
use quinn_udp::RecvMeta;
use std::io::IoSliceMut;
use std::net::SocketAddr;

/// Buffers of one receive call. Each may hold many datagrams that the kernel coalesced. Few, so that they stay in
/// the processor's cache between the kernel's copy and ours.
const BUFFERS: usize = 8;
const BUFFER_BYTES: usize = 65_536;

/// Receives datagrams in batches.
#[derive(Debug)]
pub(crate) struct Inbox {
    memory: Vec<u8>,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            memory: vec![0; BUFFERS * BUFFER_BYTES],
        }
    }

    /// One receive call; gives every datagram to `each`. Returns how many datagrams there were.
    pub(crate) fn receive(
        &mut self,
        port: &UdpPort,
        counts: &mut SocketCounts,
        mut each: impl FnMut(SocketAddr, Ecn, &[u8]),
    ) -> usize {
        let mut metas = [RecvMeta::default(); BUFFERS];
        let mut slices = self
            .memory
            .chunks_exact_mut(BUFFER_BYTES)
            .map(IoSliceMut::new);
        let mut buffers: [IoSliceMut<'_>; BUFFERS] =
            std::array::from_fn(|_| slices.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
        let filled = match port.receive(&mut buffers, &mut metas) {
            Ok(0) => return 0,
            Ok(filled) => filled,
            Err(_) => {
                counts.receive_errors += 1;
                return 0;
            }
        };
        counts.receives += 1;
        let mut datagrams = 0;
        for (buffer, meta) in buffers.iter().zip(&metas).take(filled) {
            let ecn = from_codepoint(meta.ecn);
            let bytes = buffer.get(..meta.len).unwrap_or_default();
            counts.received_bytes += bytes.len() as u64;
            for datagram in bytes.chunks(meta.stride.max(1)) {
                datagrams += 1;
                each(meta.addr, ecn, datagram);
            }
        }
        counts.received_datagrams += datagrams as u64;
        datagrams
    }
}
