//! RCCC, the congestion control at the receiver: senders ask for credit, and get it in turn, at the rate of the line.
//!
//! After the Ultra Ethernet specification 1.0, 3.6.14, and the pacer of the consortium's published simulator (htsim,
//! `UecPullPacer`). Credit is an absolute number of bytes since the beginning, so a grant that is lost is made good by
//! the next one; a sender says in every data packet up to where it would like to have credit (its target).

use serde::{Deserialize, Serialize};

use std::collections::VecDeque;

use crate::time::Time;

/// The constants of [`Granter`] and [`Credit`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RcccConfig {
    /// Rate of the receiver's line, Mbit/s.
    pub line_mbps: u64,
    /// Bytes of one grant: 4 full packets (htsim).
    pub grant_bytes: u64,
    /// Credit is given at this part of the line's rate, numerator and denominator: 99 % (htsim).
    pub rate: (u64, u64),
    /// The most credit that a sender holds, and with which it begins: 1.5 bandwidth-delay products (htsim).
    pub max_credit: u64,
    /// Time between grants that granted nothing, as bytes at the line's rate: 1024 (htsim).
    pub idle_bytes: u64,
}

/// What a sender may send.
#[derive(Clone, Debug)]
pub struct Credit {
    left: i64,
    granted: u64,
    max: u64,
    /// Nothing was heard of the receiver yet: what it holds are advances.
    speculating: bool,
}

impl Credit {
    /// The advances with which a sender begins.
    #[must_use]
    pub fn new(config: &RcccConfig) -> Self {
        Self {
            left: config.max_credit as i64,
            granted: 0,
            max: config.max_credit,
            speculating: true,
        }
    }

    /// Whether a packet may be sent: any credit is enough for one.
    #[must_use]
    pub fn allows(&self) -> bool {
        self.left > 0
    }

    /// A packet of `bytes` is sent.
    pub fn spend(&mut self, bytes: u64) {
        self.left -= bytes as i64;
    }

    /// The receiver is heard of: what is left of the advances is void.
    pub fn stop_speculating(&mut self) {
        if self.speculating {
            self.speculating = false;
            self.left = self.left.min(0);
        }
    }

    /// Credit was granted up to this number of bytes.
    pub fn grant(&mut self, granted: u64) {
        self.stop_speculating();
        if granted > self.granted {
            self.left = (self.left + (granted - self.granted) as i64).min(self.max as i64);
            self.granted = granted;
        }
    }

    /// Up to where credit is wanted: for `backlog` bytes of which at most `limit` are asked for at a time, a line that
    /// is shared with others considered (`sharers`, itself included).
    #[must_use]
    pub fn target(&self, backlog: u64, limit: u64, packet_bytes: u64, sharers: u64) -> u64 {
        let mut wanted = backlog.min(limit).min(self.max) as i64 - self.left;
        if self.speculating && backlog > 0 {
            wanted = wanted.max(packet_bytes as i64);
        }
        self.granted
            .saturating_add_signed(wanted / sharers.max(1) as i64)
    }
}

/// A sender as the receiver knows it.
#[derive(Clone, Copy, Debug, Default)]
struct Asker {
    target: u64,
    granted: u64,
    active: bool,
    idle: bool,
}

/// Who gets credit next, and when.
#[derive(Clone, Debug)]
pub struct Granter {
    config: RcccConfig,
    askers: Vec<Asker>,
    active: VecDeque<u32>,
    idle: VecDeque<u32>,
    next: Time,
}

impl Granter {
    /// No senders yet.
    #[must_use]
    pub fn new(config: RcccConfig) -> Self {
        Self {
            config,
            askers: Vec::new(),
            active: VecDeque::new(),
            idle: VecDeque::new(),
            next: Time::ZERO,
        }
    }

    /// A sender would like credit up to `target`; `anyway`: it has something to send again, whatever its target.
    pub fn ask(&mut self, sender: u32, target: u64, anyway: bool) {
        let index = sender as usize;
        if self.askers.len() <= index {
            self.askers.resize(index + 1, Asker::default());
        }
        let asker = &mut self.askers[index];
        let more = target > asker.target;
        asker.target = asker.target.max(target);
        if (more || anyway) && !asker.active {
            asker.active = true;
            self.active.push_back(sender);
        }
    }

    /// When the next grant is due, if there is anyone to get one.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        (!self.active.is_empty() || !self.idle.is_empty()).then_some(self.next)
    }

    /// The next grant, if it is due: the sender, and up to where its credit now reaches. Those whose demand is met
    /// get advances of up to the most that they may hold, after all others.
    pub fn grant(&mut self, now: Time) -> Option<(u32, u64)> {
        if now < self.next {
            return None;
        }
        let config = self.config;
        let (sender, bytes) = if let Some(sender) = self.active.pop_front() {
            let asker = &mut self.askers[sender as usize];
            let bytes = asker
                .target
                .saturating_sub(asker.granted)
                .min(config.grant_bytes);
            asker.granted += bytes;
            if asker.target > asker.granted {
                self.active.push_back(sender);
            } else {
                asker.active = false;
                if !asker.idle {
                    asker.idle = true;
                    self.idle.push_back(sender);
                }
            }
            (sender, bytes)
        } else {
            let sender = self.idle.pop_front()?;
            let asker = &mut self.askers[sender as usize];
            asker.granted += config.grant_bytes;
            let advance = asker.granted.saturating_sub(asker.target);
            if asker.target <= asker.granted && advance < config.max_credit {
                self.idle.push_back(sender);
            } else {
                asker.idle = false;
            }
            (sender, config.grant_bytes)
        };
        let paced = if bytes == 0 { config.idle_bytes } else { bytes };
        let (part, whole) = config.rate;
        let takes = Time::to_send(paced, config.line_mbps).ps() * whole / part;
        self.next = now + Time::from_ps(takes);
        Some((sender, self.askers[sender as usize].granted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: RcccConfig = RcccConfig {
        line_mbps: 100_000,
        grant_bytes: 16_856,
        rate: (99, 100),
        max_credit: 264_000,
        idle_bytes: 1024,
    };

    /// Lets the granter grant until `end`; what each sender got.
    fn run(granter: &mut Granter, senders: usize, end: Time) -> Vec<u64> {
        let mut granted = vec![0; senders];
        while let Some(at) = granter.deadline().filter(|&at| at <= end) {
            let (sender, upto) = granter.grant(at).unwrap();
            assert!(upto >= granted[sender as usize]);
            granted[sender as usize] = upto;
        }
        granted
    }

    #[test]
    fn credit_never_exceeds_the_line_and_is_shared_in_turn() {
        for senders in [1_u32, 2, 7, 100] {
            let mut granter = Granter::new(CONFIG);
            for sender in 0..senders {
                granter.ask(sender, 100_000_000, false);
            }
            for us in [10, 100, 1000] {
                let granted = run(&mut granter, senders as usize, Time::from_us(us));
                let line = us * 12_500;
                let sum: u64 = granted.iter().sum();
                assert!(sum <= line * 99 / 100 + CONFIG.grant_bytes, "{sum} in {us}");
            }
            let granted = run(&mut granter, senders as usize, Time::from_us(5_000));
            let (least, most) = (granted.iter().min(), granted.iter().max());
            if let (Some(least), Some(most)) = (least, most) {
                assert!(most - least <= CONFIG.grant_bytes);
            }
            assert!(granted.iter().sum::<u64>() > 5_000 * 12_500 * 98 / 100);
        }
    }

    #[test]
    fn a_met_demand_gives_way_and_gets_advances_of_one_window() {
        let mut granter = Granter::new(CONFIG);
        granter.ask(0, 20_000, false);
        granter.ask(1, 2_000_000, false);
        let granted = run(&mut granter, 2, Time::from_us(100));
        assert_eq!(granted[0], 20_000);
        let granted = run(&mut granter, 2, Time::from_ms(1));
        assert_eq!(granter.deadline(), None);
        for (granted, asked) in granted.iter().zip([20_000, 2_000_000]) {
            let advance = granted - asked;
            assert!((264_000..264_000 + 16_856).contains(&advance), "{advance}");
        }
    }

    #[test]
    fn who_has_to_send_again_gets_credit_though_its_demand_was_met() {
        let mut granter = Granter::new(CONFIG);
        granter.ask(0, 1_000, false);
        run(&mut granter, 1, Time::from_ms(1));
        assert_eq!(granter.deadline(), None);
        granter.ask(0, 1_000, false);
        assert_eq!(granter.deadline(), None);
        granter.ask(0, 1_000, true);
        assert!(granter.deadline().is_some());
    }

    #[test]
    fn a_lost_grant_is_made_good_and_advances_are_void_once_the_receiver_speaks() {
        let mut credit = Credit::new(&CONFIG);
        assert!(credit.allows());
        credit.spend(4_214);
        assert_eq!(credit.target(1_000_000, u64::MAX, 4_214, 1), 4_214);
        credit.stop_speculating();
        assert!(!credit.allows());
        credit.grant(20_000);
        credit.grant(10_000);
        credit.grant(60_000);
        assert_eq!(credit.left, 60_000);
        credit.spend(100_000);
        assert!(!credit.allows());
        credit.grant(100_001);
        assert_eq!(credit.left, 1);
        // It asks for what is missing to the most that it may hold.
        assert_eq!(
            credit.target(1_000_000, u64::MAX, 4_214, 1),
            100_001 + 264_000 - 1
        );
        assert_eq!(credit.target(500, u64::MAX, 4_214, 1), 100_001 + 499);
    }
}
