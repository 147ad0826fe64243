//! Values of the expressions that say where elements go (`ptoc_isa::Cells`): the interpreter's reading of them.

use crate::scalar;
use crate::tile::Ty;
use ptoc_isa::{Cell, IndexExpr, RoundMode, Test};
use ptoc_tensor::DType;

/// What an expression asks of its instruction. Operands are numbered as in the row.
pub trait Operands {
    /// Why there is no element.
    type Error;
    /// Valid rows and columns.
    fn shape(&self, k: usize) -> (i64, i64);
    /// Columns that a row has room for.
    fn width(&self, k: usize) -> i64;
    /// The dtype of elements, or of a scalar.
    fn dtype(&self, k: usize) -> DType;
    /// An index operand, or one that is a scalar of integers.
    fn index(&self, k: usize) -> i64;
    /// Bits of a scalar operand.
    fn scalar(&self, k: usize) -> u64;
    /// Bits of an element; `found` is the element of an index operand that led here, if one did.
    fn element(&self, k: usize, row: i64, col: i64, found: Option<Look>) -> Result<u64, Self::Error>;
}

/// An element that was looked up for a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// The operand.
    pub operand: usize,
    /// Where.
    pub at: (i64, i64),
    /// The element.
    pub value: i64,
}

/// Bits of element `at` of the destination.
pub fn eval<O: Operands>(cell: &Cell, at: (i64, i64), o: &O) -> Result<u64, O::Error> {
    let dst = o.dtype(0);
    Ok(match *cell {
        Cell::At(k, r, c) => {
            let found = match r.first_look().or(c.first_look()) {
                Some((operand, r, c)) => {
                    let place = (num(r, at, o)?, num(c, at, o)?);
                    let bits = o.element(operand, place.0, place.1, None)?;
                    Some(Look { operand, at: place, value: integer(o.dtype(operand), bits) })
                }
                None => None,
            };
            o.element(k, num(r, at, o)?, num(c, at, o)?, found)?
        }
        Cell::Scalar(k) => o.scalar(k),
        Cell::Is(n) => small(dst, n),
        Cell::Of(n) => scalar::from_int(Ty::D(dst), i128::from(num(n, at, o)?)),
        Cell::If(t, a, b) => eval(if test(t, at, o)? { a } else { b }, at, o)?,
    })
}

/// A whole number as an element.
pub fn small(dtype: DType, n: i32) -> u64 {
    scalar::convert(Ty::D(DType::I32), Ty::D(dtype), u64::from(n as u32), RoundMode::Rint, false)
}

fn integer(dtype: DType, bits: u64) -> i64 {
    scalar::to_int(Ty::D(dtype), bits) as i64
}

/// A number for element `at`.
pub fn num<O: Operands>(n: &IndexExpr, at: (i64, i64), o: &O) -> Result<i64, O::Error> {
    Ok(match *n {
        IndexExpr::Row => at.0,
        IndexExpr::Col => at.1,
        IndexExpr::Rows(k) => o.shape(k).0,
        IndexExpr::Cols(k) => o.shape(k).1,
        IndexExpr::Width(k) => o.width(k),
        IndexExpr::Size(k) => o.dtype(k).size() as i64,
        IndexExpr::Is(n) => n,
        IndexExpr::Arg(k) => o.index(k),
        IndexExpr::At(k, r, c) => integer(o.dtype(k), o.element(k, num(r, at, o)?, num(c, at, o)?, None)?),
        IndexExpr::Bin(op, a, b) => {
            let (a, b) = (num(a, at, o)?, num(b, at, o)?);
            // Every operation exists on `index`.
            scalar::binary(op, Ty::Index, a as u64, b as u64).unwrap_or(0) as i64
        }
    })
}

fn test<O: Operands>(t: &Test, at: (i64, i64), o: &O) -> Result<bool, O::Error> {
    Ok(match t {
        Test::Cmp(op, a, b) => scalar::compare(*op, Ty::Index, num(a, at, o)? as u64, num(b, at, o)? as u64),
        Test::And(a, b) => test(a, at, o)? && test(b, at, o)?,
    })
}
