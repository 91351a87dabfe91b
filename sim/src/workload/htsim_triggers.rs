//! What the connections of an htsim matrix wait for, and in which order they can be done.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::htsim::{Connection, ConnectionMatrix, Start, TriggerKind};
use super::text::{ParseError, Problem};

/// The end of a connection, as the one that tells of it sees it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct End {
    /// Its index.
    pub(super) connection: usize,
    /// The sender tells of it, once it knows; else the receiver.
    pub(super) by_sender: bool,
}

/// An error in the line of a connection.
pub(super) fn wrong(connection: &Connection, problem: Problem) -> ParseError {
    ParseError {
        line: connection.line,
        column: 1,
        problem,
    }
}

/// For every connection the ends that it waits for.
pub(super) fn waits(matrix: &ConnectionMatrix) -> Result<Vec<Vec<End>>, ParseError> {
    let mut ends: BTreeMap<u32, Vec<End>> = BTreeMap::new();
    for (index, connection) in matrix.connections.iter().enumerate() {
        let done = [(connection.send_done, true), (connection.recv_done, false)];
        for (trigger, by_sender) in done {
            let Some(trigger) = trigger else { continue };
            if !matrix.triggers.contains_key(&trigger) {
                return Err(wrong(connection, no_such(trigger)));
            }
            ends.entry(trigger).or_default().push(End {
                connection: index,
                by_sender,
            });
        }
    }
    let mut started: BTreeMap<u32, usize> = BTreeMap::new();
    let mut waits = Vec::new();
    for connection in &matrix.connections {
        let Start::Trigger(id) = connection.start else {
            waits.push(Vec::new());
            continue;
        };
        let trigger = matrix
            .triggers
            .get(&id)
            .ok_or_else(|| wrong(connection, no_such(id)))?;
        let ends = ends.get(&id).map_or(&[][..], Vec::as_slice);
        let activations = |said: u32| {
            if said as usize == ends.len() {
                return Ok(());
            }
            let found = ends.len();
            Err(wrong(
                connection,
                Problem::Mismatch(format!(
                    "trigger {id} needs {said} activations and has {found}"
                )),
            ))
        };
        let turn = started.entry(id).or_default();
        waits.push(match trigger.kind {
            TriggerKind::OneShot => {
                activations(1)?;
                ends.to_vec()
            }
            TriggerKind::Barrier(count) => {
                activations(count)?;
                ends.to_vec()
            }
            // In htsim the first to end starts the first to wait. Which that is shows only in the run; here it is the order of
            // the file, in which the connections of such a trigger are alike.
            TriggerKind::MultiShot => match ends.get(*turn) {
                Some(&end) => vec![end],
                None => activations(*turn as u32 + 1).map(|()| Vec::new())?,
            },
        });
        *turn += 1;
    }
    Ok(waits)
}

fn no_such(trigger: u32) -> Problem {
    Problem::NoSuch {
        what: "trigger",
        name: trigger.to_string(),
    }
}

/// The connections, each behind those that it waits for, else in the order of the file.
pub(super) fn order(
    matrix: &ConnectionMatrix,
    waits: &[Vec<End>],
) -> Result<Vec<usize>, ParseError> {
    let mut followers = vec![Vec::new(); waits.len()];
    for (index, ends) in waits.iter().enumerate() {
        for end in ends {
            followers[end.connection].push(index);
        }
    }
    let mut missing: Vec<usize> = waits.iter().map(Vec::len).collect();
    let free = (0..waits.len()).filter(|&index| missing[index] == 0);
    let mut free: BinaryHeap<Reverse<usize>> = free.map(Reverse).collect();
    let mut order = Vec::new();
    while let Some(Reverse(index)) = free.pop() {
        order.push(index);
        for &follower in &followers[index] {
            missing[follower] -= 1;
            if missing[follower] == 0 {
                free.push(Reverse(follower));
            }
        }
    }
    if let Some(stuck) = missing.iter().position(|&count| count > 0) {
        let lines: Vec<_> = (0..waits.len())
            .filter(|&index| missing[index] > 0)
            .take(8)
            .map(|index| format!("line {}", matrix.connections[index].line))
            .collect();
        return Err(wrong(
            &matrix.connections[stuck],
            Problem::Cycle(lines.join(", ")),
        ));
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_starts_is_an_error() {
        let error = |rest: &str, triggers| {
            let text = format!("Nodes 17\nConnections 2\nTriggers {triggers}\n{rest}");
            let matrix = ConnectionMatrix::parse(&text).unwrap();
            let result = waits(&matrix).and_then(|waits| order(&matrix, &waits));
            result.unwrap_err().to_string()
        };
        let circle = "0->1 id 1 trigger 1 size 5 send_done_trigger 2\n1->0 id 2 trigger 2 size 5 send_done_trigger 1\ntrigger id 1 oneshot\ntrigger id 2 oneshot\n";
        assert_eq!(
            error(circle, 2),
            "line 4, column 1: these wait for each other: line 4, line 5"
        );
        let nobody = "0->1 id 1 trigger 1 size 5\n1->0 start 0 size 5\ntrigger id 1 oneshot\n";
        assert_eq!(
            error(nobody, 1),
            "line 4, column 1: trigger 1 needs 1 activations and has 0"
        );
        let unknown = "0->1 id 1 trigger 1 size 5\n1->0 start 0 size 5\n";
        assert_eq!(
            error(unknown, 0),
            "line 4, column 1: there is no trigger `1`"
        );
        let idle = "0->1 start 0 size 5 recv_done_trigger 9\n1->0 start 0 size 5\n";
        assert_eq!(error(idle, 0), "line 4, column 1: there is no trigger `9`");
    }
}
