//! `cargo xtask install-c`: the C library where compilers, pkg-config and CMake find it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{process, workspace};

/// What the static library needs of the system beside the C library.
const PRIVATE_LIBS: &str = "-lgcc_s -lpthread -lm -ldl";
/// Of the shared library's name (bindings-c/build.rs).
pub const ABI: &str = "0";

#[derive(clap::Args)]
pub struct Args {
    /// Where to: gets include/, lib/, lib/pkgconfig/ and lib/cmake/.
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
    /// The cargo profile it is built with.
    #[arg(long, default_value = "release")]
    profile: String,
}

/// Builds and installs.
pub fn run(args: &Args) -> Result<()> {
    let arguments = ["-p", "metaroce-c", "--locked", "--quiet", "--profile"];
    process::run(process::cargo(["build"]).args(arguments).arg(&args.profile))?;
    install(&args.prefix, &args.profile)
}

/// Installs below `prefix` what was built with a cargo profile.
pub fn install(prefix: &Path, profile: &str) -> Result<()> {
    let built = workspace::target_dir()?.join(profile);
    let source = workspace::root().join("bindings-c");
    let version = env!("CARGO_PKG_VERSION");
    let library = prefix.join("lib");
    let (package, cmake) = (library.join("pkgconfig"), library.join("cmake/metaroce"));
    for folder in [&prefix.join("include"), &package, &cmake] {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    copy(
        &source.join("include/metaroce.h"),
        &prefix.join("include/metaroce.h"),
    )?;
    copy(&built.join("libmetaroce.a"), &library.join("libmetaroce.a"))?;
    let whole = format!("libmetaroce.so.{version}");
    let soname = format!("libmetaroce.so.{ABI}");
    copy(&built.join("libmetaroce.so"), &library.join(&whole))?;
    for (link, to) in [(&soname, &whole), (&"libmetaroce.so".to_owned(), &soname)] {
        let link = library.join(link);
        // What an earlier installation left.
        let _ = fs::remove_file(&link);
        symlink(to, &link).with_context(|| format!("linking {}", link.display()))?;
    }
    let fill = |name: &str, folder: &Path| -> Result<()> {
        let from = source.join("packaging").join(format!("{name}.in"));
        let text = fs::read_to_string(&from)
            .with_context(|| format!("reading {}", from.display()))?
            .replace("@VERSION@", version)
            .replace("@ABI@", ABI)
            .replace("@PRIVATE_LIBS@", PRIVATE_LIBS);
        let to = folder.join(name);
        fs::write(&to, text).with_context(|| format!("writing {}", to.display()))
    };
    fill("metaroce.pc", &package)?;
    fill("metaroce-config.cmake", &cmake)?;
    fill("metaroce-config-version.cmake", &cmake)?;
    println!("installed metaroce {version} below {}", prefix.display());
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    // A new file, for those that have the old one open.
    let _ = fs::remove_file(to);
    fs::copy(from, to)
        .map(|_| ())
        .with_context(|| format!("copying {} to {}", from.display(), to.display()))
}
