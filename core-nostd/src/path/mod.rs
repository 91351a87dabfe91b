//! One path: what each of its ends remembers, and the rules that need nothing but that.
//!
//! * [`receive`]: the set of PSNs received (receiver).
//! * [`inflight`]: the slots of packets not yet acknowledged (sender).
//! * [`loss`]: which of them an acknowledgment delivers and which it proves lost.
//! * [`rtt`]: round-trip time of a path, minimum of a connection.
//! * [`send`]: the sender's record of a path.
//! * [`entropy`]: which source ports to use next.

pub mod entropy;
pub mod inflight;
pub mod loss;
pub mod receive;
pub mod rtt;
pub mod send;
