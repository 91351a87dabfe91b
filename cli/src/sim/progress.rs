//! How far a run is, for people.

use crate::interrupt::Interrupt;
use crate::units::show_count;
use indicatif::{ProgressBar, ProgressStyle};
use metaroce_sim::scenario::Moment;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// A bar over the tasks of a workload.
pub struct Bar {
    bar: ProgressBar,
    begin: Instant,
    shown: Instant,
    interrupt: Interrupt,
}

impl Bar {
    /// A bar, hidden if nobody wants to see it.
    pub fn new(quiet: bool, interrupt: &Interrupt) -> Self {
        let bar = if quiet {
            ProgressBar::hidden()
        } else {
            ProgressBar::new(0)
        };
        let template = "{bar:30} {pos} of {len} tasks, {msg}, about {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let now = Instant::now();
        Self {
            bar,
            begin: now,
            shown: now,
            interrupt: interrupt.clone(),
        }
    }

    /// Shows where the run is, and stops it if the user wants an end.
    pub fn show(&mut self, moment: &Moment) -> ControlFlow<()> {
        if self.interrupt.requested() {
            return ControlFlow::Break(());
        }
        if self.shown.elapsed() >= Duration::from_millis(100) {
            self.shown = Instant::now();
            let seconds = self.begin.elapsed().as_secs_f64().max(1e-3);
            let speed = moment.events as f64 / seconds;
            self.bar.set_length(moment.tasks.into());
            self.bar.set_position(moment.done.into());
            self.bar.set_message(format!(
                "{:.1} us simulated, {} events/s",
                moment.elapsed.us_f64(),
                show_count(speed as u64)
            ));
        }
        ControlFlow::Continue(())
    }

    /// Seconds since the begin.
    pub fn finish(&self) -> f64 {
        self.bar.finish_and_clear();
        self.begin.elapsed().as_secs_f64()
    }
}
