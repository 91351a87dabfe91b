//! Reading requirements out of the spec.

use std::collections::HashMap;

/// A sentence with an id.
#[derive(Debug, PartialEq)]
pub struct Requirement {
    /// Such as `MR-WIRE-001`.
    pub id: String,
    /// The line it begins on, from 1.
    pub line: usize,
    /// The anchor of the heading it stands under.
    pub anchor: String,
    /// Its text as written, id included, in one line.
    pub quote: String,
}

/// What the spec says.
#[derive(Debug, Default)]
pub struct Spec {
    pub requirements: Vec<Requirement>,
    /// Lines of paragraphs that say MUST outside of any requirement.
    pub without_id: Vec<usize>,
}

/// A paragraph, list item or table row, in one line.
#[derive(Default)]
struct Block {
    line: usize,
    text: String,
}

pub fn parse(text: &str) -> Spec {
    let mut spec = Spec::default();
    let mut anchors = Anchors::default();
    let mut anchor = String::new();
    let mut block = Block::default();
    let mut fence: Option<&str> = None;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if let Some(mark) = fence {
            if trimmed.starts_with(mark) {
                fence = None;
            }
            continue;
        }
        let starts_fence = ["```", "~~~"]
            .into_iter()
            .find(|mark| trimmed.starts_with(mark));
        let heading = heading(line);
        let item = is_list_item(trimmed) || trimmed.starts_with('|');
        if trimmed.is_empty() || starts_fence.is_some() || heading.is_some() || item {
            spec.take(&mut block, &anchor);
        }
        if starts_fence.is_some() {
            fence = starts_fence;
        } else if let Some(title) = heading {
            anchor = anchors.next(title);
        } else if !trimmed.is_empty() {
            if block.text.is_empty() {
                block.line = index + 1;
            } else {
                block.text.push(' ');
            }
            block.text.push_str(trimmed);
        }
    }
    spec.take(&mut block, &anchor);
    spec
}

impl Spec {
    /// Takes the requirements out of a finished block.
    fn take(&mut self, block: &mut Block, anchor: &str) {
        let block = std::mem::take(block);
        let starts = definitions(&block.text);
        let before = starts.first().map_or(block.text.len(), |&(at, _)| at);
        if says_must(&block.text[..before]) {
            self.without_id.push(block.line);
        }
        for (index, &(at, id)) in starts.iter().enumerate() {
            let end = starts
                .get(index + 1)
                .map_or(block.text.len(), |&(next, _)| next);
            self.requirements.push(Requirement {
                id: id.to_owned(),
                line: block.line,
                anchor: anchor.to_owned(),
                quote: block.text[at..end].trim().to_owned(),
            });
        }
    }
}

/// Where requirements begin: `[MR-...]` at the block's beginning or behind the end of a sentence.
/// An id anywhere else is only a mention.
fn definitions(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("[MR-") {
        let Some(id) = id_at(&text[at + 1..]) else {
            continue;
        };
        if !text[at + 1 + id.len()..].starts_with(']') {
            continue;
        }
        let before = text[..at].trim_end_matches(['*', '_', ' ']);
        let first = before
            .chars()
            .all(|c| "-+|".contains(c) || c.is_whitespace())
            || before
                .strip_suffix(['.', ')'])
                .is_some_and(|n| n.chars().all(|c| c.is_ascii_digit()));
        if first || before.ends_with(['.', ';', ':', '|']) {
            found.push((at, id));
        }
    }
    found
}

/// The id that a text begins with: `MR-`, capitals or digits, `-`, digits.
pub fn id_at(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("MR-")?;
    let group = rest.find(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit())?;
    let number = rest[group..].strip_prefix('-')?;
    let digits = number
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(number.len());
    (group > 0 && digits > 0).then(|| &text[..3 + group + 1 + digits])
}

/// MUST as a word of its own, not in quotes or code, and not where the word itself is explained.
fn says_must(text: &str) -> bool {
    if text.contains("RFC 2119") || text.contains("BCP 14") {
        return false;
    }
    text.match_indices("MUST").any(|(at, word)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let part = |c: char| c.is_alphanumeric() || "_-\"`".contains(c);
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    ((1..=6).contains(&level) && title.starts_with(' ')).then(|| title.trim())
}

fn is_list_item(trimmed: &str) -> bool {
    let digits = trimmed.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered =
        digits.len() < trimmed.len() && (digits.starts_with(". ") || digits.starts_with(") "));
    numbered
        || ["- ", "* ", "+ "]
            .iter()
            .any(|mark| trimmed.starts_with(mark))
}

/// Anchors of headings as duvet makes them.
#[derive(Default)]
struct Anchors {
    seen: HashMap<String, usize>,
}

impl Anchors {
    fn next(&mut self, title: &str) -> String {
        let slug = slug::slugify(title);
        let count = self.seen.entry(slug.clone()).or_insert(0);
        *count += 1;
        if *count == 1 {
            slug
        } else {
            format!("{slug}-{}", *count - 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<String> {
        parse(text)
            .requirements
            .into_iter()
            .map(|requirement| requirement.id)
            .collect()
    }

    #[test]
    fn requirements_in_paragraphs_items_and_rows() {
        let text = "## 2.1 Common `header`\n\n[MR-WIRE-001] A MUST b,\nand c. [MR-WIRE-002] D MUST e.\n\
                    1. **[MR-WIRE-003]** F MUST g.\n- [MR-WIRE-004] H MUST i.\n\
                    | x | [MR-WIRE-005] J MUST k |\n";
        let spec = parse(text);
        assert!(spec.without_id.is_empty());
        assert_eq!(spec.requirements.len(), 5);
        assert_eq!(spec.requirements[0].quote, "[MR-WIRE-001] A MUST b, and c.");
        assert_eq!(spec.requirements[0].line, 3);
        assert_eq!(spec.requirements[0].anchor, "2-1-common-header");
        assert_eq!(spec.requirements[1].quote, "[MR-WIRE-002] D MUST e.");
    }

    #[test]
    fn mentions_code_and_definitions_of_the_word_are_not_requirements() {
        let text = "As [MR-WIRE-001] says.\n\nThe words \"MUST\" and `MUST` are words.\n\n\
                    ```\n[MR-WIRE-002] MUST\n```\n";
        assert_eq!(ids(text), Vec::<String>::new());
        assert!(parse(text).without_id.is_empty());
    }

    #[test]
    fn must_without_an_id_is_reported() {
        assert_eq!(parse("# A\n\nB MUST c.\n").without_id, [3]);
        assert_eq!(
            parse("# A\n\nB MUST c. [MR-A-1] D MUST e.\n").without_id,
            [3]
        );
    }

    #[test]
    fn equal_headings_get_numbers() {
        let spec = parse("## A\n## A\n[MR-A-1] MUST\n");
        assert_eq!(spec.requirements[0].anchor, "a-1");
    }
}
