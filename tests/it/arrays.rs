//! Arrays in the tables of vectors (`tests/golden/*.txt`): `DTYPE ROWSxCOLS HEX`, elements in row-major order, each as
//! the digits of its bits.

use ptoc_tensor::{DType, Tensor, scalar};

/// An array of a line.
pub struct Array {
    pub dtype: DType,
    pub shape: [usize; 2],
    pub bits: Vec<u64>,
}

impl Array {
    /// From `DTYPE ROWSxCOLS HEX`.
    pub fn parse(text: &str) -> Array {
        let [dtype, shape, digits] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
        let dtype = DType::from_name(dtype).expect("a dtype");
        let (rows, cols) = shape.split_once('x').expect("a shape");
        let number = |d: &[u8]| u64::from_str_radix(std::str::from_utf8(d).expect("digits"), 16).expect("digits");
        let bits: Vec<u64> = digits.as_bytes().chunks(2 * dtype.size()).map(number).collect();
        let shape = [rows.parse().expect("rows"), cols.parse().expect("columns")];
        assert_eq!(bits.len(), shape[0] * shape[1], "{text}");
        Array { dtype, shape, bits }
    }

    /// As an argument; a mask is made of ones and zeros.
    pub fn tensor(&self) -> Tensor {
        match self.dtype {
            DType::Bool => {
                Tensor::from_fn(DType::F32, &self.shape, |i| if self.bits[i] == 1 { 0x3f80_0000 } else { 0 })
            }
            d => Tensor::from_fn(d, &self.shape, |i| self.bits[i]),
        }
        .expect("small")
    }

    /// `f32[5, 21]`
    pub fn ty(&self) -> String {
        let d = if self.dtype == DType::Bool { DType::F32 } else { self.dtype };
        format!("{d}[{}, {}]", self.shape[0], self.shape[1])
    }
}

/// The first element in which a result is not what it should be.
pub fn wrong(got: &Tensor, want: &Tensor, same: impl Fn(u64, u64) -> bool) -> Option<String> {
    let d = want.dtype();
    if (got.dtype(), got.shape()) != (d, want.shape()) {
        return Some(format!("the result is {}, and not {}", got.signature(), want.signature()));
    }
    let at = (0..want.len()).find(|&i| !same(got.get_bits(i), want.get_bits(i)))?;
    let shown = |t: &Tensor| scalar::format_bits(d, t.get_bits(at));
    Some(format!("element {:?} is {}, numpy has {}", want.unravel(at), shown(got), shown(want)))
}
