//! Straight-line programs over f32, i32 and bool values.

use crate::CmpOp;

/// The number of an operation; its result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Id(pub u16);

impl Id {
    /// As an index into [`MathProgram::ops`].
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Ty {
    F32,
    I32,
    Bool,
}

/// One operation. Operands are results of earlier ones. Floating-point arithmetic is IEEE, to nearest even, with
/// gradual underflow.
#[derive(Clone, Copy, PartialEq, Debug)]
#[allow(missing_docs, reason = "operands are explained on the variants")]
pub enum MathOp {
    /// The argument, f32. Always operation 0.
    Arg,
    /// The second argument, f32, of a function of two. Operation 1, or nowhere.
    Second,
    /// A constant.
    F32(f32),
    /// A constant.
    I32(i32),
    /// a + b, f32
    Add(Id, Id),
    /// a - b, f32
    Sub(Id, Id),
    /// a * b, f32
    Mul(Id, Id),
    /// a / b, f32
    Div(Id, Id),
    /// Square root, f32
    Sqrt(Id),
    /// a * b + c rounded once, f32
    Fma(Id, Id, Id),
    /// Nearest integral value, ties to even, f32
    Rint(Id),
    /// The lesser of two f32; NaN if either is
    Min(Id, Id),
    /// The greater of two f32; NaN if either is
    Max(Id, Id),
    /// a * 2^b as [`scale`] says, f32
    Scale(Id, Id),
    /// f32 to i32, truncating and saturating, NaN to 0
    ToInt(Id),
    /// i32 to f32, nearest even
    ToFloat(Id),
    /// f32 to i32, same bits
    Bits(Id),
    /// i32 to f32, same bits
    FromBits(Id),
    /// a + b, i32, wrapping
    IAdd(Id, Id),
    /// a - b, i32, wrapping
    ISub(Id, Id),
    /// Bitwise and, i32
    And(Id, Id),
    /// Bitwise or, i32
    Or(Id, Id),
    /// Bitwise exclusive or, i32
    Xor(Id, Id),
    /// a << b, i32; b of 32 or more (as unsigned) gives 0
    Shl(Id, Id),
    /// a >> b arithmetic, i32; b of 32 or more gives the sign
    Shr(Id, Id),
    /// Comparison of two f32 or two i32 (signed): bool; f32: every one but `ne` is false on NaN
    Cmp(CmpOp, Id, Id),
    /// cond ? a : b, both f32 or both i32
    Select { cond: Id, a: Id, b: Id },
}

impl MathOp {
    /// The operations whose results this one takes, in order.
    pub fn operands(&self) -> Vec<Id> {
        use MathOp::*;
        match *self {
            Arg | Second | F32(_) | I32(_) => vec![],
            Sqrt(a) | Rint(a) | ToInt(a) | ToFloat(a) | Bits(a) | FromBits(a) => vec![a],
            Add(a, b)
            | Sub(a, b)
            | Mul(a, b)
            | Div(a, b)
            | Min(a, b)
            | Max(a, b)
            | Scale(a, b)
            | IAdd(a, b)
            | ISub(a, b)
            | And(a, b)
            | Or(a, b)
            | Xor(a, b)
            | Shl(a, b)
            | Shr(a, b)
            | Cmp(_, a, b) => vec![a, b],
            Fma(a, b, c) => vec![a, b, c],
            Select { cond, a, b } => vec![cond, a, b],
        }
    }
}

/// A function of one f32 argument, or of two.
#[derive(Clone, PartialEq, Debug)]
pub struct MathProgram {
    /// The function.
    pub name: &'static str,
    /// The operations, at most 224; the last one is the result.
    pub ops: Vec<MathOp>,
    /// The type of each operation's result.
    pub types: Vec<Ty>,
    /// The greatest error in units in the last place of the correctly rounded result, for |x| up to `domain`.
    pub max_ulp: f64,
    /// Largest |x| for which `max_ulp` holds; infinite if it holds everywhere.
    pub domain: f32,
    /// What else there is to say.
    pub doc: &'static str,
}

/// a * 2^n, rounded once: for 1/2 <= |a| <= 4 and integral n from -200 to 200, or NaN for both. So the power may be
/// applied in two halves, of which the first product is exact. Of other operands the machines make different things.
pub fn scale(a: f32, n: f32) -> f32 {
    let n = n as i32;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    let half = n >> 1;
    a * power(half) * power(n.wrapping_sub(half))
}

/// The first of two numbers if it is to be taken; NaN if either is.
fn bound(a: f32, b: f32, first: bool) -> f32 {
    match a.is_nan() || b.is_nan() {
        true => f32::NAN,
        false if first => a,
        false => b,
    }
}

fn compare<T: PartialOrd>(op: CmpOp, a: T, b: T) -> bool {
    match op {
        CmpOp::Eq => a == b,
        CmpOp::Ne => a != b,
        CmpOp::Lt => a < b,
        CmpOp::Le => a <= b,
        CmpOp::Gt => a > b,
        CmpOp::Ge => a >= b,
    }
}

/// Most operations of a program, so that evaluation needs no allocation.
pub(super) const MAX_OPS: usize = 224;

impl MathProgram {
    /// The result for `x`, of a function of one argument.
    pub fn eval(&self, x: f32) -> f32 {
        self.eval2(x, 0.0)
    }

    /// The result for `x` and `y`.
    pub fn eval2(&self, x: f32, y: f32) -> f32 {
        // Results as bits; the operations say what they are (truth values are 0 and 1).
        let mut values = [0u32; MAX_OPS];
        for (at, op) in self.ops.iter().enumerate() {
            values[at] = self.step(*op, &values, (x, y));
        }
        f32::from_bits(values[self.ops.len() - 1])
    }

    fn step(&self, op: MathOp, values: &[u32; MAX_OPS], (x, y): (f32, f32)) -> u32 {
        let f = |id: Id| f32::from_bits(values[id.index()]);
        let i = |id: Id| values[id.index()] as i32;
        let float = |x: f32| x.to_bits();
        let int = |n: i32| n as u32;
        match op {
            MathOp::Arg => float(x),
            MathOp::Second => float(y),
            MathOp::F32(c) => float(c),
            MathOp::I32(c) => int(c),
            MathOp::Add(a, b) => float(f(a) + f(b)),
            MathOp::Sub(a, b) => float(f(a) - f(b)),
            MathOp::Mul(a, b) => float(f(a) * f(b)),
            MathOp::Div(a, b) => float(f(a) / f(b)),
            MathOp::Sqrt(a) => float(f(a).sqrt()),
            MathOp::Fma(a, b, c) => float(f(a).mul_add(f(b), f(c))),
            MathOp::Rint(a) => float(f(a).round_ties_even()),
            MathOp::Min(a, b) => float(bound(f(a), f(b), f(a) < f(b))),
            MathOp::Max(a, b) => float(bound(f(a), f(b), f(a) > f(b))),
            MathOp::Scale(a, b) => float(scale(f(a), f(b))),
            MathOp::ToInt(a) => int(f(a) as i32),
            MathOp::ToFloat(a) => float(i(a) as f32),
            MathOp::Bits(a) | MathOp::FromBits(a) => values[a.index()],
            MathOp::IAdd(a, b) => int(i(a).wrapping_add(i(b))),
            MathOp::ISub(a, b) => int(i(a).wrapping_sub(i(b))),
            MathOp::And(a, b) => int(i(a) & i(b)),
            MathOp::Or(a, b) => int(i(a) | i(b)),
            MathOp::Xor(a, b) => int(i(a) ^ i(b)),
            MathOp::Shl(a, b) => int(i(a).checked_shl(i(b) as u32).unwrap_or(0)),
            MathOp::Shr(a, b) => int(i(a) >> (i(b) as u32).min(31)),
            MathOp::Cmp(op, a, b) => u32::from(match self.types[a.index()] {
                Ty::F32 => compare(op, f(a), f(b)),
                _ => compare(op, i(a), i(b)),
            }),
            MathOp::Select { cond, a, b } => values[if values[cond.index()] != 0 { a.index() } else { b.index() }],
        }
    }
}
