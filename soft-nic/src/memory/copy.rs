//! Copies to and from memory that others use at the same time.
//!
//! A registered buffer is written by the NIC (for a peer) while the application may read it, as with
//! a device that does DMA. Ordinary Rust loads and stores on such bytes would be data races, so
//! they are only ever touched by what is in this file: on x86-64 a copy instruction the compiler
//! does not look into (each byte is loaded and stored once, nothing is assumed about it), elsewhere
//! relaxed atomic accesses. What is read may be a mixture of before and after; it is never undefined.

/// Copies `source` to shared memory.
///
/// # Safety
/// `destination` must be valid for writes of `source.len()` bytes, and nobody may hold a reference to them.
#[inline]
pub(crate) unsafe fn store(destination: *mut u8, source: &[u8]) {
    // SAFETY: the caller vouches for `destination`; `source` is a live slice and cannot overlap memory
    // that nobody holds a reference to.
    unsafe {
        copy(
            destination,
            source.as_ptr(),
            source.len(),
            Shared::Destination,
        )
    }
}

/// Fills `destination` from shared memory.
///
/// # Safety
/// `source` must be valid for reads of `destination.len()` bytes, and nobody may hold a `&mut` to them.
#[inline]
pub(crate) unsafe fn load(destination: &mut [u8], source: *const u8) {
    // SAFETY: the caller vouches for `source`; `destination` is a live exclusive slice, so it does not overlap.
    unsafe {
        copy(
            destination.as_mut_ptr(),
            source,
            destination.len(),
            Shared::Source,
        )
    }
}

/// Which side of a copy others use too.
#[derive(Clone, Copy)]
enum Shared {
    Source,
    Destination,
}

/// # Safety
/// Both sides valid for `length` bytes, not overlapping; the private side not used by anybody else.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
unsafe fn copy(destination: *mut u8, source: *const u8, length: usize, _: Shared) {
    // SAFETY: the caller vouches for both ranges; the instruction touches nothing else, and the direction
    // flag is clear on entry to every asm block.
    unsafe {
        core::arch::asm!(
            "rep movsb",
            inout("rcx") length => _,
            inout("rdi") destination => _,
            inout("rsi") source => _,
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
/// Both sides valid for `length` bytes, not overlapping; the private side not used by anybody else.
#[cfg(any(not(target_arch = "x86_64"), miri))]
unsafe fn copy(destination: *mut u8, source: *const u8, length: usize, shared: Shared) {
    use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
    let side = match shared {
        Shared::Source => source as usize,
        Shared::Destination => destination as usize,
    };
    let head = side.wrapping_neg() % 8;
    let mut done = 0;
    while done < length {
        let word = done >= head && length - done >= 8;
        // SAFETY: `done` (+ 8 for a word) is within `length`, which both sides are valid for. A word starts where
        // the shared side is 8-byte aligned; the private side is read and written unaligned.
        unsafe {
            let (to, from) = (destination.add(done), source.add(done));
            match (shared, word) {
                (Shared::Source, true) => {
                    to.cast::<u64>()
                        .write_unaligned(AtomicU64::from_ptr(from.cast_mut().cast()).load(Relaxed));
                }
                (Shared::Source, false) => {
                    to.write(AtomicU8::from_ptr(from.cast_mut()).load(Relaxed))
                }
                (Shared::Destination, true) => {
                    AtomicU64::from_ptr(to.cast())
                        .store(from.cast::<u64>().read_unaligned(), Relaxed);
                }
                (Shared::Destination, false) => AtomicU8::from_ptr(to).store(from.read(), Relaxed),
            }
        }
        done += if word { 8 } else { 1 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_arrives_whatever_the_alignment() {
        let pattern: Vec<u8> = (0..200).map(|number| number as u8 ^ 0x5a).collect();
        for shift in 0..9 {
            for length in 0..120 {
                let mut shared = vec![0u8; 160];
                let base = shared.as_mut_ptr();
                let mut back = vec![0u8; length];
                // SAFETY: shift + length is below the vector's length, and it is not used by anybody else.
                unsafe {
                    store(base.add(shift), &pattern[..length]);
                    load(&mut back, base.add(shift));
                }
                assert_eq!(back, pattern[..length]);
                assert!(
                    shared[..shift]
                        .iter()
                        .chain(&shared[shift + length..])
                        .all(|byte| *byte == 0)
                );
            }
        }
    }
}
