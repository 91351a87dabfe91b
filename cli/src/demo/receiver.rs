//! The demo's receiving end: checks what was written to it, and tells the sender how far it is.

use super::sender::GREETING;
use super::{Progress, Transfer};
use crate::args::NicArgs;
use crate::content;
use crate::failure::Failure;
use metaroce_soft::core::memory::{Access, RemoteAddress};
use metaroce_soft::core::stats::{ConnectionStatistics, PathStatistics};
use metaroce_soft::core::work::{
    CompletionKind, Operation, ReceiveRequest, Source, Status, WorkFlags, WorkRequest,
};
use metaroce_soft::{Buffer, Connection, NicStatistics, Phase};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// What the sender needs to know.
pub struct Hello {
    pub addresses: Vec<SocketAddr>,
    pub window: RemoteAddress,
}

/// What the receiver found.
pub struct Received {
    pub verified: u64,
    pub wrong: Option<String>,
    /// From the first completion to the last.
    pub elapsed: Duration,
    pub connection: Option<ConnectionStatistics>,
    pub paths: Vec<PathStatistics>,
    pub nic: NicStatistics,
}

/// Buffers posted so that immediates have something to use up.
const POSTED: u64 = 256;

pub fn run(
    settings: &NicArgs,
    transfer: Transfer,
    progress: &Progress,
    hello: Sender<Hello>,
) -> Result<Received, Failure> {
    let quiet = NicArgs {
        faults: Default::default(),
        first_source_port: None,
        ..settings.clone()
    };
    let nic = quiet.builder(0).connections(1).build()?;
    // The messages' places, and one for the greeting.
    let window = transfer.window() + GREETING as u64;
    let buffer = Buffer::new(window as usize)
        .map_err(|error| Failure::System(format!("{window} bytes of memory: {error}")))?;
    let region = nic.register(&buffer, Access::REMOTE_WRITE.with(Access::LOCAL_WRITE))?;
    // If the sender is gone it says why itself.
    let _ = hello.send(Hello {
        addresses: nic.addresses().to_vec(),
        window: region.remote(0),
    });
    let connection = loop {
        match nic.accept(Some(Duration::from_millis(100))) {
            Ok(connection) => break Some(connection),
            Err(_) if progress.stopped() => break None,
            Err(_) => {}
        }
    };
    let mut received = Received {
        verified: 0,
        wrong: None,
        elapsed: Duration::ZERO,
        connection: None,
        paths: Vec::new(),
        nic: nic.statistics(),
    };
    let Some(connection) = connection else {
        return Ok(received);
    };
    let take = |id| {
        connection.post_receive(
            0,
            &ReceiveRequest {
                id,
                local: region.slice(0, 0),
            },
        )
    };
    for id in 0..POSTED {
        take(id)?;
    }
    // The sender's counter of checked messages: its address comes with the first message.
    let mut counter: Option<RemoteAddress> = None;
    let (mut next, mut started) = (0, None);
    let mut scratch = vec![0; transfer.message as usize];
    let mut completions = Vec::new();
    while next < transfer.messages() && received.wrong.is_none() && !progress.stopped() {
        let queue = nic.completions();
        nic.progress_until(Some(Instant::now() + Duration::from_millis(100)), || {
            !queue.is_empty() || connection.phase() != Phase::Open
        });
        completions.clear();
        queue.poll_into(&mut completions, 64);
        if completions.is_empty() && connection.phase() != Phase::Open {
            break;
        }
        for completion in &completions {
            if completion.kind == CompletionKind::Write {
                continue;
            }
            if matches!(completion.status, Status::Flushed | Status::ConnectionLost) {
                // The connection has ended; the sender says why.
                continue;
            }
            if completion.status != Status::Success {
                received
                    .wrong
                    .get_or_insert(format!("a receive failed: {:?}", completion.status));
                break;
            }
            take(completion.id)?;
            started.get_or_insert_with(Instant::now);
            if counter.is_none() {
                counter = Some(counter_of(&buffer, transfer.window())?);
                continue;
            }
            received.wrong = check(&buffer, &transfer, next, completion.immediate, &mut scratch)?;
            if received.wrong.is_some() {
                break;
            }
            received.verified += transfer.length(next);
            next += 1;
            progress
                .verified
                .store(received.verified, Ordering::Relaxed);
        }
        received.elapsed = started
            .map(|started: Instant| started.elapsed())
            .unwrap_or_default();
        if let Some(counter) = counter {
            tell(&connection, counter, next)?;
        }
    }
    received.connection = connection.statistics();
    received.paths = (0..=u8::MAX)
        .map_while(|path| connection.path_statistics(path))
        .collect();
    received.nic = nic.statistics();
    if received.wrong.is_some() {
        progress.stop.store(true, Ordering::Relaxed);
    }
    // The sender closes when it has read its counter.
    let _ = connection.wait_closed(Duration::from_secs(5));
    nic.shut_down(Duration::from_millis(200));
    Ok(received)
}

/// What the first message brought: the address and key of the sender's counter.
fn counter_of(buffer: &Buffer, offset: u64) -> Result<RemoteAddress, Failure> {
    let bytes = buffer
        .to_vec(offset as usize, GREETING)
        .map_err(|error| Failure::Wrong(error.to_string()))?;
    let (address, key) = bytes.split_at(8);
    let address = address
        .try_into()
        .map(u64::from_be_bytes)
        .unwrap_or_default();
    let key = key.try_into().map(u32::from_be_bytes).unwrap_or_default();
    Ok(RemoteAddress { address, key })
}

/// `Some` says what is wrong with message `number`.
fn check(
    buffer: &Buffer,
    transfer: &Transfer,
    number: u64,
    immediate: Option<u32>,
    scratch: &mut [u8],
) -> Result<Option<String>, Failure> {
    if immediate != Some(number as u32) {
        return Ok(Some(format!(
            "message {immediate:?} was reported where {number} was due"
        )));
    }
    let bytes = &mut scratch[..transfer.length(number) as usize];
    buffer
        .read_at(transfer.offset(number) as usize, bytes)
        .map_err(|error| Failure::Wrong(error.to_string()))?;
    Ok(content::first_difference(transfer.seed, number, bytes)
        .map(|place| format!("message {number}: byte {place} is wrong")))
}

/// Writes the number of checked messages to the sender's memory. If too many are on their way, a later one will do.
fn tell(connection: &Connection, counter: RemoteAddress, checked: u64) -> Result<(), Failure> {
    let operation = Operation::Write {
        local: Source::Inline(&checked.to_ne_bytes()),
        remote: counter,
        immediate: None,
    };
    let flags = WorkFlags {
        signaled: false,
        ..WorkFlags::default()
    };
    match connection.post(
        1,
        &WorkRequest {
            id: 0,
            operation,
            flags,
        },
    ) {
        Ok(()) | Err(metaroce_soft::Error::Post(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
