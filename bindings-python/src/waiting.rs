//! Waiting without the interpreter's lock, with a look at signals now and then.

use crate::settings;
use pyo3::prelude::*;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a wait looks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// When a wait of so many seconds is over; `None` is never.
pub fn deadline(timeout: Option<f64>) -> PyResult<Option<Instant>> {
    Ok(settings::seconds(timeout)?.and_then(|timeout| Instant::now().checked_add(timeout)))
}

/// How long to wait before the next look at signals, or nothing if time is up.
pub fn next_look(deadline: Option<Instant>) -> Option<Duration> {
    let left = deadline.map_or(LOOK, |at| at.saturating_duration_since(Instant::now()));
    (!left.is_zero()).then(|| left.min(LOOK))
}

/// What another thread is going to send.
pub struct Outcome<T>(Mutex<Receiver<T>>);

impl<T: Send> Outcome<T> {
    pub const fn new(receiver: Receiver<T>) -> Self {
        Self(Mutex::new(receiver))
    }

    /// Waits until the next look at signals is due; nothing then.
    ///
    /// # Errors
    /// If the thread ended without a word: it panicked.
    pub fn next(&self, py: Python<'_>) -> PyResult<Option<T>> {
        let received = py.detach(|| {
            let receiver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            receiver.recv_timeout(LOOK)
        });
        match received {
            Ok(value) => Ok(Some(value)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                let message = "a thread panicked: its message is on standard error";
                Err(pyo3::exceptions::PyRuntimeError::new_err(message))
            }
        }
    }
}
