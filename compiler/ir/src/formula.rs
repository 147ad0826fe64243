//! Types and values of the expressions that say what element-wise instructions compute (`ptoc_isa::Expr`), on scalars
//! as raw bits: the interpreter's reading of them, and the verifier's.

use crate::scalar;
use crate::tile::{InstAttrs, Ty};
use ptoc_isa::math::Exponential;
use ptoc_isa::{BinOp, Expr, RoundMode, To, UnOp};
use ptoc_tensor::{DType, ex2};

/// The type in which an element of this dtype is computed: floats in f32.
pub fn working(d: DType) -> DType {
    if d.is_float() { DType::F32 } else { d }
}

/// The type of the expression on operands of these types (the destination's first); `None` if an operation in it does
/// not exist on them.
pub fn typed(e: &Expr, operands: &[DType]) -> Option<DType> {
    let one = |e: &Expr| typed(e, operands);
    let two = |a: &Expr, b: &Expr| Some(one(a)?).filter(|d| one(b) == Some(*d));
    match *e {
        Expr::Arg(k) => operands.get(k).filter(|_| k > 0).map(|d| working(*d)),
        Expr::Number(_, k) => operands.get(k).filter(|_| k > 0).map(|d| working(*d)).filter(|d| *d != DType::Bool),
        Expr::Bin(op, a, b) => two(a, b).filter(|d| scalar::binary_exists(op, Ty::D(*d))),
        Expr::Un(op, a) => one(a).filter(|d| scalar::unary_exists(op, Ty::D(*d))),
        Expr::Fma(a, b, c) => two(a, b).filter(|d| one(c) == Some(*d) && *d != DType::Bool),
        Expr::Pow(a, b) => two(a, b).filter(|d| d.is_float() || (d.is_int() && d.size() <= 4)),
        Expr::Cmp(_, a, b) | Expr::CmpMode(a, b) => two(a, b).map(|_| DType::Bool),
        Expr::Select(c, a, b) => two(a, b).filter(|_| one(c) == Some(DType::Bool)),
        Expr::Convert(a, to) => {
            let from = one(a).filter(|d| *d != DType::Bool)?;
            match to {
                To::Mode | To::Narrow => operands.first().map(|d| working(*d)).filter(|d| *d != DType::Bool),
                To::Wide if from.is_float() => Some(from),
                To::Wide => (from.size() < 4 || from == DType::I32).then_some(DType::I32),
                To::F32 => Some(DType::F32),
            }
        }
    }
}

/// Whether the expression makes elements of the first dtype out of the others.
pub fn fits(e: &Expr, operands: &[DType]) -> bool {
    operands.first().is_some_and(|d| typed(e, operands) == Some(working(*d)))
}

/// The largest finite value of a float dtype.
pub fn largest(d: DType) -> f32 {
    match d {
        DType::F16 => 65504.0,
        DType::BF16 => f32::from_bits(0x7f7f_0000),
        DType::F8E4M3 => 448.0,
        DType::F8E5M2 => 57344.0,
        _ => f32::MAX,
    }
}

/// One element: bits of the destination's dtype. `operands` are dtypes and bits in the row's order; those of the
/// destination are not looked at. `None` where [`fits`] is false.
pub fn eval(e: &Expr, dst: DType, operands: &[(DType, u64)], attrs: &InstAttrs) -> Option<u64> {
    eval_with(e, dst, operands, attrs, Exponential::Program)
}

/// [`eval`] where exponentials may be another's.
pub fn eval_with(
    e: &Expr,
    dst: DType,
    operands: &[(DType, u64)],
    attrs: &InstAttrs,
    exponential: Exponential,
) -> Option<u64> {
    let (d, bits) = Eval { dst, operands, attrs, exponential }.value(e)?;
    if d == dst {
        return Some(bits);
    }
    (dst.is_float() && d == DType::F32).then(|| scalar::from_f32(dst, f32::from_bits(bits as u32)))
}

struct Eval<'a> {
    dst: DType,
    operands: &'a [(DType, u64)],
    attrs: &'a InstAttrs,
    exponential: Exponential,
}

impl Eval<'_> {
    fn operand(&self, k: usize) -> Option<(DType, u64)> {
        self.operands.get(k).copied()
    }

    fn value(&self, e: &Expr) -> Option<(DType, u64)> {
        let truth = |b: bool| Some((DType::Bool, u64::from(b)));
        Some(match *e {
            Expr::Arg(k) => {
                let (d, bits) = self.operand(k)?;
                if d.is_float() { (DType::F32, u64::from(scalar::to_f32(d, bits).to_bits())) } else { (d, bits) }
            }
            Expr::Number(n, k) => {
                let d = working(self.operand(k)?.0);
                (d, scalar::convert(Ty::D(DType::I32), Ty::D(d), u64::from(n as u32), RoundMode::Rint, false))
            }
            Expr::Bin(op, a, b) => {
                let (d, a, b) = self.two(a, b)?;
                (d, scalar::binary(op, Ty::D(d), a, b)?)
            }
            Expr::Un(UnOp::Exp, Expr::Bin(BinOp::Sub, a, b))
                if self.exponential == Exponential::SpecialFunctionUnit =>
            {
                let (d, a, b) = self.two(a, b)?;
                let [a, b] = [a, b].map(|bits| f32::from_bits(bits as u32));
                (d, u64::from(ex2::exp_of_difference(a, b).to_bits()))
            }
            Expr::Un(op, a) => {
                let (d, a) = self.value(a)?;
                let bits = match (op, d, self.exponential) {
                    (UnOp::Exp, DType::F32, Exponential::SpecialFunctionUnit) => {
                        u64::from(ex2::exp(f32::from_bits(a as u32)).to_bits())
                    }
                    _ => scalar::unary(op, Ty::D(d), a)?,
                };
                (d, bits)
            }
            Expr::Fma(a, b, c) => {
                let ((d, a, b), (_, c)) = (self.two(a, b)?, self.value(c)?);
                (d, fma(d, a, b, c))
            }
            Expr::Pow(a, b) => {
                let (d, a, b) = self.two(a, b)?;
                (d, pow(d, a, b)?)
            }
            Expr::Cmp(op, a, b) => {
                let (d, a, b) = self.two(a, b)?;
                return truth(scalar::compare(op, Ty::D(d), a, b));
            }
            Expr::CmpMode(a, b) => {
                let (d, a, b) = self.two(a, b)?;
                return truth(scalar::compare(self.attrs.cmp?, Ty::D(d), a, b));
            }
            Expr::Select(c, a, b) => self.value(if self.value(c)?.1 & 1 == 1 { a } else { b })?,
            Expr::Convert(a, to) => self.convert(a, to)?,
        })
    }

    /// Two values of one type.
    fn two(&self, a: &Expr, b: &Expr) -> Option<(DType, u64, u64)> {
        let ((d, a), (other, b)) = (self.value(a)?, self.value(b)?);
        (d == other).then_some((d, a, b))
    }

    fn convert(&self, a: &Expr, to: To) -> Option<(DType, u64)> {
        let dst = self.dst;
        let between = |from: DType, to: DType, bits, round, saturate| {
            let bits = scalar::convert(Ty::D(from), Ty::D(to), bits, round, saturate);
            if to.is_float() { (DType::F32, u64::from(scalar::to_f32(to, bits).to_bits())) } else { (to, bits) }
        };
        if let (To::Mode, Expr::Arg(k)) = (to, a) {
            let (from, bits) = self.operand(*k)?;
            let saturate = self.attrs.saturate.unwrap_or_else(|| scalar::saturates_unasked(Ty::D(from), Ty::D(dst)));
            return Some(between(from, dst, bits, self.attrs.round.unwrap_or(RoundMode::Rint), saturate));
        }
        let (from, bits) = self.value(a)?;
        Some(match to {
            To::Mode => return None,
            To::Narrow if from == DType::F32 && dst.is_float() => {
                let (x, most) = (f32::from_bits(bits as u32), largest(dst));
                let held = if x.is_nan() { x } else { x.clamp(-most, most) };
                between(from, dst, u64::from(held.to_bits()), RoundMode::Rint, false)
            }
            To::Narrow => between(from, dst, bits, RoundMode::Rint, true),
            To::Wide if from.is_float() => (from, bits),
            To::Wide => between(from, DType::I32, bits, RoundMode::Rint, false),
            To::F32 => between(from, DType::F32, bits, RoundMode::Rint, false),
        })
    }
}

/// `a * b + c`: of floats (in f32) rounded once, of integers modulo the width.
fn fma(d: DType, a: u64, b: u64, c: u64) -> u64 {
    if d.is_float() {
        let f = |bits: u64| f32::from_bits(bits as u32);
        return u64::from(f(a).mul_add(f(b), f(c)).to_bits());
    }
    a.wrapping_mul(b).wrapping_add(c) & scalar::mask(Ty::D(d))
}

/// `a` to the power `b`: of floats (in f32) the program, of integers wrapping, and for `b` below 0 what 1 divided by
/// the power is: as a quotient, that of 0 all ones, and 0 of what is larger than 1 in magnitude. `None` of what has no
/// powers.
fn pow(d: DType, a: u64, b: u64) -> Option<u64> {
    let ty = Ty::D(d);
    if d.is_float() {
        let f = |bits: u64| f32::from_bits(bits as u32);
        return Some(u64::from(ptoc_isa::math::pow().eval2(f(a), f(b)).to_bits()));
    }
    if !d.is_int() {
        return None;
    }
    let exponent = scalar::to_int(ty, b);
    if exponent < 0 {
        let power = match scalar::to_int(ty, a) {
            0 => -1,
            1 => 1,
            -1 => {
                if exponent % 2 == 0 {
                    1
                } else {
                    -1
                }
            }
            _ => 0,
        };
        return Some(scalar::from_int(ty, power));
    }
    let (mut result, mut square) = (1u64, a);
    for bit in 0..scalar::width(ty) {
        if b >> bit & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
    }
    Some(result & scalar::mask(ty))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptoc_isa::{DTypeRule, InstrId, OperandKind, Target, allowed_dtypes, allowed_tuples, tcvt_pairs};

    /// The dtypes of the tiles of every form of an element-wise row.
    fn forms(row: &ptoc_isa::Instr) -> Vec<Vec<DType>> {
        let mut all: Vec<Vec<DType>> = Vec::new();
        for target in Target::all() {
            let tiles = row.tiles_written();
            match row.dtypes {
                DTypeRule::Same => {
                    all.extend(allowed_dtypes(target, row).unwrap().iter().map(|d| vec![*d; tiles]));
                }
                DTypeRule::Mask => {
                    let at = usize::from(!row.sem.compares());
                    all.extend(allowed_dtypes(target, row).unwrap().iter().map(|d| {
                        let mut list = vec![*d; tiles];
                        list[at] = DType::Bool;
                        list
                    }));
                }
                DTypeRule::Tuples => {
                    all.extend(allowed_tuples(target, row).unwrap().iter().map(|t| t.to_vec()));
                }
                DTypeRule::Pairs => all.extend(tcvt_pairs(target).iter().map(|(a, b)| vec![*b, *a])),
                other => panic!("{}: {other:?}", row.name),
            }
        }
        all
    }

    #[test]
    fn every_row_is_well_typed_on_every_dtype_that_it_admits() {
        let mut count = 0;
        for id in InstrId::all() {
            let row = id.get();
            let Some(expr) = row.sem.expr() else { continue };
            for tiles in forms(row) {
                let mut next = tiles.iter();
                let mut list: Vec<DType> = Vec::new();
                for spec in row.written() {
                    list.push(match spec.kind {
                        OperandKind::Scalar(Some(d)) => d,
                        OperandKind::Scalar(None) => *tiles.last().unwrap(),
                        _ => *next.next().unwrap(),
                    });
                }
                if row.updates {
                    list.push(list[0]);
                }
                assert!(fits(&expr, &list), "{} on {list:?}", row.name);
                count += 1;
            }
        }
        assert!(count > 300, "{count}");
    }

    #[test]
    fn operations_that_do_not_exist_have_no_type() {
        use DType::{Bool, F16, F32, I32};
        let and = Expr::Bin(ptoc_isa::BinOp::And, &Expr::Arg(1), &Expr::Arg(2));
        assert_eq!(typed(&and, &[I32; 3]), Some(I32));
        assert_eq!(typed(&and, &[F16; 3]), None);
        assert_eq!(typed(&and, &[I32, I32, Bool]), None);
        let widened = Expr::Fma(&Expr::Arg(1), &Expr::Arg(2), &Expr::Arg(3));
        assert!(fits(&widened, &[F32, F16, F16, F32]));
        assert!(!fits(&Expr::Arg(1), &[F32, I32]));
    }

    #[test]
    fn narrowing_saturates() {
        let narrow = Expr::Convert(&Expr::Arg(1), To::Narrow);
        let of = |dst, x: f32| eval(&narrow, dst, &[(dst, 0), (DType::F32, x.to_bits().into())], &InstAttrs::default());
        assert_eq!(of(DType::F16, 1e9), Some(0x7bff));
        assert_eq!(of(DType::F16, f32::NEG_INFINITY), Some(0xfbff));
        assert_eq!(of(DType::I8, 127.5), Some(127));
        assert_eq!(of(DType::I8, 2.5), Some(2));
    }
}
