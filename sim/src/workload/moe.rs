//! Mixture of experts: in each layer every rank sends its tokens to the ranks of the experts chosen for them (dispatch), these
//! compute, and the results go back (combine). Experts are not equally popular, so neither are ranks.
//!
//! S. Rajbhandari et al., "DeepSpeed-MoE", ICML 2022. A token goes only once to a rank however many of its experts are there, as in DeepSeek-AI,
//! "DeepSeek-V3 technical report", 2024, whose published shape the defaults are (256 experts, 8 for each token, hidden size 7168,
//! dispatched in one byte per element and combined in two).

use serde::{Deserialize, Serialize};

use super::chance::{shuffle, unit};
use super::collective::all_to_all::all_to_all;
use super::error::{WorkloadError, require};
use super::placement::{Placement, ranks_or_all};
use super::program::{Action, After, Group, Program};
use crate::random::{Purpose, Stream};
use crate::time::Time;

/// The configuration.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Moe {
    /// Layers with experts, at least 1.
    pub layers: u32,
    /// Experts in a layer, at least 1; expert e is on rank e x ranks / experts.
    pub experts: u32,
    /// Experts for each token, 1 to all.
    pub experts_per_token: u32,
    /// Tokens that each rank has, at least 1.
    pub tokens: u32,
    /// What a token is when it is sent to an expert, at least 1.
    pub dispatch_bytes: u64,
    /// What a token is when it comes back, at least 1.
    pub combine_bytes: u64,
    /// The i-th most popular expert is drawn with a weight of 1/i to this power (Zipf's law): 0 is fair, 1 very skewed. Which expert
    /// is how popular is drawn for each layer.
    pub skew: f64,
    /// Computing before the experts (attention).
    pub dense_ns: u64,
    /// Computing at the rank of an expert, for each token that came.
    pub token_ns: u64,
    /// With how many peers a rank exchanges at a time; without: all at once.
    pub window: Option<u32>,
    /// How many ranks take part, at least 2; without: all hosts.
    pub ranks: Option<u32>,
    /// Which hosts they are.
    pub placement: Placement,
}

impl Default for Moe {
    fn default() -> Self {
        Self {
            layers: 2,
            experts: 256,
            experts_per_token: 8,
            tokens: 512,
            dispatch_bytes: 7168,
            combine_bytes: 2 * 7168,
            skew: 0.4,
            dense_ns: 500_000,
            token_ns: 200,
            window: None,
            ranks: None,
            placement: Placement::InOrder,
        }
    }
}

impl Moe {
    fn check(&self) -> Result<(), WorkloadError> {
        require(self.layers >= 1, "layers", 0, "at least 1")?;
        require(self.experts >= 1, "experts", 0, "at least 1")?;
        let chosen = self.experts_per_token;
        require(
            (1..=self.experts).contains(&chosen),
            "experts_per_token",
            chosen,
            "1 to the number of experts",
        )?;
        require(self.tokens >= 1, "tokens", 0, "at least 1")?;
        require(self.dispatch_bytes >= 1, "dispatch_bytes", 0, "at least 1")?;
        require(self.combine_bytes >= 1, "combine_bytes", 0, "at least 1")?;
        require(
            (0.0..=4.0).contains(&self.skew),
            "skew",
            self.skew,
            "0 to 4",
        )?;
        require(self.window != Some(0), "window", 0, "at least 1")
    }

    /// The program for so many hosts; each layer is a group.
    ///
    /// # Errors
    /// If there are too few hosts, or a field is out of its range.
    pub fn program(&self, hosts: u32, seed: u64) -> Result<Program, WorkloadError> {
        let ranks = ranks_or_all(self.ranks, 2, hosts)?;
        self.check()?;
        let host = self.placement.place(ranks, hosts, seed)?;
        let mut stream = Stream::new(seed, Purpose::Traffic, 3);
        let mut program = Program::new(hosts);
        let mut ready: Vec<Vec<After>> = vec![Vec::new(); host.len()];
        for layer in 0..self.layers {
            let tokens = self.route(ranks, &mut stream);
            program.begin_group(Group {
                name: format!("layer {layer}"),
                bytes: 0,
                bus_factor: (1, 1),
            });
            let between = |from: u32, to: u32| tokens[from as usize][to as usize];
            let pauses =
                |program: &mut Program, ready: &mut [Vec<After>], ns: &dyn Fn(u32) -> u64| {
                    for (rank, ready) in (0..).zip(ready) {
                        let compute = Action::Pause {
                            host: host[rank as usize],
                            span: Time::from_ns(ns(rank)),
                        };
                        *ready = vec![After::Done(program.add(compute, Time::ZERO, ready)?)];
                    }
                    Ok::<_, WorkloadError>(())
                };
            let exchange = |program: &mut Program,
                            ready: &mut Vec<Vec<After>>,
                            bytes: &dyn Fn(u32, u32) -> u64| {
                let schedule = all_to_all(ranks, self.window, |from, to| 0..bytes(from, to));
                let ends = schedule.add_with_ends(program, &host, ready, Time::ZERO)?;
                *ready = ends.into_iter().map(|end| vec![After::Done(end)]).collect();
                Ok::<_, WorkloadError>(())
            };
            pauses(&mut program, &mut ready, &|_| self.dense_ns)?;
            exchange(&mut program, &mut ready, &|from, to| {
                between(from, to).saturating_mul(self.dispatch_bytes)
            })?;
            pauses(&mut program, &mut ready, &|rank| {
                let tokens: u64 = (0..ranks).map(|from| between(from, rank)).sum();
                tokens.saturating_mul(self.token_ns)
            })?;
            exchange(&mut program, &mut ready, &|from, to| {
                between(to, from).saturating_mul(self.combine_bytes)
            })?;
        }
        Ok(program)
    }

    /// How many of the tokens of a rank go to each rank.
    fn route(&self, ranks: u32, stream: &mut Stream) -> Vec<Vec<u64>> {
        let experts = self.experts as usize;
        let mut weights: Vec<f64> = (1..=self.experts)
            .map(|place| 1.0 / libm::pow(f64::from(place), self.skew))
            .collect();
        shuffle(stream, &mut weights);
        let mut below = 0.0;
        let sums: Vec<f64> = weights
            .iter()
            .map(|weight| {
                below += weight;
                below
            })
            .collect();
        let mut chosen = vec![u64::MAX; experts];
        let mut sent = vec![u64::MAX; ranks as usize];
        let mut counts = vec![vec![0; ranks as usize]; ranks as usize];
        for token in 0..u64::from(ranks) * u64::from(self.tokens) {
            let from = (token / u64::from(self.tokens)) as usize;
            let mut missing = self.experts_per_token;
            while missing > 0 {
                let at = unit(stream) * below;
                // Rounding may put the last sum just below `at`.
                let expert = sums.partition_point(|&sum| sum < at).min(experts - 1);
                if chosen[expert] == token {
                    continue;
                }
                chosen[expert] = token;
                missing -= 1;
                let to = (expert as u64 * u64::from(ranks) / experts as u64) as usize;
                if sent[to] != token {
                    sent[to] = token;
                    counts[from][to] += 1;
                }
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::check::{bytes_by_host, makespan};

    #[test]
    fn what_is_dispatched_comes_back() {
        let config = Moe {
            tokens: 64,
            ..Moe::default()
        };
        let program = config.program(8, 1).unwrap();
        let mut stream = Stream::new(1, Purpose::Traffic, 3);
        let layers = [config.route(8, &mut stream), config.route(8, &mut stream)];
        for from in 0..8 {
            for to in 0..8 {
                let there = layers.iter().map(|layer| layer[from][to]).sum::<u64>();
                let back = layers.iter().map(|layer| layer[to][from]).sum::<u64>();
                let bytes: u64 = program
                    .tasks()
                    .iter()
                    .filter_map(|task| match task.action {
                        Action::Transfer {
                            from: a,
                            to: b,
                            bytes,
                            ..
                        } => ((a, b) == (from as u32, to as u32)).then_some(bytes),
                        Action::Pause { .. } => None,
                    })
                    .sum();
                let expected = if from == to {
                    0
                } else {
                    7168 * (there + 2 * back)
                };
                assert_eq!(bytes, expected);
            }
        }
        let (sent, received) = bytes_by_host(&program);
        let (out, back): (u64, u64) = (sent.iter().sum(), received.iter().sum());
        assert_eq!(out, back);
        assert_eq!(out % (3 * 7168), 0);
        // Of 8 ranks a token reaches 1 - (7/8)^8 or so, and what goes to its own rank needs no network.
        let routed = out / (3 * 7168);
        let expected = 2.0 * 8.0 * 64.0 * 7.0 * (1.0 - 0.3436);
        assert!(
            (routed as f64 / expected - 1.0).abs() < 0.05,
            "{routed} {expected}"
        );
    }

    #[test]
    fn skew_loads_some_ranks_more() {
        let imbalance = |skew| {
            let config = Moe {
                skew,
                layers: 1,
                experts: 16,
                experts_per_token: 1,
                tokens: 8192,
                ..Moe::default()
            };
            let counts = config.route(16, &mut Stream::new(3, Purpose::Traffic, 3));
            assert!(counts.iter().all(|row| row.iter().sum::<u64>() == 8192));
            let load = |to: usize| counts.iter().map(|row| row[to]).sum::<u64>();
            (0..16).map(load).max().unwrap() as f64 / 8192.0
        };
        assert!(imbalance(0.0) < 1.04);
        // The first of 16 by Zipf's law has 1/(1 + 1/2 + ... + 1/16) = 0.296 of all.
        let skewed = imbalance(1.0);
        assert!((skewed / (0.2958 * 16.0) - 1.0).abs() < 0.01, "{skewed}");
    }

    #[test]
    fn a_layer_follows_the_last() {
        let config = Moe {
            layers: 3,
            experts: 4,
            experts_per_token: 4,
            tokens: 10,
            ..Moe::default()
        };
        let program = config.program(4, 0).unwrap();
        // All tokens go to all ranks: 500 us, then 40 tokens of 200 ns; and two exchanges.
        assert_eq!(
            makespan(&program, |_| Time::from_us(1)),
            Time::from_us(3 * (500 + 8 + 2))
        );
        let windowed = Moe {
            window: Some(1),
            ..config
        };
        let program = windowed.program(4, 0).unwrap();
        assert_eq!(
            makespan(&program, |_| Time::from_us(1)),
            Time::from_us(3 * (500 + 8 + 6))
        );
        assert!(
            Moe {
                experts_per_token: 257,
                ..Moe::default()
            }
            .program(4, 0)
            .is_err()
        );
        assert!(
            Moe {
                skew: f64::NAN,
                ..Moe::default()
            }
            .program(4, 0)
            .is_err()
        );
    }
}
