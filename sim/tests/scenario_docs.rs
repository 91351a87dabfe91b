//! `docs/scenarios.md` has every key of every part, and the defaults that are.

use metaroce_sim::scenario::{Document, NoFiles};
use serde_json::Value;

const TRANSPORTS: [&str; 5] = [
    "metaroce",
    "rocev2",
    "infiniband",
    "ultra-ethernet",
    "celeris",
];
const WORKLOADS: [&str; 12] = [
    "permutation",
    "incast",
    "outcast",
    "collective",
    "poisson",
    "training",
    "pipeline",
    "moe",
    "kv-cache",
    "storage",
    "htsim",
    "goal",
];

/// A scenario with this transport and workload and with one of each fault, as a tree.
fn scenario(transport: &str, workload: &str) -> Value {
    let text = format!(
        r#"
        schema = 1
        transport = "{transport}"
        workload = "{workload}"
        fabric.flow = {{ kind = "pause", xoff_bytes = 1, xon_bytes = 1, headroom_bytes = 1 }}
        fabric.buffer = {{ bytes = 1_000_000_000, alpha_eighths = 8 }}
        fault = [
            {{ effect = {{ kind = "flap", period = 2, down = 1 }} }},
            {{ effect = {{ kind = "burst", to_bad = 0, to_good = 0, loss_good = 0, loss_bad = 0 }} }},
            {{ effect = {{ kind = "reordering", probability = 0, max_delay = 1 }} }},
            {{ effect = {{ kind = "slow", mbps = 1 }} }},
        ]
        "#
    );
    let none: [&str; 0] = [];
    match Document::parse("docs", &text, &none, &NoFiles) {
        Ok(document) => serde_json::to_value(document.scenario).unwrap(),
        Err(error) => panic!("{error}"),
    }
}

/// What stands between a heading and the next that is not below it.
fn section<'a>(docs: &'a str, heading: &str) -> &'a str {
    let start = docs
        .find(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("there is no `{heading}`"));
    let level = heading.split(' ').next().unwrap().len();
    let rest = &docs[start + 1 + heading.len()..];
    let ends = (2..=level).filter_map(|level| rest.find(&format!("\n{} ", "#".repeat(level))));
    &rest[..ends.min().unwrap_or(rest.len())]
}

/// Every key below a value, with its value.
fn keys<'a>(value: &'a Value, into: &mut Vec<(&'a str, &'a Value)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                into.push((key, value));
                keys(value, into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, into)),
        _ => {}
    }
}

fn check(docs: &str, heading: &str, value: &Value, with_defaults: bool) {
    let text = section(docs, heading);
    let mut all = Vec::new();
    keys(value, &mut all);
    assert!(!all.is_empty());
    for (key, default) in all {
        // Choices that several parts have are listed once.
        let listed = docs.contains(&format!(
            "
- `{key}`:"
        ));
        assert!(
            listed || text.contains(&format!("`{key}`")),
            "{heading}: `{key}` is missing"
        );
        let shown = match default {
            Value::Null => "none".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Number(value) => format!("`{value}`"),
            Value::String(value) if !value.is_empty() && !value.contains('\n') => {
                format!("`{value}`")
            }
            _ => continue,
        };
        // A key may be in several tables of a part, with a default in each.
        let rows: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with(&format!("| `{key}` |")))
            .collect();
        let told = rows.iter().any(|row| row.contains(&format!("| {shown} |")));
        assert!(
            !with_defaults || rows.is_empty() || told,
            "{heading}: `{key}` is {shown}, but the docs say {rows:?}"
        );
    }
}

#[test]
fn every_key_is_documented_with_its_default() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/scenarios.md");
    let docs = std::fs::read_to_string(path).unwrap();
    let all = scenario("metaroce", "incast");
    check(&docs, "## `[fabric]`", &all["fabric"], false);
    check(&docs, "## `[[fault]]`", &all["fault"], false);
    check(&docs, "## `[run]`", &all["run"], true);
    for key in all.as_object().unwrap().keys() {
        assert!(docs.contains(&format!("`{key}`")), "{key}");
    }
    for kind in TRANSPORTS {
        let heading = format!("### `kind = \"{kind}\"`");
        let mut scenario = scenario(kind, "incast");
        let own = &mut scenario["transport"][kind];
        // Its keys are those of `congestion` of RoCEv2.
        if let Some(dcqcn) = own.get_mut("dcqcn") {
            *dcqcn = Value::Object(serde_json::Map::new());
        }
        check(&docs, &heading, own, true);
    }
    for kind in WORKLOADS {
        let heading = format!("### `kind = \"{kind}\"`");
        check(
            &docs,
            &heading,
            &scenario("metaroce", kind)["workload"][kind],
            true,
        );
    }
}
