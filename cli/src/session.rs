//! How `perf` learns where it may write: the server's first message on a connection.

use crate::failure::Failure;
use metaroce_soft::core::CloseMode;
use metaroce_soft::core::memory::{Access, RemoteAddress};
use metaroce_soft::core::work::{
    Operation, ReceiveRequest, Source, Status, WorkFlags, WorkRequest,
};
use metaroce_soft::{Buffer, Connection, MemoryRegion, Nic};
use std::net::SocketAddr;
use std::time::Duration;

/// The application number of this exchange, version 1.
pub const SERVICE: u32 = 0x6d72_0001;

/// The server's window, as it tells it to the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The address of the window's first byte.
    pub base: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Its key.
    pub key: u32,
}

/// Bytes of an encoded hello.
pub const HELLO_BYTES: usize = 24;
const MAGIC: [u8; 4] = *b"mrp1";

impl Hello {
    /// As bytes.
    #[must_use]
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..12].copy_from_slice(&self.base.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.length.to_be_bytes());
        bytes[20..].copy_from_slice(&self.key.to_be_bytes());
        bytes
    }

    /// From bytes; `None` if they are something else.
    #[must_use]
    pub fn decode(bytes: &[u8; HELLO_BYTES]) -> Option<Self> {
        let word = |at: usize| {
            bytes[at..]
                .first_chunk::<8>()
                .map(|word| u64::from_be_bytes(*word))
        };
        let key = bytes[20..]
            .first_chunk::<4>()
            .map(|word| u32::from_be_bytes(*word))?;
        (bytes[..4] == MAGIC).then_some(Self {
            base: word(4)?,
            length: word(12)?,
            key,
        })
    }

    /// A place in the window.
    #[must_use]
    pub fn at(&self, offset: u64) -> RemoteAddress {
        RemoteAddress {
            address: self.base.wrapping_add(offset),
            key: self.key,
        }
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_survives_the_trip_and_nothing_else_passes() {
        let hello = Hello {
            base: 0x1234_5678_9abc_def0,
            length: 1 << 40,
            key: 0xdead_beef,
        };
        let mut bytes = hello.encode();
        assert_eq!(Hello::decode(&bytes), Some(hello));
        assert_eq!(
            hello.at(16),
            RemoteAddress {
                address: hello.base + 16,
                key: hello.key
            }
        );
        bytes[0] ^= 1;
        assert_eq!(Hello::decode(&bytes), None);
    }
}
