//! The settings of tiers as they are written: by name, and what goes for all of them.

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serializer};

use super::{Tier, TierConfig};
use crate::time::Time;

/// What is said of a tier; what is not comes from `all`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Said {
    mbps: Option<u64>,
    delay: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ByName {
    all: Said,
    host: Said,
    leaf: Said,
    core: Said,
    site: Said,
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<[TierConfig; 4], D::Error> {
    let ByName {
        all,
        host,
        leaf,
        core,
        site,
    } = ByName::deserialize(deserializer)?;
    let usual = TierConfig::default();
    Ok([host, leaf, core, site].map(|said| TierConfig {
        mbps: said.mbps.or(all.mbps).unwrap_or(usual.mbps),
        delay: said.delay.or(all.delay).or(usual.delay),
    }))
}

pub(super) fn serialize<S: Serializer>(
    tiers: &[TierConfig; 4],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(tiers.len()))?;
    for tier in Tier::ALL {
        map.serialize_entry(tier.name(), &tiers[tier as usize])?;
    }
    map.end()
}
