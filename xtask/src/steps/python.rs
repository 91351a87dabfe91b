//! The Python package: built as a wheel, installed into an environment of its own, and used from there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{self, cargo, command};
use crate::workspace;

/// Without link-time optimization, as the other tests: cargo has its parts already.
const PROFILE: &str = "test-fast";

/// Builds the wheel, then all that users do with it: types, tests, the README's examples, notebooks, and an installation from the folder.
pub fn run() -> Result<()> {
    let folder = workspace::target_dir()?.join("python");
    let package = workspace::root().join("bindings-python");
    process::run(
        cargo(["build", "--locked", "--quiet", "-p", "metaroce"]).args(["--profile", PROFILE]),
    )?;
    let venv = tools(&folder, &package.join("requirements.txt"))?;
    install_wheel(&venv, &folder, &package)?;

    // Whatever runs now runs outside of the source tree, with what is installed.
    let outside = folder.join("outside");
    fs::create_dir_all(&outside)?;
    let python = |arguments: &[&str]| {
        let mut command = venv.python(arguments);
        command
            .current_dir(&outside)
            .env("METAROCE_SCENARIOS", workspace::root().join("scenarios"))
            .env(
                "METAROCE_COMMAND",
                folder.join("..").join(PROFILE).join("metaroce"),
            )
            .env("MPLBACKEND", "agg");
        command
    };
    let config = package.join("pyproject.toml");
    for sources in ["python/metaroce", "tests", "notebooks"] {
        let mut mypy = python(&["-m", "mypy", "--strict", "--config-file"]);
        process::run(mypy.arg(&config).arg(package.join(sources)))?;
    }
    process::run(&mut python(&["-m", "mypy.stubtest", "metaroce._metaroce"]))?;
    let mut pytest = python(&["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    process::run(
        pytest
            .arg(package.join("tests"))
            .arg(package.join("README.md")),
    )?;
    let mut notebooks = python(&[]);
    process::run(
        notebooks
            .arg(package.join("notebooks/execute.py"))
            .arg(folder.join("notebooks")),
    )?;
    from_the_folder(&folder, &package)
}

/// A virtual environment.
struct Venv(PathBuf);

impl Venv {
    fn create(folder: PathBuf) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("removing {}", folder.display()))?;
        }
        process::run(command("python3").args(["-m", "venv"]).arg(&folder))?;
        Ok(Self(folder))
    }

    fn python(&self, arguments: &[&str]) -> Command {
        let mut python = command(self.0.join("bin/python"));
        // Neither what is installed elsewhere nor bytecode in the tree.
        python
            .args(arguments)
            .env_remove("PYTHONPATH")
            .env("PYTHONDONTWRITEBYTECODE", "1");
        python
    }

    fn pip(&self, arguments: &[&str]) -> Command {
        let mut pip = self.python(&["-m", "pip", "--quiet", "--disable-pip-version-check"]);
        pip.args(arguments);
        // maturin's programs, and what pip hands to it.
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.0.join("bin")).chain(std::env::split_paths(&path));
        if let Ok(path) = std::env::join_paths(folders) {
            pip.env("PATH", path);
        }
        pip.env(
            "MATURIN_PEP517_ARGS",
            format!("--profile {PROFILE} --locked"),
        );
        pip
    }
}

/// An environment with the pinned tools, made anew when what is pinned changes.
fn tools(folder: &Path, requirements: &Path) -> Result<Venv> {
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

fn install_wheel(venv: &Venv, folder: &Path, package: &Path) -> Result<()> {
    let wheels = folder.join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    let build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir"];
    process::run(venv.pip(&build).arg(&wheels).arg(package))?;
    let wheel = fs::read_dir(&wheels)?
        .next()
        .context("no wheel was built")??;
    println!("{}", wheel.file_name().to_string_lossy());
    let install = ["install", "--no-deps", "--force-reinstall"];
    process::run(venv.pip(&install).arg(wheel.path()))
}

/// `pip install ./bindings-python` into a fresh environment, as the README says.
fn from_the_folder(folder: &Path, package: &Path) -> Result<()> {
    let venv = Venv::create(folder.join("fresh"))?;
    process::run(venv.pip(&["install"]).arg(package))?;
    let first = "import metaroce; nic = metaroce.Nic('127.0.0.1'); print(nic, nic.close())";
    process::run(venv.python(&["-c", first]).current_dir(folder))
}
