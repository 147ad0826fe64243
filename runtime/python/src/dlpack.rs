//! DLPack's structures, as `dlpack.h` has them (versions 0 and 1), and arrays in its capsules.

use crate::arrays::{Refused, View};
use crate::errors::answer;
use crate::loaded::{self, Torch};
use ptoc_driver::library::{ArrayView, Device as Place};
use ptoc_tensor::DType;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyTuple};
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::slice;

#[repr(C)]
#[derive(Clone, Copy)]
struct Device {
    kind: i32,
    number: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device: Device,
    ndim: i32,
    dtype: DataType,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

/// What a capsule `dltensor` points to begins with the tensor.
#[repr(C)]
struct Managed {
    tensor: Tensor,
}

/// What a capsule `dltensor_versioned` points to.
#[repr(C)]
struct ManagedVersioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: *mut c_void,
    flags: u64,
    tensor: Tensor,
}

const READ_ONLY: u64 = 1;
/// `kDLCPU`, `kDLCUDAHost`, `kDLROCMHost`: memory of the host.
const HOST: [i32; 3] = [1, 3, 11];
/// `kDLCUDA`, `kDLCUDAManaged`: memory that a CUDA device reads and writes.
const CUDA: [i32; 2] = [2, 13];
const OLD: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";

/// Devices that are often met.
fn device(kind: i32) -> &'static str {
    match kind {
        8 => "a Metal device",
        10 => "a ROCm device",
        14 => "a oneAPI device",
        _ => "another device",
    }
}

fn dtype(t: DataType) -> Result<DType, String> {
    let found = match (t.code, t.bits) {
        (0, 8) => DType::I8,
        (0, 16) => DType::I16,
        (0, 32) => DType::I32,
        (0, 64) => DType::I64,
        (1, 8) => DType::U8,
        (1, 16) => DType::U16,
        (1, 32) => DType::U32,
        (1, 64) => DType::U64,
        (2, 16) => DType::F16,
        (2, 32) => DType::F32,
        (4, 16) => DType::BF16,
        (6, 8) => DType::Bool,
        (10, 8) => DType::F8E4M3,
        (12, 8) => DType::F8E5M2,
        (2, 64) => return Err("float64".into()),
        (5, bits) => return Err(format!("complex{bits}")),
        (code, bits) => return Err(format!("a dtype of {bits} bits with DLPack's code {code}")),
    };
    if t.lanes == 1 { Ok(found) } else { Err(format!("vectors of {} {found}", t.lanes)) }
}

/// `DLPackExchangeAPI`: a library's own functions for arrays and streams. `__dlpack__` and Python's words for streams
/// take ten times as long. PyTorch has it from 2.10 on.
#[repr(C)]
#[derive(Debug)]
pub struct Exchange {
    version: [u32; 2],
    previous: *const c_void,
    allocate: *const c_void,
    export: *const c_void,
    import: *const c_void,
    /// Describes an object's array, without keeping it.
    borrow: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int>,
    /// The stream that a device of a kind works on next.
    stream: Option<unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int>,
}

// SAFETY: the table is never written, and its functions are called with Python's lock.
unsafe impl Send for Exchange {}
// SAFETY: as above.
unsafe impl Sync for Exchange {}

impl Exchange {
    /// The table of a class, if it has one of a version that is known here.
    pub fn of(class: &Bound<'_, PyAny>) -> Option<&'static Exchange> {
        let capsule = class.getattr("__dlpack_c_exchange_api__").ok()?.cast_into::<PyCapsule>().ok()?;
        let table = capsule.pointer_checked(Some(c"dlpack_exchange_api")).ok()?.cast::<Exchange>();
        // SAFETY: a capsule of this name points to this structure, which stays as long as the process.
        let table = unsafe { table.as_ref() };
        (table.version[0] == 1).then_some(table)
    }

    /// The array of an object of the class that the table was found in.
    fn view<'py>(&self, object: &Bound<'py, PyAny>) -> Option<PyResult<Result<View<'py>, Refused>>> {
        let borrow = self.borrow?;
        let mut tensor = MaybeUninit::<Tensor>::uninit();
        // SAFETY: the object is of the class, Python's lock is held, and there is room for the result.
        if unsafe { borrow(object.as_ptr().cast(), tensor.as_mut_ptr()) } != 0 {
            let (py, e) = (object.py(), PyErr::fetch(object.py()));
            return match answer(py, Err::<(), _>(e)) {
                Ok(refused) => refused.err().map(|e| Ok(Err(Refused::export(py, &e)))),
                Err(e) => Some(Err(e)),
            };
        }
        // SAFETY: it has succeeded; what the tensor points to is there until Python's code runs again.
        let tensor = unsafe { tensor.assume_init_ref() };
        Some(Ok(described(tensor, false).map(|array| View { array, _owner: object.clone() })))
    }

    /// The stream of a CUDA device that the library works on next, as the driver's handle.
    pub fn stream(&self, py: Python<'_>, device: i32) -> Option<PyResult<u64>> {
        let stream = self.stream?;
        let mut out = std::ptr::null_mut();
        // SAFETY: Python's lock is held, and there is room for the result.
        let status = unsafe { stream(CUDA[0], device, &mut out) };
        Some(if status == 0 { Ok(out.addr() as u64) } else { Err(PyErr::fetch(py)) })
    }
}

/// The array that an object with `__dlpack__` exports. Nothing is copied; the capsule keeps it alive.
pub fn view<'py>(object: &Bound<'py, PyAny>, export: &Bound<'py, PyAny>) -> PyResult<Result<View<'py>, Refused>> {
    let py = object.py();
    if is_negated(object)? {
        return Ok(Err(Refused::negated()));
    }
    let quick = torch_export(object).map(|export| export.call1(py, (object,)).map(|capsule| capsule.into_bound(py)));
    let capsule = match answer(py, quick.unwrap_or_else(|| exported(py, export)))? {
        Ok(capsule) => capsule,
        Err(e) => return Ok(Err(Refused::export(py, &e))),
    };
    let Ok(capsule) = capsule.cast_into::<PyCapsule>() else { return Ok(Err(Refused::no_array(object))) };
    let (tensor, read_only) = if capsule.is_valid_checked(Some(VERSIONED)) {
        let managed = capsule.pointer_checked(Some(VERSIONED))?.cast::<ManagedVersioned>();
        // SAFETY: a valid capsule of this name points to this structure, which the capsule keeps alive.
        let managed = unsafe { managed.as_ref() };
        if managed.version[0] != 1 {
            return Ok(Err(Refused::version(managed.version)));
        }
        (&managed.tensor, managed.flags & READ_ONLY != 0)
    } else {
        let managed = capsule.pointer_checked(Some(OLD))?.cast::<Managed>();
        // SAFETY: as above.
        (unsafe { &managed.as_ref().tensor }, false)
    };
    // JAX's arrays never change, and its capsules have no flag to say so.
    let read_only = read_only || is_of_jax(object);
    Ok(described(tensor, read_only).map(|array| View { array, _owner: capsule.into_any() }))
}

/// The array of a plain tensor of PyTorch, by its functions in C. `None` where it is none, or there are none.
pub fn quick_view<'py>(object: &Bound<'py, PyAny>) -> Option<PyResult<Result<View<'py>, Refused>>> {
    let torch = plain_tensor(object)?;
    let exchange = torch.exchange?;
    match is_negated(object) {
        Ok(false) => exchange.view(object),
        Ok(true) => Some(Ok(Err(Refused::negated()))),
        Err(e) => Some(Err(e)),
    }
}

fn is_of_jax(object: &Bound<'_, PyAny>) -> bool {
    let module = object.get_type().getattr(pyo3::intern!(object.py(), "__module__")).map(|m| m.to_string());
    module.is_ok_and(|module| module == "jax" || module.starts_with("jax.") || module.starts_with("jaxlib"))
}

/// A view of PyTorch that stands for the negatives of what is in memory.
fn is_negated(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    match object.getattr_opt(pyo3::intern!(py, "is_neg"))? {
        Some(negates) => Ok(answer(py, negates.call0().and_then(|is| is.is_truthy()))?.unwrap_or(false)),
        None => Ok(false),
    }
}

/// The array that a structure describes.
fn described(tensor: &Tensor, read_only: bool) -> Result<ArrayView, Refused> {
    let place = match tensor.device {
        Device { kind, .. } if HOST.contains(&kind) => Place::Host,
        Device { kind, number } if CUDA.contains(&kind) => Place::Cuda(number),
        Device { kind, .. } => return Err(Refused::device(device(kind))),
    };
    let dtype = dtype(tensor.dtype).map_err(|what| Refused::dtype(&what))?;
    let rank = usize::try_from(tensor.ndim).unwrap_or(0);
    let numbers = |at: *const i64| match at.is_null() || rank == 0 {
        true => None,
        // SAFETY: `shape` and `strides`, where they are given, have `ndim` entries.
        false => Some(unsafe { slice::from_raw_parts(at, rank) }),
    };
    let shape: Vec<usize> = numbers(tensor.shape).unwrap_or_default().iter().map(|&n| n as usize).collect();
    let strides: Option<Vec<isize>> = numbers(tensor.strides).map(|s| s.iter().map(|&n| n as isize).collect());
    if tensor.data.is_null() && !shape.contains(&0) {
        return Err(Refused::no_memory());
    }
    let data = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize);
    Ok(ArrayView::new(dtype, shape, strides.as_deref(), data, read_only).on(place))
}

/// A capsule of version 1, or of an object that has none such of version 0.
fn exported<'py>(py: Python<'py>, export: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let options = PyDict::new(py);
    options.set_item(pyo3::intern!(py, "max_version"), (1, 1))?;
    match export.call(PyTuple::empty(py), Some(&options)) {
        Err(e) if e.is_instance_of::<pyo3::exceptions::PyTypeError>(py) => export.call0(),
        other => other,
    }
}

/// PyTorch's own function behind `__dlpack__`, which takes a tenth of the time, for a tensor that it may be called
/// with.
fn torch_export(object: &Bound<'_, PyAny>) -> Option<&'static Py<PyAny>> {
    plain_tensor(object)?.export.as_ref()
}

/// PyTorch, if the object is a tensor of no class of its own that needs no gradient.
fn plain_tensor(object: &Bound<'_, PyAny>) -> Option<&'static Torch> {
    let py = object.py();
    let torch = loaded::torch(py)?;
    let is_true = |value: PyResult<Bound<'_, PyAny>>| value.and_then(|value| value.is_truthy()).unwrap_or(true);
    let plain = object.get_type().is(&torch.tensor) && !is_true(object.getattr(pyo3::intern!(py, "requires_grad")));
    plain.then_some(torch)
}
