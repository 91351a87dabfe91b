//! Which rank (a part of a workload, numbered from 0) is played by which host.

use serde::{Deserialize, Serialize};

use super::chance::shuffle;
use super::error::{WorkloadError, require, require_hosts};
use crate::packet::HostId;
use crate::random::{Purpose, Stream};

/// A rule that gives each rank a host of its own.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Rank i is host i: neighbours in the fabric are neighbours in rank.
    #[default]
    InOrder,
    /// Rank i is the i-th host of 0, s, 2s, ..., 1, s + 1, ...: with s the hosts below a switch, neighbours in rank are below
    /// different switches, the worst case for the fabric.
    Stride(u32),
    /// Hosts drawn by the seed.
    Random,
    /// Rank i is the i-th of these.
    Hosts(Vec<HostId>),
}

impl Placement {
    /// The hosts of `ranks` ranks, by rank.
    ///
    /// # Errors
    /// If there are too few hosts, or a list does not fit.
    pub fn place(&self, ranks: u32, hosts: u32, seed: u64) -> Result<Vec<HostId>, WorkloadError> {
        require_hosts(u64::from(ranks), hosts)?;
        let mut placed: Vec<HostId> = match self {
            Self::InOrder => (0..hosts).collect(),
            &Self::Stride(stride) => {
                require(stride >= 1, "placement.stride", stride, "at least 1")?;
                (0..stride.min(hosts))
                    .flat_map(|first| (first..hosts).step_by(stride as usize))
                    .collect()
            }
            Self::Random => {
                let mut all: Vec<HostId> = (0..hosts).collect();
                shuffle(&mut Stream::new(seed, Purpose::Placement, 0), &mut all);
                all
            }
            Self::Hosts(list) => {
                if list.len() != ranks as usize {
                    let given = list.len();
                    return Err(WorkloadError::Placement { ranks, given });
                }
                let mut taken = vec![false; hosts as usize];
                for &host in list {
                    match taken.get_mut(host as usize) {
                        None => require(false, "placement.hosts", host, "a host that is there")?,
                        Some(true) => return Err(WorkloadError::PlacedTwice { host }),
                        Some(free) => *free = true,
                    }
                }
                list.clone()
            }
        };
        placed.truncate(ranks as usize);
        Ok(placed)
    }
}

/// The number of ranks: as configured, or one on every host.
pub(crate) fn ranks_or_all(
    ranks: Option<u32>,
    least: u32,
    hosts: u32,
) -> Result<u32, WorkloadError> {
    let count = ranks.unwrap_or(hosts);
    require_hosts(u64::from(least.max(count)), hosts)?;
    require(count >= least, "ranks", count, "enough for the operation")?;
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_a_host_of_its_own() {
        for placement in [
            Placement::InOrder,
            Placement::Stride(4),
            Placement::Stride(99),
            Placement::Random,
        ] {
            for ranks in 0..=10 {
                let placed = placement.place(ranks, 10, 5).unwrap();
                assert_eq!(placed.len(), ranks as usize);
                let mut sorted = placed.clone();
                sorted.sort_unstable();
                sorted.dedup();
                assert_eq!(sorted.len(), placed.len());
                assert!(sorted.iter().all(|&host| host < 10));
            }
        }
        assert_eq!(
            Placement::Stride(4).place(10, 10, 0).unwrap(),
            [0, 4, 8, 1, 5, 9, 2, 6, 3, 7]
        );
        let random = |seed| Placement::Random.place(8, 64, seed).unwrap();
        assert_eq!(random(1), random(1));
        assert_ne!(random(1), random(2));
    }

    #[test]
    fn a_list_that_does_not_fit_is_refused() {
        let list = |hosts: &[HostId]| Placement::Hosts(hosts.to_vec()).place(2, 4, 0);
        assert_eq!(list(&[3, 1]).unwrap(), [3, 1]);
        assert_eq!(
            list(&[3]),
            Err(WorkloadError::Placement { ranks: 2, given: 1 })
        );
        assert_eq!(list(&[3, 3]), Err(WorkloadError::PlacedTwice { host: 3 }));
        assert_eq!(
            list(&[3, 4]).unwrap_err().to_string(),
            "`placement.hosts` is 4: it must be a host that is there"
        );
        assert!(Placement::InOrder.place(5, 4, 0).is_err());
    }
}
