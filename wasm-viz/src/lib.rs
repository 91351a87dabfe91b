//! The simulator in the browser: what the explorer's page calls in its worker.
//!
//! This is a thin layer on [`metaroce_sim::explore`]: it reads text and numbers, and fills typed arrays whose records
//! [`view`] describes. The page draws them.

#![forbid(unsafe_code)]

pub mod view;

use metaroce_conformance::conversation;
use metaroce_sim::explore::{Exploration, Intervention, Position};
use metaroce_sim::scenario::{Document, NoFiles};
use metaroce_sim::time::Time;
use wasm_bindgen::prelude::wasm_bindgen;

/// Errors are texts; JavaScript gets them as what is thrown.
type Outcome<T> = Result<T, String>;

/// To be called first: a panic is then told on the console.
#[wasm_bindgen(start)]
pub fn start() {
    console_error_panic_hook::set_once();
}

/// The hash of the project's reference conversation (`docs/conversation.md`), as 16 hexadecimal digits.
///
/// # Errors
/// That it was not carried out.
#[wasm_bindgen]
pub fn conversation_hash() -> Outcome<String> {
    let outcome = conversation::run(&conversation::REFERENCE);
    let outcome = outcome.map_err(|failure| format!("{failure:?}"))?;
    Ok(format!("{:016x}", outcome.hash))
}

/// One transport on one network. Times are picoseconds since the workload began.
#[wasm_bindgen]
pub struct Explorer {
    run: Exploration,
}

#[wasm_bindgen]
impl Explorer {
    /// Opens a scenario (TOML, and overrides such as `transport.kind=rocev2`, one a line) for a seed, with interventions as
    /// [`Self::interventions`] tells them.
    ///
    /// # Errors
    /// What is wrong with them, and where.
    #[wasm_bindgen(constructor)]
    pub fn new(
        name: &str,
        toml: &str,
        overrides: &str,
        seed: u64,
        interventions: &str,
    ) -> Outcome<Self> {
        let overrides: Vec<&str> = overrides.lines().filter(|line| !line.is_empty()).collect();
        let document = Document::parse(name, toml, &overrides, &NoFiles);
        let document = document.map_err(|error| error.to_string())?;
        let interventions = interventions
            .split('.')
            .filter(|text| !text.is_empty())
            .map(str::parse)
            .collect::<Outcome<Vec<Intervention>>>()?;
        let run = Exploration::with_interventions(document.scenario, seed, interventions);
        let run = run.map_err(|error| error.to_string())?;
        Ok(Self { run })
    }

    /// Goes on until a time.
    pub fn advance(&mut self, ps: f64) {
        self.run.advance(Time::from_ps(ps as u64));
    }

    /// Goes on for one event.
    pub fn step(&mut self) {
        self.run.step();
    }

    /// Goes to a time, and there to so many events (0: all that are due), forwards or back.
    ///
    /// # Errors
    /// That the scenario could not be opened again.
    pub fn seek(&mut self, ps: f64, events: f64) -> Outcome<()> {
        let elapsed = Time::from_ps(ps as u64);
        let events = events as u64;
        let result = if events > 0 {
            self.run.seek(Position { elapsed, events })
        } else {
            self.run.seek_time(elapsed)
        };
        result.map_err(|error| error.to_string())
    }

    /// Does something now, such as `cut-3` or `slow-3-10000`: an intervention without its place.
    ///
    /// # Errors
    /// That it cannot be read, or that what it is for is not there.
    pub fn act(&mut self, text: &str) -> Outcome<()> {
        let read: Intervention = format!("0-0-{text}").parse()?;
        self.run.act(read.action)
    }

    /// What was done and will be, to be given to [`Self::new`].
    #[must_use]
    pub fn interventions(&self) -> String {
        let text: Vec<String> = self
            .run
            .interventions()
            .iter()
            .map(ToString::to_string)
            .collect();
        text.join(".")
    }

    /// The time.
    #[must_use]
    pub fn elapsed_ps(&self) -> f64 {
        self.run.position().elapsed.ps() as f64
    }

    /// Events so far.
    #[must_use]
    pub fn events(&self) -> f64 {
        self.run.position().events as f64
    }

    /// Whether nothing will happen any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.run.is_over()
    }

    /// The name of the transport.
    #[must_use]
    pub fn transport(&self) -> String {
        self.run.transport().to_owned()
    }

    /// The hash of every hop so far, as 16 hexadecimal digits.
    #[must_use]
    pub fn hash(&self) -> String {
        format!("{:016x}", self.run.network().trace_hash())
    }

    /// Hosts of the fabric.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.run.network().hosts() as u32
    }

    /// Switches of the fabric.
    #[must_use]
    pub fn switches(&self) -> u32 {
        self.run.network().switches() as u32
    }

    /// Records of [`view::links`].
    #[must_use]
    pub fn links(&self) -> Vec<u32> {
        view::links(&self.run)
    }

    /// Pairs of hosts, sender and receiver in turn.
    #[must_use]
    pub fn pairs(&self) -> Vec<u32> {
        let pairs = self.run.pairs();
        pairs
            .into_iter()
            .flat_map(|(from, to)| [from, to])
            .collect()
    }

    /// Records of [`view::packets`].
    #[must_use]
    pub fn packets(&self) -> Vec<f32> {
        view::packets(&self.run)
    }

    /// Records of [`view::ports`].
    #[must_use]
    pub fn ports(&self) -> Vec<f32> {
        view::ports(&self.run)
    }

    /// Numbers of [`view::counters`].
    #[must_use]
    pub fn counters(&self) -> Vec<f64> {
        view::counters(&self.run)
    }

    /// Numbers of [`view::connection`].
    #[must_use]
    pub fn connection(&self, from: u32, to: u32) -> Vec<u32> {
        view::connection(&self.run, from, to)
    }

    /// Records of [`view::transfers`].
    #[must_use]
    pub fn transfers(&self, most: u32) -> Vec<u32> {
        view::transfers(&self.run, most as usize)
    }

    /// Numbers of [`view::goodput`].
    #[must_use]
    pub fn goodput(&self, spans: u32) -> Vec<f32> {
        view::goodput(&self.run, spans as usize)
    }
}
