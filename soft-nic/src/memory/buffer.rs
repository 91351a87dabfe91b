//! Buffers that the NIC may write into while the application holds them.

use super::copy;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Page-aligned, zeroed memory that a NIC and any number of threads use at the same time.
///
/// There is no way to get a safe reference to the bytes, since a peer may change them at any moment:
/// they are copied in and out ([`Self::read_at`], [`Self::write_at`]) or used as atomic words. Clones are
/// the same memory; it lives until the last clone and the last registration are gone.
#[derive(Clone, Debug)]
pub struct Buffer(Arc<Mapping>);

#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    length: usize,
    mapped: usize,
}

// SAFETY: the mapping is only accessed by copies and atomics that are sound between threads.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `Buffer::new` made, unmapped once, and nobody has a pointer into it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.mapped) };
    }
}

/// An access reached outside of a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{length} bytes at {offset} are not inside a buffer of {size} bytes")]
pub struct OutOfBounds {
    /// Where the access began.
    pub offset: usize,
    /// How long it was.
    pub length: usize,
    /// The buffer's size.
    pub size: usize,
}

const HUGE_PAGE: usize = 2 << 20;

impl Buffer {
    /// A zeroed buffer of `length` bytes.
    ///
    /// # Errors
    /// Those of `mmap`: mostly that there is not enough memory.
    pub fn new(length: usize) -> std::io::Result<Self> {
        let mapped = length.max(1).next_multiple_of(4096);
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                mapped,
                ProtFlags::READ | ProtFlags::WRITE,
                flags,
            )?
        };
        let start: NonNull<u8> = NonNull::new(start.cast())
            .ok_or_else(|| std::io::Error::other("mmap gave address 0"))?;
        if mapped >= HUGE_PAGE {
            // Fewer page faults and TLB misses; where it is not to be had nothing is lost.
            // SAFETY: the range is the mapping made above, and this advice changes no contents.
            let _ = unsafe { madvise(start.as_ptr().cast(), mapped, Advice::LinuxHugepage) };
        }
        Ok(Self(Arc::new(Mapping {
            start,
            length,
            mapped,
        })))
    }

    /// A buffer that holds a copy of `bytes`.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_bytes(bytes: &[u8]) -> std::io::Result<Self> {
        let buffer = Self::new(bytes.len())?;
        // SAFETY: the buffer is as long as `bytes`, and nobody else knows it yet.
        unsafe { copy::store(buffer.as_ptr(), bytes) };
        Ok(buffer)
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.length
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.length == 0
    }

    /// The first byte's address: what peers address the region by once it is registered. To use it as a pointer is
    /// up to the caller's own `unsafe` and care.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.0.start.as_ptr()
    }

    /// Copies bytes out.
    ///
    /// # Errors
    /// [`OutOfBounds`].
    pub fn read_at(&self, offset: usize, bytes: &mut [u8]) -> Result<(), OutOfBounds> {
        let source = self.at(offset, bytes.len())?;
        // SAFETY: `at` checked the range, and a buffer hands out no references.
        unsafe { copy::load(bytes, source) };
        Ok(())
    }

    /// Copies bytes in.
    ///
    /// # Errors
    /// [`OutOfBounds`].
    pub fn write_at(&self, offset: usize, bytes: &[u8]) -> Result<(), OutOfBounds> {
        let destination = self.at(offset, bytes.len())?;
        // SAFETY: `at` checked the range, and a buffer hands out no references.
        unsafe { copy::store(destination, bytes) };
        Ok(())
    }

    /// Copies bytes out into a new vector.
    ///
    /// # Errors
    /// [`OutOfBounds`].
    pub fn to_vec(&self, offset: usize, length: usize) -> Result<Vec<u8>, OutOfBounds> {
        self.at(offset, length)?;
        let mut bytes = vec![0; length];
        self.read_at(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// The 64-bit word at `offset` (a multiple of 8), read with acquire ordering: what the NIC had written
    /// before it wrote this word is visible too.
    ///
    /// # Errors
    /// [`OutOfBounds`], also for an offset that is not a multiple of 8.
    pub fn load_u64(&self, offset: usize) -> Result<u64, OutOfBounds> {
        Ok(self.word(offset)?.load(Ordering::Acquire))
    }

    /// Stores the 64-bit word at `offset` (a multiple of 8), with release ordering.
    ///
    /// # Errors
    /// As [`Self::load_u64`].
    pub fn store_u64(&self, offset: usize, value: u64) -> Result<(), OutOfBounds> {
        self.word(offset)?.store(value, Ordering::Release);
        Ok(())
    }

    /// The 64-bit word at `offset` (a multiple of 8) as an atomic.
    ///
    /// # Errors
    /// As [`Self::load_u64`].
    pub fn word(&self, offset: usize) -> Result<&AtomicU64, OutOfBounds> {
        let place = self.at(offset, 8)?;
        if !offset.is_multiple_of(8) {
            return Err(OutOfBounds {
                offset,
                length: 8,
                size: self.len(),
            });
        }
        // SAFETY: in bounds and aligned (a mapping starts on a page); lives as long as `self`; others use the word
        // only atomically or by the copies of `copy`.
        Ok(unsafe { AtomicU64::from_ptr(place.cast()) })
    }

    fn at(&self, offset: usize, length: usize) -> Result<*mut u8, OutOfBounds> {
        let size = self.0.length;
        if offset > size || length > size - offset {
            return Err(OutOfBounds {
                offset,
                length,
                size,
            });
        }
        // SAFETY: the offset is inside of the mapping or one past its end.
        Ok(unsafe { self.0.start.as_ptr().add(offset) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_rest_is_zero() {
        let buffer = Buffer::new(10_000).unwrap();
        buffer.write_at(9_990, b"0123456789").unwrap();
        assert_eq!(buffer.to_vec(9_989, 11).unwrap(), b"\x000123456789");
        assert_eq!(
            buffer.write_at(9_991, b"0123456789"),
            Err(OutOfBounds {
                offset: 9_991,
                length: 10,
                size: 10_000
            })
        );
        assert!(buffer.read_at(usize::MAX, &mut [0; 2]).is_err());
        assert!(buffer.read_at(10_000, &mut []).is_ok());
    }

    #[test]
    fn words_are_aligned_and_in_bounds() {
        let buffer = Buffer::new(20).unwrap();
        buffer.store_u64(8, 7).unwrap();
        assert_eq!(buffer.load_u64(8), Ok(7));
        assert!(buffer.load_u64(4).is_err());
        assert!(buffer.load_u64(16).is_err());
    }

    #[test]
    fn threads_may_read_while_one_writes() {
        let buffer = Buffer::new(4096).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..1000u32 {
                    buffer.write_at(0, &[round as u8; 4096]).unwrap();
                }
            });
            let mut bytes = [0; 4096];
            for _ in 0..1000 {
                buffer.read_at(0, &mut bytes).unwrap();
            }
        });
        assert_eq!(buffer.to_vec(0, 4096).unwrap(), [999u32 as u8; 4096]);
    }
}
