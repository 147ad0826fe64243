//! The table of instructions that compute: one row each, for the printer, the verifier and the interpreter.

use crate::types::Type::{self, B16, B32, B64, F16x2, F32, F64, Pred, S32, S64, U32, U64};

/// An instruction without memory or control.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Arith {
    /// Integers wrap.
    Add,
    /// Integers wrap.
    Sub,
    /// The low half of a product.
    MulLo,
    /// The high half of a product.
    MulHi,
    /// `a * b + c`, the low half.
    MadLo,
    /// A product of twice the width.
    MulWide,
    /// A product of twice the width, and `c` of that width.
    MadWide,
    /// By zero: no value to rely on.
    Div,
    /// By zero: no value to rely on.
    Rem,
    /// The lesser integer.
    Min,
    /// The greater integer.
    Max,
    /// Integers wrap; of floats the sign.
    Neg,
    /// Of floats the sign is cleared.
    Abs,
    /// Bits.
    And,
    /// Bits.
    Or,
    /// Bits.
    Xor,
    /// Bits.
    Not,
    /// Counts of the width or more give 0.
    Shl,
    /// Counts of the width or more give 0, or the sign.
    Shr,
    /// Rounded to nearest even, as all that follow.
    AddF,
    /// See [`Arith::AddF`].
    SubF,
    /// See [`Arith::AddF`].
    MulF,
    /// `a * b + c`, rounded once.
    Fma,
    /// IEEE.
    DivF,
    /// IEEE.
    SqrtF,
    /// 2^x of the special function unit.
    Ex2,
    /// Zeros in front of the first one.
    Clz,
    /// NaN if either is, -0 below +0.
    MinF,
    /// See [`Arith::MinF`].
    MaxF,
}

/// How the operands' types follow from the instruction's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operands {
    /// All have it.
    Same,
    /// The second is a count, `u32`.
    Shift,
    /// The result, and the third operand if there is one, are of twice the width.
    Wide,
}

/// What is known of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct InstInfo {
    /// Which.
    pub arith: Arith,
    /// The mnemonic without the type.
    pub name: &'static str,
    /// Operands.
    pub arity: usize,
    /// Types that it has.
    pub types: &'static [Type],
    /// Types of its operands.
    pub operands: Operands,
}

const INTS: &[Type] = &[S32, S64, U32, U64];
const SIGNED: &[Type] = &[S32, S64, F32, F64];
const BITS: &[Type] = &[Pred, B16, B32, B64];
const FLOATS: &[Type] = &[F32, F64];
/// And two numbers of f16 in a word.
const PAIRS: &[Type] = &[F32, F64, F16x2];

const fn row(arith: Arith, name: &'static str, arity: usize, types: &'static [Type], operands: Operands) -> InstInfo {
    InstInfo { arith, name, arity, types, operands }
}

/// Every instruction that computes.
pub const TABLE: &[InstInfo] = &[
    row(Arith::Add, "add", 2, INTS, Operands::Same),
    row(Arith::Sub, "sub", 2, INTS, Operands::Same),
    row(Arith::MulLo, "mul.lo", 2, INTS, Operands::Same),
    row(Arith::MulHi, "mul.hi", 2, INTS, Operands::Same),
    row(Arith::MadLo, "mad.lo", 3, INTS, Operands::Same),
    row(Arith::MulWide, "mul.wide", 2, &[S32, U32], Operands::Wide),
    row(Arith::MadWide, "mad.wide", 3, &[S32, U32], Operands::Wide),
    row(Arith::Div, "div", 2, INTS, Operands::Same),
    row(Arith::Rem, "rem", 2, INTS, Operands::Same),
    row(Arith::Min, "min", 2, INTS, Operands::Same),
    row(Arith::Max, "max", 2, INTS, Operands::Same),
    row(Arith::Neg, "neg", 1, SIGNED, Operands::Same),
    row(Arith::Abs, "abs", 1, SIGNED, Operands::Same),
    row(Arith::And, "and", 2, BITS, Operands::Same),
    row(Arith::Or, "or", 2, BITS, Operands::Same),
    row(Arith::Xor, "xor", 2, BITS, Operands::Same),
    row(Arith::Not, "not", 1, BITS, Operands::Same),
    row(Arith::Shl, "shl", 2, &[B32, B64], Operands::Shift),
    row(Arith::Shr, "shr", 2, INTS, Operands::Shift),
    row(Arith::AddF, "add.rn", 2, PAIRS, Operands::Same),
    row(Arith::SubF, "sub.rn", 2, PAIRS, Operands::Same),
    row(Arith::MulF, "mul.rn", 2, PAIRS, Operands::Same),
    row(Arith::Fma, "fma.rn", 3, FLOATS, Operands::Same),
    row(Arith::DivF, "div.rn", 2, FLOATS, Operands::Same),
    row(Arith::SqrtF, "sqrt.rn", 1, FLOATS, Operands::Same),
    row(Arith::Ex2, "ex2.approx.ftz", 1, &[F32], Operands::Same),
    row(Arith::Clz, "clz", 1, &[B32], Operands::Same),
    row(Arith::MinF, "min.NaN", 2, &[F32], Operands::Same),
    row(Arith::MaxF, "max.NaN", 2, &[F32], Operands::Same),
];

impl Arith {
    /// Its row.
    pub fn row(self) -> &'static InstInfo {
        // The table is in the order of the variants; a test holds it to that.
        &TABLE[self as usize]
    }
}

/// The type of twice the width.
pub(crate) fn wide(ty: Type) -> Type {
    if ty == S32 { S64 } else { U64 }
}

#[cfg(test)]
mod tests {
    use super::TABLE;

    #[test]
    fn rows_stand_where_they_are_looked_for() {
        for (n, row) in TABLE.iter().enumerate() {
            assert_eq!(row.arith as usize, n, "{}", row.name);
            assert_eq!(row.arith.row().name, row.name);
        }
    }
}
