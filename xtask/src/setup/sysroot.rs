//! The library for other targets, built by Debian's compiler from Debian's source: `core` and `alloc` for those that are bare,
//! all of `std` for WebAssembly.
//!
//! Debian's `rustc-web` knows every target and `rust-web-src` has the library's source with its
//! dependencies, so nothing is fetched. The result is an ordinary sysroot in the cache folder:
//! libraries of the targets, a link to the host's, `lld` under the name that rustc calls, and
//! a `rustc` wrapper that adds `--sysroot`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::bare_targets::{ALL, WASM};
use crate::{process, workspace};

/// Debian packages with the compiler, the library's source and the linker.
pub const PACKAGES: [&str; 4] = ["rustc-web", "cargo-web", "rust-web-src", "lld-22"];

const RUSTC: &str = "/usr/bin/rustc";
const CARGO: &str = "/usr/bin/cargo";
const LLD: &str = "/usr/bin/lld-22";
const SOURCE: &str = "/usr/lib/rustlib/src/rust/library/core/src/lib.rs";
const HOST: &str = "x86_64-unknown-linux-gnu";
/// Changed when the way of building changes, so that old caches are built anew.
const RECIPE: &str = "recipe 2";

pub fn debian_has_compiler() -> bool {
    [RUSTC, CARGO, LLD, SOURCE]
        .iter()
        .all(|file| Path::new(file).exists())
}

/// Is there a sysroot, built by the compiler that is installed now?
pub fn is_ready() -> bool {
    let stamp = || -> Result<bool> { Ok(fs::read_to_string(root()?.join("stamp"))? == stamp()?) };
    debian_has_compiler() && stamp().unwrap_or(false)
}

/// `cargo build` with Debian's tools and this sysroot.
pub fn cargo_build() -> Command {
    let mut command = debian_cargo();
    command
        .arg("build")
        .env("RUSTC", root().unwrap_or_default().join("bin/rustc"));
    command
}

/// Builds it.
pub fn build() -> Result<()> {
    let root = root()?;
    let work = root.with_extension("build");
    remove(&root)?;
    remove(&work)?;
    for target in ALL {
        let built = build_libraries(&work, target)?;
        copy_libraries(&built, &root.join("lib/rustlib").join(target).join("lib"))?;
    }
    link_host(&root)?;
    write_wrapper(&root.join("bin/rustc"), &root)?;
    fs::write(root.join("stamp"), stamp()?)?;
    remove(&work)
}

fn root() -> Result<PathBuf> {
    Ok(workspace::cache_dir()?.join("sysroot"))
}

fn stamp() -> Result<String> {
    let compiler = process::output(Command::new(RUSTC).arg("-vV"))?;
    Ok(format!("{RECIPE}\n{}\n{compiler}", ALL.join(" ")))
}

/// Builds the library by way of an empty crate; the folder with its parts.
fn build_libraries(work: &Path, target: &str) -> Result<PathBuf> {
    fs::create_dir_all(work.join("src"))?;
    let manifest =
        "[package]\nname = \"empty\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n";
    fs::write(work.join("Cargo.toml"), manifest)?;
    fs::write(work.join("src/lib.rs"), "#![no_std]\n")?;
    // Bare targets have no libc that would copy memory; for WebAssembly the library does it unasked.
    let parts: &[&str] = if target == WASM {
        &["-Zbuild-std=std,panic_abort"]
    } else {
        &[
            "-Zbuild-std=core,alloc",
            "-Zbuild-std-features=compiler-builtins-mem",
        ]
    };
    let mut command = debian_cargo();
    command
        .current_dir(work)
        .args(["build", "--quiet", "--release", "--target", target])
        .args(parts)
        .env("RUSTC", RUSTC)
        // Cargo features of a stable compiler that are named unstable.
        .env("RUSTC_BOOTSTRAP", "1")
        // Without bitcode in the libraries, link-time optimization by their users fails.
        .env("RUSTFLAGS", "-Cembed-bitcode=yes")
        .env("CARGO_TARGET_DIR", work.join("target"));
    process::run(&mut command)?;
    Ok(work.join("target").join(target).join("release/deps"))
}

fn copy_libraries(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    let mut copied = 0;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.ends_with(".rlib") && !name.starts_with("libempty") {
            fs::copy(&path, to.join(&name))?;
            copied += 1;
        }
    }
    if copied == 0 {
        bail!("no library came out of the build in {}", from.display());
    }
    Ok(())
}

/// Build scripts and procedural macros are compiled for the host, with Debian's own libraries.
fn link_host(root: &Path) -> Result<()> {
    let host = root.join("lib/rustlib").join(HOST);
    fs::create_dir_all(host.join("bin"))?;
    let libraries = Path::new("/usr/lib/rustlib").join(HOST).join("lib");
    symlink(&libraries, host.join("lib")).context("linking the host's libraries")?;
    symlink(LLD, host.join("bin/rust-lld")).context("linking lld")
}

fn write_wrapper(file: &Path, root: &Path) -> Result<()> {
    fs::create_dir_all(file.parent().context("no folder")?)?;
    fs::write(
        file,
        format!(
            "#!/bin/sh\nexec {RUSTC} --sysroot '{}' \"$@\"\n",
            root.display()
        ),
    )?;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Debian's cargo, without what the environment says to another one.
fn debian_cargo() -> Command {
    let mut command = process::command(CARGO);
    for name in [
        "RUSTC_WRAPPER",
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTUP_TOOLCHAIN",
    ] {
        command.env_remove(name);
    }
    command
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    Ok(())
}
