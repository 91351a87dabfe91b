//! The shapes of fabrics.

use serde::{Deserialize, Serialize};

use super::{FabricError, Plane, Tier};
use crate::packet::HostId;
use crate::port::Node;

/// How hosts and switches are joined.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Shape {
    /// Two hosts and a link.
    Pair,
    /// Hosts around one switch.
    Star {
        /// Hosts.
        hosts: u32,
    },
    /// Leaves, each with hosts, and each joined to every spine.
    LeafSpine {
        /// Leaves.
        leaves: u32,
        /// Hosts on each.
        hosts_per_leaf: u32,
        /// Spines.
        spines: u32,
    },
    /// Pods of edge and aggregation switches under a core.
    FatTree {
        /// Pods.
        pods: u32,
        /// Edge switches in a pod.
        edges: u32,
        /// Hosts on an edge switch.
        hosts_per_edge: u32,
        /// Aggregation switches in a pod, each joined to all its edge switches.
        aggregations: u32,
        /// Core switches above each aggregation switch of a pod; the n-th aggregation switches of all pods share them.
        cores_per_aggregation: u32,
    },
    /// Two sites, each leaves and hosts under border switches, and long links between each pair of border switches.
    TwoSites {
        /// Leaves at a site.
        leaves: u32,
        /// Hosts on each.
        hosts_per_leaf: u32,
        /// Border switches of a site; each is joined to all leaves there and to one at the other site.
        borders: u32,
    },
}

impl Shape {
    /// The 3-tier fat tree of switches with `k` ports: `k`^3 / 4 hosts.
    #[must_use]
    pub const fn fat_tree(k: u32) -> Self {
        Self::FatTree {
            pods: k,
            edges: k / 2,
            hosts_per_edge: k / 2,
            aggregations: k / 2,
            cores_per_aggregation: k / 2,
        }
    }

    /// Leaves and spines.
    #[must_use]
    pub const fn leaf_spine(leaves: u32, hosts_per_leaf: u32, spines: u32) -> Self {
        Self::LeafSpine {
            leaves,
            hosts_per_leaf,
            spines,
        }
    }

    /// How many hosts there are.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        match *self {
            Self::Pair => 2,
            Self::Star { hosts } => hosts,
            Self::LeafSpine {
                leaves,
                hosts_per_leaf,
                ..
            } => leaves.saturating_mul(hosts_per_leaf),
            Self::FatTree {
                pods,
                edges,
                hosts_per_edge,
                ..
            } => pods.saturating_mul(edges).saturating_mul(hosts_per_edge),
            Self::TwoSites {
                leaves,
                hosts_per_leaf,
                ..
            } => leaves.saturating_mul(hosts_per_leaf).saturating_mul(2),
        }
    }

    /// The links of the longest way from host to host.
    pub(super) fn longest_way(&self) -> &'static [Tier] {
        use Tier::{Core, Host, Leaf, Site};
        match self {
            Self::Pair => &[Host],
            Self::Star { .. } => &[Host, Host],
            Self::LeafSpine { .. } => &[Host, Leaf, Leaf, Host],
            Self::FatTree { .. } => &[Host, Leaf, Core, Core, Leaf, Host],
            Self::TwoSites { .. } => &[Host, Leaf, Site, Leaf, Host],
        }
    }

    pub(super) fn check(&self) -> Result<(), FabricError> {
        let counts: &[(&'static str, u32)] = match self {
            Self::Pair => &[],
            Self::Star { hosts } => &[("hosts", *hosts)],
            Self::LeafSpine {
                leaves,
                hosts_per_leaf,
                spines,
            } => &[
                ("leaves", *leaves),
                ("hosts_per_leaf", *hosts_per_leaf),
                ("spines", *spines),
            ],
            Self::FatTree {
                pods,
                edges,
                hosts_per_edge,
                aggregations,
                cores_per_aggregation,
            } => &[
                ("pods", *pods),
                ("edges", *edges),
                ("hosts_per_edge", *hosts_per_edge),
                ("aggregations", *aggregations),
                ("cores_per_aggregation", *cores_per_aggregation),
            ],
            Self::TwoSites {
                leaves,
                hosts_per_leaf,
                borders,
            } => &[
                ("leaves", *leaves),
                ("hosts_per_leaf", *hosts_per_leaf),
                ("borders", *borders),
            ],
        };
        if let Some(&(what, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(FabricError::Zero(what));
        }
        if self.hosts() > 65_536 {
            return Err(FabricError::TooMany("hosts"));
        }
        Ok(())
    }

    pub(super) fn build(&self, plane: &mut Plane<'_>) {
        match *self {
            Self::Pair => plane.link(Node::Host(0), Node::Host(1), Tier::Host),
            Self::Star { hosts } => {
                leaf(plane, 0..hosts);
            }
            Self::LeafSpine {
                leaves,
                hosts_per_leaf,
                spines,
            } => {
                let leaves = rows(plane, 0, leaves, hosts_per_leaf);
                let spines = switches(plane, spines);
                join(plane, &leaves, &spines, Tier::Leaf);
            }
            Self::FatTree {
                pods,
                edges,
                hosts_per_edge,
                aggregations,
                cores_per_aggregation,
            } => {
                let mut above: Vec<Vec<Node>> = vec![Vec::new(); aggregations as usize];
                for pod in 0..pods {
                    let first = pod * edges * hosts_per_edge;
                    let edges = rows(plane, first, edges, hosts_per_edge);
                    let aggregations = switches(plane, aggregations);
                    join(plane, &edges, &aggregations, Tier::Leaf);
                    for (above, aggregation) in above.iter_mut().zip(aggregations) {
                        above.push(aggregation);
                    }
                }
                for aggregations in above {
                    let cores = switches(plane, cores_per_aggregation);
                    join(plane, &aggregations, &cores, Tier::Core);
                }
            }
            Self::TwoSites {
                leaves,
                hosts_per_leaf,
                borders,
            } => {
                let sites = [0, leaves * hosts_per_leaf].map(|first| {
                    let leaves = rows(plane, first, leaves, hosts_per_leaf);
                    let borders = switches(plane, borders);
                    join(plane, &leaves, &borders, Tier::Leaf);
                    borders
                });
                for (&here, &there) in sites[0].iter().zip(&sites[1]) {
                    plane.link(here, there, Tier::Site);
                }
            }
        }
    }
}

/// A switch with hosts.
fn leaf(plane: &mut Plane<'_>, hosts: core::ops::Range<HostId>) -> Node {
    let leaf = plane.switch();
    for host in hosts {
        plane.link(Node::Host(host), leaf, Tier::Host);
    }
    leaf
}

/// Switches with so many hosts each, from host `first` on.
fn rows(plane: &mut Plane<'_>, first: HostId, count: u32, hosts: u32) -> Vec<Node> {
    (0..count)
        .map(|i| {
            let first = first + i * hosts;
            leaf(plane, first..first + hosts)
        })
        .collect()
}

fn switches(plane: &mut Plane<'_>, count: u32) -> Vec<Node> {
    (0..count).map(|_| plane.switch()).collect()
}

/// A link between each of the lower and each of the upper switches.
fn join(plane: &mut Plane<'_>, lower: &[Node], upper: &[Node], tier: Tier) {
    for &above in upper {
        for &below in lower {
            plane.link(below, above, tier);
        }
    }
}
