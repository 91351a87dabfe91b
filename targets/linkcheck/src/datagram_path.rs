//! The calls whose code is looked at.

use core::hint::black_box;

use metaroce_core::memory::MemoryFault;
use metaroce_core::{
    Access, CloseMode, ConnectionConfig, ConnectionEntry, ConnectionHandle, Endpoint,
    EndpointConfig, HEADER_BUFFER, Instant, LocalSlice, Memory, Operation, ReceiveMeta,
    ReceiveQueue, ReceiveRequest, RegionIndex, RemoteAddress, Source, WorkFlags, WorkRequest, wire,
};

/// A small device's endpoint: connections as small as `SmallConnection`, two of them.
type Device = Endpoint<4, 32, 2, 2, 4, 8, [ConnectionEntry<4, 32, 2, 2>; 2]>;

/// A kilobyte that a device might expose.
struct Ram([u8; 1024]);

impl Ram {
    fn place_of(&self, offset: u64, length: usize) -> Option<core::ops::Range<usize>> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(length)?;
        (end <= self.0.len()).then_some(start..end)
    }
}

impl Memory for Ram {
    fn place(&mut self, _: RegionIndex, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let range = self.place_of(offset, bytes.len()).ok_or(MemoryFault)?;
        let place = self.0.get_mut(range).ok_or(MemoryFault)?;
        for (place, byte) in place.iter_mut().zip(bytes) {
            *place = *byte;
        }
        Ok(())
    }

    fn gather(&self, _: RegionIndex, offset: u64, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        let range = self.place_of(offset, bytes.len()).ok_or(MemoryFault)?;
        let from = self.0.get(range).ok_or(MemoryFault)?;
        for (byte, from) in bytes.iter_mut().zip(from) {
            *byte = *from;
        }
        Ok(())
    }
}

/// Calls the datagram path with inputs that the compiler knows nothing about.
pub fn run() {
    wire_formats();
    let settings = black_box(EndpointConfig::default());
    let defaults = black_box(ConnectionConfig::default());
    let entries = [ConnectionEntry::new(), ConnectionEntry::new()];
    if let Ok(mut device) = Device::new(settings, defaults, black_box([1; 32]), entries) {
        let device = black_box(&mut device);
        set_up(device);
        datagrams(device, &mut Ram([0; 1024]));
        work(device);
        observe(device);
    }
}

fn now() -> Instant {
    Instant::from_nanos(black_box(1))
}

fn handle() -> ConnectionHandle {
    ConnectionHandle::from_bits(black_box(1))
}

fn slice() -> LocalSlice {
    black_box(LocalSlice::default())
}

/// Everything before and after work.
#[inline(never)]
fn set_up(device: &mut Device) {
    let peer = black_box([EndpointConfig::default().addresses[0]; 2]);
    let _ = black_box(device.register(black_box(0), black_box(1024), black_box(Access::ALL)));
    let _ = black_box(device.deregister(black_box(RegionIndex(1))));
    let _ = black_box(device.connect(now(), black_box(&peer[..]), black_box(Default::default())));
    let _ = black_box(device.attach_shared_queue(handle(), black_box(0), black_box(0)));
    let _ = black_box(device.close(now(), handle(), black_box(CloseMode::Drain)));
}

/// What a datagram or a timer reaches.
#[inline(never)]
fn datagrams(device: &mut Device, memory: &mut Ram) {
    let mut buffer = [0; 1408];
    let mut header = [0; HEADER_BUFFER];
    let meta = black_box(ReceiveMeta {
        source: device.config().addresses[0],
        plane: 0,
        ecn: metaroce_core::Ecn::Ect0,
        checksum_verified: false,
    });
    let received = black_box(&buffer[..]);
    let _ = black_box(device.handle_datagram(now(), &meta, received, memory));
    black_box(device.poll_timeout());
    device.handle_timeout(now());
    black_box(device.poll_transmit(now(), black_box(&mut header)));
    black_box(device.poll_datagram(now(), memory, black_box(&mut buffer[..])));
    black_box(device.poll_event());
}

/// Work requests of every kind.
#[inline(never)]
fn work(device: &mut Device) {
    let remote = black_box(RemoteAddress::default());
    let local = slice();
    let inline = black_box([0u8; 32]);
    let operations = [
        Operation::Write {
            local: Source::Region(local),
            remote,
            immediate: None,
        },
        Operation::Send {
            local: Source::Inline(&inline),
            immediate: Some(1),
        },
        Operation::Read { local, remote },
        Operation::FetchAdd {
            local,
            remote,
            add: 1,
        },
        Operation::CompareSwap {
            local,
            remote,
            compare: 1,
            swap: 2,
        },
    ];
    for operation in black_box(operations) {
        let request = black_box(WorkRequest {
            id: 1,
            operation,
            flags: WorkFlags::default(),
        });
        let _ = black_box(device.post(now(), handle(), black_box(0), &request));
    }
    let receive = ReceiveRequest {
        id: 1,
        local: slice(),
    };
    for queue in [
        ReceiveQueue::Stream(handle(), black_box(0)),
        ReceiveQueue::Shared(black_box(0)),
    ] {
        let _ = black_box(device.post_receive(black_box(queue), &receive));
    }
    let _ = black_box(device.announce(handle()));
}

/// Statistics.
#[inline(never)]
fn observe(device: &mut Device) {
    black_box(device.endpoint_statistics());
    black_box(device.connection_statistics(handle()));
    black_box(device.path_statistics(handle(), black_box(0)));
    black_box(device.agreed(handle()));
}

/// Every kind of datagram, read and written again.
fn wire_formats() {
    let received = [0; 256];
    let received = black_box(&received[..]);
    let mut written = [0; 256];
    let trailer = black_box(wire::Trailer::Crc32c);
    if let Ok(body) = wire::check(received, trailer)
        && let Ok(packet) = wire::decode(body)
        && let Ok(length) = packet.encode(black_box(&mut written[..]))
    {
        let _ = black_box(wire::seal(black_box(&mut written[..]), length, trailer));
    }
}
