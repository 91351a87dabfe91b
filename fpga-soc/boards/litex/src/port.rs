//! LiteEth's MAC as a port of embassy's.
//!
//! A frame is read where the MAC has put it. The MAC's memory for frames to be sent takes whole words only, so that they are written
//! in RAM first.

use core::task::Context;

use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
use embassy_sync::waitqueue::AtomicWaker;
use metaroce_firmware::device::FRAME_BYTES;
use metaroce_firmware::frame::Mac;
use static_cell::ConstStaticCell;

use crate::soc::{
    ETHMAC_SRAM_READER_EV_PENDING, ETHMAC_SRAM_READER_LENGTH, ETHMAC_SRAM_READER_READY,
    ETHMAC_SRAM_READER_SLOT, ETHMAC_SRAM_READER_START, ETHMAC_SRAM_WRITER_EV_ENABLE,
    ETHMAC_SRAM_WRITER_EV_PENDING, ETHMAC_SRAM_WRITER_LENGTH, ETHMAC_SRAM_WRITER_SLOT, MAC_BASE,
    MAC_RECEIVE_SLOTS, MAC_SEND_SLOTS, MAC_SLOT_BYTES, read, write,
};

/// Words of a frame to be sent.
const WORDS: usize = FRAME_BYTES.div_ceil(4);
/// The shortest frame, without FCS.
const SHORTEST: usize = 60;

static WAKER: AtomicWaker = AtomicWaker::new();
static SEND: ConstStaticCell<[u32; WORDS]> = ConstStaticCell::new([0; WORDS]);

/// The MAC has interrupted: a frame is here (told again only when this one was taken), or one was sent.
pub fn on_interrupt() {
    write(ETHMAC_SRAM_WRITER_EV_ENABLE, 0);
    write(ETHMAC_SRAM_READER_EV_PENDING, 1);
    WAKER.wake();
}

/// The port.
pub struct Port {
    mac: Mac,
    send: &'static mut [u32; WORDS],
    /// The slot that is sent from next.
    slot: usize,
}

impl Port {
    /// The MAC, once.
    pub fn new(mac: Mac) -> Self {
        Self {
            mac,
            send: SEND.take(),
            slot: 0,
        }
    }
}

fn has_frame() -> bool {
    read(ETHMAC_SRAM_WRITER_EV_PENDING) & 1 != 0
}

fn has_room() -> bool {
    read(ETHMAC_SRAM_READER_READY) & 1 != 0
}

/// Registers who waits, and lets the MAC interrupt again.
fn wait(cx: &Context<'_>) {
    WAKER.register(cx.waker());
    write(ETHMAC_SRAM_WRITER_EV_ENABLE, 1);
}

impl Driver for Port {
    type RxToken<'a> = Received;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, cx: &mut Context<'_>) -> Option<(Received, Sending<'_>)> {
        if has_frame() && has_room() {
            return Some((Received, Sending(self)));
        }
        wait(cx);
        None
    }

    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Sending<'_>> {
        if has_room() {
            return Some(Sending(self));
        }
        wait(cx);
        None
    }

    fn link_state(&mut self, _: &mut Context<'_>) -> LinkState {
        LinkState::Up
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = FRAME_BYTES;
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(self.mac)
    }
}

/// A frame that has come.
pub struct Received;

impl RxToken for Received {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, take: F) -> R {
        let slot = read(ETHMAC_SRAM_WRITER_SLOT) as usize % MAC_RECEIVE_SLOTS;
        let length = (read(ETHMAC_SRAM_WRITER_LENGTH) as usize).min(MAC_SLOT_BYTES);
        let start = core::ptr::with_exposed_provenance_mut(MAC_BASE + slot * MAC_SLOT_BYTES);
        // SAFETY: the slot is memory of this system; the MAC does not write to it before it is given back below, and there is one token at a
        // time.
        let frame = unsafe { core::slice::from_raw_parts_mut(start, length) };
        let result = take(frame);
        write(ETHMAC_SRAM_WRITER_EV_PENDING, 1);
        result
    }
}

/// Room for a frame to be sent.
pub struct Sending<'a>(&'a mut Port);

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let port = self.0;
        let sent = length.clamp(SHORTEST, FRAME_BYTES);
        let start = port.send.as_mut_ptr().cast::<u8>();
        // SAFETY: the words' bytes, which nothing else uses meanwhile.
        let bytes = unsafe { core::slice::from_raw_parts_mut(start, WORDS * 4) };
        let result = fill(bytes.get_mut(..length).unwrap_or(&mut []));
        if let Some(padding) = bytes.get_mut(length..sent) {
            padding.fill(0);
        }
        let place = MAC_BASE + (MAC_RECEIVE_SLOTS + port.slot) * MAC_SLOT_BYTES;
        for (at, word) in port.send.iter().take(sent.div_ceil(4)).enumerate() {
            write(place + at * 4, *word);
        }
        write(ETHMAC_SRAM_READER_SLOT, port.slot as u32);
        write(ETHMAC_SRAM_READER_LENGTH, sent as u32);
        write(ETHMAC_SRAM_READER_START, 1);
        port.slot = (port.slot + 1) % MAC_SEND_SLOTS;
        result
    }
}
