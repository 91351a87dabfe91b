//! What htsim's connection matrices ask hosts to do.
//!
//! In htsim a trigger works at once and everywhere. Hosts know only what they see: the sender of a connection when it was
//! acknowledged, its receiver when it arrived. A connection that starts at either of them follows from that; the start at
//! another host takes a short message there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::{WorkloadError, require, require_hosts};
use super::htsim::{ConnectionMatrix, Start};
use super::htsim_triggers::{End, order, waits, wrong};
use super::program::{Action, After, Group, Program, TaskId};
use super::text::{ParseError, Problem};
use crate::packet::HostId;
use crate::time::Time;

/// The configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Htsim {
    /// What is in the file.
    pub text: String,
    /// The message that tells a host of a trigger it cannot see, at least 1.
    pub notice_bytes: u64,
}

impl Default for Htsim {
    fn default() -> Self {
        Self {
            text: String::from("Nodes 2\nConnections 1\n0->1 start 0 size 2000000\n"),
            notice_bytes: 64,
        }
    }
}

impl Htsim {
    /// The program for so many hosts.
    ///
    /// # Errors
    /// If the file is wrong or needs more hosts.
    pub fn program(&self, hosts: u32, _: u64) -> Result<Program, WorkloadError> {
        require(self.notice_bytes >= 1, "notice_bytes", 0, "at least 1")?;
        let matrix = ConnectionMatrix::parse(&self.text)?;
        require_hosts(u64::from(matrix.nodes), hosts)?;
        let waits = waits(&matrix)?;
        let mut builder = Builder {
            matrix: &matrix,
            notice_bytes: self.notice_bytes,
            program: Program::new(hosts),
            tasks: vec![0; matrix.connections.len()],
            flows: BTreeMap::new(),
            told: BTreeMap::new(),
        };
        builder.program.begin_group(Group {
            name: String::from("connection matrix"),
            bytes: 0,
            bus_factor: (1, 1),
        });
        let flows = builder.numbered_flows()?;
        for index in order(&matrix, &waits)? {
            builder.add(index, flows[index], &waits[index])?;
        }
        Ok(builder.program)
    }
}

struct Builder<'a> {
    matrix: &'a ConnectionMatrix,
    notice_bytes: u64,
    program: Program,
    /// By connection, once it was added.
    tasks: Vec<TaskId>,
    /// By pair of hosts: how many flows there are.
    flows: BTreeMap<(HostId, HostId), u32>,
    /// By what was waited for and by which host: what that host waits for.
    told: BTreeMap<(Vec<End>, HostId), Vec<After>>,
}

impl Builder<'_> {
    fn new_flow(&mut self, from: HostId, to: HostId) -> u32 {
        let next = self.flows.entry((from, to)).or_default();
        *next += 1;
        *next - 1
    }

    /// A flow for each connection; messages with the same id share one.
    fn numbered_flows(&mut self) -> Result<Vec<u32>, ParseError> {
        let mut by_id = BTreeMap::new();
        let mut flows = Vec::new();
        for connection in &self.matrix.connections {
            let pair = (connection.from, connection.to);
            let known = connection.id.and_then(|id| by_id.get(&id).copied());
            let flow = match known {
                Some((flow, same)) if connection.message.is_some() && same == pair => flow,
                Some(_) => {
                    let id = connection.id.unwrap_or_default();
                    return Err(wrong(connection, Problem::Twice(format!("id {id}"))));
                }
                None => self.new_flow(pair.0, pair.1),
            };
            if let Some(id) = connection.id {
                by_id.insert(id, (flow, pair));
            }
            flows.push(flow);
        }
        Ok(flows)
    }

    fn add(&mut self, index: usize, flow: u32, waits: &[End]) -> Result<(), WorkloadError> {
        let connection = &self.matrix.connections[index];
        let after = self.seen_at(connection.from, waits)?;
        let not_before = match connection.start {
            Start::At(time) => time,
            Start::Trigger(_) => Time::ZERO,
        };
        let action = Action::Transfer {
            from: connection.from,
            to: connection.to,
            bytes: connection.bytes,
            flow,
        };
        self.tasks[index] = self.program.add(action, not_before, &after)?;
        Ok(())
    }

    /// What a host waits for to know of all these ends.
    fn seen_at(&mut self, host: HostId, ends: &[End]) -> Result<Vec<After>, WorkloadError> {
        let key = (ends.to_vec(), host);
        if let Some(after) = self.told.get(&key) {
            return Ok(after.clone());
        }
        let seen: Vec<_> = ends.iter().filter_map(|end| self.sees(host, end)).collect();
        let after = if seen.len() == ends.len() {
            seen
        } else {
            // One host learns of all ends and tells the others, or all would have to tell all.
            let hub = self.teller(&ends[0]);
            let known = self.known_at_hub(hub, ends)?;
            if hub == host {
                known
            } else {
                vec![After::Done(self.notice(hub, host, &known)?)]
            }
        };
        self.told.insert(key, after.clone());
        Ok(after)
    }

    fn known_at_hub(&mut self, hub: HostId, ends: &[End]) -> Result<Vec<After>, WorkloadError> {
        let key = (ends.to_vec(), hub);
        if let Some(after) = self.told.get(&key) {
            return Ok(after.clone());
        }
        let mut known = Vec::new();
        for end in ends {
            known.push(match self.sees(hub, end) {
                Some(after) => after,
                None => {
                    let teller = self.teller(end);
                    let after: Vec<_> = self.sees(teller, end).into_iter().collect();
                    After::Done(self.notice(teller, hub, &after)?)
                }
            });
        }
        if known.len() > 1 {
            let join = Action::Pause {
                host: hub,
                span: Time::ZERO,
            };
            known = vec![After::Done(self.program.add(join, Time::ZERO, &known)?)];
        }
        self.told.insert(key, known.clone());
        Ok(known)
    }

    fn teller(&self, end: &End) -> HostId {
        let connection = &self.matrix.connections[end.connection];
        if end.by_sender {
            connection.from
        } else {
            connection.to
        }
    }

    fn sees(&self, host: HostId, end: &End) -> Option<After> {
        let connection = &self.matrix.connections[end.connection];
        let task = self.tasks[end.connection];
        if host == connection.from {
            Some(After::Acknowledged(task))
        } else {
            (host == connection.to).then_some(After::Done(task))
        }
    }

    fn notice(
        &mut self,
        from: HostId,
        to: HostId,
        after: &[After],
    ) -> Result<TaskId, WorkloadError> {
        let action = Action::Transfer {
            from,
            to,
            bytes: self.notice_bytes,
            flow: self.new_flow(from, to),
        };
        Ok(self.program.add(action, Time::ZERO, after)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::check::{ends, in_some_order, makespan};

    fn program(text: &str) -> Result<Program, WorkloadError> {
        let config = Htsim {
            text: String::from(text),
            ..Htsim::default()
        };
        config.program(16, 0)
    }

    #[test]
    fn the_published_permutation() {
        // `connection_matrices/perm_16n_16c_2MB.cm` of csg-htsim.
        let pairs = [
            (7, 5),
            (15, 1),
            (0, 13),
            (14, 8),
            (1, 3),
            (6, 7),
            (5, 11),
            (9, 12),
            (11, 4),
            (3, 14),
            (12, 15),
            (2, 10),
            (13, 2),
            (10, 6),
            (4, 0),
            (8, 9),
        ];
        let mut text = String::from("Nodes 16\nConnections 16\n");
        for (id, (from, to)) in (1..).zip(pairs) {
            text += &format!("{from}->{to} id {id} start 0 size 2000000\n");
        }
        let program = program(&text).unwrap();
        let mut pairs = pairs.to_vec();
        pairs.sort_unstable();
        assert_eq!(program.pairs(), pairs);
        for task in program.tasks() {
            assert!(matches!(
                task.action,
                Action::Transfer {
                    bytes: 2_000_000,
                    flow: 0,
                    ..
                }
            ));
            assert_eq!(task.not_before, Time::ZERO);
        }
    }

    /// As `gen_allreduce.py` of csg-htsim writes it: each step of a ring is started by the end of the step before it.
    #[test]
    fn a_ring_of_triggers_needs_no_notice() {
        let mut text = String::from("Nodes 4\nConnections 7\nTriggers 6\n");
        for step in 0..7 {
            let (from, to, id) = (step % 4, (step + 1) % 4, step + 1);
            let start = if step == 0 {
                String::from("start 0")
            } else {
                format!("trigger {step}")
            };
            let done = if step == 6 {
                String::new()
            } else {
                format!(" send_done_trigger {id}")
            };
            text += &format!("{from}->{to} id {id} {start} size 1000{done}\n");
        }
        for id in 1..7 {
            text += &format!("trigger id {id} oneshot\n");
        }
        let program = program(&text).unwrap();
        assert_eq!(program.tasks().len(), 7);
        assert_eq!(makespan(&program, |_| Time::from_us(1)), Time::from_us(7));
        assert_eq!(program.dependencies(&program.tasks()[1]), [After::Done(0)]);
    }

    #[test]
    fn triggers_work_at_sender_receiver_and_elsewhere() {
        let text = "Nodes 4\nConnections 4\nTriggers 1\n\
            0->2 id 3 trigger 5 size 10\n1->2 id 4 trigger 5 size 10\n3->2 id 2 trigger 5 size 10\n\
            0->1 id 1 start 2000000 size 10 recv_done_trigger 5\ntrigger id 5 oneshot\n";
        let program = program(text).unwrap();
        // The connection, what follows at its sender, at its receiver, and a notice from there to host 3 with what follows.
        let from_to: Vec<_> = program.tasks().iter().map(|task| task.action).collect();
        let transfer = |from, to, bytes| Action::Transfer {
            from,
            to,
            bytes,
            flow: 0,
        };
        assert_eq!(
            from_to,
            [
                transfer(0, 1, 10),
                transfer(0, 2, 10),
                transfer(1, 2, 10),
                transfer(1, 3, 64),
                transfer(3, 2, 10)
            ]
        );
        let after: Vec<_> = program
            .tasks()
            .iter()
            .map(|task| program.dependencies(task).to_vec())
            .collect();
        assert_eq!(
            after,
            [
                vec![],
                vec![After::Acknowledged(0)],
                vec![After::Done(0)],
                vec![After::Done(0)],
                vec![After::Done(3)]
            ]
        );
        assert_eq!(ends(&program, |_| Time::from_us(1))[4], Time::from_us(5));
    }

    #[test]
    fn a_barrier_waits_for_all_and_a_multishot_starts_one_each() {
        let mut text = String::from("Nodes 8\nConnections 8\nTriggers 1\n");
        for host in 0..4 {
            text += &format!(
                "{host}->{} id {} start 0 size 10 send_done_trigger 1\n",
                host + 4,
                host + 1
            );
            text += &format!(
                "{host}->{} id {} trigger 1 size 20\n",
                (host + 1) % 4,
                host + 5
            );
        }
        let barrier = format!("{text}trigger id 1 barrier count 4\n");
        let program = program(&barrier).unwrap();
        // Three notices to the hub and three from it, a join, and the eight.
        assert_eq!(program.tasks().len(), 15);
        for seed in 0..20 {
            let mut first = 0;
            in_some_order(&program, seed, |happening| {
                use crate::workload::check::Happening::{Acknowledged, Start};
                if let Start(id) | Acknowledged(id) = happening
                    && let Action::Transfer { bytes, .. } = program.tasks()[id as usize].action
                {
                    match (happening, bytes) {
                        (Acknowledged(_), 10) => first += 1,
                        (Start(_), 20) => assert_eq!(first, 4),
                        _ => {}
                    }
                }
            });
        }
        let multishot = format!("{text}trigger id 1 multishot\n");
        let program = self::program(&multishot).unwrap();
        assert_eq!(program.tasks().len(), 8);
        let waiting = program
            .tasks()
            .iter()
            .filter(|task| matches!(program.dependencies(task), [After::Acknowledged(_)]));
        assert_eq!(waiting.count(), 4);
        let short = barrier.replace("count 4", "count 5");
        assert_eq!(
            self::program(&short).unwrap_err().to_string(),
            "line 5, column 1: trigger 1 needs 5 activations and has 4"
        );
    }

    #[test]
    fn messages_of_one_flow_are_ordered_and_others_not() {
        let text = "Nodes 2\nConnections 4\n0->1 id 1 msg 1 start 0 size 1\n0->1 id 1 msg 2 start 0 size 1\n\
            0->1 id 2 start 0 size 1\n0->1 start 0 size 1\n";
        let flows: Vec<_> = program(text)
            .unwrap()
            .tasks()
            .iter()
            .map(|task| match task.action {
                Action::Transfer { flow, .. } => flow,
                Action::Pause { .. } => unreachable!(),
            })
            .collect();
        assert_eq!(flows, [0, 0, 1, 2]);
        let twice = text.replace("id 2", "id 1");
        assert_eq!(
            program(&twice).unwrap_err().to_string(),
            "line 5, column 1: `id 1` is there twice"
        );
    }
}
