//! The Python module `ptoc._ptoc`: kernels as functions on arrays of NumPy, PyTorch, JAX and others, where they are.
//!
//! What is done is the driver's ([`ptoc_driver::library`]). Here arrays are found in Python's objects ([`arrays`]),
//! results are made ([`outputs`]), and reports become exceptions ([`errors`]). The package's own sources are in `ptoc`.

mod arrays;
mod dlpack;
mod errors;
mod inspect;
mod kernel;
mod library;
mod outputs;
mod threads;
mod values;

/// The native part of the package `ptoc`.
#[pyo3::pymodule]
mod _ptoc {
    #[pymodule_export]
    use crate::inspect::Memory;
    #[pymodule_export]
    use crate::kernel::Kernel;
    #[pymodule_export]
    use crate::library::{Library, load, tile};
    #[pymodule_export]
    use crate::threads::{get_num_threads, set_num_threads};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
