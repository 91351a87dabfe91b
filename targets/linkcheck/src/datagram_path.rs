//! The calls whose code is looked at.

/// Calls the datagram path with inputs that the compiler knows nothing about.
pub fn run() {
    // FILL IN when the core has its API: one `static` endpoint of a small profile (4 paths, 32
    // slots), then `handle_datagram`, `poll_transmit`, `handle_timeout` and `poll_event` on it.
}
