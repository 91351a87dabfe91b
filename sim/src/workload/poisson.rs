//! Flows that arrive at random: a Poisson process at a given load, between hosts drawn at random.

use serde::{Deserialize, Serialize};

use super::chance::waiting_time;
use super::error::{WorkloadError, require, require_hosts};
use super::program::{Action, Group, Program};
use super::sizes::Sizes;
use crate::random::{Purpose, Stream};
use crate::time::Time;

/// The configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Poisson {
    /// What all hosts send, in percent of all their lines; above 0.
    pub load_percent: u32,
    /// The line of a host, in Mbit/s, above 0.
    pub line_mbps: u64,
    /// How large flows are.
    pub sizes: Sizes,
    /// How long flows arrive.
    pub duration_ns: u64,
}

impl Default for Poisson {
    fn default() -> Self {
        Self {
            load_percent: 50,
            line_mbps: 100_000,
            sizes: Sizes::WebSearch,
            duration_ns: 1_000_000,
        }
    }
}

impl Poisson {
    /// The program for so many hosts.
    ///
    /// # Errors
    /// If there are fewer than two hosts, or no load.
    pub fn program(&self, hosts: u32, seed: u64) -> Result<Program, WorkloadError> {
        require_hosts(2, hosts)?;
        require(self.load_percent >= 1, "load_percent", 0, "at least 1")?;
        require(self.line_mbps >= 1, "line_mbps", 0, "at least 1")?;
        let sizes = self.sizes.sampler()?;
        // Bits a mean flow has, over bits that all hosts send in a picosecond.
        let rate = f64::from(hosts) * self.line_mbps as f64 * f64::from(self.load_percent) / 1e8;
        let mean_ps = sizes.mean() * 8.0 / rate;
        let mut stream = Stream::new(seed, Purpose::Traffic, 0);
        let mut program = Program::new(hosts);
        program.begin_group(Group {
            name: format!("flows at {} % load", self.load_percent),
            bytes: 0,
            bus_factor: (1, 1),
        });
        let end = Time::from_ns(self.duration_ns);
        let mut now = waiting_time(&mut stream, mean_ps);
        let mut number = 0;
        while now < end {
            let from = stream.below(u64::from(hosts)) as u32;
            let to = (from + 1 + stream.below(u64::from(hosts) - 1) as u32) % hosts;
            let action = Action::Transfer {
                from,
                to,
                bytes: sizes.draw(&mut stream),
                // A number of its own: flows do not wait for each other.
                flow: number,
            };
            program.add(action, now, &[])?;
            number += 1;
            now += waiting_time(&mut stream, mean_ps);
        }
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::check::bytes_by_host;

    #[test]
    fn the_load_is_what_was_asked_for_on_every_host() {
        let config = Poisson {
            load_percent: 60,
            sizes: Sizes::Uniform(1, 40_000),
            duration_ns: 50_000_000,
            ..Poisson::default()
        };
        let program = config.program(16, 3).unwrap();
        let (sent, received) = bytes_by_host(&program);
        // 60 % of 12.5 GB/s for 50 ms.
        let all = sent.iter().sum::<u64>() as f64 / (16.0 * 375e6);
        assert!((0.97..1.03).contains(&all), "{all}");
        for bytes in sent.iter().chain(&received) {
            let share = *bytes as f64 / 375e6;
            assert!((0.96..1.04).contains(&share), "{share}");
        }
        // As many arrivals in each tenth of the time: the process does not drift.
        let mut tenths = [0; 10];
        for task in program.tasks() {
            tenths[(task.not_before.ns() / 5_000_000) as usize] += 1;
        }
        let each = program.tasks().len() / 10;
        assert!(
            tenths
                .iter()
                .all(|&count: &usize| count.abs_diff(each) < each / 10),
            "{tenths:?}"
        );
        assert_eq!(config.program(16, 3), config.program(16, 3));
        assert_ne!(config.program(16, 3), config.program(16, 4));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Poisson::default().program(1, 0).is_err());
        assert!(
            Poisson {
                load_percent: 0,
                ..Poisson::default()
            }
            .program(2, 0)
            .is_err()
        );
        assert!(
            Poisson {
                sizes: Sizes::Fixed(0),
                ..Poisson::default()
            }
            .program(2, 0)
            .is_err()
        );
    }
}
