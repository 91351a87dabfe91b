//! An endpoint in memory of the caller's: its head, the core, and the table of connections behind it.

use core::borrow::{Borrow, BorrowMut};
use core::sync::atomic::{AtomicU32, Ordering};

use metaroce_core::{ConnectionConfig, ConnectionEntry, Endpoint, EndpointConfig};

use crate::error::mr_error;
use crate::memory::{Bytes, mr_memory};

/// How large an endpoint's tables are.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum mr_profile {
    /// For small devices: connections of 4 paths, 32 outstanding packets, 2 streams and 2 open messages each way; 4 regions, 8 posted buffers.
    MR_PROFILE_SMALL = 0,
    /// For hosts: connections of 64 paths, 512 outstanding packets, 32 streams and 32 open messages each way; 256 regions, 1024 posted
    /// buffers.
    MR_PROFILE_LARGE = 1,
}
pub(super) const SMALL: u8 = mr_profile::MR_PROFILE_SMALL as u8;
#[cfg(feature = "large")]
pub(super) const LARGE: u8 = mr_profile::MR_PROFILE_LARGE as u8;

/// A sans-IO endpoint, in memory that the application gave to `mr_endpoint_init`.
pub struct mr_endpoint {
    _opaque: [u8; 0],
}

type SmallEntry = ConnectionEntry<4, 32, 2, 2>;
pub(super) type Small = Placed<Endpoint<4, 32, 2, 2, 4, 8, Entries<SmallEntry>>, 4>;
#[cfg(feature = "large")]
type LargeEntry = ConnectionEntry<64, 512, 32, 32>;
#[cfg(feature = "large")]
pub(super) type Large = Placed<Endpoint<64, 512, 32, 32, 256, 1024, Entries<LargeEntry>>, 256>;

/// What the memory must be aligned to.
pub const MR_ENDPOINT_ALIGNMENT: usize = 16;

/// "MROC" while it is one.
const MAGIC: u32 = 0x4d52_4f43;
const READY: u32 = 1;
const BUSY: u32 = 2;
/// After a panic: it may be half changed.
const BROKEN: u32 = 3;

/// What every profile begins with.
#[repr(C)]
struct Head {
    magic: u32,
    profile: u8,
    state: AtomicU32,
    /// Where it was made, to notice that it was moved.
    address: usize,
}

/// The head, the memory and the core, with connections behind them.
#[repr(C)]
pub(super) struct Placed<E, const REGIONS: usize> {
    head: Head,
    pub bytes: Bytes<REGIONS>,
    pub core: E,
}

/// The table of connections, behind the endpoint in the same memory.
pub(super) struct Entries<E> {
    start: *mut E,
    count: usize,
}

impl<E> Borrow<[E]> for Entries<E> {
    #[inline(always)]
    fn borrow(&self) -> &[E] {
        // SAFETY: `init` made so many entries there, which nobody but the owner of this table refers to.
        unsafe { core::slice::from_raw_parts(self.start, self.count) }
    }
}

impl<E> BorrowMut<[E]> for Entries<E> {
    #[inline(always)]
    fn borrow_mut(&mut self) -> &mut [E] {
        // SAFETY: as above, and the table is borrowed for as long.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.count) }
    }
}

/// How much memory, and where in it the connections are.
struct Layout {
    entries: usize,
    size: usize,
}

/// `None`: more than there can be.
const fn layout<P, E>(connections: usize) -> Option<Layout> {
    assert!(align_of::<P>() <= MR_ENDPOINT_ALIGNMENT && align_of::<E>() <= MR_ENDPOINT_ALIGNMENT);
    let entries = size_of::<P>().next_multiple_of(MR_ENDPOINT_ALIGNMENT);
    let Some(table) = size_of::<E>().checked_mul(connections) else {
        return None;
    };
    match entries.checked_add(table) {
        Some(size) => Some(Layout { entries, size }),
        None => None,
    }
}

/// Bytes that an endpoint takes; 0 if there is no such profile.
pub(super) fn size(profile: u8, connections: u32) -> usize {
    let connections = connections as usize;
    let layout = match profile {
        SMALL => layout::<Small, SmallEntry>(connections),
        #[cfg(feature = "large")]
        LARGE => layout::<Large, LargeEntry>(connections),
        _ => None,
    };
    layout.map_or(0, |layout| layout.size)
}

/// What an endpoint is made of.
pub(super) struct Parts {
    pub connections: usize,
    pub config: EndpointConfig,
    pub default: ConnectionConfig,
    pub secret: [u8; 32],
    pub callbacks: mr_memory,
}

macro_rules! init {
    ($name:ident, $placed:ty, $entry:ty, $profile:expr) => {
        /// Makes an endpoint of a profile.
        ///
        /// # Safety
        /// `memory` is aligned to [`MR_ENDPOINT_ALIGNMENT`] and valid for reads and writes of `size` bytes, of which nobody else uses any.
        unsafe fn $name(memory: *mut u8, size: usize, parts: &Parts) -> Result<(), mr_error> {
            let layout =
                layout::<$placed, $entry>(parts.connections).ok_or(mr_error::MR_ERROR_SIZE)?;
            if size < layout.size {
                return Err(mr_error::MR_ERROR_SIZE);
            }
            // SAFETY: inside of the memory, as was checked.
            let start = unsafe { memory.add(layout.entries) }.cast::<$entry>();
            for index in 0..parts.connections {
                // SAFETY: inside of the memory and aligned (see `layout`).
                unsafe { start.add(index).write(<$entry>::new()) };
            }
            let count = parts.connections;
            let core = Endpoint::new(
                parts.config,
                parts.default,
                parts.secret,
                Entries { start, count },
            )?;
            let head = Head {
                magic: MAGIC,
                profile: $profile,
                state: AtomicU32::new(READY),
                address: memory as usize,
            };
            let bytes = Bytes {
                callbacks: parts.callbacks,
                bases: [core::ptr::null_mut(); _],
            };
            // SAFETY: as above.
            unsafe { memory.cast::<$placed>().write(Placed { head, bytes, core }) };
            Ok(())
        }
    };
}
init!(init_small, Small, SmallEntry, SMALL);
#[cfg(feature = "large")]
init!(init_large, Large, LargeEntry, LARGE);

/// Makes an endpoint.
///
/// # Safety
/// `memory` is NULL, misaligned, or valid for reads and writes of `size` bytes, of which nobody else uses any.
pub(super) unsafe fn init(
    memory: *mut u8,
    size: usize,
    profile: u8,
    parts: &Parts,
) -> Result<(), mr_error> {
    if memory.is_null() {
        return Err(mr_error::MR_ERROR_NULL);
    }
    if !(memory as usize).is_multiple_of(MR_ENDPOINT_ALIGNMENT) {
        return Err(mr_error::MR_ERROR_ALIGNMENT);
    }
    match profile {
        // SAFETY: the alignment was checked; the rest is the caller's promise.
        SMALL => unsafe { init_small(memory, size, parts) },
        #[cfg(feature = "large")]
        // SAFETY: as above.
        LARGE => unsafe { init_large(memory, size, parts) },
        _ => Err(mr_error::MR_ERROR_PROFILE),
    }
}

/// An endpoint that this call alone uses, until it is dropped.
pub(super) struct Entered {
    endpoint: *mut mr_endpoint,
    pub profile: u8,
}

impl Entered {
    /// Takes an endpoint into use.
    ///
    /// # Safety
    /// The pointer is NULL, misaligned, or to memory of at least a small endpoint's size.
    pub unsafe fn new(endpoint: *const mr_endpoint) -> Result<Self, mr_error> {
        if endpoint.is_null() {
            return Err(mr_error::MR_ERROR_NULL);
        }
        if !(endpoint as usize).is_multiple_of(MR_ENDPOINT_ALIGNMENT) {
            return Err(mr_error::MR_ERROR_ALIGNMENT);
        }
        // SAFETY: not NULL, aligned, and large enough, as the caller promises. Only the head is referred to, which changes but by atomics
        // while the endpoint is one.
        let head = unsafe { &*endpoint.cast::<Head>() };
        if head.magic != MAGIC {
            return Err(mr_error::MR_ERROR_NOT_AN_OBJECT);
        }
        if head.address != endpoint as usize {
            return Err(mr_error::MR_ERROR_MOVED);
        }
        let taken = head
            .state
            .compare_exchange(READY, BUSY, Ordering::Acquire, Ordering::Relaxed);
        match taken {
            Ok(_) => Ok(Self {
                endpoint: endpoint.cast_mut(),
                profile: head.profile,
            }),
            Err(BUSY) => Err(mr_error::MR_ERROR_BUSY),
            Err(_) => Err(mr_error::MR_ERROR_INTERNAL),
        }
    }

    /// The core and its memory. Only of the profile that [`Self::profile`] says.
    #[inline(always)]
    pub fn parts<E, const R: usize>(&mut self) -> (*mut E, *mut Bytes<R>) {
        let placed = self.endpoint.cast::<Placed<E, R>>();
        // SAFETY: the head says that it is of this profile, so `init` made one here.
        unsafe { (&raw mut (*placed).core, &raw mut (*placed).bytes) }
    }

    /// It is none any more: its memory is the application's again.
    pub fn end(self) {
        let head = self.endpoint.cast::<Head>();
        drop(self);
        // SAFETY: nobody else uses it, as ending it asks.
        unsafe { (*head).magic = 0 };
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        // SAFETY: it was made from a valid one.
        let state = unsafe { &(*self.endpoint.cast::<Head>()).state };
        #[cfg(feature = "std")]
        let broken = std::thread::panicking();
        #[cfg(not(feature = "std"))]
        let broken = false;
        state.store(if broken { BROKEN } else { READY }, Ordering::Release);
    }
}

/// Calls the core of an endpoint, of whichever profile it is, with its memory.
macro_rules! with {
    ($endpoint:expr, |$core:ident, $bytes:ident| $body:expr) => {
        $crate::boundary::guard(|| {
            // SAFETY: the caller's promise (see the crate's documentation).
            let mut entered = unsafe { $crate::endpoint::place::Entered::new($endpoint) }?;
            match entered.profile {
                #[cfg(feature = "large")]
                $crate::endpoint::place::LARGE => {
                    let ($core, $bytes) = $crate::endpoint::place::Large::of(&mut entered);
                    $body
                }
                _ => {
                    let ($core, $bytes) = $crate::endpoint::place::Small::of(&mut entered);
                    $body
                }
            }
        })
    };
}

impl<E, const REGIONS: usize> Placed<E, REGIONS> {
    /// The core and its memory. Only of the profile that the endpoint has.
    #[inline(always)]
    pub fn of(entered: &mut Entered) -> (&mut E, &mut Bytes<REGIONS>) {
        let (core, bytes) = entered.parts::<E, REGIONS>();
        // SAFETY: two parts of what `init` made, used by this call alone for as long as `entered` is.
        unsafe { (&mut *core, &mut *bytes) }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::SMALL;
    use crate::config::{mr_endpoint_config, mr_endpoint_config_default};
    use crate::endpoint::*;
    use crate::error::mr_error::{MR_ERROR_INTERNAL, MR_OK};

    #[repr(C, align(16))]
    struct Room([u8; 32768]);

    fn made(room: &mut Room) -> *mut mr_endpoint {
        let mut config = std::mem::MaybeUninit::<mr_endpoint_config>::uninit();
        let mut endpoint = core::ptr::null_mut();
        // SAFETY: every pointer is to something that outlives the call, and the room is the endpoint's alone.
        unsafe {
            assert_eq!(mr_endpoint_config_default(config.as_mut_ptr()), 0);
            let mut config = config.assume_init();
            config.addresses[0].port = 4793;
            let made = mr_endpoint_init(
                room.0.as_mut_ptr().cast(),
                room.0.len(),
                SMALL,
                1,
                &raw const config,
                core::ptr::null(),
                [7u8; 32].as_ptr(),
                core::ptr::null(),
                &raw mut endpoint,
            );
            assert_eq!(made, MR_OK as i32);
        }
        endpoint
    }

    #[test]
    fn an_endpoint_takes_no_calls_after_a_panic_inside_of_it() {
        let mut room = Room([0; 32768]);
        let endpoint = made(&mut room);
        let code = with!(endpoint, |core, _bytes| {
            core.listen(false);
            panic!("planted")
        });
        assert_eq!(code, MR_ERROR_INTERNAL as i32);
        // SAFETY: it is an endpoint, in memory that outlives it.
        unsafe {
            assert_eq!(mr_endpoint_listen(endpoint, 1), MR_ERROR_INTERNAL as i32);
            assert_eq!(mr_endpoint_end(endpoint), MR_ERROR_INTERNAL as i32);
        }
        // Its memory is good for another one.
        let endpoint = made(&mut room);
        // SAFETY: as above.
        unsafe {
            assert_eq!(mr_endpoint_listen(endpoint, 1), 0);
            assert_eq!(mr_endpoint_end(endpoint), 0);
        }
    }
}
