//! Scenarios of the simulator.

use std::ffi::{CString, c_char};

use metaroce_sim::scenario::{Document, NoFiles, Unwatched, execute};

use crate::boundary::{Answer, detailed, guard, message, slice, text, writable, write};
use crate::error::mr_error;

/// What came of a run.
pub struct mr_sim_result {
    magic: u32,
    hash: CString,
    json: CString,
}

const MAGIC: u32 = 0x4d52_5349;

/// Runs a scenario: its text in TOML (docs/scenarios.md; it cannot name other files), a seed, and `count` settings such as "fabric.planes=4"
/// that take the place of what it says. Equal ones give equal results, byte for byte. It takes as long as it takes, on a thread of its own
/// with room for the largest connections.
///
/// The result is to be given back by `mr_sim_free`. Errors: `MR_ERROR_SCENARIO` with `mr_error_detail`, `MR_ERROR_NOT_UTF8`,
/// `MR_ERROR_SYSTEM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_sim_run(
    scenario: *const c_char,
    seed: u64,
    settings: *const *const c_char,
    count: usize,
    result: *mut *mut mr_sim_result,
) -> i32 {
    guard(|| {
        writable(result)?;
        // SAFETY: the caller's promise (see the crate's documentation).
        let (scenario, settings) = unsafe { (text(scenario)?, slice(settings, count)?) };
        // SAFETY: as above.
        let settings = settings.iter().map(|setting| unsafe { text(*setting) });
        let settings: Vec<&str> = settings.collect::<Result<_, _>>()?;
        let made = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, || run(scenario, seed, &settings))
                .map_err(|error| {
                    (
                        format!("starting a thread: {error}"),
                        mr_error::MR_ERROR_SYSTEM,
                    )
                })?;
            thread.join().unwrap_or_else(|panic| {
                let why = format!("the simulator failed: {}", message(&*panic));
                Err((why, mr_error::MR_ERROR_INTERNAL))
            })
        });
        let made = made.map_err(|(message, code)| detailed(message, code))?;
        // SAFETY: as above.
        unsafe { write(result, Box::into_raw(Box::new(made))) }?;
        Ok(0)
    })
}

/// Connections for long links are built on the stack.
const STACK: usize = 64 << 20;

fn run(scenario: &str, seed: u64, settings: &[&str]) -> Result<mr_sim_result, (String, mr_error)> {
    let wrong = |error: String| (error, mr_error::MR_ERROR_SCENARIO);
    let document = Document::parse("scenario", scenario, settings, &NoFiles)
        .map_err(|error| wrong(error.to_string()))?;
    let report = execute(&document.scenario, seed, &mut Unwatched)
        .map_err(|error| wrong(document.place(error).to_string()))?;
    let internal = || {
        let message = "the summary cannot be written: please report it";
        (message.to_owned(), mr_error::MR_ERROR_INTERNAL)
    };
    let json = serde_json::to_string(&report.summary).map_err(|_| internal())?;
    Ok(mr_sim_result {
        magic: MAGIC,
        hash: CString::new(report.summary.hash).map_err(|_| internal())?,
        json: CString::new(json).map_err(|_| internal())?,
    })
}

/// # Safety
/// The pointer is NULL or to a result.
unsafe fn open<'a>(result: *const mr_sim_result) -> Result<&'a mr_sim_result, mr_error> {
    writable(result.cast_mut())?;
    // SAFETY: not NULL and aligned; the rest is the caller's promise.
    let result = unsafe { &*result };
    if result.magic == MAGIC {
        Ok(result)
    } else {
        Err(mr_error::MR_ERROR_NOT_AN_OBJECT)
    }
}

/// The hash of all that happened in the run, as text. It is the result's, and lives as long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_sim_hash(
    result: *const mr_sim_result,
    hash: *mut *const c_char,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise (see the crate's documentation).
        unsafe { write(hash, open(result)?.hash.as_ptr()) }?;
        Ok(0)
    })
}

/// The summary of the run, as JSON. It is the result's, and lives as long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_sim_json(
    result: *const mr_sim_result,
    json: *mut *const c_char,
) -> i32 {
    guard(|| {
        // SAFETY: the caller's promise (see the crate's documentation).
        unsafe { write(json, open(result)?.json.as_ptr()) }?;
        Ok(0)
    })
}

/// Gives a result back. NULL does nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mr_sim_free(result: *mut mr_sim_result) -> i32 {
    guard(|| -> Answer {
        if !result.is_null() {
            // SAFETY: the caller's promise (see the crate's documentation).
            unsafe { open(result) }?;
            // SAFETY: `mr_sim_run` made it of a box, and it is given back once.
            drop(unsafe { Box::from_raw(result) });
        }
        Ok(0)
    })
}
