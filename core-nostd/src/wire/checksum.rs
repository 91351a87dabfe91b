//! The CRC32C that follows a datagram.

use super::error::{BufferTooSmall, DecodeError, short};

/// Size of a CRC32C trailer, in bytes.
pub const CRC_SIZE: usize = 4;

/// What follows a datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Trailer {
    /// The CRC32C of all bytes before it, big-endian. INIT, RETRY, ACCEPT and REJECT always
    /// carry it.
    #[default]
    Crc32c,
    /// Nothing: both sides have agreed to leave the checksum out.
    None,
}

impl Trailer {
    /// Size of the trailer, in bytes.
    #[inline]
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::Crc32c => CRC_SIZE,
            Self::None => 0,
        }
    }
}

/// The CRC32C (Castagnoli, as in iSCSI) of `bytes`.
///
/// ```
/// assert_eq!(metaroce_core::wire::crc32c(b"123456789"), 0xe306_9283);
/// ```
#[inline]
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc32c_append(0, bytes)
}

/// The CRC32C of bytes whose CRC32C is `crc`, followed by `bytes`; 0 is that of no bytes.
///
/// ```
/// use metaroce_core::wire::{crc32c, crc32c_append};
/// assert_eq!(crc32c_append(crc32c(b"1234"), b"56789"), crc32c(b"123456789"));
/// ```
#[inline]
#[must_use]
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    #[cfg(feature = "std")]
    {
        if crc == 0 {
            return ::crc_fast::crc32_iscsi(bytes);
        }
        let state = u64::from(!crc);
        let mut digest =
            ::crc_fast::Digest::new_with_init_state(::crc_fast::CrcAlgorithm::Crc32Iscsi, state);
        digest.update(bytes);
        digest.finalize() as u32
    }
    #[cfg(not(feature = "std"))]
    {
        table::append(crc, bytes)
    }
}

/// The CRC32C by table, for where there is no instruction for it or no way to find out.
#[cfg(any(test, not(feature = "std")))]
mod table {
    use crc::{CRC_32_ISCSI, Crc, Table};

    /// Bytes that are looked up at one time, in a table of 1 KiB each.
    const LANES: usize = if cfg!(feature = "small") { 1 } else { 16 };

    static CASTAGNOLI: Crc<u32, Table<LANES>> = Crc::<u32, Table<LANES>>::new(&CRC_32_ISCSI);

    /// The crate's own loop has bounds checks that can panic; here chunks have their length in
    /// their type, and a table of 256 cannot be too short for a byte.
    pub(super) fn append(crc: u32, bytes: &[u8]) -> u32 {
        let tables: &[[u32; 256]; LANES] = CASTAGNOLI.table();
        let [first, ..] = tables;
        let (chunks, rest) = if LANES == 16 {
            bytes.as_chunks::<16>()
        } else {
            (&[][..], bytes)
        };
        let mut register = !crc;
        for chunk in chunks {
            let mixed = (u128::from_le_bytes(*chunk) ^ u128::from(register)).to_le_bytes();
            let entries = mixed.iter().rev().zip(tables);
            register = entries.fold(0, |sum, (byte, table)| sum ^ table[usize::from(*byte)]);
        }
        for byte in rest {
            register = first[usize::from(byte ^ register as u8)] ^ register >> 8;
        }
        !register
    }
}

/// Takes the trailer off a datagram, after it was checked.
///
/// # Errors
/// [`DecodeError::Truncated`] when there is no room for a trailer, [`DecodeError::Checksum`]
/// when it is not that of the bytes before it.
#[inline]
pub fn check(datagram: &[u8], trailer: Trailer) -> Result<&[u8], DecodeError> {
    match trailer {
        Trailer::None => Ok(datagram),
        Trailer::Crc32c => {
            let Some((body, sum)) = datagram.split_last_chunk::<CRC_SIZE>() else {
                return Err(DecodeError::Truncated {
                    needed: CRC_SIZE as u16,
                    got: short(datagram.len()),
                });
            };
            let got = u32::from_be_bytes(*sum);
            let expected = crc32c(body);
            if got == expected {
                Ok(body)
            } else {
                Err(DecodeError::Checksum { expected, got })
            }
        }
    }
}

/// Writes the trailer behind the first `length` bytes of `buffer` and returns the length of
/// the whole datagram.
///
/// # Errors
/// [`BufferTooSmall`] when the trailer does not fit.
#[inline]
pub fn seal(buffer: &mut [u8], length: usize, trailer: Trailer) -> Result<usize, BufferTooSmall> {
    let needed = length.saturating_add(trailer.size());
    let error = BufferTooSmall {
        needed,
        got: buffer.len(),
    };
    let Some((body, rest)) = buffer.split_at_mut_checked(length) else {
        return Err(error);
    };
    if trailer == Trailer::Crc32c {
        let place = rest.first_chunk_mut::<CRC_SIZE>().ok_or(error)?;
        *place = crc32c(body).to_be_bytes();
    }
    Ok(needed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn published_vectors() {
        // RFC 3720, B.4.
        let ascending: [u8; 32] = core::array::from_fn(|i| i as u8);
        let descending: [u8; 32] = core::array::from_fn(|i| 31 - i as u8);
        for (bytes, sum) in [
            (&[][..], 0),
            (b"123456789", 0xe306_9283),
            (&[0; 32], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&ascending, 0x46dd_794e),
            (&descending, 0x113f_db5c),
        ] {
            assert_eq!(crc32c(bytes), sum);
            assert_eq!(table::append(0, bytes), sum);
        }
    }

    // spec: MR-WIRE-011, MR-WIRE-012
    #[test]
    fn seal_and_check() {
        let mut buffer = *b"123456789----";
        assert_eq!(seal(&mut buffer, 9, Trailer::Crc32c), Ok(13));
        assert_eq!(&buffer[9..], [0xe3, 0x06, 0x92, 0x83]);
        assert_eq!(check(&buffer, Trailer::Crc32c), Ok(&b"123456789"[..]));
        assert_eq!(check(&buffer, Trailer::None), Ok(&buffer[..]));
        assert_eq!(seal(&mut buffer, 9, Trailer::None), Ok(9));
        let too_small = |needed| Err(BufferTooSmall { needed, got: 13 });
        assert_eq!(seal(&mut buffer, 10, Trailer::Crc32c), too_small(14));
        assert_eq!(seal(&mut buffer, 14, Trailer::None), too_small(14));
        assert_eq!(
            seal(&mut buffer, usize::MAX, Trailer::Crc32c),
            too_small(usize::MAX)
        );
        let short = DecodeError::Truncated { needed: 4, got: 3 };
        assert_eq!(check(&[0; 3], Trailer::Crc32c), Err(short));
    }

    proptest! {
        #[test]
        fn in_parts_as_in_one(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0usize..300) {
            let (front, back) = bytes.split_at(cut.min(bytes.len()));
            let whole = crc32c(&bytes);
            prop_assert_eq!(crc32c_append(crc32c(front), back), whole);
            prop_assert_eq!(table::append(table::append(0, front), back), whole);
        }
    }
}
