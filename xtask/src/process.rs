//! Running other programs, with the command line shown before.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A command in the workspace root, without the variables that `cargo run` gave to this process
/// and that would confuse another cargo.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text == "CARGO" || text == "CARGO_MANIFEST_DIR" || text.starts_with("CARGO_PKG_") {
            command.env_remove(&name);
        }
    }
    if let Ok(path) = std::env::join_paths(search_path()) {
        command.env("PATH", path);
    }
    command
        .current_dir(crate::workspace::root())
        .stdin(Stdio::null());
    command
}

/// `cargo ARGS` with the toolchain in use.
pub fn cargo<I, S>(args: I) -> Command
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    let mut command = command("cargo");
    command.args(args);
    command
}

/// The command as a person would type it.
pub fn shown(command: &Command) -> String {
    let mut text = String::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value
            && name != "PATH"
        {
            text.push_str(&format!("{}={} ", name.to_string_lossy(), quoted(value)));
        }
    }
    text.push_str(&quoted(command.get_program()));
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&quoted(argument));
    }
    text
}

fn quoted(text: &OsStr) -> String {
    let text = text.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Shows and runs a command; an error when it does not end with status 0.
pub fn run(command: &mut Command) -> Result<()> {
    match status(command)? {
        0 => Ok(()),
        code => bail!("`{}` ended with status {code}", shown(command)),
    }
}

/// Shows and runs a command; its exit status (128 when a signal ended it).
pub fn status(command: &mut Command) -> Result<i32> {
    println!("$ {}", shown(command));
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    Ok(status.code().unwrap_or(128))
}

/// Runs a command quietly and returns its standard output; an error carries what it said.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "`{}` failed ({}):\n{}",
            shown(command),
            output.status,
            said.trim_end()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// As [`output`], for a program that writes to either stream: both, one after the other.
pub fn output_of_both(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    let all = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&all).into_owned();
    if !output.status.success() {
        bail!("`{}` failed ({}):\n{said}", shown(command), output.status);
    }
    Ok(said)
}

/// Runs a command with no output at all: did it end with status 0?
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The file that a program name stands for.
pub fn which(program: &str) -> Option<PathBuf> {
    search_path()
        .into_iter()
        .map(|folder| folder.join(program))
        .find(|file| is_executable(file))
}

/// PATH, and behind it where `cargo install` puts programs and where administration's are.
fn search_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let home = |name| std::env::var_os(name).map(PathBuf::from);
    let cargo = home("CARGO_HOME").or_else(|| home("HOME").map(|home| home.join(".cargo")));
    folders.extend(cargo.map(|cargo| cargo.join("bin")));
    folders.extend(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// Is this process root?
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0)
}
