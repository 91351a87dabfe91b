//! What can be wrong with a scenario.

use core::ops::Range;

use crate::fabric::FabricError;
use crate::workload::WorkloadError;
use crate::workload::program::ProgramError;

/// Something wrong in a text: where (bytes), at which key, and what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Problem {
    pub span: Range<usize>,
    pub key: String,
    pub message: String,
}

/// Why there is no result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file, or what overrides it, is wrong.
    #[error("{place}: {}{message}", prefix(key))]
    Text {
        /// File, line and column, or the override.
        place: String,
        /// The key, with those of the tables around it; empty where there is none.
        key: String,
        /// What is wrong, and what would do.
        message: String,
    },
    /// The settings of a part do not fit together.
    #[error("{key}: {message}")]
    Settings {
        /// The key, with those of the tables around it.
        key: String,
        /// What is wrong.
        message: String,
    },
}

fn prefix(key: &str) -> String {
    if key.is_empty() {
        String::new()
    } else {
        format!("{key}: ")
    }
}

impl ScenarioError {
    pub(crate) fn settings(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Settings {
            key: key.into(),
            message: message.into(),
        }
    }
}

impl From<FabricError> for ScenarioError {
    fn from(error: FabricError) -> Self {
        let text = error.to_string();
        match text.split_once(": ") {
            Some((key, message)) => {
                let part = match error {
                    FabricError::Zero("mbps") => "tiers.",
                    FabricError::Zero("planes") | FabricError::TooMany("planes") => "",
                    // All other counts are those of the shape.
                    FabricError::Zero(_) | FabricError::TooMany(_) => "shape.",
                    _ => "",
                };
                Self::settings(format!("fabric.{part}{key}"), message)
            }
            None => Self::settings("fabric", text),
        }
    }
}

impl From<WorkloadError> for ScenarioError {
    fn from(error: WorkloadError) -> Self {
        match &error {
            WorkloadError::Value { field, .. } => {
                Self::settings(format!("workload.{field}"), error.to_string())
            }
            _ => Self::settings("workload", error.to_string()),
        }
    }
}

impl From<ProgramError> for ScenarioError {
    fn from(error: ProgramError) -> Self {
        Self::settings("workload", error.to_string())
    }
}
