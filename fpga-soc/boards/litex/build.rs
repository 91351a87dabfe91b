//! Passes the linker scripts, that of the system on a chip among them: METAROCE_SOC is the folder that `soc/soc.py` wrote.

fn main() {
    println!("cargo::rerun-if-env-changed=METAROCE_SOC");
    let Ok(soc) = std::env::var("METAROCE_SOC") else {
        panic!("METAROCE_SOC: the folder that fpga-soc/soc/soc.py wrote");
    };
    println!("cargo::rerun-if-changed={soc}/csr.rs");
    println!("cargo::rerun-if-changed={soc}/memory.x");
    println!("cargo::rustc-link-search={soc}");
    println!("cargo::rustc-link-arg-bins=-Tmemory.x");
    println!("cargo::rustc-link-arg-bins=-Tlink.x");
    println!("cargo::rustc-link-arg-bins=-Tdefmt.x");
}
