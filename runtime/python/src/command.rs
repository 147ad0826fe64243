//! The command line, which comes with the package.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs `ptoc` with these arguments, program name first, on the streams of this process, and returns the exit status.
#[pyfunction]
pub fn _main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| ptoc_cli::execute_here(arguments))
}
