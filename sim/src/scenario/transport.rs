//! The transports of scenarios, and the settings that follow from the fabric.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::ScenarioError;
use crate::fabric::{FabricConfig, Tier};
use crate::time::Time;
use crate::topology::DATA_WIRE_BYTES;
use crate::transport::celeris::CelerisConfig;
use crate::transport::infiniband::InfinibandConfig;
use crate::transport::metaroce::MetaroceConfig;
use crate::transport::roce::{Framing, RoceConfig};
use crate::transport::uec::UecConfig;

/// What hosts speak.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// The core of this project, as it is.
    Metaroce(MetaroceConfig),
    /// RoCEv2: go-back-N or selective repeat, with DCQCN or without.
    #[serde(rename = "rocev2")]
    RoceV2(RoceConfig),
    /// InfiniBand reliable connections.
    Infiniband(InfinibandConfig),
    /// Ultra Ethernet.
    UltraEthernet(UecConfig),
    /// Best effort.
    Celeris(CelerisConfig),
}

/// The build of the core that runs: see [`crate::endpoint`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Build {
    Large,
    Wide,
    LongHaul,
}

/// Most queue pairs or contexts between two hosts.
const MOST_FLOWS: u64 = 65_536;

impl Transport {
    /// Its name in files and reports.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Metaroce(_) => "metaroce",
            Self::RoceV2(_) => "rocev2",
            Self::Infiniband(_) => "infiniband",
            Self::UltraEthernet(_) => "ultra-ethernet",
            Self::Celeris(_) => "celeris",
        }
    }

    /// Whether its settings are in their ranges.
    pub(super) fn check(&self, fabric: &FabricConfig) -> Result<(), ScenarioError> {
        match self {
            Self::Metaroce(config) => check_metaroce(config, fabric),
            // These hosts raise what is below its least.
            Self::RoceV2(config) => {
                let framing = &config.framing;
                let around = u64::from(framing.outside);
                in_ranges(&[
                    ("queue_pairs", config.queue_pairs.into(), 0, MOST_FLOWS),
                    ("framing.data", framing.data.into(), around, 65_535),
                    ("framing.ack", framing.ack.into(), around, 65_535),
                    ("framing.cnp", framing.cnp.into(), around, 65_535),
                ])
            }
            Self::Infiniband(config) => {
                in_ranges(&[("queue_pairs", config.queue_pairs.into(), 0, MOST_FLOWS)])
            }
            Self::UltraEthernet(config) => in_ranges(&[
                ("payload_bytes", config.payload_bytes.into(), 1, 65_535),
                ("contexts", config.contexts.into(), 1, MOST_FLOWS),
                ("entropies", config.entropies.into(), 1, 32_768),
                ("nscc.packet_bytes", config.nscc.packet_bytes, 1, 65_535),
                ("nscc.jump_gate", config.nscc.jump_gate.into(), 0, 31),
            ]),
            Self::Celeris(config) => {
                let describe = config.describe_after.ns();
                let mut ranges = vec![
                    ("describe_after", describe, 1_000, u64::MAX),
                    ("payload_bytes", config.payload_bytes.into(), 1, 65_535),
                    ("line_mbps", config.line_mbps, 1, u64::from(u32::MAX)),
                    ("queue_pairs", config.queue_pairs.into(), 1, MOST_FLOWS),
                ];
                if let Some(dcqcn) = &config.dcqcn {
                    ranges.extend([
                        (
                            "dcqcn.alpha_interval",
                            dcqcn.alpha_interval.ns(),
                            1_000,
                            u64::MAX,
                        ),
                        (
                            "dcqcn.increase_interval",
                            dcqcn.increase_interval.ns(),
                            1_000,
                            u64::MAX,
                        ),
                        (
                            "dcqcn.minimum_mbps",
                            dcqcn.minimum_mbps,
                            1,
                            u64::from(u32::MAX),
                        ),
                    ]);
                }
                in_ranges(&ranges)
            }
        }
    }
}

/// The build for as many paths and outstanding packets as asked for; a window is at most two products of bandwidth and delay.
pub(super) fn build(config: &MetaroceConfig, round_trip: Time) -> Build {
    let line = u64::from(config.mbps) * u64::from(config.planes);
    let packet = Time::to_send(u64::from(config.payload_bytes).max(1), line.max(1));
    let window = 2 * round_trip.ps() / packet.ps().max(1);
    let needed = if config.slots == 0 {
        window
    } else {
        config.slots.into()
    };
    match (config.paths, needed) {
        (..=64, ..=512) => Build::Large,
        (_, ..=1024) => Build::Wide,
        _ => Build::LongHaul,
    }
}

/// Whether settings of the core are in their ranges (`docs/spec.md`), and fit the fabric.
fn check_metaroce(config: &MetaroceConfig, fabric: &FabricConfig) -> Result<(), ScenarioError> {
    let planes = u64::from(fabric.planes);
    let ranges = [
        ("paths", u64::from(config.paths), 1, 128),
        ("planes", config.planes.into(), 1, planes),
        ("mbps", config.mbps.into(), 1, u32::MAX.into()),
        ("payload_bytes", config.payload_bytes.into(), 256, 9_000),
        ("ack_packets", config.ack_packets.into(), 1, 255),
        ("ack_blocks", config.ack_blocks.into(), 1, 255),
        ("slots", config.slots.into(), 0, 32_768),
    ];
    in_ranges(&ranges)
}

/// An error for the first value that is not in its range.
fn in_ranges(ranges: &[(&str, u64, u64, u64)]) -> Result<(), ScenarioError> {
    let outside = |&&(_, value, low, high): &&(&str, u64, u64, u64)| value < low || value > high;
    match ranges.iter().find(outside) {
        None => Ok(()),
        Some(&(key, value, low, high)) => {
            let range = if high == u64::MAX {
                format!("at least {low}")
            } else {
                format!("{low} to {high}")
            };
            Err(ScenarioError::settings(
                format!("transport.{key}"),
                format!("{value} does not do: {range} is expected"),
            ))
        }
    }
}

/// The names of the presets of a kind.
pub(super) fn presets(kind: &str) -> &'static [&'static str] {
    match kind {
        "rocev2" => &["dcqcn", "pause-only", "irn"],
        _ => &[],
    }
}

/// What a transport's settings are unless a file says otherwise, where that follows from the fabric or the preset.
pub(super) fn defaults(kind: &str, preset: Option<&str>, fabric: &FabricConfig) -> Value {
    let host = fabric.tiers[Tier::Host as usize].mbps;
    let round_trip = fabric.round_trip().unwrap_or(fabric.base_rtt);
    let value = match kind {
        "metaroce" => {
            let usual = MetaroceConfig::default();
            Ok(json!({
                "planes": fabric.planes,
                "mbps": host,
                "initial_rtt": usual.initial_rtt.max(round_trip),
            }))
        }
        "rocev2" => {
            let config = match preset {
                Some("pause-only") => RoceConfig::without_congestion_control(),
                Some("irn") => {
                    let full = 4096 + Framing::ROCE_V2.data + Framing::ROCE_V2.reth;
                    RoceConfig {
                        window_packets: Some(crate::transport::roce::bdp_packets(
                            host, round_trip, full,
                        )),
                        ..RoceConfig::irn()
                    }
                }
                _ => RoceConfig::default(),
            };
            serde_json::to_value(RoceConfig {
                line_mbps: host,
                ..config
            })
        }
        "infiniband" | "celeris" => Ok(json!({ "line_mbps": host })),
        "ultra-ethernet" => serde_json::to_value(UecConfig::new(
            host,
            round_trip,
            longest_queue(fabric),
            fabric.trim,
        )),
        _ => Ok(Value::Null),
    };
    value.unwrap_or(Value::Null)
}

/// What a queue may hold at most: its own limit, or what dynamic thresholds leave to one queue of a shared buffer.
fn longest_queue(fabric: &FabricConfig) -> u64 {
    let shared = fabric.buffer.map_or(u64::MAX, |buffer| {
        let alpha = u128::from(buffer.alpha_eighths);
        (u128::from(buffer.bytes) * alpha / (8 + alpha)) as u64
    });
    fabric.queue_bytes.min(shared)
}

/// Bytes of a full data packet with all that is around it, and its payload: the framing of the reference figures.
pub(super) const REFERENCE_FRAME: (u64, u64) = (DATA_WIRE_BYTES, 4096);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::SharedBuffer;

    #[test]
    fn timeouts_follow_the_queue_that_there_can_be() {
        let unlimited = FabricConfig {
            queue_bytes: u64::MAX,
            ..FabricConfig::default()
        };
        let shared = FabricConfig {
            buffer: Some(SharedBuffer {
                bytes: 2 << 20,
                alpha_eighths: 8,
            }),
            ..unlimited.clone()
        };
        let timeout =
            |fabric: &FabricConfig| UecConfig::timeout_for(longest_queue(fabric), 100_000);
        let drains = |bytes: u64| Time::from_us(15) + Time::to_send(6 * bytes, 100_000);
        assert_eq!(timeout(&FabricConfig::default()), drains(892_250));
        assert_eq!(timeout(&shared), drains(1 << 20));
        assert_eq!(timeout(&unlimited), Time::from_us(1_000_015));
    }
}
