//! The boundary to C: pointers that are checked before they are used, panics that go no further.

use crate::error::mr_error;

/// What functions work with inside: a count, or what is wrong.
pub(crate) type Answer = Result<i32, mr_error>;

/// Runs what a function does. A panic, which only a bug brings, ends here: it is answered with an error code.
#[cfg(feature = "std")]
pub(crate) fn guard(work: impl FnOnce() -> Answer) -> i32 {
    // What a panic leaves half done is marked by its owner (see `Entered`), so that nobody sees it.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(answer) => code(answer),
        Err(_) => mr_error::MR_ERROR_INTERNAL as i32,
    }
}

/// Runs what a function does. Without an operating system a panic does not unwind.
#[cfg(not(feature = "std"))]
#[inline(always)]
pub(crate) fn guard(work: impl FnOnce() -> Answer) -> i32 {
    code(work())
}

fn code(answer: Answer) -> i32 {
    match answer {
        Ok(count) => count,
        Err(error) => error as i32,
    }
}

fn check<T>(pointer: *const T) -> Result<(), mr_error> {
    if pointer.is_null() {
        Err(mr_error::MR_ERROR_NULL)
    } else if pointer.is_aligned() {
        Ok(())
    } else {
        Err(mr_error::MR_ERROR_ALIGNMENT)
    }
}

/// What a pointer points to, copied.
///
/// # Safety
/// The pointer is NULL, misaligned, or valid for reads; every bit pattern is a `T`.
pub(crate) unsafe fn read<T: Copy>(pointer: *const T) -> Result<T, mr_error> {
    check(pointer)?;
    // SAFETY: not NULL and aligned, so valid, as the caller promises.
    Ok(unsafe { pointer.read() })
}

/// Stores what a function found.
///
/// # Safety
/// The pointer is NULL, misaligned, or valid for writes.
pub(crate) unsafe fn write<T>(pointer: *mut T, value: T) -> Result<(), mr_error> {
    check(pointer)?;
    // SAFETY: not NULL and aligned, so valid, as the caller promises.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Is this a place where something can be stored? For results that come after what cannot be undone.
pub(crate) fn writable<T>(pointer: *mut T) -> Result<(), mr_error> {
    check(pointer)
}

/// `length` items, which may be none: then the pointer does not matter.
///
/// # Safety
/// The pointer is NULL, misaligned, or valid for reads of so many for as long as `'a`, and nobody writes to them meanwhile.
pub(crate) unsafe fn slice<'a, T>(pointer: *const T, length: usize) -> Result<&'a [T], mr_error> {
    if length == 0 {
        return Ok(&[]);
    }
    check(pointer)?;
    if length > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(mr_error::MR_ERROR_BAD_ARGUMENT);
    }
    // SAFETY: not NULL, aligned, not longer than memory can be; valid as the caller promises.
    Ok(unsafe { core::slice::from_raw_parts(pointer, length) })
}

/// `length` items to be written.
///
/// # Safety
/// As [`slice`], for writes, and nobody else uses them meanwhile.
pub(crate) unsafe fn slice_mut<'a, T>(
    pointer: *mut T,
    length: usize,
) -> Result<&'a mut [T], mr_error> {
    if length == 0 {
        return Ok(&mut []);
    }
    check(pointer)?;
    if length > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(mr_error::MR_ERROR_BAD_ARGUMENT);
    }
    // SAFETY: not NULL, aligned, not longer than memory can be; valid as the caller promises.
    Ok(unsafe { core::slice::from_raw_parts_mut(pointer, length) })
}

/// A text of C's.
///
/// # Safety
/// The pointer is NULL or to bytes that end with a zero, valid for as long as `'a`.
#[cfg(any(feature = "nic", feature = "sim"))]
pub(crate) unsafe fn text<'a>(pointer: *const core::ffi::c_char) -> Result<&'a str, mr_error> {
    check(pointer)?;
    // SAFETY: not NULL, and ended by a zero, as the caller promises.
    let text = unsafe { core::ffi::CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| mr_error::MR_ERROR_NOT_UTF8)
}

/// The longer text behind an error code of this thread's last failed call, where there is one.
#[cfg(feature = "std")]
mod detail {
    use super::{Answer, guard, slice_mut};
    use core::ffi::c_char;
    use std::cell::RefCell;

    std::thread_local! {
        static DETAIL: RefCell<String> = const { RefCell::new(String::new()) };
    }

    /// Remembers a text for [`mr_error_detail`], and passes the error on.
    #[cfg(any(feature = "nic", feature = "sim"))]
    pub(crate) fn detailed<E: core::fmt::Display>(
        error: E,
        code: crate::error::mr_error,
    ) -> crate::error::mr_error {
        DETAIL.with_borrow_mut(|detail| *detail = error.to_string());
        code
    }

    /// Writes the text of this thread's latest error of the NIC or the simulator: what was wrong, where, and what would do. It is cut to
    /// `size` and ended by a zero. Returns its whole length in bytes without the zero (0: there was none), or `MR_ERROR_NULL`.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn mr_error_detail(buffer: *mut c_char, size: usize) -> i32 {
        guard(|| -> Answer {
            // SAFETY: the caller's promise (see the crate's documentation).
            let buffer = unsafe { slice_mut(buffer.cast::<u8>(), size) }?;
            DETAIL.with_borrow(|detail| {
                if let Some((last, room)) = buffer.split_last_mut() {
                    // Not in the middle of a character.
                    let cut = detail.floor_char_boundary_of(room.len());
                    room[..cut].copy_from_slice(&detail.as_bytes()[..cut]);
                    room[cut..].fill(0);
                    *last = 0;
                }
                Ok(i32::try_from(detail.len()).unwrap_or(i32::MAX))
            })
        })
    }

    trait Cut {
        fn floor_char_boundary_of(&self, most: usize) -> usize;
    }

    impl Cut for String {
        fn floor_char_boundary_of(&self, most: usize) -> usize {
            let mut cut = most.min(self.len());
            while !self.is_char_boundary(cut) {
                cut -= 1;
            }
            cut
        }
    }
}
#[cfg(any(feature = "nic", feature = "sim"))]
pub(crate) use detail::detailed;
#[cfg(feature = "std")]
pub use detail::mr_error_detail;
