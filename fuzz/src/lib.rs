//! What the fuzz targets share: a reader of instructions, memory that knows its limits, and two endpoints with a wire that
//! does whatever the input says.

#![forbid(unsafe_code)]

pub mod input;
pub mod memory;
pub mod pair;
