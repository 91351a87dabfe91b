//! How fast the simulator is in WebAssembly.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;
use crate::steps::wasm::Programs;

/// Seeds with which every case is run; the first run also warms up.
const SEEDS: [&str; 4] = ["1", "2", "3", "4"];

/// Hops and nanoseconds, by transport.
type Speeds = BTreeMap<String, (u64, u64)>;

/// Runs `targets/wasm` on the host and in Node.js, both built for release.
pub fn run() -> Result<()> {
    let programs = Programs::build("release")?;
    let [host, wasm] = programs.both("time", &SEEDS).map(measure);
    let (host, wasm) = (host?, wasm?);
    println!(
        "\nPackets that cross a link, millions per second, one thread, over all cases of targets/wasm.\n\n\
         {:24}{:>9}{:>9}{:>9}",
        "transport", "host", "wasm", "ratio"
    );
    for (transport, &one) in &host {
        let other = wasm
            .get(transport)
            .copied()
            .context("a transport is missing")?;
        print_row(transport, one, other);
    }
    print_row("all", sum(&host), sum(&wasm));
    Ok(())
}

fn print_row(name: &str, host: (u64, u64), wasm: (u64, u64)) {
    // Hops in a nanosecond are thousands of millions in a second.
    let speed = |(hops, ns): (u64, u64)| hops as f64 * 1e3 / ns as f64;
    let (host, wasm) = (speed(host), speed(wasm));
    println!("{name:24}{host:>9.2}{wasm:>9.2}{:>9.2}", wasm / host);
}

fn sum(speeds: &Speeds) -> (u64, u64) {
    speeds
        .values()
        .fold((0, 0), |sum, speed| (sum.0 + speed.0, sum.1 + speed.1))
}

fn measure(mut command: Command) -> Result<Speeds> {
    let text = process::output(&mut command)?;
    let mut speeds = Speeds::new();
    for line in text.lines() {
        let (transport, hops, ns) = parse(line).with_context(|| format!("not a case: {line:?}"))?;
        let speed = speeds.entry(transport.to_owned()).or_default();
        *speed = (speed.0 + hops, speed.1 + ns);
    }
    Ok(speeds)
}

/// Transport, hops and nanoseconds of a line: `NANOSECONDS TAB SITUATION: TRANSPORT, seed ...: HASH (END, HOPS hops, ...`.
fn parse(line: &str) -> Option<(&str, u64, u64)> {
    let (ns, line) = line.split_once('\t')?;
    let (_, line) = line.split_once(": ")?;
    let (transport, line) = line.split_once(", seed ")?;
    let (line, _) = line.split_once(" hops,")?;
    let (_, hops) = line.rsplit_once(' ')?;
    Some((transport, hops.parse().ok()?, ns.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let line = "1234\tpair, loss: Uec(Sender), seed 1: 0123 (Complete, 999 hops, 2271 events, trace 00)";
        assert_eq!(parse(line), Some(("Uec(Sender)", 999, 1234)));
        assert_eq!(parse("pair, loss: Roce, seed 1: 12 hosts are needed"), None);
    }
}
