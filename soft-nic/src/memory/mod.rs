//! Memory that peers may reach: buffers, and what is behind registered regions.

mod buffer;
mod copy;
mod regions;

pub use buffer::{Buffer, OutOfBounds};
pub use regions::RegionMap;
