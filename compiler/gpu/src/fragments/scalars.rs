//! Scalar code, which every thread computes alike: an instruction of tile IR is one of PTX, or a few.

use super::Code;
use crate::division::divide;
use ptoc_ir::loops::{self, LTy};
use ptoc_ir::tile::{Op, Ty, Value};
use ptoc_isa::{BinOp, CmpOp, UnOp};
use ptoc_ptx::{Address, Arith, Class, Cmp, Round, Space, Src, Type, VReg};
use ptoc_tensor::DType;

/// The type of arithmetic on values.
pub(super) fn arithmetic(ty: Ty) -> Option<Type> {
    match ty {
        Ty::Index => Some(Type::S64),
        Ty::D(DType::I32) => Some(Type::S32),
        Ty::D(DType::U32) => Some(Type::U32),
        Ty::D(DType::F32) => Some(Type::F32),
        Ty::D(DType::Bool) => Some(Type::Pred),
        Ty::D(_) => None,
    }
}

/// The type of copies and of operations on bits.
pub(super) fn bits(ty: Type) -> Type {
    match ty {
        Type::S64 => Type::B64,
        Type::S32 | Type::U32 => Type::B32,
        other => other,
    }
}

/// The instruction of an operation; the type says which of both kinds of numbers.
pub(super) fn binary(op: BinOp, ty: Type) -> Option<(Arith, Type)> {
    let f32 = ty == Type::F32;
    Some(match op {
        BinOp::Add => (if f32 { Arith::AddF } else { Arith::Add }, ty),
        BinOp::Sub => (if f32 { Arith::SubF } else { Arith::Sub }, ty),
        BinOp::Mul => (if f32 { Arith::MulF } else { Arith::MulLo }, ty),
        BinOp::Max => (if f32 { Arith::MaxF } else { Arith::Max }, ty),
        BinOp::Min => (if f32 { Arith::MinF } else { Arith::Min }, ty),
        BinOp::Div if f32 => (Arith::DivF, ty),
        BinOp::And => (Arith::And, bits(ty)),
        BinOp::Or => (Arith::Or, bits(ty)),
        BinOp::Xor => (Arith::Xor, bits(ty)),
        _ => return None,
    })
}

pub(super) fn comparison(op: CmpOp, ty: Type) -> Cmp {
    match op {
        CmpOp::Eq => Cmp::Eq,
        CmpOp::Ne if ty == Type::F32 => Cmp::Neu,
        CmpOp::Ne => Cmp::Ne,
        CmpOp::Lt => Cmp::Lt,
        CmpOp::Le => Cmp::Le,
        CmpOp::Gt => Cmp::Gt,
        CmpOp::Ge => Cmp::Ge,
    }
}

impl Code<'_> {
    pub(super) fn value(&self, v: Value) -> Option<Src> {
        self.values.get(&v).copied()
    }

    fn arithmetic_of(&self, v: Value) -> Option<Type> {
        arithmetic(self.kernel.values[v].ty)
    }

    /// A parameter of 64 bits as the value that it is.
    pub(super) fn narrowed(&mut self, v: Value, param: VReg) -> VReg {
        match self.arithmetic_of(v) {
            Some(Type::S32) => self.b.cvt(Type::U32, Type::U64, Round::None, param),
            Some(Type::F32) => {
                let low = self.b.cvt(Type::U32, Type::U64, Round::None, param);
                self.b.bits(Class::F32, low)
            }
            Some(Type::Pred) => self.b.setp(Cmp::Ne, Type::U64, param, Src::Imm(0)),
            _ => param,
        }
    }

    /// A statement without effects. `None`: it is none that the analysis lets through.
    pub(super) fn scalar(&mut self, op: &Op) -> Option<()> {
        let (dst, src) = match *op {
            Op::Const { value, .. } if arithmetic(value.ty).is_none() => return Some(()),
            Op::Const { dst, value } => match arithmetic(value.ty)? {
                Type::Pred => (dst, Src::Reg(if value.bits != 0 { self.yes } else { self.no })),
                _ => (dst, Src::Imm(value.bits)),
            },
            Op::Unary { dst, op, a } => {
                let (ty, a) = (self.arithmetic_of(a)?, self.value(a)?);
                let arith = if op == UnOp::Neg { Arith::Neg } else { Arith::Not };
                (dst, self.b.arith(arith, ty, &[a]).into())
            }
            Op::Binary { dst, op: op @ (BinOp::Div | BinOp::Rem), a, b } if self.arithmetic_of(a)? != Type::F32 => {
                let (x, by) = (self.value(a)?, self.value(b)?);
                (dst, self.divided(op, self.kernel.values[a].ty, (x, by), self.defs.number(b)).into())
            }
            Op::Load { dst, tensor, offset } => {
                let (offset, base) = (self.value(offset)?, self.tensors[tensor.as_u32() as usize]);
                let ty = self.arithmetic_of(dst)?;
                let at = self.b.arith(Arith::MadLo, Type::U64, &[offset, Src::Imm(4), base.into()]);
                (dst, self.b.ld(Space::Global, bits(ty), Address::at(at)).into())
            }
            Op::Binary { dst, op, a, b } => {
                let (arith, ty) = binary(op, self.arithmetic_of(a)?)?;
                let srcs = [self.value(a)?, self.value(b)?];
                (dst, self.b.arith(arith, ty, &srcs).into())
            }
            Op::Compare { dst, op, a, b } => {
                let ty = self.arithmetic_of(a)?;
                let (a, b) = (self.value(a)?, self.value(b)?);
                (dst, self.b.setp(comparison(op, ty), ty, a, b).into())
            }
            Op::Select { dst, cond, a, b } => {
                let ty = bits(self.arithmetic_of(a)?);
                let Src::Reg(cond) = self.value(cond)? else { return None };
                let (a, b) = (self.value(a)?, self.value(b)?);
                (dst, self.b.selp(ty, a, b, cond).into())
            }
            Op::Convert { dst, a, .. } => {
                let (from, to) = (self.arithmetic_of(a)?, self.arithmetic_of(dst)?);
                let a = self.value(a)?;
                (dst, self.converted(a, from, to)?)
            }
            _ => return None,
        };
        self.values.insert(dst, src);
        Some(())
    }

    fn converted(&mut self, a: Src, from: Type, to: Type) -> Option<Src> {
        let reg = |c: &mut Self| match a {
            Src::Reg(reg) => reg,
            other => c.b.mov(bits(from), other),
        };
        Some(match (from, to) {
            (from, to) if from == to => a,
            (Type::S64, Type::S32) => {
                let a = reg(self);
                self.b.cvt(Type::U32, Type::U64, Round::None, a).into()
            }
            (Type::S32, Type::S64) => {
                let a = reg(self);
                self.b.cvt(Type::S64, Type::S32, Round::None, a).into()
            }
            (Type::U32, Type::S64) => {
                let a = reg(self);
                self.b.cvt(Type::U64, Type::U32, Round::None, a).into()
            }
            (from @ (Type::S32 | Type::S64), Type::F32) => {
                let a = reg(self);
                self.b.cvt(Type::F32, from, Round::Rn, a).into()
            }
            _ => return None,
        })
    }

    /// A quotient, or a remainder. Of indices it is rounded towards minus infinity, of others towards zero.
    fn divided(&mut self, op: BinOp, ty: Ty, (a, by): (Src, Src), known: Option<i64>) -> VReg {
        let floor = ty == Ty::Index;
        let shift = known.filter(|n| floor && op == BinOp::Div && *n > 0 && (*n as u64).is_power_of_two());
        if let Some(n) = shift {
            return self.b.arith(Arith::Shr, Type::S64, &[a, Src::Imm(n.ilog2().into())]);
        }
        let (op, ty) = match (op, floor) {
            (BinOp::Div, true) => (loops::BinOp::DivFloor, LTy::I64),
            (BinOp::Div, false) => (loops::BinOp::Div, LTy::I32),
            (_, true) => (loops::BinOp::RemFloor, LTy::I64),
            (_, false) => (loops::BinOp::Rem, LTy::I32),
        };
        divide(&mut self.b, op, ty, (a, by), known.map(|n| n as u64))
    }
}
