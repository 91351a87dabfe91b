//! `perf`: bandwidth and latency of operations against a server.

mod bandwidth;
mod figures;
mod latency;
mod operation;
mod verify;
mod watch;

use crate::args::{Address, ConnectionArgs, NicArgs, peer_addresses};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::serve::Server;
use crate::session::{self, Session};
use crate::units::{parse_duration, parse_size};
use clap::{Args, ValueEnum};
use figures::Outcome;
use metaroce_soft::core::memory::Access;
use metaroce_soft::{Buffer, MESSAGES, MemoryRegion, Nic, STREAMS};
use serde_json::json;
use std::time::Duration;
use watch::Watch;

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Kind {
    /// WRITE to the server's memory
    Write,
    /// READ the server's memory
    Read,
    /// SEND to the server's buffers
    Send,
    /// Fetch-and-add on a word of the server's memory
    Atomic,
}

/// Measure operations against `metaroce serve`, here or on another machine
#[derive(Args, Debug)]
pub struct PerfArgs {
    /// Operation to measure
    #[arg(value_enum)]
    kind: Kind,
    /// The server, IP or IP:PORT, one address per --plane
    #[arg(
        value_name = "PEER",
        required_unless_present = "local",
        conflicts_with = "local"
    )]
    peer: Vec<Address>,
    /// Serve it yourself, on loopback
    #[arg(long)]
    local: bool,
    /// Measure the time of single operations instead of bandwidth
    #[arg(long)]
    latency: bool,
    /// Bytes of a message; several make a sweep [default: 64K, or 64 with --latency; 8 for atomics]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = parse_size)]
    size: Vec<u64>,
    /// All sizes from 64 bytes to 1 MiB
    #[arg(long, conflicts_with = "size")]
    sweep: bool,
    /// Streams to use in turn
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=STREAMS as i64))]
    streams: u16,
    /// Operations open at one time, all streams together
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=MESSAGES as i64))]
    depth: u16,
    /// How long to measure each size [default: 3s unless --count or --bytes is given]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Duration>,
    /// How many operations to measure of each size
    #[arg(long, value_name = "OPERATIONS", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// How many bytes to move with each size
    #[arg(long, value_name = "SIZE", conflicts_with = "count", value_parser = parse_size)]
    bytes: Option<u64>,
    /// Check every byte (write, read) or the final count (atomic)
    #[arg(long)]
    verify: bool,
    /// Most bytes of the server's window to use
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_size)]
    window: u64,
    /// Print what happens to the connection and its planes as it happens: JSON lines on standard error
    #[arg(long)]
    events: bool,
    /// Time to wait for the connection
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = parse_duration)]
    connect_timeout: Duration,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    nic: NicArgs,
}

/// When a measurement ends.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    count: u64,
    duration: Duration,
}

/// Everything that a measurement needs.
pub struct Bench<'a> {
    arguments: &'a PerfArgs,
    nic: &'a Nic,
    session: &'a Session,
    local: &'a MemoryRegion,
    window: u64,
    interrupt: &'a Interrupt,
    quiet: bool,
    watch: &'a Watch,
}

/// Runs the command.
///
/// # Errors
/// If the peer is not reached, is lost, or operations fail.
pub fn run(arguments: &PerfArgs, json: bool, interrupt: &Interrupt) -> Result<(), Failure> {
    if arguments.verify && arguments.kind == Kind::Send {
        return Err(Failure::Usage(
            "sends cannot be verified from here: use write, read or atomic, or the demo".to_owned(),
        ));
    }
    if arguments.local {
        with_local_server(arguments, json, interrupt)
    } else {
        let peer = peer_addresses(&arguments.peer, &arguments.nic)?;
        measure(arguments, &peer, json, interrupt)
    }
}

fn with_local_server(
    arguments: &PerfArgs,
    json: bool,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let mut nic = NicArgs {
        faults: Default::default(),
        first_source_port: None,
        ..arguments.nic.clone()
    };
    for plane in &mut nic.planes {
        *plane = plane.without_port();
    }
    let server = Server::new(nic.builder(0).build()?, arguments.window)?;
    let peer = server.nic().addresses().to_vec();
    let done = Interrupt::default();
    let server_done = done.clone();
    std::thread::scope(|scope| {
        let served = scope.spawn(move || server.run(|_| false, || server_done.requested()));
        let result = measure(arguments, &peer, json, interrupt);
        done.request();
        let served = served
            .join()
            .map_err(|_| Failure::System("the server's thread died".to_owned()))?;
        result.and(served)
    })
}

fn measure(
    arguments: &PerfArgs,
    peer: &[std::net::SocketAddr],
    json: bool,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let nic = arguments
        .nic
        .builder(0)
        .connections(1)
        .listen(false)
        .build()?;
    let session = session::open(
        &nic,
        peer,
        arguments.connection.config(&nic),
        arguments.connect_timeout,
    )?;
    let window = arguments.window.min(session.window.length);
    let bytes = usize::try_from(window)
        .map_err(|_| Failure::Usage("the window does not fit into memory".to_owned()))?;
    let buffer = Buffer::new(bytes)
        .map_err(|error| Failure::System(format!("{bytes} bytes of memory: {error}")))?;
    let local = nic.register(&buffer, Access::LOCAL_WRITE)?;
    let watch = Watch::new(arguments.events);
    watch.opened();
    let bench = Bench {
        arguments,
        nic: &nic,
        session: &session,
        local: &local,
        window,
        interrupt,
        quiet: json,
        watch: &watch,
    };
    let mut outcomes = Vec::new();
    for size in arguments.sizes() {
        if size > window {
            return Err(Failure::Usage(format!(
                "messages of {size} bytes do not fit into the window of {window}: raise --window here and at the server"
            )));
        }
        let outcome = if arguments.latency {
            latency::run(&bench, size)?
        } else {
            bandwidth::run(&bench, size)?
        };
        let ended = outcome.ended_early();
        if !json {
            outcome.show(outcomes.is_empty());
        }
        outcomes.push(outcome);
        if ended || interrupt.requested() {
            break;
        }
    }
    let statistics = figures::connection_json(&nic, &session);
    if json {
        let results: Vec<_> = outcomes.iter().map(Outcome::to_json).collect();
        crate::output::json(&json!({
            "command": "perf",
            "interrupted": interrupt.requested(),
            "paths": arguments.connection.paths,
            "payload_bytes": nic.payload_bytes(),
            "results": results,
            "events": watch.into_events(&nic),
            "connection": statistics,
        }));
    } else {
        figures::show_connection(&statistics);
    }
    let failed = outcomes.iter().find_map(Outcome::failure);
    if failed.is_none() {
        nic.shut_down(Duration::from_secs(2));
    }
    failed.map_or(Ok(()), Err)
}

impl PerfArgs {
    fn sizes(&self) -> Vec<u64> {
        match self.kind {
            Kind::Atomic => vec![8],
            _ if self.sweep => (6..=20).map(|shift| 1 << shift).collect(),
            _ if !self.size.is_empty() => self.size.clone(),
            _ if self.latency => vec![64],
            _ => vec![64 << 10],
        }
    }

    fn limit(&self, size: u64) -> Limit {
        let count = match (self.count, self.bytes) {
            (Some(count), _) => Some(count),
            (None, Some(bytes)) => Some(bytes.div_ceil(size.max(1)).max(1)),
            (None, None) => None,
        };
        let duration = match (self.duration, count) {
            (Some(duration), _) => duration,
            (None, Some(_)) => Duration::MAX,
            (None, None) => Duration::from_secs(3),
        };
        Limit {
            count: count.unwrap_or(u64::MAX),
            duration,
        }
    }
}
