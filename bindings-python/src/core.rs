//! The core's endpoints, whose tables' sizes are in their types.

use metaroce_core::config::ConfigError;
use metaroce_core::{ConnectionConfig, ConnectionEntry, Endpoint, EndpointConfig};

/// A table of connections on the heap.
type Entries<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize> =
    Vec<ConnectionEntry<PATHS, SLOTS, STREAMS, MESSAGES>>;

/// An endpoint of some size.
pub enum Core {
    /// Of a small device: 4 regions, 8 receive buffers.
    Small(Box<Endpoint<4, 32, 2, 2, 4, 8, Entries<4, 32, 2, 2>>>),
    /// Of a host: 64 regions, 1024 receive buffers.
    Large(Box<Endpoint<64, 512, 32, 32, 64, 1024, Entries<64, 512, 32, 32>>>),
}

/// `$call` on the endpoint, whichever it is.
macro_rules! with {
    ($core:expr, $endpoint:ident => $call:expr) => {
        match $core {
            $crate::core::Core::Small($endpoint) => $call,
            $crate::core::Core::Large($endpoint) => $call,
        }
    };
}
pub(crate) use with;

/// Most connections of a table: one that is larger is refused, but not before it was made.
pub const MOST_CONNECTIONS: usize = 65_535;

fn table<const PATHS: usize, const SLOTS: usize, const STREAMS: usize, const MESSAGES: usize>(
    connections: usize,
) -> Result<Entries<PATHS, SLOTS, STREAMS, MESSAGES>, ConfigError> {
    if connections > MOST_CONNECTIONS {
        return Err(ConfigError::Connections);
    }
    Ok((0..connections).map(|_| ConnectionEntry::new()).collect())
}

impl Core {
    /// An endpoint of a small device.
    pub fn small(
        config: EndpointConfig,
        default: ConnectionConfig,
        secret: [u8; 32],
        connections: usize,
    ) -> Result<Self, ConfigError> {
        let endpoint = Endpoint::new(config, default, secret, table(connections)?)?;
        Ok(Self::Small(Box::new(endpoint)))
    }

    /// An endpoint of a host.
    pub fn large(
        config: EndpointConfig,
        default: ConnectionConfig,
        secret: [u8; 32],
        connections: usize,
    ) -> Result<Self, ConfigError> {
        let endpoint = Endpoint::new(config, default, secret, table(connections)?)?;
        Ok(Self::Large(Box::new(endpoint)))
    }
}
