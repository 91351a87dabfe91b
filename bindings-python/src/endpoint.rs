//! The core, stepped by hand: bytes and integer time in and out.

use crate::core::{Core, with};
use crate::region::{self, Region, Regions};
use crate::values::{LocalSlice, RemoteAddress};
use crate::{errors, events, settings, statistics};
use metaroce_core::work::{CloseMode, INLINE_BYTES, PostError};
use metaroce_core::{
    Class, ConnectionConfig, ConnectionHandle, DropReason, Ecn, HEADER_BUFFER, Instant,
    LocalSlice as CoreSlice, Operation, ReceiveMeta, ReceiveQueue, ReceiveRequest, Source,
    WorkFlags, WorkRequest,
};
use metaroce_soft::memory::RegionMap;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// Most bytes in front of and behind a payload.
const AROUND: usize = 52;

/// A datagram to be sent.
#[pyclass(frozen, get_all, module = "metaroce")]
pub struct Datagram {
    /// Its bytes.
    data: Py<PyBytes>,
    /// Where to: address and port.
    destination: String,
    /// By which plane.
    plane: u8,
    /// Index of its UDP source port.
    entropy: u16,
    /// Its ECN bits.
    ecn: u8,
    /// It may travel in a higher class than data.
    control: bool,
    /// The handle of its connection, if it is of one.
    connection: Option<u32>,
}

#[pymethods]
impl Datagram {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let length = self.data.bind(py).len()?;
        Ok(format!(
            "Datagram({length} bytes to {}, plane={}, entropy={})",
            self.destination, self.plane, self.entropy
        ))
    }
}

/// Bytes to be sent: a place in a region, or a few bytes that are copied.
pub enum Bytes<'py> {
    Slice(LocalSlice),
    Inline(Bound<'py, PyBytes>),
}

impl<'py> FromPyObject<'_, 'py> for Bytes<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(slice) = object.extract() {
            return Ok(Self::Slice(slice));
        }
        let expected = format!(
            "a slice of a region (region[:]), or bytes, {INLINE_BYTES} at most, is expected, not"
        );
        match object.cast::<PyBytes>() {
            Ok(bytes) if bytes.as_bytes().len() <= INLINE_BYTES => {
                Ok(Self::Inline(bytes.to_owned()))
            }
            Ok(bytes) => {
                let length = bytes.as_bytes().len();
                Err(PyValueError::new_err(format!("{expected} {length} bytes")))
            }
            Err(_) => {
                let kind = object.get_type().name()?;
                Err(PyTypeError::new_err(format!("{expected} {kind}")))
            }
        }
    }
}

impl Bytes<'_> {
    /// Where they are, `place` telling where a slice is.
    pub fn source(
        &self,
        place: impl FnOnce(LocalSlice) -> PyResult<CoreSlice>,
    ) -> PyResult<Source<'_>> {
        Ok(match self {
            Self::Slice(slice) => Source::Region(place(*slice)?),
            Self::Inline(bytes) => Source::Inline(bytes.as_bytes()),
        })
    }
}

/// An endpoint that does nothing by itself: whoever has it hands it datagrams and the time, in nanoseconds of a clock of their
/// choice, and takes from it datagrams, events, and the time of the next call.
#[pyclass(module = "metaroce")]
pub struct Endpoint {
    core: Core,
    memory: RegionMap,
    /// The regions keep the memory that `memory` points to.
    regions: Regions,
    default: ConnectionConfig,
    buffer: Vec<u8>,
}

impl Endpoint {
    fn place(&self, py: Python<'_>, slice: LocalSlice) -> PyResult<CoreSlice> {
        region::place(&self.regions, slice).ok_or_else(|| region::misplaced(py, slice))
    }

    fn posted(py: Python<'_>, result: Result<(), PostError>) -> PyResult<()> {
        result.map_err(|error| errors::text(py, "PostError", error))
    }

    fn post(
        &mut self,
        py: Python<'_>,
        now_ns: u64,
        place: (u32, u16, u64),
        operation: Operation<'_>,
        flags: WorkFlags,
    ) -> PyResult<()> {
        let (connection, stream, id) = place;
        let work = WorkRequest {
            id,
            operation,
            flags,
        };
        let connection = ConnectionHandle::from_bits(connection);
        let now = Instant::from_nanos(now_ns);
        Self::posted(
            py,
            with!(&mut self.core, core => core.post(now, connection, stream, &work)),
        )
    }
}

#[pymethods]
impl Endpoint {
    #[new]
    #[pyo3(signature = (addresses, *, secret, profile="large", connections=None, accept=None, **settings))]
    fn new(
        py: Python<'_>,
        addresses: settings::Addresses,
        secret: [u8; 32],
        profile: &str,
        connections: Option<usize>,
        accept: Option<&Bound<'_, PyDict>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let config = settings::endpoint(py, &addresses.0, settings)?;
        let default = settings::connection(ConnectionConfig::default(), accept)?;
        let made = match profile {
            "small" => Core::small(config, default, secret, connections.unwrap_or(2)),
            "large" => Core::large(config, default, secret, connections.unwrap_or(64)),
            other => {
                let message = format!("profile: \"small\" or \"large\" is expected, not {other:?}");
                return Err(errors::text(py, "ConfigError", message));
            }
        };
        let core = made.map_err(|error| errors::text(py, "ConfigError", error))?;
        let room = HEADER_BUFFER.max(usize::from(config.payload_bytes) + AROUND);
        Ok(Self {
            core,
            memory: RegionMap::default(),
            regions: Regions::new(),
            default,
            buffer: vec![0; room],
        })
    }

    /// Registers the memory of an object with a writable buffer, or so many new bytes.
    #[pyo3(signature = (memory, access="rwRWA", base=None))]
    fn register(
        slf: &Bound<'_, Self>,
        memory: &Bound<'_, PyAny>,
        access: &str,
        base: Option<u64>,
    ) -> PyResult<Py<Region>> {
        let py = slf.py();
        let access = settings::access(py, access)?;
        // This is Python's code, other threads' meanwhile, too: they may use the endpoint.
        let pinned = region::pin(memory)?;
        let this = &mut *slf.try_borrow_mut()?;
        let base = base.unwrap_or(pinned.address as u64);
        let registered =
            with!(&mut this.core, core => core.register(base, pinned.length as u64, access));
        let core = registered.map_err(|error| errors::text(py, "RegionError", error))?;
        let (start, length) = (pinned.address as *mut u8, pinned.length);
        let region = Py::new(py, Region::new(core, base, pinned, None))?;
        // SAFETY: the region holds an export of the buffer, so that it stays where it is, and `regions` keeps the region until after
        // `remove`. Rust has no reference to its bytes.
        unsafe { this.memory.insert_raw(core.index, start, length) };
        this.regions.insert(core.index.0, region.clone_ref(py));
        Ok(region)
    }

    /// Takes the right to reach a region away.
    fn deregister(&mut self, py: Python<'_>, region: &Bound<'_, Region>) -> PyResult<()> {
        let index = region.get().core().index;
        let known = self
            .regions
            .get(&index.0)
            .is_some_and(|known| known.is(region));
        if !known {
            let message = "the region is not one of this endpoint's";
            return Err(errors::text(py, "RegionError", message));
        }
        let gone = with!(&mut self.core, core => core.deregister(index));
        gone.map_err(|error| errors::text(py, "RegionError", error))?;
        self.memory.remove(index);
        self.regions.remove(&index.0);
        region.get().release();
        Ok(())
    }

    /// Asks a peer for a connection: its address on each plane. Returns the connection's handle; an event tells the outcome.
    #[pyo3(signature = (now_ns, peer, **settings))]
    fn connect(
        &mut self,
        py: Python<'_>,
        now_ns: u64,
        peer: settings::Addresses,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<u32> {
        let config = settings::connection(self.default, settings)?;
        let peer = peer.parsed(py)?;
        let asked =
            with!(&mut self.core, core => core.connect(Instant::from_nanos(now_ns), &peer, config));
        let handle = asked.map_err(|error| errors::text(py, "ConnectError", error))?;
        Ok(handle.to_bits())
    }

    /// Takes a datagram in. Returns the reason if it had no effect, else nothing.
    #[pyo3(signature = (now_ns, source, data, *, plane=0, ecn=2, checksum_verified=false))]
    #[allow(clippy::too_many_arguments)]
    fn handle_datagram(
        &mut self,
        py: Python<'_>,
        now_ns: u64,
        source: &str,
        data: &[u8],
        plane: u8,
        ecn: u8,
        checksum_verified: bool,
    ) -> PyResult<Option<&'static str>> {
        if ecn > Ecn::Ce as u8 {
            let message = format!("ecn: two bits are expected, 0 to 3, not {ecn}");
            return Err(PyValueError::new_err(message));
        }
        let meta = ReceiveMeta {
            source: settings::address(py, source)?,
            plane,
            ecn: Ecn::from_bits(ecn),
            checksum_verified,
        };
        let now = Instant::from_nanos(now_ns);
        let taken =
            with!(&mut self.core, core => core.handle_datagram(now, &meta, data, &mut self.memory));
        Ok(taken.err().map(|reason| DropReason::name(reason.index())))
    }

    /// The next datagram to send.
    fn poll_datagram(&mut self, py: Python<'_>, now_ns: u64) -> PyResult<Option<Datagram>> {
        let now = Instant::from_nanos(now_ns);
        let transmit =
            with!(&mut self.core, core => core.poll_datagram(now, &self.memory, &mut self.buffer));
        let Some(transmit) = transmit else {
            return Ok(None);
        };
        let bytes = self.buffer.get(..transmit.length);
        let bytes =
            bytes.ok_or_else(|| PyValueError::new_err("a datagram is longer than its buffer"))?;
        Ok(Some(Datagram {
            data: PyBytes::new(py, bytes).unbind(),
            destination: transmit.destination().to_string(),
            plane: transmit.plane,
            entropy: transmit.entropy,
            ecn: transmit.ecn as u8,
            control: transmit.class == Class::Control,
            connection: transmit.connection.map(ConnectionHandle::to_bits),
        }))
    }

    /// When `handle_timeout` has something to do, at the earliest.
    fn poll_timeout(&mut self) -> Option<u64> {
        with!(&mut self.core, core => core.poll_timeout()).map(Instant::as_nanos)
    }

    /// Lets the timers fire whose time has come.
    fn handle_timeout(&mut self, now_ns: u64) {
        with!(&mut self.core, core => core.handle_timeout(Instant::from_nanos(now_ns)));
    }

    /// The next thing that happened.
    fn poll_event(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let event = with!(&mut self.core, core => core.poll_event());
        event.map(|event| events::python(py, event)).transpose()
    }

    /// Writes to the peer's memory.
    #[pyo3(signature = (now_ns, connection, local, remote, *, id, stream=0, immediate=None, signaled=true, solicited=false, fence=false))]
    #[allow(clippy::too_many_arguments)]
    fn post_write(
        &mut self,
        py: Python<'_>,
        now_ns: u64,
        connection: u32,
        local: Bytes<'_>,
        remote: RemoteAddress,
        id: u64,
        stream: u16,
        immediate: Option<u32>,
        signaled: bool,
        solicited: bool,
        fence: bool,
    ) -> PyResult<()> {
        let flags = WorkFlags {
            signaled,
            solicited,
            fence,
        };
        let operation = Operation::Write {
            local: local.source(|slice| self.place(py, slice))?,
            remote: remote.core(),
            immediate,
        };
        self.post(py, now_ns, (connection, stream, id), operation, flags)
    }

    /// Sends to the buffer that the peer posted.
    #[pyo3(signature = (now_ns, connection, local, *, id, stream=0, immediate=None, signaled=true, solicited=false, fence=false))]
    #[allow(clippy::too_many_arguments)]
    fn post_send(
        &mut self,
        py: Python<'_>,
        now_ns: u64,
        connection: u32,
        local: Bytes<'_>,
        id: u64,
        stream: u16,
        immediate: Option<u32>,
        signaled: bool,
        solicited: bool,
        fence: bool,
    ) -> PyResult<()> {
        let flags = WorkFlags {
            signaled,
            solicited,
            fence,
        };
        let operation = Operation::Send {
            local: local.source(|slice| self.place(py, slice))?,
            immediate,
        };
        self.post(py, now_ns, (connection, stream, id), operation, flags)
    }

    /// Reads the peer's memory.
    #[pyo3(signature = (now_ns, connection, local, remote, *, id, stream=0, signaled=true, fence=false))]
    #[allow(clippy::too_many_arguments)]
    fn post_read(
        &mut self,
        py: Python<'_>,
        now_ns: u64,
        connection: u32,
        local: LocalSlice,
        remote: RemoteAddress,
        id: u64,
        stream: u16,
        signaled: bool,
        fence: bool,
    ) -> PyResult<()> {
        let flags = WorkFlags {
            signaled,
            fence,
            ..WorkFlags::default()
        };
        let operation = Operation::Read {
            local: self.place(py, local)?,
            remote: remote.core(),
        };
        self.post(py, now_ns, (connection, stream, id), operation, flags)
    }

    /// Adds to a word of the peer's memory; the word as it was comes to `local`.
    #[pyo3(signature = (now_ns, connection, local, remote, add, *, id, stream=0, signaled=true, fence=false))]
    #[allow(clippy::too_many_arguments)]
    fn post_fetch_add(
        &mut self,
        py: Python<'_>,
        now_ns: u64,
        connection: u32,
        local: LocalSlice,
        remote: RemoteAddress,
        add: u64,
        id: u64,
        stream: u16,
        signaled: bool,
        fence: bool,
    ) -> PyResult<()> {
        let flags = WorkFlags {
            signaled,
            fence,
            ..WorkFlags::default()
        };
        let operation = Operation::FetchAdd {
            local: self.place(py, local)?,
            remote: remote.core(),
            add,
        };
        self.post(py, now_ns, (connection, stream, id), operation, flags)
    }

    /// Replaces a word of the peer's memory if it is `compare`; the word as it was comes to `local`.
    #[pyo3(signature = (now_ns, connection, local, remote, compare, swap, *, id, stream=0, signaled=true, fence=false))]
    #[allow(clippy::too_many_arguments)]
    fn post_compare_swap(
        &mut self,
        py: Python<'_>,
        now_ns: u64,
        connection: u32,
        local: LocalSlice,
        remote: RemoteAddress,
        compare: u64,
        swap: u64,
        id: u64,
        stream: u16,
        signaled: bool,
        fence: bool,
    ) -> PyResult<()> {
        let flags = WorkFlags {
            signaled,
            fence,
            ..WorkFlags::default()
        };
        let operation = Operation::CompareSwap {
            local: self.place(py, local)?,
            remote: remote.core(),
            compare,
            swap,
        };
        self.post(py, now_ns, (connection, stream, id), operation, flags)
    }

    /// Posts a buffer for a message to come.
    #[pyo3(signature = (connection, local, *, id, stream=0))]
    fn post_receive(
        &mut self,
        py: Python<'_>,
        connection: u32,
        local: LocalSlice,
        id: u64,
        stream: u16,
    ) -> PyResult<()> {
        let queue = ReceiveQueue::Stream(ConnectionHandle::from_bits(connection), stream);
        let local = self.place(py, local)?;
        Self::posted(
            py,
            with!(&mut self.core, core => core.post_receive(queue, &ReceiveRequest { id, local })),
        )
    }

    /// Posts a buffer to a queue that streams share (0 to 7).
    #[pyo3(signature = (queue, local, *, id))]
    fn post_shared_receive(
        &mut self,
        py: Python<'_>,
        queue: u8,
        local: LocalSlice,
        id: u64,
    ) -> PyResult<()> {
        let local = self.place(py, local)?;
        let queue = ReceiveQueue::Shared(queue);
        Self::posted(
            py,
            with!(&mut self.core, core => core.post_receive(queue, &ReceiveRequest { id, local })),
        )
    }

    /// Lets a stream take its buffers from a shared queue.
    fn attach_shared_queue(
        &mut self,
        py: Python<'_>,
        connection: u32,
        stream: u16,
        queue: u8,
    ) -> PyResult<()> {
        let connection = ConnectionHandle::from_bits(connection);
        Self::posted(
            py,
            with!(&mut self.core, core => core.attach_shared_queue(connection, stream, queue)),
        )
    }

    /// Ends a connection after what is posted is done; with a code, at once.
    #[pyo3(signature = (now_ns, connection, abort=None))]
    fn close(
        &mut self,
        py: Python<'_>,
        now_ns: u64,
        connection: u32,
        abort: Option<u16>,
    ) -> PyResult<()> {
        let mode = abort.map_or(CloseMode::Drain, CloseMode::Abort);
        let connection = ConnectionHandle::from_bits(connection);
        let now = Instant::from_nanos(now_ns);
        Self::posted(
            py,
            with!(&mut self.core, core => core.close(now, connection, mode)),
        )
    }

    /// The endpoint's counters; `drops` by reason.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        statistics::endpoint(py, with!(&self.core, core => core.endpoint_statistics()))
    }

    /// A connection's counters, if there is one.
    fn connection_statistics<'py>(
        &self,
        py: Python<'py>,
        connection: u32,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let connection = ConnectionHandle::from_bits(connection);
        let found = with!(&self.core, core => core.connection_statistics(connection));
        found
            .map(|all| statistics::connection(py, &all))
            .transpose()
    }

    /// A path's counters, if there is one.
    fn path_statistics<'py>(
        &self,
        py: Python<'py>,
        connection: u32,
        path: u8,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let connection = ConnectionHandle::from_bits(connection);
        let found = with!(&self.core, core => core.path_statistics(connection, path));
        found.map(|all| statistics::path(py, &all)).transpose()
    }
}
