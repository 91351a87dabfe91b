//! Traceability: which requirement of `docs/spec.md` is kept by which code and seen by which test.
//!
//! Code and tests cite requirements by id, `// spec: MR-WIRE-001`. The citations and the ids in
//! the spec are compared here; the same facts are then written in the form that `duvet` reads
//! (with the sentence that an id stands for), and duvet makes its report of them.

mod cite;
mod duvet;
mod spec;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail};

use crate::workspace;
use cite::Citation;
use spec::Spec;

const SPEC: &str = "docs/spec.md";

/// The step.
pub fn run() -> Result<()> {
    let text = fs::read_to_string(workspace::root().join(SPEC)).context("reading docs/spec.md")?;
    let spec = spec::parse(&text);
    if spec.requirements.is_empty() {
        bail!("{SPEC} has no requirement that begins with an id like [MR-WIRE-001]");
    }
    let citations = cite::scan(workspace::root())?;
    let findings = compare(&spec, &citations);
    let folder = workspace::target_dir()?.join("traceability");
    duvet::write(&folder, &text, &spec, &citations)?;
    let incomplete = duvet::report(&folder);
    print(&spec, &citations, &findings);
    let incomplete = incomplete?;
    println!(
        "reports: {0}/report.html, {0}/report.json",
        folder.display()
    );
    if !findings.is_empty() {
        let counts: Vec<String> = findings
            .iter()
            .map(|(what, list)| format!("{} {what}", list.len()))
            .collect();
        bail!("{}", counts.join(", "));
    }
    if incomplete > 0 {
        bail!(
            "duvet finds {incomplete} requirements incomplete that are complete here: see its report"
        );
    }
    Ok(())
}

/// What is wrong, by kind.
type Findings = BTreeMap<&'static str, Vec<String>>;

fn compare(spec: &Spec, citations: &[Citation]) -> Findings {
    let cited = |test: bool| -> BTreeSet<&str> {
        citations
            .iter()
            .filter(|c| c.test == test)
            .map(|c| c.id.as_str())
            .collect()
    };
    let (code, tests) = (cited(false), cited(true));
    let mut known = BTreeSet::new();
    let mut findings = Findings::new();
    let mut add = |kind, line: String| findings.entry(kind).or_default().push(line);
    for requirement in &spec.requirements {
        let id = requirement.id.as_str();
        let place = format!("{id} ({SPEC}:{})", requirement.line);
        if !known.insert(id) {
            add("ids defined twice", place.clone());
        }
        if !code.contains(id) {
            add("requirements without code", place.clone());
        }
        if !tests.contains(id) {
            add("requirements without a test", place);
        }
    }
    for citation in citations
        .iter()
        .filter(|citation| !known.contains(citation.id.as_str()))
    {
        let place = format!("{} ({}:{})", citation.id, citation.file, citation.line);
        add("citations of an unknown id", place);
    }
    for line in &spec.without_id {
        add("sentences with MUST and no id", format!("{SPEC}:{line}"));
    }
    findings
}

fn print(spec: &Spec, citations: &[Citation], findings: &Findings) {
    for (what, list) in findings {
        println!("{what}:");
        for line in list {
            println!("  {line}");
        }
    }
    let tests = citations.iter().filter(|citation| citation.test).count();
    println!(
        "{} requirements, {} citations in code, {tests} in tests",
        spec.requirements.len(),
        citations.len() - tests
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Spec\n\n## Wire\n\n[MR-WIRE-001] A sender MUST do A.\n\n\
                        - [MR-WIRE-002] B MUST NOT\n  happen.\n\nAnd C MUST be.\n";

    fn citation(id: &str, test: bool) -> Citation {
        Citation {
            id: id.into(),
            file: "a.rs".into(),
            line: 1,
            test,
        }
    }

    #[test]
    fn a_complete_set_has_no_findings() {
        let spec = spec::parse(&TEXT.replace("And C MUST be.\n", ""));
        let both = |id| [citation(id, false), citation(id, true)];
        let citations: Vec<_> = ["MR-WIRE-001", "MR-WIRE-002"]
            .into_iter()
            .flat_map(both)
            .collect();
        assert!(compare(&spec, &citations).is_empty());
    }

    #[test]
    fn everything_wrong_is_found() {
        let spec = spec::parse(TEXT);
        let citations = [
            citation("MR-WIRE-001", false),
            citation("MR-WIRE-009", true),
        ];
        let findings = compare(&spec, &citations);
        let count = |what| findings.get(what).map_or(0, Vec::len);
        assert_eq!(count("requirements without code"), 1);
        assert_eq!(count("requirements without a test"), 2);
        assert_eq!(count("citations of an unknown id"), 1);
        assert_eq!(count("sentences with MUST and no id"), 1);
    }
}
