//! A hash of bytes that is the same everywhere.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};

/// FNV-1a with 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Takes in more bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// The hash of a value as `Debug` shows it: all of its fields, also those that are added later.
    pub fn of(value: &impl fmt::Debug) -> Self {
        let mut digest = Self::default();
        // Writing to a digest cannot fail.
        let _ = fmt::write(&mut digest, format_args!("{value:?}"));
        digest
    }

    /// The hash so far.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Write for Digest {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}

/// A file of which only the hash is kept. Copies are the same file.
#[derive(Clone, Default)]
pub struct DigestFile(Arc<Mutex<Digest>>);

impl DigestFile {
    /// The hash of all that was written so far.
    #[must_use]
    pub fn digest(&self) -> Digest {
        *self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl io::Write for DigestFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .map_err(|_| io::ErrorKind::Other)?
            .bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn published_vectors() {
        for (text, expected) in [
            ("", 0xcbf2_9ce4_8422_2325),
            ("a", 0xaf63_dc4c_8601_ec8c),
            ("foobar", 0x8594_4171_f739_67e8),
        ] {
            let mut file = DigestFile::default();
            file.clone().write_all(text.as_bytes()).unwrap();
            file.flush().unwrap();
            assert_eq!(file.digest().value(), expected, "{text}");
        }
        assert_eq!(Digest::of(&1), Digest::of(&1_u64));
    }
}
