//! What a kernel is made of, how near its results are to `ensures`, and how long it takes.

use crate::{errors, forks, signals, threads};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_driver::launch::{Tolerance, Verified};
use ptoc_driver::library::{Call, Callable, Memories, Specialization};
use ptoc_views::memory::{Maps, html, json, lines::Lines, svg, table};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Columns of a table of memories.
const WIDTH: usize = 100;
/// Runs of a measurement, at least.
const LEAST: usize = 5;
/// How long a measurement may take, at most.
const LONGEST: Duration = Duration::from_secs(3600);
/// How long runs go on before signals are looked at: Ctrl-C ends a measurement.
const TURN: Duration = Duration::from_millis(100);

/// The memories of a kernel: a table as text, and a page in a notebook.
#[pyclass(module = "ptoc", frozen)]
pub struct Memory {
    text: String,
    json: String,
    svg: String,
    page: String,
}

#[pymethods]
impl Memory {
    fn __repr__(&self) -> String {
        self.text.clone()
    }

    /// The page with its script, in a frame.
    fn _repr_html_(&self) -> String {
        let page = self.page.replace('&', "&amp;").replace('"', "&quot;");
        format!("<iframe srcdoc=\"{page}\" style=\"width: 100%; height: 40em; border: 0\"></iframe>")
    }

    /// As `ptoc mem --json` prints it.
    #[getter]
    fn json(&self) -> String {
        self.json.clone()
    }

    /// A picture.
    #[getter]
    fn svg(&self) -> String {
        self.svg.clone()
    }

    /// A page for a browser.
    #[getter]
    fn html(&self) -> String {
        self.page.clone()
    }
}

/// Raises errors; the text of warnings.
pub fn check(py: Python<'_>, callable: &Callable) -> PyResult<String> {
    let report = forks::detached(py, || callable.check());
    match report.diagnostics().iter().any(ptoc_diagnostics::Diagnostic::is_error) {
        true => Err(errors::raised(py, &report)),
        false => Ok(report.rendered(false)),
    }
}

/// The memories of the kernel.
pub fn memory(py: Python<'_>, callable: &Callable) -> PyResult<Memory> {
    let made = forks::detached(py, || callable.memories());
    let Memories { maps: list, sources, file } = made.map_err(|report| errors::raised(py, &report))?;
    let signature = callable.signature();
    let maps = Maps { name: signature.name.clone(), program: signature.word == "program", file, list };
    let lines = Lines::new(&sources, file);
    Ok(Memory {
        text: table::maps(&maps.list, &lines, WIDTH),
        json: json::maps(&maps, &lines),
        svg: svg::file(&maps.list, &lines),
        page: html::page(&maps.list, &lines),
    })
}

/// The text of a stage.
pub fn stage(py: Python<'_>, callable: &Callable, name: &str) -> PyResult<String> {
    forks::detached(py, || callable.stage(name)).map_err(|report| errors::raised(py, &report))
}

/// How near results are to `ensures`, one object for each of its clauses.
pub fn verify<'py>(
    py: Python<'py>,
    callable: &Callable,
    code: &Specialization,
    call: &Call,
    tolerance: (f64, f64),
) -> PyResult<Bound<'py, PyAny>> {
    for (name, value) in [("rtol", tolerance.0), ("atol", tolerance.1)] {
        // Not where it is NaN, too.
        if !(value >= 0.0 && value.is_finite()) {
            let message = format!("`{name}` is a number of at least 0, and {value:?} is given");
            return Err(errors::raised(py, &callable.report(Diagnostic::global(codes::OPTION_VALUE, message))));
        }
    }
    let threads = threads::of_call(py)?;
    // SAFETY: the caller keeps the arrays, which are only read.
    let ended = py.detach(|| unsafe { code.verify(callable, call, tolerance.into(), threads) });
    let class = py.import("ptoc._results")?.getattr("Verified")?;
    let row = |v: Verified| class.call1((v.name, v.stats.elements, v.stats.max_error, v.left_out));
    let list = ended.map_err(|report| errors::raised(py, &report))?;
    let rows = list.into_iter().map(row).collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, rows)?.into_any())
}

/// Whether the results of a launch are held to `ensures`, within what roundings come to.
pub fn holds(py: Python<'_>, callable: &Callable, code: &Specialization, call: &Call) -> PyResult<bool> {
    if code.plan().specification.ensures.is_empty() {
        return Ok(false);
    }
    let threads = threads::of_call(py)?;
    // SAFETY: the caller keeps the arrays, which are only read.
    let ended = py.detach(|| unsafe { code.verify(callable, call, Tolerance::Rounding, threads) });
    ended.map(|_| true).map_err(|report| errors::raised(py, &report))
}

/// How long a run takes; nothing if one takes longer than `limit`, at which it is ended.
pub fn bench<'py>(
    py: Python<'py>,
    callable: &Callable,
    code: &Specialization,
    call: &Call,
    (seconds, limit): (f64, Option<f64>),
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let threads = threads::of_call(py)?;
    let length = match Duration::try_from_secs_f64(seconds) {
        Ok(length) if length <= LONGEST => length,
        _ => {
            let message = format!("`bench` runs for 0 to {} seconds, and {seconds} are given", LONGEST.as_secs());
            return Err(errors::raised(py, &callable.report(Diagnostic::global(codes::OPTION_VALUE, message))));
        }
    };
    let limit = limit.and_then(|limit| Duration::try_from_secs_f64(limit).ok()).unwrap_or(Duration::MAX);
    let (mut times, begin) = (Vec::new(), Instant::now());
    // When the launch began that is under way, and whether one took too long.
    let (started, late) = (Mutex::new(begin), AtomicBool::new(false));
    let is_late = || {
        let elapsed = started.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        late.fetch_or(elapsed > limit, Ordering::Relaxed) || elapsed > limit
    };
    while times.len() < LEAST || begin.elapsed() < length {
        let timed = signals::detached_until(py, &is_late, || {
            let turn = Instant::now();
            while turn.elapsed() < TURN && (times.len() < LEAST || begin.elapsed() < length) {
                let began = Instant::now();
                *started.lock().unwrap_or_else(PoisonError::into_inner) = began;
                // SAFETY: the caller keeps the arrays; nobody else works on them by Python's usual contract.
                unsafe { code.run(callable, call, threads, &mut |_| {}) }?;
                times.push(began.elapsed().as_secs_f64());
            }
            Ok(())
        });
        let timed = timed?;
        py.check_signals()?;
        if late.load(Ordering::Relaxed) {
            return Ok(None);
        }
        timed.map_err(|report| errors::raised(py, &report))?;
    }
    times.sort_unstable_by(f64::total_cmp);
    py.import("ptoc._results")?.getattr("Timing")?.call1((times.len(), times[0], times[times.len() / 2])).map(Some)
}

/// Of kernels that were launched in turns, the numbers of those that none is faster than. `rounds` has the median of
/// each round, of each kernel.
#[pyfunction]
pub fn _fastest(rounds: Vec<Vec<f64>>) -> Vec<usize> {
    ptoc_profile::race::fastest_of(rounds)
}
