//! Data-parallel training: every rank computes, and the gradients are all-reduced in buckets while the backward pass goes on.
//!
//! S. Li et al., "PyTorch distributed: experiences on accelerating data parallel training", VLDB 2020: buckets of 25 MB by default, one
//! after the other on one communicator. A step starts at a rank when all its buckets are there.

use serde::{Deserialize, Serialize};

use super::chance::{exponential, unit};
use super::collective::schedule::part;
use super::collective::{AllReduce, Operation};
use super::error::{WorkloadError, require};
use super::placement::{Placement, ranks_or_all};
use super::program::{Action, After, Group, Program};
use crate::random::{Purpose, Stream};
use crate::time::Time;

/// By how much a rank is slower than the fastest in a step, drawn anew for each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stragglers {
    /// By nothing.
    #[default]
    None,
    /// Up to so many percent, all equally likely.
    Uniform(u32),
    /// So many percent in the mean, exponentially distributed.
    Exponential(u32),
    /// So many of 1,000 times (the first number) by so many percent (the second).
    Seldom(u32, u32),
}

/// The configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Training {
    /// Steps, at least 1.
    pub steps: u32,
    /// All gradients, at least 1.
    pub gradient_bytes: u64,
    /// The size of a bucket, at least 1.
    pub bucket_bytes: u64,
    /// The forward pass.
    pub forward_ns: u64,
    /// The backward pass; it yields the buckets evenly.
    pub backward_ns: u64,
    /// Who is slower.
    pub stragglers: Stragglers,
    /// How buckets are reduced.
    pub all_reduce: AllReduce,
    /// See [`super::collective::Collective::chunk_bytes`].
    pub chunk_bytes: u64,
    /// See [`super::collective::Collective::pipelined`].
    pub pipelined: bool,
    /// How many ranks take part, at least 2; without: all hosts.
    pub ranks: Option<u32>,
    /// Which hosts they are.
    pub placement: Placement,
}

impl Default for Training {
    fn default() -> Self {
        Self {
            steps: 3,
            gradient_bytes: 100 << 20,
            bucket_bytes: 25 << 20,
            forward_ns: 5_000_000,
            backward_ns: 10_000_000,
            stragglers: Stragglers::None,
            all_reduce: AllReduce::Ring,
            chunk_bytes: 256 << 10,
            pipelined: true,
            ranks: None,
            placement: Placement::InOrder,
        }
    }
}

impl Stragglers {
    /// How long a rank takes for what takes the fastest one `least`.
    fn stretch(self, least: Time, stream: &mut Stream) -> Time {
        let more = match self {
            Self::None => 0.0,
            Self::Uniform(percent) => unit(stream) * f64::from(percent),
            Self::Exponential(percent) => exponential(stream) * f64::from(percent),
            Self::Seldom(chance, percent) => {
                f64::from(u32::from(stream.one_in(u64::from(chance), 1000)) * percent)
            }
        };
        least + Time::from_ps((least.ps() as f64 * more / 100.0) as u64)
    }
}

impl Training {
    /// The program for so many hosts; each step is a group, of which computing is a part.
    ///
    /// # Errors
    /// If there are too few hosts, or a field is 0 that must not be.
    pub fn program(&self, hosts: u32, seed: u64) -> Result<Program, WorkloadError> {
        let ranks = ranks_or_all(self.ranks, 2, hosts)?;
        require(self.steps >= 1, "steps", 0, "at least 1")?;
        require(self.gradient_bytes >= 1, "gradient_bytes", 0, "at least 1")?;
        require(self.bucket_bytes >= 1, "bucket_bytes", 0, "at least 1")?;
        require(self.chunk_bytes >= 1, "chunk_bytes", 0, "at least 1")?;
        let host = self.placement.place(ranks, hosts, seed)?;
        let operation = Operation::AllReduce(self.all_reduce);
        let buckets = self.gradient_bytes.div_ceil(self.bucket_bytes);
        let mut stream = Stream::new(seed, Purpose::Traffic, 2);
        let mut program = Program::new(hosts);
        // By rank: what the next step waits for.
        let mut ready: Vec<Vec<After>> = vec![Vec::new(); host.len()];
        for step in 0..self.steps {
            program.begin_group(Group {
                name: format!("step {step}"),
                bytes: self.gradient_bytes,
                bus_factor: operation.bus_factor(ranks),
            });
            let pause = |program: &mut Program, rank: usize, span, after: &[After]| {
                let host = host[rank];
                program
                    .add(Action::Pause { host, span }, Time::ZERO, after)
                    .map(After::Done)
            };
            let mut computed = Vec::new();
            let mut backward = Vec::new();
            for (rank, ready) in ready.iter().enumerate() {
                let forward = Time::from_ns(self.forward_ns);
                let mut stretch = |span| self.stragglers.stretch(span, &mut stream);
                let forward = stretch(forward);
                backward.push(stretch(Time::from_ns(self.backward_ns)).ps());
                computed.push(pause(&mut program, rank, forward, ready)?);
            }
            let mut reduced: Vec<Option<After>> = vec![None; host.len()];
            for bucket in 0..buckets {
                let bytes = part(&(0..self.gradient_bytes), bucket, buckets);
                let mut gates = Vec::new();
                for (rank, computed) in computed.iter_mut().enumerate() {
                    let span = part(&(0..backward[rank]), bucket, buckets);
                    let span = Time::from_ps(span.end - span.start);
                    *computed = pause(&mut program, rank, span, &[*computed])?;
                    gates.push(core::iter::once(*computed).chain(reduced[rank]).collect());
                }
                let length = bytes.end - bytes.start;
                let schedule = operation.schedule(ranks, length, self.chunk_bytes, self.pipelined);
                let ends = schedule.add_with_ends(&mut program, &host, &gates, Time::ZERO)?;
                reduced = ends.into_iter().map(|end| Some(After::Done(end))).collect();
            }
            ready = reduced
                .into_iter()
                .map(|end| end.into_iter().collect())
                .collect();
        }
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::check::{bytes_by_host, makespan};

    #[test]
    fn steps_take_what_does_not_overlap() {
        let config = Training {
            gradient_bytes: 400,
            bucket_bytes: 100,
            chunk_bytes: 25,
            ..Training::default()
        };
        let program = config.program(4, 0).unwrap();
        let ms = |transfer| makespan(&program, |_| transfer).ns() as f64 / 1e6;
        // Three steps of 5 + 10 ms; communication of no time hides.
        assert!((ms(Time::ZERO) - 45.0).abs() < 1e-9);
        // Six steps of the ring at 0.1 ms hide behind the 2.5 ms until the next bucket, but for the last ones.
        assert!((ms(Time::from_us(100)) - 3.0 * 15.6).abs() < 1e-9);
        // At 1 ms they do not: the first bucket is there after 7.5 ms, then come four all-reduces of 6 ms.
        assert!((ms(Time::from_ms(1)) - 3.0 * (7.5 + 24.0)).abs() < 1e-9);
        let (sent, _) = bytes_by_host(&program);
        assert_eq!(sent, [3 * 600; 4]);
    }

    #[test]
    fn the_slowest_rank_rules() {
        let time = |stragglers| {
            let config = Training {
                steps: 50,
                gradient_bytes: 64,
                stragglers,
                ..Training::default()
            };
            let program = config.program(16, 5).unwrap();
            makespan(&program, |_| Time::ZERO).ns() as f64 / 50.0 / 15e6
        };
        assert!((time(Stragglers::None) - 1.0).abs() < 1e-9);
        // Both passes are drawn, so the sum of two: the greatest of sixteen is between the mean and the maximum.
        let uniform = time(Stragglers::Uniform(50));
        assert!((1.35..1.5).contains(&uniform), "{uniform}");
        let exponential = time(Stragglers::Exponential(10));
        assert!((1.2..1.4).contains(&exponential), "{exponential}");
        // One in a thousand, of 32 draws in a step: 3 % of steps are twice as long in one of the passes.
        let seldom = time(Stragglers::Seldom(1, 100));
        assert!((1.0..1.05).contains(&seldom), "{seldom}");
    }
}
