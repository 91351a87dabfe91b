//! Passes the linker script.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rerun-if-changed=link.ld");
    println!("cargo::rustc-link-arg-bins=-T{folder}/link.ld");
    // Tells which function refers to a panic, if one does.
    println!("cargo::rustc-link-arg-bins=--emit-relocs");
    println!("cargo::rustc-link-arg-bins=--gc-sections");
}
