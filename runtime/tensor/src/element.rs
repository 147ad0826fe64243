//! Rust types that stand for a dtype, so that a tensor can be viewed as a slice of them.

use crate::DType;
use half::{bf16, f16};

/// A Rust type with the layout of one [`DType`]. `bool` has none: its bytes are looked at as bytes.
pub trait Element: bytemuck::Pod {
    /// The dtype that this type stands for.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),* $(,)?) => {
        $(impl Element for $rust { const DTYPE: DType = DType::$dtype; })*
    };
}

elements! {
    i8 => I8, u8 => U8, i16 => I16, u16 => U16, i32 => I32, u32 => U32, i64 => I64, u64 => U64,
    f16 => F16, bf16 => BF16, f32 => F32,
}
