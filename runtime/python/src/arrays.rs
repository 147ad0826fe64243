//! Arrays in Python's objects: NumPy's array interface, which any library may implement, then DLPack, then the buffer
//! protocol by way of NumPy. The memory is used where it is; the object stays alive for as long as it is.

use crate::dlpack;
use crate::errors::answer;
use ptoc_diagnostics::{Code, codes};
use ptoc_driver::library::ArrayView;
use ptoc_tensor::DType;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCapsule;
use std::ffi::{c_char, c_int, c_void};
use std::slice;

/// An array, and who keeps its memory.
pub struct View<'py> {
    /// The array.
    pub array: ArrayView,
    pub(crate) _owner: Bound<'py, PyAny>,
}

/// Why an object is not taken as an array.
pub struct Refused {
    /// E0763, or E0766 where it is about addresses.
    pub code: Code,
    /// Follows "the array of `x` ".
    pub why: String,
    /// What to do.
    pub help: String,
}

impl Refused {
    fn of(why: impl Into<String>, help: impl Into<String>) -> Refused {
        Refused { code: codes::ARRAY_NOT_TAKEN, why: why.into(), help: help.into() }
    }

    /// Neighbours that are not whole elements apart.
    fn strides(bytes: &[isize], size: usize) -> Refused {
        let why = format!("has the strides {bytes:?} in bytes, which are no multiples of {size}");
        let help = "pass a copy that is contiguous: `np.ascontiguousarray(x)`";
        Refused { code: codes::MISALIGNED_ARRAY, ..Refused::of(why, help) }
    }

    /// No array at all.
    pub fn no_array(object: &Bound<'_, PyAny>) -> Refused {
        let name = object.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
        Refused::of(format!("is of type `{name}`, which is no array"), "pass an array of NumPy, PyTorch or JAX")
    }

    /// Elements that the language does not have.
    pub fn dtype(name: &str) -> Refused {
        let help = match name {
            "float64" => "convert it: `x.astype(np.float32)`, `x.float()`".to_owned(),
            _ => "convert it to a dtype of the language: `spec/numerics.md` lists them".to_owned(),
        };
        Refused::of(format!("holds {name}, which kernels do not have"), help)
    }

    /// Memory of other machines.
    pub fn device(name: &str) -> Refused {
        Refused::of(format!("is on {name}, and kernels run on the host and on CUDA devices"), "move it: `x.cpu()`")
    }

    /// A view of PyTorch that stands for the negatives of what is in memory.
    pub fn negated() -> Refused {
        Refused::of("is a view that negates what is in memory", "pass `x.resolve_neg()`")
    }

    /// Elements, and no memory for them: a tensor of a tracer, or one whose storage was freed.
    pub fn no_memory() -> Refused {
        let help = "pass a tensor with values; in code that PyTorch traces, make an operator: `ptoc.torch.op(kernel)`";
        Refused::of("has no memory: it was freed, or stands for a tensor while PyTorch traces", help)
    }

    /// A later DLPack.
    pub fn version([major, minor]: [u32; 2]) -> Refused {
        Refused::of(format!("is exported by DLPack {major}.{minor}, of which 1 is known"), "pass `np.asarray(x)`")
    }

    /// The object's own refusal to export itself.
    pub fn export(py: Python<'_>, e: &PyErr) -> Refused {
        let words = e.value(py).to_string();
        let help = if words.contains("grad") { "pass `x.detach()`" } else { "pass an array that can be exported" };
        Refused::of(format!("cannot be used in place: {words}"), help)
    }
}

/// NumPy's `PyArrayInterface`.
#[repr(C)]
struct Interface {
    two: c_int,
    ndim: c_int,
    kind: c_char,
    itemsize: c_int,
    flags: c_int,
    shape: *const isize,
    strides: *const isize,
    data: *mut c_void,
}

const NOT_SWAPPED: c_int = 0x200;
const WRITEABLE: c_int = 0x400;

/// The array in an object.
pub fn view<'py>(object: &Bound<'py, PyAny>) -> PyResult<Result<View<'py>, Refused>> {
    let py = object.py();
    let plain = is_plain(object);
    if !plain && let Some(view) = dlpack::quick_view(object) {
        return view;
    }
    if let Some(capsule) = object.getattr_opt(pyo3::intern!(py, "__array_struct__"))? {
        if !plain && is_masked(object)? {
            let why = "is a masked array, and kernels do not see its mask";
            return Ok(Err(Refused::of(why, "pass `x.filled(..)`, or `x.data` with all elements")));
        }
        return numpy(object, capsule);
    }
    if let Some(export) = object.getattr_opt(pyo3::intern!(py, "__dlpack__"))? {
        return dlpack::view(object, &export);
    }
    match as_numpy(py, object)? {
        Some(array) => {
            let capsule = array.getattr(pyo3::intern!(py, "__array_struct__"))?;
            numpy(&array, capsule)
        }
        None => Ok(Err(Refused::no_array(object))),
    }
}

/// Whether it is an array of NumPy and of no class of its own, which is told by its type alone.
fn is_plain(object: &Bound<'_, PyAny>) -> bool {
    static PLAIN: PyOnceLock<Option<Py<PyAny>>> = PyOnceLock::new();
    let py = object.py();
    let find = || Some(py.import("numpy").ok()?.getattr("ndarray").ok()?.unbind());
    PLAIN.get_or_init(py, find).as_ref().is_some_and(|class| object.get_type().is(class))
}

/// Whether it is an array of `numpy.ma`.
fn is_masked(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(answer(object.py(), object.hasattr("filled"))?.unwrap_or(false))
}

/// An object with the buffer protocol as a NumPy array on its memory.
fn as_numpy<'py>(py: Python<'py>, object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    static MEMORYVIEW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = MEMORYVIEW.get_or_try_init(py, || py.import("builtins")?.getattr("memoryview").map(Bound::unbind))?;
    let seen = class.bind(py).call1((object,)).and_then(|seen| py.import("numpy")?.call_method1("asarray", (seen,)));
    Ok(answer(py, seen)?.ok())
}

/// What `__array_struct__` of an array is.
fn numpy<'py>(object: &Bound<'py, PyAny>, capsule: Bound<'py, PyAny>) -> PyResult<Result<View<'py>, Refused>> {
    let Ok(capsule) = capsule.cast_into::<PyCapsule>() else { return Ok(Err(Refused::no_array(object))) };
    let at = capsule.pointer_checked(None)?.cast::<Interface>();
    // SAFETY: that is what the capsule of this attribute points to, as long as it lives.
    let seen = unsafe { at.as_ref() };
    if seen.two != 2 {
        return Ok(Err(Refused::no_array(object)));
    }
    let dtype = match dtype(object, seen)? {
        Ok(dtype) => dtype,
        Err(name) => return Ok(Err(Refused::dtype(&name))),
    };
    let size = dtype.size();
    if seen.flags & NOT_SWAPPED == 0 && size > 1 {
        let why = "has its bytes in the order of another machine";
        return Ok(Err(Refused::of(why, "convert it: `x.astype(x.dtype.newbyteorder(\"=\"))`")));
    }
    let rank = usize::try_from(seen.ndim).unwrap_or(0);
    let numbers = |at: *const isize| match rank == 0 || at.is_null() {
        true => &[][..],
        // SAFETY: `shape` and `strides` have `nd` entries.
        false => unsafe { slice::from_raw_parts(at, rank) },
    };
    let shape: Vec<usize> = numbers(seen.shape).iter().map(|&n| n as usize).collect();
    let bytes = numbers(seen.strides);
    let matters = |(&n, &stride): (&usize, &isize)| n > 1 && stride % size as isize != 0;
    if shape.iter().zip(bytes).any(matters) && !shape.contains(&0) {
        return Ok(Err(Refused::strides(bytes, size)));
    }
    let strides: Vec<isize> = bytes.iter().map(|n| n / size as isize).collect();
    if seen.data.is_null() && !shape.contains(&0) {
        return Ok(Err(Refused::no_memory()));
    }
    let read_only = seen.flags & WRITEABLE == 0;
    let array = ArrayView::new(dtype, shape, Some(&strides), seen.data.cast(), read_only);
    Ok(Ok(View { array, _owner: capsule.into_any() }))
}

/// The element type, or what it is called where kernels have none such.
fn dtype(object: &Bound<'_, PyAny>, seen: &Interface) -> PyResult<Result<DType, String>> {
    let found = match (seen.kind as u8, seen.itemsize) {
        (b'b', 1) => DType::Bool,
        (b'i', 1) => DType::I8,
        (b'i', 2) => DType::I16,
        (b'i', 4) => DType::I32,
        (b'i', 8) => DType::I64,
        (b'u', 1) => DType::U8,
        (b'u', 2) => DType::U16,
        (b'u', 4) => DType::U32,
        (b'u', 8) => DType::U64,
        (b'f', 2) => DType::F16,
        (b'f', 4) => DType::F32,
        // Dtypes of `ml_dtypes` are told by their names alone.
        _ => {
            let name: String = object.getattr("dtype")?.getattr("name")?.extract()?;
            match name.as_str() {
                "bfloat16" => DType::BF16,
                "float8_e4m3fn" => DType::F8E4M3,
                "float8_e5m2" => DType::F8E5M2,
                _ => return Ok(Err(name)),
            }
        }
    };
    Ok(Ok(found))
}
