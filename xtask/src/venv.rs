//! Python's virtual environments, with what is pinned.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{self, command};

/// A virtual environment.
pub struct Venv(PathBuf);

impl Venv {
    /// Makes one, in place of what is there.
    pub fn create(folder: PathBuf) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("removing {}", folder.display()))?;
        }
        process::run(command("python3").args(["-m", "venv"]).arg(&folder))?;
        Ok(Self(folder))
    }

    /// Its Python, which sees nothing but what is installed in it.
    pub fn python(&self, arguments: &[&str]) -> Command {
        let mut python = command(self.0.join("bin/python"));
        // Neither what is installed elsewhere nor bytecode in the tree.
        python
            .args(arguments)
            .env_remove("PYTHONPATH")
            .env("PYTHONDONTWRITEBYTECODE", "1");
        python
    }

    /// Its pip.
    pub fn pip(&self, arguments: &[&str]) -> Command {
        let mut pip = self.python(&["-m", "pip", "--quiet", "--disable-pip-version-check"]);
        pip.args(arguments);
        // Programs that were installed, and that pip calls.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.0.join("bin")).chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(folders) {
            pip.env("PATH", path);
        }
        pip
    }
}

/// An environment in `folder` with what is pinned in `requirements`, made anew when that changes.
pub fn pinned(folder: &Path, requirements: &Path) -> Result<Venv> {
    let (place, stamp) = (folder.join("venv"), folder.join("venv.stamp"));
    let wanted = fs::read_to_string(requirements)?;
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) && place.exists() {
        return Ok(Venv(place));
    }
    let venv = Venv::create(place)?;
    process::run(venv.pip(&["install", "--requirement"]).arg(requirements))?;
    fs::write(stamp, wanted)?;
    Ok(venv)
}
