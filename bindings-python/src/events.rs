//! What happened at an endpoint, beside completions.

use super::values::{Completion, Status};
use metaroce_core::{Event, work::CloseReason};
use pyo3::prelude::*;

/// An event class with fields, and how it is shown.
macro_rules! event {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$about])*
        #[pyclass(frozen, eq, get_all, module = "metaroce")]
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct $name { $($(#[$doc])* pub $field: $kind,)* }

        #[pymethods]
        impl $name {
            fn __repr__(&self) -> String {
                let fields = [$(format!("{}={:?}", stringify!($field), self.$field),)*];
                format!("{}({})", stringify!($name), fields.join(", "))
            }
        }
    };
}

event! {
    /// A connection is ready for work.
    Connected {
        /// The connection's handle.
        connection: u32,
        /// The peer asked for it.
        incoming: bool,
        /// The number that the initiator gave.
        service: u32,
    }
}

event! {
    /// A connection ended; its handle is of no more use.
    Closed {
        /// The connection's handle.
        connection: u32,
        /// Why.
        reason: String,
    }
}

event! {
    /// A stream failed; its open operations were flushed, other streams go on.
    StreamFailed {
        /// The connection's handle.
        connection: u32,
        /// The stream.
        stream: u16,
        /// What was wrong.
        status: Status,
        /// The fault was in what the peer asked for.
        by_peer: bool,
    }
}

event! {
    /// All paths of a plane failed.
    PlaneDown {
        /// The connection's handle.
        connection: u32,
        /// The plane.
        plane: u8,
    }
}

event! {
    /// A plane carries packets again.
    PlaneUp {
        /// The connection's handle.
        connection: u32,
        /// The plane.
        plane: u8,
    }
}

/// A reason in words: `local-close`, `peer-close`, `peer-abort 7`, `unreachable`, `refused NotListening`.
pub fn reason(reason: CloseReason) -> String {
    match reason {
        CloseReason::LocalClose => "local-close".to_owned(),
        CloseReason::PeerClose => "peer-close".to_owned(),
        CloseReason::PeerAbort(code) => format!("peer-abort {code}"),
        CloseReason::Unreachable => "unreachable".to_owned(),
        CloseReason::Refused(why) => format!("refused {why:?}"),
    }
}

/// The event as Python's.
pub fn python(py: Python<'_>, event: Event) -> PyResult<Py<PyAny>> {
    match event {
        Event::Connected {
            connection,
            incoming,
            service,
        } => object(
            py,
            Connected {
                connection: connection.to_bits(),
                incoming,
                service,
            },
        ),
        Event::Closed {
            connection,
            reason: why,
        } => object(
            py,
            Closed {
                connection: connection.to_bits(),
                reason: reason(why),
            },
        ),
        Event::Completion(completion) => object(py, Completion::from(completion)),
        Event::StreamFailed {
            connection,
            stream,
            status,
            by_peer,
        } => object(
            py,
            StreamFailed {
                connection: connection.to_bits(),
                stream,
                status: status.into(),
                by_peer,
            },
        ),
        Event::PlaneDown { connection, plane } => object(
            py,
            PlaneDown {
                connection: connection.to_bits(),
                plane,
            },
        ),
        Event::PlaneUp { connection, plane } => object(
            py,
            PlaneUp {
                connection: connection.to_bits(),
                plane,
            },
        ),
    }
}

fn object<T>(py: Python<'_>, value: T) -> PyResult<Py<PyAny>>
where
    T: pyo3::PyClass<BaseType = PyAny> + Into<PyClassInitializer<T>>,
{
    Ok(Py::new(py, value)?.into_any())
}
