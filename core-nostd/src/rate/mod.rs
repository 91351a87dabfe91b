//! Congestion, settled from both ends.
//!
//! * [`allocator`]: the receiver divides its capacity among the senders that have demand.
//! * [`reclaim`]: what senders leave of their shares is given to the others.
//! * [`pacer`]: the sender keeps to its share.
//! * [`controller`]: the interface of a congestion controller, and the simple ones.
//! * [`coupled`]: the default controller, ECN windows coupled over the paths.

pub mod allocator;
pub mod controller;
pub mod coupled;
pub mod pacer;
pub mod reclaim;
