//! Things that must not be here, put in by features to see that the check finds them.

/// Does what the chosen feature says; without one, nothing.
pub fn run() {
    #[cfg(feature = "selftest-panic")]
    if core::hint::black_box(false) {
        panic!("on purpose");
    }
    #[cfg(feature = "selftest-index")]
    {
        let table = core::hint::black_box([0u8; 4]);
        core::hint::black_box(table[core::hint::black_box(4usize)]);
    }
    #[cfg(feature = "selftest-alloc")]
    heap::run();
}

#[cfg(feature = "selftest-alloc")]
mod heap {
    extern crate alloc;

    use core::alloc::{GlobalAlloc, Layout};

    struct Nothing;

    // SAFETY: it never hands out memory, which the contract allows.
    unsafe impl GlobalAlloc for Nothing {
        unsafe fn alloc(&self, _: Layout) -> *mut u8 {
            core::ptr::null_mut()
        }
        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }

    #[global_allocator]
    static HEAP: Nothing = Nothing;

    pub fn run() {
        core::hint::black_box(alloc::boxed::Box::new(core::hint::black_box(7u32)));
    }
}
