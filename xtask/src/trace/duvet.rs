//! duvet's input, and its report.
//!
//! duvet wants each citation to quote the sentence. So that code need not, a shadow of the tree
//! is written: each citing file under its own path, empty but for duvet's comments, which stand
//! on the line of the citation or the next free one. Links in the report thus lead to the code.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::SPEC;
use super::cite::{Citation, EXTENSIONS};
use super::spec::{Requirement, Spec};
use crate::process;

const CONFIG: &str = r#"'$schema' = "https://awslabs.github.io/duvet/config/v0.4.json"

[[requirement]]
pattern = "requirements.toml"

[report.html]
enabled = true
path = "report.html"

[report.json]
enabled = true
path = "report.json"
"#;

pub fn write(folder: &Path, text: &str, spec: &Spec, citations: &[Citation]) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    let sources =
        EXTENSIONS.map(|extension| format!("[[source]]\npattern = \"**/*.{extension}\"\n\n"));
    create(
        folder,
        ".duvet/config.toml",
        &format!("{CONFIG}\n{}", sources.concat()),
    )?;
    create(folder, SPEC, text)?;
    create(folder, "requirements.toml", &requirements(spec))?;
    let known: HashMap<&str, &Requirement> = spec
        .requirements
        .iter()
        .map(|r| (r.id.as_str(), r))
        .collect();
    let mut files: BTreeMap<&str, Vec<(&Citation, &Requirement)>> = BTreeMap::new();
    for citation in citations {
        if let Some(requirement) = known.get(citation.id.as_str()) {
            files
                .entry(&citation.file)
                .or_default()
                .push((citation, requirement));
        }
    }
    for (file, citations) in files {
        create(folder, file, &shadow(&citations))?;
    }
    Ok(())
}

/// Runs duvet; the number of requirements that its report does not show as implemented and tested
/// from the first to the last character.
pub fn report(folder: &Path) -> Result<usize> {
    process::run(process::command("duvet").arg("report").current_dir(folder))?;
    let text = fs::read_to_string(folder.join("report.json")).context("reading duvet's report")?;
    let report: Value = serde_json::from_str(&text).context("duvet's report is not JSON")?;
    let statuses = report["statuses"]
        .as_object()
        .context("duvet's report has no statuses")?;
    let complete = |status: &Value| {
        status["spec"].is_u64()
            && ["citation", "test"]
                .iter()
                .all(|kind| status[kind] == status["spec"])
    };
    Ok(statuses.values().filter(|status| !complete(status)).count())
}

fn create(folder: &Path, name: &str, text: &str) -> Result<()> {
    let file = folder.join(name);
    fs::create_dir_all(file.parent().context("no folder")?)?;
    fs::write(&file, text).with_context(|| format!("writing {}", file.display()))
}

fn requirements(spec: &Spec) -> String {
    let one = |requirement: &Requirement| {
        let Requirement { anchor, quote, .. } = requirement;
        let level = ["MUST", "SHOULD", "MAY"]
            .into_iter()
            .find(|word| quote.contains(word));
        let level = level.unwrap_or("MUST");
        format!(
            "[[spec]]\ntarget = \"{SPEC}#{anchor}\"\nlevel = \"{level}\"\nquote = '''\n{quote}\n'''\n\n"
        )
    };
    spec.requirements.iter().map(one).collect()
}

fn shadow(citations: &[(&Citation, &Requirement)]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (citation, requirement) in citations {
        while lines.len() + 1 < citation.line {
            lines.push(String::new());
        }
        let kind = if citation.test {
            "test"
        } else {
            "implementation"
        };
        lines.push(format!("//= {SPEC}#{}", requirement.anchor));
        lines.push(format!("//= type={kind}"));
        lines.push(format!("//# {}", requirement.quote));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shadows_stand_on_the_line_of_the_citation() {
        let requirement = Requirement {
            id: "MR-A-1".into(),
            line: 1,
            anchor: "a".into(),
            quote: "q".into(),
        };
        let citation = Citation {
            id: "MR-A-1".into(),
            file: "a.rs".into(),
            line: 3,
            test: true,
        };
        let text = shadow(&[(&citation, &requirement), (&citation, &requirement)]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[2], "//= docs/spec.md#a");
        assert_eq!(lines[3], "//= type=test");
        assert_eq!(lines[5], "//= docs/spec.md#a");
    }
}
