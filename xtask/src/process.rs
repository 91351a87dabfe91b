//! Running other programs, with the command line shown before.

use std::ffi::OsStr;
use std::io::{Read, Write};
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

/// As [`run`]; the error has the end of what the command said, which may be far above by the time it is read.
pub fn run_quoting_its_end(command: &mut Command) -> Result<()> {
    println!("$ {}", shown(command));
    let (mut said, end) = std::io::pipe()?;
    let started = command.stdout(end.try_clone()?).stderr(end).spawn();
    let mut child = started.with_context(|| format!("cannot start `{}`", shown(command)))?;
    // The ends that this process holds: without them the reader ends with the child.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut last = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let length = said.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        std::io::stdout().write_all(&buffer[..length])?;
        last.extend_from_slice(&buffer[..length]);
        last.drain(..last.len().saturating_sub(QUOTED));
    }
    let status = child.wait()?;
    if status.success() {
        return Ok(());
    }
    let last = String::from_utf8_lossy(&last);
    bail!("`{}` failed ({status}):\n{last}", shown(command))
}

/// Bytes of output in an error.
const QUOTED: usize = 12 << 10;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_end_of_what_was_said() {
        let mut failing = command("sh");
        failing.args([
            "-c",
            "yes early | head -c 20000; echo to stdout; echo to stderr >&2; exit 3",
        ]);
        let error = run_quoting_its_end(&mut failing).unwrap_err().to_string();
        assert!(error.contains("exit status: 3"), "{error}");
        assert!(error.ends_with("to stdout\nto stderr\n"), "{error}");
        assert!(error.len() < QUOTED + 500);
        run_quoting_its_end(command("sh").args(["-c", "echo fine"])).unwrap();
    }
}
