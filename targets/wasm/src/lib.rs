//! Simulations whose every outcome must be the same on the host and in WebAssembly.
//!
//! The step `wasm` of `cargo xtask test` runs them in both and compares what comes out; `cargo xtask bench wasm` compares the
//! speed. In WebAssembly `run.mjs` calls the functions here, on the host `main.rs` does what it does.

pub mod cases;
mod digest;
mod situations;
mod transports;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the last case came to, or why the module stopped.
static TEXT: Mutex<String> = Mutex::new(String::new());

fn text() -> MutexGuard<'static, String> {
    TEXT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many cases there are.
#[unsafe(no_mangle)]
pub extern "C" fn wasmcheck_cases() -> u32 {
    cases::count() as u32
}

/// Runs a case: the hash of all that came out, 0 if it could not be run. The text is then the line that describes it.
#[unsafe(no_mangle)]
pub extern "C" fn wasmcheck_run(case: u32, seed: u64) -> u64 {
    if cfg!(target_family = "wasm") {
        // There is no standard error to print to: whoever calls reads it after the trap.
        std::panic::set_hook(Box::new(|info| *text() = info.to_string()));
    }
    let name = cases::name(case as usize);
    let (line, hash) = match cases::run(case as usize, seed) {
        Ok(outcome) => {
            let hash = outcome.hash();
            (format!("{hash:016x} ({outcome})"), hash)
        }
        Err(error) => (error, 0),
    };
    *text() = format!("{name}, seed {seed}: {line}");
    hash
}

/// The text, for who is in the same memory.
#[must_use]
pub fn last_text() -> String {
    text().clone()
}

/// Where the text is.
#[unsafe(no_mangle)]
pub extern "C" fn wasmcheck_text() -> *const u8 {
    text().as_ptr()
}

/// How long it is, in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn wasmcheck_text_bytes() -> usize {
    text().len()
}
