//! Bugs planted on purpose: each breaks one rule of the protocol, and the simulation must see it.
//!
//! Without the feature `planted` none can be chosen, and nothing of this is in the program.

/// A bug that can be planted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bug {
    /// A PSN that was accepted is accepted again.
    DuplicateAccepted,
    /// The vector of an ACK is shifted by one.
    SackOffByOne,
    /// Packets of any generation are taken for the current one's.
    GenerationUnchecked,
    /// A frozen generation goes on accepting.
    FrozenAccepts,
    /// What a FENCE_ACK's vector says arrived is sent again over another path.
    FenceIgnoresVector,
    /// A retransmission gets a PSN of its own.
    NewPsnOnRetransmission,
    /// A retransmission keeps its TSN.
    TsnReused,
    /// A message completes while one of its packets is unacknowledged.
    EarlyCompletion,
    /// A later completion overtakes an earlier one.
    CompletionOrder,
    /// Operations that are flushed have no completion.
    FlushForgets,
    /// No answer from any path, and the connection does not fail.
    SilentFailure,
    /// A fault in one stream fails the others.
    ErrorSpreads,
    /// The next attempt of a refused SEND looks like the one that was refused.
    RnrSameAttempt,
    /// A SEND goes to the buffer before its own.
    WrongBuffer,
    /// READs and atomics are executed before it is their turn.
    ReadBeforeWrite,
    /// Atomics are applied twice.
    AtomicTwice,
    /// A peer may reach beyond the end of a region.
    BoundsUnchecked,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::DuplicateAccepted,
        Self::SackOffByOne,
        Self::GenerationUnchecked,
        Self::FrozenAccepts,
        Self::FenceIgnoresVector,
        Self::NewPsnOnRetransmission,
        Self::TsnReused,
        Self::EarlyCompletion,
        Self::CompletionOrder,
        Self::FlushForgets,
        Self::SilentFailure,
        Self::ErrorSpreads,
        Self::RnrSameAttempt,
        Self::WrongBuffer,
        Self::ReadBeforeWrite,
        Self::AtomicTwice,
        Self::BoundsUnchecked,
    ];

    /// Whether this is the bug that was planted.
    #[cfg(not(feature = "planted"))]
    #[inline(always)]
    pub(crate) const fn is_planted(self) -> bool {
        false
    }

    /// Whether this is the bug that was planted.
    #[cfg(feature = "planted")]
    pub(crate) fn is_planted(self) -> bool {
        CHOSEN.load(core::sync::atomic::Ordering::Relaxed) == self as u8 + 1
    }
}

#[cfg(feature = "planted")]
static CHOSEN: core::sync::atomic::AtomicU8 = core::sync::atomic::AtomicU8::new(0);

/// Plants a bug in this process, instead of the one before; `None`: takes it out.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    CHOSEN.store(
        bug.map_or(0, |bug| bug as u8 + 1),
        core::sync::atomic::Ordering::Relaxed,
    );
}
