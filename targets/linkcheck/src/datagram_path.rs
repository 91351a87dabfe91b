//! The calls whose code is looked at.

use core::hint::black_box;

use metaroce_core::wire;

/// Calls the datagram path with inputs that the compiler knows nothing about.
pub fn run() {
    wire_formats();
    // FILL IN when the core has its endpoint: one of a small profile (4 paths, 32 slots) behind
    // `black_box`, and `handle_datagram`, `poll_transmit`, `handle_timeout`, `poll_event` on it.
}

/// Every kind of datagram, read and written again.
fn wire_formats() {
    let received = [0; 256];
    let received = black_box(&received[..]);
    let mut written = [0; 256];
    let trailer = black_box(wire::Trailer::Crc32c);
    if let Ok(body) = wire::check(received, trailer)
        && let Ok(packet) = wire::decode(body)
        && let Ok(length) = packet.encode(black_box(&mut written[..]))
    {
        let _ = black_box(wire::seal(black_box(&mut written[..]), length, trailer));
    }
}
