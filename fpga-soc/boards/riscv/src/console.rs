//! defmt over a serial line: one logger, framed so that a reader may begin anywhere.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering};

use critical_section::RestoreState;
use defmt::Encoder;

/// The encoder and who holds it.
pub struct Console {
    taken: AtomicBool,
    restore: UnsafeCell<RestoreState>,
    encoder: UnsafeCell<Encoder>,
}

// SAFETY: the cells are used only between `acquire` and `release`, inside of a critical section.
unsafe impl Sync for Console {}

impl Console {
    /// For a `static`.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "const")]
    pub const fn new() -> Self {
        Self {
            taken: AtomicBool::new(false),
            restore: UnsafeCell::new(RestoreState::invalid()),
            encoder: UnsafeCell::new(Encoder::new()),
        }
    }

    /// Begins a frame. As `defmt::Logger::acquire`.
    pub fn acquire(&self, put: fn(&[u8])) {
        // SAFETY: `release` ends it, and defmt calls the two in pairs.
        let restore = unsafe { critical_section::acquire() };
        if self.taken.load(Ordering::Relaxed) {
            // A format function that logs: defmt forbids it.
            panic!("defmt logger taken reentrantly");
        }
        self.taken.store(true, Ordering::Relaxed);
        // SAFETY: inside of the critical section, and nobody else holds the logger.
        unsafe {
            *self.restore.get() = restore;
            (*self.encoder.get()).start_frame(put);
        }
    }

    /// Ends a frame. As `defmt::Logger::release`.
    ///
    /// # Safety
    /// After [`Self::acquire`] only.
    pub unsafe fn release(&self, put: fn(&[u8])) {
        // SAFETY: the caller holds the logger, thus the critical section.
        unsafe {
            (*self.encoder.get()).end_frame(put);
            let restore = *self.restore.get();
            self.taken.store(false, Ordering::Relaxed);
            critical_section::release(restore);
        }
    }

    /// Writes into a frame. As `defmt::Logger::write`.
    ///
    /// # Safety
    /// After [`Self::acquire`] only.
    pub unsafe fn write(&self, bytes: &[u8], put: fn(&[u8])) {
        // SAFETY: the caller holds the logger.
        unsafe { (*self.encoder.get()).write(bytes, put) }
    }
}

/// Makes a board's serial line defmt's logger: `console!(put)` with `fn put(&[u8])`.
#[macro_export]
macro_rules! console {
    ($put:path) => {
        static CONSOLE: $crate::console::Console = $crate::console::Console::new();

        #[defmt::global_logger]
        struct Logger;

        // SAFETY: `Console` lets one frame at a time be written, inside of a critical section; `flush` has nothing to wait for, as `put` waits.
        unsafe impl defmt::Logger for Logger {
            fn acquire() {
                CONSOLE.acquire($put);
            }
            unsafe fn flush() {}
            unsafe fn release() {
                // SAFETY: defmt calls it after `acquire`.
                unsafe { CONSOLE.release($put) }
            }
            unsafe fn write(bytes: &[u8]) {
                // SAFETY: defmt calls it after `acquire`.
                unsafe { CONSOLE.write(bytes, $put) }
            }
        }
    };
}
