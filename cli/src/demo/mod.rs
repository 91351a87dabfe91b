//! `demo`: two NICs in this process, one file's worth of bytes between them, packets lost both ways, every byte checked.

mod receiver;
mod report;
mod sender;

use crate::args::{ConnectionArgs, NicArgs};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output;
use crate::units::{parse_share, parse_size};
use clap::Args;
use metaroce_soft::fault::{FaultPlan, Faults};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

/// Watch a gigabyte cross eight paths that lose one packet in a hundred
///
/// Two NICs in this process, each with its own thread and sockets, talk over loopback. Whatever one sends to the other
/// is lost with the given probability. The receiver compares every byte with what it must be.
#[derive(Args, Clone, Debug)]
pub struct DemoArgs {
    /// Bytes to transfer
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_size)]
    size: u64,
    /// Loss each way, such as 1% or 0.01
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = parse_share, conflicts_with = "faults")]
    loss: f64,
    /// Bytes of a message
    #[arg(long, value_name = "SIZE", default_value = "256KiB", value_parser = parse_size)]
    message: u64,
    /// Makes losses and content differ or repeat
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Use IPv6 loopback
    #[arg(long, conflicts_with = "planes")]
    ipv6: bool,
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    nic: NicArgs,
}

/// What the two ends and the one who watches have in common.
#[derive(Default)]
struct Progress {
    sent: AtomicU64,
    verified: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Both windows hold this much, so that memory does not grow with the transfer.
const WINDOW: u64 = 64 << 20;

/// Runs the command.
///
/// # Errors
/// If a NIC cannot be made, the connection fails, or a byte is wrong.
pub fn run(arguments: &DemoArgs, json: bool, interrupt: &Interrupt) -> Result<(), Failure> {
    if arguments.size == 0 || arguments.message == 0 {
        return Err(Failure::Usage(
            "--size and --message must not be zero".to_owned(),
        ));
    }
    let message = arguments.message.min(arguments.size).min(WINDOW / 4);
    let mut settings = arguments.nic.clone();
    if settings.faults.is_empty() {
        settings.faults = FaultPlan::both_ways(arguments.seed, Faults::with_loss(arguments.loss));
    }
    if arguments.ipv6 {
        settings.planes = "::1".parse().into_iter().collect();
    }
    let transfer = Transfer {
        total: arguments.size,
        message,
        seed: arguments.seed,
    };
    if !json {
        output::line(format_args!(
            "{}",
            report::announcement(arguments, &transfer, &settings)
        ));
    }
    let progress = Progress::default();
    let (hello_out, hello_in) = mpsc::channel();
    let started = std::time::Instant::now();
    let (received, sent) = std::thread::scope(|scope| {
        let (settings, progress) = (&settings, &progress);
        let receiver = scope.spawn(move || receiver::run(settings, transfer, progress, hello_out));
        let sender =
            scope.spawn(move || sender::run(settings, arguments, transfer, progress, &hello_in));
        let bar = output::bytes_bar(transfer.total, json);
        while !(receiver.is_finished() && sender.is_finished()) {
            if interrupt.requested() {
                progress.stop.store(true, Ordering::Relaxed);
            }
            let verified = progress.verified.load(Ordering::Relaxed);
            bar.set_position(verified);
            let gbit = verified as f64 * 8.0 / started.elapsed().as_secs_f64() / 1e9;
            bar.set_message(format!("checked, {gbit:.2} Gbit/s"));
            std::thread::sleep(Duration::from_millis(20));
        }
        bar.finish_and_clear();
        let died = || Failure::System("a thread of the demo died".to_owned());
        (
            receiver.join().map_err(|_| died()),
            sender.join().map_err(|_| died()),
        )
    });
    let (received, sent) = (received??, sent??);
    let outcome = report::Outcome {
        arguments,
        transfer,
        sent,
        received,
        interrupted: interrupt.requested(),
    };
    if json {
        output::json(&outcome.to_json());
    } else {
        outcome.show();
    }
    outcome.failure().map_or(Ok(()), Err)
}

/// What is transferred.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    total: u64,
    message: u64,
    seed: u64,
}

impl Transfer {
    fn messages(&self) -> u64 {
        self.total.div_ceil(self.message)
    }

    /// Bytes of a message; the last may be shorter.
    fn length(&self, number: u64) -> u64 {
        self.message.min(self.total - number * self.message)
    }

    /// Places in a window that messages use in turn.
    fn slots(&self) -> u64 {
        (WINDOW / self.message).min(self.messages()).max(1)
    }

    fn offset(&self, number: u64) -> u64 {
        number % self.slots() * self.message
    }

    fn window(&self) -> u64 {
        self.slots() * self.message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_transfer_add_up() {
        for (total, message) in [
            (1, 1),
            (1000, 300),
            (1 << 30, 256 << 10),
            (u64::from(u32::MAX), 1 << 20),
        ] {
            let transfer = Transfer {
                total,
                message,
                seed: 0,
            };
            let sum: u64 = (0..transfer.messages())
                .map(|number| transfer.length(number))
                .sum();
            assert_eq!(sum, total);
            let last = transfer.messages() - 1;
            assert!(transfer.offset(last) + transfer.length(last) <= transfer.window());
        }
    }
}
