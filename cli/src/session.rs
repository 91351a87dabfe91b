//! How `perf` learns where it may write: the server's first message on a connection.

use crate::failure::Failure;
use metaroce_soft::core::CloseMode;
use metaroce_soft::core::memory::Access;
use metaroce_soft::core::work::{
    Operation, ReceiveRequest, Source, Status, WorkFlags, WorkRequest,
};
use metaroce_soft::{Buffer, Connection, MemoryRegion, Nic};
use std::net::SocketAddr;
use std::time::Duration;

pub use metaroce_soft::core::service::{HELLO_BYTES, Hello, SERVICE};

/// Tells a client where the window is.
///
/// # Errors
/// If the connection does not take it.
pub fn send_hello(
    connection: &Connection,
    window: &MemoryRegion,
) -> Result<(), metaroce_soft::Error> {
    let hello = Hello {
        base: window.base(),
        length: window.length(),
        key: window.key(),
    };
    connection.post(
        0,
        &WorkRequest {
            id: HELLO_ID,
            operation: Operation::Send {
                local: Source::Inline(&hello.encode()),
                immediate: None,
            },
            flags: WorkFlags::default(),
        },
    )
}

/// The work request number of a hello.
pub const HELLO_ID: u64 = u64::MAX;

/// A connection to a server whose window is known.
#[derive(Debug)]
pub struct Session {
    /// The connection.
    pub connection: Connection,
    /// The server's window.
    pub window: Hello,
    _landing: MemoryRegion,
}

/// Connects to a server and waits for its hello.
///
/// # Errors
/// If the server is not reached, refuses, or says nothing or something else.
pub fn open(
    nic: &Nic,
    peer: &[SocketAddr],
    config: metaroce_soft::core::config::ConnectionConfig,
    timeout: Duration,
) -> Result<Session, Failure> {
    let config = metaroce_soft::core::config::ConnectionConfig {
        service: SERVICE,
        ..config
    };
    let connection = nic.connect(peer, config, timeout)?;
    let buffer =
        Buffer::new(HELLO_BYTES).map_err(|error| Failure::System(format!("memory: {error}")))?;
    let landing = nic.register(&buffer, Access::LOCAL_WRITE)?;
    connection.post_receive(
        0,
        &ReceiveRequest {
            id: HELLO_ID,
            local: landing.slice(0, HELLO_BYTES as u32),
        },
    )?;
    let completion = nic.completions().wait(Some(timeout)).ok_or_else(|| {
        let _ = connection.close(CloseMode::Abort(0));
        Failure::Connection(
            "connected, but the server does not say where its memory is; is it `metaroce serve`?"
                .to_owned(),
        )
    })?;
    let mut bytes = [0; HELLO_BYTES];
    let read = buffer.read_at(0, &mut bytes);
    let hello = (completion.status == Status::Success && read.is_ok())
        .then(|| Hello::decode(&bytes))
        .flatten();
    match hello {
        Some(window) => Ok(Session {
            connection,
            window,
            _landing: landing,
        }),
        None => Err(Failure::Connection(format!(
            "the server's first message is not that of `metaroce serve` ({:?}, {} bytes)",
            completion.status, completion.length
        ))),
    }
}
