//! Reading: bytes to a tensor, C-order and little-endian whatever the file's order.

use super::NpyError;
use super::header::{self, Descr, Header, quoted, shown};
use crate::tensor::element_count;
use crate::{DType, Tensor};
use std::io::Read;

/// Reads a `.npy` file of any version, byte order and memory order.
///
/// bf16 comes from `V2`, and from `<u2` or `>u2` if `expected` is bf16; an 8-bit float, if one is expected, from `V1`
/// or `u1` (`V1` is f8e4m3 if none is, `f1` always f8e5m2). Otherwise `expected` changes nothing, and it is for the
/// caller to hold the tensor's dtype against it.
pub fn read(file: &[u8], expected: Option<DType>) -> Result<Tensor, NpyError> {
    NpyReader::new(file, Some(file.len() as u64), expected)?.read()
}

/// A file of which the header was read: dtype and shape are known, and no element was read or allocated. So a caller
/// can refuse what does not fit before it costs anything.
#[derive(Debug)]
pub struct NpyReader<R> {
    source: R,
    dtype: DType,
    /// The bytes of an element are to be reversed.
    swap: bool,
    fortran_order: bool,
    shape: Vec<usize>,
    /// Data bytes that the shape takes.
    needed: usize,
}

impl<R: Read> NpyReader<R> {
    /// Reads the header. `length` is that of the whole file; pipes and devices have none. `expected` is as for
    /// [`read`].
    ///
    /// A file whose length is not what the header claims is an error here already.
    pub fn new(mut source: R, length: Option<u64>, expected: Option<DType>) -> Result<NpyReader<R>, NpyError> {
        let header = header::read(&mut source, length)?;
        let (dtype, swap) = element_type(&header.descr, expected)?;
        let size = dtype.size();
        let count = element_count(dtype, &header.shape)
            .ok_or_else(|| NpyError::TooLarge { shape: quoted(&header.shape_text), itemsize: size })?;
        let Header { fortran_order, shape, data, .. } = header;
        let reader = NpyReader { source, dtype, swap, fortran_order, shape, needed: count * size };
        if let Some(length) = length {
            let found = usize::try_from(length.saturating_sub(data)).unwrap_or(usize::MAX);
            if found < reader.needed {
                return Err(reader.truncated(found));
            }
            if found > reader.needed {
                return Err(reader.trailing(Some(found - reader.needed)));
            }
        }
        Ok(reader)
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents, slowest first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Reads the elements: as many bytes as the shape takes, and then the end of the file, which must be there.
    pub fn read(mut self) -> Result<Tensor, NpyError> {
        let permuted = self.fortran_order && self.shape.len() > 1 && self.needed > 0;
        let filled = match permuted {
            false => Tensor::filled_from(self.dtype, &self.shape, &mut self.source)?,
            true => Tensor::filled_from(DType::U8, &[self.needed], &mut self.source)?,
        };
        let mut tensor = filled.map_err(|found| self.truncated(found))?;
        let mut beyond = Vec::new();
        if self.source.by_ref().take(1).read_to_end(&mut beyond)? > 0 {
            return Err(self.trailing(None));
        }
        if permuted {
            let bytes = std::mem::replace(&mut tensor, Tensor::zeros(self.dtype, &self.shape)?);
            permute(&mut tensor, bytes.bytes());
        }
        if self.swap {
            tensor.bytes_mut().chunks_exact_mut(self.dtype.size()).for_each(<[u8]>::reverse);
        }
        if self.dtype == DType::Bool {
            // NumPy takes every non-zero byte as true; ours are 0 or 1.
            tensor.bytes_mut().iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(tensor)
    }

    fn truncated(&self, found: usize) -> NpyError {
        NpyError::TruncatedData { needed: self.needed, found, signature: self.signature() }
    }

    fn trailing(&self, extra: Option<usize>) -> NpyError {
        NpyError::TrailingData { needed: self.needed, extra, signature: self.signature() }
    }

    fn signature(&self) -> String {
        format!("{}{:?}", self.dtype, self.shape)
    }
}

/// Copies elements in Fortran order into C order.
fn permute(tensor: &mut Tensor, data: &[u8]) {
    let (shape, size) = (tensor.shape().to_vec(), tensor.dtype().size());
    // Walks the destination in order and keeps the source offset up to date, like an odometer.
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = size;
    for &extent in &shape {
        strides.push(stride);
        stride *= extent;
    }
    let (mut index, mut from) = (vec![0; shape.len()], 0);
    for element in tensor.bytes_mut().chunks_exact_mut(size) {
        element.copy_from_slice(&data[from..from + size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            from += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            from -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
}

/// The dtype, and whether the bytes of an element must be reversed.
fn element_type(descr: &Descr, expected: Option<DType>) -> Result<(DType, bool), NpyError> {
    let text = match descr {
        Descr::Plain(text) => text,
        Descr::Structured(text) => {
            let remedy = "one field, as in `x['name']`,".to_string();
            return Err(NpyError::UnsupportedType { descr: shown(text), kind: "a structured type", remedy });
        }
    };
    let unknown = || NpyError::BadHeader { reason: format!("`descr` is {}, not a type string", quoted(text)) };
    // `<f4`: byte order, kind, bytes an element (characters for U; a unit may follow for dates).
    let (order, rest) = match text.chars().next() {
        Some(order @ ('<' | '>' | '=' | '|')) => (order, &text[1..]),
        _ => ('=', text.as_str()),
    };
    let kind = rest.chars().next().ok_or_else(unknown)?;
    let size = &rest[kind.len_utf8()..];
    let eight = expected.filter(|d| d.is_f8());
    let dtype = match (kind, size) {
        ('u' | 'V', "1") if eight.is_some() => eight.unwrap_or(DType::F8E4M3),
        ('V', "1") => DType::F8E4M3,
        ('f', "1") => DType::F8E5M2,
        ('b', "1") | ('?', "") => DType::Bool,
        ('i', "1") => DType::I8,
        ('i', "2") => DType::I16,
        ('i', "4") => DType::I32,
        ('i', "8") => DType::I64,
        ('u', "1") => DType::U8,
        ('u', "2") if expected == Some(DType::BF16) => DType::BF16,
        ('u', "2") => DType::U16,
        ('u', "4") => DType::U32,
        ('u', "8") => DType::U64,
        ('f', "2") => DType::F16,
        ('f', "4") => DType::F32,
        ('V', "2") => DType::BF16,
        _ => return Err(unsupported(text, kind, size).unwrap_or_else(unknown)),
    };
    Ok((dtype, order == '>' && dtype.size() > 1))
}

/// The error for a type that NumPy has and kernels have not; `None` if NumPy does not have it either.
fn unsupported(text: &str, kind: char, size: &str) -> Option<NpyError> {
    let wanted = "`x.astype(np.float32)`";
    let (kind, remedy) = match (kind, size) {
        ('f', "8") => ("float64", wanted),
        ('f', "12" | "16") => ("long double", wanted),
        ('c', _) => ("complex numbers", "`x.real.astype(np.float32)`, and `x.imag` likewise,"),
        ('O', _) => ("pickled Python objects", "an array of numbers"),
        ('U' | 'S' | 'a', _) => ("text", "an array of numbers, such as codes of the words,"),
        ('M' | 'm', _) => ("dates or durations", "`x.astype(np.int64)`"),
        ('V', _) => ("raw bytes", "a numeric view, as in `x.view(np.uint8)`,"),
        _ => return None,
    };
    Some(NpyError::UnsupportedType { descr: shown(text), kind, remedy: remedy.to_string() })
}
