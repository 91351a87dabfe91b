//! Finding citations in code and tests.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::spec::id_at;

/// One `spec: MR-...` in a comment.
#[derive(Debug, PartialEq)]
pub struct Citation {
    pub id: String,
    /// Path from the workspace root.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// Does it stand in a test?
    pub test: bool,
}

/// Languages in which citations are looked for.
pub const EXTENSIONS: [&str; 9] = ["rs", "c", "h", "cpp", "py", "sv", "v", "ts", "js"];
/// Folders that hold no code of the protocol. (In xtask, ids are examples.)
const LEFT_OUT: [&str; 4] = ["target", "node_modules", "xtask", "docs"];
/// Folders in which everything is there to check: what stands in them counts as a test.
const CHECKERS: [&str; 4] = ["sim", "fuzz", "conformance", "bench"];

pub fn scan(root: &Path) -> Result<Vec<Citation>> {
    let mut citations = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?
        {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let extension = path
                .extension()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_symlink() {
                continue;
            } else if path.is_dir() {
                if !name.starts_with('.') && !LEFT_OUT.contains(&name.as_str()) {
                    folders.push(path);
                }
            } else if EXTENSIONS.contains(&extension.as_str()) {
                let file = path.strip_prefix(root)?.to_string_lossy().into_owned();
                let text = fs::read_to_string(&path).with_context(|| format!("reading {file}"))?;
                citations.extend(in_file(&file, &text));
            }
        }
    }
    citations.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    Ok(citations)
}

fn in_file(file: &str, text: &str) -> Vec<Citation> {
    let mut test = is_test_file(file);
    let mut citations = Vec::new();
    for (index, line) in text.lines().enumerate() {
        // Unit tests stand at the bottom of a file: from here on, everything is a test.
        test |= starts_unit_tests(line);
        for id in cited(line) {
            citations.push(Citation {
                id,
                file: file.to_owned(),
                line: index + 1,
                test,
            });
        }
    }
    citations
}

fn is_test_file(file: &str) -> bool {
    let mut parts = file.split('/');
    let name = parts.next_back().unwrap_or_default();
    let folders: Vec<&str> = parts.collect();
    folders
        .first()
        .is_some_and(|first| CHECKERS.contains(first))
        || folders.contains(&"tests")
        || ["tests.rs", "test.rs"].contains(&name)
        || ["_tests.rs", "_test.rs"]
            .iter()
            .any(|end| name.ends_with(end))
        || name.starts_with("test_")
}

fn starts_unit_tests(line: &str) -> bool {
    let line = line.trim();
    ["#[cfg(test)]", "#[cfg(all(test", "#[cfg(any(test"]
        .iter()
        .any(|start| line.starts_with(start))
}

/// The ids behind `spec:` in a comment.
fn cited(line: &str) -> Vec<String> {
    let comment = ["//", "#", "/*"]
        .iter()
        .filter_map(|mark| line.find(mark))
        .min();
    let Some((_, list)) = comment.and_then(|at| line[at..].split_once("spec: MR-")) else {
        return Vec::new();
    };
    let list = format!("MR-{list}");
    list.match_indices("MR-")
        .filter_map(|(at, _)| id_at(&list[at..]))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_comments_only() {
        assert_eq!(
            cited("    // spec: MR-WIRE-001, MR-WIRE-002 (both)"),
            ["MR-WIRE-001", "MR-WIRE-002"]
        );
        assert_eq!(cited("x(); /// spec: MR-A-1"), ["MR-A-1"]);
        assert_eq!(cited("# spec: MR-A-1"), ["MR-A-1"]);
        assert!(cited("let text = \"spec: MR-A-1\";").is_empty());
        assert!(cited("// see MR-A-1").is_empty());
    }

    #[test]
    fn what_counts_as_a_test() {
        let text = "// spec: MR-A-1\nfn a() {}\n#[cfg(test)]\nmod tests {\n// spec: MR-A-2\n}\n";
        let test = |file: &str| {
            in_file(file, text)
                .iter()
                .map(|c| c.test)
                .collect::<Vec<_>>()
        };
        assert_eq!(test("core-nostd/src/wire/ack.rs"), [false, true]);
        assert_eq!(test("core-nostd/tests/ack.rs"), [true, true]);
        assert_eq!(test("core-nostd/src/wire/tests.rs"), [true, true]);
        assert_eq!(test("core-nostd/src/wire/data_tests.rs"), [true, true]);
        assert_eq!(test("sim/src/oracle.rs"), [true, true]);
    }
}
