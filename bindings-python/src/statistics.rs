//! Counters as dictionaries.

use metaroce_core::DropReason;
use metaroce_core::stats::{ConnectionStatistics, EndpointStatistics, PathStatistics};
use metaroce_soft::fault::FaultCounts;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A dictionary of these fields.
macro_rules! fields {
    ($py:expr, $all:expr, [$($name:ident),* $(,)?]) => {{
        let counters = PyDict::new($py);
        $(counters.set_item(stringify!($name), $all.$name)?;)*
        counters
    }};
}

pub fn endpoint<'py>(py: Python<'py>, all: &EndpointStatistics) -> PyResult<Bound<'py, PyDict>> {
    let counters = fields!(
        py,
        all,
        [
            datagrams_received,
            bytes_received,
            datagrams_sent,
            bytes_sent,
            connections_opened,
            connections_closed,
        ]
    );
    let drops = PyDict::new(py);
    for (index, count) in all
        .drops
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
    {
        drops.set_item(DropReason::name(index), count)?;
    }
    counters.set_item("drops", drops)?;
    Ok(counters)
}

pub fn connection<'py>(
    py: Python<'py>,
    all: &ConnectionStatistics,
) -> PyResult<Bound<'py, PyDict>> {
    let counters = fields!(
        py,
        all,
        [
            packets_sent,
            bytes_sent,
            retransmissions,
            spurious_retransmissions,
            losses,
            probes_sent,
            fences,
            ce_marks,
            packets_received,
            bytes_received,
            duplicates_received,
            acks_sent,
            acks_received,
            rnr_sent,
            hint_mbps,
            outstanding,
            min_rtt_ns,
            open_messages,
            queued_bytes,
        ]
    );
    counters.set_item("window", fixed(all.window))?;
    Ok(counters)
}

pub fn path<'py>(py: Python<'py>, all: &PathStatistics) -> PyResult<Bound<'py, PyDict>> {
    let counters = fields!(
        py,
        all,
        [
            plane,
            entropy,
            generation,
            packets_sent,
            retransmissions,
            losses,
            spurious_retransmissions,
            ce_marks,
            bytes_sent,
            inflight,
            srtt_ns,
            packets_received,
            duplicates_received,
            ce_received,
        ]
    );
    counters.set_item("weight", fixed(all.weight))?;
    counters.set_item("state", format!("{:?}", all.state).to_lowercase())?;
    Ok(counters)
}

pub fn faults<'py>(py: Python<'py>, all: &FaultCounts) -> PyResult<Bound<'py, PyDict>> {
    Ok(fields!(
        py,
        all,
        [
            packets,
            lost,
            lost_in_bursts,
            dropped_by_queue,
            blackholed,
            duplicated,
            corrupted,
            marked,
            reordered,
        ]
    ))
}

/// Packets with 16 fraction bits as a number of packets.
fn fixed(packets: u32) -> f64 {
    f64::from(packets) / 65_536.0
}
