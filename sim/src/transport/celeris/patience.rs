//! How long a receiver waits for the rest of a message.
//!
//! The rule of OptiNIC (arXiv 2512.22743) and Celeris (arXiv 2510.16606): every node notes how long each step took and
//! how many bytes came, nodes exchange these, and the median time per byte, smoothed exponentially, gives the time that
//! the next step may take: where bytes come too late, few came in the time, and the next step may take longer. Here a
//! message is a step, the time it took ends with its last packet that came (or every loss would lengthen all deadlines), and the exchange is the notice with which a receiver tells the sender that a message
//! is over.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// The constants of [`Patience`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PatienceConfig {
    /// Part by which a message may take longer than the smoothed time. The model's own: 0.25.
    pub margin: f64,
    /// Time that is always granted besides. The model's own: 50 us, some loaded round trips.
    pub slack: Time,
    /// Weight of a new median. The model's own: 0.2.
    pub gain: f64,
    /// Samples of which one median is taken. The model's own: 8.
    pub samples: usize,
    /// Before anything was measured, bytes are taken to need this many times what they do if all peers send at once. The
    /// model's own: 4, as rates that DCQCN has cut come back slowly. (The papers warm up with collectives that do not
    /// count.)
    pub at_first: f64,
}

impl Default for PatienceConfig {
    fn default() -> Self {
        Self {
            margin: 0.25,
            slack: Time::from_us(50),
            gain: 0.2,
            samples: 8,
            at_first: 4.0,
        }
    }
}

/// What a host knows of how long bytes take.
#[derive(Clone, Debug)]
pub struct Patience {
    config: PatienceConfig,
    /// Picoseconds per byte.
    cost: f64,
    learned: bool,
    samples: Vec<f64>,
}

impl Patience {
    /// Before anything was measured, with `peers` hosts that may send at once, over a line of this rate.
    #[must_use]
    pub fn new(config: PatienceConfig, line_mbps: u64, peers: usize) -> Self {
        let byte = Time::to_send(1_000, line_mbps).ps() as f64 / 1_000.0;
        Self {
            config,
            cost: byte * peers.max(1) as f64 * config.at_first,
            learned: false,
            samples: Vec::new(),
        }
    }

    /// The time that a message of `bytes` may take, from its first packet on.
    #[must_use]
    pub fn for_message(&self, bytes: u64) -> Time {
        let expected = self.cost * bytes as f64 * (1.0 + self.config.margin);
        Time::from_ps(expected as u64) + self.config.slack
    }

    /// The smoothed time per byte, picoseconds.
    #[must_use]
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// A message took so many picoseconds per byte that came.
    pub fn sample(&mut self, cost: f64) {
        self.samples.push(cost);
        if self.samples.len() < self.config.samples.max(1) {
            return;
        }
        self.samples.sort_by(f64::total_cmp);
        let median = self.samples[self.samples.len() / 2];
        // The first median is the warm-up: it replaces what was only assumed.
        let gain = if self.learned { self.config.gain } else { 1.0 };
        self.cost += gain * (median - self.cost);
        self.learned = true;
        self.samples.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(patience: &mut Patience, cost: f64, rounds: usize) {
        for _ in 0..8 * rounds {
            patience.sample(cost);
        }
    }

    #[test]
    fn it_begins_patiently_and_learns_in_one_round() {
        let mut patience = Patience::new(PatienceConfig::default(), 100_000, 15);
        let at_first = patience.for_message(1_000_000);
        assert_eq!(at_first, Time::from_us(4 * 1_500 + 50));
        feed(&mut patience, 80.0, 1);
        assert_eq!(patience.for_message(1_000_000), Time::from_us(100 + 50));
    }

    #[test]
    fn it_follows_slower_and_faster_times_smoothly_and_ignores_outliers() {
        let mut patience = Patience::new(PatienceConfig::default(), 100_000, 1);
        feed(&mut patience, 100.0, 1);
        feed(&mut patience, 200.0, 1);
        assert!((patience.cost() - 120.0).abs() < 1e-9);
        feed(&mut patience, 200.0, 20);
        assert!((195.0..200.0).contains(&patience.cost()));
        feed(&mut patience, 100.0, 20);
        assert!((100.0..105.0).contains(&patience.cost()));
        for i in 0..80 {
            patience.sample(if i % 8 < 3 { 1e9 } else { 100.0 });
        }
        assert!((100.0..105.0).contains(&patience.cost()));
    }
}
