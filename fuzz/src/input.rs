//! The fuzzer's bytes, read as numbers. At the end there are only zeros.

/// What is left of the input.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// All of it.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    /// The next two bytes.
    pub fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// The next four bytes.
    pub fn word(&mut self) -> u32 {
        u32::from(self.short()) | u32::from(self.short()) << 16
    }

    /// A number below `limit` (which is not zero).
    pub fn below(&mut self, limit: usize) -> usize {
        let number = if limit <= 256 {
            usize::from(self.byte())
        } else {
            usize::from(self.short())
        };
        number % limit
    }

    /// Up to `limit` bytes.
    pub fn bytes(&mut self, limit: usize) -> &'a [u8] {
        let length = self.below(limit + 1).min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }
}
