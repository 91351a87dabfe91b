//! How a server of memory tells its clients where that memory is: `metaroce serve`, small devices, and all who use them.
//!
//! The client connects with [`SERVICE`] as its application number and posts a buffer of [`HELLO_BYTES`] on stream 0; the server's
//! first message there is a [`Hello`].

use crate::memory::RemoteAddress;

/// The application number of this exchange, version 1.
pub const SERVICE: u32 = 0x6d72_0001;

/// The server's window, as it tells it to the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
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
            let word = bytes.get(at..)?.first_chunk::<8>()?;
            Some(u64::from_be_bytes(*word))
        };
        let key = u32::from_be_bytes(*bytes.last_chunk::<4>()?);
        bytes.starts_with(&MAGIC).then_some(Self {
            base: word(4)?,
            length: word(12)?,
            key,
        })
    }

    /// A place in the window.
    #[must_use]
    pub const fn at(&self, offset: u64) -> RemoteAddress {
        RemoteAddress {
            address: self.base.wrapping_add(offset),
            key: self.key,
        }
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
