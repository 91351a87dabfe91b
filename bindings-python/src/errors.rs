//! Errors as the exceptions of `metaroce._errors`, which are written in Python because they have several bases and fields.

use pyo3::BoundObject;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The exception of this name, made from these arguments.
pub fn raise<'py, A>(py: Python<'py>, class: &str, arguments: A) -> PyErr
where
    A: IntoPyObject<'py, Target = PyTuple>,
{
    let made = py
        .import("metaroce._errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| {
            let arguments = arguments.into_pyobject(py).map_err(Into::into)?;
            class.call1(arguments.into_bound())
        });
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// The exception of this name with the error's text.
pub fn text(py: Python<'_>, class: &str, error: impl std::fmt::Display) -> PyErr {
    raise(py, class, (error.to_string(),))
}

/// What the software NIC says.
pub fn nic(py: Python<'_>, error: &metaroce_soft::Error) -> PyErr {
    use metaroce_soft::Error;
    match error {
        Error::Config(_) | Error::PayloadTooLarge { .. } | Error::Planes { .. } => {
            text(py, "ConfigError", error)
        }
        Error::UnspecifiedAddress { .. } => text(py, "ConfigError", error),
        Error::Connect(_) => text(py, "ConnectError", error),
        Error::Closed(reason) => raise(
            py,
            "ConnectionClosed",
            (error.to_string(), crate::events::reason(*reason)),
        ),
        Error::TimedOut { .. } => text(py, "TimedOut", error),
        Error::Region(_) => text(py, "RegionError", error),
        Error::Post(_) | Error::CompletionQueueFull { .. } => text(py, "PostError", error),
        _ => text(py, "NicError", error),
    }
}
