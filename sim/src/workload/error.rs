//! Why a workload cannot be made.

use super::program::ProgramError;
use super::text::ParseError;
use crate::packet::HostId;

/// What is wrong with the description of a workload.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WorkloadError {
    /// Not enough hosts for the parts that are to be played.
    #[error("{needed} hosts are needed, there are {hosts}")]
    TooFewHosts {
        /// How many it takes.
        needed: u64,
        /// How many there are.
        hosts: u32,
    },
    /// A number that makes no sense.
    #[error("`{field}` is {value}: it must be {allowed}")]
    Value {
        /// The field of the configuration.
        field: &'static str,
        /// What it was.
        value: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// Two ranks on one host.
    #[error("host {host} is given to two ranks")]
    PlacedTwice {
        /// The host.
        host: HostId,
    },
    /// A list of hosts that does not fit the number of ranks.
    #[error("{ranks} ranks are placed on {given} hosts")]
    Placement {
        /// How many ranks there are.
        ranks: u32,
        /// How many hosts were listed.
        given: usize,
    },
    /// A file is not what it should be.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The tasks do not make a program.
    #[error(transparent)]
    Program(#[from] ProgramError),
}

/// An error unless `holds`.
pub(crate) fn require(
    holds: bool,
    field: &'static str,
    value: impl core::fmt::Display,
    allowed: &'static str,
) -> Result<(), WorkloadError> {
    if holds {
        return Ok(());
    }
    Err(WorkloadError::Value {
        field,
        value: value.to_string(),
        allowed,
    })
}

/// An error unless there are as many hosts as needed.
pub(crate) fn require_hosts(needed: u64, hosts: u32) -> Result<(), WorkloadError> {
    if needed <= u64::from(hosts) {
        return Ok(());
    }
    Err(WorkloadError::TooFewHosts { needed, hosts })
}
