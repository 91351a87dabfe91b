//! Registered memory: which bytes a peer may touch, and the trait through which the core moves them.
//!
//! The core checks key, bounds and rights and then names a place as (region, offset). Whoever owns
//! the bytes (a slice, a mapped buffer, a DMA engine) implements [`Memory`].

use crate::storage::Table;

/// What a region may be used for. Local reads (sending from it) are always allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Access(u8);

impl Access {
    /// Only as the source of sends and writes.
    pub const LOCAL_READ: Self = Self(0);
    /// As the target of receives, reads and atomics of this side.
    pub const LOCAL_WRITE: Self = Self(1);
    /// A peer may read it.
    pub const REMOTE_READ: Self = Self(2);
    /// A peer may write it.
    pub const REMOTE_WRITE: Self = Self(4);
    /// A peer may apply atomics to it.
    pub const REMOTE_ATOMIC: Self = Self(8);
    /// All of the above.
    pub const ALL: Self = Self(15);

    /// Both sets of rights.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether every right of `other` is in `self`.
    #[must_use]
    pub const fn allows(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The index of a registered region at its own endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RegionIndex(pub u16);

impl RegionIndex {
    /// Of what used a region that was deregistered. No region has this index.
    pub(crate) const GONE: Self = Self(u16::MAX);
}

/// A registered region as its owner knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Region {
    /// Local name, for work requests and [`Memory`].
    pub index: RegionIndex,
    /// Remote key, to be told to peers.
    pub key: u32,
}

/// A place in a local region.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct LocalSlice {
    /// The region.
    pub region: RegionIndex,
    /// Bytes from the region's start.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

/// A place in a peer's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RemoteAddress {
    /// The peer's address (its region's base plus an offset).
    pub address: u64,
    /// The region's remote key.
    pub key: u32,
}

/// The bytes could not be reached: the region's owner has withdrawn them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MemoryFault;

/// Where the bytes are. The core calls it only with places inside a registered region.
pub trait Memory {
    /// Copies `bytes` to `offset` of the region.
    ///
    /// # Errors
    /// [`MemoryFault`] if the bytes cannot be stored; nothing may have been stored then.
    fn place(&mut self, region: RegionIndex, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault>;

    /// Fills `bytes` from `offset` of the region.
    ///
    /// # Errors
    /// [`MemoryFault`] if the bytes cannot be read.
    fn gather(&self, region: RegionIndex, offset: u64, bytes: &mut [u8])
    -> Result<(), MemoryFault>;

    /// Applies `change` to the native-endian 64-bit word at `offset` (the region's base + `offset` is a multiple of 8) atomically
    /// towards everything else that uses this memory, and returns the word as it was before.
    ///
    /// The provided form is right for memory that only the core touches.
    ///
    /// # Errors
    /// [`MemoryFault`] if the word cannot be reached.
    fn modify(
        &mut self,
        region: RegionIndex,
        offset: u64,
        change: AtomicChange,
    ) -> Result<u64, MemoryFault> {
        modify_unshared(self, region, offset, change)
    }
}

/// What [`Memory::modify`] does for memory that only the core touches, for those that do something else besides.
///
/// # Errors
/// [`MemoryFault`] if the word cannot be reached.
pub fn modify_unshared<M: Memory + ?Sized>(
    memory: &mut M,
    region: RegionIndex,
    offset: u64,
    change: AtomicChange,
) -> Result<u64, MemoryFault> {
    let mut word = [0; 8];
    memory.gather(region, offset, &mut word)?;
    let old = u64::from_ne_bytes(word);
    memory.place(region, offset, &change.apply(old).to_ne_bytes())?;
    Ok(old)
}

/// An atomic operation on a 64-bit word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum AtomicChange {
    /// Add, wrapping.
    FetchAdd {
        /// The addend.
        add: u64,
    },
    /// Store `swap` if the word equals `compare`.
    CompareSwap {
        /// The expected word.
        compare: u64,
        /// The new word.
        swap: u64,
    },
}

impl AtomicChange {
    /// The word after the operation.
    #[must_use]
    // spec: MR-READ-003
    pub const fn apply(self, old: u64) -> u64 {
        match self {
            Self::FetchAdd { add } => old.wrapping_add(add),
            Self::CompareSwap { compare, swap } => {
                if old == compare {
                    swap
                } else {
                    old
                }
            }
        }
    }
}

/// Why a region could not be registered or a local slice not be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum RegionError {
    /// All region slots are taken.
    Full,
    /// Base plus length does not fit in 64 bits.
    Wraps,
    /// No region is registered under this index.
    Unknown,
    /// The slice reaches outside of the region.
    OutOfBounds,
    /// The region does not have the right that the operation needs.
    AccessDenied,
}

impl core::fmt::Display for RegionError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Full => "every region slot is taken",
            Self::Wraps => "the region's base plus length does not fit in 64 bits",
            Self::Unknown => "no region is registered under this index",
            Self::OutOfBounds => "the slice reaches outside of its region",
            Self::AccessDenied => {
                "the region was not registered with the right this operation needs"
            }
        })
    }
}

impl core::error::Error for RegionError {}

/// Why a peer's access was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum AccessFault {
    /// No such key (never issued, or invalidated).
    InvalidKey,
    /// Outside of the region.
    OutOfBounds,
    /// The region does not grant this right.
    Denied,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    base: u64,
    length: u64,
    /// Zero: the slot is free.
    key: u32,
    access: Access,
}

const FREE: Entry = Entry {
    base: 0,
    length: 0,
    key: 0,
    access: Access::LOCAL_READ,
};

/// The regions of an endpoint. A key is 22 unguessable bits over the slot's index, so that a lookup
/// is one access and a stale key of a reused slot is refused.
#[derive(Debug)]
pub struct Regions<const REGIONS: usize> {
    entries: Table<Entry, REGIONS>,
    withdrawals: u32,
}

const INDEX_BITS: u32 = 10;
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;

impl<const REGIONS: usize> Default for Regions<REGIONS> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const REGIONS: usize> Regions<REGIONS> {
    /// No regions yet.
    #[must_use]
    pub const fn new() -> Self {
        const {
            assert!(
                REGIONS >= 1 && REGIONS <= 1 << INDEX_BITS,
                "1 to 1024 regions"
            )
        };
        Self {
            entries: Table::filled(FREE),
            withdrawals: 0,
        }
    }

    /// Registers `length` bytes that peers know as starting at `base`. `random` makes the key.
    ///
    /// # Errors
    /// [`RegionError::Full`] or [`RegionError::Wraps`].
    pub fn register(
        &mut self,
        base: u64,
        length: u64,
        access: Access,
        random: u32,
    ) -> Result<Region, RegionError> {
        if base.checked_add(length).is_none() {
            return Err(RegionError::Wraps);
        }
        let free = self
            .entries
            .iter()
            .position(|entry| entry.key == 0)
            .ok_or(RegionError::Full)?;
        let index = free as u16;
        let entry = self.entries.at_mut(index);
        // The top bit keeps a key from being zero, which means "free" here and "none" on the wire.
        // spec: MR-MEM-001
        let key = 1 << 31 | (random << INDEX_BITS) | u32::from(index);
        *entry = Entry {
            base,
            length,
            key,
            access,
        };
        Ok(Region {
            index: RegionIndex(index),
            key,
        })
    }

    /// Invalidates a region: its key is refused from now on.
    ///
    /// # Errors
    /// [`RegionError::Unknown`] if nothing is registered there.
    pub fn deregister(&mut self, index: RegionIndex) -> Result<(), RegionError> {
        let entry = self
            .entries
            .get_mut(index.0)
            .filter(|entry| entry.key != 0)
            .ok_or(RegionError::Unknown)?;
        *entry = FREE;
        self.withdrawals = self.withdrawals.wrapping_add(1);
        Ok(())
    }

    /// How many regions were invalidated so far, modulo 2^32.
    #[inline(always)]
    #[must_use]
    pub const fn withdrawals(&self) -> u32 {
        self.withdrawals
    }

    /// Checks a peer's access and gives the place it means.
    ///
    /// # Errors
    /// An [`AccessFault`] that says what was wrong.
    #[inline]
    // spec: MR-MEM-002
    pub fn check_remote(
        &self,
        key: u32,
        address: u64,
        length: u64,
        right: Access,
    ) -> Result<(RegionIndex, u64), AccessFault> {
        let index = (key & INDEX_MASK) as u16;
        let entry = self
            .entries
            .get(index)
            .filter(|entry| entry.key == key && key != 0)
            .ok_or(AccessFault::InvalidKey)?;
        if !entry.access.allows(right) {
            return Err(AccessFault::Denied);
        }
        let offset = address
            .checked_sub(entry.base)
            .ok_or(AccessFault::OutOfBounds)?;
        let end = offset.checked_add(length).ok_or(AccessFault::OutOfBounds)?;
        if end > entry.length && !crate::planted::Bug::BoundsUnchecked.is_planted() {
            return Err(AccessFault::OutOfBounds);
        }
        Ok((RegionIndex(index), offset))
    }

    /// Checks a slice that the application named.
    ///
    /// # Errors
    /// A [`RegionError`] that says what was wrong.
    // spec: MR-MEM-004
    pub fn check_local(&self, slice: LocalSlice, right: Access) -> Result<(), RegionError> {
        let entry = self
            .entries
            .get(slice.region.0)
            .filter(|entry| entry.key != 0)
            .ok_or(RegionError::Unknown)?;
        let end = slice
            .offset
            .checked_add(u64::from(slice.length))
            .ok_or(RegionError::OutOfBounds)?;
        if end > entry.length {
            return Err(RegionError::OutOfBounds);
        }
        if !entry.access.allows(right) {
            return Err(RegionError::AccessDenied);
        }
        Ok(())
    }

    /// Whether a region is still registered under `index`.
    #[inline]
    #[must_use]
    pub fn is_registered(&self, index: RegionIndex) -> bool {
        self.entries
            .get(index.0)
            .is_some_and(|entry| entry.key != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // spec: MR-MEM-002
    #[test]
    fn a_key_opens_its_region_and_nothing_beside_it() {
        let mut regions = Regions::<4>::new();
        let a = regions
            .register(0x1000, 0x100, Access::REMOTE_WRITE, 7)
            .unwrap();
        assert_eq!(
            regions.check_remote(a.key, 0x10ff, 1, Access::REMOTE_WRITE),
            Ok((a.index, 0xff))
        );
        assert_eq!(
            regions.check_remote(a.key, 0x10ff, 2, Access::REMOTE_WRITE),
            Err(AccessFault::OutOfBounds)
        );
        assert_eq!(
            regions.check_remote(a.key, 0xfff, 1, Access::REMOTE_WRITE),
            Err(AccessFault::OutOfBounds)
        );
        assert_eq!(
            regions.check_remote(a.key, u64::MAX, 2, Access::REMOTE_WRITE),
            Err(AccessFault::OutOfBounds)
        );
        assert_eq!(
            regions.check_remote(a.key, 0x1000, 1, Access::REMOTE_READ),
            Err(AccessFault::Denied)
        );
        assert_eq!(
            regions.check_remote(a.key ^ 1 << 12, 0x1000, 1, Access::REMOTE_WRITE),
            Err(AccessFault::InvalidKey)
        );
        assert_eq!(
            regions.check_remote(0, 0x1000, 1, Access::REMOTE_WRITE),
            Err(AccessFault::InvalidKey)
        );
    }

    // spec: MR-MEM-001
    #[test]
    fn a_stale_key_of_a_reused_slot_is_refused() {
        let mut regions = Regions::<1>::new();
        let old = regions.register(0, 64, Access::ALL, 1).unwrap();
        assert_eq!(
            regions.register(0, 64, Access::ALL, 2),
            Err(RegionError::Full)
        );
        regions.deregister(old.index).unwrap();
        assert_eq!(regions.deregister(old.index), Err(RegionError::Unknown));
        let new = regions.register(0, 64, Access::ALL, 2).unwrap();
        assert_eq!(new.index, old.index);
        assert_eq!(
            regions.check_remote(old.key, 0, 1, Access::REMOTE_READ),
            Err(AccessFault::InvalidKey)
        );
        assert!(
            regions
                .check_remote(new.key, 0, 1, Access::REMOTE_READ)
                .is_ok()
        );
    }

    // spec: MR-MEM-004
    #[test]
    fn local_slices_are_bounded_too() {
        let mut regions = Regions::<1>::new();
        assert_eq!(
            regions.register(u64::MAX, 2, Access::ALL, 1),
            Err(RegionError::Wraps)
        );
        let region = regions
            .register(0, 10, Access::LOCAL_READ, 1)
            .unwrap()
            .index;
        let slice = |offset, length| LocalSlice {
            region,
            offset,
            length,
        };
        assert_eq!(
            regions.check_local(slice(0, 10), Access::LOCAL_READ),
            Ok(())
        );
        assert_eq!(
            regions.check_local(slice(1, 10), Access::LOCAL_READ),
            Err(RegionError::OutOfBounds)
        );
        assert_eq!(
            regions.check_local(slice(u64::MAX, 1), Access::LOCAL_READ),
            Err(RegionError::OutOfBounds)
        );
        assert_eq!(
            regions.check_local(slice(0, 10), Access::LOCAL_WRITE),
            Err(RegionError::AccessDenied)
        );
    }
}
