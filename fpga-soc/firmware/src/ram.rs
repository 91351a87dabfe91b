//! The region of RAM that peers use.

use core::ops::Range;

use metaroce_core::memory::MemoryFault;
use metaroce_core::{Memory, RegionIndex};

/// Bytes of the region.
pub const REGION_BYTES: usize = 8_192;

/// The device's only region. It is touched by the core alone, so that atomics need nothing more.
#[derive(Debug)]
pub struct Ram<'a>(pub &'a mut [u8; REGION_BYTES]);

fn range(offset: u64, length: usize) -> Option<Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    Some(start..start.checked_add(length)?)
}

impl Memory for Ram<'_> {
    fn place(&mut self, _: RegionIndex, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let range = range(offset, bytes.len()).ok_or(MemoryFault)?;
        let place = self.0.get_mut(range).ok_or(MemoryFault)?;
        for (place, byte) in place.iter_mut().zip(bytes) {
            *place = *byte;
        }
        Ok(())
    }

    fn gather(&self, _: RegionIndex, offset: u64, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        let range = range(offset, bytes.len()).ok_or(MemoryFault)?;
        let from = self.0.get(range).ok_or(MemoryFault)?;
        for (byte, from) in bytes.iter_mut().zip(from) {
            *byte = *from;
        }
        Ok(())
    }
}
