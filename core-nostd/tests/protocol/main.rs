//! The specification, sentence by sentence, against a scripted peer (`puppet`) or as seen on the wire between two endpoints.

#[path = "../support/mod.rs"]
mod support;

mod puppet;
mod words;

mod congestion;
mod ending;
mod fences;
mod hints;
mod hostile;
mod listener;
mod losses;
mod memory;
mod messages;
mod paths;
mod planes;
mod prediction;
mod probes;
mod receives;
mod refusals;
mod requests;
mod setup;
mod streams;
