//! The parts of datagrams as plain structs: what DATA adds, acknowledgment blocks, parameters.

use metaroce_core::wire::{AckBlock, Capabilities, Parameters, PlaneAddress, Planes};

use crate::address::{MR_MAX_PLANES, mr_address};
use crate::error::mr_error;

/// What DATA adds to the common header. The opcodes are in docs/spec.md.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct mr_data {
    /// Remote address of the message's first byte; for SEND the receive number << 32 | the attempt.
    pub address: u64,
    /// Sequence number of the message on its stream.
    pub msn: u32,
    /// Length of the message, bytes.
    pub length: u32,
    /// Offset of the payload in the message, bytes.
    pub offset: u32,
    /// Key of the remote region, or the requester's token in a response.
    pub key: u32,
    /// Immediate for the application, or the requester's token in a request.
    pub immediate: u32,
    /// Stream of the message.
    pub stream: u16,
    /// What the message does, 0 (WRITE) to 9 (NOP).
    pub opcode: u8,
}

/// What a receiver has of a path.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct mr_ack_block {
    /// Bit i % 64 of number i / 64: PSN `cumulative` + i was received.
    pub sack: [u64; 4],
    /// The next PSN expected.
    pub cumulative: u32,
    /// TSN of the newest transmission received.
    pub newest_tsn: u32,
    /// Its PSN.
    pub newest_psn: u32,
    /// Data packets received, modulo 2^32.
    pub received: u32,
    /// Rate hint, Mbit/s; 0: none.
    pub hint_mbps: u32,
    /// CE marks received, modulo 2^16.
    pub ce_count: u16,
    /// Time since the newest arrived, units of 16 ns.
    pub delay: u16,
    /// The path.
    pub path: u8,
    /// Its generation.
    pub generation: u8,
}

impl mr_ack_block {
    pub(crate) fn of(block: &AckBlock) -> Self {
        Self {
            sack: block.sack,
            cumulative: block.cumulative,
            newest_tsn: block.newest_tsn,
            newest_psn: block.newest_psn,
            received: block.received,
            hint_mbps: block.hint_mbps,
            ce_count: block.ce_count,
            delay: block.delay,
            path: block.path,
            generation: block.generation,
        }
    }

    pub(super) fn to_core(self) -> AckBlock {
        AckBlock {
            path: self.path,
            generation: self.generation,
            cumulative: self.cumulative,
            newest_tsn: self.newest_tsn,
            newest_psn: self.newest_psn,
            delay: self.delay,
            ce_count: self.ce_count,
            received: self.received,
            hint_mbps: self.hint_mbps,
            sack: self.sack,
        }
    }
}

/// What a side can do and wants, in INIT and ACCEPT.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct mr_parameters {
    /// Where the side is reached on each plane.
    pub addresses: [mr_address; MR_MAX_PLANES],
    /// Most payload bytes of a DATA datagram on each plane, 256 to 9000.
    pub max_payload: [u16; MR_MAX_PLANES],
    /// Capability bits; 1: willing to leave the checksum out.
    pub capabilities: u32,
    /// What one plane can take in, Mbit/s.
    pub ingress_mbps: u32,
    /// The application's number for what is asked for.
    pub service: u32,
    /// Packets between the oldest unacknowledged and the newest of a path, 1 to 256.
    pub window: u16,
    /// Streams each way.
    pub streams: u16,
    /// Messages that may be open at the receiver.
    pub open_messages: u16,
    /// Responses that may be open at the responder.
    pub open_responses: u16,
    /// Paths each way.
    pub paths: u8,
    /// Planes, 1 to `MR_MAX_PLANES`.
    pub planes: u8,
}

impl mr_parameters {
    pub(super) fn of(from: &Parameters) -> Self {
        let mut addresses = [mr_address::default(); MR_MAX_PLANES];
        let mut max_payload = [0; MR_MAX_PLANES];
        let places = addresses.iter_mut().zip(&mut max_payload);
        for ((address, payload), plane) in places.zip(from.planes.as_slice()) {
            (address.ip, address.port) = (plane.ip.octets(), plane.port);
            *payload = plane.max_payload;
        }
        Self {
            addresses,
            max_payload,
            capabilities: from.capabilities.0,
            ingress_mbps: from.ingress_mbps,
            service: from.service,
            window: from.window,
            streams: from.streams,
            open_messages: from.open_messages,
            open_responses: from.open_responses,
            paths: from.paths,
            planes: from.planes.count() as u8,
        }
    }

    pub(super) fn to_core(self) -> Result<Parameters, mr_error> {
        let mut list = [PlaneAddress::new(self.addresses[0].to_socket(), 0); MR_MAX_PLANES];
        for (plane, (address, payload)) in list
            .iter_mut()
            .zip(self.addresses.iter().zip(self.max_payload))
        {
            (plane.ip, plane.port, plane.max_payload) = (address.ip.into(), address.port, payload);
        }
        let planes = list
            .get(..usize::from(self.planes))
            .and_then(Planes::new)
            .ok_or(mr_error::MR_ERROR_DECODE_OUT_OF_RANGE)?;
        Ok(Parameters {
            paths: self.paths,
            window: self.window,
            streams: self.streams,
            open_messages: self.open_messages,
            open_responses: self.open_responses,
            capabilities: Capabilities(self.capabilities),
            ingress_mbps: self.ingress_mbps,
            service: self.service,
            planes,
        })
    }
}
