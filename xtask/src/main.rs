//! `cargo xtask`: everything the project does besides compiling: set-up, tests, benchmarks, lint.

#![forbid(unsafe_code)]

mod bench;
mod elf;
mod explorer;
mod install_c;
mod process;
mod setup;
mod steps;
mod trace;
mod venv;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Tasks of the MetaRoCE implementation"
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what tests and benchmarks need: as root everything, else what needs no root.
    Setup {
        /// Only report what is missing.
        #[arg(long)]
        check: bool,
    },
    /// Run every check of the project; exit status 0 only when all of them passed.
    Test {
        /// Run only these steps (see --list); may be repeated or separated by commas.
        #[arg(long, value_name = "STEP", value_delimiter = ',')]
        only: Vec<String>,
        /// Print the steps and what each does.
        #[arg(long)]
        list: bool,
    },
    /// Run the benchmarks: all of them, or one by name.
    Bench(bench::Args),
    /// Build the C library and install it, with its header and what pkg-config and CMake look for.
    InstallC(install_c::Args),
    /// Build the explorer's page (`metaroce explore` serves it).
    Explorer,
    /// Formatting, clippy and dependency licences.
    Lint,
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Setup { check: true } => setup::check(),
        Task::Setup { check: false } => setup::install(),
        Task::Test { list: true, .. } => {
            steps::list();
            Ok(())
        }
        Task::Test { only, list: false } => steps::test(&only),
        Task::Bench(args) => bench::run(&args),
        Task::InstallC(args) => install_c::run(&args),
        Task::Explorer => explorer::run(),
        Task::Lint => steps::lint(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
