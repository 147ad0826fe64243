//! What may happen to tiles between products: everything that a thread does with its own elements of a row, and with
//! those of the three threads that share its rows.

use super::{Finder, Fragment, OperandLoad, OperandSource, ScatteredRows, filled_by, no, ramp, scattered};
use crate::contraction::{self, From, Product};
use ptoc_ir::formula;
use ptoc_ir::tile::{
    Copy, Inst, InstAttrs, Op, Operand, Region, TensorDir, TensorId, Tile, TileRef, Ty, Value, ViewRef,
};
use ptoc_isa::{BinOp, Expr, Loc, Read, Reduce, RoundMode, Sem, To, UnOp};
use ptoc_placement::access::{AccessMode, inst_operands};
use ptoc_tensor::DType;

impl Finder<'_> {
    pub(super) fn region(&mut self, region: &Region) -> Result<(), String> {
        for stmt in region {
            self.note_results(&stmt.op);
            match &stmt.op {
                op if op.is_pure() || matches!(op, Op::Load { .. }) => self.scalar(op)?,
                Op::Alloc { .. } | Op::Sync(_) => {}
                Op::Inst(inst) => self.inst(inst, &stmt.op, region)?,
                Op::For(f) => match ramp(f, &self.defs) {
                    Some(ramp) => {
                        self.pure(&f.body)?;
                        let fits = match self.fragment(ramp.tile.tile)? {
                            Fragment::Column => ramp.column,
                            Fragment::Row(_) => !ramp.column,
                            Fragment::Full(_) => false,
                        };
                        let value = self.kernel.values[ramp.value].ty;
                        if !fits || value != Ty::D(self.ty(ramp.tile.tile).1) || !self.numbers(ramp.tile) {
                            return no("a tile is filled element by element");
                        }
                    }
                    None => {
                        self.loops += 1;
                        self.region(&f.body)?;
                        self.loops -= 1;
                    }
                },
                Op::If(i) => [&i.then, &i.els].into_iter().try_for_each(|r| self.region(r))?,
                Op::Check { cond, .. } if self.holds(*cond) => {}
                Op::Check { .. } => self.checks = true,
                // Those were looked at as loads. Entries of pages are checked.
                Op::Copy(_) if filled_by(&stmt.op).is_some_and(|t| self.is_loaded(t)) => {
                    let paged = |l: &OperandLoad| Some(l.filled) == filled_by(&stmt.op) && l.is_paged();
                    self.checks |= self.loads.iter().any(paged);
                }
                Op::Copy(copy) => self.scattered(copy)?,
                _ => return no("there is more in the kernel than products and what is done row by row"),
            }
        }
        Ok(())
    }

    /// Whose elements are not those of other tiles, or one number.
    fn note_results(&mut self, op: &Op) {
        let repeats = |sem| matches!(sem, Sem::Expand | Sem::RowExpand | Sem::ColExpand);
        match op {
            Op::Inst(inst) if !repeats(inst.instr.get().sem) => {
                let results = inst_operands(inst).filter(|(access, _)| *access == AccessMode::Write);
                self.computed.extend(results.filter_map(|(_, operand)| match operand {
                    Operand::Tile(t) => Some(t.tile),
                    _ => None,
                }));
            }
            Op::Copy(_) => {
                let staged = |t: &Tile| self.loads.iter().any(|l| l.staged && l.filled == *t);
                self.computed.extend(filled_by(op).filter(staged));
            }
            Op::For(f) => self.computed.extend(ramp(f, &self.defs).map(|ramp| ramp.tile.tile)),
            _ => {}
        }
    }

    /// Elements of f32, i32 or truth values, in registers.
    fn numbers(&self, t: TileRef) -> bool {
        let (loc, dtype) = self.ty(t.tile);
        matches!(loc, Loc::Vec | Loc::Acc) && matches!(dtype, DType::F32 | DType::I32 | DType::Bool)
    }

    /// The digits of a constant.
    pub(super) fn digits(&self, v: Value) -> Option<u64> {
        match self.defs.of(v)? {
            Op::Const { value, .. } => Some(value.bits),
            _ => None,
        }
    }

    /// Integers of 8 bits, two in a register.
    fn bytes(&self, t: TileRef) -> bool {
        let (loc, dtype) = self.ty(t.tile);
        loc == Loc::Vec && is_byte(dtype)
    }

    fn inst(&mut self, inst: &Inst, op: &Op, region: &Region) -> Result<(), String> {
        let row = inst.instr.get();
        let plain = inst.attrs == InstAttrs::default();
        // Of other instructions operands are whole tiles.
        let by_elements = row.sem == Sem::Store || row.sem.expr().is_some() && row.sem != Sem::Move;
        let parts = inst.operands.iter().any(|o| matches!(o, Operand::Tile(t) if self.is_part(t)));
        if parts && (!by_elements || contraction::product(op).is_some()) {
            return no(format!("{} of a part of a tile has no translation beside products", row.name));
        }
        if let Some((product, start)) = contraction::product(op) {
            return self.product(&product, start, region);
        }
        match (row.sem, &inst.operands[..]) {
            // Those were looked at as loads.
            (Sem::Load, [Operand::Tile(t), _]) if self.is_loaded(t.tile) || self.images.contains_key(&t.tile) => Ok(()),
            (Sem::Cells(_), [Operand::Tile(t), ..]) if self.is_loaded(t.tile) => Ok(()),
            (Sem::Load, [Operand::Tile(t), _]) if plain && self.beside.contains(&t.tile) => Ok(()),
            (Sem::Move, [Operand::Tile(d), Operand::Tile(a)]) if plain => match self.filled.contains(&a.tile) {
                true => Ok(()),
                false => self.moved(d, a),
            },
            (Sem::Store, [Operand::View(v), Operand::Tile(a)]) if plain => self.stored(v, a),
            (Sem::RowReduce(Reduce::Sum | Reduce::Max | Reduce::Min), [Operand::Tile(d), Operand::Tile(a)]) => {
                let f32 = self.ty(a.tile).1 == DType::F32 && self.numbers(*a) && self.numbers(*d);
                let full = matches!(self.fragment(a.tile)?, Fragment::Full(_));
                match full && f32 && self.fragment(d.tile)? == Fragment::Column && plain {
                    true => Ok(()),
                    false => no(format!("{} of this type or shape", row.name)),
                }
            }
            (sem, [Operand::Tile(d), sources @ ..]) => match sem.expr() {
                Some(expr) => self.elements(inst, d, &expr, sources),
                None => no(format!("{} has no translation beside products", row.name)),
            },
            _ => no(format!("{} has no translation beside products", row.name)),
        }
    }

    fn is_loaded(&self, tile: Tile) -> bool {
        self.loads.iter().any(|l| l.filled == tile)
    }

    /// From accumulators, and to left operands, which lie the same way.
    fn moved(&self, d: &TileRef, a: &TileRef) -> Result<(), String> {
        let ((to, dtype), (from, same)) = (self.ty(d.tile), self.ty(a.tile));
        let ways = matches!((from, to), (Loc::Acc | Loc::Vec, Loc::Vec) | (Loc::Vec, Loc::Left));
        match ways && dtype == same && self.fragment(d.tile)? == self.fragment(a.tile)? {
            true => Ok(()),
            false => no(format!("`{}` is moved, converted or to another memory", self.kernel.tiles[a.tile].name)),
        }
    }

    /// Threads store what they have, in no order: arrays that are stored to more than once are noted.
    fn stored(&mut self, view: &ViewRef, a: &TileRef) -> Result<(), String> {
        let tensor = &self.kernel.tensors[view.tensor];
        let (loc, dtype) = self.ty(a.tile);
        let fits = matches!(loc, Loc::Vec | Loc::Acc)
            && dtype == tensor.dtype
            && matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
            && view.strides.len() == 2
            && view.shape[..] == [a.valid.0, a.valid.1]
            && matches!(tensor.dir, TensorDir::Out | TensorDir::InOut)
            && (dtype == DType::F32 || matches!(self.fragment_of(a)?, Fragment::Full(_)));
        self.fragment_of(a)?;
        if !fits {
            return no(format!("`{}` is stored of another type or shape, or added to", tensor.name));
        }
        self.note_store(view.tensor);
        Ok(())
    }

    /// Rows that are stored where a table says.
    fn scattered(&mut self, copy: &Copy) -> Result<(), String> {
        let Some(ScatteredRows { tile, tensor, .. }) = scattered(self.kernel, &self.defs, copy) else {
            return no("a nest of loops is no load of an operand, and stores no rows");
        };
        let (loc, dtype) = self.ty(tile.tile);
        let data = &self.kernel.tensors[tensor];
        let fits = matches!(loc, Loc::Vec | Loc::Acc)
            && dtype == data.dtype
            && matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
            && matches!(data.dir, TensorDir::Out | TensorDir::InOut)
            && matches!(self.fragment(tile.tile)?, Fragment::Full(_));
        if !fits {
            return no(format!("`{}` is stored of another type or shape, or added to", data.name));
        }
        (self.checks, self.scatters) = (true, true);
        self.note_store(tensor);
        Ok(())
    }

    /// An array that is stored to more than once is stored to in order.
    fn note_store(&mut self, tensor: TensorId) {
        if !self.stored.insert(tensor) || self.loops > 0 {
            self.ordered.insert(tensor);
        }
    }

    fn product(&mut self, p: &Product, start: From, region: &Region) -> Result<(), String> {
        let (d, a, b) = (self.ty(p.d.tile), self.ty(p.a.tile), self.ty(p.b.tile));
        let shapes = p.d.valid == (p.a.valid.0, p.b.valid.1)
            && p.a.valid.1 == p.b.valid.0
            && (p.d.rows, p.d.cols, p.a.cols) == (self.rows, p.b.cols, p.b.rows)
            && p.a.rows == self.rows;
        if !shapes || !p.d.cols.is_multiple_of(8) || p.d.cols > 256 || !p.a.cols.is_multiple_of(16) {
            return no(
                "a product has another shape than the unit's: at most 256 columns, multiples of 8, and of 16 along k",
            );
        }
        let sums = matches!(d, (Loc::Acc | Loc::Vec, DType::F32));
        if !sums || a.1 != b.1 || matches!(start, From::Bias(_)) {
            return no("factors and sums are not of the unit's types");
        }
        if *self.factors.get_or_insert(a.1) != a.1 {
            return no("its products have factors of several types");
        }
        let whole = self.defs.number(p.a.valid.1) == Some(i64::from(p.a.cols));
        let place = |t: &TileRef| self.loads.iter().position(|l| l.operand == t.tile);
        let Some(right) = place(&p.b) else { return no("the right operand of a product is no window of an array") };
        // Elements beyond the depth are zeros on the left where they were computed; on the right whole lines.
        match place(&p.a) {
            _ if whole => {}
            Some(left) => {
                let here = |n: usize| region.iter().any(|s| filled_by(&s.op) == Some(self.loads[n].filled));
                if !here(left) || !here(right) {
                    return no("how deep a product is that reads a window in a loop differs from block to block");
                }
                self.loads[left].depth = Some(1);
                self.loads[right].depth = Some(0);
            }
            None if self.loads[right].turned && !self.ends_with_rows(right, p.b.valid.0) => {
                return no("the right operand lies along the depth of a product of computed factors");
            }
            None => {}
        }
        Ok(())
    }

    /// Whether a window whose lines are rows of its array has all their elements up to their ends, if it has fewer than
    /// a tile: bulk copies bring zeros beyond.
    fn ends_with_rows(&self, load: usize, valid: Value) -> bool {
        let OperandSource::Window(view) = &self.loads[load].source else { return false };
        let ends = || {
            let (rest, _) = self.defs.binary(valid, BinOp::Min)?;
            let end = self.defs.poly(rest)?.plus(&self.loads[load].at[0], 1)?;
            Some(end == self.defs.poly(view.strides[1])?)
        };
        ends() == Some(true)
    }

    fn elements(&self, inst: &Inst, d: &TileRef, expr: &Expr, sources: &[Operand]) -> Result<(), String> {
        let row = inst.instr.get();
        let why = || format!("{} of this type, shape or mode has no translation beside products", row.name);
        let kind = self.fragment_of(d)?;
        let mut types = vec![self.ty(d.tile).1];
        for (k, source) in sources.iter().enumerate() {
            types.push(match source {
                Operand::Tile(t) => {
                    let wanted = match row.read(k + 1) {
                        Read::Whole => self.fragment_of(t)? == kind,
                        Read::Column => self.fragment_of(t)? == Fragment::Column && !matches!(kind, Fragment::Row(_)),
                        // Of a part of a row the elements are not looked for.
                        Read::Row if self.is_part(t) || self.is_part(d) => false,
                        Read::Row => match (self.fragment(t.tile)?, kind) {
                            (Fragment::Row(c), Fragment::Full(d) | Fragment::Row(d)) => c == d,
                            _ => false,
                        },
                        Read::Turned => false,
                    };
                    // Narrow numbers are only widened.
                    let widened = matches!(self.ty(t.tile).1, DType::F16 | DType::BF16)
                        && self.ty(t.tile).0 == Loc::Vec
                        && self.ty(d.tile).1 == DType::F32
                        && matches!(expr, Expr::Convert(Expr::Arg(1), To::Mode));
                    let shift = k > 0 && shifts(expr) && self.bytes(*t);
                    let bytes = self.bytes(*t) && row.read(k + 1) == Read::Whole;
                    let halves = self.ty(t.tile) == (Loc::Vec, DType::F16) && is_pairwise(expr);
                    if !wanted || shift || !(self.numbers(*t) || widened || bytes || halves) {
                        return Err(why());
                    }
                    self.ty(t.tile).1
                }
                Operand::Scalar(v) => match self.kernel.values[*v].ty {
                    Ty::D(d @ (DType::F32 | DType::I32 | DType::Bool)) => d,
                    // Shifts by less than all digits, and masks.
                    Ty::D(d) if is_byte(d) && self.digits(*v).is_some_and(|n| !shifts(expr) || n < 8) => d,
                    _ => return Err(why()),
                },
                Operand::View(_) => return Err(why()),
            });
        }
        let InstAttrs { cmp, round, saturate, reversed, .. } = inst.attrs;
        let modes = InstAttrs { cmp, round, saturate, reversed, ..InstAttrs::default() } == inst.attrs
            && matches!(round, None | Some(RoundMode::Rint))
            && saturate != Some(true);
        if reversed && types.len() == 3 {
            types.swap(1, 2);
        }
        let narrow = matches!(types[0], DType::F16 | DType::BF16);
        let good = match expr {
            Expr::Convert(Expr::Arg(1), To::Mode) => match types[1] {
                DType::F32 => narrow || types[0] == DType::F32,
                DType::F16 | DType::BF16 => types[0] == DType::F32,
                // Halves have all of these, too.
                d if is_byte(d) => narrow || types[0] == DType::F32,
                _ => false,
            },
            _ if types.contains(&DType::F16) => is_pairwise(expr) && types.iter().all(|d| *d == DType::F16),
            _ if types.iter().any(|d| is_byte(*d)) => is_direct(expr, &types) && types.iter().all(|d| *d == types[0]),
            _ => !narrow && (is_direct(expr, &types) || is_function(expr, &types)) && formula::fits(expr, &types),
        };
        if modes && good { Ok(()) } else { Err(why()) }
    }
}

/// An integer of 8 bits.
pub fn is_byte(dtype: DType) -> bool {
    matches!(dtype, DType::U8 | DType::I8)
}

/// Whether an expression is an instruction on two numbers of f16 at once, each rounded once.
fn is_pairwise(e: &Expr) -> bool {
    matches!(e, Expr::Bin(BinOp::Add | BinOp::Sub | BinOp::Mul, Expr::Arg(1), Expr::Arg(2)))
}

/// Whether an expression is a shift.
fn shifts(e: &Expr) -> bool {
    matches!(e, Expr::Bin(BinOp::Shr | BinOp::Shl, ..))
}

/// Whether an expression of numbers of 32 bits is a function that the lowering has. Exponentials are the unit's own.
fn is_function(e: &Expr, types: &[DType]) -> bool {
    types.iter().all(|d| matches!(d, DType::F32 | DType::I32)) && !has_exponential(e)
}

fn has_exponential(e: &Expr) -> bool {
    let of = |all: &[&Expr]| all.iter().any(|e| has_exponential(e));
    match e {
        Expr::Arg(_) | Expr::Number(..) => false,
        Expr::Un(op, a) => *op == UnOp::Exp || has_exponential(a),
        Expr::Convert(a, _) => has_exponential(a),
        Expr::Bin(_, a, b) | Expr::Cmp(_, a, b) | Expr::CmpMode(a, b) | Expr::Pow(a, b) => of(&[a, b]),
        Expr::Fma(a, b, c) | Expr::Select(a, b, c) => of(&[a, b, c]),
    }
}

/// Whether each operation of an expression is an instruction, or a few.
pub fn is_direct(e: &Expr, types: &[DType]) -> bool {
    let of = |e: &Expr| is_direct(e, types);
    let Some(ty) = formula::typed(e, types) else { return false };
    let f32 = ty == DType::F32;
    match *e {
        Expr::Arg(_) => true,
        Expr::Number(..) => f32 || ty == DType::I32,
        Expr::Bin(op, a, b) => {
            let known = match op {
                BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Max | BinOp::Min => f32 || ty == DType::I32,
                BinOp::Div => f32,
                BinOp::And | BinOp::Or | BinOp::Xor => !f32,
                BinOp::Shr => ty == DType::U8,
                _ => false,
            };
            known && of(a) && of(b)
        }
        Expr::Un(op, a) => {
            let known = match op {
                UnOp::Neg | UnOp::Abs => f32 || ty == DType::I32,
                UnOp::Relu | UnOp::Exp | UnOp::Sqrt | UnOp::Rsqrt | UnOp::Recip => f32,
                UnOp::Not => ty == DType::Bool,
                _ => false,
            };
            known && of(a)
        }
        Expr::Fma(a, b, c) => f32 && of(a) && of(b) && of(c),
        Expr::Cmp(_, a, b) | Expr::CmpMode(a, b) => formula::typed(a, types) != Some(DType::Bool) && of(a) && of(b),
        Expr::Select(c, a, b) => ty != DType::Bool && of(c) && of(a) && of(b),
        Expr::Pow(..) | Expr::Convert(..) => false,
    }
}
