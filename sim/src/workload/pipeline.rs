//! Pipeline parallelism: a model's layers are spread over stages, microbatches go through them forwards and their gradients
//! back, in the order one-forward-one-backward.
//!
//! D. Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM", SC 2021, section 2.2: a stage
//! first does as many forward passes as there are stages behind it, then one forward and one backward pass in turn, then the
//! backward passes that are left. Its idle share is (p-1)/m of the ideal time for p stages and m microbatches.

use serde::{Deserialize, Serialize};

use super::error::{WorkloadError, require, require_hosts};
use super::placement::Placement;
use super::program::{Action, After, Group, Program, TaskId};
use crate::packet::HostId;
use crate::time::Time;

/// The configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pipeline {
    /// Stages of a pipeline, at least 2; without: all hosts.
    pub stages: Option<u32>,
    /// Pipelines side by side, at least 1; stage s of pipeline d is rank d x stages + s.
    pub pipelines: u32,
    /// Microbatches in a step, at least 1.
    pub microbatches: u32,
    /// Steps, each of which a stage begins when it has ended the last; at least 1.
    pub steps: u32,
    /// What a stage hands to the next for a microbatch, and gets back as gradient; at least 1.
    pub activation_bytes: u64,
    /// The forward pass of a microbatch in a stage.
    pub forward_ns: u64,
    /// The backward pass.
    pub backward_ns: u64,
    /// Which hosts play.
    pub placement: Placement,
}

impl Default for Pipeline {
    fn default() -> Self {
        Self {
            stages: None,
            pipelines: 1,
            microbatches: 8,
            steps: 1,
            activation_bytes: 16 << 20,
            forward_ns: 1_000_000,
            backward_ns: 2_000_000,
            placement: Placement::InOrder,
        }
    }
}

/// A pass of a microbatch through a stage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pass {
    forward: bool,
    microbatch: u32,
}

/// What a stage does in a step, in order.
fn passes(stage: u32, stages: u32, microbatches: u32) -> Vec<Pass> {
    let pass = |forward| {
        move |microbatch| Pass {
            forward,
            microbatch,
        }
    };
    let ahead = (stages - 1 - stage).min(microbatches);
    let mut order: Vec<Pass> = (0..ahead).map(pass(true)).collect();
    for microbatch in ahead..microbatches {
        order.push(pass(true)(microbatch));
        order.push(pass(false)(microbatch - ahead));
    }
    order.extend((microbatches - ahead..microbatches).map(pass(false)));
    order
}

impl Pipeline {
    /// The program for so many hosts; each step is a group.
    ///
    /// # Errors
    /// If there are too few hosts, or a field is 0 that must not be.
    pub fn program(&self, hosts: u32, seed: u64) -> Result<Program, WorkloadError> {
        require(self.pipelines >= 1, "pipelines", 0, "at least 1")?;
        require(self.microbatches >= 1, "microbatches", 0, "at least 1")?;
        require(self.steps >= 1, "steps", 0, "at least 1")?;
        let stages = self.stages.unwrap_or(hosts / self.pipelines);
        require(stages >= 2, "stages", stages, "at least 2")?;
        let ranks = u64::from(stages) * u64::from(self.pipelines);
        require_hosts(ranks, hosts)?;
        let host = self.placement.place(ranks as u32, hosts, seed)?;
        let mut program = Program::new(hosts);
        let mut last: Vec<Option<TaskId>> = vec![None; host.len()];
        for step in 0..self.steps {
            program.begin_group(Group {
                name: format!("step {step}"),
                bytes: 0,
                bus_factor: (1, 1),
            });
            let pipelines = host.chunks(stages as usize);
            for (hosts, last) in pipelines.zip(last.chunks_mut(stages as usize)) {
                self.step(&mut program, hosts, last)?;
            }
        }
        Ok(program)
    }

    /// One step of one pipeline; `last` is what each stage did last.
    fn step(
        &self,
        program: &mut Program,
        hosts: &[HostId],
        last: &mut [Option<TaskId>],
    ) -> Result<(), WorkloadError> {
        let stages = hosts.len();
        let mut plans: Vec<_> = (0..stages as u32)
            .map(|stage| {
                passes(stage, stages as u32, self.microbatches)
                    .into_iter()
                    .peekable()
            })
            .collect();
        let none = vec![None; self.microbatches as usize];
        // By stage and microbatch: the transfer that brings the activation, and the gradient.
        let mut activation: Vec<Vec<Option<TaskId>>> = vec![none.clone(); stages];
        let mut gradient = vec![none; stages];
        // Stages take turns to do what they can, until nobody has anything left: the order never blocks.
        while plans.iter_mut().any(|plan| plan.peek().is_some()) {
            for stage in 0..stages {
                while let Some(&Pass {
                    forward,
                    microbatch,
                }) = plans[stage].peek()
                {
                    let index = microbatch as usize;
                    let (brings, first) = if forward {
                        (activation[stage][index], stage == 0)
                    } else {
                        (gradient[stage][index], stage == stages - 1)
                    };
                    if brings.is_none() && !first {
                        break;
                    }
                    plans[stage].next();
                    let after: Vec<After> = [last[stage], brings]
                        .into_iter()
                        .flatten()
                        .map(After::Done)
                        .collect();
                    let ns = if forward {
                        self.forward_ns
                    } else {
                        self.backward_ns
                    };
                    let compute = Action::Pause {
                        host: hosts[stage],
                        span: Time::from_ns(ns),
                    };
                    let done = program.add(compute, Time::ZERO, &after)?;
                    last[stage] = Some(done);
                    let next = if forward {
                        Some(stage + 1)
                    } else {
                        stage.checked_sub(1)
                    };
                    let Some(next) = next.filter(|&next| next < stages) else {
                        continue;
                    };
                    let send = Action::Transfer {
                        from: hosts[stage],
                        to: hosts[next],
                        bytes: self.activation_bytes,
                        flow: 0,
                    };
                    let sent = program.add(send, Time::ZERO, &[After::Done(done)])?;
                    let there = if forward {
                        &mut activation
                    } else {
                        &mut gradient
                    };
                    there[next][index] = Some(sent);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::check::{bytes_by_host, makespan};

    #[test]
    fn the_bubble_is_as_published() {
        for (p, m) in [(2, 1), (4, 2), (4, 4), (8, 32), (5, 7)] {
            let config = Pipeline {
                microbatches: m,
                ..Pipeline::default()
            };
            let program = config.program(p, 0).unwrap();
            // With transfers of no time: (m + p - 1) times a forward and a backward pass.
            let time = makespan(&program, |_| Time::ZERO);
            assert_eq!(time, Time::from_ms(u64::from(m + p - 1) * 3), "{p} {m}");
            let (sent, _) = bytes_by_host(&program);
            let once = u64::from(m) * config.activation_bytes;
            let ends = if p == 2 {
                vec![once; 2]
            } else {
                vec![once, 2 * once]
            };
            assert_eq!(sent[..2], ends);
        }
    }

    #[test]
    fn a_stage_holds_no_more_activations_than_stages_follow() {
        for stage in 0..4 {
            let mut held = 0;
            let mut most = 0;
            for pass in passes(stage, 4, 12) {
                held = if pass.forward { held + 1 } else { held - 1 };
                most = most.max(held);
            }
            assert_eq!((held, most), (0, 4 - stage));
        }
    }

    #[test]
    fn pipelines_run_side_by_side_and_steps_in_turn() {
        let config = Pipeline {
            pipelines: 3,
            steps: 2,
            ..Pipeline::default()
        };
        let program = config.program(12, 0).unwrap();
        assert_eq!(program.groups().len(), 2);
        assert!(program.pairs().iter().all(|&(from, to)| from / 4 == to / 4));
        // The first stage ends a step last, so nothing of the next one overlaps.
        assert_eq!(makespan(&program, |_| Time::ZERO), Time::from_ms(66));
        assert!(
            Pipeline {
                stages: Some(5),
                ..config.clone()
            }
            .program(12, 0)
            .is_err()
        );
        assert!(config.program(3, 0).is_err());
    }
}
