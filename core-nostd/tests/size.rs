//! How much memory the state takes. Run with `--nocapture` to see the figures.

use metaroce_core::message::stream::Stream;
use metaroce_core::path::receive::ReceivePath;
use metaroce_core::{ConnectionEntry, LargeConnection, SmallConnection};

/// Prints a size and says whether it is within its limit.
fn within(what: &str, bytes: usize, limit: usize) -> bool {
    println!("{what}: {bytes} bytes, at most {limit}");
    bytes <= limit
}

#[test]
fn state_is_as_small_as_promised() {
    let mut good = within(
        "connection of 64 paths, 512 slots",
        size_of::<LargeConnection>(),
        40 << 10,
    );
    good &= within(
        "connection of 4 paths, 32 slots",
        size_of::<SmallConnection>(),
        3 << 10,
    );
    good &= within("path at the receiver", size_of::<ReceivePath>(), 96);
    good &= within("idle stream", size_of::<Stream>(), 64);
    assert!(good, "state has grown beyond what is promised");
}

#[test]
fn what_a_table_entry_adds_is_small() {
    let entry = size_of::<ConnectionEntry<4, 32, 2, 2>>() - size_of::<SmallConnection>();
    assert!(within("table entry beside its connection", entry, 64));
}
