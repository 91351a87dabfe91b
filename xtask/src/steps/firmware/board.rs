//! A board that runs: a program, or a machine whose serial line says defmt.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process;

/// Ended when this is dropped.
pub struct Board {
    name: &'static str,
    machine: Child,
    /// `defmt-print` and what it prints.
    decoder: Option<(Child, Lines<BufReader<ChildStdout>>)>,
}

impl Board {
    /// A program.
    pub fn program(name: &'static str, mut command: Command) -> Result<Self> {
        println!("$ {}", process::shown(&command));
        let machine = command
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        Ok(Self {
            name,
            machine,
            decoder: None,
        })
    }

    /// A machine whose standard output is the serial line.
    pub fn defmt(name: &'static str, mut command: Command, image: &Path) -> Result<Self> {
        println!("$ {}", process::shown(&command));
        let mut machine = command
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {name}"))?;
        let serial = machine.stdout.take().context("no serial line")?;
        let mut decoder = process::command("defmt-print")
            .arg("-e")
            .arg(image)
            .stdin(serial)
            .stdout(Stdio::piped())
            .spawn()
            .context("starting defmt-print")?;
        let said = decoder.stdout.take().context("defmt-print says nothing")?;
        Ok(Self {
            name,
            machine,
            decoder: Some((decoder, BufReader::new(said).lines())),
        })
    }

    /// What it is.
    pub fn name(&self) -> &str {
        self.name
    }

    /// What the machine says, line by line, until one of which `is_last` says so; that one. An error if the machine ends before.
    pub fn read_until(&mut self, mut is_last: impl FnMut(&str) -> bool) -> Result<String> {
        let (_, lines) = self.decoder.as_mut().context("it has no serial line")?;
        for line in lines {
            let line = line.context("reading what defmt-print says")?;
            println!("  {}: {line}", self.name);
            if line.contains("panic") || line.starts_with("ERROR") {
                bail!("{}: {line}", self.name);
            }
            if is_last(&line) {
                return Ok(line);
            }
        }
        bail!("{}: it ended too early", self.name)
    }

    /// What it says of itself after so many connections have ended.
    pub fn figures(&mut self, connections: usize) -> Result<String> {
        let mut closed = 0;
        let line = self.read_until(|line| {
            closed += usize::from(line.contains("closed: PeerClose"));
            closed == connections && line.contains("figures:")
        })?;
        let (_, figures) = line.split_once("figures: ").unwrap_or_default();
        Ok(figures.to_owned())
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        end(&mut self.machine);
        if let Some((mut decoder, _)) = self.decoder.take() {
            end(&mut decoder);
        }
    }
}

/// Ends a process of ours. If it has ended already, so much the better.
fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
