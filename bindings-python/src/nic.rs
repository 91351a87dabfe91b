//! The software NIC, on UDP sockets. A thread of its own makes progress; whoever waits does so without the interpreter's lock, and
//! looks for signals now and then.

use crate::connection::Connection;
use crate::core::MOST_CONNECTIONS;
use crate::region::{self, Region, Regions};
use crate::settings::Addresses;
use crate::values::LocalSlice;
use crate::waiting::{Outcome, deadline, next_look};
use crate::{errors, events, settings, statistics};
use metaroce_core::LocalSlice as CoreSlice;
use metaroce_core::config::ConfigError;
use metaroce_soft::fault::FaultPlan;
use metaroce_soft::{Connection as SoftConnection, Error, Nic as SoftNic, Phase};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Instant;

/// A NIC in software on ordinary UDP sockets.
#[pyclass(frozen, module = "metaroce")]
pub struct Nic {
    nic: RwLock<Option<SoftNic>>,
    closed: AtomicBool,
    listens: bool,
    addresses: Vec<SocketAddr>,
    /// Regions stay registered until they are deregistered, whoever else has them.
    regions: Mutex<Regions>,
}

impl Nic {
    /// Calls the NIC without the interpreter's lock.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&SoftNic) -> R + Send,
    ) -> PyResult<R> {
        let called = py.detach(|| {
            let nic = self.nic.read().unwrap_or_else(PoisonError::into_inner);
            nic.as_ref().map(call)
        });
        called.ok_or_else(|| errors::nic(py, &Error::ShutDown))
    }

    fn connection(slf: &Bound<'_, Self>, connection: SoftConnection) -> PyResult<Connection> {
        let py = slf.py();
        let queue = slf.get().with(py, SoftNic::create_queue)?;
        let queue = queue.map_err(|error| errors::nic(py, &error))?;
        connection.set_queues(&queue, &queue);
        Ok(Connection::new(connection, queue, slf.clone().unbind()))
    }

    /// Whether it was closed, or its thread has ended by a bug.
    pub fn is_closed(&self) -> bool {
        let ended = |nic: &Option<SoftNic>| nic.as_ref().is_some_and(SoftNic::is_shut_down);
        self.closed.load(Ordering::Relaxed) || self.nic.try_read().is_ok_and(|nic| ended(&nic))
    }

    /// The place that a slice names among its regions.
    pub fn place(&self, py: Python<'_>, slice: LocalSlice) -> PyResult<CoreSlice> {
        let regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let place = region::place(&regions, slice);
        drop(regions);
        place.ok_or_else(|| region::misplaced(py, slice))
    }

    /// Takes the NIC out, so that it is no more for anybody.
    fn take(&self, py: Python<'_>) -> Option<SoftNic> {
        self.closed.store(true, Ordering::Relaxed);
        let nic = py.detach(|| {
            self.nic
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .take()
        });
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = std::mem::take(&mut *regions);
        // The end of Python's objects may run other code.
        drop(regions);
        drop(kept);
        nic
    }
}

#[pymethods]
impl Nic {
    #[new]
    #[pyo3(signature = (planes, *, faults=None, listen=true, connections=64, payload_bytes=None, rate_mbps=None, entropies=64,
        first_source_port=None, omit_checksum=false, accept=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        planes: Addresses,
        faults: Option<&str>,
        listen: bool,
        connections: usize,
        payload_bytes: Option<u16>,
        rate_mbps: Option<u32>,
        entropies: u16,
        first_source_port: Option<u16>,
        omit_checksum: bool,
        accept: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        if connections > MOST_CONNECTIONS {
            return Err(errors::nic(py, &Error::Config(ConfigError::Connections)));
        }
        let mut builder = SoftNic::builder()
            .listen(listen)
            .connections(connections)
            .entropies(entropies)
            .omit_checksum(omit_checksum)
            .background(true);
        for text in &planes.0 {
            builder = builder.plane(settings::plane(py, text)?);
        }
        if let Some(faults) = faults {
            let plan = faults.parse::<FaultPlan>();
            builder = builder.faults(plan.map_err(|error| errors::text(py, "ConfigError", error))?);
        }
        if let Some(bytes) = payload_bytes {
            builder = builder.payload_bytes(bytes);
        }
        if let Some(rate) = rate_mbps {
            builder = builder.rate_mbps(rate);
        }
        if let Some(port) = first_source_port {
            builder = builder.first_source_port(port);
        }
        if accept.is_some() {
            let config = settings::connection(metaroce_soft::default_connection(), accept)?;
            builder = builder.acceptor(config);
        }
        let nic = builder.build().map_err(|error| errors::nic(py, &error))?;
        Ok(Self {
            addresses: nic.addresses().to_vec(),
            nic: RwLock::new(Some(nic)),
            closed: AtomicBool::new(false),
            listens: listen,
            regions: Mutex::default(),
        })
    }

    /// The address on which each plane receives.
    #[getter]
    fn addresses(&self) -> Vec<String> {
        self.addresses.iter().map(ToString::to_string).collect()
    }

    /// Most payload of a packet, in bytes.
    #[getter]
    fn payload_bytes(&self, py: Python<'_>) -> PyResult<u16> {
        self.with(py, SoftNic::payload_bytes)
    }

    /// Registers the memory of an object with a writable buffer, or so many new bytes.
    #[pyo3(signature = (memory, access="rwRWA"))]
    fn register(
        &self,
        py: Python<'_>,
        memory: &Bound<'_, PyAny>,
        access: &str,
    ) -> PyResult<Py<Region>> {
        let access = settings::access(py, access)?;
        let pinned = region::pin(memory)?;
        let (address, length) = (pinned.address, pinned.length);
        let registered = self.with(py, move |nic| {
            // SAFETY: the region below holds an export of the buffer, so that it stays where it is until the owner is dropped.
            // Rust has no reference to its bytes.
            unsafe { nic.register_raw(address as *mut u8, length, access) }
        })?;
        let owner = registered.map_err(|error| errors::nic(py, &error))?;
        let (core, base) = (owner.region(), owner.base());
        let region = Py::new(py, Region::new(core, base, pinned, Some(owner)))?;
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = regions.insert(core.index.0, region.clone_ref(py));
        drop(regions);
        // One that was deregistered; its end may run other code.
        drop(earlier);
        Ok(region)
    }

    /// Connects to a peer, given its address on each plane, and waits until it is done.
    #[pyo3(signature = (peer, *, timeout=5.0, **settings))]
    fn connect(
        slf: &Bound<'_, Self>,
        peer: Addresses,
        timeout: Option<f64>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Connection> {
        let (py, this) = (slf.py(), slf.get());
        let peer = peer.parsed(py)?;
        let config = this.with(py, SoftNic::connection_config)?;
        let config = settings::connection(config, settings)?;
        let until = deadline(timeout)?;
        let started = this.with(py, |nic| nic.start_connect(&peer, config))?;
        let connection = started.map_err(|error| errors::nic(py, &error))?;
        loop {
            let look = next_look(until);
            let phase = match look {
                Some(look) => this.with(py, |nic| {
                    let at = Some(Instant::now() + look);
                    nic.progress_until(at, || connection.phase() != Phase::Opening);
                    connection.phase()
                })?,
                None => connection.phase(),
            };
            let ended = match phase {
                Phase::Open => return Self::connection(slf, connection),
                Phase::Closed(reason) => return Err(errors::nic(py, &Error::Closed(reason))),
                Phase::Opening if look.is_none() => {
                    let message =
                        format!("connecting took longer than {} s", timeout.unwrap_or(0.0));
                    Err(errors::text(py, "TimedOut", message))
                }
                Phase::Opening => py.check_signals(),
            };
            if let Err(error) = ended {
                // If it has ended by itself meanwhile it does not matter.
                let _ = connection.close(metaroce_soft::core::CloseMode::Abort(0));
                return Err(error);
            }
        }
    }

    /// Takes a connection that a peer made, waiting for it.
    #[pyo3(signature = (*, timeout=None))]
    fn accept(slf: &Bound<'_, Self>, timeout: Option<f64>) -> PyResult<Connection> {
        let (py, this) = (slf.py(), slf.get());
        if !this.listens {
            let message = "listen: the NIC was made with listen=False, so that no peer can connect";
            return Err(errors::text(py, "ConfigError", message));
        }
        let until = deadline(timeout)?;
        loop {
            let look = next_look(until).unwrap_or_default();
            match this.with(py, |nic| nic.accept(Some(look)))? {
                Ok(connection) => return Self::connection(slf, connection),
                Err(Error::TimedOut { .. }) if !look.is_zero() => py.check_signals()?,
                Err(Error::TimedOut { .. }) => {
                    let message = format!("no peer connected within {} s", timeout.unwrap_or(0.0));
                    return Err(errors::text(py, "TimedOut", message));
                }
                Err(error) => return Err(errors::nic(py, &error)),
            }
        }
    }

    /// The next event that is not a completion.
    fn poll_event(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let event = self.with(py, SoftNic::poll_event)?;
        event.map(|event| events::python(py, event)).transpose()
    }

    /// The NIC's counters: the protocol's (`drops` by reason) and those of faults that were injected.
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = self.with(py, SoftNic::statistics)?;
        let counters = statistics::endpoint(py, &all.endpoint)?;
        counters.set_item("connections", all.connections)?;
        counters.set_item("source_ports", all.source_ports)?;
        counters.set_item(
            "faults_outgoing",
            statistics::faults(py, &all.faults_outgoing)?,
        )?;
        counters.set_item(
            "faults_incoming",
            statistics::faults(py, &all.faults_incoming)?,
        )?;
        Ok(counters)
    }

    /// Ends all connections after what is posted is done, aborts those that are not through in time, and frees the sockets. Returns
    /// whether all were through.
    #[pyo3(signature = (*, timeout=5.0))]
    fn close(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let timeout = settings::seconds(Some(timeout))?.unwrap_or_default();
        let Some(nic) = self.take(py) else {
            return Ok(true);
        };
        // On a thread of its own, which ends it even if nobody waits any more.
        let (sender, result) = channel();
        let thread = std::thread::Builder::new().name("metaroce-close".to_owned());
        thread.spawn(move || {
            // Nobody need be there to hear it.
            let _ = sender.send(nic.shut_down(timeout));
        })?;
        let result = Outcome::new(result);
        loop {
            if let Some(drained) = result.next(py)? {
                return Ok(drained);
            }
            py.check_signals()?;
        }
    }

    /// Whether the NIC was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.is_closed()
    }

    const fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Closes the NIC; after an exception at once.
    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let failed = exception.get_item(0).is_ok_and(|kind| !kind.is_none());
        if failed {
            let nic = self.take(py);
            py.detach(|| drop(nic));
        } else {
            self.close(py, 5.0)?;
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        let state = if self.is_closed() { ", closed" } else { "" };
        format!("Nic({}{state})", self.addresses().join(", "))
    }
}
