//! A network namespace with a TAP device: a soft NIC at one end, a board at the other.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::Result;

use crate::process;

/// It is gone when this is dropped.
pub struct Namespace {
    name: String,
}

/// The device's name inside.
const TAP: &str = "mr0";

impl Namespace {
    /// Makes it; the host's address in it is 192.0.2.1.
    pub fn new() -> Result<Self> {
        let this = Self {
            name: format!("mrfw-{}", std::process::id()),
        };
        ip(&["netns", "add", &this.name])?;
        this.ip(&["link", "set", "lo", "up"])?;
        this.ip(&["tuntap", "add", TAP, "mode", "tap"])?;
        this.ip(&["addr", "add", "192.0.2.1/24", "dev", TAP])?;
        this.ip(&["link", "set", TAP, "up"])?;
        Ok(this)
    }

    fn ip(&self, arguments: &[&str]) -> Result<()> {
        ip(&[&["-n", &self.name], arguments].concat())
    }

    /// The TAP device.
    pub fn tap(&self) -> &str {
        TAP
    }

    /// A command inside. Its process is the program itself.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = process::command("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    process::output(process::command("ip").args(arguments)).map(|_| ())
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nothing is to be done if it does not go.
        let _ = ip(&["netns", "del", &self.name]);
    }
}
