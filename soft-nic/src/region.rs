//! A registered region as the application holds it.

use crate::memory::Buffer;
use crate::shared::Shared;
use metaroce_core::memory::{LocalSlice, Region, RemoteAddress};
use std::sync::Arc;

/// Memory that a NIC may use and, by its key, peers too. Dropping it takes both rights away.
#[derive(Debug)]
pub struct MemoryRegion {
    pub(crate) shared: Arc<Shared>,
    pub(crate) region: Region,
    pub(crate) base: u64,
    pub(crate) length: u64,
    pub(crate) buffer: Option<Buffer>,
}

impl MemoryRegion {
    /// The region's index and key.
    #[must_use]
    pub fn region(&self) -> Region {
        self.region
    }

    /// The remote key, to be told to peers.
    #[must_use]
    pub fn key(&self) -> u32 {
        self.region.key
    }

    /// The address of the region's first byte, as peers use it.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The buffer behind it; `None` for raw memory.
    #[must_use]
    pub fn buffer(&self) -> Option<&Buffer> {
        self.buffer.as_ref()
    }

    /// A slice of it, for this side's work requests. It is checked when posted.
    #[must_use]
    pub fn slice(&self, offset: u64, length: u32) -> LocalSlice {
        LocalSlice {
            region: self.region.index,
            offset,
            length,
        }
    }

    /// A place in it as peers name it.
    #[must_use]
    pub fn remote(&self, offset: u64) -> RemoteAddress {
        RemoteAddress {
            address: self.base.wrapping_add(offset),
            key: self.region.key,
        }
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        let mut driver = self.shared.lock();
        // The only error is that it is gone already.
        let _ = driver.core.deregister(self.region.index);
        driver.memory.remove(self.region.index);
    }
}
