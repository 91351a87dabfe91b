//! The virtio-net device as a port of embassy's.

use core::cell::{RefCell, UnsafeCell};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::Context;

use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
use embassy_sync::waitqueue::AtomicWaker;
use metaroce_firmware::device::FRAME_BYTES;
use metaroce_firmware::frame::Mac;
use static_cell::ConstStaticCell;
use virtio_drivers::device::net::VirtIONetRaw;
use virtio_drivers::transport::mmio::{MmioTransport, VirtIOHeader};
use virtio_drivers::transport::{DeviceType, Transport};
use virtio_drivers::{BufferDirection, Hal, PAGE_SIZE, PhysAddr};

use crate::machine::{VIRTIO_PLACES, read, write};

const FIRST_PLACE: usize = 0x1000_1000;
const PLACE_BYTES: usize = 0x1000;
const INTERRUPT_STATUS: usize = 0x60;
const INTERRUPT_ACKNOWLEDGE: usize = 0x64;
/// Frames that may wait, of the length that the device asks for at least.
const RECEIVES: usize = 2;
const RECEIVE_BYTES: usize = 1_528;
/// virtio's header in front of each frame.
const HEADER: usize = 12;
/// Of both queues.
const QUEUE: usize = 4;
/// Two pages for each of two queues.
const PAGES: usize = 4;

static WAKER: AtomicWaker = AtomicWaker::new();
static RECEIVE: ConstStaticCell<[[u8; RECEIVE_BYTES]; RECEIVES]> =
    ConstStaticCell::new([[0; RECEIVE_BYTES]; RECEIVES]);
static SEND: ConstStaticCell<[u8; HEADER + FRAME_BYTES]> =
    ConstStaticCell::new([0; HEADER + FRAME_BYTES]);

/// A device has interrupted.
pub fn on_interrupt(number: u32) {
    let place = FIRST_PLACE + number as usize * PLACE_BYTES;
    write(
        place + INTERRUPT_ACKNOWLEDGE,
        read(place + INTERRUPT_STATUS),
    );
    WAKER.wake();
}

#[repr(align(4096))]
struct Pages(UnsafeCell<[[u8; PAGE_SIZE]; PAGES]>);

// SAFETY: each page is handed out once, by `dma_alloc`, and not touched otherwise.
unsafe impl Sync for Pages {}

static MEMORY: Pages = Pages(UnsafeCell::new([[0; PAGE_SIZE]; PAGES]));
/// Pages that were handed out.
static GIVEN: AtomicUsize = AtomicUsize::new(0);

/// The queues' memory: a few pages that are handed out once.
struct Memory;

// SAFETY: pages are static, handed out once each and aligned; addresses are the same for the device; there is no cache.
unsafe impl Hal for Memory {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        let first = GIVEN.fetch_add(pages, Ordering::Relaxed);
        let start = MEMORY.0.get().cast::<[u8; PAGE_SIZE]>();
        match NonNull::new(start.wrapping_add(first).cast::<u8>()) {
            Some(start) if first + pages <= PAGES => {
                (start.as_ptr().expose_provenance() as PhysAddr, start)
            }
            // The library's word for "none".
            _ => (0, NonNull::dangling()),
        }
    }

    unsafe fn dma_dealloc(_: PhysAddr, _: NonNull<u8>, _: usize) -> i32 {
        // The port is never given up.
        -1
    }

    unsafe fn mmio_phys_to_virt(address: PhysAddr, _: usize) -> NonNull<u8> {
        let place = core::ptr::with_exposed_provenance_mut(address as usize);
        NonNull::new(place).unwrap_or(NonNull::dangling())
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        buffer.cast::<u8>().as_ptr().expose_provenance() as PhysAddr
    }

    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}

struct Inner {
    device: VirtIONetRaw<Memory, MmioTransport<'static>, QUEUE>,
    /// The buffers that the device may fill, by their tokens; `None`: in somebody's hands.
    receive: [Option<&'static mut [u8]>; QUEUE],
    send: &'static mut [u8],
    /// The frame that the device sends now: its token and length with the header.
    sending: Option<(u16, usize)>,
}

/// The port.
pub struct Port(RefCell<Inner>);

impl Port {
    /// The machine's first virtio-net device.
    pub fn find() -> Option<Self> {
        let transport = (0..VIRTIO_PLACES as usize).find_map(|number| {
            let place = FIRST_PLACE + number * PLACE_BYTES;
            let header = core::ptr::with_exposed_provenance_mut::<VirtIOHeader>(place);
            // SAFETY: the machine has a virtio place here, used by nobody else but the interrupt handler, which does not touch what the
            // library uses.
            let transport =
                unsafe { MmioTransport::new(NonNull::new(header)?, PLACE_BYTES) }.ok()?;
            (transport.device_type() == DeviceType::Network).then_some(transport)
        })?;
        let mut inner = Inner {
            device: VirtIONetRaw::new(transport).ok()?,
            receive: [const { None }; QUEUE],
            send: SEND.take(),
            sending: None,
        };
        inner.device.enable_interrupts();
        for buffer in RECEIVE.take() {
            inner.offer(buffer);
        }
        Some(Self(RefCell::new(inner)))
    }

    /// The device's Ethernet address.
    pub fn mac(&self) -> Mac {
        self.0.borrow().device.mac_address()
    }
}

impl Inner {
    /// Gives a buffer to the device.
    fn offer(&mut self, buffer: &'static mut [u8]) {
        // SAFETY: the buffer stays in `receive` untouched until `take` has it back.
        if let Ok(token) = unsafe { self.device.receive_begin(buffer) }
            && let Some(place) = self.receive.get_mut(usize::from(token))
        {
            *place = Some(buffer);
        }
    }

    /// Takes a filled buffer from the device, and where in it the frame is.
    fn take(&mut self) -> Option<(&'static mut [u8], usize, usize)> {
        let token = self.device.poll_receive()?;
        let buffer = self.receive.get_mut(usize::from(token))?.take()?;
        // SAFETY: this is the buffer that got this token.
        let (header, length) = unsafe { self.device.receive_complete(token, buffer) }.ok()?;
        Some((buffer, header, length))
    }

    /// Whether nothing is being sent, after a look.
    fn is_free(&mut self) -> bool {
        if let Some((token, length)) = self.sending
            && self.device.poll_transmit() == Some(token)
        {
            // SAFETY: this is the buffer that got this token.
            let _ = unsafe { self.device.transmit_complete(token, &self.send[..length]) };
            self.sending = None;
        }
        self.sending.is_none()
    }
}

impl Driver for Port {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Sending<'a>;

    fn receive(&mut self, cx: &mut Context<'_>) -> Option<(Received<'_>, Sending<'_>)> {
        WAKER.register(cx.waker());
        let mut inner = self.0.borrow_mut();
        let is_ready = inner.device.poll_receive().is_some() && inner.is_free();
        drop(inner);
        is_ready.then_some((Received(&self.0), Sending(&self.0)))
    }

    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Sending<'_>> {
        WAKER.register(cx.waker());
        let is_free = self.0.borrow_mut().is_free();
        is_free.then_some(Sending(&self.0))
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
        HardwareAddress::Ethernet(self.mac())
    }
}

/// A frame that has come.
pub struct Received<'a>(&'a RefCell<Inner>);

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, take: F) -> R {
        let taken = self.0.borrow_mut().take();
        let Some((buffer, start, length)) = taken else {
            return take(&mut []);
        };
        let result = take(buffer.get_mut(start..start + length).unwrap_or(&mut []));
        self.0.borrow_mut().offer(buffer);
        result
    }
}

/// Room for a frame to be sent.
pub struct Sending<'a>(&'a RefCell<Inner>);

impl TxToken for Sending<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        let mut inner = self.0.borrow_mut();
        let Inner {
            device,
            send,
            sending,
            ..
        } = &mut *inner;
        let header = device.fill_buffer_header(send).unwrap_or(HEADER);
        let end = (header + length).min(send.len());
        let result = fill(send.get_mut(header..end).unwrap_or(&mut []));
        // SAFETY: the buffer is not touched before `is_free` has seen its end.
        if let Ok(token) = unsafe { device.transmit_begin(&send[..end]) } {
            *sending = Some((token, end));
        }
        result
    }
}
