//! Connection matrices of htsim, as they are.
//!
//! The format is that of `sim/datacenter/connection_matrix.cpp` (Broadcom's csg-htsim, and Ultra Ethernet's htsim): a header (`Nodes`,
//! `Connections`, `Triggers`, `Failures` and how many), then lines of three kinds:
//!
//! ```text
//! 0->5 id 1 start 0 size 2000000 send_done_trigger 7 prio 1
//! 5->9 id 2 trigger 7 size 2000000
//! trigger id 7 oneshot
//! failure switch_type CORE switch_id 3 link_id 0
//! ```
//!
//! `start` is in picoseconds, `size` in bytes. [`ConnectionMatrix::parse`] reads it and [`super::htsim_program`] makes it a program.

use std::collections::BTreeMap;

use super::text::{Line, ParseError, Problem, Word, lines};
use crate::packet::HostId;
use crate::time::Time;

/// When a connection starts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// At a time.
    At(Time),
    /// When a trigger (by its id) says so.
    Trigger(u32),
}

/// A line of the matrix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Connection {
    /// The sender.
    pub from: HostId,
    /// The receiver.
    pub to: HostId,
    /// The flow's number.
    pub id: Option<u32>,
    /// The message's number, if several connections are messages of one flow.
    pub message: Option<u32>,
    /// When it starts.
    pub start: Start,
    /// How much is sent.
    pub bytes: u64,
    /// The trigger that is activated when the sender knows that all has arrived.
    pub send_done: Option<u32>,
    /// The trigger that is activated when all has arrived.
    pub recv_done: Option<u32>,
    /// The priority, lower being more urgent. Programs know none.
    pub priority: Option<u32>,
    /// Where it was read.
    pub line: u32,
}

/// What a trigger does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TriggerKind {
    /// It is activated once and starts all that wait for it.
    OneShot,
    /// Each activation starts the next of those that wait for it.
    MultiShot,
    /// So many activations start all that wait for it.
    Barrier(u32),
}

/// A trigger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trigger {
    /// What it does.
    pub kind: TriggerKind,
    /// Where it was read.
    pub line: u32,
}

/// Which switches a failure is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tier {
    /// Those that hosts are at.
    Tor,
    /// Those above.
    Aggregation,
    /// The topmost.
    Core,
}

/// A link that has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The kind of switch.
    pub tier: Tier,
    /// Which of them.
    pub switch: u32,
    /// Which of its links.
    pub link: u32,
}

/// A connection matrix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionMatrix {
    /// How many hosts there are.
    pub nodes: u32,
    /// The connections, in the order of the file.
    pub connections: Vec<Connection>,
    /// The triggers by id.
    pub triggers: BTreeMap<u32, Trigger>,
    /// Links that have failed.
    pub failures: Vec<Failure>,
}

impl ConnectionMatrix {
    /// Reads a file.
    ///
    /// # Errors
    /// If it does not keep to the format.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut header = [None; 4];
        let mut matrix = Self {
            nodes: 0,
            connections: Vec::new(),
            triggers: BTreeMap::new(),
            failures: Vec::new(),
        };
        let mut in_header = true;
        let mut last = 1;
        for mut line in lines(text) {
            let first = line.take();
            last = first.line;
            let place = NAMES
                .iter()
                .position(|&name| in_header && name == first.text);
            if let Some(place) = place {
                let count = line.take();
                line.finish()?;
                once(&mut header[place], &first, (count.number::<u32>()?, count))?;
                continue;
            }
            in_header = false;
            match first.text {
                "trigger" => matrix.trigger(line, &first)?,
                "failure" => matrix.failures.push(failure(line)?),
                text if text.contains("->") => {
                    let nodes = header[0].map_or(0, |(count, _)| count);
                    matrix.connections.push(connection(line, &first, nodes)?);
                }
                text => return Err(first.error(Problem::Unknown(text.to_string()))),
            }
        }
        let end = Word {
            text: "",
            line: last,
            column: 1,
        };
        let Some((nodes, _)) = header[0] else {
            return Err(end.error(Problem::Missing("`Nodes`")));
        };
        matrix.nodes = nodes;
        let found = [
            matrix.connections.len(),
            matrix.triggers.len(),
            matrix.failures.len(),
        ];
        for ((&what, said), found) in NAMES[1..].iter().zip(&header[1..]).zip(found) {
            let (said, at) = said.unwrap_or((0, end));
            let (said, found) = (u64::from(said), found as u64);
            if said != found {
                return Err(at.error(Problem::Count { what, said, found }));
            }
        }
        Ok(matrix)
    }

    fn trigger(&mut self, mut line: Line<'_>, first: &Word<'_>) -> Result<(), ParseError> {
        let (mut id, mut count, mut kind) = (None, None, None);
        loop {
            let word = line.take();
            match word.text {
                "" => break,
                "id" => once(&mut id, &word, positive(&line.take())?)?,
                "count" => once(&mut count, &word, positive(&line.take())?)?,
                "oneshot" => once(&mut kind, &word, TriggerKind::OneShot)?,
                "multishot" => once(&mut kind, &word, TriggerKind::MultiShot)?,
                "barrier" => once(&mut kind, &word, TriggerKind::Barrier(0))?,
                other => return Err(word.error(Problem::Unknown(other.to_string()))),
            }
        }
        let missing = |what| first.error(Problem::Missing(what));
        let id = id.ok_or_else(|| missing("`id`"))?;
        let kind = match kind.ok_or_else(|| missing("`oneshot`, `multishot` or `barrier`"))? {
            TriggerKind::Barrier(_) => {
                TriggerKind::Barrier(count.ok_or_else(|| missing("`count`"))?)
            }
            kind => kind,
        };
        let line = first.line;
        if self.triggers.insert(id, Trigger { kind, line }).is_some() {
            return Err(first.error(Problem::Twice(format!("trigger id {id}"))));
        }
        Ok(())
    }
}

const NAMES: [&str; 4] = ["Nodes", "Connections", "Triggers", "Failures"];

fn once<T>(place: &mut Option<T>, word: &Word<'_>, value: T) -> Result<(), ParseError> {
    if place.replace(value).is_some() {
        return Err(word.error(Problem::Twice(word.text.to_string())));
    }
    Ok(())
}

fn positive(word: &Word<'_>) -> Result<u32, ParseError> {
    match word.number()? {
        0 => Err(word.error(Problem::Range(word.text.to_string()))),
        id => Ok(id),
    }
}

/// A time in picoseconds, which may have a point or an exponent: htsim reads it as such.
fn picoseconds(word: &Word<'_>) -> Result<Time, ParseError> {
    if let Ok(ps) = word.number::<u64>() {
        return Ok(Time::from_ps(ps));
    }
    match word.text.parse::<f64>() {
        Ok(ps) if (0.0..1e19).contains(&ps) => Ok(Time::from_ps(ps as u64)),
        Ok(_) => Err(word.error(Problem::Range(word.text.to_string()))),
        Err(_) => Err(word.expected("a time in picoseconds")),
    }
}

fn connection(mut line: Line<'_>, first: &Word<'_>, nodes: u32) -> Result<Connection, ParseError> {
    let (from, to) = first.text.split_once("->").unwrap_or_default();
    let host = |text, skip: usize| {
        let word = Word {
            text,
            column: first.column + skip as u32,
            ..*first
        };
        let host = word.number::<HostId>()?;
        if host >= nodes {
            let name = text.to_string();
            return Err(word.error(Problem::NoSuch { what: "node", name }));
        }
        Ok(host)
    };
    let (from, to) = (host(from, 0)?, host(to, from.len() + 2)?);
    if from == to {
        return Err(first.error(Problem::Mismatch(format!("node {from} sends to itself"))));
    }
    let (mut id, mut message, mut start, mut bytes) = (None, None, None, None);
    let (mut send_done, mut recv_done, mut priority) = (None, None, None);
    loop {
        let word = line.take();
        match word.text {
            "" => break,
            "id" => once(&mut id, &word, positive(&line.take())?)?,
            "msg" => once(&mut message, &word, positive(&line.take())?)?,
            "start" => once(&mut start, &word, Start::At(picoseconds(&line.take())?))?,
            "trigger" => once(&mut start, &word, Start::Trigger(positive(&line.take())?))?,
            "size" => once(&mut bytes, &word, line.take())?,
            "send_done_trigger" => once(&mut send_done, &word, positive(&line.take())?)?,
            "recv_done_trigger" => once(&mut recv_done, &word, positive(&line.take())?)?,
            "prio" => once(&mut priority, &word, line.take().number()?)?,
            other => return Err(word.error(Problem::Unknown(other.to_string()))),
        }
    }
    let missing = |what| first.error(Problem::Missing(what));
    let size = bytes.ok_or_else(|| missing("`size`"))?;
    let bytes = size.number::<u64>()?;
    if bytes == 0 {
        // htsim's flows without an end.
        return Err(size.error(Problem::Range(String::from("size 0"))));
    }
    Ok(Connection {
        from,
        to,
        id,
        message,
        start: start.ok_or_else(|| missing("`start` or `trigger`"))?,
        bytes,
        send_done,
        recv_done,
        priority,
        line: first.line,
    })
}

fn failure(mut line: Line<'_>) -> Result<Failure, ParseError> {
    let (mut tier, mut switch, mut link) = (None, None, None);
    loop {
        let word = line.take();
        match word.text {
            "" => break,
            "switch_type" => {
                let kind = line.take();
                let value = match kind.text {
                    "TOR" => Tier::Tor,
                    "AGG" => Tier::Aggregation,
                    "CORE" => Tier::Core,
                    _ => return Err(kind.expected("`TOR`, `AGG` or `CORE`")),
                };
                once(&mut tier, &word, value)?;
            }
            "switch_id" => once(&mut switch, &word, line.take().number()?)?,
            "link_id" => once(&mut link, &word, line.take().number()?)?,
            other => return Err(word.error(Problem::Unknown(other.to_string()))),
        }
    }
    let end = line.peek();
    let missing = |what| end.error(Problem::Missing(what));
    Ok(Failure {
        tier: tier.ok_or_else(|| missing("`switch_type`"))?,
        switch: switch.ok_or_else(|| missing("`switch_id`"))?,
        link: link.ok_or_else(|| missing("`link_id`"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_with_everything_in_it() {
        let text = "# all there is\n\
            Nodes 16\nConnections 3\nTriggers 2\nFailures 1\n\n\
            0->13 start 0 size 2000000\n\
            13->0 id 7 start 1.5e6 size 1 send_done_trigger 2 recv_done_trigger 1 prio 3 \n\
            3->0 id 8 msg 1 trigger 1 size 4294967296\n\
            trigger id 1 oneshot\n trigger id 2 count 2 barrier\n\
            failure switch_type AGG switch_id 4 link_id 1\n";
        let matrix = ConnectionMatrix::parse(text).unwrap();
        assert_eq!((matrix.nodes, matrix.connections.len()), (16, 3));
        assert_eq!(
            matrix.connections[1],
            Connection {
                from: 13,
                to: 0,
                id: Some(7),
                message: None,
                start: Start::At(Time::from_ps(1_500_000)),
                bytes: 1,
                send_done: Some(2),
                recv_done: Some(1),
                priority: Some(3),
                line: 8,
            }
        );
        assert_eq!(matrix.connections[2].start, Start::Trigger(1));
        assert_eq!(matrix.connections[2].bytes, 1 << 32);
        assert_eq!(matrix.triggers[&2].kind, TriggerKind::Barrier(2));
        let failed = Failure {
            tier: Tier::Aggregation,
            switch: 4,
            link: 1,
        };
        assert_eq!(matrix.failures, [failed]);
    }

    #[test]
    fn errors_name_line_and_column() {
        let error = |lines: &str| {
            let text = format!("Nodes 4\nConnections 1\n{lines}\n");
            ConnectionMatrix::parse(&text).unwrap_err().to_string()
        };
        for (line, message) in [
            (
                "0->1 start 0 sise 5",
                "line 3, column 14: `sise` is not known here",
            ),
            (
                "0->1 start x size 5",
                "line 3, column 12: a time in picoseconds expected, not `x`",
            ),
            (
                "0->1 start -1 size 5",
                "line 3, column 12: `-1` is out of range",
            ),
            (
                "0->1 start 0 size",
                "line 3, column 18: a number expected, not the end of the line",
            ),
            (
                "0->1 start 0 size 0",
                "line 3, column 19: `size 0` is out of range",
            ),
            ("0->1 start 0", "line 3, column 1: `size` is missing"),
            (
                "0->1 size 5",
                "line 3, column 1: `start` or `trigger` is missing",
            ),
            (
                "0->1 start 0 trigger 2 size 5",
                "line 3, column 14: `trigger` is there twice",
            ),
            (
                "0->1 id 0 start 0 size 5",
                "line 3, column 9: `0` is out of range",
            ),
            (
                "0->12 start 0 size 5",
                "line 3, column 4: there is no node `12`",
            ),
            (
                "2->2 start 0 size 5",
                "line 3, column 1: node 2 sends to itself",
            ),
            (
                "0- >1 start 0 size 5",
                "line 3, column 1: `0-` is not known here",
            ),
            (
                "trigger id 1",
                "line 3, column 1: `oneshot`, `multishot` or `barrier` is missing",
            ),
            (
                "trigger id 1 barrier",
                "line 3, column 1: `count` is missing",
            ),
            (
                "failure switch_type TOP",
                "line 3, column 21: `TOR`, `AGG` or `CORE` expected, not `TOP`",
            ),
            (
                "0->1 start 0 size 5\n1->0 start 0 size 5",
                "line 2, column 13: 1 Connections announced, 2 found",
            ),
            (
                "0->1 start 0 size 5\ntrigger id 1 oneshot",
                "line 4, column 1: 0 Triggers announced, 1 found",
            ),
            ("Grp 0 1", "line 3, column 1: `Grp` is not known here"),
        ] {
            assert_eq!(error(line), message);
        }
        assert!(ConnectionMatrix::parse("").is_err());
    }
}
