//! smoltcp's TCP: two interfaces, each with one socket.

use std::cell::RefCell;
use std::rc::Rc;

use anyhow::{Result, anyhow, bail};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::phy::{self, Checksum, ChecksumCapabilities, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

use crate::link::{Frame, Link};
use crate::{Case, Pair};

const HEADERS: usize = 20 + 20;
const BUFFER_BYTES: usize = 256 << 10;
const PORT: u16 = 4791;

pub fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "smoltcp-tcp-1460",
            remarks: "with checksums; copies the payload twice",
            connect: || connect(1460, true),
        },
        Case {
            name: "smoltcp-tcp-1460-nosum",
            remarks: "without checksums; copies the payload twice",
            connect: || connect(1460, false),
        },
        Case {
            name: "smoltcp-tcp-4096",
            remarks: "with checksums; copies the payload twice",
            connect: || connect(4096, true),
        },
        Case {
            name: "smoltcp-tcp-4096-nosum",
            remarks: "without checksums; copies the payload twice",
            connect: || connect(4096, false),
        },
    ]
}

fn connect(payload: usize, checksums: bool) -> Result<Box<dyn Pair>> {
    let to_server = Rc::new(RefCell::new(Link::default()));
    let to_client = Rc::new(RefCell::new(Link::default()));
    let host = |address, transmit: &Shared, receive: &Shared| {
        let port = Port {
            payload,
            checksums,
            transmit: transmit.clone(),
            receive: receive.clone(),
            data_sent: 0,
        };
        Host::new(address, port)
    };
    let mut pair = TcpPair {
        now: Instant::ZERO,
        client: host(1, &to_server, &to_client),
        server: host(2, &to_client, &to_server),
    };
    pair.server
        .socket()
        .listen(PORT)
        .map_err(|error| anyhow!("listen: {error}"))?;
    let client = &mut pair.client;
    let socket = client.sockets.get_mut::<tcp::Socket>(client.handle);
    let remote = (IpAddress::v4(10, 0, 0, 2), PORT);
    socket
        .connect(client.interface.context(), remote, 50_000)
        .map_err(|e| anyhow!("connect: {e}"))?;
    for _ in 0..100 {
        pair.step();
        if pair.client.socket().can_send() && pair.server.socket().may_recv() {
            return Ok(Box::new(pair));
        }
    }
    bail!("the connection was not made")
}

struct TcpPair {
    now: Instant,
    client: Host,
    server: Host,
}

impl TcpPair {
    fn step(&mut self) {
        self.now += Duration::from_micros(10);
        self.client.poll(self.now);
        self.server.poll(self.now);
    }
}

impl Pair for TcpPair {
    fn transfer(&mut self, bytes: u64) -> Result<u64> {
        let before = self.client.port.data_sent;
        let (mut sent, mut received, mut idle) = (0, 0, 0);
        while received < bytes {
            // The application neither writes nor reads the bytes: the copies are smoltcp's own.
            let take = |buffer: &mut [u8]| {
                let length = buffer.len().min((bytes - sent) as usize);
                (length, length as u64)
            };
            sent += self
                .client
                .socket()
                .send(take)
                .map_err(|error| anyhow!("send: {error}"))?;
            self.step();
            let mut moved = 0;
            while self.server.socket().can_recv() {
                let all = |buffer: &mut [u8]| (buffer.len(), buffer.len() as u64);
                moved += self
                    .server
                    .socket()
                    .recv(all)
                    .map_err(|error| anyhow!("receive: {error}"))?;
            }
            received += moved;
            idle = if moved == 0 { idle + 1 } else { 0 };
            if idle > 100_000 {
                bail!("stalled after {received} bytes");
            }
        }
        Ok(self.client.port.data_sent - before)
    }
}

struct Host {
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    port: Port,
}

impl Host {
    fn new(address: u8, mut port: Port) -> Self {
        let mut interface =
            Interface::new(Config::new(HardwareAddress::Ip), &mut port, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            let own = IpCidr::new(IpAddress::v4(10, 0, 0, address), 24);
            addresses.push(own).expect("room for one address");
        });
        let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER_BYTES]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.set_nagle_enabled(false);
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        Self {
            interface,
            sockets,
            handle,
            port,
        }
    }

    fn socket(&mut self) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(self.handle)
    }

    fn poll(&mut self, now: Instant) {
        self.interface.poll(now, &mut self.port, &mut self.sockets);
    }
}

type Shared = Rc<RefCell<Link>>;

/// A network device on two links.
struct Port {
    payload: usize,
    checksums: bool,
    transmit: Shared,
    receive: Shared,
    data_sent: u64,
}

impl Device for Port {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Transmit<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Transmit<'_>)> {
        let frame = self.receive.borrow_mut().receive()?;
        let received = Received {
            frame,
            link: &self.receive,
        };
        Some((
            received,
            Transmit {
                link: &self.transmit,
                data_sent: &mut self.data_sent,
            },
        ))
    }

    fn transmit(&mut self, _: Instant) -> Option<Transmit<'_>> {
        Some(Transmit {
            link: &self.transmit,
            data_sent: &mut self.data_sent,
        })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.payload + HEADERS;
        if !self.checksums {
            capabilities.checksum = ChecksumCapabilities::default();
            capabilities.checksum.ipv4 = Checksum::None;
            capabilities.checksum.tcp = Checksum::None;
        }
        capabilities
    }
}

struct Received<'a> {
    frame: Frame,
    link: &'a Shared,
}

impl phy::RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        let result = f(self.frame.bytes());
        self.link.borrow_mut().recycle(self.frame);
        result
    }
}

struct Transmit<'a> {
    link: &'a Shared,
    data_sent: &'a mut u64,
}

impl phy::TxToken for Transmit<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, f: F) -> R {
        // An acknowledgment is headers and at most 40 bytes of options.
        *self.data_sent += u64::from(length > HEADERS + 40);
        self.link.borrow_mut().send(length, f)
    }
}
