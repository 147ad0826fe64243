//! `scale(x, y - C)` where `y - C` was rounded to a whole number by adding C: the number is in the low bits of y.
//!
//! The exponential writes its argument as n ln 2 + r. It finds n by adding C = 1.5 * 2^23 + 254, which leaves no bits
//! behind the point, and subtracting it again. Numbers near C have n + 254 in their low bits: the two factors that
//! multiply by 2^n are made of these, without a conversion. (Conversions run at an eighth of the rate of additions.)

use crate::emit::Emit;
use ptoc_ir::loops::{BinOp, Func, Op, Reg, Region, operands};
use ptoc_ptx::{Arith, Builder, Class, Src, Type, VReg};
use rustc_hash::FxHashMap;

/// 1.5 * 2^23 + 254. The 254 are twice the bias of an exponent.
const MAGIC: f32 = ptoc_isa::math::EXPONENTIAL[1];

/// For exponents of `scale`: the sum that was rounded.
pub(crate) type RoundedSums = FxHashMap<Reg, Reg>;

/// The exponents of a function that are made that way.
pub(crate) fn rounded_sums(func: &Func) -> RoundedSums {
    let mut defs = FxHashMap::default();
    definitions(&func.body, &mut defs);
    let defs = Defs(defs);
    let exponents = defs.0.values().filter_map(|op| match op {
        Op::Binary { op: BinOp::Scale, a, b, .. } => defs.sum(*a, *b).map(|sum| (*b, sum)),
        _ => None,
    });
    exponents.collect()
}

fn definitions<'a>(region: &'a Region, out: &mut FxHashMap<Reg, &'a Op>) {
    for stmt in region {
        if let Some(dst) = operands(&stmt.op).1 {
            out.insert(dst, &stmt.op);
        }
        stmt.op.regions().for_each(|r| definitions(r, out));
    }
}

struct Defs<'a>(FxHashMap<Reg, &'a Op>);

impl Defs<'_> {
    fn constant(&self, reg: Reg) -> Option<f32> {
        match self.0.get(&reg)? {
            Op::Const { bits, .. } => Some(f32::from_bits(*bits as u32)),
            _ => None,
        }
    }

    /// The sum y of an exponent `y - C`, `y = a * b + C`, if it is near C for all a, and NaN shows in x.
    fn sum(&self, x: Reg, exponent: Reg) -> Option<Reg> {
        let Op::Binary { op: BinOp::Sub, a: sum, b: c, .. } = *self.0.get(&exponent)? else { return None };
        let Op::Fma { a, b, c: same, .. } = *self.0.get(sum)? else { return None };
        let magic = self.constant(*c) == Some(MAGIC) && self.constant(*same) == Some(MAGIC);
        let (lo, hi) = self.clamped(*a)?;
        let by = self.constant(*b)?;
        let near = (lo * by).abs().max((hi * by).abs()) <= 250.0;
        (magic && near && self.carries(x, exponent, 12)).then_some(*sum)
    }

    /// The ends between which a number is.
    fn clamped(&self, reg: Reg) -> Option<(f32, f32)> {
        let Op::Binary { op: BinOp::Max, a, b: lo, .. } = self.0.get(&reg)? else { return None };
        let Op::Binary { op: BinOp::Min, b: hi, .. } = self.0.get(a)? else { return None };
        Some((self.constant(*lo)?, self.constant(*hi)?))
    }

    /// Whether x is NaN where another register is: sums and products of it.
    fn carries(&self, x: Reg, of: Reg, depth: u32) -> bool {
        if x == of {
            return true;
        }
        match self.0.get(&x) {
            Some(Op::Fma { a, b, c, .. }) if depth > 0 => [a, b, c].iter().any(|r| self.carries(**r, of, depth - 1)),
            Some(Op::Binary { op: BinOp::Add | BinOp::Sub | BinOp::Mul, a, b, .. }) if depth > 0 => {
                [a, b].iter().any(|r| self.carries(**r, of, depth - 1))
            }
            _ => false,
        }
    }
}

impl Emit<'_> {
    /// See [`scale_by_bits`].
    pub(crate) fn scale_by_bits(&mut self, a: Src, sum: VReg) -> VReg {
        scale_by_bits(&mut self.b, a, sum)
    }
}

/// a * 2^n in two products, as [`ptoc_isa::math::scale`], for n + 254 in the low bits of a sum.
pub(crate) fn scale_by_bits(b: &mut Builder, a: Src, sum: VReg) -> VReg {
    let bits = b.bits(Class::B32, sum);
    // (n + 254) >> 1 and the rest, n + 254 less that, are exponents with their bias.
    let first = b.arith(Arith::Shl, Type::B32, &[bits.into(), Src::Imm(22)]);
    let first = b.arith(Arith::And, Type::B32, &[first.into(), Src::Imm(0x7f80_0000)]);
    let minus = b.arith(Arith::Sub, Type::S32, &[Src::Imm(0), first.into()]);
    let second = b.arith(Arith::MadLo, Type::S32, &[bits.into(), Src::Imm(1 << 23), minus.into()]);
    let mut product = a;
    for power in [first, second] {
        let power = b.bits(Class::F32, power);
        product = Src::Reg(b.arith(Arith::MulF, Type::F32, &[product, power.into()]));
    }
    match product {
        Src::Reg(reg) => reg,
        other => b.mov(Type::F32, other),
    }
}
