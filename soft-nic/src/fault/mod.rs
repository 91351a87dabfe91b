//! A network that misbehaves as told: seeded faults between the sockets and the protocol.
//!
//! A [`FaultPlan`] says what goes wrong, in which direction and when; it can be written as a string
//! (`loss=1%,delay=50us,blackhole=path:3@2s-4s`). An [`Injector`] decides packet by packet what
//! happens, from a seed and the packets it is shown, and knows no socket and no clock: the same
//! packets at the same times get the same fate.

mod injector;
mod parse;
mod plan;
mod queue;
mod random;

pub use injector::{Delivery, Direction, DropCause, FaultCounts, Injector, Packet, Verdict};
pub use parse::FaultParseError;
pub use plan::{Burst, FaultPlan, Faults, Probability, Queue, Target, Timed, Window};
pub use queue::DelayQueue;
