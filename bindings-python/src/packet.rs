//! Datagrams read by the core's decoder, in the form that traces have (docs/trace.md).

use metaroce_sim::packet::Packet;
use metaroce_sim::trace::PacketRecord;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// What a trace says of a datagram. It knows nothing of who sent it, nor over what.
#[pyfunction]
pub fn packet_record<'py>(py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // To a trace, a packet without bytes is one of a model.
    if data.is_empty() {
        return Err(PyValueError::new_err("a datagram has no bytes"));
    }
    let length = u32::try_from(data.len())?;
    let mut packet = Packet::default();
    packet.bytes.extend_from_slice(data);
    packet.length = length;
    let record = PacketRecord::new(&packet, &mut Vec::new());
    let record = pythonize::pythonize(py, &record)
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    for unknown in [
        "source",
        "destination",
        "plane",
        "source_port",
        "wire_bytes",
    ] {
        record.del_item(unknown)?;
    }
    Ok(record)
}
