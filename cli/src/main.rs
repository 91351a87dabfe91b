//! metaroce
fn main() {}
