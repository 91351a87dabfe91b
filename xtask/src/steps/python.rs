//! The Python package: built as a wheel, installed into an environment of its own, and used from there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process::{self, cargo};
use crate::venv::{self, Venv};
use crate::workspace;

/// Without link-time optimization, as the other tests: cargo has its parts already.
const PROFILE: &str = "test-fast";

/// The oldest systems that the wheel is for (PEP 600): maturin names the symbols that it finds to be newer.
const SYSTEMS: &str = "manylinux_2_34";

/// Builds the wheel, then all that users do with it: types, tests, the README's examples, notebooks, and installations from the folder and
/// from a source archive.
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
    fresh(&folder, &package, "--locked")?;
    from_the_archive(&venv, &folder, &package)
}

/// pip, building with the tests' profile, and where cargo has its parts already.
fn pip(venv: &Venv, arguments: &[&str], building: &str) -> Result<Command> {
    let mut pip = venv.pip(arguments);
    pip.env("CARGO_TARGET_DIR", workspace::target_dir()?).env(
        "MATURIN_PEP517_ARGS",
        format!("--profile {PROFILE} {building}"),
    );
    Ok(pip)
}

/// An empty folder of this name.
fn emptied(folder: &Path, name: &str) -> Result<PathBuf> {
    let place = folder.join(name);
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(&place)?;
    Ok(place)
}

/// The only thing in a folder.
fn only(folder: &Path) -> Result<PathBuf> {
    let first = fs::read_dir(folder)?.next();
    Ok(first.context("nothing was built")??.path())
}

fn install_wheel(venv: &Venv, folder: &Path, package: &Path) -> Result<()> {
    let wheels = emptied(folder, "wheels")?;
    let build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir"];
    let building = format!("--locked --compatibility {SYSTEMS}");
    process::run(pip(venv, &build, &building)?.arg(&wheels).arg(package))?;
    let wheel = only(&wheels)?;
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    println!("{name}");
    ensure!(
        name.contains(&format!("-cp39-abi3-{SYSTEMS}_")),
        "the wheel {name} is not for every Python from 3.9 on {SYSTEMS}"
    );
    let install = ["install", "--no-deps", "--force-reinstall"];
    process::run(venv.pip(&install).arg(wheel))
}

/// `pip install SOURCE` into a fresh environment, as the README says.
fn fresh(folder: &Path, source: &Path, building: &str) -> Result<()> {
    let venv = Venv::create(folder.join("fresh"))?;
    process::run(pip(&venv, &["install"], building)?.arg(source))?;
    let first = "import metaroce; nic = metaroce.Nic('127.0.0.1'); print(nic, nic.close())";
    process::run(venv.python(&["-c", first]).current_dir(folder))
}

/// The source archive has all that it takes to install it, and what it builds on has the versions that the workspace's lock file says.
fn from_the_archive(venv: &Venv, folder: &Path, package: &Path) -> Result<()> {
    let (made, unpacked) = (emptied(folder, "archive")?, emptied(folder, "unpacked")?);
    let mut maturin = venv.python(&["-m", "maturin", "sdist", "--out"]);
    process::output(maturin.arg(&made).current_dir(package))?;
    // Not left to pip: the files of all archives have one time, older than anything that was built, so that cargo would take what it
    // built of another archive for this one's.
    let mut tar = process::command("tar");
    tar.args(["--extract", "--touch", "--file"]);
    process::run(tar.arg(only(&made)?).arg("--directory").arg(&unpacked))?;
    let source = only(&unpacked)?;
    let lock = source.join("Cargo.lock");
    let before = locked(&lock)?;
    // Not `--locked`: the lock file has the workspace's other members, too, which cargo drops.
    fresh(folder, &source, "")?;
    let added = &locked(&lock)? - &before;
    ensure!(
        added.is_empty(),
        "the archive is built with {added:?}, which Cargo.lock has not"
    );
    Ok(())
}

/// The packages of a lock file.
fn locked(file: &Path) -> Result<BTreeSet<String>> {
    let text = fs::read_to_string(file)?;
    let packages = text.split("[[package]]").skip(1);
    let named = packages.map(|package| package.lines().skip(1).take(2).collect());
    Ok(named.collect())
}
