//! A run, planned from its seed: hosts, network, faults, connections, and where every byte of every message belongs.

use metaroce_core::config::{ConnectionConfig, ControllerChoice, EndpointConfig};
use metaroce_core::time::Duration;
use metaroce_core::work::WorkFlags;
use metaroce_sim::packet::HostId;
use metaroce_sim::random::{Purpose, Stream};
use metaroce_sim::time::Time;

use crate::faults;
use crate::operations::{DirectionPlan, Layout, Sizes, plan_direction};

/// Regions of every host, by index.
pub const SOURCE: usize = 0;
pub const TARGET: usize = 1;
pub const INBOX: usize = 2;
pub const LIBRARY: usize = 3;
pub const WORDS: usize = 4;
pub const FORBIDDEN: usize = 5;
pub const REGIONS: usize = 6;

/// Shared receive queues a host uses.
pub const SHARED: usize = 2;

/// A place at a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Range {
    pub region: usize,
    pub offset: u64,
    pub length: u32,
}

/// What is wrong with an operation on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bad {
    Key,
    Bounds,
    Denied,
    TooLong,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Write {
        target: Range,
        immediate: Option<u32>,
        /// The range is written again by later operations of the stream.
        cell: bool,
    },
    Send {
        immediate: Option<u32>,
    },
    Read {
        from: Range,
        into: Range,
        /// The bytes are those of this message, from this offset.
        content: (u64, u64),
    },
    FetchAdd {
        word: u64,
        into: Range,
        add: u64,
        /// The word as it must be before, if only this stream changes it.
        old: Option<u64>,
    },
    CompareSwap {
        word: u64,
        into: Range,
        compare: u64,
        swap: u64,
        old: u64,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpPlan {
    pub uid: u64,
    pub kind: Kind,
    pub length: u32,
    /// Where the bytes come from; none: inline.
    pub source: Option<Range>,
    pub flags: WorkFlags,
    pub bad: Option<Bad>,
    /// Not before.
    pub at: Time,
}

impl OpPlan {
    pub fn consumes_receive(&self) -> bool {
        matches!(
            self.kind,
            Kind::Send { .. }
                | Kind::Write {
                    immediate: Some(_),
                    ..
                }
        )
    }
}

/// A buffer to be posted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivePlan {
    pub uid: u64,
    pub place: Range,
    pub at: Time,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Drain,
    Abort(u16),
}

#[derive(Clone, Debug)]
pub struct ConnectionPlan {
    /// Initiator and acceptor.
    pub hosts: [HostId; 2],
    pub config: ConnectionConfig,
    pub open_at: Time,
    /// When, which side, how.
    pub close: Option<(Time, usize, Mode)>,
    /// When and on which side requests are posted that must be refused.
    pub misuse: Option<(Time, usize)>,
    /// Work of the initiator and of the acceptor.
    pub directions: [DirectionPlan; 2],
}

/// A host of the run.
#[derive(Clone, Debug)]
pub struct HostPlan {
    pub small: bool,
    pub config: EndpointConfig,
    pub default: ConnectionConfig,
    pub connections: usize,
    pub bases: [u64; REGIONS],
    pub lengths: [u64; REGIONS],
    pub shared: [Vec<ReceivePlan>; SHARED],
    /// Clock jumps, ns.
    pub jumps: Vec<(Time, i64)>,
    /// When the target region is withdrawn.
    pub deregister: Option<Time>,
    /// When which region's bytes cannot be read any more.
    pub unreadable: Option<(Time, usize)>,
    /// Words that only one stream changes are below this offset; here is the one that all change.
    pub common_word: u64,
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub seed: u64,
    pub mbps: u64,
    pub planes: u8,
    pub base_rtt: Time,
    pub star: bool,
    pub queue_bytes: u64,
    pub priority: bool,
    pub hosts: Vec<HostPlan>,
    pub connections: Vec<ConnectionPlan>,
    pub faults: faults::FaultPlan,
    pub failure_timeout: Duration,
    /// All faults are over.
    pub heal: Time,
    /// Everything must have ended.
    pub deadline: Time,
    /// Every path keeps its order and no clock jumps: nothing may be sent again that has arrived.
    pub orderly: bool,
}

fn endpoint_config(random: &mut Stream, mbps: u64, planes: u8, corruption: bool) -> EndpointConfig {
    EndpointConfig {
        planes,
        plane_mbps: mbps as u32,
        payload_bytes: *random.pick(&[256, 512, 1000, 1024, 2048, 4096, 4096, 9000]),
        entropies: *random.pick(&[16, 64, 1024]),
        omit_checksum: !corruption && random.one_in(1, 4),
        hints: random.one_in(4, 5),
        ack_blocks: *random.pick(&[1, 1, 2, 4]),
        ack_packets: *random.pick(&[1, 2, 2, 4, 16]),
        ack_delay: Duration::from_nanos(*random.pick(&[0, 1_000, 1_000, 5_000, 50_000])),
        ..EndpointConfig::default()
    }
}

fn connection_config(
    random: &mut Stream,
    mbps: u64,
    failure_timeout: Duration,
    rtt: Time,
) -> ConnectionConfig {
    let most_paths = if random.one_in(1, 2) { 8 } else { 64 };
    ConnectionConfig {
        paths: random.between(1, most_paths) as u8,
        run: *random.pick(&[1, 1, 1, 4]),
        reorder_tolerance: *random.pick(&[0, 0, 0, 3, 16]),
        min_probe_timeout: Duration::from_nanos(*random.pick(&[0, 0, 20_000])),
        failure_timeout,
        keep_alive: Duration::from_micros(*random.pick(&[0, 500, 5_000])),
        rnr_attempts: *random.pick(&[255, 255, 255, 7, 1]),
        rnr_delay: Duration::from_micros(*random.pick(&[10, 100])),
        announce: random.one_in(1, 2),
        initial_rtt: Duration::from_nanos(*random.pick(&[20_000, rtt.ns(), rtt.ns() * 4])),
        service: 0,
        least_rtt: *random.pick(&[
            Duration::ZERO,
            Duration::ZERO,
            Duration::from_nanos(rtt.ns()),
        ]),
        controller: match random.below(8) {
            0 => ControllerChoice::None,
            1 => ControllerChoice::FixedRate((mbps as u32 / 2).max(100)),
            _ => ControllerChoice::Coupled,
        },
    }
}

pub fn plan(seed: u64) -> Plan {
    let mut random = Stream::new(seed, Purpose::Plan, 0);
    let mbps = *random.pick(&[1_000, 10_000, 25_000, 100_000, 100_000]);
    let planes = *random.pick(&[1, 1, 1, 2, 4]);
    // A slow line needs a long round trip: the packets themselves take 35 us each at 1 Gb/s.
    let least_rtt = if mbps < 10_000 { 150_000 } else { 14_090 };
    // Now and then: few paths, small packets, long messages, so that a path has as many outstanding as may be.
    let wide = mbps >= 10_000 && random.one_in(1, 10);
    let least_rtt = if wide { 100_000 } else { least_rtt };
    let base_rtt =
        Time::from_ns((*random.pick(&[100_000, 14_090, 20_000, 200_000])).max(least_rtt));
    let star = random.one_in(1, 3);
    let host_count = if star { random.between(2, 4) as u32 } else { 2 };
    let span = Time::from_us(random.between(200, 6_000));
    let failure_timeout = Duration::from_millis(random.between(30, 200));
    let heal = Time::from_ps(span.ps() + random.below(span.ps() / 2));
    let faults = faults::plan(&mut random, span, heal, planes, failure_timeout);
    let rnr_endless = random.one_in(3, 4);

    let small_run = !wide && random.one_in(1, 4);
    let mut hosts: Vec<HostPlan> = (0..host_count)
        .map(|_| {
            let mut default = connection_config(&mut random, mbps, failure_timeout, base_rtt);
            let mut config = endpoint_config(&mut random, mbps, planes, faults.corruption);
            if wide {
                default.paths = default.paths.min(2);
                config.payload_bytes = 256;
            }
            if rnr_endless {
                default.rnr_attempts = 255;
            }
            let mut jumps = Vec::new();
            if faults.clock_jumps {
                for _ in 0..random.between(1, 3) {
                    let ns = random.between(1_000, 5_000_000) as i64;
                    let sign = if random.one_in(1, 2) { -1 } else { 1 };
                    jumps.push((Time::from_ps(random.below(heal.ps())), ns * sign));
                }
            }
            HostPlan {
                small: small_run || (!wide && random.one_in(1, 6)),
                config,
                default,
                connections: 0,
                bases: [0; REGIONS],
                lengths: [0; REGIONS],
                shared: [Vec::new(), Vec::new()],
                jumps,
                deregister: None,
                unreadable: None,
                common_word: 0,
            }
        })
        .collect();
    if random.one_in(1, 15) {
        let host = random.below(u64::from(host_count)) as usize;
        hosts[host].deregister = Some(Time::from_ps(random.below(span.ps())));
    }
    if random.one_in(1, 20) {
        let host = random.below(u64::from(host_count)) as usize;
        let region = *random.pick(&[SOURCE, LIBRARY]);
        hosts[host].unreadable = Some((Time::from_ps(random.below(span.ps())), region));
    }

    let mut layouts: Vec<Layout> = (0..host_count).map(|_| Layout::default()).collect();
    let mut uid = 1;
    let mut connections = Vec::new();
    for index in 0..random.between(1, if small_run { 2 } else { 4 }) {
        let from = random.below(u64::from(host_count)) as u32;
        let to = (from + 1 + random.below(u64::from(host_count) - 1) as u32) % host_count;
        let mut config = connection_config(&mut random, mbps, failure_timeout, base_rtt);
        if rnr_endless {
            config.rnr_attempts = 255;
        }
        if wide {
            config.paths = random.between(1, 2) as u8;
        }
        config.service = index as u32;
        let open_at = if random.one_in(2, 3) {
            Time::ZERO
        } else {
            Time::from_ps(random.below(span.ps() / 2))
        };
        let close = random.one_in(1, 4).then(|| {
            let at = open_at + Time::from_ps(random.below(span.ps()));
            let mode = if random.one_in(1, 2) {
                Mode::Drain
            } else {
                Mode::Abort(random.below(1 << 16) as u16)
            };
            (at, random.below(2) as usize, mode)
        });
        let misuse = random.one_in(1, 4).then(|| {
            (
                open_at + Time::from_ps(random.below(span.ps())),
                random.below(2) as usize,
            )
        });
        let small = hosts[from as usize].small || hosts[to as usize].small;
        let mut direction = |here: u32, there: u32| {
            let busy = random.one_in(3, 4);
            plan_direction(
                &mut random,
                &mut uid,
                &mut layouts,
                [here as usize, there as usize],
                if busy {
                    (open_at, span)
                } else {
                    (Time::NEVER, span)
                },
                if wide {
                    Sizes::Long
                } else if small {
                    Sizes::Short
                } else {
                    Sizes::Usual
                },
            )
        };
        let directions = [direction(from, to), direction(to, from)];
        hosts[from as usize].connections += 1;
        hosts[to as usize].connections += 1;
        connections.push(ConnectionPlan {
            hosts: [from, to],
            config,
            open_at,
            close,
            misuse,
            directions,
        });
    }
    for (host, layout) in hosts.iter_mut().zip(&mut layouts) {
        layout.finish(&mut random, &mut uid, host, span);
    }
    // An outsider's connection attempts must not need more room than there is.
    for host in &mut hosts {
        host.connections = host.connections.max(1);
    }

    let bytes: u64 = layouts.iter().map(Layout::total_bytes).sum();
    let jumps: u64 = hosts
        .iter()
        .flat_map(|host| &host.jumps)
        .map(|jump| jump.1.unsigned_abs())
        .sum();
    let work = Time::to_send(bytes * 20 + 1_000_000, mbps.min(1_000));
    let deadline = heal
        + Time::from_ns(failure_timeout.as_nanos() * 7 + jumps * 4)
        + work
        + Time::from_ms(400);
    let orderly = faults.orderly && !faults.clock_jumps;
    Plan {
        seed,
        mbps,
        planes,
        base_rtt,
        star,
        queue_bytes: *random.pick(&[30_000, 100_000, 892_250]),
        priority: random.one_in(1, 2),
        hosts,
        connections,
        faults,
        failure_timeout,
        heal,
        deadline,
        orderly,
    }
}
