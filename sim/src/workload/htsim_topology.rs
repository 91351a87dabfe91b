//! Topology files of htsim: fat trees of two or three tiers.
//!
//! The format is that of `sim/datacenter/fat_tree_topology.cpp` (Ultra Ethernet's htsim and csg-htsim; the files end in `.topo`):
//! `Nodes`, `Tiers` and `Podsize`, then for each tier, from that of the hosts, `Tier n` and what its switches are. Words may
//! be in capitals or not. Of tier n, "down" are the links to the tier below (hosts below tier 0).

use super::text::{Line, ParseError, Problem, Word, lines};

/// A tier of switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TopologyTier {
    /// The speed of each link down, in Mbit/s.
    pub downlink_mbps: u64,
    /// Links down of each switch.
    pub radix_down: u32,
    /// Links up of each switch; 0 in the topmost tier.
    pub radix_up: u32,
    /// The queue of a link down, if the file says so.
    pub queue_down_bytes: Option<u64>,
    /// The queue of a link up, if the file says so.
    pub queue_up_bytes: Option<u64>,
    /// How much more capacity there is down than up.
    pub oversubscribed: u32,
    /// How many parallel links go down to each switch.
    pub bundle: u32,
    /// The time in a switch.
    pub switch_latency_ns: u64,
    /// The time on a link down, and back up.
    pub downlink_latency_ns: u64,
}

/// A topology.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HtsimTopology {
    /// How many hosts there are.
    pub nodes: u32,
    /// How many of them are in a pod (all, in two tiers).
    pub pod_size: u32,
    /// From that of the hosts upwards: two or three.
    pub tiers: Vec<TopologyTier>,
}

/// What can be said of a tier, in the order of [`Seen`].
const ATTRIBUTES: [&str; 9] = [
    "downlink_speed_gbps",
    "radix_down",
    "radix_up",
    "queue_down",
    "queue_up",
    "oversubscribed",
    "bundle",
    "switch_latency_ns",
    "downlink_latency_ns",
];

/// What was said of a tier.
type Seen<'a> = [Option<(u64, Word<'a>)>; ATTRIBUTES.len()];

impl HtsimTopology {
    /// Reads a file.
    ///
    /// # Errors
    /// If it does not keep to the format, or its numbers do not fit each other.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut header: [Option<(u64, Word<'_>)>; 3] = [None; 3];
        let mut tiers: Vec<Option<(Word<'_>, Seen<'_>)>> = vec![None; 3];
        let mut current = None;
        let mut end = Word {
            text: "",
            line: 1,
            column: 1,
        };
        for mut line in lines(text) {
            let word = line.take();
            end.line = word.line;
            let name = word.text.to_lowercase();
            let value = line.take();
            if name == "tier" {
                let index = value.number::<usize>()?;
                let range = || value.error(Problem::Range(value.text.to_string()));
                let tier = tiers.get_mut(index).ok_or_else(range)?;
                if tier.replace((word, [None; ATTRIBUTES.len()])).is_some() {
                    return Err(word.error(Problem::Twice(format!("Tier {index}"))));
                }
                current = Some(index);
                finish(&line)?;
                continue;
            }
            let known = |names: &[&str]| names.iter().position(|&known| known == name);
            let place = match current.and_then(|index: usize| tiers[index].as_mut()) {
                None => known(&["nodes", "tiers", "podsize"]).map(|place| &mut header[place]),
                Some((_, seen)) => known(&ATTRIBUTES).map(|place| &mut seen[place]),
            };
            let place = place.ok_or_else(|| word.error(Problem::Unknown(word.text.to_string())))?;
            if place.replace((value.number()?, value)).is_some() {
                return Err(word.error(Problem::Twice(word.text.to_string())));
            }
            finish(&line)?;
        }
        let [nodes, count, pod_size] = header;
        let missing = |what| end.error(Problem::Missing(what));
        let (count, at) = count.ok_or_else(|| missing("`Tiers`"))?;
        if !(2..=3).contains(&count) {
            return Err(at.expected("2 or 3 tiers"));
        }
        let nodes = positive(nodes.ok_or_else(|| missing("`Nodes`"))?)?;
        let pod_size = positive(pod_size.ok_or_else(|| missing("`Podsize`"))?)?;
        let found = tiers.iter().flatten().count() as u64;
        if found != count || tiers[count as usize - 1].is_none() {
            let what = "tiers";
            return Err(at.error(Problem::Count {
                what,
                said: count,
                found,
            }));
        }
        let tiers: Vec<_> = (1..)
            .zip(tiers.into_iter().flatten())
            .map(|(number, (word, seen))| tier(&word, &seen, number == count))
            .collect::<Result<_, _>>()?;
        let topology = Self {
            nodes,
            pod_size,
            tiers,
        };
        topology.switches().map_err(|why| end.error(why))?;
        Ok(topology)
    }

    /// How many switches each tier has.
    ///
    /// # Errors
    /// If the numbers do not fit each other.
    pub fn switches(&self) -> Result<Vec<u32>, Problem> {
        let divide = |total: u64, what: &str, by: u64, each: &str| {
            if by > 0 && total.is_multiple_of(by) {
                return Ok(total / by);
            }
            Err(Problem::Mismatch(format!(
                "{total} {what} are no multiple of {by} {each}"
            )))
        };
        let pod = u64::from(self.pod_size);
        divide(u64::from(self.nodes), "nodes", pod, "in a pod")?;
        divide(
            pod,
            "nodes in a pod",
            u64::from(self.tiers[0].radix_down),
            "at a switch of tier 0",
        )?;
        let mut below = u64::from(self.nodes);
        let mut counts = Vec::new();
        for (number, tier) in self.tiers.iter().enumerate() {
            let ports = format!("ports down of a switch of tier {number}");
            let count = divide(below, "links", u64::from(tier.radix_down), &ports)?;
            divide(
                u64::from(tier.radix_down),
                &ports,
                u64::from(tier.bundle),
                "in a bundle",
            )?;
            counts.push(count as u32);
            below = count * u64::from(tier.radix_up);
            let Some(above) = self.tiers.get(number + 1) else {
                break;
            };
            // Speeds in whole Gbit/s below 2^32: the products fit.
            let down = u64::from(tier.radix_down) * (tier.downlink_mbps / 1000);
            let up = u64::from(tier.radix_up) * (above.downlink_mbps / 1000);
            if down != up * u64::from(tier.oversubscribed) {
                let ratio = tier.oversubscribed;
                return Err(Problem::Mismatch(format!(
                    "a switch of tier {number} has {down} Gbit/s down and {up} up, which is not {ratio}:1"
                )));
            }
        }
        Ok(counts)
    }
}

fn finish(line: &Line<'_>) -> Result<(), ParseError> {
    // A comment may follow.
    if line.peek().text.starts_with('#') {
        return Ok(());
    }
    line.finish()
}

fn positive((value, word): (u64, Word<'_>)) -> Result<u32, ParseError> {
    match u32::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        _ => Err(word.error(Problem::Range(word.text.to_string()))),
    }
}

fn tier(word: &Word<'_>, seen: &Seen<'_>, topmost: bool) -> Result<TopologyTier, ParseError> {
    let [
        speed,
        radix_down,
        radix_up,
        queue_down,
        queue_up,
        oversubscribed,
        bundle,
        inside,
        link,
    ] = *seen;
    let number =
        |value: Option<_>, what| positive(value.ok_or_else(|| word.error(Problem::Missing(what)))?);
    let or_one = |value: Option<_>| value.map_or(Ok(1), positive);
    let value = |value: Option<(u64, Word<'_>)>| value.map(|(value, _)| value);
    if topmost && let Some((_, at)) = radix_up.or(queue_up) {
        return Err(at.error(Problem::Mismatch(String::from(
            "nothing is above this tier",
        ))));
    }
    Ok(TopologyTier {
        downlink_mbps: u64::from(number(speed, "`Downlink_speed_Gbps`")?) * 1000,
        radix_down: number(radix_down, "`Radix_Down`")?,
        radix_up: if topmost {
            0
        } else {
            number(radix_up, "`Radix_Up`")?
        },
        queue_down_bytes: value(queue_down),
        queue_up_bytes: value(queue_up),
        oversubscribed: or_one(oversubscribed)?,
        bundle: or_one(bundle)?,
        switch_latency_ns: value(inside).unwrap_or(0),
        downlink_latency_ns: u64::from(number(link, "`Downlink_Latency_ns`")?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `topologies/fat_tree_128_4os.topo` of spcl/HTSIM.
    const PUBLISHED: &str = "# Test 3-tier FatTree\n\
        Nodes 128\nTiers 3\nPodsize 16\n\n\
        Tier 0\nOversubscribed 1\nDownlink_speed_Gbps 400\nRadix_Down 4\nRadix_Up 4\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 0\n\n\
        Tier 1\nOversubscribed 4\nDownlink_speed_Gbps 400\nRadix_Down 4\nRadix_Up 1\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 0\nBundle 1\n\n\
        Tier 2\nDownlink_speed_Gbps 400\nRadix_Down 8\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 0\nBundle 1";

    #[test]
    fn a_published_file_is_read() {
        let topology = HtsimTopology::parse(PUBLISHED).unwrap();
        assert_eq!(
            (topology.nodes, topology.pod_size, topology.tiers.len()),
            (128, 16, 3)
        );
        assert_eq!(
            topology.tiers[1],
            TopologyTier {
                downlink_mbps: 400_000,
                radix_down: 4,
                radix_up: 1,
                queue_down_bytes: None,
                queue_up_bytes: None,
                oversubscribed: 4,
                bundle: 1,
                switch_latency_ns: 0,
                downlink_latency_ns: 1000,
            }
        );
        // 8 pods of 4 and 4, and 32 links up to 4 switches of 8 ports.
        assert_eq!(topology.switches(), Ok(vec![32, 32, 4]));
        let leaf_spine = "nodes 8192\ntiers 2\npodsize 8192 # all\ntier 0\ndownlink_speed_gbps 100\nradix_down 64\nradix_up 16\n\
            queue_up 1000\ndownlink_latency_ns 1000\noversubscribed 4\ntier 1\ndownlink_speed_gbps 100\nradix_down 128\ndownlink_latency_ns 1000\n";
        let topology = HtsimTopology::parse(leaf_spine).unwrap();
        assert_eq!(topology.switches(), Ok(vec![128, 16]));
        assert_eq!(topology.tiers[0].queue_up_bytes, Some(1000));
    }

    #[test]
    fn errors_name_the_place() {
        for (from, to, message) in [
            (
                "Podsize 16",
                "Podsize x",
                "line 4, column 9: a number expected, not `x`",
            ),
            (
                "Podsize 16",
                "Podsise 16",
                "line 4, column 1: `Podsise` is not known here",
            ),
            (
                "Tiers 3",
                "Tiers 4",
                "line 3, column 7: 2 or 3 tiers expected, not `4`",
            ),
            (
                "Tiers 3",
                "Tiers 2",
                "line 3, column 7: 2 tiers announced, 3 found",
            ),
            ("Nodes 128\n", "", "line 27, column 1: `Nodes` is missing"),
            ("Tier 2", "Tier 3", "line 23, column 6: `3` is out of range"),
            (
                "Tier 2",
                "Tier 1",
                "line 23, column 1: `Tier 1` is there twice",
            ),
            (
                "Radix_Down 8",
                "Radix_Down 8 8",
                "line 25, column 14: `8` is not known here",
            ),
            (
                "Radix_Down 8",
                "Radix_Up 8",
                "line 25, column 10: nothing is above this tier",
            ),
            (
                "Radix_Down 8\n",
                "",
                "line 23, column 1: `Radix_Down` is missing",
            ),
            (
                "Radix_Down 8",
                "Radix_Down 7",
                "line 28, column 1: 32 links are no multiple of 7 ports down of a switch of tier 2",
            ),
            (
                "Oversubscribed 4",
                "Oversubscribed 2",
                "line 28, column 1: a switch of tier 1 has 1600 Gbit/s down and 400 up, which is not 2:1",
            ),
            (
                "Bundle 1\n\n",
                "Bundle 3\n\n",
                "line 28, column 1: 4 ports down of a switch of tier 1 are no multiple of 3 in a bundle",
            ),
        ] {
            let text = PUBLISHED.replacen(from, to, 1);
            assert_eq!(
                HtsimTopology::parse(&text).unwrap_err().to_string(),
                message,
                "{to}"
            );
        }
    }
}
