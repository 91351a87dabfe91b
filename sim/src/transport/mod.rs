//! The transports that meet on the same fabrics: the core as it is, and models of others from what is published of them.

pub mod celeris;
mod directory;
pub mod infiniband;
pub mod metaroce;
pub mod roce;
pub mod uec;
