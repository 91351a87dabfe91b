//! A stream: the order of its messages, both ways.

use super::outgoing;
use super::receives::Queue;
use crate::wire::ErrorCode;
use crate::work::Status;

/// One ordered flow of messages. Idle, it is this and nothing else.
#[derive(Clone, Copy, Debug)]
// spec: MR-MSG-006
pub struct Stream {
    /// MSN of the next message posted here.
    pub next_msn: u32,
    /// RSN of the next receive-consuming message posted here.
    pub next_rsn: u32,
    /// MSN of the peer's message whose turn it is.
    pub expected_msn: u32,
    /// Buffers posted for the peer's messages.
    pub receives: Queue,
    /// Oldest message posted here that has not completed.
    pub first: u16,
    /// Next message with something to send.
    pub unsent: u16,
    /// Newest message posted here.
    pub last: u16,
    /// READs and atomics started and not complete.
    pub reads: u16,
    /// Next stream in the ring of those with something to send.
    pub next_active: u16,
    /// The shared queue that receives come from, if any.
    pub shared: Option<u8>,
    /// Why it failed, if it did.
    pub failed: Option<Status>,
    /// In the ring of those with something to send.
    pub active: bool,
    /// Its next request waits for room for a response.
    pub stalled: bool,
    /// Messages of the peer that are complete and wait for a posted buffer to be reported in.
    pub awaiting: u16,
    /// The failure is still to be told to the application, and whether the peer caused it.
    pub report: Option<bool>,
    /// Its receives are still to be flushed.
    pub flush: bool,
    /// A report of its failure that the peer still is to be sent: the message, and why.
    pub tell: Option<(u32, ErrorCode)>,
    /// The peer knows that it failed, or will when it gets a report that is under way.
    pub told: bool,
}

impl Stream {
    /// Nothing happened yet.
    pub const IDLE: Self = Self {
        next_msn: 0,
        next_rsn: 0,
        expected_msn: 0,
        receives: Queue::EMPTY,
        first: outgoing::NONE,
        unsent: outgoing::NONE,
        last: outgoing::NONE,
        reads: 0,
        next_active: outgoing::NONE,
        shared: None,
        failed: None,
        active: false,
        stalled: false,
        awaiting: 0,
        report: None,
        flush: false,
        tell: None,
        told: false,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_stream_is_at_most_64_bytes() {
        assert!(size_of::<Stream>() <= 64, "{} bytes", size_of::<Stream>());
    }
}
