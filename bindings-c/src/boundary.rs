//! The boundary to C: pointers that are checked before they are used, panics that go no further.

use crate::error::mr_error;

/// What functions work with inside: a count, or what is wrong.
pub(crate) type Answer = Result<i32, mr_error>;

/// Runs what a function does. A panic, which only a bug brings, ends here: it is answered with an error code, and its message kept for
/// [`mr_error_detail`].
#[cfg(feature = "std")]
pub(crate) fn guard(work: impl FnOnce() -> Answer) -> i32 {
    // What a panic leaves half done is marked by its owner (see `Entered`), so that nobody sees it.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(answer) => code(answer),
        Err(panic) => {
            detail::keep(message(&*panic).to_owned());
            mr_error::MR_ERROR_INTERNAL as i32
        }
    }
}

/// What a panic said.
#[cfg(feature = "std")]
pub(crate) fn message(panic: &(dyn core::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message")
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

    /// Remembers a text for [`mr_error_detail`].
    pub(super) fn keep(text: String) {
        // A thread that ends may have none any more; then nobody can ask.
        let _ = DETAIL.try_with(|detail| detail.replace(text));
    }

    /// The same, and passes the error on.
    #[cfg(any(feature = "nic", feature = "sim"))]
    pub(crate) fn detailed<E: core::fmt::Display>(
        error: E,
        code: crate::error::mr_error,
    ) -> crate::error::mr_error {
        keep(error.to_string());
        code
    }

    /// Writes the text of this thread's latest error of the NIC or the simulator: what was wrong, where, and what would do; or what the
    /// library said of its bug if `MR_ERROR_INTERNAL` came after that. It is cut to `size` and ended by a zero. Returns its whole length in
    /// bytes without the zero (0: there was none), or `MR_ERROR_NULL`.
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

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use core::ffi::c_char;

    fn detail() -> String {
        let mut buffer = [0u8; 64];
        // SAFETY: it is written to its length.
        let length = unsafe { mr_error_detail(buffer.as_mut_ptr().cast::<c_char>(), 64) };
        String::from_utf8_lossy(&buffer[..length as usize]).into_owned()
    }

    #[test]
    fn a_panic_ends_at_the_boundary_and_leaves_its_message() {
        // A message that is made while it runs, and one that is in the program.
        let number = core::hint::black_box(7);
        assert_eq!(guard(|| panic!("planted, {number}")), -8);
        assert_eq!(detail(), "planted, 7");
        assert_eq!(guard(|| panic!("planted")), -8);
        assert_eq!(detail(), "planted");
        assert_eq!(guard(|| std::panic::panic_any(7)), -8);
        assert_eq!(detail(), "a panic without a message");
        assert_eq!(mr_error::MR_ERROR_INTERNAL as i32, -8);
    }

    /// What is on the way out is dropped as it is in Rust, and the thread goes on.
    #[test]
    fn what_a_panic_leaves_is_dropped_and_other_calls_go_on() {
        let held = std::sync::Arc::new(());
        let inside = held.clone();
        assert_eq!(
            guard(move || {
                let _inside = inside;
                panic!("planted")
            }),
            -8
        );
        assert_eq!(std::sync::Arc::strong_count(&held), 1);
        assert_eq!(guard(|| Ok(5)), 5);
        assert_eq!(guard(|| Err(mr_error::MR_ERROR_BUSY)), -7);
        assert_eq!(detail(), "planted");
    }

    /// An ended thread's detail is gone: keeping another there must not panic, since nobody would catch it.
    #[test]
    fn a_panic_while_its_thread_ends_is_caught_as_well() {
        struct Last(std::sync::mpsc::Sender<i32>);
        impl Drop for Last {
            fn drop(&mut self) {
                let code = guard(|| panic!("planted"));
                self.0.send(code).unwrap();
            }
        }
        std::thread_local! {
            static LAST: core::cell::RefCell<Option<Last>> = const { core::cell::RefCell::new(None) };
        }
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            // The first that is made is the last that is dropped.
            LAST.with_borrow_mut(|last| *last = Some(Last(sender)));
            assert_eq!(guard(|| panic!("planted")), -8);
        })
        .join()
        .unwrap();
        assert_eq!(receiver.recv(), Ok(-8));
    }
}
