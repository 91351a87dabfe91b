//! What goes wrong, in which direction, and when.

use metaroce_core::time::{Duration, Instant};

/// A probability, kept as a threshold for a 64-bit random number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Probability(u64);

impl Probability {
    /// Never.
    pub const NEVER: Self = Self(0);
    /// Always.
    pub const ALWAYS: Self = Self(u64::MAX);

    /// From a share of one; values outside of 0 to 1 are clamped.
    #[must_use]
    pub fn from_share(share: f64) -> Self {
        if share >= 1.0 {
            Self::ALWAYS
        } else if share > 0.0 {
            Self((share * 2f64.powi(64)) as u64)
        } else {
            Self::NEVER
        }
    }

    /// As a share of one.
    #[must_use]
    pub fn share(self) -> f64 {
        if self == Self::ALWAYS {
            1.0
        } else {
            self.0 as f64 / 2f64.powi(64)
        }
    }

    /// Whether a uniform 64-bit random number hits.
    #[must_use]
    pub(crate) const fn hit(self, random: u64) -> bool {
        random < self.0 || self.0 == u64::MAX
    }
}

/// When a fault is on: from `start` to before `end`, both counted from the injector's start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// From here.
    pub start: Duration,
    /// To before here.
    pub end: Duration,
}

impl Window {
    /// All the time.
    pub const ALWAYS: Self = Self {
        start: Duration::ZERO,
        end: Duration::from_nanos(u64::MAX),
    };

    /// Whether a moment, as an age of the injector, is inside.
    #[must_use]
    pub fn contains(&self, age: Duration) -> bool {
        self.start <= age && age < self.end
    }

    /// A fault that is on in this window.
    pub(crate) const fn holds<T: Copy>(self, fault: T) -> Timed<T> {
        Timed {
            fault,
            window: self,
        }
    }
}

/// A fault and the time in which it is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timed<T> {
    /// The fault.
    pub fault: T,
    /// When it is on.
    pub window: Window,
}

impl<T> Timed<T> {
    /// A fault that is on all the time.
    #[must_use]
    pub const fn always(fault: T) -> Self {
        Self {
            fault,
            window: Window::ALWAYS,
        }
    }
}

/// Loss in bursts (Gilbert-Elliott): a good state that loses nothing and a bad one that loses much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Burst {
    /// From good to bad, per packet.
    pub enter: Probability,
    /// From bad to good, per packet.
    pub leave: Probability,
    /// Loss while bad.
    pub loss: Probability,
}

impl Burst {
    /// Bursts of `length` packets on average that make up `rate` of all packets; everything in a burst is lost.
    #[must_use]
    pub fn average(rate: f64, length: f64) -> Self {
        let leave = 1.0 / length.max(1.0);
        let rate = rate.clamp(0.0, 0.999_999);
        Self {
            enter: Probability::from_share(leave * rate / (1.0 - rate)),
            leave: Probability::from_share(leave),
            loss: Probability::ALWAYS,
        }
    }
}

/// A link of limited rate with a queue before it, one per plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Queue {
    /// Bits per second of the link (datagrams and [`Queue::overhead`]).
    pub rate_bps: u64,
    /// Bytes that may wait; what comes on top is dropped.
    pub limit_bytes: u64,
    /// Waiting bytes above which ECN-capable packets are marked; `u64::MAX`: never.
    pub mark_bytes: u64,
    /// Bytes that every packet costs beside its datagram.
    pub overhead: u16,
}

/// What a blackhole swallows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// The route that the protocol's path of this number uses when the blackhole begins. A sender that moves
    /// the path to another source port gets out of it.
    Path(u8),
    /// One UDP source port.
    Port(u16),
    /// All of one plane.
    Plane(u8),
    /// Everything.
    All,
}

/// Everything that can go wrong in one direction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Faults {
    /// Random loss.
    pub loss: Vec<Timed<Probability>>,
    /// Loss in bursts.
    pub burst: Vec<Timed<Burst>>,
    /// Extra delay of every packet.
    pub delay: Vec<Timed<Duration>>,
    /// Up to this much more delay, at random; packets of one route keep their order.
    pub jitter: Vec<Timed<Duration>>,
    /// Packets held back by the duration, so that later ones pass them.
    pub reorder: Vec<Timed<(Probability, Duration)>>,
    /// Packets delivered twice.
    pub duplicate: Vec<Timed<Probability>>,
    /// Packets with one bit flipped.
    pub corrupt: Vec<Timed<Probability>>,
    /// ECN-capable packets marked.
    pub ce: Vec<Timed<Probability>>,
    /// A slow link.
    pub queue: Vec<Timed<Queue>>,
    /// Routes that swallow everything.
    pub blackhole: Vec<Timed<Target>>,
}

impl Faults {
    /// Whether nothing ever goes wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Random loss all the time, nothing else.
    #[must_use]
    pub fn with_loss(share: f64) -> Self {
        Self {
            loss: vec![Timed::always(Probability::from_share(share))],
            ..Self::default()
        }
    }
}

/// What goes wrong in both directions of a NIC, and the seed of all chance in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FaultPlan {
    /// Makes runs differ or repeat.
    pub seed: u64,
    /// For packets that this NIC sends.
    pub outgoing: Faults,
    /// For packets that come to this NIC.
    pub incoming: Faults,
}

impl FaultPlan {
    /// Whether nothing ever goes wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.outgoing.is_empty() && self.incoming.is_empty()
    }

    /// The same faults both ways.
    #[must_use]
    pub fn both_ways(seed: u64, faults: Faults) -> Self {
        Self {
            seed,
            outgoing: faults.clone(),
            incoming: faults,
        }
    }
}

/// The fault of a list that is on: of several, the last, so that a window can be cut out of what is on all the time.
pub(crate) fn active<T: Copy>(list: &[Timed<T>], start: Instant, now: Instant) -> Option<T> {
    if list.is_empty() {
        return None;
    }
    let age = now.since(start);
    list.iter()
        .rev()
        .find(|timed| timed.window.contains(age))
        .map(|timed| timed.fault)
}
