//! The Python package: built as a wheel, installed into an environment of its own, and used from there.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{self, cargo};
use crate::venv::{self, Venv};
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
    let venv = venv::pinned(&folder, &package.join("requirements.txt"))?;
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

/// pip, building with the tests' profile.
fn pip(venv: &Venv, arguments: &[&str]) -> Command {
    let mut pip = venv.pip(arguments);
    pip.env(
        "MATURIN_PEP517_ARGS",
        format!("--profile {PROFILE} --locked"),
    );
    pip
}

fn install_wheel(venv: &Venv, folder: &Path, package: &Path) -> Result<()> {
    let wheels = folder.join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    let build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir"];
    process::run(pip(venv, &build).arg(&wheels).arg(package))?;
    let wheel = fs::read_dir(&wheels)?
        .next()
        .context("no wheel was built")??;
    println!("{}", wheel.file_name().to_string_lossy());
    let install = ["install", "--no-deps", "--force-reinstall"];
    process::run(pip(venv, &install).arg(wheel.path()))
}

/// `pip install ./bindings-python` into a fresh environment, as the README says.
fn from_the_folder(folder: &Path, package: &Path) -> Result<()> {
    let venv = Venv::create(folder.join("fresh"))?;
    process::run(pip(&venv, &["install"]).arg(package))?;
    let first = "import metaroce; nic = metaroce.Nic('127.0.0.1'); print(nic, nic.close())";
    process::run(venv.python(&["-c", first]).current_dir(folder))
}
