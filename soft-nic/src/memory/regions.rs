//! The bytes behind registered regions, for the core to place into and gather from.

use super::{Buffer, copy};
use metaroce_core::memory::{AtomicChange, Memory, MemoryFault, RegionIndex};
use std::sync::atomic::{AtomicU64, Ordering};

/// Registered memory by region index: the [`Memory`] of whoever drives a core over memory of its own.
#[derive(Debug, Default)]
pub struct RegionMap {
    entries: Vec<Option<Entry>>,
}

#[derive(Debug)]
struct Entry {
    start: *mut u8,
    length: usize,
    /// Keeps the memory of a [`Buffer`] alive; `None` for raw memory, which its owner keeps.
    _keep: Option<Buffer>,
}

// SAFETY: the pointers are to buffers (usable from any thread) or to memory whose owner promised as much
// in `insert_raw`.
unsafe impl Send for RegionMap {}
// SAFETY: by a shared reference bytes are only copied out.
unsafe impl Sync for RegionMap {}

impl RegionMap {
    /// Puts a buffer behind an index.
    pub fn insert(&mut self, index: RegionIndex, buffer: &Buffer) {
        self.put(
            index,
            Entry {
                start: buffer.as_ptr(),
                length: buffer.len(),
                _keep: Some(buffer.clone()),
            },
        );
    }

    /// Puts somebody else's memory behind an index.
    ///
    /// # Safety
    /// Until [`Self::remove`], `start` must be valid for reads and writes of `length` bytes from any thread, and nobody
    /// may hold a Rust reference to them while a peer or this NIC accesses them.
    pub unsafe fn insert_raw(&mut self, index: RegionIndex, start: *mut u8, length: usize) {
        self.put(
            index,
            Entry {
                start,
                length,
                _keep: None,
            },
        );
    }

    /// Forgets what is behind an index; it is not touched any more when this returns.
    pub fn remove(&mut self, index: RegionIndex) {
        if let Some(entry) = self.entries.get_mut(usize::from(index.0)) {
            *entry = None;
        }
    }

    fn put(&mut self, index: RegionIndex, entry: Entry) {
        let index = usize::from(index.0);
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || None);
        }
        self.entries[index] = Some(entry);
    }

    fn place_of(
        &self,
        region: RegionIndex,
        offset: u64,
        length: usize,
    ) -> Result<*mut u8, MemoryFault> {
        let entry = self
            .entries
            .get(usize::from(region.0))
            .and_then(Option::as_ref)
            .ok_or(MemoryFault)?;
        let offset = usize::try_from(offset).map_err(|_| MemoryFault)?;
        if offset > entry.length || length > entry.length - offset {
            return Err(MemoryFault);
        }
        // SAFETY: the offset is inside of the registered range or one past its end.
        Ok(unsafe { entry.start.add(offset) })
    }
}

impl Memory for RegionMap {
    #[inline]
    fn place(&mut self, region: RegionIndex, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let place = self.place_of(region, offset, bytes.len())?;
        // SAFETY: in bounds of memory that is registered, hence valid and without references.
        unsafe { copy::store(place, bytes) };
        Ok(())
    }

    #[inline]
    fn gather(
        &self,
        region: RegionIndex,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), MemoryFault> {
        let place = self.place_of(region, offset, bytes.len())?;
        // SAFETY: as in `place`.
        unsafe { copy::load(bytes, place) };
        Ok(())
    }

    fn modify(
        &mut self,
        region: RegionIndex,
        offset: u64,
        change: AtomicChange,
    ) -> Result<u64, MemoryFault> {
        let place = self.place_of(region, offset, 8)?;
        if !place.cast::<u64>().is_aligned() {
            return Err(MemoryFault);
        }
        // SAFETY: in bounds, aligned, and others use it only atomically or by the copies of `copy`.
        let word = unsafe { AtomicU64::from_ptr(place.cast()) };
        Ok(match change {
            AtomicChange::FetchAdd { add } => word.fetch_add(add, Ordering::AcqRel),
            AtomicChange::CompareSwap { compare, swap } => {
                match word.compare_exchange(compare, swap, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(old) | Err(old) => old,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_where_the_core_says_and_nowhere_else() {
        let buffer = Buffer::new(64).unwrap();
        let mut map = RegionMap::default();
        map.insert(RegionIndex(3), &buffer);
        map.place(RegionIndex(3), 60, b"abcd").unwrap();
        let mut bytes = [0; 4];
        map.gather(RegionIndex(3), 60, &mut bytes).unwrap();
        assert_eq!(&bytes, b"abcd");
        assert_eq!(map.place(RegionIndex(3), 61, b"abcd"), Err(MemoryFault));
        assert_eq!(map.place(RegionIndex(2), 0, b"abcd"), Err(MemoryFault));
        assert_eq!(
            map.gather(RegionIndex(3), u64::MAX, &mut bytes),
            Err(MemoryFault)
        );
        map.remove(RegionIndex(3));
        assert_eq!(map.gather(RegionIndex(3), 60, &mut bytes), Err(MemoryFault));
    }

    #[test]
    fn atomics_are_atomic_towards_other_threads() {
        let buffer = Buffer::new(8).unwrap();
        let mut map = RegionMap::default();
        map.insert(RegionIndex(0), &buffer);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    buffer.word(0).unwrap().fetch_add(1, Ordering::Relaxed);
                }
            });
            for _ in 0..10_000 {
                map.modify(RegionIndex(0), 0, AtomicChange::FetchAdd { add: 1 })
                    .unwrap();
            }
        });
        assert_eq!(buffer.load_u64(0), Ok(20_000));
        let swap = AtomicChange::CompareSwap {
            compare: 20_000,
            swap: 5,
        };
        assert_eq!(map.modify(RegionIndex(0), 0, swap), Ok(20_000));
        assert_eq!(map.modify(RegionIndex(0), 0, swap), Ok(5));
        assert_eq!(map.modify(RegionIndex(0), 4, swap), Err(MemoryFault));
    }
}
