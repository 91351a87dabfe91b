//! `serve`: the passive side of measurements.

use crate::args::{DEFAULT_PORT, NicArgs};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;
use crate::session::{SERVICE, send_hello};
use crate::units::{parse_size, show_count, show_size};
use clap::Args;
use metaroce_soft::core::CloseMode;
use metaroce_soft::core::memory::Access;
use metaroce_soft::core::work::{
    CloseReason, CompletionKind, ConnectionHandle, Event, ReceiveRequest, Status,
};
use metaroce_soft::{Buffer, Connection, MemoryRegion, Nic, STREAMS};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Serve memory to `metaroce perf` until interrupted
#[derive(Args, Debug)]
pub struct ServeArgs {
    #[command(flatten)]
    nic: NicArgs,
    /// Memory that each connection may write, read and count in
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = parse_size)]
    window: u64,
    /// End when the first connection has ended
    #[arg(long)]
    once: bool,
    /// Connections at one time
    #[arg(long, default_value_t = 64)]
    connections: usize,
}

/// Buffers for messages to come, shared by all connections.
const POSTED_BUFFERS: u64 = 512;
const SHARED_QUEUE: u8 = 0;

/// Runs the command.
///
/// # Errors
/// If the NIC cannot be made.
pub fn run(arguments: &ServeArgs, json: bool, interrupt: &Interrupt) -> Result<(), Failure> {
    let nic = arguments
        .nic
        .builder(DEFAULT_PORT)
        .connections(arguments.connections)
        .build()?;
    let addresses: Vec<_> = nic.addresses().iter().map(ToString::to_string).collect();
    if json {
        output::json_line(
            &json!({ "event": "listening", "addresses": addresses, "payload_bytes": nic.payload_bytes() }),
        );
    } else {
        output::line(format_args!(
            "Listening on {} (payload {} bytes). Ctrl-C ends it.",
            addresses.join(", "),
            nic.payload_bytes()
        ));
    }
    let server = Server::new(nic, arguments.window)?;
    let mut ended = 0u64;
    server.run(
        |event| {
            if json {
                output::json_line(&event.to_json());
            } else {
                output::line(event.to_text());
            }
            ended += u64::from(matches!(event, Report::Closed { .. }));
            interrupt.requested() || (arguments.once && ended > 0)
        },
        || interrupt.requested(),
    )
}

/// What a server tells its user.
#[derive(Debug)]
pub enum Report {
    /// A client connected.
    Connected {
        /// The connection.
        connection: ConnectionHandle,
    },
    /// A client is gone.
    Closed {
        /// The connection.
        connection: ConnectionHandle,
        /// Why.
        reason: CloseReason,
        /// How long it was there.
        after: Duration,
        /// Payload bytes that it placed.
        bytes: u64,
    },
    /// A plane stopped or began to carry packets.
    Plane {
        /// The connection.
        connection: ConnectionHandle,
        /// The plane.
        plane: u8,
        /// Whether it carries.
        up: bool,
    },
    /// A client's stream failed.
    StreamFailed {
        /// The connection.
        connection: ConnectionHandle,
        /// The stream.
        stream: u16,
        /// Why.
        status: Status,
    },
}

impl Report {
    fn to_json(&self) -> Value {
        match self {
            Self::Connected { connection } => {
                json!({ "event": "connected", "connection": connection.to_bits() })
            }
            Self::Closed {
                connection,
                reason,
                after,
                bytes,
            } => json!({
                "event": "closed", "connection": connection.to_bits(), "reason": format!("{reason:?}"),
                "seconds": after.as_secs_f64(), "received_bytes": bytes,
            }),
            Self::Plane {
                connection,
                plane,
                up,
            } => {
                json!({ "event": if *up { "plane_up" } else { "plane_down" }, "connection": connection.to_bits(), "plane": plane })
            }
            Self::StreamFailed {
                connection,
                stream,
                status,
            } => json!({
                "event": "stream_failed", "connection": connection.to_bits(), "stream": stream, "status": format!("{status:?}"),
            }),
        }
    }

    fn to_text(&self) -> String {
        match self {
            Self::Connected { connection } => format!("#{:x}: connected", connection.to_bits()),
            Self::Closed {
                connection,
                reason,
                after,
                bytes,
            } => {
                let received = show_size(*bytes);
                format!(
                    "#{:x}: ended ({reason:?}) after {:.1} s, received {received}",
                    connection.to_bits(),
                    after.as_secs_f64()
                )
            }
            Self::Plane {
                connection,
                plane,
                up,
            } => {
                format!(
                    "#{:x}: plane {plane} is {}",
                    connection.to_bits(),
                    if *up { "back" } else { "down" }
                )
            }
            Self::StreamFailed {
                connection,
                stream,
                status,
            } => {
                format!(
                    "#{:x}: stream {} failed: {status:?}",
                    connection.to_bits(),
                    show_count(u64::from(*stream))
                )
            }
        }
    }
}

struct Client {
    connection: Connection,
    since: Instant,
    received: u64,
    _window: MemoryRegion,
}

/// A NIC that serves memory.
pub struct Server {
    nic: Nic,
    window: u64,
    sink: MemoryRegion,
}

impl Server {
    /// A server of `window` bytes per connection.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn new(nic: Nic, window: u64) -> Result<Self, Failure> {
        let sink = nic.register(&buffer(window)?, Access::LOCAL_WRITE)?;
        let server = Self { nic, window, sink };
        for id in 0..POSTED_BUFFERS {
            server.post_buffer(id)?;
        }
        Ok(server)
    }

    /// Where it listens.
    #[must_use]
    pub fn nic(&self) -> &Nic {
        &self.nic
    }

    fn post_buffer(&self, id: u64) -> Result<(), metaroce_soft::Error> {
        let length = u32::try_from(self.window)
            .unwrap_or(u32::MAX)
            .min(metaroce_soft::core::work::MAX_MESSAGE_BYTES);
        self.nic.post_shared_receive(
            SHARED_QUEUE,
            &ReceiveRequest {
                id,
                local: self.sink.slice(0, length),
            },
        )
    }

    /// Serves until `report` or `stop` say that it is enough.
    ///
    /// # Errors
    /// None at present; what happens to a single connection is reported.
    pub fn run(
        self,
        mut report: impl FnMut(Report) -> bool,
        stop: impl Fn() -> bool,
    ) -> Result<(), Failure> {
        let mut clients: HashMap<ConnectionHandle, Client> = HashMap::new();
        let mut completions = Vec::new();
        let mut enough = false;
        while !enough && !stop() {
            let deadline = Instant::now() + Duration::from_millis(100);
            let queue = self.nic.completions();
            let mut event = None;
            self.nic.progress_until(Some(deadline), || {
                !queue.is_empty() || self.nic_has_news(&mut event)
            });
            while let Some(connection) = self.nic.try_accept() {
                let handle = connection.handle();
                match self.welcome(&connection) {
                    Ok(window) => {
                        clients.insert(
                            handle,
                            Client {
                                connection,
                                since: Instant::now(),
                                received: 0,
                                _window: window,
                            },
                        );
                        enough |= report(Report::Connected { connection: handle });
                    }
                    // The only way to tell the client is to end the connection.
                    Err(_) => drop(connection.close(CloseMode::Abort(2))),
                }
            }
            completions.clear();
            queue.poll_into(&mut completions, 1024);
            for completion in &completions {
                if matches!(
                    completion.kind,
                    CompletionKind::Receive | CompletionKind::ReceiveWriteImmediate
                ) {
                    // If the queue is full it needs no more.
                    let _ = self.post_buffer(completion.id);
                }
            }
            for client in clients.values_mut() {
                if let Some(statistics) = client.connection.statistics() {
                    client.received = statistics.bytes_received;
                }
            }
            while let Some(event) = event.take().or_else(|| self.nic.poll_event()) {
                let said = match event {
                    Event::Closed { connection, reason } => {
                        clients.remove(&connection).map(|client| Report::Closed {
                            connection,
                            reason,
                            after: client.since.elapsed(),
                            bytes: client.received,
                        })
                    }
                    Event::PlaneDown { connection, plane } => Some(Report::Plane {
                        connection,
                        plane,
                        up: false,
                    }),
                    Event::PlaneUp { connection, plane } => Some(Report::Plane {
                        connection,
                        plane,
                        up: true,
                    }),
                    Event::StreamFailed {
                        connection,
                        stream,
                        status,
                        ..
                    } => Some(Report::StreamFailed {
                        connection,
                        stream,
                        status,
                    }),
                    _ => None,
                };
                if let Some(said) = said {
                    enough |= report(said);
                }
            }
        }
        drop(clients);
        self.nic.shut_down(Duration::from_millis(500));
        Ok(())
    }

    fn nic_has_news(&self, event: &mut Option<Event>) -> bool {
        *event = self.nic.poll_event();
        event.is_some()
    }

    fn welcome(&self, connection: &Connection) -> Result<MemoryRegion, Failure> {
        if connection.service() != SERVICE {
            return Err(Failure::Connection("a client of another kind".to_owned()));
        }
        let window = self.nic.register(&buffer(self.window)?, Access::ALL)?;
        for stream in 0..STREAMS as u16 {
            // A stream beyond what was negotiated is refused, and not needed.
            if connection
                .attach_shared_queue(stream, SHARED_QUEUE)
                .is_err()
            {
                break;
            }
        }
        send_hello(connection, &window)?;
        Ok(window)
    }
}

fn buffer(length: u64) -> Result<Buffer, Failure> {
    let bytes = usize::try_from(length)
        .map_err(|_| Failure::Usage(format!("{length} bytes do not fit into memory")))?;
    Buffer::new(bytes).map_err(|error| {
        Failure::System(format!(
            "{} of memory are not to be had: {error}",
            show_size(length)
        ))
    })
}
