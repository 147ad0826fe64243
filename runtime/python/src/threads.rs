//! How many threads a call uses.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What was asked for; 0: whatever there is.
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Sets the number of threads that calls use; 0 goes back to the default.
#[pyfunction]
pub fn set_num_threads(threads: usize) {
    ASKED.store(threads, Ordering::Relaxed);
}

/// The number of threads that calls use: what was set, else what PyTorch uses if it is loaded, else one a core.
#[pyfunction]
pub fn get_num_threads(py: Python<'_>) -> PyResult<usize> {
    match of_call(py)? {
        0 => Ok(ptoc_exec::Pool::default_threads()),
        threads => Ok(threads),
    }
}

/// The same, with 0 for one a core.
pub fn of_call(py: Python<'_>) -> PyResult<usize> {
    static TORCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let asked = ASKED.load(Ordering::Relaxed);
    if asked != 0 {
        return Ok(asked);
    }
    if let Some(get) = TORCH.get(py) {
        return get.bind(py).call0()?.extract();
    }
    let modules = MODULES.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?.unbind())
    })?;
    let Some(torch) = modules.bind(py).get_item(pyo3::intern!(py, "torch"))? else { return Ok(0) };
    // While it is being imported it has no such function yet.
    let Ok(get) = torch.getattr("get_num_threads") else { return Ok(0) };
    TORCH.get_or_init(py, || get.unbind()).bind(py).call0()?.extract()
}
