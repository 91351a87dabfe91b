//! What is done in the conversation, one operation after the other.

use metaroce_core::{LocalSlice, Operation, RegionIndex, RemoteAddress, Source};

/// Bytes of each side's region.
pub const REGION: usize = 8_192;
/// Where each side's region begins for its peer.
pub const BASE: u64 = 0x1000;
/// Offset of the counter that atomics work on.
pub const COUNTER: u64 = 8_000;
/// Operations in a round.
pub const OPERATIONS: u32 = 6;

/// The k-th operation of the asking side. `region` is its own, `key` the peer's.
pub fn operation(k: u32, region: RegionIndex, key: u32) -> Operation<'static> {
    let round = k / OPERATIONS;
    let local = |offset, length| LocalSlice {
        region,
        offset,
        length,
    };
    let remote = |offset| RemoteAddress {
        address: BASE + offset,
        key,
    };
    match k % OPERATIONS {
        0 => Operation::Write {
            local: Source::Region(local(0, 4_000)),
            remote: remote(0),
            immediate: None,
        },
        1 => Operation::Send {
            local: Source::Region(local(100, 700)),
            immediate: Some(round),
        },
        2 => Operation::Read {
            local: local(4_000, 3_000),
            remote: remote(500),
        },
        3 => Operation::FetchAdd {
            local: local(7_992, 8),
            remote: remote(COUNTER),
            add: 5,
        },
        4 => Operation::CompareSwap {
            local: local(7_984, 8),
            remote: remote(COUNTER),
            compare: u64::from(round) * 6 + 5,
            swap: u64::from(round) * 6 + 6,
        },
        _ => Operation::Write {
            local: Source::Region(local(4_000, 1_500)),
            remote: remote(5_000),
            immediate: Some(0x1000 + round),
        },
    }
}
