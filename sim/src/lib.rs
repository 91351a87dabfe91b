//! A deterministic packet-level network in which real MetaRoCE endpoints meet.
//!
//! From the bottom up: [`engine`] orders events, [`random`] gives seeded numbers, [`port`] queues, marks and
//! drops, [`faults`] lose, damage, double and delay, [`network`] joins ports and switches, [`topology`] builds
//! the usual networks and [`simulation`] puts hosts on them and lets time pass. [`host`] makes a host of a core
//! endpoint, [`lab`] measures, [`report`] prints, [`explore`] goes through a run step by step. [`capture`] and [`trace`] write down what an [`observer`] sees.

#![forbid(unsafe_code)]

pub mod capture;
pub mod endpoint;
pub mod engine;
pub mod explore;
pub mod fabric;
pub mod faults;
pub mod host;
pub mod inspect;
pub mod lab;
pub mod memory;
pub mod network;
pub mod node;
pub mod observer;
pub mod packet;
pub mod port;
pub mod random;
pub mod report;
mod routing;
pub mod scenario;
pub mod simulation;
pub mod switch;
pub mod time;
pub mod topology;
pub mod trace;
pub mod transport;
pub mod units;
pub mod workload;
