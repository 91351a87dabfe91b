//! Lists the files of the explorer's page, if it was built (`cargo xtask explorer`), for `explore` to have them within the program.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

fn main() -> io::Result<()> {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wasm-viz/web");
    let dist = web.join("dist");
    // A path that is not there counts as changed in every build; when the folder comes, the one around it changes.
    let watched = if dist.is_dir() { &dist } else { &web };
    println!("cargo::rerun-if-changed={}", watched.display());
    let mut list = String::from("&[\n");
    let mut folders: Vec<PathBuf> = dist.is_dir().then(|| dist.clone()).into_iter().collect();
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    for file in files {
        let name = file
            .strip_prefix(&dist)
            .unwrap_or(&file)
            .to_string_lossy()
            .replace('\\', "/");
        let path = fs::canonicalize(&file)?;
        list.push_str(&format!(
            "({name:?}, include_bytes!({:?}) as &[u8]),\n",
            path.display()
        ));
    }
    list.push_str("]\n");
    let out = std::env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?;
    fs::write(Path::new(&out).join("explorer.rs"), list)
}
