//! New arrays for results, of the library that the inputs are of.

use crate::loaded;
use ptoc_driver::library::Device;
use ptoc_tensor::DType;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

/// Who makes new arrays.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// NumPy.
    Numpy,
    /// PyTorch.
    Torch,
    /// CuPy.
    Cupy,
}

impl Maker {
    /// The library of an array, which may be of a class of its own: a `Parameter` is a tensor. What is of neither gets
    /// results of NumPy.
    pub fn of(object: &Bound<'_, PyAny>) -> Maker {
        let py = object.py();
        let module = object.get_type().getattr(pyo3::intern!(py, "__module__")).map(|m| m.to_string());
        let module = module.as_deref().unwrap_or_default();
        match module {
            "torch" => Maker::Torch,
            "numpy" => Maker::Numpy,
            _ if module.starts_with("cupy") => Maker::Cupy,
            _ => {
                let tensor = loaded::torch(py).map(|torch| torch.tensor.bind(py));
                let is_tensor = tensor.is_some_and(|class| object.is_instance(class).unwrap_or(false));
                if is_tensor { Maker::Torch } else { Maker::Numpy }
            }
        }
    }

    /// The stream on which the library's next work on a device is done, as the driver's handle; 0 is the legacy default
    /// stream.
    pub fn stream(self, py: Python<'_>, device: i32) -> PyResult<u64> {
        match self {
            Maker::Numpy => Ok(0),
            Maker::Torch if let Some(stream) = loaded::torch(py).and_then(|t| t.exchange?.stream(py, device)) => stream,
            Maker::Torch => {
                static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
                let find = || py.import("torch.cuda")?.getattr("current_stream").map(Bound::unbind);
                let stream = CURRENT.get_or_try_init(py, find)?.bind(py).call1((device,))?;
                stream.getattr(pyo3::intern!(py, "cuda_stream"))?.extract()
            }
            Maker::Cupy => py.import("cupy.cuda")?.call_method0("get_current_stream")?.getattr("ptr")?.extract(),
        }
    }

    /// A new array, whose elements are not set; `Err` says which dtype the library has not.
    pub fn empty<'py>(
        self,
        py: Python<'py>,
        dtype: DType,
        shape: &[usize],
        device: Device,
    ) -> PyResult<Bound<'py, PyAny>> {
        let shape = PyTuple::new(py, shape)?;
        match self {
            Maker::Numpy if device != Device::Host => {
                let message = format!("new arrays on {device} are made by PyTorch or CuPy, if an input is theirs");
                Err(pyo3::exceptions::PyTypeError::new_err(message))
            }
            Maker::Cupy => py.import("cupy")?.call_method1("empty", (shape, numpy_dtype(py, dtype)?)),
            Maker::Numpy => {
                static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
                let empty = EMPTY.get_or_try_init(py, || py.import("numpy")?.getattr("empty").map(Bound::unbind))?;
                empty.bind(py).call1((shape, numpy_dtype(py, dtype)?))
            }
            Maker::Torch => {
                static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
                let empty = EMPTY.get_or_try_init(py, || py.import("torch")?.getattr("empty").map(Bound::unbind))?;
                let options = PyDict::new(py);
                options.set_item(pyo3::intern!(py, "dtype"), torch_dtype(py, dtype)?)?;
                // Whatever the default device is.
                options.set_item(pyo3::intern!(py, "device"), torch_device(py, device)?)?;
                empty.bind(py).call((shape,), Some(&options))
            }
        }
    }
}

/// A device as PyTorch has it.
fn torch_device<'py>(py: Python<'py>, device: Device) -> PyResult<Bound<'py, PyAny>> {
    static HOST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static FIRST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let name = if device == Device::Host { "cpu".to_owned() } else { device.to_string() };
    let make = || py.import("torch")?.getattr("device")?.call1((name,)).map(Bound::unbind);
    match device {
        Device::Host => HOST.get_or_try_init(py, make).map(|d| d.bind(py).clone()),
        Device::Cuda(0) => FIRST.get_or_try_init(py, make).map(|d| d.bind(py).clone()),
        Device::Cuda(_) => make().map(|d| d.into_bound(py)),
    }
}

/// The dtype of that name.
pub fn named(text: &str) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| name(*dtype) == text)
}

/// NumPy's name of a dtype; of those that it has not, what `ml_dtypes` calls them.
pub fn name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::I8 => "int8",
        DType::U8 => "uint8",
        DType::I16 => "int16",
        DType::U16 => "uint16",
        DType::I32 => "int32",
        DType::U32 => "uint32",
        DType::I64 => "int64",
        DType::U64 => "uint64",
        DType::F16 => "float16",
        DType::BF16 => "bfloat16",
        DType::F32 => "float32",
        DType::F8E4M3 => "float8_e4m3fn",
        DType::F8E5M2 => "float8_e5m2",
    }
}

type Dtypes = [PyOnceLock<Py<PyAny>>; DType::ALL.len()];

fn numpy_dtype<'py>(py: Python<'py>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    static KNOWN: Dtypes = [const { PyOnceLock::new() }; DType::ALL.len()];
    let make = || {
        let module = if dtype == DType::BF16 || dtype.is_f8() { "ml_dtypes" } else { "numpy" };
        let class = py.import(module)?.getattr(if dtype == DType::Bool { "bool_" } else { name(dtype) })?;
        py.import("numpy")?.call_method1("dtype", (class,)).map(Bound::unbind)
    };
    KNOWN[dtype as usize].get_or_try_init(py, make).map(|d| d.bind(py).clone())
}

fn torch_dtype<'py>(py: Python<'py>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    static KNOWN: Dtypes = [const { PyOnceLock::new() }; DType::ALL.len()];
    let make = || py.import("torch")?.getattr(name(dtype)).map(Bound::unbind);
    KNOWN[dtype as usize].get_or_try_init(py, make).map(|d| d.bind(py).clone())
}
