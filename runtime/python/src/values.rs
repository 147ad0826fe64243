//! Numbers and constants in Python's objects.

use crate::errors::answer;
use ptoc_driver::library::Scalar;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};

/// The scalar that an object is, if it is one. A number of NumPy is one, too.
pub fn scalar(object: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    if let Some(scalar) = number(object) {
        return Ok(scalar);
    }
    // Zero-dimensional arrays, and numbers of other libraries.
    let item = answer(object.py(), object.call_method0("item"))?;
    Ok(item.ok().and_then(|item| number(&item)).flatten())
}

/// A number of Python; one of more than 64 bits is `Some(None)`.
fn number(object: &Bound<'_, PyAny>) -> Option<Option<Scalar>> {
    if let Ok(x) = object.cast::<PyBool>() {
        return Some(Some(Scalar::Bool(x.is_true())));
    }
    if object.is_instance_of::<PyInt>() {
        let signed = object.extract::<i64>().map(i128::from);
        return Some(signed.or_else(|_| object.extract::<u64>().map(i128::from)).ok().map(Scalar::Int));
    }
    object.is_instance_of::<PyFloat>().then(|| object.extract().ok().map(Scalar::Float))
}

/// A constant as an expression of the language: numbers, texts as they are, dtypes of NumPy and PyTorch, and tuples of
/// at least two of them.
pub fn constant(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(text.to_str().ok().map(str::to_owned));
    }
    if let Ok(items) = object.cast::<PyTuple>() {
        let items: Option<Vec<String>> = items.iter().map(|item| constant(&item)).collect::<PyResult<_>>()?;
        return Ok(items.filter(|items| items.len() > 1).map(|items| format!("({})", items.join(", "))));
    }
    if let Some(name) = dtype_name(object) {
        return Ok(Some(name.to_owned()));
    }
    Ok(scalar(object)?.map(|scalar| match scalar {
        Scalar::Bool(x) => x.to_string(),
        Scalar::Int(n) => n.to_string(),
        Scalar::Float(x) => format!("{x:?}"),
    }))
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
