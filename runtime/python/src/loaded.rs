//! Other libraries, where the program has loaded them: nothing is imported on their behalf.

use crate::dlpack::Exchange;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// What is used of PyTorch.
pub struct Torch {
    /// `torch.Tensor`
    pub tensor: Py<PyAny>,
    /// The function behind `Tensor.__dlpack__`, where this PyTorch has it.
    pub export: Option<Py<PyAny>>,
    /// `torch.get_num_threads`
    pub threads: Py<PyAny>,
    /// Its functions in C for arrays and streams, where this PyTorch has them.
    pub exchange: Option<&'static Exchange>,
}

/// PyTorch, if it is loaded.
pub fn torch(py: Python<'_>) -> Option<&'static Torch> {
    static TORCH: PyOnceLock<Torch> = PyOnceLock::new();
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    if let Some(known) = TORCH.get(py) {
        return Some(known);
    }
    let find = || Ok::<_, PyErr>(py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?.unbind());
    let modules = MODULES.get_or_try_init(py, find).ok()?;
    let module = modules.bind(py).get_item(pyo3::intern!(py, "torch")).ok()??;
    // While it is being imported it has not everything yet.
    let tensor = module.getattr("Tensor").ok()?.unbind();
    let threads = module.getattr("get_num_threads").ok()?.unbind();
    let export = module.getattr("_C").and_then(|c| c.getattr("_to_dlpack_versioned")).ok().map(Bound::unbind);
    let exchange = Exchange::of(tensor.bind(py));
    Some(TORCH.get_or_init(py, || Torch { tensor, export, threads, exchange }))
}
