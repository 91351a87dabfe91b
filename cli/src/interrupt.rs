//! Ctrl-C and SIGTERM: remembered, and acted upon where it is convenient.

use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user wants an end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Listens for Ctrl-C, SIGTERM and SIGHUP. The second one ends the program at once.
    ///
    /// # Errors
    /// If the handler cannot be installed.
    pub fn install() -> Result<Self, Failure> {
        let interrupt = Self::default();
        let flag = interrupt.0.clone();
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::SeqCst) {
                std::process::exit(i32::from(crate::failure::INTERRUPTED));
            }
        })
        .map_err(|error| Failure::System(format!("cannot listen for Ctrl-C: {error}")))?;
        Ok(interrupt)
    }

    /// Whether the user wants an end.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Asks for an end as the user would.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
