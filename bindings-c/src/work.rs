//! Work requests and receive buffers.

use metaroce_core::work::{INLINE_BYTES, MAX_MESSAGE_BYTES};
use metaroce_core::{
    CloseMode, LocalSlice, Operation, ReceiveRequest, RegionIndex, RemoteAddress, Source,
    WorkFlags, WorkRequest,
};

use crate::boundary::slice;
use crate::error::mr_error;

/// Bytes that a work request may carry itself, at most.
pub const MR_INLINE_BYTES: usize = 32;
/// The longest message, bytes.
pub const MR_MAX_MESSAGE_BYTES: u32 = 0x7fff_ffff;
const _: () = assert!(MR_INLINE_BYTES == INLINE_BYTES && MR_MAX_MESSAGE_BYTES == MAX_MESSAGE_BYTES);

/// Right: target of receives, reads and atomics of this side. (Sending from a region is always allowed.)
pub const MR_ACCESS_LOCAL_WRITE: u8 = 1;
/// Right: a peer may read it.
pub const MR_ACCESS_REMOTE_READ: u8 = 2;
/// Right: a peer may write it.
pub const MR_ACCESS_REMOTE_WRITE: u8 = 4;
/// Right: a peer may apply atomics to it.
pub const MR_ACCESS_REMOTE_ATOMIC: u8 = 8;
/// All rights.
pub const MR_ACCESS_ALL: u8 = 15;

/// Work flag: report failures only, not success.
pub const MR_WORK_UNSIGNALED: u8 = 1;
/// Work flag: ask the peer to wake a waiter when it completes the receive.
pub const MR_WORK_SOLICITED: u8 = 2;
/// Work flag: start only when every earlier READ and atomic of the stream has completed.
pub const MR_WORK_FENCE: u8 = 4;
/// Work flag: the bytes are at `inline_data` (`local.length` of them, at most `MR_INLINE_BYTES`), and are copied when posted.
pub const MR_WORK_INLINE: u8 = 8;
const WORK_FLAGS: u8 = 15;

/// A registered region as its owner knows it.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct mr_region {
    /// Remote key, to be told to peers.
    pub key: u32,
    /// Local name, for slices and memory callbacks.
    pub index: u16,
}

/// A place in a local region.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct mr_slice {
    /// Bytes from the region's start.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// The region's index.
    pub region: u16,
}

impl mr_slice {
    pub(crate) fn of(slice: LocalSlice) -> Self {
        Self {
            offset: slice.offset,
            length: slice.length,
            region: slice.region.0,
        }
    }

    pub(crate) fn to_core(self) -> LocalSlice {
        LocalSlice {
            region: RegionIndex(self.region),
            offset: self.offset,
            length: self.length,
        }
    }
}

/// A place in a peer's memory.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct mr_remote {
    /// The peer's address (its region's base plus an offset).
    pub address: u64,
    /// The region's remote key.
    pub key: u32,
}

/// What an operation does (`operation` of `mr_work`).
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum mr_operation {
    /// Write `local` to `remote`.
    MR_WRITE = 0,
    /// The same, and the peer's stream completes a receive with `immediate`.
    MR_WRITE_IMM = 1,
    /// Send `local` to the buffer that the peer posted.
    MR_SEND = 2,
    /// The same with `immediate`.
    MR_SEND_IMM = 3,
    /// Read `local.length` bytes at `remote` into `local`.
    MR_READ = 4,
    /// Add `operand` to the 64-bit word at `remote` (a multiple of 8). The word as it was goes to `local`, 8 bytes, in the machine's order.
    MR_FETCH_ADD = 5,
    /// Replace that word by `swap` if it equals `operand`. The word as it was goes to `local`.
    MR_COMPARE_SWAP = 6,
}

/// A work request. All zero but what the operation needs is right.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mr_work {
    /// The application's number, returned in the completion.
    pub id: u64,
    /// This side's bytes. They must stay as they are until the completion (unless inline).
    pub local: mr_slice,
    /// The peer's bytes.
    pub remote: mr_remote,
    /// The bytes to write or send if `MR_WORK_INLINE` is set.
    pub inline_data: *const u8,
    /// The addend, or what the word is compared with.
    pub operand: u64,
    /// The new word.
    pub swap: u64,
    /// A value for the peer's completion.
    pub immediate: u32,
    /// One of `enum mr_operation`.
    pub operation: u8,
    /// `MR_WORK_...` flags.
    pub flags: u8,
}

/// A buffer for a message to come.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct mr_receive {
    /// The application's number, returned in the completion.
    pub id: u64,
    /// Where the message goes.
    pub local: mr_slice,
}

impl mr_receive {
    pub(crate) fn to_core(self) -> ReceiveRequest {
        ReceiveRequest {
            id: self.id,
            local: self.local.to_core(),
        }
    }
}

impl mr_work {
    /// The core's form of it.
    ///
    /// # Safety
    /// Inline data is readable for as long as `'a`.
    pub(crate) unsafe fn to_core<'a>(self) -> Result<WorkRequest<'a>, mr_error> {
        if self.flags & !WORK_FLAGS != 0 {
            return Err(mr_error::MR_ERROR_BAD_ARGUMENT);
        }
        let inline = self.flags & MR_WORK_INLINE != 0;
        if inline && self.operation > mr_operation::MR_SEND_IMM as u8 {
            return Err(mr_error::MR_ERROR_BAD_ARGUMENT);
        }
        let local = self.local.to_core();
        let source = if inline {
            // The core refuses more, but the pointer is not to be trusted for so many.
            if self.local.length as usize > MR_INLINE_BYTES {
                return Err(mr_error::MR_ERROR_BAD_LENGTH);
            }
            // SAFETY: the caller's promise.
            Source::Inline(unsafe { slice(self.inline_data, self.local.length as usize) }?)
        } else {
            Source::Region(local)
        };
        let remote = RemoteAddress {
            address: self.remote.address,
            key: self.remote.key,
        };
        let (write, send) = (
            |immediate| Operation::Write {
                local: source,
                remote,
                immediate,
            },
            |immediate| Operation::Send {
                local: source,
                immediate,
            },
        );
        let operation = match self.operation {
            0 => write(None),
            1 => write(Some(self.immediate)),
            2 => send(None),
            3 => send(Some(self.immediate)),
            4 => Operation::Read { local, remote },
            5 => Operation::FetchAdd {
                local,
                remote,
                add: self.operand,
            },
            6 => Operation::CompareSwap {
                local,
                remote,
                compare: self.operand,
                swap: self.swap,
            },
            _ => return Err(mr_error::MR_ERROR_BAD_ARGUMENT),
        };
        Ok(WorkRequest {
            id: self.id,
            operation,
            flags: WorkFlags {
                signaled: self.flags & MR_WORK_UNSIGNALED == 0,
                solicited: self.flags & MR_WORK_SOLICITED != 0,
                fence: self.flags & MR_WORK_FENCE != 0,
            },
        })
    }
}

/// How a connection is closed.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum mr_close_mode {
    /// Finish what was posted, on both sides, then end.
    MR_CLOSE_DRAIN = 0,
    /// End now; open operations complete as flushed. The peer is told the code.
    MR_CLOSE_ABORT = 1,
}

pub(crate) fn close_mode(mode: u8, code: u16) -> Result<CloseMode, mr_error> {
    match mode {
        0 => Ok(CloseMode::Drain),
        1 => Ok(CloseMode::Abort(code)),
        _ => Err(mr_error::MR_ERROR_BAD_ARGUMENT),
    }
}

/// Rights from their bits.
pub(crate) fn access(bits: u8) -> Result<metaroce_core::Access, mr_error> {
    use metaroce_core::Access;
    let rights = [
        (MR_ACCESS_LOCAL_WRITE, Access::LOCAL_WRITE),
        (MR_ACCESS_REMOTE_READ, Access::REMOTE_READ),
        (MR_ACCESS_REMOTE_WRITE, Access::REMOTE_WRITE),
        (MR_ACCESS_REMOTE_ATOMIC, Access::REMOTE_ATOMIC),
    ];
    if bits & !MR_ACCESS_ALL != 0 {
        return Err(mr_error::MR_ERROR_BAD_ARGUMENT);
    }
    Ok(rights
        .iter()
        .filter(|(bit, _)| bits & bit != 0)
        .fold(Access::LOCAL_READ, |all, (_, right)| all.with(*right)))
}
