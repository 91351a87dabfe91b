//! What can go wrong on one direction of a link.
//!
//! Every fault draws from a random stream of its own. Loss, bursts, corruption, duplication and delay hit
//! every kind of packet alike; a blackhole swallows what it selects between two times.

use serde::{Deserialize, Serialize};

use crate::inspect::{PathUse, path_use};
use crate::packet::Packet;
use crate::random::{Probability, Purpose, Stream};
use crate::time::Time;

/// A channel with a good and a bad state (Gilbert-Elliott); the state may change at every packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// From good to bad.
    pub to_bad: Probability,
    /// From bad to good.
    pub to_good: Probability,
    /// Loss in the good state.
    pub loss_good: Probability,
    /// Loss in the bad state.
    pub loss_bad: Probability,
}

/// Some packets take longer, and so later ones overtake them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reordering {
    /// How many.
    pub probability: Probability,
    /// The extra delay is uniform from 0 to this.
    pub max_delay: Time,
}

/// Which packets a blackhole swallows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selector {
    /// All of them.
    All,
    /// Those of one UDP source port.
    SourcePort(u16),
    /// Those of the UDP source port that the data of this path used last when the blackhole began.
    DataPath(u8),
    /// Those of the UDP source port that the acknowledgments for this path used last when it began.
    AckPath(u8),
    /// Those whose source port hashes to one of `of` buckets: one of `of` equal routes.
    Bucket {
        /// The bucket.
        index: u16,
        /// How many there are.
        of: u16,
    },
}

/// Packets that vanish between two times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blackhole {
    /// Which.
    pub selector: Selector,
    /// From when.
    pub from: Time,
    /// Until when.
    pub until: Time,
    /// They are not swallowed but held, and arrive when it ends.
    pub holds: bool,
}

/// The settings of all faults of one direction of a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultConfig {
    /// Independent loss.
    pub loss: Probability,
    /// Bursts of loss.
    pub burst: Option<Burst>,
    /// Bits flipped.
    pub corruption: Probability,
    /// Packets delivered twice.
    pub duplication: Probability,
    /// Packets delayed.
    pub reordering: Option<Reordering>,
    /// Packets swallowed.
    pub blackholes: Vec<Blackhole>,
    /// From then on the link is sound (blackholes have times of their own).
    pub until: Time,
}

impl Default for FaultConfig {
    fn default() -> Self {
        Self {
            loss: Probability::ZERO,
            burst: None,
            corruption: Probability::ZERO,
            duplication: Probability::ZERO,
            reordering: None,
            blackholes: Vec::new(),
            until: Time::NEVER,
        }
    }
}

impl FaultConfig {
    /// Only independent loss.
    #[must_use]
    pub fn loss(p: Probability) -> Self {
        Self {
            loss: p,
            ..Self::default()
        }
    }

    /// Adds a blackhole.
    #[must_use]
    pub fn with_blackhole(mut self, selector: Selector, from: Time, until: Time) -> Self {
        self.blackholes.push(Blackhole {
            selector,
            from,
            until,
            holds: false,
        });
        self
    }
}

/// Why a packet did not get through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drop {
    /// No room in the queue.
    QueueFull,
    /// The link was down.
    LinkDown,
    /// Independent loss.
    Loss,
    /// Loss of the bursty channel.
    Burst,
    /// A blackhole.
    Blackhole,
    /// The switch knows no way to its host.
    NoRoute,
}

/// How many reasons there are.
pub const DROP_REASONS: usize = 6;

/// What the faults do to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is lost.
    Lost(Drop),
    /// It arrives.
    Through {
        /// Additional delay.
        extra: Time,
        /// Additional delay of a second copy, if there is one.
        copy: Option<Time>,
    },
}

/// The faults at work.
#[derive(Clone, Debug)]
pub struct Faults {
    config: FaultConfig,
    /// Source port each blackhole resolved to, once it began.
    resolved: Vec<Option<u16>>,
    data_ports: Vec<Option<u16>>,
    ack_ports: Vec<Option<u16>>,
    bad: bool,
    loss: Stream,
    burst: Stream,
    corruption: Stream,
    duplication: Stream,
    reordering: Stream,
}

impl Faults {
    /// The faults of the `index`-th port of a run.
    #[must_use]
    pub fn new(config: FaultConfig, seed: u64, index: u64) -> Self {
        let stream = |purpose| Stream::new(seed, purpose, index);
        Self {
            resolved: vec![None; config.blackholes.len()],
            config,
            data_ports: vec![None; 256],
            ack_ports: vec![None; 256],
            bad: false,
            loss: stream(Purpose::Loss),
            burst: stream(Purpose::Burst),
            corruption: stream(Purpose::Corruption),
            duplication: stream(Purpose::Duplication),
            reordering: stream(Purpose::Reordering),
        }
    }

    /// The settings in force.
    #[must_use]
    pub fn config(&self) -> &FaultConfig {
        &self.config
    }

    /// Other settings, with the same streams of chance.
    pub fn change(&mut self, config: FaultConfig) {
        self.resolved = vec![None; config.blackholes.len()];
        self.config = config;
    }

    /// Lets a packet pass, or not, and damages it as it may be.
    pub fn judge(&mut self, now: Time, packet: &mut Packet) -> Verdict {
        if !self.config.blackholes.is_empty() {
            match self.swallowed(now, packet) {
                Some(None) => return Verdict::Lost(Drop::Blackhole),
                Some(Some(extra)) => return Verdict::Through { extra, copy: None },
                None => {}
            }
        }
        if now >= self.config.until {
            return Verdict::Through {
                extra: Time::ZERO,
                copy: None,
            };
        }
        if !self.config.loss.is_zero() && self.loss.chance(self.config.loss) {
            return Verdict::Lost(Drop::Loss);
        }
        if let Some(burst) = self.config.burst {
            let turn = if self.bad {
                burst.to_good
            } else {
                burst.to_bad
            };
            if self.burst.chance(turn) {
                self.bad = !self.bad;
            }
            if self.burst.chance(if self.bad {
                burst.loss_bad
            } else {
                burst.loss_good
            }) {
                return Verdict::Lost(Drop::Burst);
            }
        }
        if !self.config.corruption.is_zero() && self.corruption.chance(self.config.corruption) {
            packet.corrupted = true;
            for _ in 0..self.corruption.between(1, 3) {
                let bit = self.corruption.below(packet.bytes.len() as u64 * 8);
                if let Some(byte) = packet.bytes.get_mut(bit as usize / 8) {
                    *byte ^= 1 << (bit % 8);
                }
            }
        }
        let mut copy = None;
        if !self.config.duplication.is_zero() && self.duplication.chance(self.config.duplication) {
            copy = Some(Time::from_ps(self.duplication.below(20_000_000)));
        }
        let mut extra = Time::ZERO;
        if let Some(reordering) = self.config.reordering
            && self.reordering.chance(reordering.probability)
        {
            extra = Time::from_ps(self.reordering.below(reordering.max_delay.ps() + 1));
        }
        Verdict::Through { extra, copy }
    }

    /// Whether a hole has the packet, and if it only holds it, for how long.
    fn swallowed(&mut self, now: Time, packet: &Packet) -> Option<Option<Time>> {
        let mut swallowed = None;
        for (hole, resolved) in self.config.blackholes.iter().zip(&mut self.resolved) {
            if now < hole.from || now >= hole.until {
                continue;
            }
            let hit = match hole.selector {
                Selector::All => true,
                Selector::SourcePort(port) => packet.source_port == port,
                Selector::Bucket { index, of } => bucket(packet.source_port, of) == index,
                Selector::DataPath(path) => {
                    *resolved = resolved.or(self.data_ports[usize::from(path)]);
                    *resolved == Some(packet.source_port)
                }
                Selector::AckPath(path) => {
                    *resolved = resolved.or(self.ack_ports[usize::from(path)]);
                    *resolved == Some(packet.source_port)
                }
            };
            if hit && swallowed != Some(None) {
                swallowed = Some(hole.holds.then(|| hole.until.since(now)));
            }
        }
        match path_use(&packet.bytes) {
            PathUse::Data(path) => self.data_ports[usize::from(path)] = Some(packet.source_port),
            PathUse::Acknowledgment(path) => {
                self.ack_ports[usize::from(path)] = Some(packet.source_port)
            }
            PathUse::None => {}
        }
        swallowed
    }
}

/// Which of `of` equal routes a source port takes.
#[must_use]
pub fn bucket(source_port: u16, of: u16) -> u16 {
    let hash = u64::from(source_port)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        >> 32;
    (hash % u64::from(of.max(1))) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(port: u16) -> Packet {
        Packet {
            bytes: vec![0; 64],
            source_port: port,
            ..Packet::default()
        }
    }

    fn count(config: FaultConfig, n: u32, is: impl Fn(Verdict) -> bool) -> usize {
        let mut faults = Faults::new(config, 5, 0);
        (0..n)
            .filter(|_| is(faults.judge(Time::ZERO, &mut packet(1))))
            .count()
    }

    #[test]
    fn loss_and_bursts_have_their_rates() {
        let lost = |v| matches!(v, Verdict::Lost(_));
        let plain = count(FaultConfig::loss(Probability::new(0.05)), 100_000, lost);
        assert!((4_700..5_300).contains(&plain), "{plain}");
        let burst = Burst {
            to_bad: Probability::new(0.01),
            to_good: Probability::new(0.1),
            loss_good: Probability::ZERO,
            loss_bad: Probability::new(0.5),
        };
        // Bad a share of 0.01 / 0.11 of the time, half of that is lost: 4.5 %.
        let bursty = count(
            FaultConfig {
                burst: Some(burst),
                ..FaultConfig::default()
            },
            200_000,
            lost,
        );
        assert!((8_000..10_200).contains(&bursty), "{bursty}");
    }

    #[test]
    fn adding_a_fault_does_not_shift_another() {
        let losses = |config| {
            let mut faults = Faults::new(config, 9, 4);
            (0..2000)
                .map(|_| {
                    matches!(
                        faults.judge(Time::ZERO, &mut packet(1)),
                        Verdict::Lost(Drop::Loss)
                    )
                })
                .collect::<Vec<_>>()
        };
        let alone = FaultConfig::loss(Probability::new(0.1));
        let more = FaultConfig {
            corruption: Probability::new(0.5),
            duplication: Probability::new(0.5),
            ..alone.clone()
        };
        assert_eq!(losses(alone), losses(more));
    }

    #[test]
    fn a_blackhole_takes_what_it_selects_while_it_lasts() {
        let config = FaultConfig::default().with_blackhole(
            Selector::SourcePort(7),
            Time::from_us(1),
            Time::from_us(2),
        );
        let mut faults = Faults::new(config, 1, 0);
        let mut lost = |us, port| {
            matches!(
                faults.judge(Time::from_us(us), &mut packet(port)),
                Verdict::Lost(_)
            )
        };
        assert_eq!(
            [lost(0, 7), lost(1, 7), lost(1, 8), lost(2, 7)],
            [false, true, false, false]
        );
        let all = count(
            FaultConfig::default().with_blackhole(Selector::All, Time::ZERO, Time::NEVER),
            10,
            |v| matches!(v, Verdict::Lost(Drop::Blackhole)),
        );
        assert_eq!(all, 10);
        let ports: Vec<u16> = (0..8000).filter(|&port| bucket(port, 8) == 3).collect();
        assert!((900..1100).contains(&ports.len()), "{}", ports.len());
    }

    #[test]
    fn corruption_flips_bits_and_says_so() {
        let config = FaultConfig {
            corruption: Probability::ONE,
            ..FaultConfig::default()
        };
        let mut faults = Faults::new(config, 1, 0);
        let damaged = (0..100)
            .filter(|_| {
                let mut p = packet(1);
                faults.judge(Time::ZERO, &mut p);
                assert!(p.corrupted);
                p.bytes.iter().any(|&b| b != 0)
            })
            .count();
        assert!(damaged > 90);
    }
}
