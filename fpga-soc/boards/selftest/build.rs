//! Passes the linker scripts of the processor.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let processor = std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    println!("cargo::rerun-if-changed={folder}/{processor}");
    // `memory.x` is looked for in the package's own folder first: there is none.
    println!("cargo::rustc-link-search={folder}/{processor}");
    if processor == "riscv32" {
        println!("cargo::rustc-link-arg-bins=-Tmemory.x");
    } else {
        println!("cargo::rustc-link-arg-bins=--nmagic");
    }
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
}
