//! How many threads a call uses.

use crate::loaded;
use pyo3::prelude::*;
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

/// What was asked for, without Python; 0 for one a core.
pub fn asked() -> usize {
    ASKED.load(Ordering::Relaxed)
}

/// The number of threads of a call, with 0 for one a core.
pub fn of_call(py: Python<'_>) -> PyResult<usize> {
    if asked() != 0 {
        return Ok(asked());
    }
    match loaded::torch(py) {
        Some(torch) => torch.threads.bind(py).call0()?.extract(),
        None => Ok(0),
    }
}
