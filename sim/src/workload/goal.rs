//! GOAL traces as programs: what [`super::goal_parse`] has read, with each send joined to its receive.
//!
//! A send and a receive belong together by sender, receiver and tag, in the order of the file. A receive has ended when the message came
//! and the receive had started; a send up to a size (`eager_bytes`, LogGOPSim's S) has ended when it has started, a longer one when it was
//! acknowledged.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use serde::{Deserialize, Serialize};

use super::error::{WorkloadError, require_hosts};
use super::goal_parse::{Goal, GoalAction, Operation};
use super::placement::Placement;
use super::program::{Action, After, Group, Program, TaskId};
use super::text::{ParseError, Problem};
use crate::packet::HostId;
use crate::time::Time;

/// The configuration.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GoalTrace {
    /// What is in the file.
    pub text: String,
    /// Sends up to this size have ended when they have started. The default is LogGOPSim's.
    pub eager_bytes: u64,
    /// Which hosts the ranks are.
    pub placement: Placement,
}

impl Default for GoalTrace {
    fn default() -> Self {
        Self {
            text: String::from(
                "num_ranks 2\nrank 0 { send 1048576b to 1 }\nrank 1 { recv 1048576b from 0 }\n",
            ),
            eager_bytes: 65_535,
            placement: Placement::InOrder,
        }
    }
}

impl GoalTrace {
    /// The program for so many hosts. A message of no bytes is sent as one byte.
    ///
    /// # Errors
    /// If the file is wrong, a message has no partner, or operations wait for each other.
    pub fn program(&self, hosts: u32, seed: u64) -> Result<Program, WorkloadError> {
        let goal = Goal::parse(&self.text)?;
        require_hosts(u64::from(goal.ranks), hosts)?;
        let placed = self.placement.place(goal.ranks, hosts, seed)?;
        let matches = matches(&goal.operations)?;
        let mut builder = Builder {
            operations: &goal.operations,
            hosts: &placed,
            eager_bytes: self.eager_bytes,
            program: Program::new(hosts),
            started: vec![Vec::new(); goal.operations.len()],
            ended: vec![Vec::new(); goal.operations.len()],
            sent: vec![None; goal.operations.len()],
        };
        builder.program.begin_group(Group {
            name: String::from("GOAL trace"),
            bytes: 0,
            bus_factor: (1, 1),
        });
        for event in order(&goal.operations, &matches)? {
            match event {
                Event::Start(index) => builder.start(index)?,
                Event::End(index) => builder.end(index, matches[index]),
            }
        }
        Ok(builder.program)
    }
}

fn wrong(operation: &Operation, problem: Problem) -> ParseError {
    ParseError {
        line: operation.line,
        column: 1,
        problem,
    }
}

/// By receive, the send that it gets.
fn matches(operations: &[Operation]) -> Result<Vec<Option<usize>>, ParseError> {
    let mut sends: BTreeMap<(u32, u32, u32), VecDeque<usize>> = BTreeMap::new();
    for (index, operation) in operations.iter().enumerate() {
        if let GoalAction::Send { to, tag, .. } = operation.action {
            let key = (operation.rank, to, tag);
            sends.entry(key).or_default().push_back(index);
        }
    }
    let mut matches = vec![None; operations.len()];
    for (index, operation) in operations.iter().enumerate() {
        let GoalAction::Receive {
            bytes: room,
            from,
            tag,
        } = operation.action
        else {
            continue;
        };
        let key = (from, operation.rank, tag);
        let Some(send) = sends.get_mut(&key).and_then(VecDeque::pop_front) else {
            let why = format!(
                "rank {from} has no send to rank {} with tag {tag} for this",
                key.1
            );
            return Err(wrong(operation, Problem::Mismatch(why)));
        };
        if let GoalAction::Send { bytes, .. } = operations[send].action
            && bytes > room
        {
            let why = format!("a message of {bytes} bytes does not fit into {room}");
            return Err(wrong(operation, Problem::Mismatch(why)));
        }
        matches[index] = Some(send);
    }
    if let Some((&(_, to, tag), &send)) = sends
        .iter()
        .find_map(|(key, left)| Some((key, left.front()?)))
    {
        let why = format!("rank {to} does not receive this (tag {tag})");
        return Err(wrong(&operations[send], Problem::Mismatch(why)));
    }
    Ok(matches)
}

/// What happens to an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Start(usize),
    End(usize),
}

/// Starts and ends of all operations in an order in which they can happen, else that of the file. A receive may start before
/// its message is sent, so the two are apart.
fn order(operations: &[Operation], matches: &[Option<usize>]) -> Result<Vec<Event>, ParseError> {
    // Node 2i is the start of operation i, node 2i + 1 its end.
    let before = |node: usize| {
        let index = node / 2;
        let operation = &operations[index];
        let (requires, starts): (&[usize], &[usize]) = if node.is_multiple_of(2) {
            (&operation.requires, &operation.starts_after)
        } else {
            (&[], core::slice::from_ref(&index))
        };
        let sent = if node.is_multiple_of(2) {
            None
        } else {
            matches[index]
        };
        let ends = requires.iter().map(|&on| 2 * on + 1);
        let starts = starts.iter().chain(&sent).map(|&on| 2 * on);
        ends.chain(starts).collect::<Vec<_>>()
    };
    let nodes = 2 * operations.len();
    let mut followers = vec![Vec::new(); nodes];
    let mut missing = vec![0; nodes];
    for (node, missing) in missing.iter_mut().enumerate() {
        for on in before(node) {
            followers[on].push(node);
            *missing += 1;
        }
    }
    let free = (0..nodes).filter(|&node| missing[node] == 0).map(Reverse);
    let mut free: BinaryHeap<_> = free.collect();
    let mut order = Vec::with_capacity(nodes);
    while let Some(Reverse(node)) = free.pop() {
        let index = node / 2;
        order.push(if node.is_multiple_of(2) {
            Event::Start(index)
        } else {
            Event::End(index)
        });
        for &follower in &followers[node] {
            missing[follower] -= 1;
            if missing[follower] == 0 {
                free.push(Reverse(follower));
            }
        }
    }
    let Some(mut node) = missing.iter().position(|&count| count > 0) else {
        return Ok(order);
    };
    // From anything that is stuck, what it waits for leads into a circle.
    let mut path: Vec<usize> = Vec::new();
    let first = loop {
        if let Some(first) = path.iter().position(|&seen| seen == node) {
            break first;
        }
        path.push(node);
        let stuck = before(node).into_iter().find(|&on| missing[on] > 0);
        node = stuck.unwrap_or(node);
    };
    let mut circle: Vec<usize> = path[first..].iter().map(|node| node / 2).collect();
    circle.dedup();
    if circle.len() > 1 && circle.first() == circle.last() {
        circle.pop();
    }
    let names: Vec<_> = circle
        .iter()
        .map(|&index| {
            let Operation {
                rank, label, line, ..
            } = &operations[index];
            let label = label.as_deref().unwrap_or("an operation without a label");
            format!("{label} of rank {rank} (line {line})")
        })
        .collect();
    Err(wrong(
        &operations[circle[0]],
        Problem::Cycle(names.join(", ")),
    ))
}

struct Builder<'a> {
    operations: &'a [Operation],
    hosts: &'a [HostId],
    eager_bytes: u64,
    program: Program,
    /// By operation: what its host waits for to know that it has started.
    started: Vec<Vec<After>>,
    /// The same for its end.
    ended: Vec<Vec<After>>,
    /// By send, but those of a rank to itself, which take no message.
    sent: Vec<Option<TaskId>>,
}

impl Builder<'_> {
    fn start(&mut self, index: usize) -> Result<(), WorkloadError> {
        let operation = &self.operations[index];
        let host = self.hosts[operation.rank as usize];
        let ends = operation.requires.iter().flat_map(|&on| &self.ended[on]);
        let starts = operation.starts_after.iter();
        let starts = starts.flat_map(|&on| &self.started[on]);
        let mut after: Vec<After> = Vec::new();
        for known in ends.chain(starts) {
            if !after.contains(known) {
                after.push(*known);
            }
        }
        if after.len() > 1 {
            // Others may inherit what this waited for, and again others from them: one join keeps it short.
            after = vec![self.pause(host, Time::ZERO, &after)?];
        }
        self.ended[index] = match operation.action {
            GoalAction::Calc(ns) => vec![self.pause(host, Time::from_ns(ns), &after)?],
            GoalAction::Send { bytes, to, .. } if to != operation.rank => {
                let action = Action::Transfer {
                    from: host,
                    to: self.hosts[to as usize],
                    bytes: bytes.max(1),
                    flow: 0,
                };
                let task = self.program.add(action, Time::ZERO, &after)?;
                self.sent[index] = Some(task);
                if bytes <= self.eager_bytes {
                    after.clone()
                } else {
                    vec![After::Acknowledged(task)]
                }
            }
            GoalAction::Send { .. } | GoalAction::Receive { .. } => after.clone(),
        };
        self.started[index] = after;
        Ok(())
    }

    /// A receive ends with its message too; what else ends was known at its start.
    fn end(&mut self, index: usize, send: Option<usize>) {
        let Some(send) = send else { return };
        match self.sent[send] {
            Some(task) => self.ended[index].push(After::Done(task)),
            None => self.ended[index].extend_from_slice(&self.started[send]),
        }
    }

    fn pause(&mut self, host: HostId, span: Time, after: &[After]) -> Result<After, WorkloadError> {
        let action = Action::Pause { host, span };
        Ok(After::Done(self.program.add(action, Time::ZERO, after)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::check::{ends, makespan};

    fn program(text: &str, eager_bytes: u64) -> Result<Program, WorkloadError> {
        let config = GoalTrace {
            text: String::from(text),
            eager_bytes,
            ..GoalTrace::default()
        };
        config.program(64, 0)
    }

    /// The binomial tree that LogGOPSim ships (`binary_tree_32.goal`), as its generator writes it.
    fn binomial(ranks: u32) -> String {
        let mut text = format!("num_ranks {ranks}\n");
        for rank in 0..ranks {
            text += &format!("\nrank {rank} {{\n");
            let received = rank.checked_ilog2();
            if let Some(bit) = received {
                text += &format!("l1: recv 1b from {} tag 0\n", rank ^ (1 << bit));
            }
            let first = 1 + u32::from(received.is_some());
            let bits = received.map_or(0, |bit| bit + 1)..ranks.ilog2();
            for (label, bit) in (first..).zip(bits) {
                text += &format!("l{label}: send 1b to {} tag 0\n", rank | 1 << bit);
                if received.is_some() {
                    text += &format!("l{label} requires l1\n");
                }
            }
            text += "}\n";
        }
        text
    }

    #[test]
    fn a_binomial_tree_takes_its_depth() {
        for ranks in [2, 16, 32] {
            let program = program(&binomial(ranks), 65_535).unwrap();
            assert_eq!(program.tasks().len() as u32, ranks - 1);
            let depth = u64::from(ranks.ilog2());
            assert_eq!(
                makespan(&program, |_| Time::from_us(1)),
                Time::from_us(depth)
            );
        }
    }

    #[test]
    fn receives_end_when_posted_and_come() {
        let text = "num_ranks 2\nrank 0 {\n a: calc 5000\n b: recv 9b from 1 tag 3\n c: calc 1000\n b requires a\n c requires b\n}\n\
            rank 1 { s: send 9b to 0 tag 3; t: calc 100; t requires s }\n";
        let at = |transfer| {
            let program = program(text, 65_535).unwrap();
            ends(&program, |_| transfer)
        };
        // Posted after 5 us: an early message waits, a late one is waited for.
        assert!(at(Time::from_us(1)).contains(&Time::from_us(6)));
        assert!(at(Time::from_us(8)).contains(&Time::from_us(9)));
        // What requires an eager send waits for nothing more, what requires a longer one for its acknowledgment.
        let pause = |eager| {
            let program = program(text, eager).unwrap();
            let task = program
                .tasks()
                .iter()
                .find(|task| matches!(task.action, Action::Pause { host: 1, .. }));
            program.dependencies(task.unwrap()).to_vec()
        };
        assert_eq!(pause(9), []);
        assert!(matches!(pause(8)[..], [After::Acknowledged(_)]));
    }

    #[test]
    fn irequires_waits_for_starts_only() {
        // Both post a receive, then send: neither waits for what it gets.
        let text = "num_ranks 2\n\
            rank 0 { w: calc 10; r: recv 5b from 1; s: send 5b to 1; r requires w; s irequires r }\n\
            rank 1 { w: calc 10; r: recv 5b from 0; s: send 5b to 0; r requires w; s irequires r }\n";
        let program = program(text, 0).unwrap();
        assert_eq!(makespan(&program, |_| Time::from_us(1)).ns(), 1010);
        let stuck = text.replace("irequires", "requires");
        assert_eq!(
            self::program(&stuck, 0).unwrap_err().to_string(),
            "line 2, column 1: these wait for each other: r of rank 0 (line 2), s of rank 1 (line 3), r of rank 1 (line 3), s of rank 0 (line 2)"
        );
    }

    #[test]
    fn messages_are_matched_by_source_and_tag_in_order() {
        let text = "num_ranks 3\nrank 0 {\nsend 10b to 2 tag 1\nsend 20b to 2 tag 2\nsend 30b to 2 tag 1\nsend 0b to 0 tag 9\nrecv 0b from 0 tag 9\n}\n\
            rank 1 {\nsend 40b to 2 tag 1\n}\n\
            rank 2 {\na: recv 40b from 1 tag 1\nb: recv 20b from 0 tag 2\nc: recv 10b from 0 tag 1\nd: recv 31b from 0 tag 1\n\
            e: calc 1\ne requires a\nf: calc 2\nf requires b\ng: calc 3\ng requires c\nh: calc 4\nh requires d\n}\n";
        let program = program(text, 0).unwrap();
        let from = |span| {
            let pause = Action::Pause {
                host: 2,
                span: Time::from_ns(span),
            };
            let task = program
                .tasks()
                .iter()
                .find(|task| task.action == pause)
                .unwrap();
            let [After::Done(id)] = program.dependencies(task) else {
                panic!()
            };
            match program.tasks()[*id as usize].action {
                Action::Transfer { bytes, .. } => bytes,
                Action::Pause { .. } => 0,
            }
        };
        assert_eq!([1, 2, 3, 4].map(from), [40, 20, 10, 30]);
        assert_eq!(program.pairs(), [(0, 2), (1, 2)]);
        let error = |from, to| {
            self::program(&text.replace(from, to), 0)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error("recv 40b", "recv 39b"),
            "line 13, column 1: a message of 40 bytes does not fit into 39"
        );
        assert_eq!(
            error("b: recv 20b from 0 tag 2", "b: recv 20b from 0 tag 4"),
            "line 14, column 1: rank 0 has no send to rank 2 with tag 4 for this"
        );
        assert_eq!(
            error("send 40b to 2 tag 1", "send 40b to 2 tag 1\nsend 1b to 0"),
            "line 11, column 1: rank 0 does not receive this (tag 0)"
        );
    }

    #[test]
    fn a_rank_hears_from_itself_without_a_message() {
        let text = "num_ranks 1\nrank 0 { w: calc 7; s: send 9b to 0; s requires w; r: recv 9b from 0; c: calc 1; c requires r }";
        let program = program(text, 0).unwrap();
        assert_eq!(program.pairs(), []);
        assert_eq!(makespan(&program, |_| Time::ZERO), Time::from_ns(8));
    }
}
