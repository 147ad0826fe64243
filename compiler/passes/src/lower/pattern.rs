//! Instructions that compute each element of their result from one element of each operand, as data: what is written,
//! what is read and under which indices, and the function. Reductions of rows have the same form up to their last step.

use super::code::Code;
use super::inst::Operands;
use super::{Lower, convert, ops};
use ptoc_ir::loops::Reg;
use ptoc_ir::tile::{Inst, TileRef, Ty, Value, ViewRef};
use ptoc_isa::{CmpOp, Reduce, RoundMode, Sem};
use ptoc_tensor::DType;

/// How an operand is read under the result's indices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Read {
    /// Element (i, j).
    Whole,
    /// Element (i, 0).
    Column,
    /// Element (0, j).
    Row,
    /// Element (j, i).
    Turned,
}

/// A window of a tile or of a tensor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Place<'i> {
    Tile(TileRef),
    View(&'i ViewRef),
}

impl Place<'_> {
    pub(super) fn tile(&self) -> Option<&TileRef> {
        match self {
            Place::Tile(t) => Some(t),
            Place::View(_) => None,
        }
    }
}

/// What is written, and what is read for it.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Pattern<'i> {
    pub(super) inst: &'i Inst,
    pub(super) dst: Place<'i>,
    pub(super) srcs: Vec<(Place<'i>, Read)>,
    /// The elements of a row become one of the result by this.
    pub(super) fold: Option<Reduce>,
}

/// What becomes of the elements.
pub(super) type Function = Box<dyn Fn(&mut Code, &[Reg]) -> Reg>;

impl<'i> Pattern<'i> {
    /// The pattern of an instruction; `None` if it is none of this kind, or has not the operands that its row of the
    /// table demands.
    pub(super) fn of(inst: &'i Inst) -> Option<Pattern<'i>> {
        let o = Operands::new(inst);
        let tile = |n| o.tile(n).map(Place::Tile);
        let view = |n| o.view(n).map(Place::View);
        let (dst, srcs) = match inst.instr.get().sem {
            Sem::Load => (tile(0)?, vec![(view(1)?, Read::Whole)]),
            Sem::Store if inst.attrs.atomic_add => return None,
            Sem::Store => (view(0)?, vec![(tile(1)?, Read::Whole)]),
            Sem::Move | Sem::Unary(_) | Sem::BinaryScalar(_) | Sem::Convert => {
                (tile(0)?, vec![(tile(1)?, Read::Whole)])
            }
            Sem::Binary(_) | Sem::Compare => (tile(0)?, vec![(tile(1)?, Read::Whole), (tile(2)?, Read::Whole)]),
            Sem::Expand => (tile(0)?, Vec::new()),
            Sem::Select => {
                (tile(0)?, [1, 2, 3].into_iter().map(|n| Some((tile(n)?, Read::Whole))).collect::<Option<_>>()?)
            }
            Sem::RowExpand => (tile(0)?, vec![(tile(1)?, Read::Column)]),
            Sem::RowExpandBinary(_) => (tile(0)?, vec![(tile(1)?, Read::Whole), (tile(2)?, Read::Column)]),
            Sem::ColExpand => (tile(0)?, vec![(tile(1)?, Read::Row)]),
            Sem::ColExpandBinary(_) => (tile(0)?, vec![(tile(1)?, Read::Whole), (tile(2)?, Read::Row)]),
            Sem::Transpose => (tile(0)?, vec![(tile(1)?, Read::Turned)]),
            _ => return None,
        };
        Some(Pattern { inst, dst, srcs, fold: None })
    }

    /// As [`Pattern::of`], and reductions of rows.
    pub(super) fn with_folds(inst: &'i Inst) -> Option<Pattern<'i>> {
        let Sem::RowReduce(op) = inst.instr.get().sem else { return Pattern::of(inst) };
        let o = Operands::new(inst);
        let (dst, src) = (Place::Tile(o.tile(0)?), Place::Tile(o.tile(1)?));
        (!inst.attrs.stepwise).then(|| Pattern { inst, dst, srcs: vec![(src, Read::Whole)], fold: Some(op) })
    }

    /// Rows and columns; `None` for a view of rank 1, which is a row.
    pub(super) fn shape(&self) -> Option<(Value, Value)> {
        let first = self.srcs.first().map(|s| s.0).filter(|s| s.tile().is_none() || self.fold.is_some());
        match first.unwrap_or(self.dst) {
            Place::Tile(t) => Some(t.valid),
            Place::View(v) => match v.shape[..] {
                [rows, cols] => Some((rows, cols)),
                _ => None,
            },
        }
    }
}

impl Lower<'_> {
    pub(super) fn dtype(&self, place: &Place<'_>) -> DType {
        match place {
            Place::Tile(t) => self.kernel.tiles[t.tile].ty.dtype,
            Place::View(v) => self.kernel.tensors[v.tensor].dtype,
        }
    }

    /// Does a TLOAD or TSTORE take the bits as they are?
    pub(super) fn copies(&self, p: &Pattern<'_>) -> bool {
        let moves = matches!(p.inst.instr.get().sem, Sem::Load | Sem::Store);
        moves && p.srcs.iter().all(|(src, _)| self.dtype(src) == self.dtype(&p.dst))
    }

    /// What a pattern computes of the elements of its operands. The result may hold more than its type (`ops::settle`).
    pub(super) fn function(&mut self, p: &Pattern<'_>) -> Function {
        let inst = p.inst;
        let ty = Ty::D(self.dtype(&p.dst));
        let from = p.srcs.first().map_or(ty, |(src, _)| Ty::D(self.dtype(src)));
        let scalar = |this: &mut Self, n| Operands::new(inst).scalar(n).map(|v| this.value(v));
        match inst.instr.get().sem {
            Sem::Binary(op) | Sem::RowExpandBinary(op) | Sem::ColExpandBinary(op) => {
                Box::new(move |code, v| ops::binary(code, ty, op, v[0], v[1]))
            }
            Sem::BinaryScalar(op) => match scalar(self, 2) {
                Some(s) if inst.attrs.reversed => Box::new(move |code, v| ops::binary(code, ty, op, s, v[0])),
                Some(s) => Box::new(move |code, v| ops::binary(code, ty, op, v[0], s)),
                None => Box::new(|_, v| v[0]),
            },
            Sem::Unary(op) => Box::new(move |code, v| ops::unary(code, ty, op, v[0])),
            Sem::Expand => {
                let s = scalar(self, 1).unwrap_or_else(|| ops::number(&mut self.code, ty, 0));
                Box::new(move |_, _| s)
            }
            Sem::Convert => {
                let round = inst.attrs.round.unwrap_or(RoundMode::Rint);
                let float = matches!(from, Ty::D(d) if d.is_float());
                let saturate = inst.attrs.saturate.unwrap_or(float);
                Box::new(move |code, v| convert::convert(code, from, ty, v[0], round, saturate))
            }
            Sem::Compare => {
                let op = inst.attrs.cmp.unwrap_or(CmpOp::Eq);
                Box::new(move |code, v| ops::compare(code, from, op, v[0], v[1]))
            }
            Sem::Select => Box::new(|code, v| code.select(v[0], v[1], v[2])),
            Sem::Load | Sem::Store | Sem::Move if from != ty => {
                Box::new(move |code, v| convert::convert(code, from, ty, v[0], RoundMode::Rint, true))
            }
            // The others put elements elsewhere.
            _ => Box::new(|_, v| v[0]),
        }
    }
}
