//! Places, and how operations ended.

use metaroce_core::{Completion as CoreCompletion, LocalSlice as CoreSlice, RegionIndex};
use pyo3::prelude::*;
use std::hash::{Hash, Hasher};

/// A place in a region of this side.
#[pyclass(frozen, eq, hash, from_py_object, module = "metaroce")]
#[derive(Clone, Copy, Eq, Debug)]
pub struct LocalSlice {
    /// The region's index.
    #[pyo3(get)]
    pub region: u16,
    /// Bytes from its start.
    #[pyo3(get)]
    pub offset: u64,
    /// Bytes.
    #[pyo3(get)]
    pub length: u32,
    /// The registration that it was made from, if it was made from one: others may have its index, here later, elsewhere at any time.
    pub registration: Option<u64>,
}

impl PartialEq for LocalSlice {
    fn eq(&self, other: &Self) -> bool {
        self.core() == other.core()
    }
}

impl Hash for LocalSlice {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.region, self.offset, self.length).hash(state);
    }
}

#[pymethods]
impl LocalSlice {
    #[new]
    const fn new(region: u16, offset: u64, length: u32) -> Self {
        Self {
            region,
            offset,
            length,
            registration: None,
        }
    }

    fn __repr__(&self) -> String {
        let Self {
            region,
            offset,
            length,
            ..
        } = self;
        format!("LocalSlice(region={region}, offset={offset}, length={length})")
    }

    const fn __len__(&self) -> usize {
        self.length as usize
    }
}

impl LocalSlice {
    pub const fn core(self) -> CoreSlice {
        CoreSlice {
            region: RegionIndex(self.region),
            offset: self.offset,
            length: self.length,
        }
    }
}

/// A place in a peer's memory: what a peer is told of a region, and all that it needs.
#[pyclass(frozen, eq, hash, get_all, from_py_object, module = "metaroce")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RemoteAddress {
    /// The peer's address.
    pub address: u64,
    /// The region's key.
    pub key: u32,
}

#[pymethods]
impl RemoteAddress {
    #[new]
    const fn new(address: u64, key: u32) -> Self {
        Self { address, key }
    }

    fn __repr__(&self) -> String {
        format!(
            "RemoteAddress(address={:#x}, key={:#x})",
            self.address, self.key
        )
    }

    /// The place this many bytes further on.
    fn __add__(&self, offset: u64) -> PyResult<Self> {
        let address = self.address.checked_add(offset).ok_or_else(|| {
            pyo3::exceptions::PyOverflowError::new_err("the address does not fit in 64 bits")
        })?;
        Ok(Self { address, ..*self })
    }
}

impl RemoteAddress {
    pub const fn core(self) -> metaroce_core::RemoteAddress {
        metaroce_core::RemoteAddress {
            address: self.address,
            key: self.key,
        }
    }
}

/// An enumeration of the core's as one of Python's.
macro_rules! enumeration {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident,)* }) => {
        $(#[$about])*
        #[pyclass(frozen, eq, eq_int, hash, module = "metaroce")]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[allow(missing_docs)]
        pub enum $name { $($variant,)* }

        impl From<metaroce_core::$name> for $name {
            fn from(value: metaroce_core::$name) -> Self {
                match value { $(metaroce_core::$name::$variant => Self::$variant,)* }
            }
        }

        #[pymethods]
        impl $name {
            /// Its name.
            #[getter]
            const fn name(&self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)* }
            }
        }
    };
}

enumeration! {
    /// How an operation ended.
    Status {
        Success, LocalAccess, RemoteInvalidKey, RemoteOutOfBounds, RemoteAccessDenied, LengthExceedsBuffer,
        ReceiverNotReady, RemoteInvalidRequest, RemoteMemoryFault, Flushed, ConnectionLost,
    }
}

enumeration! {
    /// What kind of operation a completion is about.
    CompletionKind { Write, Send, Read, FetchAdd, CompareSwap, Receive, ReceiveWriteImmediate, }
}

/// The end of an operation.
#[pyclass(frozen, eq, get_all, module = "metaroce")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The connection's handle.
    pub connection: u32,
    /// The stream.
    pub stream: u16,
    /// The number that the operation was posted with.
    pub id: u64,
    /// What it was.
    pub kind: CompletionKind,
    /// How it ended.
    pub status: Status,
    /// Bytes of the message.
    pub length: u32,
    /// The peer's immediate, for receives.
    pub immediate: Option<u32>,
    /// The peer asked to wake a waiter.
    pub solicited: bool,
}

impl From<CoreCompletion> for Completion {
    fn from(completion: CoreCompletion) -> Self {
        Self {
            connection: completion.connection.to_bits(),
            stream: completion.stream,
            id: completion.id,
            kind: completion.kind.into(),
            status: completion.status.into(),
            length: completion.length,
            immediate: completion.immediate,
            solicited: completion.solicited,
        }
    }
}

#[pymethods]
impl Completion {
    /// Whether every byte is in its place.
    #[getter]
    fn ok(&self) -> bool {
        self.status == Status::Success
    }

    fn __repr__(&self) -> String {
        let immediate = self
            .immediate
            .map_or_else(|| "None".to_owned(), |i| i.to_string());
        format!(
            "Completion(connection={:#x}, stream={}, id={}, kind=CompletionKind.{:?}, status=Status.{:?}, length={}, immediate={immediate})",
            self.connection, self.stream, self.id, self.kind, self.status, self.length
        )
    }
}
