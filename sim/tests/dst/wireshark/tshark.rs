//! Running tshark with the dissector of this project on a capture, without anybody's settings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What tshark shows of a frame: values by field. Numbers are in decimal, bytes in hexadecimal.
pub type Shown = BTreeMap<String, Vec<String>>;

const FIELD_SEPARATOR: &str = "\u{1f}";
const VALUE_SEPARATOR: &str = "\u{1e}";

/// Those of `tools/wireshark`.
const DISSECTORS: [&str; 2] = ["metaroce.lua", "metaroce_model.lua"];

fn dissector(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tools/wireshark")
        .join(name)
}

/// The fields of every frame of a capture.
pub fn read(name: &str, capture: &[u8], options: &[&str], fields: &[String]) -> Vec<Shown> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a folder for the capture");
    let file = folder.join("capture.pcapng");
    fs::write(&file, capture).expect("the capture");
    let mut tshark = Command::new("tshark");
    tshark
        .env("HOME", &folder)
        .env("XDG_CONFIG_HOME", &folder)
        .env("WIRESHARK_CONFIG_DIR", &folder);
    for name in DISSECTORS {
        let script = format!("lua_script:{}", dissector(name).display());
        tshark.args(["-X", &script]);
    }
    tshark
        // Two passes: a request knows its response.
        .args(["-2", "-n", "-r"])
        .arg(&file)
        .args(options)
        .args(["-T", "fields", "-E", "occurrence=a"])
        .args(["-E", &format!("separator={FIELD_SEPARATOR}")])
        .args(["-E", &format!("aggregator={VALUE_SEPARATOR}")]);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let output = match tshark.output() {
        Ok(output) => output,
        Err(error) => panic!("tshark (Debian package tshark) does not start: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with("Running as user"))
        .collect();
    assert!(
        output.status.success() && said.is_empty(),
        "tshark: {}, {said:#?}",
        output.status
    );
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| shown(line, fields))
        .collect()
}

fn shown(line: &str, fields: &[String]) -> Shown {
    let columns: Vec<&str> = line.split(FIELD_SEPARATOR).collect();
    assert_eq!(columns.len(), fields.len(), "{line}");
    let values = |column: &&str| column.split(VALUE_SEPARATOR).map(plain).collect();
    fields
        .iter()
        .zip(&columns)
        .filter(|(_, column)| !column.is_empty())
        .map(|(field, column)| (field.clone(), values(column)))
        .collect()
}

/// Versions of tshark differ in how they write truth and bytes.
fn plain(value: &str) -> String {
    match value {
        "True" => return "1".into(),
        "False" => return "0".into(),
        _ => {}
    }
    match value
        .strip_prefix("0x")
        .map(|hex| u64::from_str_radix(hex, 16))
    {
        Some(Ok(number)) => number.to_string(),
        _ => value.to_owned(),
    }
}
