//! Where the bytes of regions are: behind base pointers, or behind the application's callbacks.

use core::ffi::c_void;

use metaroce_core::memory::{AtomicChange, MemoryFault, modify_unshared};
use metaroce_core::{Memory, RegionIndex};

/// How the core reaches bytes that are not behind a pointer (a device's memory, say). It names places inside of registered regions only.
/// A callback returns 0, or anything else if the bytes cannot be reached. It must not call functions of the endpoint: they answer
/// `MR_ERROR_BUSY`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mr_memory {
    /// Handed to the callbacks.
    pub context: *mut c_void,
    /// Stores `length` bytes at `offset` of the region.
    pub place: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            region: u16,
            offset: u64,
            bytes: *const u8,
            length: usize,
        ) -> i32,
    >,
    /// Copies `length` bytes at `offset` of the region to `bytes`.
    pub gather: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            region: u16,
            offset: u64,
            bytes: *mut u8,
            length: usize,
        ) -> i32,
    >,
    /// Applies an atomic (`MR_FETCH_ADD` or `MR_COMPARE_SWAP`) to the 64-bit word at `offset` and stores the word as it was to `old`. May be
    /// NULL: then the word is gathered and placed, which is right for memory that only the endpoint changes.
    pub modify: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            region: u16,
            offset: u64,
            operation: u8,
            operand: u64,
            swap: u64,
            old: *mut u64,
        ) -> i32,
    >,
}

impl mr_memory {
    /// Without callbacks.
    pub(crate) const NONE: Self = Self {
        context: core::ptr::null_mut(),
        place: None,
        gather: None,
        modify: None,
    };

    /// Whether it has what it must have.
    pub(crate) fn is_usable(&self) -> bool {
        self.place.is_some() && self.gather.is_some()
    }
}

/// The memory of an endpoint: each region's first byte, or NULL for one that is behind the callbacks.
pub(crate) struct Bytes<const REGIONS: usize> {
    pub callbacks: mr_memory,
    pub bases: [*mut u8; REGIONS],
}

impl<const REGIONS: usize> Bytes<REGIONS> {
    pub fn base(&self, region: RegionIndex) -> Option<*mut u8> {
        let base = self.bases.get(usize::from(region.0)).copied()?;
        (!base.is_null()).then_some(base)
    }

    pub fn set_base(&mut self, region: RegionIndex, base: *mut u8) {
        if let Some(place) = self.bases.get_mut(usize::from(region.0)) {
            *place = base;
        }
    }
}

/// What a callback returned.
fn done(code: i32) -> Result<(), MemoryFault> {
    if code == 0 { Ok(()) } else { Err(MemoryFault) }
}

impl<const REGIONS: usize> Memory for Bytes<REGIONS> {
    fn place(&mut self, region: RegionIndex, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let from = bytes.as_ptr();
        if let Some(base) = self.base(region) {
            let offset = usize::try_from(offset).map_err(|_| MemoryFault)?;
            // SAFETY: the core names places inside of the region only, all of which its owner promised to be valid when it was registered.
            // Datagrams are not part of it, as the function that takes them asks.
            unsafe { core::ptr::copy_nonoverlapping(from, base.add(offset), bytes.len()) };
            return Ok(());
        }
        let place = self.callbacks.place.ok_or(MemoryFault)?;
        // SAFETY: the application's function, called as it was declared.
        done(unsafe { place(self.callbacks.context, region.0, offset, from, bytes.len()) })
    }

    fn gather(
        &self,
        region: RegionIndex,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<(), MemoryFault> {
        let to = bytes.as_mut_ptr();
        if let Some(base) = self.base(region) {
            let offset = usize::try_from(offset).map_err(|_| MemoryFault)?;
            // SAFETY: as in `place`.
            unsafe { core::ptr::copy_nonoverlapping(base.add(offset), to, bytes.len()) };
            return Ok(());
        }
        let gather = self.callbacks.gather.ok_or(MemoryFault)?;
        // SAFETY: the application's function, called as it was declared.
        done(unsafe { gather(self.callbacks.context, region.0, offset, to, bytes.len()) })
    }

    fn modify(
        &mut self,
        region: RegionIndex,
        offset: u64,
        change: AtomicChange,
    ) -> Result<u64, MemoryFault> {
        use crate::work::mr_operation::{MR_COMPARE_SWAP, MR_FETCH_ADD};
        if let (None, Some(modify)) = (self.base(region), self.callbacks.modify) {
            let (operation, operand, swap) = match change {
                AtomicChange::FetchAdd { add } => (MR_FETCH_ADD, add, 0),
                AtomicChange::CompareSwap { compare, swap } => (MR_COMPARE_SWAP, compare, swap),
            };
            let (context, mut old) = (self.callbacks.context, 0);
            // SAFETY: the application's function, called as it was declared.
            done(unsafe {
                modify(
                    context,
                    region.0,
                    offset,
                    operation as u8,
                    operand,
                    swap,
                    &raw mut old,
                )
            })?;
            return Ok(old);
        }
        modify_unshared(self, region, offset, change)
    }
}
