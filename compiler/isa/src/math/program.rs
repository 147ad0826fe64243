//! Straight-line programs over f32, i32 and bool values.

use crate::CmpOp;

/// The number of an operation; its result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Id(pub u16);

impl Id {
    /// As an index into [`Program::ops`].
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
            Arg | F32(_) | I32(_) => vec![],
            Sqrt(a) | Rint(a) | ToInt(a) | ToFloat(a) | Bits(a) | FromBits(a) => vec![a],
            Add(a, b)
            | Sub(a, b)
            | Mul(a, b)
            | Div(a, b)
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

/// A function of one f32 argument.
#[derive(Clone, PartialEq, Debug)]
pub struct Program {
    /// The function.
    pub name: &'static str,
    /// The operations; the last one is the result.
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

/// A value while a program is evaluated.
#[derive(Clone, Copy)]
enum Val {
    F(f32),
    I(i32),
    B(bool),
}

impl Val {
    fn f(self) -> f32 {
        match self {
            Val::F(x) => x,
            _ => unreachable!("programs are well typed: `Builder` sees to it"),
        }
    }

    fn i(self) -> i32 {
        match self {
            Val::I(x) => x,
            _ => unreachable!("programs are well typed: `Builder` sees to it"),
        }
    }

    fn b(self) -> bool {
        match self {
            Val::B(x) => x,
            _ => unreachable!("programs are well typed: `Builder` sees to it"),
        }
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

impl Program {
    /// The result for `x`.
    pub fn eval(&self, x: f32) -> f32 {
        let mut values: Vec<Val> = Vec::with_capacity(self.ops.len());
        for op in &self.ops {
            values.push(step(*op, &values, x));
        }
        values.last().map_or(x, |v| v.f())
    }
}

fn step(op: MathOp, values: &[Val], x: f32) -> Val {
    let f = |id: Id| values[id.index()].f();
    let i = |id: Id| values[id.index()].i();
    match op {
        MathOp::Arg => Val::F(x),
        MathOp::F32(c) => Val::F(c),
        MathOp::I32(c) => Val::I(c),
        MathOp::Add(a, b) => Val::F(f(a) + f(b)),
        MathOp::Sub(a, b) => Val::F(f(a) - f(b)),
        MathOp::Mul(a, b) => Val::F(f(a) * f(b)),
        MathOp::Div(a, b) => Val::F(f(a) / f(b)),
        MathOp::Sqrt(a) => Val::F(f(a).sqrt()),
        MathOp::Fma(a, b, c) => Val::F(f(a).mul_add(f(b), f(c))),
        MathOp::Rint(a) => Val::F(f(a).round_ties_even()),
        MathOp::ToInt(a) => Val::I(f(a) as i32),
        MathOp::ToFloat(a) => Val::F(i(a) as f32),
        MathOp::Bits(a) => Val::I(f(a).to_bits() as i32),
        MathOp::FromBits(a) => Val::F(f32::from_bits(i(a) as u32)),
        MathOp::IAdd(a, b) => Val::I(i(a).wrapping_add(i(b))),
        MathOp::ISub(a, b) => Val::I(i(a).wrapping_sub(i(b))),
        MathOp::And(a, b) => Val::I(i(a) & i(b)),
        MathOp::Or(a, b) => Val::I(i(a) | i(b)),
        MathOp::Xor(a, b) => Val::I(i(a) ^ i(b)),
        MathOp::Shl(a, b) => Val::I(i(a).checked_shl(i(b) as u32).unwrap_or(0)),
        MathOp::Shr(a, b) => Val::I(i(a) >> (i(b) as u32).min(31)),
        MathOp::Cmp(op, a, b) => Val::B(match (values[a.index()], values[b.index()]) {
            (Val::I(a), Val::I(b)) => compare(op, a, b),
            (a, b) => compare(op, a.f(), b.f()),
        }),
        MathOp::Select { cond, a, b } => values[if values[cond.index()].b() { a.index() } else { b.index() }],
    }
}
