//! Line charts as SVG.

use plotters::prelude::*;

/// How an axis is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By factors.
    Logarithmic,
}

/// A line: points in the order of x.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// A chart.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// What is on the axes, with units.
    pub axes: (String, String),
    /// How x is divided; y is divided evenly from zero.
    pub x: Scale,
    /// The lines.
    pub lines: Vec<Line>,
}

const SIZE: (u32, u32) = (860, 420);

impl Chart {
    /// The chart as SVG.
    ///
    /// # Errors
    /// What could not be drawn.
    pub fn svg(&self) -> Result<String, String> {
        let mut text = String::new();
        self.draw(&mut text)
            .map_err(|error| format!("{}: {error}", self.title))?;
        Ok(text)
    }

    fn draw(&self, text: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let range = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::MAX, f64::MIN), |(low, high), value| {
                (low.min(value), high.max(value))
            })
        };
        let (left, right) = range(&mut points().map(|point| point.0));
        let (_, top) = range(&mut points().map(|point| point.1));
        if left > right {
            return Err("no points".into());
        }
        let area = SVGBackend::with_string(text, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut builder = ChartBuilder::on(&area);
        builder
            .caption(&self.title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(42)
            .y_label_area_size(64);
        let y = 0.0..top * 1.05 + f64::MIN_POSITIVE;
        macro_rules! lines {
            ($chart:expr) => {{
                let mut chart = $chart;
                chart
                    .configure_mesh()
                    .x_desc(&self.axes.0)
                    .y_desc(&self.axes.1)
                    .light_line_style(WHITE)
                    .draw()?;
                for (index, line) in self.lines.iter().enumerate() {
                    let color = Palette99::pick(index).to_rgba();
                    chart
                        .draw_series(
                            LineSeries::new(line.points.iter().copied(), color.stroke_width(2))
                                .point_size(3),
                        )?
                        .label(&line.name)
                        .legend(move |(x, y)| {
                            PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2))
                        });
                }
                chart
                    .configure_series_labels()
                    .position(SeriesLabelPosition::LowerRight)
                    .background_style(WHITE.mix(0.8))
                    .border_style(BLACK.mix(0.3))
                    .draw()?;
            }};
        }
        match self.x {
            Scale::Linear => lines!(builder.build_cartesian_2d(left..right, y)?),
            Scale::Logarithmic => lines!(builder.build_cartesian_2d((left..right).log_scale(), y)?),
        }
        area.present()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_its_lines_and_axes() {
        let chart = Chart {
            title: "goodput".to_owned(),
            axes: ("loss, %".to_owned(), "Gbit/s".to_owned()),
            x: Scale::Logarithmic,
            lines: ["ours", "theirs"]
                .map(|name| Line {
                    name: name.to_owned(),
                    points: vec![(0.1, 90.0), (10.0, 80.0)],
                })
                .to_vec(),
        };
        let svg = chart.svg().unwrap();
        for part in [
            "<svg", "goodput", "loss, %", "Gbit/s", "ours", "theirs", "</svg>",
        ] {
            assert!(svg.contains(part), "{part}");
        }
        assert!(
            Chart {
                lines: Vec::new(),
                ..chart
            }
            .svg()
            .is_err()
        );
    }
}
