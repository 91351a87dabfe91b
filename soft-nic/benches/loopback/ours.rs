//! This NIC: WRITEs of one size, and the round trip of a small one.

use crate::{Cores, Latency, Rate};
use metaroce_core::config::{ConnectionConfig, ControllerChoice};
use metaroce_core::memory::Access;
use metaroce_core::work::Status;
use metaroce_soft::{Buffer, Nic, NicBuilder};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What differs between runs.
#[derive(Clone, Copy)]
pub struct Settings {
    /// Payload bytes of a packet.
    pub payload: u16,
    /// Paths to spray over.
    pub paths: u8,
    /// Packets in a row on one path, if not as many as one send takes.
    pub run: Option<u8>,
    /// With the CRC32C.
    pub checksum: bool,
    /// No congestion control, to see what it costs.
    pub uncontrolled: bool,
}

impl Settings {
    fn builder(self) -> NicBuilder {
        Nic::builder()
            .plane("127.0.0.1:0".parse().expect("an address"))
            .payload_bytes(self.payload)
            .omit_checksum(!self.checksum)
    }

    fn connection(self, nic: &Nic) -> ConnectionConfig {
        let usual = nic.connection_config();
        let controller = if self.uncontrolled {
            ControllerChoice::None
        } else {
            usual.controller
        };
        ConnectionConfig {
            paths: self.paths,
            run: self.run.unwrap_or(usual.run),
            controller,
            ..usual
        }
    }
}

const WINDOW: usize = 1 << 20;
const DEPTH: u64 = 48;
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs `work` against a peer that makes progress on the first core until it is done.
fn with_peer<T>(
    settings: Settings,
    spin: Duration,
    cores: Cores,
    work: impl FnOnce(&Nic, &metaroce_soft::Connection, metaroce_core::RemoteAddress) -> T,
) -> T {
    let there = settings.builder().spin(spin).build().expect("a NIC");
    let buffer = Buffer::new(WINDOW).expect("memory");
    buffer.write_at(0, &vec![1; WINDOW]).expect("in bounds");
    let region = there.register(&buffer, Access::ALL).expect("a region");
    let (peer, remote) = (there.addresses().to_vec(), region.remote(0));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let done = &done;
        let server = scope.spawn(move || {
            cores.pin_first();
            while !done.load(Ordering::Relaxed) {
                there.progress_until(Some(Instant::now() + Duration::from_millis(20)), || {
                    done.load(Ordering::Relaxed)
                });
            }
            drop(region);
            there.statistics()
        });
        cores.pin_second();
        let here = settings
            .builder()
            .listen(false)
            .spin(spin)
            .build()
            .expect("a NIC");
        let connection = here
            .connect(&peer, settings.connection(&here), PATIENCE)
            .expect("a connection");
        let result = work(&here, &connection, remote);
        if std::env::var_os("METAROCE_BENCH_DETAILS").is_some() {
            eprintln!(
                "{:#?}\n{:?}",
                connection.statistics(),
                here.statistics().sockets
            );
            for path in 0..settings.paths {
                eprintln!("{:?}", connection.path_statistics(path));
            }
        }
        done.store(true, Ordering::Relaxed);
        here.shut_down(Duration::from_secs(1));
        let server = server.join().expect("the peer's thread");
        if std::env::var_os("METAROCE_BENCH_DETAILS").is_some() {
            eprintln!("{:?}", server.sockets);
        }
        result
    })
}

/// Writes `total` bytes in messages of `message` bytes.
pub fn throughput(settings: Settings, message: usize, total: u64, cores: Cores) -> Rate {
    with_peer(settings, Duration::MAX, cores, |nic, connection, remote| {
        let buffer = Buffer::new(WINDOW).expect("memory");
        buffer.write_at(0, &vec![2; WINDOW]).expect("in bounds");
        let region = nic.register(&buffer, Access::LOCAL_READ).expect("a region");
        let messages = total / message as u64;
        let slots = (WINDOW / message) as u64;
        let queue = nic.completions();
        let mut completions = Vec::with_capacity(128);
        let start = Instant::now();
        let (mut posted, mut done) = (0, 0);
        while done < messages {
            while posted < messages && posted - done < DEPTH {
                let offset = posted % slots * message as u64;
                let remote = metaroce_core::RemoteAddress {
                    address: remote.address + offset,
                    ..remote
                };
                connection
                    .write(0, posted, region.slice(offset, message as u32), remote)
                    .expect("posted");
                posted += 1;
            }
            nic.progress_until(None, || !queue.is_empty());
            completions.clear();
            queue.poll_into(&mut completions, 128);
            for completion in &completions {
                assert_eq!(completion.status, Status::Success);
            }
            done += completions.len() as u64;
        }
        Rate {
            bytes: done * message as u64,
            time: start.elapsed(),
        }
    })
}

/// Writes of `size` bytes, one at a time, until each is acknowledged. Both sides sleep in the kernel, or both spin.
pub fn round_trip(
    settings: Settings,
    size: usize,
    count: usize,
    spin: bool,
    cores: Cores,
) -> Latency {
    let spin = if spin { Duration::MAX } else { Duration::ZERO };
    with_peer(settings, spin, cores, |nic, connection, remote| {
        let buffer = Buffer::new(4096).expect("memory");
        let region = nic.register(&buffer, Access::LOCAL_READ).expect("a region");
        let mut latency = Latency::with_capacity(count);
        for id in 0..count as u64 {
            let start = Instant::now();
            connection
                .write(0, id, region.slice(0, size as u32), remote)
                .expect("posted");
            let completion = nic
                .completions()
                .wait(Some(PATIENCE))
                .expect("a completion");
            assert_eq!(completion.status, Status::Success);
            latency.record(start.elapsed());
        }
        latency
    })
}
