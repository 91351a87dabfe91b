//! Memory that remembers how often each byte was placed, and complains about what it must not be asked.

use metaroce_core::memory::{AtomicChange, Memory, MemoryFault, RegionIndex, modify_unshared};
use metaroce_sim::memory::SimMemory;
use metaroce_sim::time::Time;

use crate::content::UNTOUCHED;

/// A region's bytes.
#[derive(Clone, Debug, Default)]
pub struct RegionBytes {
    pub bytes: Vec<u8>,
    /// How often each byte was placed.
    pub placed: Vec<u8>,
}

impl RegionBytes {
    pub fn new(length: usize) -> Self {
        Self {
            bytes: vec![UNTOUCHED; length],
            placed: vec![0; length],
        }
    }
}

/// A host's memory, by region index.
#[derive(Clone, Debug, Default)]
pub struct OracleMemory {
    pub regions: Vec<RegionBytes>,
    /// What the core did that no core may do.
    pub violations: Vec<String>,
    /// From when on which region cannot be read.
    pub unreadable: Option<(Time, usize)>,
    now: Time,
}

impl OracleMemory {
    pub fn slice(&self, region: usize, offset: u64, length: usize) -> &[u8] {
        &self.regions[region].bytes[offset as usize..offset as usize + length]
    }

    pub fn counts(&self, region: usize, offset: u64, length: usize) -> &[u8] {
        &self.regions[region].placed[offset as usize..offset as usize + length]
    }

    /// The application writes (which is not placing).
    pub fn store(&mut self, region: usize, offset: u64, bytes: &[u8]) {
        self.regions[region].bytes[offset as usize..offset as usize + bytes.len()]
            .copy_from_slice(bytes);
    }

    pub fn word(&self, region: usize, offset: u64) -> u64 {
        let bytes = self.slice(region, offset, 8);
        u64::from_ne_bytes(bytes.try_into().unwrap_or_default())
    }
}

impl SimMemory for OracleMemory {
    fn set_now(&mut self, now: Time) {
        self.now = now;
    }
}

impl Memory for OracleMemory {
    fn place(&mut self, region: RegionIndex, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let now = self.now;
        let end = offset.checked_add(bytes.len() as u64);
        let target = self.regions.get_mut(usize::from(region.0));
        match (target, end) {
            (Some(target), Some(end)) if end <= target.bytes.len() as u64 => {
                let range = offset as usize..end as usize;
                target.bytes[range.clone()].copy_from_slice(bytes);
                for count in &mut target.placed[range] {
                    *count = count.saturating_add(1);
                }
                Ok(())
            }
            _ => {
                self.violations.push(format!(
                    "{now}: placed {} bytes at {offset} of region {}, outside of it",
                    bytes.len(),
                    region.0
                ));
                Err(MemoryFault)
            }
        }
    }

    fn gather(
        &self,
        region: RegionIndex,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), MemoryFault> {
        if self
            .unreadable
            .is_some_and(|(at, which)| self.now >= at && which == usize::from(region.0))
        {
            return Err(MemoryFault);
        }
        let source = self.regions.get(usize::from(region.0)).ok_or(MemoryFault)?;
        let start = usize::try_from(offset).map_err(|_| MemoryFault)?;
        let end = start.checked_add(bytes.len()).ok_or(MemoryFault)?;
        bytes.copy_from_slice(source.bytes.get(start..end).ok_or(MemoryFault)?);
        Ok(())
    }

    fn modify(
        &mut self,
        region: RegionIndex,
        offset: u64,
        change: AtomicChange,
    ) -> Result<u64, MemoryFault> {
        if !offset.is_multiple_of(8) {
            self.violations.push(format!(
                "{}: atomic at {offset} of region {}",
                self.now, region.0
            ));
            return Err(MemoryFault);
        }
        modify_unshared(self, region, offset, change)
    }
}
