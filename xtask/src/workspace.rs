//! Where things are: the workspace, its target folder, the cache, and what its packages offer.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// The workspace root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is inside the workspace")
}

/// The target folder in use (CARGO_TARGET_DIR and cargo's configuration are honoured).
pub fn target_dir() -> Result<PathBuf> {
    let folder = metadata()?["target_directory"]
        .as_str()
        .context("cargo metadata: no target_directory")?;
    Ok(PathBuf::from(folder))
}

/// What is kept outside of the tree, between clones: `$XDG_CACHE_HOME/metaroce`.
pub fn cache_dir() -> Result<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("metaroce"))
        .context("neither XDG_CACHE_HOME nor HOME is set")
}

/// A package of the workspace.
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its features, `default` left out.
    pub features: Vec<String>,
}

/// The packages of the workspace.
pub fn packages() -> Result<Vec<Package>> {
    let packages = metadata()?["packages"]
        .as_array()
        .context("cargo metadata: no packages")?;
    packages
        .iter()
        .map(|package| {
            let name = package["name"]
                .as_str()
                .context("a package without a name")?
                .to_owned();
            let features = package["features"]
                .as_object()
                .context("a package without features")?;
            let features = features
                .keys()
                .filter(|f| *f != "default")
                .cloned()
                .collect();
            Ok(Package { name, features })
        })
        .collect()
}

/// `package/feature` for every feature but planted bugs: what is linted and documented.
pub fn all_features() -> Result<String> {
    features(|feature| !is_planted(feature))
}

/// What tests are run with: as [`all_features`] without `defmt`, whose logger exists only in firmware (a host binary would not link),
/// and without `small`, which swaps the checksum's table for that of small ROMs (the step `firmware` runs with it).
pub fn test_features() -> Result<String> {
    features(|feature| !is_planted(feature) && !["defmt", "small"].contains(&feature))
}

fn features(wanted: impl Fn(&str) -> bool) -> Result<String> {
    let mut list = Vec::new();
    for Package { name, features } in packages()? {
        let wanted = features.iter().filter(|feature| wanted(feature));
        list.extend(wanted.map(|feature| format!("{name}/{feature}")));
    }
    Ok(list.join(","))
}

/// Is this a feature that breaks the protocol on purpose?
fn is_planted(feature: &str) -> bool {
    feature.starts_with("planted")
}

fn metadata() -> Result<&'static Value> {
    static METADATA: OnceLock<Value> = OnceLock::new();
    if let Some(value) = METADATA.get() {
        return Ok(value);
    }
    let text = process::output(&mut process::cargo([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
    ]))?;
    let value = serde_json::from_str(&text).context("cargo metadata: not JSON")?;
    Ok(METADATA.get_or_init(|| value))
}
