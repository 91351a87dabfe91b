//! What ends a command badly, and the exit code that tells scripts.

use serde_json::{Value, json};

/// Why a command did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The arguments do not fit together.
    #[error("{0}")]
    Usage(String),
    /// This machine would not do it: an address, a port, a file, memory.
    #[error("{0}")]
    System(String),
    /// The peer was not reached, refused, or was lost.
    #[error("{0}")]
    Connection(String),
    /// It ran, but bytes were wrong or operations failed.
    #[error("{0}")]
    Wrong(String),
}

/// Ended by Ctrl-C or SIGTERM, with the figures so far.
pub const INTERRUPTED: u8 = 130;

impl Failure {
    /// The exit code: see the command's help.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Wrong(_) => 1,
            Self::Usage(_) => 2,
            Self::System(_) => 3,
            Self::Connection(_) => 4,
        }
    }

    /// The failure as `--json` shows it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "error": { "message": self.to_string(), "exit_code": self.exit_code() } })
    }
}

impl From<metaroce_soft::Error> for Failure {
    fn from(error: metaroce_soft::Error) -> Self {
        use metaroce_soft::Error;
        let text = error.to_string();
        match error {
            Error::Planes { .. }
            | Error::UnspecifiedAddress { .. }
            | Error::PayloadTooLarge { .. }
            | Error::Config(_) => Self::Usage(text),
            Error::Connect(_) | Error::Closed(_) | Error::TimedOut { .. } => Self::Connection(text),
            _ => Self::System(text),
        }
    }
}

/// The part of the help that lists exit codes.
pub const EXIT_CODES: &str = "Exit codes:
  0    success
  1    it ran, but bytes were wrong or operations failed
  2    the arguments do not make sense
  3    this machine would not do it (address, port, file, memory)
  4    the peer was not reached, refused, or was lost
  130  ended by Ctrl-C or SIGTERM, with the figures so far";
