//! A scenario file, what overrides it, and the scenario that they make.

use serde::Deserialize;

use super::error::{Problem, ScenarioError};
use super::read::Reader;
use super::tree::{Entry, Span, Tree, Value};
use super::{SCHEMA, Scenario, transport};
use crate::fabric::{FabricConfig, Tier};

/// Where the files are that a scenario names (connection matrices, traces).
pub trait Files {
    /// The text of a file.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, path: &str) -> Result<String, String>;
}

/// There are no files.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str) -> Result<String, String> {
        Err("files cannot be read here".to_owned())
    }
}

/// A text and where its spans begin.
#[derive(Clone, Debug)]
struct Source {
    label: String,
    text: String,
    start: usize,
    is_file: bool,
}

/// A scenario, and where each part of it was written.
#[derive(Clone, Debug)]
pub struct Document {
    /// The scenario.
    pub scenario: Scenario,
    sources: Vec<Source>,
    tree: Tree,
}

impl Document {
    /// Reads the text of a file of this name, and overrides such as `fabric.planes=4`.
    ///
    /// # Errors
    /// What is wrong, where, and what would do.
    pub fn parse(
        name: &str,
        text: &str,
        overrides: &[impl AsRef<str>],
        files: &dyn Files,
    ) -> Result<Self, ScenarioError> {
        let mut sources = vec![Source {
            label: name.to_owned(),
            text: text.to_owned(),
            start: 0,
            is_file: true,
        }];
        let read = Self::read(&mut sources, overrides, files);
        let (tree, scenario) = read.map_err(|problem| located(&sources, problem))?;
        Ok(Self {
            scenario,
            sources,
            tree,
        })
    }

    fn read(
        sources: &mut Vec<Source>,
        overrides: &[impl AsRef<str>],
        files: &dyn Files,
    ) -> Result<(Tree, Scenario), Problem> {
        let mut tree = Tree::parse(&sources[0].text)?;
        let mut set: Vec<_> = overrides.iter().map(AsRef::as_ref).collect();
        // Another kind drops what the file says of the old one, so it comes before settings of the new one.
        // Of kinds those further out first, for the same reason.
        set.sort_by_key(|text| {
            let key = text.split('=').next().unwrap_or("").trim();
            (!key.ends_with("kind"), key.matches('.').count())
        });
        for text in set {
            set_one(&mut tree, sources, text)?;
        }
        check_schema(&tree)?;
        if let Some(fabric) = find(&mut tree, "fabric") {
            complete_fabric(fabric)?;
        }
        let fabric = match tree.get("fabric") {
            Some(part) => FabricConfig::deserialize(Reader::new(part))
                .map_err(|problem| problem.within("fabric"))?,
            None => FabricConfig::default(),
        };
        // Before anything is derived from it.
        fabric
            .check()
            .and_then(|()| fabric.round_trip())
            .map_err(|error| settings_problem(&tree, error.into()))?;
        let line = fabric.tiers[Tier::Host as usize].mbps * u64::from(fabric.planes);
        if let Some(part) = find(&mut tree, "transport") {
            complete_transport(part, &fabric)?;
        }
        if let Some(part) = find(&mut tree, "workload") {
            read_file(part, files)?;
            if part.kind() == Some("poisson") {
                complete_line(part, line);
            }
        }
        if let Some(part) = find(&mut tree, "background") {
            complete_line(part, line);
        }
        let scenario = Scenario::deserialize(Reader::new(&tree))?;
        Ok((tree, scenario))
    }

    /// The same error with the place in the file, or the override, that it comes from.
    #[must_use]
    pub fn place(&self, error: ScenarioError) -> ScenarioError {
        match error {
            ScenarioError::Settings { .. } => {
                located(&self.sources, settings_problem(&self.tree, error))
            }
            ScenarioError::Text { .. } => error,
        }
    }
}

/// Where the key of an error stands, or the part that it would stand in.
fn settings_problem(tree: &Tree, error: ScenarioError) -> Problem {
    let (key, message) = match error {
        ScenarioError::Settings { key, message } | ScenarioError::Text { key, message, .. } => {
            (key, message)
        }
    };
    let (mut at, mut span) = (tree, 0..0);
    for part in key.split('.') {
        let entry = match &at.value {
            Value::Table(entries) => entries.iter().find(|entry| entry.key == part),
            _ => None,
        };
        (at, span) = match (entry, at.get(part)) {
            (Some(entry), _) => (&entry.tree, entry.span.clone()),
            (None, Some(item)) => (item, item.span.clone()),
            (None, None) => break,
        };
    }
    Problem { span, key, message }
}

fn located(sources: &[Source], problem: Problem) -> ScenarioError {
    let start = problem.span.start;
    let source = sources
        .iter()
        .rev()
        .find(|source| source.start <= start && start != usize::MAX)
        .unwrap_or(&sources[0]);
    let before = source.text.get(..start.saturating_sub(source.start));
    let before = before.unwrap_or("");
    let place = if source.is_file {
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        format!("{}:{line}:{column}", source.label)
    } else {
        source.label.clone()
    };
    ScenarioError::Text {
        place,
        key: problem.key,
        message: problem.message,
    }
}

fn set_one(tree: &mut Tree, sources: &mut Vec<Source>, text: &str) -> Result<(), Problem> {
    let start = sources
        .last()
        .map_or(0, |last| last.start + last.text.len() + 1);
    sources.push(Source {
        label: format!("--set {text}"),
        text: text.to_owned(),
        start,
        is_file: false,
    });
    let span = start..start + text.len();
    let wrong = |key: &str, message: String| Problem {
        span: span.clone(),
        key: key.to_owned(),
        message,
    };
    let Some((key, value)) = text.split_once('=') else {
        return Err(wrong(
            "",
            "write KEY=VALUE, such as fabric.planes=4".to_owned(),
        ));
    };
    let key = key.trim();
    if key.split('.').any(str::is_empty) {
        return Err(wrong(
            "",
            "write KEY=VALUE, such as fabric.planes=4".to_owned(),
        ));
    }
    // What is not TOML is text: there is no need for quotes.
    let parsed = Tree::parse(&format!("value = {value}")).ok();
    let mut parsed = match parsed.as_ref().and_then(|tree| tree.get("value")) {
        Some(tree) if !value.contains('\n') => tree.clone(),
        _ => Tree {
            span: span.clone(),
            value: Value::Text(value.trim().to_owned()),
        },
    };
    stand_at(&mut parsed, &span);
    tree.set(key, parsed).map_err(|message| wrong(key, message))
}

fn stand_at(tree: &mut Tree, span: &Span) {
    tree.span = span.clone();
    match &mut tree.value {
        Value::List(items) => items.iter_mut().for_each(|item| stand_at(item, span)),
        Value::Table(entries) => {
            for entry in entries {
                entry.span = span.clone();
                stand_at(&mut entry.tree, span);
            }
        }
        _ => {}
    }
}

fn find<'a>(tree: &'a mut Tree, key: &str) -> Option<&'a mut Tree> {
    tree.get(key)?;
    tree.entry(key)
}

fn check_schema(tree: &Tree) -> Result<(), Problem> {
    let problem = |span: Span, message: String| Problem {
        span,
        key: "schema".to_owned(),
        message,
    };
    match tree.get("schema") {
        None => Err(problem(0..0, format!("missing: write `schema = {SCHEMA}`"))),
        Some(found) => match &found.value {
            Value::Integer(version) if *version == i128::from(SCHEMA) => Ok(()),
            _ => Err(problem(
                found.span.clone(),
                format!("this program reads version {SCHEMA}"),
            )),
        },
    }
}

/// Removes an entry of a table.
fn take(tree: &mut Tree, key: &str) -> Option<Entry> {
    let Value::Table(entries) = &mut tree.value else {
        return None;
    };
    let index = entries.iter().position(|entry| entry.key == key)?;
    Some(entries.remove(index))
}

/// `k` of a fat tree stands for all its counts, and `ecn = false` for thresholds that are never reached.
fn complete_fabric(fabric: &mut Tree) -> Result<(), Problem> {
    if let Some(shape) = find(fabric, "shape")
        && shape.kind() == Some("fat-tree")
        && let Some(k) = take(shape, "k")
    {
        let half = match k.tree.value {
            Value::Integer(k) if k >= 2 && k % 2 == 0 && k <= 64 => k / 2,
            _ => {
                return Err(Problem {
                    span: k.tree.span,
                    key: "fabric.shape.k".to_owned(),
                    message: "an even number of ports from 2 to 64 is expected".to_owned(),
                });
            }
        };
        let counts = serde_json::json!({
            "pods": (2 * half) as u32, "edges": half as u32, "hosts_per_edge": half as u32,
            "aggregations": half as u32, "cores_per_aggregation": half as u32,
        });
        shape.fill(&Tree::computed(&counts, &k.span));
    }
    if let Some(ecn) = take(fabric, "ecn") {
        match ecn.tree.value {
            Value::Bool(true) => {}
            Value::Bool(false) => {
                let never =
                    serde_json::json!({ "mark_low_bytes": u64::MAX, "mark_high_bytes": u64::MAX });
                fabric.fill(&Tree::computed(&never, &ecn.span));
            }
            other => {
                return Err(Problem {
                    span: ecn.tree.span,
                    key: "fabric.ecn".to_owned(),
                    message: format!("{}, where true or false is expected", other.name()),
                });
            }
        }
    }
    Ok(())
}

/// Settings that follow from the fabric, or from a preset.
fn complete_transport(part: &mut Tree, fabric: &FabricConfig) -> Result<(), Problem> {
    if let Value::Text(kind) = &part.value {
        let kind = serde_json::json!({ "kind": kind });
        *part = Tree::computed(&kind, &part.span);
    }
    // As written out, `{ rocev2 = { ... } }`, is the same.
    if part.kind().is_none()
        && let Value::Table(entries) = &mut part.value
        && entries.len() == 1
        && let Some(entry) = entries.pop_if(|entry| matches!(entry.tree.value, Value::Table(_)))
    {
        let kind = serde_json::json!({ "kind": entry.key });
        *part = entry.tree;
        part.fill(&Tree::computed(&kind, &entry.span));
    }
    let Some(kind) = part.kind().map(str::to_owned) else {
        return Ok(());
    };
    let presets = transport::presets(&kind);
    let preset = if presets.is_empty() {
        None
    } else {
        take(part, "preset")
    };
    let preset = match preset {
        None => None,
        Some(entry) => match entry.tree.value {
            Value::Text(name) if presets.contains(&name.as_str()) => Some(name),
            _ => {
                return Err(Problem {
                    span: entry.tree.span,
                    key: "transport.preset".to_owned(),
                    message: format!("one of `{}` is expected", presets.join("`, `")),
                });
            }
        },
    };
    let defaults = transport::defaults(&kind, preset.as_deref(), fabric);
    let defaults = Tree::computed(&defaults, &part.span);
    part.fill(&defaults);
    Ok(())
}

/// The line of a host is that of the fabric.
fn complete_line(part: &mut Tree, mbps: u64) {
    let line = serde_json::json!({ "line_mbps": mbps });
    part.fill(&Tree::computed(&line, &part.span.clone()));
}

/// A workload that is a file of another format names it.
fn read_file(part: &mut Tree, files: &dyn Files) -> Result<(), Problem> {
    if !matches!(part.kind(), Some("htsim" | "goal")) {
        return Ok(());
    }
    let Some(entry) = take(part, "file") else {
        return Ok(());
    };
    let wrong = |message| Problem {
        span: entry.tree.span.clone(),
        key: "workload.file".to_owned(),
        message,
    };
    let Value::Text(path) = &entry.tree.value else {
        return Err(wrong("a file's name is expected".to_owned()));
    };
    let text = files
        .read(path)
        .map_err(|error| wrong(format!("`{path}`: {error}")))?;
    let text = serde_json::json!({ "text": text });
    part.fill(&Tree::computed(&text, &entry.span));
    Ok(())
}
