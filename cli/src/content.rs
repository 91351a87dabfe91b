//! Generated content: every byte follows from a seed, a message number and its place.

/// Fills `bytes` with the content of message `number`.
pub fn fill(seed: u64, number: u64, bytes: &mut [u8]) {
    let start = start(seed, number);
    let mut chunks = bytes.chunks_exact_mut(4);
    let mut index = 0u32;
    for chunk in &mut chunks {
        chunk.copy_from_slice(&word(start, index).to_le_bytes());
        index = index.wrapping_add(1);
    }
    let rest = chunks.into_remainder();
    let last = word(start, index).to_le_bytes();
    rest.copy_from_slice(&last[..rest.len()]);
}

/// The first byte of `bytes` that is not the content of message `number`.
#[must_use]
pub fn first_difference(seed: u64, number: u64, bytes: &[u8]) -> Option<usize> {
    let start = start(seed, number);
    let mut index = 0u32;
    // Blocks of 4 KiB are compared without branches inside; only a wrong one is looked at byte by byte.
    for (block_number, block) in bytes.chunks(4096).enumerate() {
        let first = index;
        let mut different = 0;
        let mut chunks = block.chunks_exact(4);
        for chunk in &mut chunks {
            let found = u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
            different |= found ^ word(start, index);
            index = index.wrapping_add(1);
        }
        let rest = chunks.remainder();
        let last = word(start, index).to_le_bytes();
        if different != 0 || rest != &last[..rest.len()] {
            let place = block.iter().enumerate().position(|(place, byte)| {
                word(start, first.wrapping_add(place as u32 / 4)).to_le_bytes()[place % 4] != *byte
            });
            return place.map(|place| block_number * 4096 + place);
        }
    }
    None
}

const fn start(seed: u64, number: u64) -> u32 {
    let mut word = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (word ^ (word >> 31)) as u32
}

/// Shifts and exclusive ors only, so that the compiler can do many at once on any processor.
#[inline]
const fn word(start: u32, index: u32) -> u32 {
    let mut word = start.wrapping_add((index << 5).wrapping_add(index)) ^ (index << 17);
    word ^= word << 13;
    word ^= word >> 17;
    word ^ (word << 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wrong_byte_is_found_at_its_place() {
        let mut bytes = vec![0; 9_001];
        fill(7, 3, &mut bytes);
        assert_eq!(first_difference(7, 3, &bytes), None);
        for place in [0, 1, 4_095, 4_096, 8_191, 8_999, 9_000] {
            bytes[place] ^= 1;
            assert_eq!(first_difference(7, 3, &bytes), Some(place));
            bytes[place] ^= 1;
        }
    }

    #[test]
    fn messages_and_their_parts_differ() {
        let block = |number| {
            let mut bytes = vec![0; 1 << 20];
            fill(1, number, &mut bytes);
            bytes
        };
        let (one, two) = (block(1), block(2));
        let mut seen = std::collections::HashSet::new();
        for part in one.chunks(4096).chain(two.chunks(4096)) {
            assert!(
                seen.insert(part.to_vec()),
                "two packets with the same content"
            );
        }
    }
}
