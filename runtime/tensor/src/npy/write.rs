//! Writing: the bytes that `numpy.save` would write.

use super::MAGIC;
use crate::{DType, Tensor};

/// The type string: little-endian; bf16 as two raw bytes and the 8-bit floats as one, since NumPy has no names of its
/// own for them (a package that has views the bytes: `x.view(ml_dtypes.float8_e5m2)`).
fn descr(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "|b1",
        DType::I8 => "|i1",
        DType::U8 => "|u1",
        DType::I16 => "<i2",
        DType::U16 => "<u2",
        DType::I32 => "<i4",
        DType::U32 => "<u4",
        DType::I64 => "<i8",
        DType::U64 => "<u8",
        DType::F16 => "<f2",
        DType::BF16 => "|V2",
        DType::F32 => "<f4",
        DType::F8E4M3 | DType::F8E5M2 => "|V1",
    }
}

/// The whole file: version 1.0 (2.0 if the shape takes more than 64 KiB of text), C order, data from a multiple of
/// 64 bytes on. The header has NumPy's own padding, so that the bytes are those of `numpy.save`.
pub fn write(tensor: &Tensor) -> Vec<u8> {
    let extents: String = tensor.shape().iter().map(|extent| format!("{extent}, ")).collect();
    let shape = match tensor.shape() {
        [_] => extents.trim_end(),
        _ => extents.strip_suffix(", ").unwrap_or(""),
    };
    let mut text = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({shape}), }}", descr(tensor.dtype()));
    // Room for the first extent to grow to 21 digits in place.
    if let Some(first) = tensor.shape().first() {
        let room = 21 - first.to_string().len();
        text.push_str(&" ".repeat(room));
    }
    // NumPy pads by 1 to 64 bytes, never by none.
    let padded = |prefix: usize| (prefix + text.len() + 1) / 64 * 64 + 64;
    let prefix = if padded(10) - 10 > usize::from(u16::MAX) { 12 } else { 10 };
    let padded = padded(prefix);
    text.push_str(&" ".repeat(padded - prefix - text.len() - 1));
    text.push('\n');

    let mut file = Vec::with_capacity(padded + tensor.bytes().len());
    file.extend_from_slice(MAGIC);
    match prefix {
        10 => {
            file.extend_from_slice(&[1, 0]);
            file.extend_from_slice(&(text.len() as u16).to_le_bytes());
        }
        _ => {
            file.extend_from_slice(&[2, 0]);
            file.extend_from_slice(&(text.len() as u32).to_le_bytes());
        }
    }
    file.extend_from_slice(text.as_bytes());
    file.extend_from_slice(tensor.bytes());
    file
}
