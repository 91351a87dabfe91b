//! Checking what operations did.

use super::figures::Tally;
use super::{Bench, Kind};
use crate::content;
use crate::failure::Failure;
use metaroce_soft::core::memory::Access;
use metaroce_soft::core::work::{Operation, Source, Status, WorkFlags, WorkRequest};
use metaroce_soft::{Buffer, MemoryRegion, Phase};
use std::time::Duration;

/// The content that is expected, and a place to read the server's memory back to.
pub struct Check {
    kind: Kind,
    size: u64,
    slots: u64,
    lap: u64,
    verified: u64,
    back: MemoryRegion,
    back_buffer: Buffer,
    scratch: Vec<u8>,
    /// The atomic's word before the first operation.
    first_word: Option<u64>,
    counted: u64,
}

const SEED: u64 = 0x6d65_7461;
/// Bytes of one read when the window is read back.
const READ_BACK: u64 = 1 << 20;

impl Check {
    pub fn new(bench: &Bench<'_>, size: u64) -> Result<Self, Failure> {
        let bytes = if bench.arguments.kind == Kind::Write {
            bench.window as usize
        } else {
            8
        };
        let back_buffer = Buffer::new(bytes)
            .map_err(|error| Failure::System(format!("{bytes} bytes of memory: {error}")))?;
        let back = bench.nic.register(&back_buffer, Access::LOCAL_WRITE)?;
        let slots = if bench.arguments.kind == Kind::Atomic {
            u64::MAX
        } else {
            bench.slots(size)
        };
        let scratch = vec![0; size as usize];
        let kind = bench.arguments.kind;
        Ok(Self {
            kind,
            size,
            slots,
            lap: 0,
            verified: 0,
            back,
            back_buffer,
            scratch,
            first_word: None,
            counted: 0,
        })
    }

    /// Operations of the next lap, at most.
    pub fn lap(&self, left: u64) -> u64 {
        left.min(self.slots)
    }

    /// Bytes that were found right.
    pub fn verified(&self) -> u64 {
        self.verified
    }

    /// Makes the content of the next lap.
    pub fn prepare(&mut self, bench: &Bench<'_>, tally: &mut Tally) -> Result<(), Failure> {
        self.lap += 1;
        match self.kind {
            Kind::Write => self.fill_local(bench),
            Kind::Read => {
                self.fill_local(bench)?;
                self.move_window(bench, bench.window, tally, |offset, length| {
                    Operation::Write {
                        local: Source::Region(bench.local.slice(offset, length)),
                        remote: bench.session.window.at(offset),
                        immediate: None,
                    }
                })?;
                // What is read must come from the server.
                let zero = vec![0; 1 << 16];
                let buffer = local_buffer(bench)?;
                for offset in (0..buffer.len()).step_by(zero.len()) {
                    let length = zero.len().min(buffer.len() - offset);
                    buffer
                        .write_at(offset, &zero[..length])
                        .map_err(out_of_bounds)?;
                }
                Ok(())
            }
            Kind::Atomic => {
                if self.first_word.is_none() {
                    self.first_word = Some(self.read_word(bench, tally)?);
                }
                Ok(())
            }
            Kind::Send => Ok(()),
        }
    }

    fn fill_local(&mut self, bench: &Bench<'_>) -> Result<(), Failure> {
        let buffer = local_buffer(bench)?;
        for slot in 0..self.slots {
            content::fill(SEED.wrapping_add(self.lap), slot, &mut self.scratch);
            buffer
                .write_at(bench.offset(self.size, slot) as usize, &self.scratch)
                .map_err(out_of_bounds)?;
        }
        Ok(())
    }

    /// Checks the `done` operations of a lap. `Some` says what was wrong.
    pub fn check(
        &mut self,
        bench: &Bench<'_>,
        done: u64,
        tally: &mut Tally,
    ) -> Result<Option<String>, Failure> {
        match self.kind {
            Kind::Write => {
                let back = &self.back;
                let read = |offset, length| Operation::Read {
                    local: back.slice(offset, length),
                    remote: bench.session.window.at(offset),
                };
                self.move_window(bench, bench.window, tally, read)?;
                let buffer = self.back_buffer.clone();
                self.compare(bench, &buffer, done, tally)
            }
            Kind::Read => {
                let buffer = local_buffer(bench)?.clone();
                self.compare(bench, &buffer, done, tally)
            }
            Kind::Atomic => {
                self.counted += done;
                let expected = self.first_word.unwrap_or(0).wrapping_add(self.counted);
                let found = self.read_word(bench, tally)?;
                self.verified = self.counted * 8;
                Ok((found != expected).then(|| {
                    format!(
                        "the counter is {found} after {} additions, and should be {expected}",
                        self.counted
                    )
                }))
            }
            Kind::Send => Ok(None),
        }
    }

    fn compare(
        &mut self,
        bench: &Bench<'_>,
        buffer: &Buffer,
        done: u64,
        tally: &Tally,
    ) -> Result<Option<String>, Failure> {
        // The lap's operations used consecutive slots; which ones follows from the number of the first.
        let first = tally.posted - done;
        for number in first..first + done {
            let slot = number % self.slots;
            let offset = bench.offset(self.size, slot);
            buffer
                .read_at(offset as usize, &mut self.scratch)
                .map_err(out_of_bounds)?;
            if let Some(place) =
                content::first_difference(SEED.wrapping_add(self.lap), slot, &self.scratch)
            {
                return Ok(Some(format!(
                    "operation {number}: byte {place} of {} is wrong (window offset {offset})",
                    self.size
                )));
            }
            self.verified += self.size;
        }
        Ok(None)
    }

    fn read_word(&self, bench: &Bench<'_>, tally: &mut Tally) -> Result<u64, Failure> {
        let read = Operation::Read {
            local: self.back.slice(0, 8),
            remote: bench.session.window.at(0),
        };
        self.all(bench, tally, std::iter::once(read))?;
        self.back_buffer.load_u64(0).map_err(out_of_bounds)
    }

    fn move_window<'a>(
        &self,
        bench: &Bench<'_>,
        window: u64,
        tally: &mut Tally,
        operation: impl Fn(u64, u32) -> Operation<'a>,
    ) -> Result<(), Failure> {
        let parts = (0..window)
            .step_by(READ_BACK as usize)
            .map(|offset| operation(offset, READ_BACK.min(window - offset) as u32));
        self.all(bench, tally, parts)
    }

    /// Does operations that are not measured, eight at a time.
    fn all<'a>(
        &self,
        bench: &Bench<'_>,
        tally: &mut Tally,
        operations: impl Iterator<Item = Operation<'a>>,
    ) -> Result<(), Failure> {
        let mut operations = operations.peekable();
        let mut open = 0;
        let queue = bench.nic.completions();
        let lost = |what: String| Failure::Connection(format!("while checking: {what}"));
        while open > 0 || operations.peek().is_some() {
            while open < 8 {
                let Some(operation) = operations.next() else {
                    break;
                };
                let work = WorkRequest {
                    id: u64::MAX,
                    operation,
                    flags: WorkFlags::default(),
                };
                bench
                    .session
                    .connection
                    .post(0, &work)
                    .map_err(|error| lost(error.to_string()))?;
                open += 1;
            }
            bench.watch.look(bench.nic);
            match queue.wait(Some(Duration::from_millis(100))) {
                Some(completion) if completion.status == Status::Success => open -= 1,
                Some(completion) => {
                    tally.count(completion.status, Duration::ZERO);
                    return Err(lost(format!("{:?}", completion.status)));
                }
                None => {
                    if let Phase::Closed(reason) = bench.session.connection.phase() {
                        return Err(lost(format!("{reason:?}")));
                    }
                }
            }
        }
        Ok(())
    }
}

fn local_buffer<'a>(bench: &'a Bench<'_>) -> Result<&'a Buffer, Failure> {
    bench
        .local
        .buffer()
        .ok_or_else(|| Failure::System("no buffer behind the local region".to_owned()))
}

fn out_of_bounds(error: metaroce_soft::memory::OutOfBounds) -> Failure {
    Failure::System(error.to_string())
}
