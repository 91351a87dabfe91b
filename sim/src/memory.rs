//! Memory whose bytes are not there: for flows whose contents nobody reads.

use metaroce_core::memory::{Memory, MemoryFault, RegionIndex};

use crate::time::Time;

/// Memory that is told the time, to record progress.
pub trait SimMemory: Memory {
    /// It is `now`.
    fn set_now(&mut self, now: Time);
}

/// Accepts every byte, keeps none, counts all.
#[derive(Clone, Debug, Default)]
pub struct VirtualMemory {
    now: Time,
    /// Bytes placed in each region.
    placed: Vec<u64>,
    bin_width: Time,
    bins: Vec<u64>,
}

impl VirtualMemory {
    /// Bytes placed in a region so far.
    #[must_use]
    pub fn placed(&self, region: RegionIndex) -> u64 {
        self.placed.get(usize::from(region.0)).copied().unwrap_or(0)
    }

    /// From now on also counts the bytes placed in each span of `width` since time zero.
    pub fn record(&mut self, width: Time) {
        self.bin_width = width;
        self.bins.clear();
    }

    /// Bytes placed per span of time.
    #[must_use]
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }
}

impl SimMemory for VirtualMemory {
    fn set_now(&mut self, now: Time) {
        self.now = now;
    }
}

impl Memory for VirtualMemory {
    fn place(&mut self, region: RegionIndex, _: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let index = usize::from(region.0);
        if index >= self.placed.len() {
            self.placed.resize(index + 1, 0);
        }
        self.placed[index] += bytes.len() as u64;
        if self.bin_width > Time::ZERO {
            let bin = (self.now.ps() / self.bin_width.ps()) as usize;
            if bin >= self.bins.len() {
                self.bins.resize(bin + 1, 0);
            }
            self.bins[bin] += bytes.len() as u64;
        }
        Ok(())
    }

    fn gather(&self, _: RegionIndex, _: u64, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        bytes.fill(0);
        Ok(())
    }
}
