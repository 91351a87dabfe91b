//! Counting instructions with callgrind.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::process;

/// Runs a program and counts the instructions inside the function (a pattern of valgrind's) and
/// all that it calls. Returns them with what the program printed.
pub fn count(
    program: &Path,
    arguments: &[&str],
    function: &str,
    out: &Path,
) -> Result<(u64, String)> {
    let mut command = process::command("valgrind");
    command
        .args(["--quiet", "--tool=callgrind", "--collect-atstart=no"])
        .arg(format!("--toggle-collect={function}"))
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .args(arguments);
    let printed = process::output(&mut command)?;
    let text = fs::read_to_string(out).with_context(|| format!("reading {}", out.display()))?;
    let total = total(&text)?;
    if total == 0 {
        bail!("callgrind saw no call of {function}: was it inlined?");
    }
    Ok((total, printed))
}

/// The total in callgrind's output: what `summary:` or `totals:` says first (instructions).
fn total(text: &str) -> Result<u64> {
    let line = |key| {
        text.lines()
            .rev()
            .find_map(|line: &str| line.strip_prefix(key))
    };
    let numbers = line("totals:")
        .or_else(|| line("summary:"))
        .context("callgrind printed no total")?;
    let first = numbers
        .split_whitespace()
        .next()
        .context("callgrind's total is empty")?;
    first
        .parse()
        .with_context(|| format!("callgrind's total is not a number: {first:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_found() {
        assert_eq!(
            total("events: Ir\nsummary: 12\n\ntotals: 345\n").unwrap(),
            345
        );
        assert_eq!(total("events: Ir\nsummary: 12\n").unwrap(), 12);
        assert!(total("events: Ir\n").is_err());
    }
}
