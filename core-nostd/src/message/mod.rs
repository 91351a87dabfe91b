//! Messages: what is sent, what is coming in, the streams that order them, the buffers they go to.

pub mod incoming;
pub mod outgoing;
pub mod receives;
pub mod stream;
