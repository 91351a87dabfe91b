//! The figures of a report as tables, by column: whoever writes files or hands them on needs nothing else.

use super::report::{DROP_NAMES, Report};
use crate::observer::reason_name;

/// The values of a column, one a row; none where there is none.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    /// Whole numbers.
    Integers(Vec<Option<u64>>),
    /// Others.
    Numbers(Vec<Option<f64>>),
    /// Texts.
    Texts(Vec<String>),
    /// Yes or no.
    Booleans(Vec<bool>),
}

impl Values {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Numbers(values) => values.len(),
            Self::Texts(values) => values.len(),
            Self::Booleans(values) => values.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A table.
#[derive(Clone, PartialEq, Debug)]
pub struct Columns {
    /// Its name.
    pub name: &'static str,
    /// Its columns, all as long as each other, and their names.
    pub columns: Vec<(String, Values)>,
}

impl Columns {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            columns: Vec::new(),
        }
    }

    fn integers<'a, T: 'a>(
        mut self,
        name: &str,
        rows: &'a [T],
        value: impl Fn(&'a T) -> Option<u64>,
    ) -> Self {
        let values = Values::Integers(rows.iter().map(value).collect());
        self.columns.push((name.to_owned(), values));
        self
    }

    fn numbers<'a, T: 'a>(
        mut self,
        name: &str,
        rows: &'a [T],
        value: impl Fn(&'a T) -> Option<f64>,
    ) -> Self {
        let values = Values::Numbers(rows.iter().map(value).collect());
        self.columns.push((name.to_owned(), values));
        self
    }

    fn texts<T>(mut self, name: &str, rows: &[T], value: impl Fn(&T) -> String) -> Self {
        let values = Values::Texts(rows.iter().map(value).collect());
        self.columns.push((name.to_owned(), values));
        self
    }

    fn booleans<T>(mut self, name: &str, rows: &[T], value: impl Fn(&T) -> bool) -> Self {
        let values = Values::Booleans(rows.iter().map(value).collect());
        self.columns.push((name.to_owned(), values));
        self
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, values)| values.len())
    }
}

/// The tables of a report: `flows`, `groups`, `ports`, and `series` if there is one. `queues` names the ports that are watched.
#[must_use]
pub fn tables(report: &Report, queues: &[String]) -> Vec<Columns> {
    let flows = &report.flows;
    let groups = &report.groups;
    let ports = &report.ports;
    let series = &report.series;
    let mut all = vec![
        Columns::new("flows")
            .integers("task", flows, |flow| Some(flow.task.into()))
            .integers("group", flows, |flow| Some(flow.group.into()))
            .integers("from", flows, |flow| Some(flow.from.into()))
            .integers("to", flows, |flow| Some(flow.to.into()))
            .integers("bytes", flows, |flow| Some(flow.bytes))
            .integers("started_ns", flows, |flow| flow.started_ns)
            .integers("delivered_ns", flows, |flow| flow.delivered_ns)
            .integers("acknowledged_ns", flows, |flow| flow.acknowledged_ns)
            .integers("fct_ns", flows, |flow| flow.fct_ns)
            .integers("ideal_ns", flows, |flow| Some(flow.ideal_ns))
            .numbers("slowdown", flows, |flow| flow.slowdown)
            .integers("lost_bytes", flows, |flow| Some(flow.lost_bytes))
            .booleans("failed", flows, |flow| flow.failed),
        Columns::new("groups")
            .integers("group", groups, |group| Some(group.group.into()))
            .texts("name", groups, |group| group.name.clone())
            .integers("tasks", groups, |group| Some(group.tasks))
            .integers("done", groups, |group| Some(group.done))
            .integers("started_ns", groups, |group| group.started_ns)
            .integers("ended_ns", groups, |group| group.ended_ns)
            .numbers("algbw_gbps", groups, |group| group.algbw_gbps)
            .numbers("busbw_gbps", groups, |group| group.busbw_gbps),
    ];
    let mut table = Columns::new("ports")
        .integers("port", ports, |port| Some(port.port.into()))
        .texts("name", ports, |port| port.name.clone())
        .texts("tier", ports, |port| port.tier.to_owned())
        .integers("plane", ports, |port| Some(port.plane.into()))
        .booleans("up", ports, |port| port.up)
        .integers("mbps", ports, |port| Some(port.mbps))
        .integers("sent", ports, |port| Some(port.sent))
        .integers("sent_bytes", ports, |port| Some(port.sent_bytes))
        .integers("busy_ns", ports, |port| Some(port.busy_ns))
        .integers("max_queue_bytes", ports, |port| Some(port.max_queue_bytes))
        .integers("marked", ports, |port| Some(port.marked))
        .integers("trimmed", ports, |port| Some(port.trimmed))
        .integers("corrupted", ports, |port| Some(port.corrupted))
        .integers("pauses", ports, |port| Some(port.pauses))
        .integers("blocked_ns", ports, |port| Some(port.blocked_ns));
    for (index, &reason) in DROP_NAMES.iter().enumerate() {
        let name = format!("dropped_{}", reason_name(reason));
        table = table.integers(&name, ports, |port| Some(port.drops[index]));
    }
    all.push(table);
    if !series.is_empty() {
        let mut table = Columns::new("series")
            .integers("time_ns", series, |bin| Some(bin.time_ns))
            .numbers("goodput_gbps", series, |bin| Some(bin.goodput_gbps))
            .integers("retransmissions", series, |bin| Some(bin.retransmissions));
        for (index, name) in queues.iter().enumerate() {
            let column = format!("queue_bytes {name}");
            table = table.integers(&column, series, |bin| bin.queues.get(index).copied());
        }
        all.push(table);
    }
    all
}
