//! What the bytes of a message are: a function of its number and the offset, so that any byte can be checked alone.

/// What memory holds that nothing was placed in.
pub const UNTOUCHED: u8 = 0xc3;
/// What the application writes over a source when the operation has ended.
pub const POISON: u8 = 0x5a;

fn word(uid: u64, index: u64) -> u64 {
    let mut z = uid
        .wrapping_mul(0xd6e8_feb8_6659_fd93)
        .wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 29)
}

/// Fills `bytes` with the message's bytes from `offset` on.
pub fn fill(uid: u64, offset: u64, bytes: &mut [u8]) {
    let mut at = offset;
    let mut rest = bytes;
    while !rest.is_empty() {
        let chunk = word(uid, at / 8).to_le_bytes();
        let skip = (at % 8) as usize;
        let n = rest.len().min(8 - skip);
        rest[..n].copy_from_slice(&chunk[skip..skip + n]);
        rest = &mut rest[n..];
        at += n as u64;
    }
}

/// The message's bytes.
pub fn bytes(uid: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fill(uid, 0, &mut bytes);
    bytes
}

/// The first byte of `found` that is not the message's, if there is one.
pub fn first_wrong(uid: u64, offset: u64, found: &[u8]) -> Option<usize> {
    let mut expected = vec![0; found.len()];
    fill(uid, offset, &mut expected);
    if expected == found {
        return None;
    }
    expected.iter().zip(found).position(|(a, b)| a != b)
}

#[test]
fn any_part_is_part_of_the_whole() {
    let whole = bytes(7, 100);
    for offset in 0..100 {
        let mut part = vec![0; 100 - offset];
        fill(7, offset as u64, &mut part);
        assert_eq!(part, whole[offset..]);
    }
    assert_eq!(first_wrong(7, 5, &whole[5..]), None);
    assert_eq!(first_wrong(8, 0, &whole[..50]), Some(0));
}
