//! One operation of a measurement.

use super::{Bench, Kind};
use metaroce_soft::Error;
use metaroce_soft::core::work::{Operation, Source, WorkFlags, WorkRequest};

impl Bench<'_> {
    /// Places that messages of `size` bytes use in turn.
    pub(super) fn slots(&self, size: u64) -> u64 {
        (self.window / stride(size)).max(1)
    }

    /// Where a slot begins in both windows.
    pub(super) fn offset(&self, size: u64, number: u64) -> u64 {
        if self.arguments.kind == Kind::Atomic {
            0
        } else {
            number % self.slots(size) * stride(size)
        }
    }

    /// Posts operation `number` on its stream.
    pub(super) fn post(&self, size: u64, number: u64) -> Result<(), Error> {
        let stream = (number % u64::from(self.arguments.streams)) as u16;
        let offset = self.offset(size, number);
        let remote = self.session.window.at(offset);
        let operation = match self.arguments.kind {
            Kind::Write => Operation::Write {
                local: Source::Region(self.local.slice(offset, size as u32)),
                remote,
                immediate: None,
            },
            Kind::Read => Operation::Read {
                local: self.local.slice(offset, size as u32),
                remote,
            },
            Kind::Send => Operation::Send {
                local: Source::Region(self.local.slice(offset, size as u32)),
                immediate: None,
            },
            // Each open atomic has a word of its own for its result.
            Kind::Atomic => {
                let word = number % (self.window / 8).clamp(1, 4096) * 8;
                Operation::FetchAdd {
                    local: self.local.slice(word, 8),
                    remote,
                    add: 1,
                }
            }
        };
        self.session.connection.post(
            stream,
            &WorkRequest {
                id: number,
                operation,
                flags: WorkFlags::default(),
            },
        )
    }
}

/// Messages begin at multiples of 64 bytes.
const fn stride(size: u64) -> u64 {
    let rounded = size.next_multiple_of(64);
    if rounded == 0 { 64 } else { rounded }
}
