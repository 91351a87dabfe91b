//! Runs the cases on the host: `wasmcheck check SEED...` or `wasmcheck time SEED...`, as `run.mjs` does in WebAssembly.

use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let timed = match arguments.next().as_deref() {
        Some("check") => false,
        Some("time") => true,
        _ => return usage(),
    };
    let Ok(seeds) = arguments
        .map(|seed| seed.parse())
        .collect::<Result<Vec<u64>, _>>()
    else {
        return usage();
    };
    for seed in seeds {
        for case in 0..wasmcheck::wasmcheck_cases() {
            let start = Instant::now();
            let hash = wasmcheck::wasmcheck_run(case, seed);
            let line = wasmcheck::last_text();
            if hash == 0 {
                eprintln!("{line}");
                return ExitCode::FAILURE;
            }
            if timed {
                println!("{}\t{line}", start.elapsed().as_nanos());
            } else {
                println!("{line}");
            }
        }
    }
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: wasmcheck check|time SEED...");
    ExitCode::FAILURE
}
