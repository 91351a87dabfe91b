//! Python's memory, registered: by an endpoint that is stepped, or by the software NIC.

use crate::errors;
use crate::values::{LocalSlice, RemoteAddress};
use metaroce_core::{LocalSlice as CoreSlice, Region as CoreRegion};
use metaroce_soft::MemoryRegion;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PySlice;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Memory that does not move or go away while `keeper` lives: it holds an export of the object's buffer.
pub struct Pinned {
    pub address: usize,
    pub length: usize,
    pub keeper: Py<PyAny>,
    /// The same bytes for Python.
    pub view: Py<PyAny>,
}

/// Pins the memory of an object with a writable buffer; of a number, that many new bytes.
pub fn pin(memory: &Bound<'_, PyAny>) -> PyResult<Pinned> {
    let pinned = memory
        .py()
        .import("metaroce._memory")?
        .getattr("pin")?
        .call1((memory,))?;
    let (address, length, keeper, view) = pinned.extract()?;
    Ok(Pinned {
        address,
        length,
        keeper,
        view,
    })
}

/// Holds what a region needs. The fields are dropped in this order: the memory is kept until the NIC cannot reach it any more.
struct Holder {
    owner: Option<MemoryRegion>,
    view: Py<PyAny>,
    _keeper: Py<PyAny>,
}

/// Registered memory. Its bytes are those of the object that was registered; nothing is copied.
#[pyclass(frozen, module = "metaroce")]
pub struct Region {
    region: CoreRegion,
    base: u64,
    length: u64,
    /// Which of all registrations in this process it is.
    registration: u64,
    holder: Mutex<Option<Holder>>,
}

impl Region {
    pub fn new(region: CoreRegion, base: u64, pinned: Pinned, owner: Option<MemoryRegion>) -> Self {
        static REGISTRATIONS: AtomicU64 = AtomicU64::new(0);
        Self {
            region,
            registration: REGISTRATIONS.fetch_add(1, Ordering::Relaxed),
            base,
            length: pinned.length as u64,
            holder: Mutex::new(Some(Holder {
                owner,
                view: pinned.view,
                _keeper: pinned.keeper,
            })),
        }
    }

    pub const fn core(&self) -> CoreRegion {
        self.region
    }

    /// How many bytes there are from an offset on.
    fn left(&self, py: Python<'_>, offset: u64) -> PyResult<u64> {
        self.held(py, |_| ())?;
        self.length.checked_sub(offset).ok_or_else(|| {
            let message = format!("{offset} is not inside a region of {} bytes", self.length);
            PyIndexError::new_err(message)
        })
    }

    /// Looks at what it holds. Nothing of Python's may run under the lock: other threads would wait for it with the interpreter's.
    fn held<R>(&self, py: Python<'_>, look: impl FnOnce(&Holder) -> R) -> PyResult<R> {
        let holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = holder.as_ref().map(look);
        drop(holder);
        seen.ok_or_else(|| errors::text(py, "RegionError", "the region is deregistered already"))
    }

    /// Lets the memory go. If the NIC knew the region it does not any more.
    pub fn release(&self) {
        let mut holder = self.holder.lock().unwrap_or_else(PoisonError::into_inner);
        let held = holder.take();
        // The end of Python's objects may run other code.
        drop(holder);
        drop(held);
    }
}

/// An endpoint's or NIC's regions, by their index.
pub type Regions = HashMap<u16, Py<Region>>;

/// The place that a slice names among regions; nothing if its index is another region's here.
pub fn place(regions: &Regions, slice: LocalSlice) -> Option<CoreSlice> {
    let here = regions.get(&slice.region);
    let here = here.map(|region| region.get().registration);
    let other = here.is_some() && slice.registration.is_some() && here != slice.registration;
    (!other).then(|| slice.core())
}

/// What there is to say of a slice without a place.
pub fn misplaced(py: Python<'_>, slice: LocalSlice) -> PyErr {
    let message = format!(
        "not posted: local: region {} is another one here: the slice is of another endpoint's or NIC's region, or of one that was deregistered",
        slice.region
    );
    errors::text(py, "PostError", message)
}

#[pymethods]
impl Region {
    /// Its index at its endpoint.
    #[getter]
    const fn index(&self) -> u16 {
        self.region.index.0
    }

    /// Its key, to be told to peers.
    #[getter]
    const fn key(&self) -> u32 {
        self.region.key
    }

    /// The address of its first byte, as peers use it.
    #[getter]
    const fn base(&self) -> u64 {
        self.base
    }

    /// Its bytes, as a memoryview, while it is registered.
    #[getter]
    fn memory(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.held(py, |holder| holder.view.clone_ref(py))
    }

    /// Its bytes as a NumPy array, without a copy.
    #[pyo3(signature = (dtype=None))]
    fn array<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let numpy = py.import("numpy")?;
        let dtype = match dtype {
            Some(dtype) => dtype,
            None => numpy.getattr("uint8")?,
        };
        numpy.call_method1("frombuffer", (self.memory(py)?, dtype))
    }

    /// A place in it for this side's operations; without a length, all that is left.
    #[pyo3(signature = (offset=0, length=None))]
    fn slice(&self, py: Python<'_>, offset: u64, length: Option<u64>) -> PyResult<LocalSlice> {
        let left = self.left(py, offset)?;
        let length = length.unwrap_or(left);
        if length > left {
            let message = format!(
                "{length} bytes at {offset} are not inside a region of {} bytes",
                self.length
            );
            return Err(PyIndexError::new_err(message));
        }
        let length = u32::try_from(length)
            .map_err(|_| PyValueError::new_err("an operation has less than 4 GiB"))?;
        Ok(LocalSlice {
            region: self.region.index.0,
            offset,
            length,
            registration: Some(self.registration),
        })
    }

    /// A place in it as peers name it.
    #[pyo3(signature = (offset=0))]
    fn remote(&self, py: Python<'_>, offset: u64) -> PyResult<RemoteAddress> {
        self.left(py, offset)?;
        Ok(RemoteAddress {
            address: self.base.wrapping_add(offset),
            key: self.region.key,
        })
    }

    /// `region[100:200]` is `region.slice(100, 100)`.
    fn __getitem__(&self, py: Python<'_>, range: &Bound<'_, PySlice>) -> PyResult<LocalSlice> {
        let range = range.indices(isize::try_from(self.length)?)?;
        if range.step != 1 {
            return Err(PyValueError::new_err("a slice of a region has step 1"));
        }
        self.slice(py, range.start as u64, Some(range.slicelength as u64))
    }

    /// Bytes.
    const fn __len__(&self) -> usize {
        self.length as usize
    }

    /// Takes the right to reach it away from the NIC and from peers. (An endpoint that is stepped has a `deregister` for that.)
    fn deregister(&self, py: Python<'_>) -> PyResult<()> {
        if self.held(py, |holder| holder.owner.is_none())? {
            let message = "the region is an endpoint's: call the endpoint's deregister";
            return Err(errors::text(py, "RegionError", message));
        }
        self.release();
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!(
            "Region(index={}, key={:#x}, base={:#x}, length={})",
            self.region.index.0, self.region.key, self.base, self.length
        )
    }
}
