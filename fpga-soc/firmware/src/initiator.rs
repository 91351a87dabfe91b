//! The script of a device that goes to another: in each round it writes a pattern to the peer's memory, reads it back, checks every
//! byte, and adds to a word.

use metaroce_core::service::{HELLO_BYTES, Hello, SERVICE};
use metaroce_core::{
    CloseMode, Completion, ConnectionHandle, Event, Instant, LocalSlice, Memory, Operation,
    ReceiveQueue, ReceiveRequest, Region, Source, Status, WorkFlags, WorkRequest,
};

use crate::device::Small;
use crate::ram::{REGION_BYTES, Ram};
use crate::say::{info, warning};

/// Rounds of three operations each.
pub const ROUNDS: u32 = 16;
/// Bytes that a round writes and reads.
const BYTES: u32 = 3_000;
/// Where in this side's region they are written from, where they are read to, where the word before an addition and the hello go.
const PATTERN: u64 = 0;
const READ: u64 = 3_072;
const BEFORE: u64 = 6_144;
const HELLO: u64 = 6_152;
/// Where in the peer's region the word is.
const COUNTER: u64 = REGION_BYTES as u64 - 8;
const ADDEND: u64 = 3;

/// How far it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Connecting,
    Hello,
    Write,
    Read,
    Add,
    Closing,
    Over,
}

/// A device's visit to another.
#[derive(Debug)]
pub struct Initiator {
    connection: ConnectionHandle,
    step: Step,
    round: u32,
    window: Option<Hello>,
    /// The counter as the first addition found it.
    first: u64,
    good: bool,
}

/// The bytes of a round.
const fn pattern(round: u32, at: u64) -> u8 {
    (at as u8)
        .wrapping_mul(31)
        .wrapping_add((at >> 8) as u8)
        .wrapping_add((round as u8).wrapping_mul(77))
}

impl Initiator {
    /// It has been asked for this connection.
    #[must_use]
    pub const fn new(connection: ConnectionHandle) -> Self {
        Self {
            connection,
            step: Step::Connecting,
            round: 0,
            window: None,
            first: 0,
            good: true,
        }
    }

    /// Something has happened.
    pub fn handle(
        &mut self,
        now: Instant,
        event: &Event,
        endpoint: &mut Small<'_>,
        ram: &mut Ram<'_>,
        region: Region,
    ) {
        match event {
            Event::Connected { .. } => {
                info!("connected");
                self.step = Step::Hello;
                let receive = ReceiveRequest {
                    id: 0,
                    local: slice(region, HELLO, HELLO_BYTES as u32),
                };
                let queue = ReceiveQueue::Stream(self.connection, 0);
                if endpoint.post_receive(queue, &receive).is_err() {
                    self.fail(now, endpoint);
                }
            }
            Event::Completion(completion) => {
                if self.completed(completion, ram, region) {
                    self.next(now, endpoint, ram, region);
                } else {
                    self.fail(now, endpoint);
                }
            }
            Event::Closed { reason, .. } => {
                let is_whole = self.good && self.step == Step::Closing;
                self.step = Step::Over;
                if is_whole {
                    info!("initiator: {} rounds done, every byte good", self.round);
                } else {
                    warning!("initiator: failed in round {}: {:?}", self.round, reason);
                }
            }
            _ => {}
        }
    }

    /// Checks what has ended, and says what is next.
    fn completed(&mut self, completion: &Completion, ram: &Ram<'_>, region: Region) -> bool {
        if completion.status != Status::Success {
            warning!("operation: {:?}", completion.status);
            return self.step == Step::Closing;
        }
        match self.step {
            Step::Hello => {
                let mut bytes = [0; HELLO_BYTES];
                if ram.gather(region.index, HELLO, &mut bytes).is_ok() {
                    self.window = Hello::decode(&bytes);
                }
                self.step = Step::Write;
                self.window.is_some()
            }
            Step::Write => {
                self.step = Step::Read;
                true
            }
            Step::Read => {
                self.step = Step::Add;
                (0..u64::from(BYTES)).all(|at| {
                    let mut byte = [0];
                    ram.gather(region.index, READ + at, &mut byte).is_ok()
                        && byte == [pattern(self.round, at)]
                })
            }
            Step::Add => {
                let mut word = [0; 8];
                let _ = ram.gather(region.index, BEFORE, &mut word);
                let before = u64::from_ne_bytes(word);
                if self.round == 0 {
                    self.first = before;
                }
                let added = ADDEND.wrapping_mul(u64::from(self.round));
                self.round += 1;
                self.step = if self.round == ROUNDS {
                    Step::Closing
                } else {
                    Step::Write
                };
                before == self.first.wrapping_add(added)
            }
            Step::Connecting | Step::Closing | Step::Over => true,
        }
    }

    /// Begins what is next.
    fn next(&mut self, now: Instant, endpoint: &mut Small<'_>, ram: &mut Ram<'_>, region: Region) {
        let Some(window) = self.window else {
            return;
        };
        let operation = match self.step {
            Step::Write => {
                for at in 0..u64::from(BYTES) {
                    let byte = [pattern(self.round, at)];
                    // The pattern is inside of the region.
                    let _ = ram.place(region.index, PATTERN + at, &byte);
                }
                Operation::Write {
                    local: Source::Region(slice(region, PATTERN, BYTES)),
                    remote: window.at(u64::from(self.round) * 64),
                    immediate: None,
                }
            }
            Step::Read => Operation::Read {
                local: slice(region, READ, BYTES),
                remote: window.at(u64::from(self.round) * 64),
            },
            Step::Add => Operation::FetchAdd {
                local: slice(region, BEFORE, 8),
                remote: window.at(COUNTER),
                add: ADDEND,
            },
            Step::Closing => {
                // The only error is that it is gone.
                let _ = endpoint.close(now, self.connection, CloseMode::Drain);
                return;
            }
            Step::Connecting | Step::Hello | Step::Over => return,
        };
        let work = WorkRequest {
            id: u64::from(self.round),
            operation,
            flags: WorkFlags::default(),
        };
        if let Err(error) = endpoint.post(now, self.connection, 0, &work) {
            warning!("post: {:?}", error);
            self.fail(now, endpoint);
        }
    }

    fn fail(&mut self, now: Instant, endpoint: &mut Small<'_>) {
        self.good = false;
        let _ = endpoint.close(now, self.connection, CloseMode::Abort(SERVICE as u16));
    }
}

const fn slice(region: Region, offset: u64, length: u32) -> LocalSlice {
    LocalSlice {
        region: region.index,
        offset,
        length,
    }
}
