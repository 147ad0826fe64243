//! Reports as exceptions. The classes are Python's (`ptoc/_errors.py`), which know which code is which kind of mistake.

use ptoc_driver::library::Report;
use pyo3::exceptions::{PyException, PyMemoryError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

/// What Python makes of a report: its code, its text, and each diagnostic as JSON.
fn parts<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyTuple>> {
    let code = report.code().map_or("", |code| code.as_str());
    (code, report.rendered(false), report.rendered(true), report.json()).into_pyobject(py)
}

fn function(py: Python<'_>, cell: &'static PyOnceLock<Py<PyAny>>, name: &str) -> PyResult<Py<PyAny>> {
    let found = cell.get_or_try_init(py, || Ok::<_, PyErr>(py.import("ptoc._errors")?.getattr(name)?.unbind()))?;
    Ok(found.clone_ref(py))
}

/// The exception for a report with an error.
pub fn raised(py: Python<'_>, report: &Report) -> PyErr {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let make = || -> PyResult<PyErr> {
        let value = function(py, &MAKE, "of_report")?.call1(py, parts(py, report)?)?;
        Ok(PyErr::from_value(value.into_bound(py)))
    };
    make().unwrap_or_else(|e| e)
}

/// What asking an object has given, or its refusal. What is no answer about the object is passed on: Ctrl-C, the end of
/// the interpreter, no memory.
pub fn answer<T>(py: Python<'_>, asked: PyResult<T>) -> PyResult<Result<T, PyErr>> {
    match asked {
        Err(e) if e.is_instance_of::<PyException>(py) && !e.is_instance_of::<PyMemoryError>(py) => Ok(Err(e)),
        other => other.map(Ok),
    }
}

/// Warns of what a report has.
pub fn warn(py: Python<'_>, report: &Report) -> PyResult<()> {
    static WARN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if report.is_empty() {
        return Ok(());
    }
    function(py, &WARN, "warn")?.call1(py, parts(py, report)?).map(drop)
}
