//! The NIC as the application holds it.

use crate::builder::{NicBuilder, connection_for};
use crate::completion::CompletionQueue;
use crate::connection::{Connection, Link, Phase};
use crate::error::Error;
use crate::fault::Direction;
use crate::memory::Buffer;
use crate::region::MemoryRegion;
use crate::shared::Shared;
use crate::statistics::NicStatistics;
use metaroce_core::CloseMode;
use metaroce_core::config::ConnectionConfig;
use metaroce_core::memory::Access;
use metaroce_core::work::{Event, ReceiveQueue, ReceiveRequest};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A NIC in software: planes, registered memory, connections.
///
/// Somebody has to make progress: a background thread ([`NicBuilder::background`]), or the application's own calls to
/// [`Self::progress`], [`Self::progress_until`], [`CompletionQueue::wait`] and the other calls that wait.
///
/// Dropping it aborts its connections; [`Self::shut_down`] lets them finish.
#[derive(Debug)]
pub struct Nic {
    shared: Arc<Shared>,
    completions: CompletionQueue,
    addresses: Vec<SocketAddr>,
    payload_bytes: u16,
    thread: Option<JoinHandle<()>>,
}

/// The code with which a NIC that goes away aborts its connections.
pub const ABORT_SHUT_DOWN: u16 = 1;

impl Nic {
    /// Settings to make a NIC from.
    #[must_use]
    pub fn builder() -> NicBuilder {
        NicBuilder::default()
    }

    pub(crate) fn start(
        shared: Arc<Shared>,
        completions: CompletionQueue,
        addresses: Vec<SocketAddr>,
        payload_bytes: u16,
        background: bool,
    ) -> Result<Self, Error> {
        let thread = if background {
            shared.set_background(true);
            let shared = shared.clone();
            let thread = std::thread::Builder::new()
                .name("metaroce-nic".to_owned())
                .spawn(move || shared.run());
            Some(thread.map_err(Error::system("starting the background thread"))?)
        } else {
            None
        };
        Ok(Self {
            shared,
            completions,
            addresses,
            payload_bytes,
            thread,
        })
    }

    /// Whether nothing happens any more, though it was not told to shut down: its thread ended by a panic.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.shared.is_stopped()
    }

    /// The address on which each plane receives.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Most payload of a packet.
    #[must_use]
    pub fn payload_bytes(&self) -> u16 {
        self.payload_bytes
    }

    /// Settings of a connection that suit this NIC's sockets and packets.
    #[must_use]
    pub fn connection_config(&self) -> ConnectionConfig {
        connection_for(self.payload_bytes)
    }

    /// The queue to which connections report unless told otherwise.
    #[must_use]
    pub fn completions(&self) -> &CompletionQueue {
        &self.completions
    }

    /// Another completion queue.
    ///
    /// # Errors
    /// [`Error::System`] if no descriptor is to be had.
    pub fn create_queue(&self) -> Result<CompletionQueue, Error> {
        let queue = CompletionQueue::new().map_err(Error::system("eventfd"))?;
        queue.attach(&self.shared);
        Ok(queue)
    }

    /// Registers a buffer.
    ///
    /// # Errors
    /// [`Error::Region`] if all region slots are taken.
    pub fn register(&self, buffer: &Buffer, access: Access) -> Result<MemoryRegion, Error> {
        let (base, length) = (buffer.as_ptr() as u64, buffer.len() as u64);
        let mut driver = self.shared.lock();
        let region = driver.core.register(base, length, access)?;
        driver.memory.insert(region.index, buffer);
        Ok(MemoryRegion {
            shared: self.shared.clone(),
            region,
            base,
            length,
            buffer: Some(buffer.clone()),
        })
    }

    /// Registers memory of somebody else's making.
    ///
    /// # Errors
    /// As [`Self::register`].
    ///
    /// # Safety
    /// Until the region is dropped, `start` must be valid for reads and writes of `length` bytes from any thread, and
    /// no Rust reference to those bytes may be used while peers or this NIC access them.
    pub unsafe fn register_raw(
        &self,
        start: *mut u8,
        length: usize,
        access: Access,
    ) -> Result<MemoryRegion, Error> {
        let (base, bytes) = (start as u64, length as u64);
        let mut driver = self.shared.lock();
        let region = driver.core.register(base, bytes, access)?;
        // SAFETY: the caller promises exactly what is asked for, until the region is dropped, which removes it.
        unsafe { driver.memory.insert_raw(region.index, start, length) };
        Ok(MemoryRegion {
            shared: self.shared.clone(),
            region,
            base,
            length: bytes,
            buffer: None,
        })
    }

    /// Starts to connect to a peer, given its address on each plane. [`Connection::phase`] tells how it goes.
    ///
    /// # Errors
    /// [`Error::Connect`] if the connection table is full or the addresses do not fit the planes.
    pub fn start_connect(
        &self,
        peer: &[SocketAddr],
        config: ConnectionConfig,
    ) -> Result<Connection, Error> {
        if self.shared.is_stopped() {
            return Err(Error::ShutDown);
        }
        let mut driver = self.shared.lock();
        let now = driver.clock.now();
        let handle = driver
            .core
            .connect(now, peer, config)
            .map_err(Error::Connect)?;
        let link = Arc::new(Link::new(handle, config.service, self.completions.clone()));
        driver.links.insert(handle, link.clone());
        self.shared.posted(&mut driver);
        Ok(Connection {
            shared: self.shared.clone(),
            link,
        })
    }

    /// Connects to a peer and waits until it is done.
    ///
    /// # Errors
    /// As [`Self::start_connect`]; [`Error::Closed`] if the peer refused or no path answers; [`Error::TimedOut`]; [`Error::ShutDown`].
    pub fn connect(
        &self,
        peer: &[SocketAddr],
        config: ConnectionConfig,
        timeout: Duration,
    ) -> Result<Connection, Error> {
        let connection = self.start_connect(peer, config)?;
        let link = connection.link.clone();
        self.shared.wait_until(Some(Instant::now() + timeout), |_| {
            link.phase() != Phase::Opening
        });
        match link.phase() {
            Phase::Open => Ok(connection),
            Phase::Closed(reason) => Err(Error::Closed(reason)),
            Phase::Opening => {
                // The only error is that it is gone already.
                let _ = connection.close(CloseMode::Abort(ABORT_SHUT_DOWN));
                Err(self.shared.in_vain("connecting", timeout))
            }
        }
    }

    /// Takes a connection that a peer made, waiting for it up to `timeout` (`None`: for ever).
    ///
    /// A connection is there when its initiator was heard after it was accepted: somebody must drive the initiator, too.
    ///
    /// # Errors
    /// [`Error::TimedOut`], or [`Error::ShutDown`].
    pub fn accept(&self, timeout: Option<Duration>) -> Result<Connection, Error> {
        let mut taken = None;
        self.shared
            .wait_until(timeout.map(|timeout| Instant::now() + timeout), |driver| {
                taken = driver.accepted.pop_front();
                taken.is_some()
            });
        match taken {
            Some(link) => Ok(Connection {
                shared: self.shared.clone(),
                link,
            }),
            None => {
                let after = timeout.unwrap_or_default();
                Err(self.shared.in_vain("waiting for a connection", after))
            }
        }
    }

    /// Takes a connection that a peer made, if there is one.
    #[must_use]
    pub fn try_accept(&self) -> Option<Connection> {
        let link = self.shared.lock().accepted.pop_front()?;
        Some(Connection {
            shared: self.shared.clone(),
            link,
        })
    }

    /// Posts a buffer to a receive queue that streams share.
    ///
    /// # Errors
    /// [`Error::Post`].
    pub fn post_shared_receive(&self, queue: u8, receive: &ReceiveRequest) -> Result<(), Error> {
        let mut driver = self.shared.lock();
        driver
            .core
            .post_receive(ReceiveQueue::Shared(queue), receive)?;
        self.shared.posted(&mut driver);
        Ok(())
    }

    /// Takes one event other than a completion, if there is one. Events that nobody takes are dropped, oldest first.
    #[must_use]
    pub fn poll_event(&self) -> Option<Event> {
        self.shared.lock().events.pop_front()
    }

    /// One pass: receives, sends, reports. Returns whether there was anything to do. Never sleeps.
    pub fn progress(&self) -> bool {
        self.shared.progress()
    }

    /// Makes progress until `done` or the deadline (`None`: for ever), sleeping when there is nothing to do.
    /// Returns whether it was `done`.
    pub fn progress_until(&self, deadline: Option<Instant>, done: impl FnMut() -> bool) -> bool {
        self.shared.progress_until_unlocked(deadline, done)
    }

    /// For an event loop: makes progress, and returns how long to sleep at most before the next call. Meanwhile the
    /// loop watches [`Self::descriptors`] for input.
    #[must_use]
    pub fn prepare_sleep(&self) -> Option<Duration> {
        while self.shared.progress() {}
        let mut driver = self.shared.lock();
        let now = driver.clock.now();
        driver
            .next_time()
            .map(|at| Duration::from_nanos(at.since(now).as_nanos()))
    }

    /// The descriptors on which datagrams come in, one per plane.
    #[must_use]
    pub fn descriptors(&self) -> Vec<std::os::fd::BorrowedFd<'_>> {
        self.shared.descriptors()
    }

    /// The NIC's figures.
    #[must_use]
    pub fn statistics(&self) -> NicStatistics {
        let driver = self.shared.lock();
        let faults = |direction| {
            driver
                .faulty
                .as_ref()
                .map(|faulty| faulty.counts(direction))
                .unwrap_or_default()
        };
        NicStatistics {
            endpoint: *driver.core.endpoint_statistics(),
            sockets: driver.counts,
            faults_outgoing: faults(Direction::Outgoing),
            faults_incoming: faults(Direction::Incoming),
            connections: driver.links.len(),
            source_ports: driver
                .senders
                .iter()
                .map(crate::socket::Senders::count)
                .sum(),
            events_lost: driver.events_lost,
        }
    }

    /// Closes all connections after what is posted is done; aborts those that are not through after `timeout`.
    /// Returns whether all were.
    pub fn shut_down(mut self, timeout: Duration) -> bool {
        self.close_all(CloseMode::Drain);
        let drained = self
            .shared
            .wait_until(Some(Instant::now() + timeout), |driver| {
                driver.links.is_empty()
            });
        self.abort();
        drained
    }

    fn close_all(&self, mode: CloseMode) {
        let mut driver = self.shared.lock();
        let now = driver.clock.now();
        let handles: Vec<_> = driver.links.keys().copied().collect();
        for handle in handles {
            // The only error is that it is closing already.
            let _ = driver.core.close(now, handle, mode);
        }
        self.shared.posted(&mut driver);
    }

    /// Aborts what is left, tells the peers, and ends the thread.
    fn abort(&mut self) {
        if self.shared.is_stopped() {
            return;
        }
        self.close_all(CloseMode::Abort(ABORT_SHUT_DOWN));
        self.shared.progress();
        self.shared.stop();
        if let Some(thread) = self.thread.take() {
            // It does not panic; if it did there is nothing to be done about it here.
            let _ = thread.join();
        }
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        self.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    #[test]
    fn nobody_waits_for_a_thread_that_a_bug_has_ended() {
        let nic = Nic::builder()
            .plane((IpAddr::V4(Ipv4Addr::LOCALHOST), 0).into())
            .build()
            .unwrap();
        let silent = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let peer = [silent.local_addr().unwrap()];
        let long = Duration::from_secs(3_600);
        let patient = ConnectionConfig {
            failure_timeout: metaroce_core::Duration::from_millis(3_600_000),
            ..nic.connection_config()
        };
        let opening = nic.start_connect(&peer, patient).unwrap();
        std::thread::scope(|scope| {
            let accepting = scope.spawn(|| nic.accept(None));
            let waiting = scope.spawn(|| nic.completions().wait(None));
            let connecting = scope.spawn(|| nic.connect(&peer, patient, long));
            let closing = scope.spawn(|| opening.wait_closed(long));
            let ended = scope.spawn(|| nic.shared.or_stop(|| panic!("planted")));
            assert!(ended.join().is_err());
            assert!(matches!(accepting.join().unwrap(), Err(Error::ShutDown)));
            assert!(waiting.join().unwrap().is_none());
            assert!(matches!(connecting.join().unwrap(), Err(Error::ShutDown)));
            assert!(matches!(closing.join().unwrap(), Err(Error::ShutDown)));
        });
        assert!(nic.is_shut_down());
    }
}
