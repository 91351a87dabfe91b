//! Disaggregated inference: prompts are computed on some hosts (prefill), and what they leave in the key-value cache goes to
//! others, which generate (decode), layer by layer as it is computed.
//!
//! P. Patel et al., "Splitwise", ISCA 2024; Y. Zhong et al., "DistServe", OSDI 2024. The defaults are those of a model of 70
//! billion parameters (Llama 3 70B, whose published shape is 80 layers with 8 key-value heads of 128 elements of 2 bytes).

use serde::{Deserialize, Serialize};

use super::chance::waiting_time;
use super::error::{WorkloadError, require, require_hosts};
use super::placement::Placement;
use super::program::{Action, After, Group, Program, TaskId};
use super::sizes::Sizes;
use crate::random::{Purpose, Stream};
use crate::time::Time;

/// The configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct KvCache {
    /// Hosts that compute prompts (the first ranks), at least 1. Each computes one at a time, in the order of arrival.
    pub prefill: u32,
    /// Hosts that generate (the ranks behind), at least 1.
    pub decode: u32,
    /// How many requests there are, at least 1.
    pub requests: u32,
    /// The mean time between requests: they are a Poisson process.
    pub mean_gap_ns: u64,
    /// How long prompts are, in tokens.
    pub tokens: Sizes,
    /// Layers of the model, at least 1.
    pub layers: u32,
    /// Keys and values of a token in a layer, at least 1.
    pub token_layer_bytes: u64,
    /// How long a token takes in a layer.
    pub token_layer_ns: u64,
    /// Which hosts play.
    pub placement: Placement,
}

impl Default for KvCache {
    fn default() -> Self {
        Self {
            prefill: 1,
            decode: 1,
            requests: 8,
            mean_gap_ns: 200_000_000,
            tokens: Sizes::Uniform(512, 4096),
            layers: 80,
            token_layer_bytes: 2 * 8 * 128 * 2,
            token_layer_ns: 1000,
            placement: Placement::InOrder,
        }
    }
}

impl KvCache {
    /// The program for so many hosts; each request is a group.
    ///
    /// # Errors
    /// If there are too few hosts, or a field is 0 that must not be.
    pub fn program(&self, hosts: u32, seed: u64) -> Result<Program, WorkloadError> {
        require(self.prefill >= 1, "prefill", 0, "at least 1")?;
        require(self.decode >= 1, "decode", 0, "at least 1")?;
        require(self.requests >= 1, "requests", 0, "at least 1")?;
        require(self.layers >= 1, "layers", 0, "at least 1")?;
        require(
            self.token_layer_bytes >= 1,
            "token_layer_bytes",
            0,
            "at least 1",
        )?;
        let ranks = u64::from(self.prefill) + u64::from(self.decode);
        require_hosts(ranks, hosts)?;
        let host = self.placement.place(ranks as u32, hosts, seed)?;
        let (prefill, decode) = host.split_at(self.prefill as usize);
        let tokens = self.tokens.sampler()?;
        let mut stream = Stream::new(seed, Purpose::Traffic, 1);
        let mut program = Program::new(hosts);
        let mut busy: Vec<Option<TaskId>> = vec![None; prefill.len()];
        let mut now = Time::ZERO;
        for request in 0..self.requests {
            now += waiting_time(&mut stream, self.mean_gap_ns as f64 * 1e3);
            let tokens = tokens.draw(&mut stream);
            let worker = request as usize % prefill.len();
            let from = prefill[worker];
            let to = *stream.pick(decode);
            let bytes = tokens.saturating_mul(self.token_layer_bytes);
            program.begin_group(Group {
                name: format!("request {request}, {tokens} tokens"),
                bytes: bytes.saturating_mul(u64::from(self.layers)),
                bus_factor: (1, 1),
            });
            let compute = Action::Pause {
                host: from,
                span: Time::from_ns(tokens.saturating_mul(self.token_layer_ns)),
            };
            let transfer = Action::Transfer {
                from,
                to,
                bytes,
                flow: request,
            };
            for _ in 0..self.layers {
                let before = busy[worker].map(After::Done);
                let computed = program.add(compute, now, before.as_slice())?;
                program.add(transfer, now, &[After::Done(computed)])?;
                busy[worker] = Some(computed);
            }
        }
        Ok(program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::check::{bytes_by_host, ends};

    #[test]
    fn layers_overlap_with_the_computation_of_the_next() {
        let config = KvCache {
            requests: 1,
            mean_gap_ns: 0,
            tokens: Sizes::Fixed(1000),
            ..KvCache::default()
        };
        let program = config.program(2, 0).unwrap();
        // 1,000 tokens leave 4,096,000 bytes in each of 80 layers, each computed in a millisecond.
        assert_eq!(bytes_by_host(&program).1[1], 80 * 4_096_000);
        let ends = ends(&program, |bytes| Time::to_send(bytes, 100_000));
        let last = ends.into_iter().max().unwrap();
        assert_eq!(last, Time::from_ms(80) + Time::to_send(4_096_000, 100_000));
    }

    #[test]
    fn a_host_computes_one_prompt_at_a_time() {
        let config = KvCache {
            prefill: 3,
            decode: 2,
            requests: 60,
            layers: 4,
            mean_gap_ns: 1_000_000,
            ..KvCache::default()
        };
        let program = config.program(5, 1).unwrap();
        assert_eq!(program.groups().len(), 60);
        let ends = ends(&program, |_| Time::ZERO);
        for host in 0..3 {
            let mut free = Time::ZERO;
            for (task, &end) in program.tasks().iter().zip(&ends) {
                if let Action::Pause { host: at, span } = task.action
                    && at == host
                {
                    assert!(end >= free + span && end >= task.not_before + span);
                    free = end;
                }
            }
            assert!(free > Time::ZERO);
        }
        assert!(
            program
                .pairs()
                .iter()
                .all(|&(from, to)| from < 3 && to >= 3)
        );
        assert_eq!(
            config.program(4, 0),
            Err(WorkloadError::TooFewHosts {
                needed: 5,
                hosts: 4
            })
        );
    }
}
