//! Traces: what happened in a run, as lines of JSON after the manner of qlog (draft-ietf-quic-qlog-main-schema). `docs/trace.md` documents the
//! format.
//!
//! [`Writer`] writes a header and [`Event`]s. [`NetworkTrace`] is an [`Observer`](crate::observer::Observer) that writes what happens to packets,
//! [`Snapshots`] make events of an endpoint's statistics whenever the caller takes them, and the caller tells what its workload does.
//!
//! ```
//! use metaroce_sim::node::Progress;
//! use metaroce_sim::time::Time;
//! use metaroce_sim::trace::{Event, Header, Writer};
//!
//! let mut writer = Writer::new(Vec::new(), &Header::new("incast", 7)).unwrap();
//! writer.event(Time::from_us(5), Some(2), &Event::from(Progress::Acknowledged { id: 3 })).unwrap();
//! let text = String::from_utf8(writer.finish().unwrap()).unwrap();
//! assert_eq!(
//!     text.lines().nth(1),
//!     Some(r#"{"time":5000,"host":2,"name":"workload:message_acknowledged","data":{"message":3}}"#)
//! );
//! ```

mod event;
mod network;
mod record;
mod snapshot;

use std::io;

use serde::{Deserialize, Serialize};

pub use event::{Event, MessageRecord, Metrics, PathRecord};
pub use network::NetworkTrace;
pub use record::{BlockRecord, PacketRecord};
pub use snapshot::Snapshots;

use crate::capture;
use crate::network::Network;
use crate::packet::HostId;
use crate::port::Node;
use crate::time::Time;

/// The version of the format. It changes when a reader has to.
pub const VERSION: u32 = 1;

/// The first line of a trace.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format: [`VERSION`].
    pub metaroce_trace: u32,
    /// What was simulated.
    pub scenario: String,
    /// The seed that repeats it.
    pub seed: u64,
    /// The transport, if all hosts have the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// The ports that events may name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<PortRecord>,
}

impl Header {
    /// A header without ports.
    #[must_use]
    pub fn new(scenario: &str, seed: u64) -> Self {
        Self {
            metaroce_trace: VERSION,
            scenario: scenario.to_owned(),
            seed,
            ..Self::default()
        }
    }

    /// The same with all ports of a network.
    #[must_use]
    pub fn with_ports(mut self, network: &Network) -> Self {
        let host = |node| match node {
            Node::Host(host) => Some(host),
            Node::Switch(_) => None,
        };
        self.ports = (0..)
            .zip(&network.ports)
            .map(|(number, port)| PortRecord {
                port: number,
                name: capture::name(port),
                from_host: host(port.owner),
                to_host: host(port.to),
                plane: port.plane,
                mbps: port.config.mbps,
                delay_ps: port.config.delay.ps(),
            })
            .collect();
        self
    }
}

/// A port, in the header.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PortRecord {
    /// Its number.
    pub port: u32,
    /// Its name: `switch0-host3.p0` is that of switch 0 towards host 3 on plane 0.
    pub name: String,
    /// The host that it belongs to; none: a switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_host: Option<HostId>,
    /// The host that its wire leads to; none: a switch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_host: Option<HostId>,
    /// Its plane.
    pub plane: u8,
    /// The rate of its line, Mbit/s.
    pub mbps: u64,
    /// The delay of its wire, picoseconds.
    pub delay_ps: u64,
}

/// A line behind the first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Simulated time, nanoseconds.
    pub time: u64,
    /// The host at which it happened; none: in the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostId>,
    /// What happened: `name` and `data`.
    #[serde(flatten)]
    pub event: Event,
}

#[derive(Serialize)]
struct LineRef<'a> {
    time: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<HostId>,
    #[serde(flatten)]
    event: &'a Event,
}

/// Writes a trace.
#[derive(Debug)]
pub struct Writer<W: io::Write> {
    out: W,
}

impl<W: io::Write> Writer<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(mut out: W, header: &Header) -> io::Result<Self> {
        serde_json::to_writer(&mut out, header)?;
        out.write_all(b"\n")?;
        Ok(Self { out })
    }

    /// Writes an event.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn event(&mut self, now: Time, host: Option<HostId>, event: &Event) -> io::Result<()> {
        let line = LineRef {
            time: now.ns(),
            host,
            event,
        };
        serde_json::to_writer(&mut self.out, &line)?;
        self.out.write_all(b"\n")
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}
