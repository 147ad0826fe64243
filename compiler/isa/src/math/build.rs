//! Writes programs: one method an operation, checked types, shared constants.

use super::program::{Id, MAX_OPS, MathOp, MathProgram, Ty};
use crate::CmpOp;

/// A program being written.
pub(super) struct Builder {
    ops: Vec<MathOp>,
    types: Vec<Ty>,
}

impl Builder {
    /// A program whose only operation so far is its argument.
    pub(super) fn new() -> (Builder, Id) {
        (Builder { ops: vec![MathOp::Arg], types: vec![Ty::F32] }, Id(0))
    }

    /// A program of two arguments, its first two operations.
    pub(super) fn of_two() -> (Builder, Id, Id) {
        let (mut b, x) = Builder::new();
        let y = b.push(MathOp::Second, Ty::F32);
        (b, x, y)
    }

    fn push(&mut self, op: MathOp, ty: Ty) -> Id {
        self.ops.push(op);
        self.types.push(ty);
        Id(u16::try_from(self.ops.len() - 1).expect("programs are short"))
    }

    fn typed(&mut self, op: MathOp, operands: &[Id], of: Ty, result: Ty) -> Id {
        for id in operands {
            assert_eq!(self.types[id.index()], of, "operand of {op:?}");
        }
        self.push(op, result)
    }

    /// A constant; equal ones are one operation.
    pub(super) fn c(&mut self, value: f32) -> Id {
        let same = |op: &MathOp| matches!(op, MathOp::F32(v) if v.to_bits() == value.to_bits());
        match self.ops.iter().position(same) {
            Some(at) => Id(at as u16),
            None => self.push(MathOp::F32(value), Ty::F32),
        }
    }

    /// An integer constant.
    pub(super) fn i(&mut self, value: i32) -> Id {
        match self.ops.iter().position(|op| *op == MathOp::I32(value)) {
            Some(at) => Id(at as u16),
            None => self.push(MathOp::I32(value), Ty::I32),
        }
    }

    pub(super) fn add(&mut self, a: Id, b: Id) -> Id {
        self.typed(MathOp::Add(a, b), &[a, b], Ty::F32, Ty::F32)
    }

    pub(super) fn sub(&mut self, a: Id, b: Id) -> Id {
        self.typed(MathOp::Sub(a, b), &[a, b], Ty::F32, Ty::F32)
    }

    pub(super) fn mul(&mut self, a: Id, b: Id) -> Id {
        self.typed(MathOp::Mul(a, b), &[a, b], Ty::F32, Ty::F32)
    }

    pub(super) fn div(&mut self, a: Id, b: Id) -> Id {
        self.typed(MathOp::Div(a, b), &[a, b], Ty::F32, Ty::F32)
    }

    pub(super) fn fma(&mut self, a: Id, b: Id, c: Id) -> Id {
        self.typed(MathOp::Fma(a, b, c), &[a, b, c], Ty::F32, Ty::F32)
    }

    pub(super) fn rint(&mut self, a: Id) -> Id {
        self.typed(MathOp::Rint(a), &[a], Ty::F32, Ty::F32)
    }

    pub(super) fn min(&mut self, a: Id, b: Id) -> Id {
        self.typed(MathOp::Min(a, b), &[a, b], Ty::F32, Ty::F32)
    }

    pub(super) fn max(&mut self, a: Id, b: Id) -> Id {
        self.typed(MathOp::Max(a, b), &[a, b], Ty::F32, Ty::F32)
    }

    pub(super) fn scale(&mut self, a: Id, n: Id) -> Id {
        self.typed(MathOp::Scale(a, n), &[a, n], Ty::F32, Ty::F32)
    }

    pub(super) fn f_to_i(&mut self, a: Id) -> Id {
        self.typed(MathOp::ToInt(a), &[a], Ty::F32, Ty::I32)
    }

    pub(super) fn i_to_f(&mut self, a: Id) -> Id {
        self.typed(MathOp::ToFloat(a), &[a], Ty::I32, Ty::F32)
    }

    /// The bits; those of one value are taken once.
    pub(super) fn bits(&mut self, a: Id) -> Id {
        if let Some(at) = self.ops.iter().position(|op| *op == MathOp::Bits(a)) {
            return Id(at as u16);
        }
        self.typed(MathOp::Bits(a), &[a], Ty::F32, Ty::I32)
    }

    pub(super) fn unbits(&mut self, a: Id) -> Id {
        self.typed(MathOp::FromBits(a), &[a], Ty::I32, Ty::F32)
    }

    pub(super) fn iadd(&mut self, a: Id, b: Id) -> Id {
        self.typed(MathOp::IAdd(a, b), &[a, b], Ty::I32, Ty::I32)
    }

    pub(super) fn isub(&mut self, a: Id, b: Id) -> Id {
        self.typed(MathOp::ISub(a, b), &[a, b], Ty::I32, Ty::I32)
    }

    pub(super) fn and(&mut self, a: Id, b: Id) -> Id {
        self.typed(MathOp::And(a, b), &[a, b], Ty::I32, Ty::I32)
    }

    pub(super) fn xor(&mut self, a: Id, b: Id) -> Id {
        self.typed(MathOp::Xor(a, b), &[a, b], Ty::I32, Ty::I32)
    }

    pub(super) fn shl(&mut self, a: Id, b: Id) -> Id {
        self.typed(MathOp::Shl(a, b), &[a, b], Ty::I32, Ty::I32)
    }

    pub(super) fn shr(&mut self, a: Id, b: Id) -> Id {
        self.typed(MathOp::Shr(a, b), &[a, b], Ty::I32, Ty::I32)
    }

    /// A comparison of two values of one type.
    pub(super) fn cmp(&mut self, op: CmpOp, a: Id, b: Id) -> Id {
        let ty = self.types[a.index()];
        assert_ne!(ty, Ty::Bool, "truth values are not compared");
        self.typed(MathOp::Cmp(op, a, b), &[a, b], ty, Ty::Bool)
    }

    pub(super) fn select(&mut self, cond: Id, a: Id, b: Id) -> Id {
        assert_eq!(self.types[cond.index()], Ty::Bool, "condition");
        let ty = self.types[a.index()];
        self.typed(MathOp::Select { cond, a, b }, &[a, b], ty, ty)
    }

    /// -a, exactly: the sign bit flipped.
    pub(super) fn neg(&mut self, a: Id) -> Id {
        let (bits, sign) = (self.bits(a), self.i(i32::MIN));
        let flipped = self.xor(bits, sign);
        self.unbits(flipped)
    }

    /// |a|
    pub(super) fn abs(&mut self, a: Id) -> Id {
        let (bits, mask) = (self.bits(a), self.i(i32::MAX));
        let magnitude = self.and(bits, mask);
        self.unbits(magnitude)
    }

    /// |a| and the sign bit of a (as i32: 0 or the lowest integer).
    pub(super) fn split_sign(&mut self, a: Id) -> (Id, Id) {
        let magnitude = self.abs(a);
        let (bits, top) = (self.bits(a), self.i(i32::MIN));
        (magnitude, self.and(bits, top))
    }

    /// `a` with the sign bit `sign` flipped into it.
    pub(super) fn flip_sign(&mut self, a: Id, sign: Id) -> Id {
        let bits = self.bits(a);
        let flipped = self.xor(bits, sign);
        self.unbits(flipped)
    }

    /// Horner's scheme with fused multiply-adds; `coefficients` from the highest power down.
    pub(super) fn horner(&mut self, x: Id, coefficients: &[f32]) -> Id {
        let mut acc = self.c(coefficients[0]);
        for &k in &coefficients[1..] {
            let k = self.c(k);
            acc = self.fma(acc, x, k);
        }
        acc
    }

    /// The finished program; its result is the last operation.
    pub(super) fn finish(self, name: &'static str, max_ulp: f64, domain: f32, doc: &'static str) -> MathProgram {
        assert_eq!(self.types.last(), Some(&Ty::F32), "a program returns f32");
        assert!(self.ops.len() <= MAX_OPS, "{name} is too long");
        MathProgram { name, ops: self.ops, types: self.types, max_ulp, domain, doc }
    }
}
