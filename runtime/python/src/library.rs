//! Files of kernels.

use crate::errors;
use crate::kernel::Kernel;
use ptoc_driver::library::{self, Callable, Options};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The kernels and programs of a file, as attributes.
#[pyclass(module = "ptoc", frozen, weakref)]
pub struct Library {
    library: Arc<library::Library>,
    options: Options,
    /// Its kernels that were asked for, which keep their code.
    kernels: Mutex<HashMap<String, Arc<Callable>>>,
}

/// Loads a file of kernels, or a module of the standard library (`std::scan`).
#[pyfunction]
#[pyo3(signature = (path, *, target = "a2a3", backend = None, exact = false))]
pub fn load(py: Python<'_>, path: PathBuf, target: &str, backend: Option<String>, exact: bool) -> PyResult<Library> {
    let loaded = crate::forks::detached(py, || library::Library::open(&path));
    Library::new(py, loaded, Options { target: target.to_owned(), backend, exact })
}

/// Kernels from a text. `name` is what messages call it; imports are looked for beside it.
#[pyfunction]
#[pyo3(signature = (source, *, name = "<tile>", target = "a2a3", backend = None, exact = false))]
pub fn tile(
    py: Python<'_>,
    source: String,
    name: &str,
    target: &str,
    backend: Option<String>,
    exact: bool,
) -> PyResult<Library> {
    let loaded = crate::forks::detached(py, || library::Library::of_text(Path::new(name), source));
    Library::new(py, loaded, Options { target: target.to_owned(), backend, exact })
}

/// What a library is made of again: where its text is from, the text, and how it is compiled. A path is whole, so that
/// imports are found from another folder.
pub fn parts<'py>(py: Python<'py>, library: &library::Library, options: &Options) -> PyResult<Bound<'py, PyTuple>> {
    let path = library.path();
    let path = if path.is_file() { std::path::absolute(path)? } else { path.to_owned() };
    let Options { target, backend, exact } = options;
    (path, library.text(), target, backend, *exact).into_pyobject(py)
}

impl Library {
    fn new(py: Python<'_>, loaded: Result<library::Library, library::Report>, options: Options) -> PyResult<Library> {
        options.check().map_err(|report| errors::raised(py, &report))?;
        let library = loaded.map_err(|report| errors::raised(py, &report))?;
        errors::warn(py, &library.warnings)?;
        Ok(Library { library: Arc::new(library), options, kernels: Mutex::default() })
    }

    fn names(&self) -> Vec<String> {
        self.library.signatures().iter().map(|s| s.name.clone()).collect()
    }
}

#[pymethods]
impl Library {
    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Kernel> {
        // Python asks for these of any object, and no kernel is called so.
        if name.starts_with("__") {
            return Err(pyo3::exceptions::PyAttributeError::new_err(name.to_owned()));
        }
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kernels.get(name) {
            return Ok(Kernel::new(Arc::clone(known)));
        }
        let made = Callable::new(&self.library, name, Vec::new(), self.options.clone());
        let made = Arc::new(made.map_err(|report| errors::raised(py, &report))?);
        kernels.insert(name.to_owned(), Arc::clone(&made));
        Ok(Kernel::new(made))
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Kernel> {
        self.__getattr__(py, name)
    }

    fn __copy__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    /// A library does not change, so it is its own copy.
    #[pyo3(signature = (_memo, /))]
    fn __deepcopy__<'py>(slf: PyRef<'py, Self>, _memo: &Bound<'py, PyAny>) -> PyRef<'py, Self> {
        slf
    }

    /// The text, and how it is compiled.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        Ok((py.import("ptoc._pickle")?.getattr("library")?, parts(py, &self.library, &self.options)?))
    }

    fn __dir__(&self) -> Vec<String> {
        ["path", "names", "target"].into_iter().map(str::to_owned).chain(self.names()).collect()
    }

    fn __repr__(&self) -> String {
        let path = self.library.path().display();
        format!("<ptoc.Library {path} for {}: {}>", self.options.target, self.names().join(", "))
    }

    /// The path as it was given.
    #[getter]
    fn path(&self) -> String {
        self.library.path().display().to_string()
    }

    /// The names of its kernels and programs.
    #[getter(names)]
    fn all_names(&self) -> Vec<String> {
        self.names()
    }

    /// The target that its kernels are compiled for.
    #[getter]
    fn target(&self) -> String {
        self.options.target.clone()
    }
}
