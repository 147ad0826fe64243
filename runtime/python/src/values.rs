//! Numbers and constants in Python's objects.

use ptoc_driver::library::Scalar;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

/// The scalar that an object is, if it is one. A number of NumPy is one, too.
pub fn scalar(object: &Bound<'_, PyAny>) -> Option<Scalar> {
    if let Ok(x) = object.cast::<PyBool>() {
        return Some(Scalar::Bool(x.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        return object.extract().ok().map(Scalar::Int);
    }
    if object.is_instance_of::<PyFloat>() {
        return object.extract().ok().map(Scalar::Float);
    }
    // Zero-dimensional arrays, and numbers of other libraries.
    let item = object.call_method0("item").ok()?;
    let known = item.is_instance_of::<PyBool>() || item.is_instance_of::<PyInt>() || item.is_instance_of::<PyFloat>();
    if known { scalar(&item) } else { None }
}

/// A constant as an expression of the language: numbers, texts as they are, and dtypes of NumPy and PyTorch.
pub fn constant(object: &Bound<'_, PyAny>) -> Option<String> {
    if let Ok(text) = object.cast::<PyString>() {
        return text.to_str().ok().map(str::to_owned);
    }
    if let Some(name) = dtype_name(object) {
        return Some(name.to_owned());
    }
    match scalar(object)? {
        Scalar::Bool(x) => Some(x.to_string()),
        Scalar::Int(n) => Some(n.to_string()),
        Scalar::Float(x) => Some(format!("{x:?}")),
    }
}

/// The language's name of `np.float16`, `np.dtype("float16")`, `torch.float16`.
fn dtype_name(object: &Bound<'_, PyAny>) -> Option<&'static str> {
    let name = object.getattr("__name__").or_else(|_| object.getattr("name"));
    let name = match name {
        Ok(name) => name.extract::<String>().ok()?,
        Err(_) => object.str().ok()?.to_string().strip_prefix("torch.")?.to_owned(),
    };
    Some(match name.as_str() {
        "bool" | "bool_" => "bool",
        "int8" => "i8",
        "uint8" => "u8",
        "int16" => "i16",
        "uint16" => "u16",
        "int32" => "i32",
        "uint32" => "u32",
        "int64" => "i64",
        "uint64" => "u64",
        "float16" => "f16",
        "bfloat16" => "bf16",
        "float32" => "f32",
        "float8_e4m3fn" => "f8e4m3",
        "float8_e5m2" => "f8e5m2",
        _ => return None,
    })
}
