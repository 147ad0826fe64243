//! Exponentials of many numbers, with the bits of the published program (`ptoc_isa::math`).

use super::Code;
use crate::exponents::scale_by_bits;
use ptoc_isa::UnOp;
use ptoc_isa::math::{self, EXPONENTIAL, Exponential, MathOp, MathProgram};
use ptoc_ptx::{Arith, Class, Cmp, Op as Ptx, Src, Type, VReg};
use std::f32::consts::LOG2_E;

/// Up to this magnitude of x the exponential is a normal number, and x is not bounded: n is from -125 to 125.
const NEAR: f32 = 86.0;

/// What [`EXPONENTIAL`] adds to round, without the bias of two exponents: in both n is rounded alike, as they are even.
const ROUNDS: f32 = 12_582_912.0;

/// A constant.
fn number(n: f32) -> Src {
    Src::Imm(n.to_bits().into())
}

impl Code<'_> {
    /// The exponentials of what a thread has. Where all are of moderate magnitude, as weights of a softmax are unless a
    /// mask hides some, they take twelve instructions each, and not eighteen.
    pub(super) fn exponentials(&mut self, xs: &[Src]) -> Option<Vec<Src>> {
        if self.has_special_function_unit() {
            return xs.iter().map(|x| self.exponential(*x)).collect();
        }
        let out: Vec<VReg> = xs.iter().map(|_| self.b.reg(Class::F32)).collect();
        let magnitudes: Vec<VReg> = xs.iter().map(|x| self.b.arith(Arith::Abs, Type::F32, &[*x])).collect();
        // Several chains, so that none is waited for.
        let chains = magnitudes.chunks(xs.len().div_ceil(4)).map(|chain| self.greatest(chain)).collect::<Vec<_>>();
        let greatest = self.greatest(&chains);
        let near = self.b.setp(Cmp::Le, Type::F32, greatest, number(NEAR));
        let (far, end) = (self.b.label(), self.b.label());
        self.b.bra_if(near, false, far);
        for (x, out) in xs.iter().zip(&out) {
            self.near_exponential(*x, *out);
        }
        self.b.bra(end);
        self.b.place(far);
        for (x, out) in xs.iter().zip(&out) {
            let value = self.exponential(*x)?;
            self.b.set(*out, Type::F32, value);
        }
        self.b.place(end);
        Some(out.into_iter().map(Src::Reg).collect())
    }

    /// Whether exponentials are the special function unit's.
    pub(super) fn has_special_function_unit(&self) -> bool {
        self.plan.exponential == Exponential::SpecialFunctionUnit
    }

    /// The unit's exponential of `a - b`. Subtrahends, of which a row has one, are multiplied once: `known` has those
    /// that were, with their products.
    pub(super) fn exponential_of_difference(&mut self, a: Src, b: Src, known: &mut Vec<(Src, VReg)>) -> Src {
        let scaled = match known.iter().find(|(of, _)| *of == b) {
            Some((_, scaled)) => *scaled,
            None => {
                let scaled = self.b.arith(Arith::MulF, Type::F32, &[b, number(-LOG2_E)]);
                known.push((b, scaled));
                scaled
            }
        };
        let x = self.b.arith(Arith::Fma, Type::F32, &[a, number(LOG2_E), scaled.into()]);
        self.b.arith(Arith::Ex2, Type::F32, &[x.into()]).into()
    }

    fn greatest(&mut self, of: &[VReg]) -> VReg {
        let (first, rest) = of.split_first().expect("a fragment has elements");
        rest.iter().fold(*first, |a, b| self.b.arith(Arith::MaxF, Type::F32, &[a.into(), (*b).into()]))
    }

    /// Of a number of magnitude up to [`NEAR`]: 2^n times a polynomial is n added to its exponent.
    fn near_exponential(&mut self, x: Src, out: VReg) {
        let [log2e, _, hi, lo, coefficients @ ..] = EXPONENTIAL;
        let mut fma = |a: Src, b: Src, c: Src| Src::Reg(self.b.arith(Arith::Fma, Type::F32, &[a, b, c]));
        let moved = fma(x, number(log2e), number(ROUNDS));
        let n = Src::Reg(self.b.arith(Arith::SubF, Type::F32, &[moved, number(ROUNDS)]));
        let mut fma = |a: Src, b: Src, c: Src| Src::Reg(self.b.arith(Arith::Fma, Type::F32, &[a, b, c]));
        let r = fma(n, number(hi), x);
        let r = fma(n, number(lo), r);
        let (first, rest) = (coefficients[0], &coefficients[1..]);
        let p = rest.iter().fold(number(first), |p, c| fma(p, r, number(*c)));
        let [moved, p] = [moved, p].map(|x| match x {
            Src::Reg(reg) => self.b.bits(Class::B32, reg),
            other => self.b.mov(Type::B32, other),
        });
        let bits = self.b.arith(Arith::MadLo, Type::S32, &[moved.into(), Src::Imm(1 << 23), p.into()]);
        self.b.push(Ptx::Bits(Type::B32), &[out], &[bits.into()]);
    }

    /// The exponential of any number.
    pub(super) fn exponential(&mut self, x: Src) -> Option<Src> {
        if self.has_special_function_unit() {
            let x = self.b.arith(Arith::MulF, Type::F32, &[x, number(LOG2_E)]);
            return Some(self.b.arith(Arith::Ex2, Type::F32, &[x.into()]).into());
        }
        self.program(math::program(UnOp::Exp)?, x)
    }

    /// A published program, of the operations that an exponential has.
    fn program(&mut self, program: &MathProgram, x: Src) -> Option<Src> {
        let mut values: Vec<Src> = Vec::new();
        for op in &program.ops {
            let at = |id: &math::Id| values[id.index()];
            let (arith, srcs) = match op {
                MathOp::Arg => {
                    values.push(x);
                    continue;
                }
                MathOp::F32(n) => {
                    values.push(number(*n));
                    continue;
                }
                MathOp::Scale(a, n) => {
                    let (a, sum) = (at(a), at(&rounded_sum(program, *n)?));
                    let Src::Reg(sum) = sum else { return None };
                    values.push(scale_by_bits(&mut self.b, a, sum).into());
                    continue;
                }
                MathOp::Add(a, b) => (Arith::AddF, vec![at(a), at(b)]),
                MathOp::Sub(a, b) => (Arith::SubF, vec![at(a), at(b)]),
                MathOp::Mul(a, b) => (Arith::MulF, vec![at(a), at(b)]),
                MathOp::Fma(a, b, c) => (Arith::Fma, vec![at(a), at(b), at(c)]),
                MathOp::Min(a, b) => (Arith::MinF, vec![at(a), at(b)]),
                MathOp::Max(a, b) => (Arith::MaxF, vec![at(a), at(b)]),
                _ => return None,
            };
            values.push(self.b.arith(arith, Type::F32, &srcs).into());
        }
        values.last().copied()
    }
}

/// The sum y of an exponent `y - C`, `y = a * b + C`, which has the exponent in its low bits (`exponents.rs`). NaN of
/// the exponent is NaN of what is scaled, as all of it comes from one argument.
fn rounded_sum(program: &MathProgram, exponent: math::Id) -> Option<math::Id> {
    let op = |id: math::Id| program.ops.get(id.index());
    let constant = |id: math::Id| match op(id) {
        Some(MathOp::F32(n)) => Some(*n),
        _ => None,
    };
    let Some(MathOp::Sub(sum, c)) = op(exponent) else { return None };
    let Some(MathOp::Fma(x, by, same)) = op(*sum) else { return None };
    let Some(MathOp::Max(inner, lo)) = op(*x) else { return None };
    let Some(MathOp::Min(_, hi)) = op(*inner) else { return None };
    let (lo, hi, by) = (constant(*lo)?, constant(*hi)?, constant(*by)?);
    let near = (lo * by).abs().max((hi * by).abs()) <= 250.0;
    let magic = [c, same].iter().all(|id| constant(**id) == Some(math::EXPONENTIAL[1]));
    (near && magic).then_some(*sum)
}
