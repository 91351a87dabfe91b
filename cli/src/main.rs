//! `metaroce`: a demonstration, measurements, a simulator and a decoder for the MetaRoCE transport over UDP.

#![forbid(unsafe_code)]

mod args;
mod content;
mod decode;
mod demo;
mod explore;
mod failure;
mod info;
mod interrupt;
mod output;
mod perf;
mod serve;
mod session;
mod sim;
mod table;
mod units;

use clap::{Parser, Subcommand};
use failure::Failure;
use interrupt::Interrupt;
use std::io::Write;
use std::process::ExitCode;

/// RDMA over networks that lose packets: an independent implementation of the MetaRoCE transport
#[derive(Parser, Debug)]
#[command(version, after_help = failure::EXIT_CODES, arg_required_else_help = true)]
struct Arguments {
    /// Print JSON instead of text
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Demo(demo::DemoArgs),
    Serve(serve::ServeArgs),
    Perf(Box<perf::PerfArgs>),
    Info(info::InfoArgs),
    Decode(decode::DecodeArgs),
    Sim(Box<sim::SimArgs>),
    Table(table::TableArgs),
    Explore(explore::ExploreArgs),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let json = arguments.json;
    let result = Interrupt::install().and_then(|interrupt| {
        match &arguments.command {
            Command::Demo(command) => demo::run(command, json, &interrupt),
            Command::Serve(command) => serve::run(command, json, &interrupt),
            Command::Perf(command) => perf::run(command, json, &interrupt),
            Command::Info(command) => info::run(command, json),
            Command::Decode(command) => decode::run(command, json),
            Command::Sim(command) => sim::run(command, json, &interrupt),
            Command::Table(command) => table::run(command, &interrupt),
            Command::Explore(command) => explore::run(command, json, &interrupt),
        }
        .map(|()| interrupt.requested())
    });
    match result {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::from(failure::INTERRUPTED),
        Err(failure) => {
            report(&failure, json);
            ExitCode::from(failure.exit_code())
        }
    }
}

fn report(failure: &Failure, json: bool) {
    if json {
        output::json_line(&failure.to_json());
    } else {
        // Nobody may be listening.
        let _ = writeln!(std::io::stderr(), "metaroce: {failure}");
    }
}
