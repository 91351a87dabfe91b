//! A page of results: text, tables and charts.

use super::chart::Chart;
use metaroce_sim::report::Table;
use std::fmt::Write as _;

/// A page.
#[derive(Debug, Default)]
pub struct Page {
    /// What is measured, and how.
    pub about: String,
    sections: Vec<(String, String, Table)>,
    /// Its charts.
    pub charts: Vec<Chart>,
}

/// The file of a page's chart.
pub fn plot_name(page: &str, index: usize) -> String {
    if index == 0 {
        format!("{page}.svg")
    } else {
        format!("{page}-{}.svg", index + 1)
    }
}

impl Page {
    /// A page with an introduction.
    pub fn new(about: &str) -> Self {
        Self {
            about: about.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a table with a heading and a text.
    pub fn section(&mut self, heading: &str, text: &str, table: Table) {
        self.sections
            .push((heading.to_owned(), text.to_owned(), table));
    }

    /// Adds the list of what the transports and their fabrics were.
    pub fn transports(&mut self, scenario: &str, table: Table) {
        let text = format!(
            "`scenarios/{scenario}.toml` with what the page says, and for each transport what it is made for:"
        );
        self.section("Transports and their fabrics", &text, table);
    }

    /// The page as markdown.
    pub fn markdown(&self, name: &str, command: &str, seeds: u64) -> String {
        let mut text = format!(
            "# {name}\n\n`{command}`\n\n{}\n\nMedians of {seeds} seeds, with ranges in parentheses where seeds differ.\n",
            self.about.trim()
        );
        for (index, chart) in self.charts.iter().enumerate() {
            let _ = write!(text, "\n![{}]({})\n", chart.title, plot_name(name, index));
        }
        for (heading, about, table) in &self.sections {
            let _ = write!(text, "\n## {heading}\n\n");
            if !about.is_empty() {
                let _ = write!(text, "{}\n\n", about.trim());
            }
            text += &table.markdown();
        }
        text
    }
}
