//! Fabrics, what goes wrong on them, and what hosts have to do there.

use metaroce_sim::fabric::{Fabric, FabricConfig, Shape, Tier};
use metaroce_sim::faults::{Burst, FaultConfig, Reordering, Selector};
use metaroce_sim::port::FlowControl;
use metaroce_sim::random::Probability;
use metaroce_sim::switch::{SharedBuffer, Spray};
use metaroce_sim::time::Time;

/// What a transport is put into.
pub struct Situation {
    /// Its name.
    pub name: &'static str,
    /// The fabric.
    pub fabric: fn() -> FabricConfig,
    /// What goes wrong on it.
    pub disturb: fn(&mut Fabric),
    /// The workload, in JSON.
    pub workload: &'static str,
    /// Whether a capture and a trace of it are written.
    pub written: bool,
}

/// All situations: every shape, every kind of fault, of flow control and of workload. Each takes a transport some ten milliseconds.
pub const ALL: &[Situation] = &[
    Situation {
        name: "pair, loss",
        fabric: || shape(Shape::Pair),
        disturb: |fabric| faults(fabric, Tier::Host, 1, &FaultConfig::loss(percent(1))),
        workload: r#"{"htsim": {}}"#,
        written: true,
    },
    Situation {
        name: "pair, bursts and disorder",
        fabric: || shape(Shape::Pair),
        disturb: |fabric| faults(fabric, Tier::Host, 1, &everything()),
        workload: r#"{"goal": {}}"#,
        written: true,
    },
    Situation {
        name: "star, incast",
        fabric: || shape(Shape::Star { hosts: 9 }),
        disturb: |_| {},
        workload: r#"{"incast": {"size_bytes": 500000}}"#,
        written: true,
    },
    Situation {
        name: "star, shared buffer, storage",
        fabric: || FabricConfig {
            buffer: Some(SharedBuffer {
                bytes: 1_000_000,
                alpha_eighths: 4,
            }),
            ..shape(Shape::Star { hosts: 8 })
        },
        disturb: |_| {},
        workload: r#"{"storage": {"clients": 4, "stripes": 4, "write_percent": 30, "objects": "storage", "mean_gap_ns": 20000}}"#,
        written: false,
    },
    Situation {
        name: "star, outcast on two planes",
        fabric: || FabricConfig {
            planes: 2,
            ..shape(Shape::Star { hosts: 8 })
        },
        disturb: |fabric| link_fails(fabric, Tier::Host),
        workload: r#"{"outcast": {"size_bytes": 300000, "placement": "random"}}"#,
        written: false,
    },
    Situation {
        name: "fat tree, poisson",
        fabric: || shape(Shape::fat_tree(4)),
        disturb: |_| {},
        workload: r#"{"poisson": {"load_percent": 60, "duration_ns": 150000, "sizes": "hadoop"}}"#,
        written: false,
    },
    Situation {
        name: "fat tree, sprayed, permutation",
        fabric: || FabricConfig {
            spray: Spray::Random,
            ..shape(Shape::fat_tree(4))
        },
        disturb: |_| {},
        workload: r#"{"permutation": {"size_bytes": 500000}}"#,
        written: false,
    },
    Situation {
        name: "fat tree, pauses, incast",
        fabric: || FabricConfig {
            flow: FlowControl::Pause {
                xoff_bytes: 100_000,
                xon_bytes: 90_000,
                headroom_bytes: 60_000,
            },
            ..shape(Shape::fat_tree(4))
        },
        disturb: |_| {},
        workload: r#"{"incast": {"size_bytes": 300000, "receivers": 2, "placement": "random"}}"#,
        written: false,
    },
    Situation {
        name: "fat tree, credits, all-to-all",
        fabric: || FabricConfig {
            flow: FlowControl::Credit { bytes: 100_000 },
            ..shape(Shape::fat_tree(4))
        },
        disturb: |_| {},
        workload: r#"{"collective": {"operation": "all-to-all", "size_bytes": 400000}}"#,
        written: false,
    },
    Situation {
        name: "fat tree, blackhole, experts",
        fabric: || shape(Shape::fat_tree(4)),
        disturb: blackhole,
        workload: r#"{"moe": {"layers": 1, "tokens": 8, "window": 4, "dense_ns": 20000}}"#,
        written: false,
    },
    Situation {
        name: "leaf-spine, link fails, all-reduce",
        fabric: || FabricConfig {
            reroute_after: Some(Time::from_us(50)),
            ..shape(Shape::leaf_spine(4, 4, 2))
        },
        disturb: |fabric| link_fails(fabric, Tier::Leaf),
        workload: r#"{"collective": {"operation": {"all-reduce": "double-tree"}, "size_bytes": 500000}}"#,
        written: false,
    },
    Situation {
        name: "leaf-spine, some loss, training",
        fabric: || shape(Shape::leaf_spine(2, 4, 4)),
        disturb: |fabric| faults(fabric, Tier::Leaf, 3, &FaultConfig::loss(percent(1))),
        workload: r#"{"training": {"steps": 2, "gradient_bytes": 500000, "bucket_bytes": 250000, "forward_ns": 20000,
            "backward_ns": 30000, "stragglers": {"exponential": 20}}}"#,
        written: false,
    },
    Situation {
        name: "leaf-spine, cache moves",
        fabric: || shape(Shape::leaf_spine(2, 4, 2)),
        disturb: |_| {},
        workload: r#"{"kv-cache": {"prefill": 4, "decode": 4, "layers": 2, "mean_gap_ns": 50000, "token_layer_ns": 10,
            "tokens": {"uniform": [64, 256]}, "token_layer_bytes": 1024}}"#,
        written: false,
    },
    Situation {
        name: "two sites, pipeline",
        fabric: || FabricConfig {
            base_rtt: Time::from_us(500),
            ..shape(Shape::TwoSites {
                leaves: 2,
                hosts_per_leaf: 2,
                borders: 2,
            })
        },
        disturb: |fabric| faults(fabric, Tier::Site, 1, &FaultConfig::loss(percent(1))),
        workload: r#"{"pipeline": {"activation_bytes": 200000, "forward_ns": 10000, "backward_ns": 20000, "microbatches": 2}}"#,
        written: false,
    },
];

fn shape(shape: Shape) -> FabricConfig {
    FabricConfig {
        shape,
        ..FabricConfig::default()
    }
}

fn percent(percent: u64) -> Probability {
    Probability::ratio(percent, 100)
}

/// Every fault that a link has, at once.
fn everything() -> FaultConfig {
    FaultConfig {
        burst: Some(Burst {
            to_bad: percent(1),
            to_good: percent(20),
            loss_good: Probability::ZERO,
            loss_bad: percent(50),
        }),
        corruption: percent(1),
        duplication: percent(1),
        reordering: Some(Reordering {
            probability: percent(2),
            max_delay: Time::from_us(10),
        }),
        ..FaultConfig::loss(Probability::new(0.003))
    }
}

/// Both ways of every `every`-th link of a tier.
fn faults(fabric: &mut Fabric, tier: Tier, every: usize, faults: &FaultConfig) {
    let links = fabric.tier(tier).step_by(every);
    let ports: Vec<_> = links.flat_map(|link| [link.up, link.down]).collect();
    for port in ports {
        fabric.network.set_faults(port, faults.clone());
    }
}

/// A core link swallows all for a while without going down.
fn blackhole(fabric: &mut Fabric) {
    let (from, until) = (Time::from_us(550), Time::from_us(700));
    let hole = FaultConfig::default().with_blackhole(Selector::All, from, until);
    faults(fabric, Tier::Core, 8, &hole);
}

/// The first link of a tier goes down and comes back.
fn link_fails(fabric: &mut Fabric, tier: Tier) {
    let ports = fabric.tier(tier).next().map(|link| [link.up, link.down]);
    for port in ports.into_iter().flatten() {
        let network = &mut fabric.network;
        network.schedule_link(Time::from_us(530), port, false);
        network.schedule_link(Time::from_us(800), port, true);
    }
}
