//! Regions as byte vectors that complain about every access the core must not make.

use metaroce_core::memory::MemoryFault;
use metaroce_core::{Memory, RegionIndex};

/// One region's bytes and whether anything may be written to them.
pub struct Bytes {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Some right to write was given.
    pub writable: bool,
}

/// Regions by their index.
#[derive(Default)]
pub struct Guarded {
    /// `None`: not registered (any more).
    pub regions: Vec<Option<Bytes>>,
    /// The next access fails.
    pub fault: bool,
}

impl Guarded {
    fn region(&self, region: RegionIndex) -> &Bytes {
        self.regions
            .get(usize::from(region.0))
            .and_then(Option::as_ref)
            .expect("the core touches registered regions only")
    }
}

impl Memory for Guarded {
    fn place(&mut self, region: RegionIndex, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let known = self.region(region);
        assert!(known.writable, "nobody has the right to write here");
        let end = offset.checked_add(bytes.len() as u64).expect("no overflow");
        assert!(end <= known.bytes.len() as u64, "within the region");
        if std::mem::take(&mut self.fault) {
            return Err(MemoryFault);
        }
        if let Some(Some(place)) = self.regions.get_mut(usize::from(region.0)) {
            place.bytes[offset as usize..end as usize].copy_from_slice(bytes);
        }
        Ok(())
    }

    fn gather(
        &self,
        region: RegionIndex,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), MemoryFault> {
        let known = self.region(region);
        let end = offset.checked_add(bytes.len() as u64).expect("no overflow");
        assert!(end <= known.bytes.len() as u64, "within the region");
        bytes.copy_from_slice(&known.bytes[offset as usize..end as usize]);
        Ok(())
    }
}
