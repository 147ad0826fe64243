//! Instructions that compute each element of their result from one element of each operand, as data: what is written,
//! what is read and under which indices, and the function. Reductions of rows have the same form up to their last step.

use super::code::Code;
use super::inst::Operands;
use super::{Lower, convert, formula};
use ptoc_ir::loops::Reg;
use ptoc_ir::tile::{Inst, Op, Operand, Stmt, TileRef, Ty, Value, ViewRef};
pub(super) use ptoc_isa::Read;
use ptoc_isa::{Expr, Reduce, RoundMode, Sem, drained};
use ptoc_tensor::DType;

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
            Sem::Store if inst.attrs.atomic.is_some() => return None,
            Sem::Store => (view(0)?, vec![(tile(1)?, Read::Whole)]),
            Sem::Move => (tile(0)?, vec![(tile(1)?, Read::Whole)]),
            // What the table has an expression for: its sources that are tiles.
            sem if sem.expr().is_some() => {
                let row = inst.instr.get();
                if row.operands.len() != inst.operands.len() {
                    return None;
                }
                let mut srcs = Vec::new();
                for (k, spec) in row.operands.iter().enumerate().skip(1) {
                    match spec.is_tile() {
                        true => srcs.push((tile(k)?, row.read(k))),
                        false => o.scalar(k).map(|_| ())?,
                    }
                }
                (tile(0)?, srcs)
            }
            _ => return None,
        };
        Some(Pattern { inst, dst, srcs, fold: None })
    }

    /// As [`Pattern::of`], and reductions of rows by partial results.
    pub(super) fn with_folds(inst: &'i Inst) -> Option<Pattern<'i>> {
        let Sem::RowReduce(op) = inst.instr.get().sem else { return Pattern::of(inst) };
        let o = Operands::new(inst);
        let (dst, src) = (Place::Tile(o.tile(0)?), Place::Tile(o.tile(1)?));
        // Products of rows are in another order.
        (!inst.attrs.stepwise && op != Reduce::Prod).then(|| Pattern {
            inst,
            dst,
            srcs: vec![(src, Read::Whole)],
            fold: Some(op),
        })
    }

    /// The pattern of a statement, a reduction of rows among them.
    pub(super) fn of_stmt(stmt: &'i Stmt) -> Option<Pattern<'i>> {
        if let Op::Inst(inst) = &stmt.op { Pattern::with_folds(inst) } else { None }
    }

    /// Is this nothing but rows that become columns?
    pub(super) fn turns(&self) -> bool {
        matches!(self.inst.instr.get().sem.expr(), Some(Expr::Arg(_))) && matches!(self.srcs[..], [(_, Read::Turned)])
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

    /// Are the bits taken as they are? Of a chain, see [`Lower::copies`].
    pub(super) fn keeps_bits(&self, p: &Pattern<'_>) -> bool {
        let same = |(src, _): &(Place<'_>, Read)| self.dtype(src) == self.dtype(&p.dst);
        self.copies(p) || (p.inst.instr.get().sem == Sem::Move && !p.inst.attrs.relu && p.srcs.iter().all(same))
    }

    /// Are the bits taken as they are, by a TLOAD, a TSTORE or a transposition? Members of a chain behind it may read
    /// its source for its result: none of them writes there. (To that of a TMOV one may.)
    pub(super) fn copies(&self, p: &Pattern<'_>) -> bool {
        let moves = p.turns() || matches!(p.inst.instr.get().sem, Sem::Load | Sem::Store);
        moves && !p.inst.attrs.relu && p.srcs.iter().all(|(src, _)| self.dtype(src) == self.dtype(&p.dst))
    }

    /// What a pattern computes of the elements of its operands. The result may hold more than its type (`ops::settle`).
    pub(super) fn function(&mut self, p: &Pattern<'_>) -> Function {
        let inst = p.inst;
        let ty = Ty::D(self.dtype(&p.dst));
        let from = p.srcs.first().map_or(ty, |(src, _)| Ty::D(self.dtype(src)));
        match inst.instr.get().sem {
            sem if let Some(expr) = sem.expr() => self.expression(p, expr),
            Sem::Store | Sem::Move if inst.attrs.relu => {
                let (from, to) = (p.srcs.first().map_or(DType::F32, |(src, _)| self.dtype(src)), self.dtype(&p.dst));
                let attrs = inst.attrs;
                Box::new(move |code, v| formula::emit(code, drained(false, true), to, &[(from, v[0])], &attrs))
            }
            Sem::Load | Sem::Store | Sem::Move if from != ty => {
                let saturate = ptoc_ir::scalar::saturates_unasked(from, ty);
                Box::new(move |code, v| convert::convert(code, from, ty, v[0], RoundMode::Rint, saturate))
            }
            // The others put elements elsewhere.
            _ => Box::new(|_, v| v[0]),
        }
    }
    /// The expression of an element-wise instruction.
    fn expression(&mut self, p: &Pattern<'_>, expr: Expr) -> Function {
        let (dst, attrs) = (self.dtype(&p.dst), p.inst.attrs);
        let mut tiles = p.srcs.iter().enumerate();
        let mut sources: Vec<(DType, Source)> = Vec::new();
        for operand in &p.inst.operands[1..] {
            sources.push(match operand {
                Operand::Scalar(v) => {
                    let dtype = if let Ty::D(d) = self.kernel.values[*v].ty { d } else { dst };
                    (dtype, Source::Scalar(self.value(*v)))
                }
                _ => match tiles.next() {
                    Some((n, (place, _))) => (self.dtype(place), Source::Tile(n)),
                    None => continue,
                },
            });
        }
        if attrs.reversed && sources.len() == 2 {
            sources.swap(0, 1);
        }
        Box::new(move |code, v| {
            let register = |s: &Source| match s {
                Source::Scalar(r) => *r,
                Source::Tile(n) => v[*n],
            };
            let registers: Vec<(DType, Reg)> = sources.iter().map(|(d, s)| (*d, register(s))).collect();
            formula::emit(code, &expr, dst, &registers, &attrs)
        })
    }
}

/// A source of an expression.
enum Source {
    Scalar(Reg),
    /// The tile source with this number.
    Tile(usize),
}
