//! What lanes certainly hold, as far as operations can be left out for it. A byte needs no mask behind its load, and
//! f16 has every integer up to 2048, so that a byte's way to f32 over f16 rounds nothing.

use ptoc_ir::loops::{BinOp, Cast, MemTy, Op, Reg, UnOp};
use rustc_hash::FxHashMap;

/// Integers that f16, bf16 and f32 have without a gap, from 0 on.
const F16_INTEGERS: i64 = 1 << 11;
const BF16_INTEGERS: i64 = 1 << 8;
const F32_INTEGERS: i64 = 1 << 24;

/// Registers of integers, or of floats that are integers: the least and the greatest that each may hold.
#[derive(Default)]
pub(super) struct Ranges(FxHashMap<Reg, (i64, i64)>);

/// The register that an operation writes, if it is one of those that are looked at here.
pub(super) fn result(op: &Op) -> Option<Reg> {
    match *op {
        Op::Const { dst, .. }
        | Op::Load { dst, .. }
        | Op::Nibble { dst, .. }
        | Op::Unary { dst, .. }
        | Op::Binary { dst, .. }
        | Op::Cast { dst, .. } => Some(dst),
        _ => None,
    }
}

impl Ranges {
    /// The operand that an operation gives back as it is.
    pub(super) fn unchanged(&self, op: &Op, known: &FxHashMap<Reg, u64>) -> Option<Reg> {
        match *op {
            Op::Binary { op: BinOp::And, a, b, .. } => {
                let kept = |x: Reg, mask: Reg| {
                    let mask = i64::from(*known.get(&mask)? as u32);
                    let (least, most) = *self.0.get(&x)?;
                    // A mask of low bits keeps all that is below it.
                    (mask & (mask + 1) == 0 && least >= 0 && most <= mask).then_some(x)
                };
                kept(a, b).or_else(|| kept(b, a))
            }
            Op::Unary { op: UnOp::RoundF16, a, .. } => self.within(a, F16_INTEGERS),
            Op::Unary { op: UnOp::RoundBf16, a, .. } => self.within(a, BF16_INTEGERS),
            _ => None,
        }
    }

    /// Whether a float is one of bf16.
    pub(super) fn is_bf16(&self, float: Reg) -> bool {
        self.within(float, BF16_INTEGERS).is_some()
    }

    fn within(&self, a: Reg, limit: i64) -> Option<Reg> {
        let (least, most) = *self.0.get(&a)?;
        (-limit <= least && most <= limit).then_some(a)
    }

    /// `dst` holds what `src` does.
    pub(super) fn copy(&mut self, dst: Reg, src: Reg) {
        if let Some(&range) = self.0.get(&src) {
            self.0.insert(dst, range);
        }
    }

    /// What an operation says of its result, which has 32 bits.
    pub(super) fn note(&mut self, op: &Op, known: &FxHashMap<Reg, u64>) {
        let (dst, range) = match *op {
            Op::Const { dst, bits } => (dst, Some((i64::from(bits as u32 as i32), i64::from(bits as u32 as i32)))),
            Op::Load { dst, ty, .. } => {
                let range = match ty {
                    MemTy::I8 => Some((-128, 127)),
                    MemTy::U8 => Some((0, 255)),
                    MemTy::I16 => Some((-32768, 32767)),
                    MemTy::U16 => Some((0, 65535)),
                    _ => None,
                };
                (dst, range)
            }
            Op::Nibble { dst, .. } => (dst, Some((0, 15))),
            Op::Binary { dst, op, a, b } => (dst, self.binary(op, a, b, known)),
            Op::Cast { dst, op: Cast::IToF, a } => (dst, self.within(a, F32_INTEGERS).map(|a| self.0[&a])),
            Op::Cast { dst, op: Cast::UToF, a } => {
                (dst, self.within(a, F32_INTEGERS).map(|a| self.0[&a]).filter(|(least, _)| *least >= 0))
            }
            _ => return,
        };
        if let Some(range) = range {
            self.0.insert(dst, range);
        }
    }

    fn binary(&self, op: BinOp, a: Reg, b: Reg, known: &FxHashMap<Reg, u64>) -> Option<(i64, i64)> {
        let constant = |r: Reg| known.get(&r).map(|bits| i64::from(*bits as u32 as i32));
        match op {
            BinOp::And => {
                let mask = constant(a).or_else(|| constant(b)).filter(|mask| *mask >= 0)?;
                Some((0, mask))
            }
            BinOp::ShrU => {
                let by = constant(b).filter(|by| (0..32).contains(by))?;
                let (least, most) = self.0.get(&a).copied().filter(|(least, _)| *least >= 0)?;
                Some((least >> by, most >> by))
            }
            _ => None,
        }
    }
}
