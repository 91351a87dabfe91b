//! What can go wrong, and what to do about it.

use metaroce_core::config::ConfigError;
use metaroce_core::memory::RegionError;
use metaroce_core::work::{CloseReason, ConnectError, PostError};
use std::net::SocketAddr;

/// Why something did not work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The builder was given no plane, or too many.
    #[error("a NIC has 1 to {most} planes, not {count}: call `plane` once for each local address", most = metaroce_core::config::MAX_PLANES)]
    Planes {
        /// How many it was given.
        count: usize,
    },
    /// A plane's address does not name one interface.
    #[error(
        "plane {plane}: {address} is not the address of one interface; peers are told this address, so give a real one"
    )]
    UnspecifiedAddress {
        /// The plane.
        plane: usize,
        /// Its address.
        address: SocketAddr,
    },
    /// A plane's service socket could not be bound.
    #[error(
        "plane {plane}: cannot receive on {address}: {source}; is the address on this machine and the port free?"
    )]
    Bind {
        /// The plane.
        plane: usize,
        /// Its address.
        address: SocketAddr,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Packets would not fit into an interface's MTU.
    #[error(
        "payload of {payload} bytes: the interface of plane {plane} has MTU {mtu}, which carries at most {most}; lower the payload or raise the MTU"
    )]
    PayloadTooLarge {
        /// Payload that was asked for.
        payload: u16,
        /// The plane.
        plane: usize,
        /// Its interface's MTU.
        mtu: u32,
        /// What fits.
        most: u16,
    },
    /// The core refused the settings.
    #[error("settings refused: {0}")]
    Config(ConfigError),
    /// A connection could not be started.
    #[error("cannot connect: {0}")]
    Connect(ConnectError),
    /// A connection was not made, or ended.
    #[error("{}", describe_close(.0))]
    Closed(CloseReason),
    /// Nothing happened in the time allowed.
    #[error("{what} took longer than {} ms", .after.as_millis())]
    TimedOut {
        /// What was waited for.
        what: &'static str,
        /// How long.
        after: std::time::Duration,
    },
    /// Memory could not be registered.
    #[error("cannot register memory: {0}")]
    Region(RegionError),
    /// A work request or buffer was not taken.
    #[error("not posted: {0}")]
    Post(PostError),
    /// The completion queue that this operation reports to is full.
    #[error(
        "not posted: {unpolled} completions wait to be taken from the completion queue; poll it first"
    )]
    CompletionQueueFull {
        /// How many wait.
        unpolled: usize,
    },
    /// The NIC was shut down, or its thread ended by a panic.
    #[error("the NIC has been shut down")]
    ShutDown,
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The system's reason.
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

impl From<PostError> for Error {
    fn from(error: PostError) -> Self {
        Self::Post(error)
    }
}

impl From<RegionError> for Error {
    fn from(error: RegionError) -> Self {
        Self::Region(error)
    }
}

fn describe_close(reason: &CloseReason) -> String {
    match reason {
        CloseReason::LocalClose => "the connection was closed by this side".to_owned(),
        CloseReason::PeerClose => "the connection was closed by the peer".to_owned(),
        CloseReason::PeerAbort(code) => format!("the connection was aborted by the peer (code {code})"),
        CloseReason::Unreachable => {
            "no path to the peer answers; is it running, and is the address and UDP port right on every plane?".to_owned()
        }
        CloseReason::Refused(reason) => format!("the peer refused the connection: {reason:?}"),
    }
}
