//! Big-endian fields at offsets that are checked when the code is compiled.
//!
//! An offset is a const generic: one that is out of range does not compile, so that none of
//! these functions has a way to fail and all of them become single loads and stores.

use super::error::{BufferTooSmall, DecodeError, short};
use super::header::Kind;

/// The `W` bytes at offset `AT`.
#[inline(always)]
pub(super) fn take<const AT: usize, const W: usize, const N: usize>(from: &[u8; N]) -> [u8; W] {
    const { assert!(AT + W <= N) };
    match from.get(AT..).and_then(<[u8]>::first_chunk) {
        Some(field) => *field,
        None => [0; W],
    }
}

/// Writes `W` bytes at offset `AT`.
#[inline(always)]
pub(super) fn put<const AT: usize, const W: usize, const N: usize>(
    into: &mut [u8; N],
    field: [u8; W],
) {
    const { assert!(AT + W <= N) };
    if let Some(place) = into.get_mut(AT..).and_then(<[u8]>::first_chunk_mut) {
        *place = field;
    }
}

/// The byte at offset `AT`.
#[inline(always)]
pub(super) fn u8_at<const AT: usize, const N: usize>(from: &[u8; N]) -> u8 {
    let [byte] = take::<AT, 1, N>(from);
    byte
}

/// The 16-bit number at offset `AT`.
#[inline(always)]
pub(super) fn u16_at<const AT: usize, const N: usize>(from: &[u8; N]) -> u16 {
    u16::from_be_bytes(take::<AT, 2, N>(from))
}

/// The 32-bit number at offset `AT`.
#[inline(always)]
pub(super) fn u32_at<const AT: usize, const N: usize>(from: &[u8; N]) -> u32 {
    u32::from_be_bytes(take::<AT, 4, N>(from))
}

/// The 64-bit number at offset `AT`.
#[inline(always)]
pub(super) fn u64_at<const AT: usize, const N: usize>(from: &[u8; N]) -> u64 {
    u64::from_be_bytes(take::<AT, 8, N>(from))
}

/// Refuses a number that has to be zero; `offset` says where it was, for the error.
#[inline(always)]
// spec: MR-WIRE-007
pub(super) fn zero(number: u64, offset: u16) -> Result<(), DecodeError> {
    if number == 0 {
        Ok(())
    } else {
        Err(DecodeError::Reserved { offset })
    }
}

/// The whole datagram as an array, when it has exactly the length of its kind.
#[inline(always)]
// spec: MR-WIRE-008
pub(super) fn exactly<const N: usize>(kind: Kind, body: &[u8]) -> Result<&[u8; N], DecodeError> {
    body.try_into().map_err(|_| DecodeError::Length {
        kind,
        got: short(body.len()),
    })
}

/// The first `N` bytes of a buffer.
#[inline(always)]
pub(super) fn room<const N: usize>(out: &mut [u8]) -> Result<&mut [u8; N], BufferTooSmall> {
    let got = out.len();
    out.first_chunk_mut()
        .ok_or(BufferTooSmall { needed: N, got })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_big_endian_at_their_offset() {
        let mut bytes = [0u8; 16];
        put::<1, 1, 16>(&mut bytes, [9]);
        put::<2, 2, 16>(&mut bytes, 0x0102u16.to_be_bytes());
        put::<4, 4, 16>(&mut bytes, 0x0304_0506u32.to_be_bytes());
        put::<8, 8, 16>(&mut bytes, 0x0708_090a_0b0c_0d0eu64.to_be_bytes());
        assert_eq!(
            bytes,
            [
                0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e
            ]
        );
        assert_eq!(u8_at::<1, 16>(&bytes), 9);
        assert_eq!(u16_at::<2, 16>(&bytes), 0x0102);
        assert_eq!(u32_at::<4, 16>(&bytes), 0x0304_0506);
        assert_eq!(u64_at::<8, 16>(&bytes), 0x0708_090a_0b0c_0d0e);
    }

    // spec: MR-WIRE-007, MR-WIRE-008
    #[test]
    fn lengths_are_exact_or_refused() {
        assert!(exactly::<4>(Kind::Hint, &[0; 4]).is_ok());
        let refused = DecodeError::Length {
            kind: Kind::Hint,
            got: 3,
        };
        assert_eq!(exactly::<4>(Kind::Hint, &[0; 3]), Err(refused));
        assert_eq!(
            room::<4>(&mut [0; 3]),
            Err(BufferTooSmall { needed: 4, got: 3 })
        );
        assert_eq!(zero(1, 7), Err(DecodeError::Reserved { offset: 7 }));
    }
}
