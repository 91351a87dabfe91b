//! What commands print: tables for people, JSON for programs.

use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::io::Write;
use std::time::Duration;

/// A table with a heading; numbers are to the right, the first column is not.
#[must_use]
pub fn table(heading: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(heading.to_vec())
        .remove_style(TableComponent::HorizontalLines)
        .remove_style(TableComponent::MiddleIntersections);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_cell_alignment(if index == 0 {
            CellAlignment::Left
        } else {
            CellAlignment::Right
        });
    }
    table
}

/// A two-column table of names and values.
#[must_use]
pub fn facts(rows: &[(&str, String)]) -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled);
    for (name, value) in rows {
        table.add_row(vec![(*name).to_owned(), value.clone()]);
    }
    table
}

/// Prints a line to standard output. A reader that has gone away is no error of ours.
pub fn line(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Prints a JSON value on one line.
pub fn json_line(value: &Value) {
    line(value);
}

/// Prints a JSON value for people to read, too.
pub fn json(value: &Value) {
    line(format_args!("{value:#}"));
}

/// A progress bar in bytes, on a terminal only.
#[must_use]
pub fn bytes_bar(total: u64, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total);
    if let Ok(style) =
        ProgressStyle::with_template("{bar:40} {binary_bytes:>10} of {binary_total_bytes}  {msg}")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// A line that changes while something runs, on a terminal only.
#[must_use]
pub fn spinner(quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
