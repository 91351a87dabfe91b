//! The header that is checked in is what cbindgen makes of the sources.

use std::path::Path;

#[test]
fn the_header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_root_or_default(root);
    let bindings = cbindgen::Builder::new()
        .with_crate(root)
        .with_config(config)
        .generate()
        .unwrap();
    let mut made = Vec::new();
    bindings.write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let path = root.join("include/metaroce.h");
    if std::env::var_os("METAROCE_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = checked_in
        .lines()
        .zip(made.lines())
        .position(|(old, new)| old != new);
    assert!(
        checked_in == made,
        "include/metaroce.h is not current (line {:?}): METAROCE_WRITE_HEADER=1 cargo test -p metaroce-c --test header",
        differs.map(|line| line + 1)
    );
}
