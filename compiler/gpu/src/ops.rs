//! Arithmetic, comparisons and casts.
//!
//! A row of loop IR is an instruction of PTX, or a few.

use crate::division::{divide, divide_unsigned};
use crate::emit::{Emit, Val, class};
use ptoc_ir::loops::{BinOp, Cast, CmpOp, LTy, Op, UnOp};
use ptoc_ptx::{Arith, Class, Cmp, Op as Ptx, Round, Src, Type, VReg};

/// The signed type of an integer register.
pub(crate) fn signed(ty: LTy) -> Type {
    if ty == LTy::I64 { Type::S64 } else { Type::S32 }
}

pub(crate) fn unsigned(ty: LTy) -> Type {
    if ty == LTy::I64 { Type::U64 } else { Type::U32 }
}

pub(crate) fn bits(ty: LTy) -> Type {
    match ty {
        LTy::Bool => Type::Pred,
        LTy::I64 => Type::B64,
        _ => Type::B32,
    }
}

/// Computes a register of others, and touches no memory.
pub(crate) fn pure(op: &Op) -> bool {
    matches!(
        op,
        Op::Const { .. }
            | Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Fma { .. }
            | Op::Compare { .. }
            | Op::Select { .. }
            | Op::Cast { .. }
            | Op::Get { .. }
    )
}

impl Emit<'_> {
    /// A statement without memory or control.
    pub(crate) fn compute(&mut self, op: &Op) {
        let (dst, value) = match *op {
            Op::Const { dst, bits } => {
                let bits = match self.func.regs[dst].ty {
                    LTy::I64 => bits,
                    LTy::Bool => u64::from(bits != 0),
                    LTy::I32 | LTy::F32 => u64::from(bits as u32),
                };
                self.values[dst] = Some(Val::Known(bits));
                return;
            }
            Op::Unary { dst, op, a } => {
                let a = self.reg(a);
                (dst, self.unary(op, self.func.regs[dst].ty, a))
            }
            Op::Binary { dst, op: BinOp::Scale, a, b } if self.rounded.contains_key(&b) => {
                let (x, sum) = (self.src(a), self.reg(self.rounded[&b]));
                (dst, self.scale_by_bits(x, sum))
            }
            Op::Binary { dst, op, a, b } => {
                let known = self.known(b);
                let (x, y) = (self.src(a), self.src(b));
                (dst, self.binary(op, self.func.regs[dst].ty, x, y, known))
            }
            Op::Fma { dst, a, b, c } => {
                let srcs = [a, b, c].map(|r| self.src(r));
                (dst, self.b.arith(Arith::Fma, Type::F32, &srcs))
            }
            Op::Compare { dst, op, a, b } => {
                let (x, y) = (self.src(a), self.src(b));
                (dst, self.compare(op, self.func.regs[a].ty, x, y))
            }
            Op::Select { dst, cond, a, b } => {
                let (x, y, c) = (self.src(a), self.src(b), self.reg(cond));
                (dst, self.select(self.func.regs[dst].ty, c, x, y))
            }
            Op::Cast { dst, op, a } => {
                let from = self.func.regs[a].ty;
                let a = self.reg(a);
                (dst, self.cast(op, from, a))
            }
            _ => return,
        };
        self.define(dst, value);
    }

    fn unary(&mut self, op: UnOp, ty: LTy, a: VReg) -> VReg {
        let float = |e: &mut Self, round| e.b.cvt(Type::F32, Type::F32, round, a);
        match op {
            UnOp::Neg | UnOp::Abs => {
                let arith = if op == UnOp::Neg { Arith::Neg } else { Arith::Abs };
                let ty = if ty == LTy::F32 { Type::F32 } else { signed(ty) };
                self.b.arith(arith, ty, &[a.into()])
            }
            UnOp::Not => self.b.arith(Arith::Not, bits(ty), &[a.into()]),
            UnOp::Sqrt => self.b.arith(Arith::SqrtF, Type::F32, &[a.into()]),
            UnOp::Floor => float(self, Round::Rmi),
            UnOp::Ceil => float(self, Round::Rpi),
            UnOp::Trunc => float(self, Round::Rzi),
            UnOp::Rint => float(self, Round::Rni),
            UnOp::RoundF16 => {
                let half = self.b.cvt(Type::F16, Type::F32, Round::Rn, a);
                let value = self.b.cvt(Type::F32, Type::F16, Round::None, half);
                self.halves.insert((value, Type::F16), half);
                value
            }
            UnOp::RoundBf16 => {
                let half = self.b.cvt(Type::BF16, Type::F32, Round::Rn, a);
                let value = self.bf16(half);
                self.halves.insert((value, Type::BF16), half);
                value
            }
        }
    }

    /// The bits of bf16 as f32.
    pub(crate) fn bf16(&mut self, half: VReg) -> VReg {
        let wide = self.b.cvt(Type::U32, Type::U16, Round::None, half);
        let wide = self.b.arith(Arith::Shl, Type::B32, &[wide.into(), Src::Imm(16)]);
        self.b.bits(Class::F32, wide)
    }

    /// `b`'s bits may be known.
    pub(crate) fn binary(&mut self, op: BinOp, ty: LTy, a: Src, b: Src, known: Option<u64>) -> VReg {
        let plain = |e: &mut Self, arith, ty| e.b.arith(arith, ty, &[a, b]);
        if ty == LTy::F32 {
            return match op {
                BinOp::Add => plain(self, Arith::AddF, Type::F32),
                BinOp::Sub => plain(self, Arith::SubF, Type::F32),
                BinOp::Mul => plain(self, Arith::MulF, Type::F32),
                BinOp::Div => plain(self, Arith::DivF, Type::F32),
                BinOp::Max => plain(self, Arith::MaxF, Type::F32),
                BinOp::Scale => self.scale(a, b),
                _ => plain(self, Arith::MinF, Type::F32),
            };
        }
        match op {
            BinOp::Add => plain(self, Arith::Add, signed(ty)),
            BinOp::Sub => plain(self, Arith::Sub, signed(ty)),
            BinOp::Mul => plain(self, Arith::MulLo, signed(ty)),
            BinOp::Max => plain(self, Arith::Max, signed(ty)),
            BinOp::Min => plain(self, Arith::Min, signed(ty)),
            BinOp::MaxU => plain(self, Arith::Max, unsigned(ty)),
            BinOp::MinU => plain(self, Arith::Min, unsigned(ty)),
            BinOp::And => plain(self, Arith::And, bits(ty)),
            BinOp::Or => plain(self, Arith::Or, bits(ty)),
            BinOp::Xor => plain(self, Arith::Xor, bits(ty)),
            BinOp::Shl | BinOp::Shr | BinOp::ShrU => self.shift(op, ty, a, b),
            BinOp::Div | BinOp::DivFloor | BinOp::Rem | BinOp::RemFloor => divide(&mut self.b, op, ty, (a, b), known),
            BinOp::DivU | BinOp::RemU => divide_unsigned(&mut self.b, op, ty, (a, b), known),
            // Of floats only.
            BinOp::Scale => plain(self, Arith::MulLo, signed(ty)),
        }
    }

    /// a * 2^n in two products, as [`ptoc_isa::math::scale`].
    fn scale(&mut self, a: Src, n: Src) -> VReg {
        let n = match n {
            Src::Reg(reg) => reg,
            _ => self.b.mov(Type::F32, n),
        };
        let n = self.b.cvt(Type::S32, Type::F32, Round::Rzi, n);
        let first = self.b.arith(Arith::Shr, Type::S32, &[n.into(), Src::Imm(1)]);
        let second = self.b.arith(Arith::Sub, Type::S32, &[n.into(), first.into()]);
        let mut product = a;
        for half in [first, second] {
            let field = self.b.arith(Arith::Add, Type::S32, &[half.into(), Src::Imm(127)]);
            let power = self.b.arith(Arith::Shl, Type::B32, &[field.into(), Src::Imm(23)]);
            let power = self.b.bits(Class::F32, power);
            product = Src::Reg(self.b.arith(Arith::MulF, Type::F32, &[product, power.into()]));
        }
        match product {
            Src::Reg(reg) => reg,
            other => self.b.mov(Type::F32, other),
        }
    }

    /// PTX clamps counts to the width; those of 64 bits are brought into 32 first.
    fn shift(&mut self, op: BinOp, ty: LTy, a: Src, b: Src) -> VReg {
        let count = match (ty, b) {
            (LTy::I64, Src::Imm(n)) => Src::Imm(n.min(64)),
            (LTy::I64, b) => {
                let count = self.b.arith(Arith::Min, Type::U64, &[b, Src::Imm(64)]);
                Src::Reg(self.b.cvt(Type::U32, Type::U64, Round::None, count))
            }
            _ => b,
        };
        let (arith, ty) = match op {
            BinOp::Shl => (Arith::Shl, bits(ty)),
            BinOp::Shr => (Arith::Shr, signed(ty)),
            _ => (Arith::Shr, unsigned(ty)),
        };
        self.b.arith(arith, ty, &[a, count])
    }

    pub(crate) fn compare(&mut self, op: CmpOp, ty: LTy, a: Src, b: Src) -> VReg {
        if ty == LTy::Bool {
            let differ = self.b.arith(Arith::Xor, Type::Pred, &[a, b]);
            return match op {
                CmpOp::Ne => differ,
                _ => self.b.arith(Arith::Not, Type::Pred, &[differ.into()]),
            };
        }
        let float = ty == LTy::F32;
        let (cmp, sign) = match op {
            CmpOp::Eq => (Cmp::Eq, true),
            CmpOp::Ne if float => (Cmp::Neu, true),
            CmpOp::Ne => (Cmp::Ne, true),
            CmpOp::Lt => (Cmp::Lt, true),
            CmpOp::Le => (Cmp::Le, true),
            CmpOp::Gt => (Cmp::Gt, true),
            CmpOp::Ge => (Cmp::Ge, true),
            CmpOp::LtU => (Cmp::Lt, false),
            CmpOp::LeU => (Cmp::Le, false),
            CmpOp::GtU => (Cmp::Gt, false),
            CmpOp::GeU => (Cmp::Ge, false),
        };
        let ty = match (float, sign) {
            (true, _) => Type::F32,
            (false, true) => signed(ty),
            (false, false) => unsigned(ty),
        };
        self.b.setp(cmp, ty, a, b)
    }

    /// `c ? a : b`
    pub(crate) fn select(&mut self, ty: LTy, c: VReg, a: Src, b: Src) -> VReg {
        if ty != LTy::Bool {
            let ty = crate::emit::whole(ty);
            return self.b.selp(ty, a, b, c);
        }
        let not = self.b.arith(Arith::Not, Type::Pred, &[c.into()]);
        let a = self.b.arith(Arith::And, Type::Pred, &[c.into(), a]);
        let b = self.b.arith(Arith::And, Type::Pred, &[not.into(), b]);
        self.b.arith(Arith::Or, Type::Pred, &[a.into(), b.into()])
    }

    fn cast(&mut self, op: Cast, from: LTy, a: VReg) -> VReg {
        let to_f32 = |e: &mut Self, ty| e.b.cvt(Type::F32, ty, Round::Rn, a);
        match op {
            Cast::Sext => self.b.cvt(Type::S64, Type::S32, Round::None, a),
            Cast::Zext => self.b.cvt(Type::U64, Type::U32, Round::None, a),
            Cast::Wrap => self.b.cvt(Type::U32, Type::U64, Round::None, a),
            Cast::IToF => to_f32(self, signed(from)),
            Cast::UToF => to_f32(self, unsigned(from)),
            // PTX has 0 for NaN where the result has 32 bits, and the least number where it has 64.
            Cast::FToI32 => self.b.cvt(Type::S32, Type::F32, Round::Rzi, a),
            Cast::FToU32 => self.b.cvt(Type::U32, Type::F32, Round::Rzi, a),
            Cast::FToI64 | Cast::FToU64 => {
                let ty = if op == Cast::FToI64 { Type::S64 } else { Type::U64 };
                let value = self.b.cvt(ty, Type::F32, Round::Rzi, a);
                let nan = self.b.setp(Cmp::Nan, Type::F32, a, a);
                self.b.selp(Type::B64, Src::Imm(0), value, nan)
            }
            Cast::Bits => self.b.bits(if from == LTy::F32 { Class::B32 } else { Class::F32 }, a),
            Cast::BToI => self.b.selp(Type::B32, Src::Imm(1), Src::Imm(0), a),
            Cast::IToB => self.b.setp(Cmp::Ne, Type::S32, a, Src::Imm(0)),
        }
    }

    /// A register that may be written again, with a value.
    pub(crate) fn variable(&mut self, ty: LTy, value: Src) -> VReg {
        let reg = self.b.reg(class(ty));
        self.b.set(reg, crate::emit::whole(ty), value);
        reg
    }

    /// Adds to a register in place.
    pub(crate) fn advance(&mut self, reg: VReg, ty: Type, by: Src) {
        self.b.push(Ptx::Arith(Arith::Add, ty), &[reg], &[reg.into(), by]);
    }
}
