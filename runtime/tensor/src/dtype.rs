//! Element types and their storage.

use std::fmt;

/// The element type of a tensor or a tile. Names are those of the language.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum DType {
    /// A truth value: one byte (0 or 1) in a tensor; a tile packs one bit an element.
    Bool,
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    BF16,
    F32,
    /// OCP's E4M3: 1 sign, 4 exponent, 3 mantissa bits; no infinities, one NaN of each sign; up to 448.
    F8E4M3,
    /// OCP's E5M2: the upper byte of an f16, with its infinities and NaNs; up to 57344.
    F8E5M2,
}

impl DType {
    /// Every dtype.
    pub const ALL: [DType; 14] = [
        DType::Bool,
        DType::I8,
        DType::U8,
        DType::I16,
        DType::U16,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F8E4M3,
        DType::F8E5M2,
    ];

    /// The name in the language.
    pub fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "i8",
            DType::U8 => "u8",
            DType::I16 => "i16",
            DType::U16 => "u16",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::I64 => "i64",
            DType::U64 => "u64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F8E4M3 => "f8e4m3",
            DType::F8E5M2 => "f8e5m2",
        }
    }

    /// The dtype that is called `name`.
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|d| d.name() == name)
    }

    /// Bytes an element takes in a tensor.
    pub fn size(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 | DType::F8E4M3 | DType::F8E5M2 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 => 8,
        }
    }

    /// `f16`, `bf16`, `f32`, `f8e4m3`, `f8e5m2`.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32) || self.is_f8()
    }

    /// `f8e4m3`, `f8e5m2`: floats that are stored, moved, converted and multiplied as matrices, and nothing else.
    pub fn is_f8(self) -> bool {
        matches!(self, DType::F8E4M3 | DType::F8E5M2)
    }

    /// Any integer type (not `bool`).
    pub fn is_int(self) -> bool {
        !self.is_float() && self != DType::Bool
    }

    /// A signed integer type.
    pub fn is_signed_int(self) -> bool {
        matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }
}

impl DType {
    /// Whether an array of `file` is one of this dtype, bit for bit. NumPy has no names for some floats, and their
    /// users keep the bits: bf16 as `u16`, the 8-bit floats as `u8` or as bytes, which are read as f8e4m3.
    pub fn has_bits_of(self, file: DType) -> bool {
        match self {
            DType::BF16 => file == DType::U16,
            DType::F8E4M3 => file == DType::U8,
            DType::F8E5M2 => matches!(file, DType::U8 | DType::F8E4M3),
            _ => false,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
