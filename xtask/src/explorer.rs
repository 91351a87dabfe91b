//! Building the explorer: the module, its JavaScript, the page, and the page compressed.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use wasm_bindgen_cli_support::Bindgen;

use crate::steps::targets;
use crate::{process, setup, workspace};

/// The folder of the page's source, below the root.
const WEB: &str = "wasm-viz/web";
/// The cargo profile of the module.
const PROFILE: &str = "explorer";

/// What the compiler uses of WebAssembly beyond its first version, and every browser of the last years has.
const FEATURES: [&str; 6] = [
    "--enable-bulk-memory",
    "--enable-bulk-memory-opt",
    "--enable-mutable-globals",
    "--enable-nontrapping-float-to-int",
    "--enable-sign-ext",
    "--enable-reference-types",
];

/// Builds all of it; the folder with the finished page.
pub fn build() -> Result<PathBuf> {
    let web = workspace::root().join(WEB);
    packages(&web)?;
    module(&web)?;
    process::run(npm(&web).args(["run", "--silent", "check"]))?;
    process::run(npm(&web).args(["run", "--silent", "build"]))?;
    let dist = web.join("dist");
    compress(&dist)?;
    Ok(dist)
}

/// What `cargo xtask explorer` says when it has built it.
pub fn run() -> Result<()> {
    let dist = build()?;
    println!(
        "\nThe page is in {}.\nTo look at it: cargo run --release -- explore",
        dist.display()
    );
    Ok(())
}

/// npm in the folder of the page.
pub fn npm(web: &Path) -> std::process::Command {
    let mut command = process::command("npm");
    command
        .current_dir(web)
        .env("npm_config_update_notifier", "false");
    command
}

/// What the lock file lists, if another lock file's packages are there or none.
fn packages(web: &Path) -> Result<()> {
    let lock = fs::read(web.join("package-lock.json"))?;
    let stamp = web.join("node_modules/.installed");
    if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    // No package of ours builds anything when it is installed.
    process::run(npm(web).args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]))?;
    fs::write(stamp, lock)?;
    Ok(())
}

/// The module for WebAssembly and the JavaScript and TypeScript around it, in `src/wasm`.
fn module(web: &Path) -> Result<()> {
    let target = targets::target_dir()?;
    let mut build = setup::build_command(setup::WASM);
    build.args(["-p", "metaroce-explorer", "--lib", "--locked", "--quiet"]);
    build.args(["--profile", PROFILE]);
    process::run(build.env("CARGO_TARGET_DIR", &target))?;
    let built = target
        .join(setup::WASM)
        .join(PROFILE)
        .join("metaroce_explorer.wasm");
    let out = web.join("src/wasm");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    Bindgen::new()
        .input_path(&built)
        .web(true)?
        .typescript(true)
        .remove_producers_section(true)
        .generate(&out)
        .context("wasm-bindgen")?;
    let file = out.join("metaroce_explorer_bg.wasm");
    let mut optimize = process::command(web.join("node_modules/.bin/wasm-opt"));
    optimize
        .arg("-O3")
        .args(FEATURES)
        .arg(&file)
        .arg("-o")
        .arg(&file);
    process::run(&mut optimize)
}

/// Puts a brotli version beside each file of the page that gains from it: `FILE.br`.
fn compress(dist: &Path) -> Result<()> {
    for file in files(dist)? {
        let bytes = fs::read(&file)?;
        let parameters = brotli::enc::BrotliEncoderParams::default();
        let mut out = brotli::CompressorWriter::with_params(Vec::new(), 1 << 16, &parameters);
        out.write_all(&bytes)?;
        let small = out.into_inner();
        if small.len() < bytes.len() {
            let mut name = file.into_os_string();
            name.push(".br");
            fs::write(name, small)?;
        }
    }
    Ok(())
}

/// Bytes that a browser loads for the page: each file as it is sent, compressed if that is smaller.
pub fn transfer_bytes(dist: &Path) -> Result<u64> {
    let mut sum = 0;
    for file in files(dist)? {
        let mut small = file.clone().into_os_string();
        small.push(".br");
        let sent = if Path::new(&small).exists() {
            PathBuf::from(small)
        } else {
            file
        };
        sum += fs::metadata(sent)?.len();
    }
    Ok(sum)
}

/// All files of the page but compressed ones.
fn files(dist: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![dist.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none_or(|extension| extension != "br") {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        bail!("{} is empty", dist.display());
    }
    found.sort();
    Ok(found)
}
