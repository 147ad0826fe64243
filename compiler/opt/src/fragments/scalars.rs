//! Scalar code that every thread computes alike, and tiles that count up.

use super::{Finder, no};
use ptoc_ir::analysis::poly::{Definitions, Poly};
use ptoc_ir::tile::{For, Op, Region, TensorDir, TileRef, Ty, Value};
use ptoc_isa::{BinOp, CmpOp, RoundMode, UnOp};
use ptoc_tensor::DType;

const I32: Ty = Ty::D(DType::I32);
const U32: Ty = Ty::D(DType::U32);
const F32: Ty = Ty::D(DType::F32);

/// A loop over rows or columns that fills a column or a row with what it computes of the number of each.
#[derive(Clone, Copy, Debug)]
pub struct Ramp {
    /// The tile.
    pub tile: TileRef,
    /// What each element is.
    pub value: Value,
    /// It counts rows.
    pub column: bool,
}

/// What a loop fills that way.
pub fn ramp(f: &For, defs: &Definitions<'_>) -> Option<Ramp> {
    let zero = |v: Value| defs.number(v) == Some(0);
    let (last, before) = f.body.split_last()?;
    let Op::TileSet { tile, row, col, value } = last.op else { return None };
    let column = row == f.index && zero(col);
    let along = if column { tile.valid.0 } else { tile.valid.1 };
    let fills = (column || (zero(row) && col == f.index)) && zero(f.lo) && f.hi == along;
    (fills && before.iter().all(|s| s.op.is_pure())).then_some(Ramp { tile, value, column })
}

impl Finder<'_> {
    /// Whether a condition always holds: that a block of `tiles(whole, size)` is not empty.
    pub(super) fn holds(&self, cond: Value) -> bool {
        match self.defs.of(cond) {
            Some(Op::Compare { op: CmpOp::Lt, a, b, .. }) if self.defs.number(*a) == Some(0) => {
                self.block_of(*b).is_some()
            }
            _ => false,
        }
    }

    /// The rest and the size of `min(rest, size)`, what a block of `tiles` has.
    fn tail(&self, v: Value) -> Option<(Poly, i64)> {
        let (x, y) = self.defs.binary(v, BinOp::Min)?;
        match (self.defs.number(x), self.defs.number(y)) {
            (None, Some(size)) => Some((self.defs.poly(x)?, size)),
            (Some(size), None) => Some((self.defs.poly(y)?, size)),
            _ => None,
        }
    }

    /// The n of `min(whole - size * n, size)`, for n below `(whole + size - 1) / size`: for all but the last of them it
    /// is `size`.
    pub(super) fn block_of(&self, v: Value) -> Option<Value> {
        let (rest, size) = self.tail(v)?;
        let of = |n: &Value| {
            let whole = rest.plus(&Poly::symbol(*n), size)?;
            let (sum, by) = self.defs.binary(*self.bounds.get(n)?, BinOp::Div)?;
            let blocks = self.defs.poly(sum)? == whole.plus(&Poly::constant(size - 1), 1)?;
            Some(blocks && size > 0 && self.defs.number(by) == Some(size) && whole.symbols().all(|s| s != *n))
        };
        rest.symbols().find(|n| of(n) == Some(true))
    }

    /// Whether `min(whole - size * n, size)` is `size` for every block: the launch has checked that a multiple of it is
    /// divided, and the blocks that a loop or the grid counts are not empty.
    pub(super) fn divides(&self, v: Value) -> Option<bool> {
        let (rest, size) = self.tail(v)?;
        let size = (size > 0).then_some(Poly::constant(size))?;
        // What the launch has found equal stands for each other.
        let equal = self.kernel.prologue.iter().filter_map(|stmt| match &stmt.op {
            Op::Check { cond, .. } => match self.defs.of(*cond)? {
                Op::Compare { op: CmpOp::Eq, a, b, .. } => Some([(*a, *b), (*b, *a)]),
                _ => None,
            },
            _ => None,
        });
        let replaced = |(from, to): (Value, Value)| {
            let (step, others) = rest.split(self.defs.poly(from)?.symbol_alone()?)?;
            others.plus(&step.times(&self.defs.poly(to)?)?, 1)
        };
        let forms = equal.flatten().filter_map(replaced).chain([rest.clone()]);
        let whole = |form: Poly| match form.divided(&size) {
            Some(left) => self.block_of(v).is_some() || self.is_left(&left),
            None => false,
        };
        Some(forms.into_iter().any(whole))
    }

    /// Whether so many are left in every iteration of a loop, at least one: `end - n`, and n is below `end`, or below
    /// `start + min(end - start, size)`.
    fn is_left(&self, left: &Poly) -> bool {
        let sum = |a: Value, b: Value| self.defs.poly(a)?.plus(&self.defs.poly(b)?, 1);
        self.ends.iter().any(|(n, hi)| {
            let Some(end) = left.plus(&Poly::symbol(*n), 1) else { return false };
            let mut ends = vec![self.defs.poly(*hi)];
            if let Some((a, b)) = self.defs.binary(*hi, BinOp::Add) {
                for (start, least) in [(a, b), (b, a)] {
                    let sides = self.defs.binary(least, BinOp::Min).map_or_else(Vec::new, |(x, y)| vec![x, y]);
                    ends.extend(sides.into_iter().map(|side| sum(start, side)));
                }
            }
            ends.contains(&Some(end))
        })
    }

    pub(super) fn pure(&self, region: &Region) -> Result<(), String> {
        region.iter().filter(|s| s.op.is_pure()).try_for_each(|s| self.scalar(&s.op))
    }

    /// Scalar code of a kind that is emitted.
    pub(super) fn scalar(&self, op: &Op) -> Result<(), String> {
        let ty = |v: Value| self.kernel.values[v].ty;
        let whole = |t: Ty| t == Ty::Index || t == I32;
        let known = |t: Ty| whole(t) || t == U32 || t == F32 || t == Ty::BOOL;
        let good = match op {
            // Of other types they are what copies fill with.
            Op::Const { .. } => true,
            Op::Unary { op: UnOp::Neg, a, .. } => whole(ty(*a)) || ty(*a) == F32,
            Op::Unary { op: UnOp::Not, a, .. } => ty(*a) == Ty::BOOL,
            Op::Binary { op, a, .. } => match (op, ty(*a)) {
                (BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Max | BinOp::Min, t) => whole(t) || t == F32,
                (BinOp::And | BinOp::Or | BinOp::Xor, t) => whole(t) || t == Ty::BOOL,
                (BinOp::Div | BinOp::Rem, t) if whole(t) => true,
                (BinOp::Div, t) => t == F32,
                _ => false,
            },
            Op::Compare { a, .. } => whole(ty(*a)) || ty(*a) == F32,
            Op::Load { dst, tensor, .. } => {
                let tensor = &self.kernel.tensors[*tensor];
                tensor.dir == TensorDir::In && ty(*dst) == Ty::D(tensor.dtype) && [I32, U32, F32].contains(&ty(*dst))
            }
            Op::Select { a, .. } => whole(ty(*a)) || ty(*a) == F32,
            Op::Convert { dst, a, round, saturate } => match (ty(*a), ty(*dst)) {
                (from, to) if from == to => known(to),
                (Ty::Index, I32) => !saturate,
                (I32 | U32, Ty::Index) => true,
                (from, F32) => whole(from) && *round == RoundMode::Rint,
                _ => false,
            },
            _ => false,
        };
        if good { Ok(()) } else { no("scalar code of a kind that has no translation beside products") }
    }
}
