//! The demo's sending end: generates the content and writes it, as far as the receiver has room.

use super::receiver::Hello;
use super::{DemoArgs, Progress, Transfer};
use crate::args::NicArgs;
use crate::content;
use crate::failure::Failure;
use metaroce_soft::core::CloseMode;
use metaroce_soft::core::memory::Access;
use metaroce_soft::core::stats::{ConnectionStatistics, PathStatistics};
use metaroce_soft::core::work::{
    CloseReason, Operation, PostError, Source, Status, WorkFlags, WorkRequest,
};
use metaroce_soft::{Buffer, NicStatistics, Phase};
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// What the sender saw.
pub struct Sent {
    pub completed: u64,
    pub failed: Option<String>,
    pub closed: Option<CloseReason>,
    pub connection: Option<ConnectionStatistics>,
    pub paths: Vec<PathStatistics>,
    pub nic: NicStatistics,
}

/// Bytes of the first message, behind the places of the others: where the counter is.
pub const GREETING: usize = 12;
/// Writes that may be open.
const DEPTH: u64 = 32;

pub fn run(
    settings: &NicArgs,
    arguments: &DemoArgs,
    transfer: Transfer,
    progress: &Progress,
    hello: &Receiver<Hello>,
) -> Result<Sent, Failure> {
    let result = send(settings, arguments, transfer, progress, hello);
    if result.is_err() {
        progress.stop.store(true, Ordering::Relaxed);
    }
    result
}

fn send(
    settings: &NicArgs,
    arguments: &DemoArgs,
    transfer: Transfer,
    progress: &Progress,
    hello: &Receiver<Hello>,
) -> Result<Sent, Failure> {
    let nic = settings.builder(0).connections(1).listen(false).build()?;
    // The receiver says itself why it did not come up.
    let hello = hello
        .recv()
        .map_err(|_| Failure::System("the receiving end did not start".to_owned()))?;
    let connection = nic.connect(
        &hello.addresses,
        arguments.connection.config(&nic),
        Duration::from_secs(10),
    )?;
    let memory = |error| Failure::System(format!("memory: {error}"));
    let window = Buffer::new(transfer.window() as usize).map_err(memory)?;
    let local = nic.register(&window, Access::LOCAL_READ)?;
    let counter = Buffer::new(8).map_err(memory)?;
    let counter_region = nic.register(&counter, Access::REMOTE_WRITE)?;
    let mut greeting = [0; GREETING];
    greeting[..8].copy_from_slice(&counter_region.base().to_be_bytes());
    greeting[8..].copy_from_slice(&counter_region.key().to_be_bytes());
    let place = hello.window.address + transfer.window();
    let place = metaroce_soft::core::RemoteAddress {
        address: place,
        ..hello.window
    };
    let first = Operation::Write {
        local: Source::Inline(&greeting),
        remote: place,
        immediate: Some(u32::MAX),
    };
    connection.post(
        0,
        &WorkRequest {
            id: u64::MAX,
            operation: first,
            flags: WorkFlags::default(),
        },
    )?;

    let mut sent = Sent {
        completed: 0,
        failed: None,
        closed: None,
        connection: None,
        paths: Vec::new(),
        nic: nic.statistics(),
    };
    let queue = nic.completions();
    let mut scratch = vec![0; transfer.message as usize];
    let mut completions = Vec::new();
    let (mut posted, mut open, mut checked) = (0, 1, 0);
    while checked < transfer.messages() && sent.failed.is_none() && !progress.stopped() {
        while posted < transfer.messages() && open < DEPTH && posted - checked < transfer.slots() {
            let (length, offset) = (transfer.length(posted), transfer.offset(posted));
            let bytes = &mut scratch[..length as usize];
            content::fill(transfer.seed, posted, bytes);
            window
                .write_at(offset as usize, bytes)
                .map_err(|error| Failure::Wrong(error.to_string()))?;
            let remote = metaroce_soft::core::RemoteAddress {
                address: hello.window.address + offset,
                ..hello.window
            };
            let local = Source::Region(local.slice(offset, length as u32));
            let operation = Operation::Write {
                local,
                remote,
                immediate: Some(posted as u32),
            };
            match connection.post(
                0,
                &WorkRequest {
                    id: posted,
                    operation,
                    flags: WorkFlags::default(),
                },
            ) {
                Ok(()) => {
                    posted += 1;
                    open += 1;
                }
                Err(metaroce_soft::Error::Post(PostError::QueueFull)) => break,
                Err(error) => {
                    sent.failed = Some(error.to_string());
                    break;
                }
            }
        }
        let before = checked;
        nic.progress_until(Some(Instant::now() + Duration::from_millis(100)), || {
            !queue.is_empty()
                || counter.load_u64(0) != Ok(before)
                || connection.phase() != Phase::Open
        });
        completions.clear();
        queue.poll_into(&mut completions, 64);
        for completion in &completions {
            open -= 1;
            if completion.status != Status::Success {
                sent.failed
                    .get_or_insert(format!("a write failed: {:?}", completion.status));
            } else if completion.id != u64::MAX {
                sent.completed += 1;
            }
        }
        checked = counter
            .load_u64(0)
            .map_err(|error| Failure::Wrong(error.to_string()))?;
        progress
            .sent
            .store(sent.completed * transfer.message, Ordering::Relaxed);
        if let Phase::Closed(reason) = connection.phase() {
            sent.closed = Some(reason);
            sent.failed
                .get_or_insert(format!("the connection ended: {reason:?}"));
        }
    }
    sent.connection = connection.statistics();
    sent.paths = (0..arguments.connection.paths)
        .map_while(|path| connection.path_statistics(path))
        .collect();
    sent.nic = nic.statistics();
    if progress.stopped() || sent.failed.is_some() {
        // What is still open ends with an error, which nobody waits for.
        let _ = connection.close(CloseMode::Abort(0));
        progress.stop.store(true, Ordering::Relaxed);
    }
    nic.shut_down(Duration::from_secs(2));
    Ok(sent)
}
