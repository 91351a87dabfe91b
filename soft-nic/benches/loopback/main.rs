//! The soft NIC on loopback, beside the kernel's own limit and beside quinn: same sizes, one run.
//!
//! `cargo bench -p metaroce-soft --bench loopback -- [OPTIONS]`: medians of interleaved repeats, and how ours compares.
//!
//! `--gib N` (per transfer), `--repeats N`, `--payload N`, `--paths N`, `--run N`, `--no-checksum`, `--uncontrolled`
//! (ours), `--only WORD` (cases whose name has it), `--check` (fail if a target is missed).
//!
//! Both sides spin on a core of their own while bytes are counted; in the case `sleeping` they sleep in the kernel
//! between packets. All senders send from memory that stays in the cache: raw UDP and quinn the same 64 KiB, ours 1 MiB.

mod ours;
mod quic;
mod raw;

use std::collections::HashMap;
use std::time::Duration;

/// Bytes that arrived and the time they took.
#[derive(Clone, Copy)]
pub struct Rate {
    /// Bytes of payload that the receiver got.
    pub bytes: u64,
    /// From the first to the last of them.
    pub time: Duration,
}

impl Rate {
    fn gbit(self) -> f64 {
        self.bytes as f64 * 8.0 / self.time.as_secs_f64() / 1e9
    }
}

/// Round-trip times.
pub struct Latency(Vec<Duration>);

impl Latency {
    /// Room for `count` of them.
    pub fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// Notes one.
    pub fn record(&mut self, time: Duration) {
        self.0.push(time);
    }

    fn percentile(&mut self, percent: usize) -> f64 {
        self.0.sort_unstable();
        let index = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
        self.0
            .get(index)
            .map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
    }
}

/// Where the two sides run: one core each, if there are two.
#[derive(Clone, Copy)]
pub struct Cores;

impl Cores {
    /// Puts this thread on the first core.
    pub fn pin_first(self) {
        pin(0);
    }

    /// Puts this thread on the second core.
    pub fn pin_second(self) {
        pin(1);
    }
}

fn pin(core: usize) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(core);
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

struct Options {
    bytes: u64,
    repeats: usize,
    payload: u16,
    only: Option<String>,
    check: bool,
    settings: ours::Settings,
}

impl Options {
    fn parse() -> Self {
        let mut options = Self {
            bytes: 1 << 30,
            repeats: 5,
            payload: 4096,
            only: None,
            check: false,
            settings: ours::Settings {
                payload: 4096,
                paths: 8,
                run: None,
                checksum: true,
                uncontrolled: false,
            },
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number = || {
                arguments
                    .next()
                    .and_then(|text| text.parse::<f64>().ok())
                    .expect("a number behind the option")
            };
            match argument.as_str() {
                "--gib" => options.bytes = (number() * (1u64 << 30) as f64) as u64,
                "--repeats" => options.repeats = number() as usize,
                "--payload" => options.payload = number() as u16,
                "--paths" => options.settings.paths = number() as u8,
                "--run" => options.settings.run = Some(number() as u8),
                "--no-checksum" => options.settings.checksum = false,
                "--uncontrolled" => options.settings.uncontrolled = true,
                "--check" => options.check = true,
                "--only" => options.only = arguments.next(),
                _ => {}
            }
        }
        options.settings.payload = options.payload;
        options
    }

    fn wants(&self, name: &str) -> bool {
        self.only
            .as_ref()
            .is_none_or(|only| name.contains(only.as_str()))
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What is measured, and how.
type Case = (&'static str, Box<dyn Fn() -> f64>);

const MESSAGE: usize = 64 << 10;

fn main() {
    let options = Options::parse();
    raise_priority();
    let datagram = usize::from(options.payload) + 52;
    let cases: Vec<Case> = vec![
        (
            "rate raw",
            Box::new(move || raw::throughput(datagram, options.bytes, Cores).gbit()),
        ),
        (
            "rate quinn",
            Box::new(move || quic::throughput(MESSAGE, options.bytes, None, Cores).gbit()),
        ),
        (
            "rate quinn same datagrams",
            Box::new(move || {
                quic::throughput(MESSAGE, options.bytes, Some(datagram as u16), Cores).gbit()
            }),
        ),
        (
            "rate ours",
            Box::new(move || {
                ours::throughput(options.settings, MESSAGE, options.bytes, Cores).gbit()
            }),
        ),
        (
            "p50 raw sleeping",
            Box::new(|| raw::ping_pong(64, 20_000, false, Cores).percentile(50)),
        ),
        (
            "p50 raw spinning",
            Box::new(|| raw::ping_pong(64, 20_000, true, Cores).percentile(50)),
        ),
        (
            "p50 ours sleeping",
            Box::new(move || {
                ours::round_trip(options.settings, 64, 20_000, false, Cores).percentile(50)
            }),
        ),
        (
            "p50 ours spinning",
            Box::new(move || {
                ours::round_trip(options.settings, 64, 20_000, true, Cores).percentile(50)
            }),
        ),
    ];
    let mut results = vec![Vec::new(); cases.len()];
    for _ in 0..options.repeats {
        for ((name, case), results) in cases.iter().zip(&mut results) {
            if options.wants(name) {
                results.push(case());
            }
        }
    }
    let mut medians = HashMap::new();
    for ((name, _), results) in cases.iter().zip(&mut results) {
        if !results.is_empty() {
            let unit = if name.starts_with("rate") {
                "Gbit/s"
            } else {
                "us"
            };
            medians.insert(*name, median(&mut results.clone()));
            println!("{name:28} {:8.2} {unit:6}  {results:.2?}", medians[name]);
        }
    }
    let mut missed = false;
    for target in TARGETS {
        if let (Some(ours), Some(other)) = (medians.get(target.ours), medians.get(target.other)) {
            let ratio = ours / other;
            let good = if target.at_least {
                ratio >= target.ratio
            } else {
                ratio <= target.ratio
            };
            missed |= !good;
            let (bound, verdict) = (
                if target.at_least {
                    "at least"
                } else {
                    "at most"
                },
                if good { "ok" } else { "MISSED" },
            );
            println!(
                "{} / {}: {ratio:.2} ({bound} {}: {verdict})",
                target.ours, target.other, target.ratio
            );
        }
    }
    if missed && options.check {
        std::process::exit(1);
    }
}

struct Target {
    ours: &'static str,
    other: &'static str,
    ratio: f64,
    at_least: bool,
}

const TARGETS: [Target; 4] = [
    Target {
        ours: "rate ours",
        other: "rate raw",
        ratio: 0.6,
        at_least: true,
    },
    Target {
        ours: "rate ours",
        other: "rate quinn",
        ratio: 3.0,
        at_least: true,
    },
    Target {
        ours: "p50 ours sleeping",
        other: "p50 raw sleeping",
        ratio: 2.0,
        at_least: false,
    },
    Target {
        ours: "p50 ours spinning",
        other: "p50 raw spinning",
        ratio: 2.0,
        at_least: false,
    },
];

/// On a busy machine threads that spin are told apart from those that work only by their session's priority
/// (`sched_autogroup`): where the system allows, this gets one of its own.
fn raise_priority() {
    if rustix::process::setsid().is_ok() {
        let _ = std::fs::write("/proc/self/autogroup", "-15");
    }
}
