//! The simulator.

use crate::errors;
use crate::table::Table;
use crate::waiting::Outcome;
use metaroce_sim::network::Network;
use metaroce_sim::observer::Watch as Place;
use metaroce_sim::scenario::columns::tables;
use metaroce_sim::scenario::{
    Document, Files, Moment, Report, Scenario, ScenarioError, Watch, execute,
};
use metaroce_sim::trace::{Header, NetworkTrace};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fs::File;
use std::io::BufWriter;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};

/// The largest connections of the core are megabytes, and are built on the stack.
const STACK: usize = 64 << 20;

/// Files beside the scenario.
struct Beside(PathBuf);

impl Files for Beside {
    fn read(&self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(self.0.join(path)).map_err(|error| error.to_string())
    }
}

type Trace = Arc<Mutex<NetworkTrace<BufWriter<File>>>>;

/// What the thread that simulates and the one that waits for it have in common.
#[derive(Default)]
struct Common {
    stop: AtomicBool,
    moment: Mutex<Option<Moment>>,
}

/// Watches on the thread that simulates.
struct Watcher<'a> {
    common: &'a Common,
    scenario: &'a Scenario,
    name: &'a str,
    seed: u64,
    path: Option<&'a Path>,
    trace: Option<Trace>,
}

impl Watch for Watcher<'_> {
    fn begin(&mut self, network: &mut Network) -> Result<(), String> {
        let Some(path) = self.path else {
            return Ok(());
        };
        let wrong = |error| format!("cannot write {}: {error}", path.display());
        let out = BufWriter::new(File::create(path).map_err(wrong)?);
        let header = Header {
            transport: Some(self.scenario.transport.name().to_owned()),
            ..Header::new(self.name, self.seed)
        };
        let trace = NetworkTrace::new(out, header, network, true).map_err(wrong)?;
        let trace = Arc::new(Mutex::new(trace));
        network.observer = Place(Some(Box::new(trace.clone())));
        self.trace = Some(trace);
        Ok(())
    }

    fn progress(&mut self, moment: &Moment) -> ControlFlow<()> {
        *self
            .common
            .moment
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(*moment);
        if self.common.stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn end(&mut self, network: &mut Network) {
        network.observer = Place::default();
    }
}

impl Watcher<'_> {
    fn run(mut self) -> Result<Report, Failure> {
        let report = execute(self.scenario, self.seed, &mut self).map_err(Failure::Scenario)?;
        if let Some(trace) = self.trace.and_then(Arc::into_inner) {
            let trace = trace.into_inner().unwrap_or_else(PoisonError::into_inner);
            let written = trace.finish().and_then(|out| Ok(out.into_inner()?));
            written.map_err(Failure::Trace)?;
        }
        Ok(report)
    }
}

enum Failure {
    Scenario(ScenarioError),
    Trace(std::io::Error),
}

fn scenario_error(py: Python<'_>, error: &ScenarioError) -> PyErr {
    let (place, key) = match error {
        ScenarioError::Text { place, key, .. } => (place.as_str(), key.as_str()),
        ScenarioError::Settings { key, .. } => ("", key.as_str()),
    };
    errors::raise(py, "ScenarioError", (error.to_string(), place, key))
}

/// Runs the scenario in `text`, whose file is called `name`, files that it names being in `folder`. Returns the summary and the
/// tables as dictionaries, and the exception (a KeyboardInterrupt, say) that ended it before its time.
#[pyfunction]
#[pyo3(signature = (name, text, folder, settings, seed=None, progress=None, trace=None))]
#[allow(clippy::too_many_arguments)]
pub fn simulate<'py>(
    py: Python<'py>,
    name: &str,
    text: &str,
    folder: PathBuf,
    settings: Vec<(String, Bound<'py, PyAny>)>,
    seed: Option<u64>,
    progress: Option<Bound<'py, PyAny>>,
    trace: Option<PathBuf>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>, Option<PyErr>)> {
    let overrides = settings
        .iter()
        .map(|(key, value)| Ok(format!("{key}={}", toml_value(value)?)))
        .collect::<PyResult<Vec<String>>>()?;
    let document = Document::parse(name, text, &overrides, &Beside(folder))
        .map_err(|error| scenario_error(py, &error))?;
    let scenario = &document.scenario;
    let seed = seed.unwrap_or(scenario.run.seed);
    let common = Common::default();
    let mut stopped = None;
    let watcher = Watcher {
        common: &common,
        scenario,
        name: if scenario.name.is_empty() {
            name
        } else {
            &scenario.name
        },
        seed,
        path: trace.as_deref(),
        trace: None,
    };
    let result = std::thread::scope(|scope| {
        let (sender, results) = channel();
        let builder = std::thread::Builder::new().name("metaroce-sim".to_owned());
        let thread = builder.stack_size(STACK).spawn_scoped(scope, move || {
            // Nobody listens any more only if the waiting thread is gone, too.
            let _ = sender.send(watcher.run());
        });
        thread.map_err(|error| PyOSError::new_err(format!("no thread: {error}")))?;
        wait(
            py,
            &Outcome::new(results),
            &common,
            progress.as_ref(),
            &mut stopped,
        )
    })?;
    let report = result.map_err(|failure| match failure {
        Failure::Scenario(error) => scenario_error(py, &document.place(error)),
        Failure::Trace(error) => {
            PyOSError::new_err(format!("the trace cannot be written: {error}"))
        }
    })?;
    let summary = pythonize::pythonize(py, &report.summary)
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let named = PyDict::new(py);
    for columns in tables(&report, &scenario.run.queues) {
        let name = columns.name;
        let table =
            Table::new(&columns).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        named.set_item(name, table)?;
    }
    Ok((summary, named, stopped))
}

/// Waits for the result, without the interpreter's lock; now and then shows progress and asks for signals. What Python raises
/// meanwhile ends the run.
fn wait(
    py: Python<'_>,
    results: &Outcome<Result<Report, Failure>>,
    common: &Common,
    progress: Option<&Bound<'_, PyAny>>,
    stopped: &mut Option<PyErr>,
) -> PyResult<Result<Report, Failure>> {
    loop {
        let over = results.next(py)?;
        if stopped.is_none() {
            let moment = *common.moment.lock().unwrap_or_else(PoisonError::into_inner);
            let shown = py.check_signals().and_then(|()| match (progress, moment) {
                (Some(progress), Some(moment)) => progress
                    .call1((
                        moment.done,
                        moment.tasks,
                        moment.elapsed.ns(),
                        moment.events,
                    ))
                    .map(|_| ()),
                _ => Ok(()),
            });
            if let Err(error) = shown {
                common.stop.store(true, Ordering::Relaxed);
                *stopped = Some(error);
            }
        }
        if let Some(result) = over {
            return Ok(result);
        }
    }
}

fn toml_value(value: &Bound<'_, PyAny>) -> PyResult<toml::Value> {
    pythonize::depythonize(value)
        .map_err(|error| PyValueError::new_err(format!("this cannot be in a scenario: {error}")))
}

/// A dictionary as the text of a scenario.
#[pyfunction]
pub fn to_toml(scenario: &Bound<'_, PyDict>) -> PyResult<String> {
    toml::to_string(&toml_value(scenario.as_any())?)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}
