//! Any bytes are decoded or refused; what is decoded is written again as the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metaroce_core::wire::{Trailer, check, crc32c, decode};

fn identity(bytes: &[u8]) {
    match decode(bytes) {
        Ok(packet) => {
            let mut again = vec![0xee; bytes.len()];
            assert_eq!(packet.encode(&mut again), Ok(bytes.len()));
            assert_eq!(again, bytes);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fuzz_target!(|bytes: &[u8]| {
    identity(bytes);
    match check(bytes, Trailer::Crc32c) {
        Ok(body) => identity(body),
        Err(_) => {
            let mut sealed = bytes.to_vec();
            sealed.extend(crc32c(bytes).to_be_bytes());
            assert_eq!(check(&sealed, Trailer::Crc32c), Ok(bytes));
        }
    }
});
