//! Instructions per data packet.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::callgrind;
use crate::{process, workspace};

/// The function of `bench/src/cost` in which everything counted happens.
const MEASURED: &str = "*measured_transfer*";

/// Builds the `cost` program and runs each of its cases under callgrind.
pub fn run(json: bool) -> Result<()> {
    let build = [
        "build",
        "--release",
        "--locked",
        "--quiet",
        "-p",
        "metaroce-bench",
        "--bin",
        "cost",
    ];
    let mut build = process::cargo(build);
    if json {
        process::output(&mut build)?;
    } else {
        process::run(&mut build)?;
    }
    let target = workspace::target_dir()?;
    let program = target.join("release/cost");
    let folder = target.join("bench");
    fs::create_dir_all(&folder)?;
    let cases = process::output(process::command(&program).arg("list"))?;
    if !json {
        println!(
            "\nInstructions per data packet: both ends and acknowledgments, in memory, one transfer\n\
             without the handshake (callgrind).\n\n{:28}{:>9}{:>9}{:>14}  remarks",
            "case", "payload", "packets", "instr/packet"
        );
    }
    let mut failed = Vec::new();
    for case in cases.lines() {
        match measure(&program, case, &folder) {
            Ok(result) if json => println!("{result}"),
            Ok(result) => print_row(case, &result),
            Err(error) => {
                eprintln!("{case}: {error:#}");
                failed.push(case);
            }
        }
    }
    if !failed.is_empty() {
        bail!("not measured: {}", failed.join(", "));
    }
    Ok(())
}

fn measure(program: &Path, case: &str, folder: &Path) -> Result<Value> {
    let out = folder.join(format!("callgrind.out.{case}"));
    let (instructions, printed) = callgrind::count(program, &["run", case], MEASURED, &out)?;
    let report: Value = serde_json::from_str(printed.trim()).context("the case printed no JSON")?;
    let packets = report["data_packets"]
        .as_u64()
        .filter(|n| *n > 0)
        .context("no data packets")?;
    let payload = report["bytes"].as_u64().context("no bytes")? / packets;
    Ok(json!({
        "bench": "cost",
        "case": case,
        "data_packets": packets,
        "payload_bytes_per_packet": payload,
        "instructions": instructions,
        "instructions_per_data_packet": instructions / packets,
        "remarks": report["remarks"],
    }))
}

fn print_row(case: &str, result: &Value) {
    let number = |key: &str| result[key].as_u64().unwrap_or(0);
    println!(
        "{case:28}{:>7} B{:>9}{:>14}  {}",
        number("payload_bytes_per_packet"),
        number("data_packets"),
        number("instructions_per_data_packet"),
        result["remarks"].as_str().unwrap_or_default()
    );
}
