//! The steps of `cargo xtask test`, and how they are run and reported.

mod bindings_c;
mod code;
mod explorer;
mod firmware;
mod fuzz;
mod netns;
mod planted;
mod python;
pub mod targets;
pub mod wasm;
mod wireshark;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::{setup, trace};

/// A check with a name.
struct Step {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<()>,
}

/// In the order they run: the quick ones and those that most often fail first.
const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        about: "rustfmt changes nothing, in every workspace",
        run: code::fmt,
    },
    Step {
        name: "clippy",
        about: "clippy, all targets, all features but planted bugs, no warning",
        run: code::clippy,
    },
    Step {
        name: "deny",
        about: "licences, bans and sources of dependencies (not advisories: they need a database from the network)",
        run: code::deny,
    },
    Step {
        name: "tests",
        about: "unit, integration and deterministic simulation tests, optimized, with assertions",
        run: code::tests,
    },
    Step {
        name: "doctests",
        about: "the examples in the documentation",
        run: code::doctests,
    },
    Step {
        name: "docs",
        about: "rustdoc, no warning",
        run: code::docs,
    },
    Step {
        name: "targets",
        about: "the core for riscv32imac and thumbv7em",
        run: targets::build,
    },
    Step {
        name: "linkcheck",
        about: "firmware with the datagram path holds no panic and no allocator; its size",
        run: targets::linkcheck,
    },
    Step {
        name: "wasm",
        about: "the simulator in WebAssembly: every outcome of every transport is what it is on the host",
        run: wasm::run,
    },
    Step {
        name: "planted",
        about: "each bug planted on purpose turns the deterministic simulation red",
        run: planted::run,
    },
    Step {
        name: "netns",
        about: "real processes in network namespaces (needs root)",
        run: netns::run,
    },
    Step {
        name: "wireshark",
        about: "the Wireshark dissector shows what the core reads, and takes anything",
        run: wireshark::run,
    },
    Step {
        name: "bindings-c",
        about: "the C library: installed, used by programs in C and C++, by sanitizers and valgrind, on two bare processors",
        run: bindings_c::run,
    },
    Step {
        name: "python",
        about: "the Python package from its wheel: types, tests, README, notebooks; pip install from the folder and from the source archive",
        run: python::run,
    },
    Step {
        name: "explorer",
        about: "the explorer's page is built, and does in Chromium what it should; its figures",
        run: explorer::run,
    },
    Step {
        name: "firmware",
        about: "the small device: conversation on riscv32 and Cortex-M, a soft NIC uses its memory on Linux and in QEMU (needs root)",
        run: firmware::run,
    },
    Step {
        name: "litex",
        about: "the small device as a system on a chip under Verilator: a soft NIC uses its memory, and two go to each other (needs root)",
        run: firmware::litex::run,
    },
    Step {
        name: "fuzz",
        about: "each fuzz target for 20 seconds",
        run: fuzz::run,
    },
    Step {
        name: "traceability",
        about: "each requirement of docs/spec.md has code and a test; duvet's report of them",
        run: trace::run,
    },
];

/// Prints the steps.
pub fn list() {
    for step in STEPS {
        println!("{:14}{}", step.name, step.about);
    }
}

/// Sets up, then runs the named steps (none named: all).
pub fn test(only: &[String]) -> Result<()> {
    if let Some(unknown) = only
        .iter()
        .find(|name| STEPS.iter().all(|step| step.name != *name))
    {
        bail!("no step is called {unknown:?}; `cargo xtask test --list` prints them");
    }
    setup::for_tests()?;
    let chosen = STEPS
        .iter()
        .filter(|step| only.is_empty() || only.iter().any(|n| n == step.name));
    run_all(chosen)
}

/// Formatting, clippy, licences.
pub fn lint() -> Result<()> {
    run_all(
        STEPS
            .iter()
            .filter(|step| ["fmt", "clippy", "deny"].contains(&step.name)),
    )
}

struct Outcome {
    name: &'static str,
    took: Duration,
    error: Option<String>,
}

fn run_all<'a>(steps: impl Iterator<Item = &'a Step>) -> Result<()> {
    let outcomes: Vec<Outcome> = steps.map(run_one).collect();
    // Again and in full: a reader of a log begins at its end.
    let mut failed = 0;
    for outcome in &outcomes {
        if let Some(error) = &outcome.error {
            failed += 1;
            println!("\n==== {} failed: {error}", outcome.name);
        }
    }
    println!("\n{:14}{:>9}  result", "step", "time");
    for outcome in &outcomes {
        let result = outcome
            .error
            .as_deref()
            .map_or("ok".to_owned(), |error| format!("FAILED: {}", first(error)));
        println!(
            "{:14}{:>7.1} s  {result}",
            outcome.name,
            outcome.took.as_secs_f64()
        );
    }
    println!("\n{} passed, {failed} failed", outcomes.len() - failed);
    if failed > 0 {
        bail!("{failed} of {} steps failed", outcomes.len());
    }
    Ok(())
}

fn run_one(step: &Step) -> Outcome {
    println!("\n==== {}: {}", step.name, step.about);
    let start = Instant::now();
    let error = (step.run)().err().map(|error| format!("{error:#}"));
    let took = start.elapsed();
    match &error {
        None => println!("==== {}: ok ({:.1} s)", step.name, took.as_secs_f64()),
        Some(error) => println!(
            "==== {}: FAILED ({:.1} s): {}",
            step.name,
            took.as_secs_f64(),
            first(error)
        ),
    }
    Outcome {
        name: step.name,
        took,
        error,
    }
}

/// The first line of an error, short enough for a table.
fn first(error: &str) -> String {
    match error.lines().next().unwrap_or_default() {
        long if long.chars().count() > 90 => long.chars().take(90).chain(['…']).collect(),
        line => line.to_owned(),
    }
}
