//! A connection as the application holds it.

use crate::completion::{CompletionQueue, QUEUE_CAPACITY};
use crate::error::Error;
use crate::shared::Shared;
use metaroce_core::CloseMode;
use metaroce_core::memory::{LocalSlice, RemoteAddress};
use metaroce_core::stats::{ConnectionStatistics, PathStatistics};
use metaroce_core::work::{
    CloseReason, ConnectionHandle, Operation, ReceiveQueue, ReceiveRequest, Source, WorkFlags,
    WorkRequest,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Where a connection is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Being set up.
    Opening,
    /// Ready for work.
    Open,
    /// Over, and why.
    Closed(CloseReason),
}

/// What the driver and the application both know of a connection.
#[derive(Debug)]
pub(crate) struct Link {
    pub handle: ConnectionHandle,
    pub service: u32,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// The figures at the end.
    last: Option<ConnectionStatistics>,
    default: Queues,
    streams: HashMap<u16, Queues>,
}

#[derive(Clone, Debug)]
struct Queues {
    send: CompletionQueue,
    receive: CompletionQueue,
}

impl Link {
    pub(crate) fn new(handle: ConnectionHandle, service: u32, queue: CompletionQueue) -> Self {
        let default = Queues {
            send: queue.clone(),
            receive: queue,
        };
        Self {
            handle,
            service,
            state: Mutex::new(State {
                phase: Phase::Opening,
                last: None,
                default,
                streams: HashMap::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state().phase
    }

    pub(crate) fn open(&self) {
        self.state().phase = Phase::Open;
    }

    pub(crate) fn close(&self, reason: CloseReason, last: Option<ConnectionStatistics>) {
        let mut state = self.state();
        state.phase = Phase::Closed(reason);
        state.last = last;
    }

    pub(crate) fn queue(&self, stream: u16, receive: bool) -> CompletionQueue {
        let state = self.state();
        let queues = state.streams.get(&stream).unwrap_or(&state.default);
        if receive {
            queues.receive.clone()
        } else {
            queues.send.clone()
        }
    }
}

/// A connection to a peer. Clones are the same connection; dropping them does not close it.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(crate) shared: Arc<Shared>,
    pub(crate) link: Arc<Link>,
}

impl Connection {
    /// The connection's handle, as it is in completions and events.
    #[must_use]
    pub fn handle(&self) -> ConnectionHandle {
        self.link.handle
    }

    /// The application number that the initiator gave.
    #[must_use]
    pub fn service(&self) -> u32 {
        self.link.service
    }

    /// Where the connection is in its life.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.link.phase()
    }

    /// Reports completions to these queues instead of the NIC's own: of operations, and of receives.
    pub fn set_queues(&self, send: &CompletionQueue, receive: &CompletionQueue) {
        self.link.state().default = Queues {
            send: send.clone(),
            receive: receive.clone(),
        };
    }

    /// The same for one stream only.
    pub fn set_stream_queues(
        &self,
        stream: u16,
        send: &CompletionQueue,
        receive: &CompletionQueue,
    ) {
        self.link.state().streams.insert(
            stream,
            Queues {
                send: send.clone(),
                receive: receive.clone(),
            },
        );
    }

    /// Posts an operation on a stream.
    ///
    /// Without a background thread it is sent by the next progress on the NIC.
    ///
    /// # Errors
    /// [`Error::Post`] with the core's reason, or [`Error::CompletionQueueFull`].
    pub fn post(&self, stream: u16, work: &WorkRequest<'_>) -> Result<(), Error> {
        self.post_all(stream, std::slice::from_ref(work))
            .map_err(|(_, error)| error)
    }

    /// Posts several operations on a stream under one lock.
    ///
    /// # Errors
    /// As [`Self::post`], with how many were posted before the one that was refused.
    pub fn post_all(&self, stream: u16, work: &[WorkRequest<'_>]) -> Result<(), (usize, Error)> {
        self.room(stream, false).map_err(|error| (0, error))?;
        let mut driver = self.shared.lock();
        let now = driver.clock.now();
        let result = work.iter().enumerate().try_for_each(|(index, request)| {
            let posted = driver.core.post(now, self.link.handle, stream, request);
            posted.map_err(|error| (index, error.into()))
        });
        self.shared.posted(&mut driver);
        result
    }

    fn room(&self, stream: u16, receive: bool) -> Result<(), Error> {
        if self.shared.is_stopped() {
            return Err(Error::ShutDown);
        }
        let unpolled = self.link.queue(stream, receive).len();
        if unpolled < QUEUE_CAPACITY {
            Ok(())
        } else {
            Err(Error::CompletionQueueFull { unpolled })
        }
    }

    /// Writes a slice of a registered region to the peer's memory.
    ///
    /// # Errors
    /// As [`Self::post`].
    pub fn write(
        &self,
        stream: u16,
        id: u64,
        local: LocalSlice,
        remote: RemoteAddress,
    ) -> Result<(), Error> {
        self.simple(
            stream,
            id,
            Operation::Write {
                local: Source::Region(local),
                remote,
                immediate: None,
            },
        )
    }

    /// Reads the peer's memory into a slice of a registered region.
    ///
    /// # Errors
    /// As [`Self::post`].
    pub fn read(
        &self,
        stream: u16,
        id: u64,
        local: LocalSlice,
        remote: RemoteAddress,
    ) -> Result<(), Error> {
        self.simple(stream, id, Operation::Read { local, remote })
    }

    /// Sends a slice of a registered region to the buffer that the peer posted.
    ///
    /// # Errors
    /// As [`Self::post`].
    pub fn send(&self, stream: u16, id: u64, local: LocalSlice) -> Result<(), Error> {
        self.simple(
            stream,
            id,
            Operation::Send {
                local: Source::Region(local),
                immediate: None,
            },
        )
    }

    fn simple(&self, stream: u16, id: u64, operation: Operation<'_>) -> Result<(), Error> {
        self.post(
            stream,
            &WorkRequest {
                id,
                operation,
                flags: WorkFlags::default(),
            },
        )
    }

    /// Posts a buffer for a message to come on a stream.
    ///
    /// # Errors
    /// As [`Self::post`].
    pub fn post_receive(&self, stream: u16, receive: &ReceiveRequest) -> Result<(), Error> {
        self.room(stream, true)?;
        let mut driver = self.shared.lock();
        driver
            .core
            .post_receive(ReceiveQueue::Stream(self.link.handle, stream), receive)?;
        self.shared.posted(&mut driver);
        Ok(())
    }

    /// Lets a stream take its receive buffers from a shared queue. To be done before it receives anything.
    ///
    /// # Errors
    /// [`Error::Post`].
    pub fn attach_shared_queue(&self, stream: u16, queue: u8) -> Result<(), Error> {
        let mut driver = self.shared.lock();
        Ok(driver
            .core
            .attach_shared_queue(self.link.handle, stream, queue)?)
    }

    /// Asks the peer for a share of its capacity ahead of a burst.
    ///
    /// # Errors
    /// [`Error::Post`].
    pub fn announce(&self) -> Result<(), Error> {
        let mut driver = self.shared.lock();
        driver.core.announce(self.link.handle)?;
        self.shared.posted(&mut driver);
        Ok(())
    }

    /// Starts closing: after everything posted is done, or at once.
    ///
    /// # Errors
    /// [`Error::Post`] if there is nothing to close any more.
    pub fn close(&self, mode: CloseMode) -> Result<(), Error> {
        let mut driver = self.shared.lock();
        let now = driver.clock.now();
        driver.core.close(now, self.link.handle, mode)?;
        self.shared.posted(&mut driver);
        Ok(())
    }

    /// Waits until the connection is over and says why it ended.
    ///
    /// # Errors
    /// [`Error::TimedOut`], or [`Error::ShutDown`].
    pub fn wait_closed(&self, timeout: Duration) -> Result<CloseReason, Error> {
        let mut reason = None;
        self.shared.wait_until(Some(Instant::now() + timeout), |_| {
            if let Phase::Closed(why) = self.link.phase() {
                reason = Some(why);
            }
            reason.is_some()
        });
        reason.ok_or_else(|| self.shared.in_vain("closing the connection", timeout))
    }

    /// The connection's figures; after its end, the last.
    #[must_use]
    pub fn statistics(&self) -> Option<ConnectionStatistics> {
        let now = self
            .shared
            .lock()
            .core
            .connection_statistics(self.link.handle);
        now.or_else(|| self.link.state().last)
    }

    /// A path's figures, while the connection exists.
    #[must_use]
    pub fn path_statistics(&self, path: u8) -> Option<PathStatistics> {
        self.shared
            .lock()
            .core
            .path_statistics(self.link.handle, path)
    }
}
