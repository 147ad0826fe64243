//! One value or four: helpers that let an instruction sequence be written once.
//!
//! A scalar bool is an i8 of 0 or 1; four bools are an i32x4 of 0 or -1. Scalar i64 has no vector form.

use crate::func::Emit;
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, F32X4, I8, I32, I32X4, I64};
use cranelift_codegen::ir::{ConstantData, Endianness, InstBuilder, MemFlagsData, Type, Value};
use ptoc_ir::loops::LTy;

/// How wide an instruction is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// One value.
    One,
    /// Four lanes of 32 bits.
    Four,
}

/// Accesses do not trap (the IR was checked), may be unaligned, and are little-endian.
pub(crate) fn plain() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// The machine type of a scalar register.
pub(crate) fn scalar_type(ty: LTy) -> Type {
    match ty {
        LTy::I32 => I32,
        LTy::I64 => I64,
        LTy::F32 => F32,
        LTy::Bool => I8,
    }
}

impl Emit<'_, '_> {
    /// Reinterprets bits.
    pub(crate) fn bitcast(&mut self, ty: Type, x: Value) -> Value {
        if self.b.func.dfg.value_type(x) == ty {
            return x;
        }
        self.b.ins().bitcast(ty, MemFlagsData::new().with_endianness(Endianness::Little), x)
    }

    /// A vector constant of four equal lanes.
    pub(crate) fn vector(&mut self, ty: Type, lanes: [u32; 4]) -> Value {
        let bytes: Vec<u8> = lanes.iter().flat_map(|l| l.to_le_bytes()).collect();
        let constant = self.b.func.dfg.constants.insert(ConstantData::from(bytes));
        self.b.ins().vconst(ty, constant)
    }

    /// An i32 constant.
    pub(crate) fn int(&mut self, s: Shape, bits: u32) -> Value {
        match s {
            Shape::One => self.b.ins().iconst(I32, i64::from(bits)),
            Shape::Four => self.vector(I32X4, [bits; 4]),
        }
    }

    /// An f32 constant.
    pub(crate) fn float(&mut self, s: Shape, x: f32) -> Value {
        match s {
            Shape::One => self.b.ins().f32const(x),
            Shape::Four => self.vector(F32X4, [x.to_bits(); 4]),
        }
    }

    /// The bits of f32.
    pub(crate) fn as_int(&mut self, s: Shape, x: Value) -> Value {
        self.bitcast(if s == Shape::One { I32 } else { I32X4 }, x)
    }

    /// f32 of these bits.
    pub(crate) fn as_float(&mut self, s: Shape, x: Value) -> Value {
        self.bitcast(if s == Shape::One { F32 } else { F32X4 }, x)
    }

    /// A comparison of integers, as bool.
    pub(crate) fn compare_int(&mut self, _: Shape, cc: IntCC, a: Value, b: Value) -> Value {
        self.b.ins().icmp(cc, a, b)
    }

    /// The condition that an f32 is NaN.
    pub(crate) fn is_nan(&mut self, _: Shape, x: Value) -> Value {
        self.b.ins().fcmp(FloatCC::Unordered, x, x)
    }

    /// `cond ? a : b` for any register type that the shape has.
    pub(crate) fn choose(&mut self, s: Shape, cond: Value, a: Value, b: Value) -> Value {
        match s {
            Shape::One => self.b.ins().select(cond, a, b),
            Shape::Four => {
                let ty = self.b.func.dfg.value_type(a);
                let (a, b) = (self.bitcast(I32X4, a), self.bitcast(I32X4, b));
                let chosen = self.b.ins().bitselect(cond, a, b);
                self.bitcast(ty, chosen)
            }
        }
    }

    /// i32 `bits` where `cond`, otherwise 0.
    pub(crate) fn mask_bits(&mut self, s: Shape, cond: Value, bits: Value) -> Value {
        match s {
            Shape::One => {
                let mask = self.b.ins().bmask(I32, cond);
                self.b.ins().band(mask, bits)
            }
            Shape::Four => self.b.ins().band(cond, bits),
        }
    }
}
