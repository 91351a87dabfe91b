//! A connection of the software NIC.

use crate::endpoint::Bytes;
use crate::nic::Nic;
use crate::values::{Completion, LocalSlice, RemoteAddress, Status};
use crate::waiting::{deadline, next_look};
use crate::{errors, events, statistics};
use metaroce_core::{
    CloseMode, LocalSlice as CoreSlice, Operation, ReceiveRequest, WorkFlags, WorkRequest,
};
use metaroce_soft::{CompletionQueue, Connection as SoftConnection, Error, Phase};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A connection to a peer. `post_...` return at once, with the operation's number for `wait`; the others wait.
#[pyclass(frozen, module = "metaroce")]
pub struct Connection {
    connection: SoftConnection,
    queue: CompletionQueue,
    operations: Mutex<Operations>,
    next: AtomicU64,
    /// Without its NIC a connection ends: it is kept.
    nic: Py<Nic>,
}

/// What was posted and whose end nobody has taken yet.
#[derive(Default)]
struct Operations {
    under_way: HashSet<u64>,
    /// Ends that others wait for than took them from the queue.
    ended: BTreeMap<u64, Completion>,
}

impl Operations {
    /// Notes an end.
    fn end(&mut self, completion: Completion) {
        self.under_way.remove(&completion.id);
        self.ended.insert(completion.id, completion);
    }

    /// The end of an operation, if it has ended.
    ///
    /// # Errors
    /// If there is no such operation, so that no end would ever come.
    fn take(&mut self, id: u64) -> PyResult<Option<Completion>> {
        let ended = self.ended.remove(&id);
        if ended.is_none() && !self.under_way.contains(&id) {
            let message = format!(
                "id: there is no operation {id} to be waited for: it was never posted, or its end was taken already"
            );
            return Err(PyValueError::new_err(message));
        }
        Ok(ended)
    }
}

impl Connection {
    pub fn new(connection: SoftConnection, queue: CompletionQueue, nic: Py<Nic>) -> Self {
        Self {
            connection,
            queue,
            operations: Mutex::default(),
            next: AtomicU64::new(1),
            nic,
        }
    }

    fn post(&self, py: Python<'_>, stream: u16, operation: Operation<'_>) -> PyResult<u64> {
        self.numbered(py, |id| {
            let work = WorkRequest {
                id,
                operation,
                flags: WorkFlags::default(),
            };
            self.connection.post(stream, &work)
        })
    }

    /// Posts something under the next number.
    fn numbered(
        &self,
        py: Python<'_>,
        post: impl FnOnce(u64) -> Result<(), Error>,
    ) -> PyResult<u64> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        // Before it can end, and somebody take its end.
        self.operations().under_way.insert(id);
        post(id).map_err(|error| {
            self.operations().under_way.remove(&id);
            self.refused(py, &error)
        })?;
        Ok(id)
    }

    fn operations(&self) -> MutexGuard<'_, Operations> {
        self.operations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, py: Python<'_>, slice: LocalSlice) -> PyResult<CoreSlice> {
        self.nic.get().place(py, slice)
    }

    /// Why something was not taken: if the connection is over, rather that.
    fn refused(&self, py: Python<'_>, error: &Error) -> PyErr {
        match self.connection.phase() {
            Phase::Closed(reason) => errors::nic(py, &Error::Closed(reason)),
            _ => errors::nic(py, error),
        }
    }

    /// The end of an operation, whatever it was.
    fn end(&self, py: Python<'_>, id: u64, timeout: Option<f64>) -> PyResult<Completion> {
        let until = deadline(timeout)?;
        loop {
            if let Some(completion) = self.operations().take(id)? {
                return Ok(completion);
            }
            // The last completions of a connection come before its end.
            let over = self.connection.phase();
            let look = next_look(until);
            let came = py.detach(|| {
                look.map_or_else(|| self.queue.poll(), |look| self.queue.wait(Some(look)))
            });
            // It may be another's, and this one's be the next.
            let more = came.is_some();
            if let Some(completion) = came {
                self.operations().end(completion.into());
            }
            if let Some(completion) = self.operations().take(id)? {
                return Ok(completion);
            }
            py.check_signals()?;
            if more {
                continue;
            }
            if let Phase::Closed(reason) = over {
                return Err(errors::nic(py, &Error::Closed(reason)));
            }
            if self.nic.get().is_closed() {
                return Err(errors::nic(py, &Error::ShutDown));
            }
            if look.is_none() {
                let message = format!(
                    "operation {id} took longer than {} s",
                    timeout.unwrap_or(0.0)
                );
                return Err(errors::raise(py, "TimedOut", (message, id)));
            }
        }
    }
}

#[pymethods]
impl Connection {
    /// The connection's handle, as it is in completions and events.
    #[getter]
    fn handle(&self) -> u32 {
        self.connection.handle().to_bits()
    }

    /// The number that the initiator gave.
    #[getter]
    fn service(&self) -> u32 {
        self.connection.service()
    }

    /// `opening`, `open`, or why it ended.
    #[getter]
    fn state(&self) -> String {
        match self.connection.phase() {
            Phase::Opening => "opening".to_owned(),
            Phase::Open => "open".to_owned(),
            Phase::Closed(reason) => events::reason(reason),
        }
    }

    /// Posts a write to the peer's memory.
    #[pyo3(signature = (local, remote, *, stream=0, immediate=None))]
    fn post_write(
        &self,
        py: Python<'_>,
        local: Bytes<'_>,
        remote: RemoteAddress,
        stream: u16,
        immediate: Option<u32>,
    ) -> PyResult<u64> {
        let operation = Operation::Write {
            local: local.source(|slice| self.place(py, slice))?,
            remote: remote.core(),
            immediate,
        };
        self.post(py, stream, operation)
    }

    /// Posts a send to the buffer that the peer posted.
    #[pyo3(signature = (local, *, stream=0, immediate=None))]
    fn post_send(
        &self,
        py: Python<'_>,
        local: Bytes<'_>,
        stream: u16,
        immediate: Option<u32>,
    ) -> PyResult<u64> {
        let operation = Operation::Send {
            local: local.source(|slice| self.place(py, slice))?,
            immediate,
        };
        self.post(py, stream, operation)
    }

    /// Posts a read of the peer's memory.
    #[pyo3(signature = (local, remote, *, stream=0))]
    fn post_read(
        &self,
        py: Python<'_>,
        local: LocalSlice,
        remote: RemoteAddress,
        stream: u16,
    ) -> PyResult<u64> {
        let operation = Operation::Read {
            local: self.place(py, local)?,
            remote: remote.core(),
        };
        self.post(py, stream, operation)
    }

    /// Posts an addition to a word of the peer's memory; the word as it was comes to `local`.
    #[pyo3(signature = (local, remote, add, *, stream=0))]
    fn post_fetch_add(
        &self,
        py: Python<'_>,
        local: LocalSlice,
        remote: RemoteAddress,
        add: u64,
        stream: u16,
    ) -> PyResult<u64> {
        let operation = Operation::FetchAdd {
            local: self.place(py, local)?,
            remote: remote.core(),
            add,
        };
        self.post(py, stream, operation)
    }

    /// Posts the replacement of a word of the peer's memory if it is `compare`; the word as it was comes to `local`.
    #[pyo3(signature = (local, remote, compare, swap, *, stream=0))]
    fn post_compare_swap(
        &self,
        py: Python<'_>,
        local: LocalSlice,
        remote: RemoteAddress,
        compare: u64,
        swap: u64,
        stream: u16,
    ) -> PyResult<u64> {
        let operation = Operation::CompareSwap {
            local: self.place(py, local)?,
            remote: remote.core(),
            compare,
            swap,
        };
        self.post(py, stream, operation)
    }

    /// Posts a buffer for a message to come.
    #[pyo3(signature = (local, *, stream=0))]
    fn post_receive(&self, py: Python<'_>, local: LocalSlice, stream: u16) -> PyResult<u64> {
        let local = self.place(py, local)?;
        self.numbered(py, |id| {
            self.connection
                .post_receive(stream, &ReceiveRequest { id, local })
        })
    }

    /// Waits for the end of an operation or receive.
    #[pyo3(signature = (id, *, timeout=5.0))]
    fn wait(&self, py: Python<'_>, id: u64, timeout: Option<f64>) -> PyResult<Completion> {
        let completion = self.end(py, id, timeout)?;
        if completion.status == Status::Success {
            Ok(completion)
        } else {
            Err(errors::raise(py, "OperationError", (completion,)))
        }
    }

    /// The next operation or receive that has ended, if there is one, however it ended.
    fn poll(&self) -> Option<Completion> {
        let mut operations = self.operations();
        if let Some(completion) = self.queue.poll() {
            operations.end(completion.into());
        }
        operations
            .ended
            .pop_first()
            .map(|(_, completion)| completion)
    }

    /// Writes to the peer's memory and waits until it is done.
    #[pyo3(signature = (local, remote, *, stream=0, immediate=None, timeout=5.0))]
    fn write(
        &self,
        py: Python<'_>,
        local: Bytes<'_>,
        remote: RemoteAddress,
        stream: u16,
        immediate: Option<u32>,
        timeout: Option<f64>,
    ) -> PyResult<Completion> {
        let id = self.post_write(py, local, remote, stream, immediate)?;
        self.wait(py, id, timeout)
    }

    /// Sends to the buffer that the peer posted and waits until it is done.
    #[pyo3(signature = (local, *, stream=0, immediate=None, timeout=5.0))]
    fn send(
        &self,
        py: Python<'_>,
        local: Bytes<'_>,
        stream: u16,
        immediate: Option<u32>,
        timeout: Option<f64>,
    ) -> PyResult<Completion> {
        let id = self.post_send(py, local, stream, immediate)?;
        self.wait(py, id, timeout)
    }

    /// Reads the peer's memory and waits until it is done.
    #[pyo3(signature = (local, remote, *, stream=0, timeout=5.0))]
    fn read(
        &self,
        py: Python<'_>,
        local: LocalSlice,
        remote: RemoteAddress,
        stream: u16,
        timeout: Option<f64>,
    ) -> PyResult<Completion> {
        let id = self.post_read(py, local, remote, stream)?;
        self.wait(py, id, timeout)
    }

    /// Adds to a word of the peer's memory and waits until it is done.
    #[pyo3(signature = (local, remote, add, *, stream=0, timeout=5.0))]
    fn fetch_add(
        &self,
        py: Python<'_>,
        local: LocalSlice,
        remote: RemoteAddress,
        add: u64,
        stream: u16,
        timeout: Option<f64>,
    ) -> PyResult<Completion> {
        let id = self.post_fetch_add(py, local, remote, add, stream)?;
        self.wait(py, id, timeout)
    }

    /// Replaces a word of the peer's memory if it is `compare`, and waits until it is done.
    #[pyo3(signature = (local, remote, compare, swap, *, stream=0, timeout=5.0))]
    #[allow(clippy::too_many_arguments)]
    fn compare_swap(
        &self,
        py: Python<'_>,
        local: LocalSlice,
        remote: RemoteAddress,
        compare: u64,
        swap: u64,
        stream: u16,
        timeout: Option<f64>,
    ) -> PyResult<Completion> {
        let id = self.post_compare_swap(py, local, remote, compare, swap, stream)?;
        self.wait(py, id, timeout)
    }

    /// Posts a buffer and waits for the message that comes to it.
    #[pyo3(signature = (local, *, stream=0, timeout=5.0))]
    fn receive(
        &self,
        py: Python<'_>,
        local: LocalSlice,
        stream: u16,
        timeout: Option<f64>,
    ) -> PyResult<Completion> {
        let id = self.post_receive(py, local, stream)?;
        self.wait(py, id, timeout)
    }

    /// Ends the connection after everything posted is done, or at once with a code for the peer, and waits until it has ended.
    /// Returns why it did.
    #[pyo3(signature = (*, abort=None, timeout=5.0))]
    fn close(&self, py: Python<'_>, abort: Option<u16>, timeout: Option<f64>) -> PyResult<String> {
        let mode = abort.map_or(CloseMode::Drain, CloseMode::Abort);
        if !matches!(self.connection.phase(), Phase::Closed(_)) {
            let closing = self.connection.close(mode);
            closing.map_err(|error| self.refused(py, &error))?;
        }
        self.wait_closed(py, timeout)
    }

    /// Waits until the connection has ended. Returns why it did.
    #[pyo3(signature = (*, timeout=5.0))]
    fn wait_closed(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<String> {
        let until = deadline(timeout)?;
        loop {
            let look = next_look(until).unwrap_or_default();
            match py.detach(|| self.connection.wait_closed(look)) {
                Ok(reason) => return Ok(events::reason(reason)),
                Err(_) if look.is_zero() => {
                    let message = format!("closing took longer than {} s", timeout.unwrap_or(0.0));
                    return Err(errors::text(py, "TimedOut", message));
                }
                Err(_) if self.nic.get().is_closed() => {
                    return Err(errors::nic(py, &Error::ShutDown));
                }
                Err(_) => py.check_signals()?,
            }
        }
    }

    /// The connection's counters; after its end, the last.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.connection.statistics();
        found
            .map(|all| statistics::connection(py, &all))
            .transpose()
    }

    /// A path's counters, while the connection exists.
    fn path_statistics<'py>(
        &self,
        py: Python<'py>,
        path: u8,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.connection.path_statistics(path);
        found.map(|all| statistics::path(py, &all)).transpose()
    }

    fn __repr__(&self) -> String {
        format!("Connection({:#x}, {})", self.handle(), self.state())
    }
}
