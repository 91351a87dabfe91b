//! How deep the stack has ever been: it is painted at the start, and what has lost its paint was used.

use core::ptr::addr_of;

// Symbols of the linker script, of which only the addresses mean anything.
unsafe extern "C" {
    static __sheap: u32;
    static _stack_start: u32;
}

const PAINT: u32 = 0x5ace_5ace;
/// Bytes below the caller's frame that are left alone.
const MARGIN: usize = 256;

fn bottom() -> *const u32 {
    let end = addr_of!(__sheap).addr();
    core::ptr::with_exposed_provenance(end.next_multiple_of(4))
}

fn top() -> usize {
    addr_of!(_stack_start).addr()
}

/// Paints everything between the static variables and the stack of now.
///
/// # Safety
/// Nothing else may use this memory: before there is another hart or a heap.
pub unsafe fn paint() {
    let here = 0u32;
    let end = core::hint::black_box(&here as *const u32).addr() - MARGIN;
    let mut place = bottom().cast_mut();
    while place.addr() < end {
        // SAFETY: below the stack and above the variables there is nothing, as the caller promises.
        unsafe {
            place.write_volatile(PAINT);
            place = place.add(1);
        }
    }
}

/// The deepest that the stack has been since, in bytes.
#[must_use]
pub fn deepest() -> usize {
    let mut place = bottom();
    while place.addr() < top() {
        // SAFETY: inside of RAM, aligned; volatile, as it may be the stack in use.
        if unsafe { place.read_volatile() } != PAINT {
            break;
        }
        // SAFETY: as above.
        place = unsafe { place.add(1) };
    }
    top() - place.addr()
}
