//! The operations of one direction of a connection, and the memory that they need.

use metaroce_core::work::WorkFlags;
use metaroce_sim::random::Stream;
use metaroce_sim::time::Time;

use crate::plan::{
    Bad, FORBIDDEN, HostPlan, INBOX, Kind, LIBRARY, OpPlan, REGIONS, Range, ReceivePlan, SHARED,
    SOURCE, TARGET, WORDS,
};

/// Bytes of the region that is only read.
pub const LIBRARY_BYTES: u64 = 200_000;
const FORBIDDEN_BYTES: u64 = 4_096;

/// The work of one side on one stream.
#[derive(Clone, Debug, Default)]
pub struct StreamPlan {
    pub ops: Vec<OpPlan>,
    /// Buffers of the other side for them, if the stream has a queue of its own there.
    pub receives: Vec<ReceivePlan>,
    /// The shared queue of the other side that they use.
    pub shared: Option<u8>,
    /// Values that the stream's own word takes: before all operations, and after each.
    pub word: u64,
    pub word_values: Vec<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct DirectionPlan {
    pub streams: Vec<StreamPlan>,
}

/// Memory of a host as it is given away.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    used: [u64; REGIONS],
    shared_needs: [(u32, u32); SHARED],
}

impl Layout {
    /// A place with a gap before it that nothing may touch.
    fn place(&mut self, random: &mut Stream, region: usize, length: u32) -> Range {
        let offset = self.used[region] + random.between(1, 40);
        self.used[region] = offset + u64::from(length);
        Range {
            region,
            offset,
            length,
        }
    }

    fn word(&mut self) -> u64 {
        let offset = self.used[WORDS].next_multiple_of(8) + 8;
        self.used[WORDS] = offset + 8;
        offset
    }

    pub fn total_bytes(&self) -> u64 {
        self.used.iter().sum()
    }

    /// Adds the buffers of the shared queues, and settles the sizes and addresses of the regions.
    pub fn finish(&mut self, random: &mut Stream, uid: &mut u64, host: &mut HostPlan, span: Time) {
        for queue in 0..SHARED {
            let (count, length) = self.shared_needs[queue];
            let late = random.one_in(1, 3);
            let mut times: Vec<Time> = (0..count)
                .map(|_| {
                    if late {
                        Time::from_ps(random.below(span.ps()))
                    } else {
                        Time::ZERO
                    }
                })
                .collect();
            times.sort();
            for at in times {
                let place = self.place(random, INBOX, length);
                host.shared[queue].push(ReceivePlan {
                    uid: next(uid),
                    place,
                    at,
                });
            }
        }
        host.common_word = self.word();
        self.used[LIBRARY] = LIBRARY_BYTES;
        self.used[FORBIDDEN] = FORBIDDEN_BYTES;
        for region in 0..REGIONS {
            host.lengths[region] = self.used[region] + random.between(1, 64);
            let base = match random.below(3) {
                0 => random.bits() >> random.between(1, 40),
                1 => u64::MAX - host.lengths[region] - random.below(1 << 20),
                _ => 0,
            };
            host.bases[region] = base & !7;
        }
    }
}

fn next(uid: &mut u64) -> u64 {
    *uid += 1;
    *uid - 1
}

/// How long messages are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sizes {
    Short,
    Usual,
    Long,
}

fn length(random: &mut Stream, sizes: Sizes) -> u32 {
    let most = match sizes {
        Sizes::Short => 20_000,
        Sizes::Usual => 100_000,
        Sizes::Long => 190_000,
    };
    match random.below(20) {
        0 => 0,
        1..6 => random.between(1, 32) as u32,
        6..11 => random.between(1, 300) as u32,
        11..17 => random.between(1, 9_000) as u32,
        _ => random.between(1, most) as u32,
    }
}

struct Builder<'a> {
    random: &'a mut Stream,
    uid: &'a mut u64,
    layouts: &'a mut [Layout],
    here: usize,
    there: usize,
    stream: StreamPlan,
    /// The cell, and the message it holds.
    cell: Option<(Range, Option<u64>)>,
    sizes: Sizes,
}

impl Builder<'_> {
    fn push(&mut self, kind: Kind, length: u32, at: Time, fence: bool) {
        let uid = next(self.uid);
        let carries = matches!(kind, Kind::Write { .. } | Kind::Send { .. });
        let inline = carries && length <= 32 && self.random.one_in(1, 2);
        let source = (carries && !inline)
            .then(|| self.layouts[self.here].place(self.random, SOURCE, length));
        let flags = WorkFlags {
            signaled: self.random.one_in(4, 5),
            solicited: self.random.one_in(1, 5),
            fence: fence || self.random.one_in(1, 10),
        };
        self.stream.ops.push(OpPlan {
            uid,
            kind,
            length,
            source,
            flags,
            bad: None,
            at,
        });
    }

    fn write(&mut self, at: Time, immediate: bool) {
        let length = length(self.random, self.sizes);
        let target = self.layouts[self.there].place(self.random, TARGET, length);
        let immediate = immediate.then(|| self.random.bits() as u32);
        self.push(
            Kind::Write {
                target,
                immediate,
                cell: false,
            },
            length,
            at,
            false,
        );
    }

    fn send(&mut self, at: Time) {
        let most = if self.stream.shared.is_some() {
            6_000
        } else {
            u32::MAX
        };
        let length = length(self.random, self.sizes).min(most);
        let immediate = self.random.one_in(1, 2).then(|| self.random.bits() as u32);
        self.push(Kind::Send { immediate }, length, at, false);
    }

    fn read(&mut self, at: Time, library: u64) {
        let length = length(self.random, self.sizes);
        let offset = self.random.below(LIBRARY_BYTES - u64::from(length));
        let from = Range {
            region: LIBRARY,
            offset,
            length,
        };
        let into = self.layouts[self.here].place(self.random, INBOX, length);
        self.push(
            Kind::Read {
                from,
                into,
                content: (library, offset),
            },
            length,
            at,
            false,
        );
    }

    /// Writes the cell and reads it back: a fenced write must wait for the read before it.
    fn cell(&mut self, at: Time) {
        let (range, holds) = match self.cell {
            Some(cell) => cell,
            None => {
                let length = self.random.between(1, 12_000) as u32;
                (
                    self.layouts[self.there].place(self.random, TARGET, length),
                    None,
                )
            }
        };
        self.push(
            Kind::Write {
                target: range,
                immediate: None,
                cell: true,
            },
            range.length,
            at,
            holds.is_some(),
        );
        let written = *self.uid - 1;
        self.cell = Some((range, Some(written)));
        let into = self.layouts[self.here].place(self.random, INBOX, range.length);
        let content = (written, 0);
        self.push(
            Kind::Read {
                from: range,
                into,
                content,
            },
            range.length,
            at,
            false,
        );
    }

    fn atomic(&mut self, at: Time) {
        let into = self.layouts[self.here].place(self.random, INBOX, 8);
        let last = self.stream.word_values.last().copied().unwrap_or(0);
        let word = self.stream.word;
        let (kind, value) = match self.random.below(3) {
            0 => {
                let add = self.random.between(1, 1000);
                (
                    Kind::FetchAdd {
                        word: u64::MAX,
                        into,
                        add,
                        old: None,
                    },
                    last,
                )
            }
            1 => {
                let add = self.random.bits();
                (
                    Kind::FetchAdd {
                        word,
                        into,
                        add,
                        old: Some(last),
                    },
                    last.wrapping_add(add),
                )
            }
            _ => {
                let hit = self.random.one_in(2, 3);
                let compare = if hit { last } else { last ^ 1 };
                let swap = self.random.bits();
                (
                    Kind::CompareSwap {
                        word,
                        into,
                        compare,
                        swap,
                        old: last,
                    },
                    if hit { swap } else { last },
                )
            }
        };
        self.push(kind, 8, at, false);
        self.stream.word_values.push(value);
    }

    /// Makes one operation wrong.
    fn spoil(&mut self) {
        let index = self.random.below(self.stream.ops.len() as u64) as usize;
        let bad = *self
            .random
            .pick(&[Bad::Key, Bad::Bounds, Bad::Denied, Bad::TooLong]);
        let op = &mut self.stream.ops[index];
        let fits = match op.kind {
            Kind::Send { .. } => {
                bad == Bad::TooLong && op.length > 0 && self.stream.shared.is_none()
            }
            // What touches no byte needs no right.
            _ => bad != Bad::TooLong && op.length > 0,
        };
        if fits {
            op.bad = Some(bad);
        }
    }
}

/// Plans the work of `hosts[0]` towards `hosts[1]` in a span that begins at `when.0` (never: no work).
pub fn plan_direction(
    random: &mut Stream,
    uid: &mut u64,
    layouts: &mut [Layout],
    hosts: [usize; 2],
    when: (Time, Time),
    sizes: Sizes,
) -> DirectionPlan {
    let (begin, span) = when;
    let mut direction = DirectionPlan::default();
    if begin == Time::NEVER {
        return direction;
    }
    let count = if sizes == Sizes::Short {
        random.between(1, 2)
    } else {
        random.between(1, 6)
    };
    for _ in 0..count {
        let shared = random
            .one_in(1, 4)
            .then(|| random.below(SHARED as u64) as u8);
        let word = layouts[hosts[1]].word();
        let stream = StreamPlan {
            shared,
            word,
            ..StreamPlan::default()
        };
        let [here, there] = hosts;
        let mut builder = Builder {
            random,
            uid,
            layouts,
            here,
            there,
            stream,
            cell: None,
            sizes,
        };
        let mut at = begin + Time::from_ps(builder.random.below(span.ps() / 2));
        let taste = builder.random.below(6);
        for _ in 0..builder.random.between(1, 14) {
            if builder.random.one_in(1, 3) {
                at += Time::from_ps(builder.random.below(span.ps() / 6));
            }
            match if builder.random.one_in(1, 3) {
                taste
            } else {
                builder.random.below(6)
            } {
                0 => builder.write(at, false),
                1 => builder.write(at, true),
                2 => builder.send(at),
                3 => builder.read(at, library_uid(there)),
                4 => builder.cell(at),
                _ => builder.atomic(at),
            }
        }
        if builder.random.one_in(1, 6) {
            builder.spoil();
        }
        let mut stream = builder.stream;
        plan_receives(random, uid, &mut layouts[there], &mut stream, (begin, span));
        direction.streams.push(stream);
    }
    direction
}

fn plan_receives(
    random: &mut Stream,
    uid: &mut u64,
    layout: &mut Layout,
    stream: &mut StreamPlan,
    when: (Time, Time),
) {
    let (begin, span) = when;
    let mut at = Time::ZERO;
    let late = random.one_in(1, 3);
    for op in stream.ops.iter().filter(|op| op.consumes_receive()) {
        if let Some(queue) = stream.shared {
            let need = &mut layout.shared_needs[usize::from(queue)];
            need.0 += 1;
            if matches!(op.kind, Kind::Send { .. }) {
                need.1 = need.1.max(op.length);
            }
            continue;
        }
        if late && random.one_in(1, 2) {
            at = at.max(begin + Time::from_ps(random.below(span.ps())));
        }
        let length = match op.kind {
            Kind::Send { .. } if op.bad == Some(Bad::TooLong) => {
                random.below(u64::from(op.length)) as u32
            }
            Kind::Send { .. } => op.length + random.below(50) as u32,
            _ => random.below(20) as u32,
        };
        let place = layout.place(random, INBOX, length);
        stream.receives.push(ReceivePlan {
            uid: next(uid),
            place,
            at,
        });
    }
    if stream.shared.is_none() && random.one_in(1, 5) {
        let place = layout.place(random, INBOX, 100);
        stream.receives.push(ReceivePlan {
            uid: next(uid),
            place,
            at,
        });
    }
}

/// The message whose bytes are a host's library.
pub fn library_uid(host: usize) -> u64 {
    1 << 60 | host as u64
}
