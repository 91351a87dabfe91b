//! MetaRoCE in Python: the native half of the package `metaroce`, which adds types, plots and Scapy layers to it.
//!
//! | file | what is in it |
//! |---|---|
//! | `simulate`, `table` | the simulator, and its figures as Arrow tables |
//! | `endpoint`, `core` | the core, stepped by hand |
//! | `nic`, `connection` | the software NIC |
//! | `region` | Python's memory, registered |
//! | `packet` | datagrams, read |
//! | `values`, `events`, `statistics`, `settings`, `errors`, `waiting` | what goes in and out of all of them |

mod connection;
mod core;
mod endpoint;
mod errors;
mod events;
mod nic;
mod packet;
mod region;
mod settings;
mod simulate;
mod statistics;
mod table;
mod values;
mod waiting;

/// The native half of `metaroce`.
#[pyo3::pymodule]
mod _metaroce {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::connection::Connection;
    #[pymodule_export]
    use super::endpoint::{Datagram, Endpoint};
    #[pymodule_export]
    use super::events::{Closed, Connected, PlaneDown, PlaneUp, StreamFailed};
    #[pymodule_export]
    use super::nic::Nic;
    #[pymodule_export]
    use super::packet::packet_record;
    #[pymodule_export]
    use super::region::Region;
    #[pymodule_export]
    use super::simulate::{simulate, to_toml};
    #[pymodule_export]
    use super::table::Table;
    /// The checksum of the wire (CRC32C), by the core.
    #[pyfunction]
    fn crc32c(data: &[u8]) -> u32 {
        metaroce_core::wire::crc32c(data)
    }

    #[pymodule_export]
    use super::values::{Completion, CompletionKind, LocalSlice, RemoteAddress, Status};
}
