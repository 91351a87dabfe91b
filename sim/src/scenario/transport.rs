//! The transports of scenarios, and the settings that follow from the fabric.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
}

/// The build for as many paths and outstanding packets as asked for; a window is at most two products of bandwidth and delay.
pub(super) fn build(config: &MetaroceConfig, round_trip: Time) -> Option<Build> {
    let line = u64::from(config.mbps) * u64::from(config.planes);
    let packet = Time::to_send(u64::from(config.payload_bytes).max(1), line.max(1));
    let window = 2 * round_trip.ps() / packet.ps().max(1);
    let needed = if config.slots == 0 {
        window
    } else {
        config.slots.into()
    };
    match (config.paths, needed) {
        (129.., _) | (_, 32_769..) if config.slots > 0 || config.paths > 128 => None,
        (..=64, ..=512) => Some(Build::Large),
        (_, ..=1024) => Some(Build::Wide),
        _ => Some(Build::LongHaul),
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
            fabric.queue_bytes,
            fabric.trim,
        )),
        _ => Ok(Value::Null),
    };
    value.unwrap_or(Value::Null)
}

/// Bytes of a full data packet with all that is around it, and its payload: the framing of the reference figures.
pub(super) const REFERENCE_FRAME: (u64, u64) = (DATA_WIRE_BYTES, 4096);
