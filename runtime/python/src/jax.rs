//! What `ptoc.jax` and `ptoc.torch` need to know of a kernel before it is called.

use crate::arrays::Refused;
use crate::kernel::{Kernel, not_taken};
use crate::xla::{self, Site};
use crate::{errors, outputs, values};
use ptoc_driver::library::{Argument, ArrayView, Call, Parameter, Scalar};
use ptoc_tensor::DType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::Arc;

/// A dtype by NumPy's name, and a shape.
type Shaped = (String, Vec<usize>);

/// The addresses of the handlers that XLA calls: for arrays of the host, for those of CUDA devices, and for others,
/// which are refused.
#[pyfunction]
pub fn _xla_handlers() -> [usize; 3] {
    let (host, cuda, other) = (xla::execute as *const (), xla::execute_on_cuda as *const (), xla::refuse as *const ());
    [host, cuda, other].map(|handler| handler as usize)
}

/// The names of scalars that a kernel is compiled for: their values are known before it is called.
#[pyfunction]
pub fn _static_scalars(kernel: &Kernel) -> Vec<String> {
    let signature = kernel.callable.signature();
    let is_static = |p: &&Parameter| !p.is_tensor() && (p.in_where || signature.word == "program");
    signature.parameters.iter().filter(is_static).map(|p| p.name.clone()).collect()
}

/// What names in extents mean where no array says it: static parameters by their defaults, but for those that a tuner
/// changes, and dimensions by the equations of `where`.
#[pyfunction]
pub fn _extent_names(kernel: &Kernel) -> HashMap<&str, &str> {
    let signature = kernel.callable.signature();
    let equations = signature.equations.iter().map(|(name, is)| (&**name, &**is));
    let fixed = signature.statics.iter().filter(|s| s.tune.is_empty());
    equations.chain(fixed.filter_map(|s| Some((&*s.name, s.default.as_deref()?)))).collect()
}

/// Compiles a kernel for a call from what JAX compiles, and returns the call's number, with dtype and shape of each
/// result. By parameter `given` has nothing, a dtype and a shape for what is an operand, or the number that a scalar
/// is.
#[pyfunction]
pub fn _xla_site(
    py: Python<'_>,
    kernel: &Kernel,
    given: Vec<Option<Bound<'_, PyAny>>>,
) -> PyResult<(i64, Vec<Shaped>)> {
    let Prepared { operands, known, results, shapes } = prepared(py, kernel, given)?;
    let site = Site { callable: Arc::clone(&kernel.callable), operands, results, known };
    Ok((site.number(), shapes))
}

/// Dtype and shape of each result of a call, whose arguments are given as to [`_xla_site`].
#[pyfunction]
pub fn _result_shapes(py: Python<'_>, kernel: &Kernel, given: Vec<Option<Bound<'_, PyAny>>>) -> PyResult<Vec<Shaped>> {
    prepared(py, kernel, given).map(|prepared| prepared.shapes)
}

/// A call that is compiled: its operands and results by the numbers of their parameters.
struct Prepared {
    operands: Vec<usize>,
    known: Vec<(usize, Scalar)>,
    results: Vec<usize>,
    shapes: Vec<Shaped>,
}

fn prepared(py: Python<'_>, kernel: &Kernel, given: Vec<Option<Bound<'_, PyAny>>>) -> PyResult<Prepared> {
    let signature = kernel.callable.signature();
    if given.len() != signature.parameters.len() {
        return Err(PyTypeError::new_err("a value for each parameter"));
    }
    let mut call = Call::of(signature);
    let (mut operands, mut known) = (Vec::new(), Vec::new());
    for (n, (value, parameter)) in given.into_iter().zip(&signature.parameters).enumerate() {
        let Some(value) = value else { continue };
        let Ok((name, shape)) = value.extract::<Shaped>() else {
            let Some(scalar) = values::scalar(&value)? else { return Err(PyTypeError::new_err("no number")) };
            known.push((n, scalar));
            call.arguments[n] = Some(Argument::Scalar(scalar));
            continue;
        };
        let Some(dtype) = outputs::named(&name) else {
            let d = not_taken(parameter, Refused::dtype(&name));
            return Err(errors::raised(py, &kernel.callable.report(d)));
        };
        operands.push(n);
        call.arguments[n] = Some(match parameter.is_tensor() {
            true => Argument::Array(ArrayView::new(dtype, shape, None, null_mut(), false)),
            // Its value does not matter for what is compiled.
            false => Argument::Scalar(any(dtype)),
        });
    }
    let code = crate::forks::detached(py, || kernel.callable.specialize(&call))
        .map_err(|report| errors::raised(py, &report))?;
    errors::warn(py, &code.warnings)?;
    let missing: Vec<(usize, DType, Vec<usize>)> =
        code.missing_outputs(&call).map(|(n, dtype, shape)| (n, dtype, shape.to_vec())).collect();
    let (mut results, mut shapes) = (Vec::new(), Vec::new());
    for (n, parameter) in signature.parameters.iter().enumerate().filter(|(_, p)| p.is_output()) {
        let made = missing.iter().find(|(number, ..)| *number == n).filter(|_| !parameter.optional);
        let (dtype, shape) = match (call.array(n), made) {
            (Some(updated), _) => (updated.dtype, &updated.shape),
            (None, Some((_, dtype, shape))) => (*dtype, shape),
            (None, None) => continue,
        };
        results.push(n);
        shapes.push((outputs::name(dtype).to_owned(), shape.clone()));
    }
    Ok(Prepared { operands, known, results, shapes })
}

fn any(dtype: DType) -> Scalar {
    match dtype {
        DType::Bool => Scalar::Bool(true),
        dtype if dtype.is_float() => Scalar::Float(1.0),
        _ => Scalar::Int(1),
    }
}
