//! The Python module `ptoc._ptoc`: kernels as functions on arrays of NumPy, PyTorch, JAX and others, where they are.
//!
//! What is done is the driver's ([`ptoc_driver::library`]), and the command line's ([`ptoc_cli`]). Here arrays are
//! found in Python's objects ([`arrays`]), results are made ([`outputs`]), and reports become exceptions ([`errors`]).
//! The package's own sources are in `ptoc`.

mod arrays;
mod command;
mod dlpack;
mod errors;
mod forks;
mod inspect;
mod jax;
mod kernel;
mod layout;
mod library;
mod loaded;
mod outputs;
mod signals;
mod threads;
mod values;
mod xla;

/// The native part of the package `ptoc`.
#[pyo3::pymodule]
mod _ptoc {
    #[pymodule_export]
    use crate::command::_main;
    #[pymodule_export]
    use crate::forks::{_after_fork_in_child, _after_fork_in_parent, _before_fork};
    #[pymodule_export]
    use crate::inspect::{_fastest, Memory};
    #[pymodule_export]
    use crate::jax::{_extent_names, _result_shapes, _static_scalars, _xla_handlers, _xla_site};
    #[pymodule_export]
    use crate::kernel::Kernel;
    #[pymodule_export]
    use crate::layout::{Layout, layout};
    #[pymodule_export]
    use crate::library::{Library, load, tile};
    #[pymodule_export]
    use crate::threads::{get_num_threads, set_num_threads};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::forks::register(module)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
