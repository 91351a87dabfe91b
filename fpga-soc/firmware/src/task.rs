//! The embassy task that serves a device on a network port, beside embassy-net.
//!
//! The port belongs to this task. Frames of the service go straight between the port's buffers and the device; everything else (ARP, ping)
//! goes to and comes from embassy-net over a channel. What is to be sent to somebody whose Ethernet address is not known yet goes
//! through a UDP socket of embassy-net, which asks for it.

use core::future::{Future, poll_fn};
use core::mem::MaybeUninit;
use core::net::SocketAddrV4;
use core::pin::pin;
use core::task::{Context, Poll};

use embassy_executor::Spawner;
use embassy_futures::yield_now;
use embassy_net::udp::{PacketMetadata, UdpSocket};
use embassy_net::{Config, Ipv4Cidr, StackResources, StaticConfigV4};
use embassy_net_driver::{Driver, HardwareAddress, LinkState, RxToken, TxToken};
use embassy_net_driver_channel as channel;
use embassy_time::Timer;
use metaroce_core::{ConnectionEntry, Instant};

use crate::device::{Connections, Device, Outgoing, PORT, Settings, StartError};
use crate::figures::Figures;
use crate::ram::REGION_BYTES;
use crate::say::{info, warning};

/// The longest frame for and from embassy-net, bytes: ARP, ping, setting up.
const STACK_FRAME: usize = 640;
/// Frames that may wait for embassy-net, and those from it.
const STACK_FRAMES: usize = 2;
/// Frames in a row before somebody else may run.
const BURST: u32 = 16;

/// The memory of a device and of its network stack, in one piece that a board puts where it likes.
pub struct Storage {
    region: [u8; REGION_BYTES],
    /// Made at run time: they are not all zero, and would take as much of the ROM.
    connections: MaybeUninit<Connections>,
    channel: channel::State<STACK_FRAME, STACK_FRAMES, STACK_FRAMES>,
    sockets: StackResources<1>,
    udp_in: [u8; 16],
    udp_out: [u8; STACK_FRAME],
}

impl Storage {
    /// Nothing in it.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            region: [0; REGION_BYTES],
            connections: MaybeUninit::uninit(),
            channel: channel::State::new(),
            sockets: StackResources::new(),
            udp_in: [0; 16],
            udp_out: [0; STACK_FRAME],
        }
    }
}

impl Default for Storage {
    fn default() -> Self {
        Self::new()
    }
}

/// The present, for the core.
fn now() -> Instant {
    Instant::from_nanos(embassy_time::Instant::now().as_micros().wrapping_mul(1_000))
}

/// The core's time on embassy's clock, rounded up.
fn embassy_time(at: Instant) -> embassy_time::Instant {
    embassy_time::Instant::from_micros(at.as_nanos().div_ceil(1_000))
}

/// embassy-net's half of the port.
pub type StackDriver = channel::Device<'static, STACK_FRAME>;

/// Lets embassy-net work: a task of its own, so that it runs only when it has something to do.
#[embassy_executor::task]
pub async fn network(mut runner: embassy_net::Runner<'static, StackDriver>) -> ! {
    runner.run().await
}

/// How costs are counted.
#[derive(Clone, Copy, Debug)]
pub struct Gauge {
    /// The processor's cycles, modulo 2^32.
    pub cycles: fn() -> u32,
    /// Where they are added up.
    pub figures: &'static Figures,
}

/// Serves for ever.
///
/// # Errors
/// A [`StartError`] if the device cannot be made.
pub async fn serve<D: Driver>(
    spawner: Spawner,
    mut port: D,
    settings: &Settings,
    storage: &'static mut Storage,
    gauge: Gauge,
) -> Result<(), StartError> {
    let hardware = HardwareAddress::Ethernet(settings.mac);
    let (mut frames, driver) = channel::new(&mut storage.channel, hardware);
    frames.set_link_state(LinkState::Up);
    let config = Config::ipv4_static(StaticConfigV4 {
        address: Ipv4Cidr::new(settings.address, 24),
        gateway: None,
        dns_servers: Default::default(),
    });
    let (stack, runner) = embassy_net::new(driver, config, &mut storage.sockets, 0);
    spawner.spawn(network(runner).map_err(|_| StartError::Task)?);
    let (mut meta_in, mut meta_out) = ([PacketMetadata::EMPTY; 1], [PacketMetadata::EMPTY; 1]);
    let mut socket = UdpSocket::new(
        stack,
        &mut meta_in,
        &mut storage.udp_in,
        &mut meta_out,
        &mut storage.udp_out,
    );
    if socket.bind(PORT).is_err() {
        warning!("no UDP socket: peers must be heard first");
    }
    let connections = empty(&mut storage.connections);
    let device = Device::new(settings, &mut storage.region, connections, now())?;
    let [a, b, c, d] = settings.address.octets();
    info!("{}.{}.{}.{} serves {} bytes", a, b, c, d, REGION_BYTES);
    let mut engine = Engine {
        device,
        frames,
        socket,
        gauge,
    };
    engine.run(&mut port).await
}

/// Apart, so that what it needs of the stack is given back; each made at run time, as a constant to copy would take 3 KiB of the ROM.
#[inline(never)]
fn empty(place: &mut MaybeUninit<Connections>) -> &mut Connections {
    place.write(core::array::from_fn(|_| ConnectionEntry::new()))
}

/// A device between the port and embassy-net.
struct Engine<'a> {
    device: Device<'a>,
    frames: channel::Runner<'a, STACK_FRAME>,
    socket: UdpSocket<'a>,
    gauge: Gauge,
}

impl Engine<'_> {
    async fn run<D: Driver>(&mut self, port: &mut D) -> ! {
        loop {
            let deadline = self.device.poll_timeout().map(embassy_time);
            let deadline = deadline.unwrap_or(embassy_time::Instant::MAX);
            let mut timer = pin!(Timer::at(deadline));
            poll_fn(|cx| {
                // Whatever has nothing to do has registered the waker.
                if self.work(port, cx) {
                    Poll::Ready(())
                } else {
                    timer.as_mut().poll(cx)
                }
            })
            .await;
            yield_now().await;
        }
    }

    /// Takes a few frames in, lets timers fire, sends what there is. Whether there was anything to do.
    fn work<D: Driver>(&mut self, port: &mut D, cx: &mut Context<'_>) -> bool {
        let mut worked = false;
        for _ in 0..BURST {
            let Some((frame, _)) = port.receive(cx) else {
                break;
            };
            worked = true;
            frame.consume(|bytes| {
                let start = (self.gauge.cycles)();
                if self.device.receive(now(), bytes) {
                    let took = (self.gauge.cycles)().wrapping_sub(start);
                    self.gauge.figures.received(took);
                } else {
                    self.pass_up(bytes);
                }
            });
        }
        if self.device.poll_timeout().is_some_and(|at| at <= now()) {
            self.device.handle_timeout(now());
            worked = true;
        }
        self.device.handle_events(now());
        for _ in 0..BURST {
            let Some(place) = port.transmit(cx) else {
                return worked;
            };
            let start = (self.gauge.cycles)();
            let Some(outgoing) = self.device.poll_transmit(now()) else {
                break;
            };
            worked = true;
            if let Some(destination) = outgoing.unresolved() {
                self.ask_stack(&outgoing, destination, cx);
                continue;
            }
            place.consume(outgoing.frame_length(), |bytes| {
                // The place is as long as was asked for, and the next hop is known.
                let _ = self.device.write_frame(&outgoing, bytes);
                let took = (self.gauge.cycles)().wrapping_sub(start);
                self.gauge.figures.sent(took);
            });
        }
        while let Poll::Ready(bytes) = self.frames.poll_tx_buf(cx) {
            let Some(place) = port.transmit(cx) else {
                break;
            };
            worked = true;
            place.consume(bytes.len(), |place| place.copy_from_slice(bytes));
            self.frames.tx_done();
        }
        worked
    }

    /// A frame that is not the device's goes to embassy-net, or is lost if that does not keep up or it is too long.
    fn pass_up(&mut self, bytes: &[u8]) {
        let Some(place) = self.frames.try_rx_buf() else {
            return;
        };
        if let Some(place) = place.get_mut(..bytes.len()) {
            place.copy_from_slice(bytes);
            self.frames.rx_done(bytes.len());
        }
    }

    /// The peer's Ethernet address is not known: embassy-net asks for it and sends this; what passes by then tells it to the device. What
    /// embassy-net does not take is lost, and sent again in time.
    fn ask_stack(&mut self, outgoing: &Outgoing, to: SocketAddrV4, cx: &mut Context<'_>) {
        let mut bytes = [0; STACK_FRAME];
        let Some(bytes) = bytes.get_mut(..outgoing.datagram_length()) else {
            return;
        };
        if self.device.write_datagram(outgoing, bytes).is_some() {
            let _ = self.socket.poll_send_to(bytes, to, cx);
        }
    }
}
