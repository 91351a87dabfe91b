//! What a packet costs, counted while the device works.

use core::sync::atomic::{AtomicU32, Ordering};

/// Counters, modulo 2^32. Written by the device's task, read by whoever reports.
#[derive(Debug, Default)]
pub struct Figures {
    frames_in: AtomicU32,
    cycles_in: AtomicU32,
    frames_out: AtomicU32,
    cycles_out: AtomicU32,
}

/// Their values at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Snapshot {
    /// Frames of the service that came in.
    pub frames_in: u32,
    /// Cycles of the processor from a frame in the port's buffer to its bytes in place.
    pub cycles_in: u32,
    /// Frames of the service that were sent.
    pub frames_out: u32,
    /// Cycles from asking the core for a datagram to a whole frame in the port's buffer.
    pub cycles_out: u32,
}

impl Figures {
    /// Nothing counted.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            frames_in: AtomicU32::new(0),
            cycles_in: AtomicU32::new(0),
            frames_out: AtomicU32::new(0),
            cycles_out: AtomicU32::new(0),
        }
    }

    #[cfg(feature = "task")]
    pub(crate) fn received(&self, cycles: u32) {
        add(&self.frames_in, 1);
        add(&self.cycles_in, cycles);
    }

    #[cfg(feature = "task")]
    pub(crate) fn sent(&self, cycles: u32) {
        add(&self.frames_out, 1);
        add(&self.cycles_out, cycles);
    }

    /// What was counted so far.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let get = |counter: &AtomicU32| counter.load(Ordering::Relaxed);
        Snapshot {
            frames_in: get(&self.frames_in),
            cycles_in: get(&self.cycles_in),
            frames_out: get(&self.frames_out),
            cycles_out: get(&self.cycles_out),
        }
    }
}

/// One task writes: no read-modify-write is needed, which not every processor has.
#[cfg(feature = "task")]
fn add(counter: &AtomicU32, more: u32) {
    let sum = counter.load(Ordering::Relaxed).wrapping_add(more);
    counter.store(sum, Ordering::Relaxed);
}
