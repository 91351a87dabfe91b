//! Tables for people: medians and ranges over seeds, as markdown.

use core::fmt::Write as _;

/// The median of some values with their range.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The one in the middle.
    pub median: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// Of at least one value; of none, all are NaN.
    ///
    /// # Panics
    /// If a value is not a finite number: a figure that does not exist is none, and not one of them.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        assert!(values.iter().all(|value| value.is_finite()), "{values:?}");
        values.sort_by(f64::total_cmp);
        let nan = f64::NAN;
        let n = values.len();
        let median = match n {
            0 => nan,
            n if n % 2 == 1 => values[n / 2],
            n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
        };
        Self {
            min: values.first().copied().unwrap_or(nan),
            median,
            max: values.last().copied().unwrap_or(nan),
        }
    }

    /// `median (min to max)` with some decimals; only the median if all are equal, a dash if there are none.
    #[must_use]
    pub fn show(&self, decimals: usize) -> String {
        if self.median.is_nan() {
            return "-".to_owned();
        }
        let fixed = |value: f64| {
            let text = format!("{value:.decimals$}");
            // What is rounded to zero from below is zero.
            match text.strip_prefix('-') {
                Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => {
                    rest.to_owned()
                }
                _ => text,
            }
        };
        let (min, median, max) = (fixed(self.min), fixed(self.median), fixed(self.max));
        if min == max {
            median
        } else {
            format!("{median} ({min} to {max})")
        }
    }
}

/// A markdown table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this head.
    #[must_use]
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Self {
        Self {
            head: head.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// The table, its columns aligned.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut widths: Vec<usize> = self.head.iter().map(|cell| cell.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        let mut line = |cells: &[String]| {
            for (cell, &width) in cells.iter().zip(&widths) {
                let _ = write!(text, "| {cell:width$} ");
            }
            text.push_str("|\n");
        };
        line(&self.head);
        line(
            &widths
                .iter()
                .map(|&width| "-".repeat(width))
                .collect::<Vec<_>>(),
        );
        for row in &self.rows {
            line(row);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]).show(1), "2.0 (1.0 to 3.0)");
        assert_eq!(Spread::of([1.0, 2.0]).median, 1.5);
        assert_eq!(Spread::of([2.001, 2.002]).show(2), "2.00");
        assert_eq!(Spread::of([]).show(2), "-");
        assert_eq!(Spread::of([-0.0]).show(0), "0");
        assert_eq!(
            Spread::of([-0.01, -0.02, -0.06]).show(1),
            "0.0 (-0.1 to 0.0)"
        );
    }

    #[test]
    #[should_panic(expected = "NaN")]
    fn what_is_no_number_has_no_spread() {
        let _ = Spread::of([1.0, f64::NAN]);
    }

    #[test]
    fn tables() {
        let mut table = Table::new(["a", "long"]);
        table.row(["wide cell", "x"]);
        assert_eq!(
            table.markdown(),
            "| a         | long |\n| --------- | ---- |\n| wide cell | x    |\n"
        );
    }
}
