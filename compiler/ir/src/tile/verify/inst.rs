//! Checks of instructions against the table.

use super::{Locations, Verifier};
use crate::tile::{Inst, InstAttrs, Operand, TileRef, Ty, Value};
use crate::{formula, scalar};
use ptoc_diagnostics::codes;
use ptoc_isa::{
    AtomicOp, BinOp, Cell, FixpipeWindow, IndexExpr, Instr, InstrId, Loc, OperandKind, Primitive, Reduce, Role, SCALES,
    Sem, ShapeRule,
};
use ptoc_tensor::DType;

/// Whether the atomic exists on elements of this type.
pub(crate) fn atomic_exists(op: AtomicOp, ty: Ty) -> bool {
    match op {
        AtomicOp::Add => scalar::binary_exists(BinOp::Add, ty),
        AtomicOp::Max | AtomicOp::Min => scalar::binary_exists(BinOp::Max, ty),
        AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => scalar::binary_exists(BinOp::And, ty),
        AtomicOp::Exchange | AtomicOp::Cas => true,
    }
}

/// The type in which a matrix product of these operands accumulates, by operand and accumulator dtypes.
pub(crate) fn matmul_exists(acc: DType, left: DType, right: DType) -> bool {
    use DType::{BF16, F16, F32, I8, I32};
    // The 8-bit floats mix.
    let alike = left == right || (left.is_f8() && right.is_f8());
    alike && (matches!((acc, left), (I32, I8) | (F32, F16 | BF16 | F32) | (F16, F16)) || (acc == F32 && left.is_f8()))
}

impl Verifier<'_> {
    pub(super) fn inst(&mut self, inst: &Inst) {
        // An id from elsewhere may be of no row.
        if usize::from(inst.instr.0) >= InstrId::all().len() {
            return self.error(codes::IR_UNKNOWN_NAME, format!("there is no instruction {}", inst.instr.0));
        }
        let row = inst.instr.get();
        for scratch in &inst.scratch {
            self.tile_ref(scratch);
        }
        self.modes(row, &inst.attrs);
        if row.sem == Sem::Assign {
            return self.error(codes::IR_OPERANDS, "TASSIGN is the statement `assign`");
        }
        if self.operands(row, &inst.operands) {
            self.dtypes(row, &inst.operands);
            self.shapes(row, &inst.operands);
        }
    }

    fn modes(&mut self, row: &Instr, a: &InstAttrs) {
        let rules = [
            ("a comparison", a.cmp.is_some(), row.sem.compares(), true),
            (
                "a rounding mode",
                a.round.is_some(),
                row.sem.converts() || a.factors.is_some() || (a.stepwise && a.round.is_some()),
                true,
            ),
            ("rounded factors", a.factors.is_some(), row.sem.multiplies(), false),
            ("saturation", a.saturate.is_some(), row.sem.converts(), false),
            ("reversed operands", a.reversed, matches!(row.sem, Sem::BinaryScalar(_)) || row.scalar_first, false),
            (
                "an out-of-bounds mode",
                a.oob.is_some(),
                row.sem.gathers() || row.sem.scatters() || row.sem == Sem::Sample,
                true,
            ),
            ("folding", a.fold.is_some(), row.sem == Sem::Sample, true),
            (
                "an atomic update",
                a.atomic.is_some(),
                row.updates_memory() && (row.sem.scatters() || a.atomic == Some(AtomicOp::Add)),
                false,
            ),
            ("negative elements made 0", a.relu, matches!(row.sem, Sem::Move | Sem::Store | Sem::Fixpipe(_)), false),
            (
                "rounded steps",
                a.stepwise,
                matches!(
                    row.sem,
                    Sem::RowReduce(Reduce::Sum) | Sem::ColReduce(Reduce::Sum) | Sem::Matmul | Sem::MatmulAcc
                ),
                false,
            ),
        ];
        for (what, has, may, must) in rules {
            if has && !may {
                self.error(codes::IR_MODES, format!("{} cannot have {what}", row.name));
            } else if may && must && !has {
                self.error(codes::IR_MODES, format!("{} lacks {what}", row.name));
            }
        }
    }

    /// Number, kinds, locations and the operands themselves. False if the rest cannot be checked.
    fn operands(&mut self, row: &Instr, operands: &[Operand]) -> bool {
        if !(row.operands.len() - row.optional..=row.operands.len()).contains(&operands.len()) {
            let (want, have) = (row.operands.len(), operands.len());
            self.error(codes::IR_OPERANDS, format!("{} has {want} operands, {have} are given", row.name));
            return false;
        }
        let errors = self.errors.len();
        for (spec, operand) in row.operands.iter().zip(operands) {
            match (spec.kind, operand) {
                (OperandKind::Tile(_), Operand::Tile(t)) => {
                    self.tile_ref(t);
                    let Some(ty) = self.k.tiles.get(t.tile).map(|d| d.ty) else { continue };
                    let loc = ty.loc;
                    if let Some(layout) = ty.layout {
                        let message = format!("`{}` of {} has layout {layout}", spec.name, row.name);
                        self.error(codes::IR_OPERANDS, message);
                    }
                    let fills_acc = row.sem == Sem::Expand && loc == Loc::Acc;
                    // Moves between stores of units are the target's business, as all moves are.
                    let factors = matches!(loc, Loc::Left | Loc::Right) && row.sem == Sem::Load;
                    let moves =
                        factors || matches!(row.sem, Sem::Load | Sem::Store | Sem::Move) && Loc::UNIT.contains(&loc);
                    let anywhere = self.locations == Locations::Any;
                    if !spec.takes(loc) && !fills_acc && !moves && !anywhere {
                        self.error(codes::IR_OPERANDS, format!("`{}` of {} cannot be in {loc}", spec.name, row.name));
                    }
                }
                (OperandKind::View, Operand::View(v)) => {
                    self.view(v, spec.role == Role::Dst);
                    if matches!(row.sem, Sem::Load | Sem::Store | Sem::Fixpipe(_) | Sem::GatherRows | Sem::ScatterRows)
                        && v.shape.len() != 2
                    {
                        let message = format!("the view of {} has rank {}, not 2", row.name, v.shape.len());
                        self.error(codes::IR_WINDOW, message);
                    }
                }
                (OperandKind::Scalar(_), Operand::Scalar(v)) => {
                    self.used(*v);
                }
                (OperandKind::Pad, Operand::Scalar(v)) => {
                    self.used(*v);
                }
                (OperandKind::Address, Operand::Scalar(v)) => self.expect(*v, Ty::Index, "an address"),
                (OperandKind::Index | OperandKind::Choice(_), Operand::Scalar(v)) => {
                    self.expect(*v, Ty::Index, "an index");
                }
                (kind, _) => {
                    let kind = match kind {
                        OperandKind::Tile(_) => "a tile",
                        OperandKind::View => "a view",
                        _ => "a scalar",
                    };
                    self.error(codes::IR_OPERANDS, format!("`{}` of {} is {kind}", spec.name, row.name));
                }
            }
        }
        if row.updates && operands.first() != operands.last() {
            let message = format!("the last operand of {} is its destination", row.name);
            self.error(codes::IR_OPERANDS, message);
        }
        self.errors.len() == errors
    }

    fn dtype(&self, operand: &Operand) -> Option<Ty> {
        match operand {
            Operand::Tile(t) => self.k.tiles.get(t.tile).map(|d| Ty::D(d.ty.dtype)),
            Operand::View(v) => self.k.tensors.get(v.tensor).map(|d| Ty::D(d.dtype)),
            Operand::Scalar(v) => self.k.values.get(*v).map(|d| d.ty),
        }
    }

    fn dtypes(&mut self, row: &Instr, operands: &[Operand]) {
        let types: Vec<Ty> = operands.iter().filter_map(|o| self.dtype(o)).collect();
        let [Ty::D(d), rest @ ..] = &types[..] else { return };
        let d = *d;
        let all = |types: &[Ty], d| types.iter().all(|&t| t == Ty::D(d));
        let at = |o: &Operand, loc| matches!(o, Operand::Tile(t) if self.k.tiles[t.tile].ty.loc == loc);
        let ok = match row.sem {
            Sem::Assign => true,
            Sem::Cells(cells) => self.cells_fit(&cells.value, d, &types),
            sem if sem.expr().is_some() => true,
            Sem::RowArg(_) | Sem::ColArg(_) => matches!(d, DType::I32 | DType::U32) && rest[0] != Ty::BOOL,
            Sem::RowArgValues(_) => {
                d != DType::Bool && matches!(rest, [Ty::D(DType::I32 | DType::U32), a] if *a == Ty::D(d))
            }
            Sem::PartArg(_) => match rest {
                [a, b, Ty::D(i), ai, bi] => {
                    *a == Ty::D(d) && a == b && d != DType::Bool && i.is_int() && *ai == Ty::D(*i) && ai == bi
                }
                _ => false,
            },
            Sem::Sample => d == DType::F32 && all(rest, DType::F16),
            // Elements of several dtypes, by the table.
            Sem::Named(n) => match n.what {
                Primitive::Sort32 => d.is_float() && rest == [Ty::D(d), Ty::D(DType::U32)],
                Primitive::MergeSort => d.is_float() && rest == [Ty::D(d), Ty::Index],
                Primitive::Histogram => {
                    d == DType::U32 && matches!(rest, [Ty::D(DType::U16 | DType::U32), Ty::D(DType::U8), Ty::Index])
                }
                Primitive::Random => matches!(d, DType::U32 | DType::I32),
                Primitive::MergeTiles => d.is_float() && all(rest, d),
                Primitive::Pack => d == DType::I8 && rest == [Ty::D(DType::F32), Ty::D(DType::F32), Ty::Index],
                Primitive::Unpack => {
                    d == DType::F32 && rest == [Ty::D(DType::I8), Ty::D(DType::F32), Ty::D(DType::F32), Ty::Index]
                }
                Primitive::Places => {
                    let whole = matches!(d, DType::U32 | DType::I32);
                    whole && rest[0] != Ty::BOOL && rest[0] == rest[1] && rest[2..] == [Ty::D(d), Ty::Index]
                }
            },
            Sem::Fixpipe(f) => {
                let Ty::D(a) = rest[0] else { return };
                let scales = !f.quantised
                    || match &operands[2] {
                        Operand::Tile(_) => SCALES.iter().any(|s| rest[1] == Ty::D(*s)),
                        _ => rest[1] == Ty::D(DType::F32),
                    };
                let given = if f.quantised { vec![d, a, DType::F32] } else { vec![d, a] };
                scales && d != DType::Bool && formula::fits(f.expr(true), &given)
            }
            Sem::Scatter => {
                rest[0] == Ty::D(d)
                    && matches!(rest[1], Ty::D(i) if i.is_int())
                    && rest[2] == Ty::D(d)
                    && d != DType::Bool
            }
            sem if sem.gathers() || sem.scatters() => {
                rest[0] == Ty::D(d) && matches!(rest[1], Ty::D(DType::I32 | DType::U32))
            }
            Sem::Store | Sem::Move if at(&operands[1], Loc::Acc) => {
                rest[0] == Ty::D(d) || matches!(d, DType::F16 | DType::BF16 | DType::F32 | DType::I32)
            }
            // The way into the bias table widens to the accumulator's dtype.
            Sem::Move if at(&operands[0], Loc::Bias) => {
                rest[0] == Ty::D(d) || d == DType::F32 && matches!(rest[0], Ty::D(DType::F16 | DType::BF16))
            }
            Sem::Prefetch => true,
            Sem::Matmul | Sem::MatmulAcc | Sem::MatmulBias => match (row.sem, rest) {
                (Sem::Matmul, [Ty::D(a), Ty::D(b)]) => matmul_exists(d, *a, *b),
                (Sem::MatmulAcc, [c, Ty::D(a), Ty::D(b)]) => *c == Ty::D(d) && matmul_exists(d, *a, *b),
                (_, [Ty::D(a), Ty::D(b), bias]) => *bias == Ty::D(d) && matmul_exists(d, *a, *b),
                _ => false,
            },
            _ => all(rest, d),
        };
        if !ok {
            let list: Vec<_> = types.iter().map(|t| t.to_string()).collect();
            self.error(codes::IR_DTYPE, format!("{} cannot have operands of {}", row.name, list.join(", ")));
            return;
        }
        let exists = match row.sem {
            // The expression says which types it takes.
            sem if sem.expr().is_some() => {
                let list: Option<Vec<DType>> =
                    types.iter().map(|t| if let Ty::D(d) = t { Some(*d) } else { None }).collect();
                let scalars = row.operands.iter().zip(&types).all(|(spec, t)| match spec.kind {
                    OperandKind::Scalar(Some(d)) => *t == Ty::D(d),
                    _ => true,
                });
                scalars && sem.expr().zip(list).is_some_and(|(e, list)| formula::fits(&e, &list))
            }
            Sem::RowReduce(_) | Sem::ColReduce(_) => d != DType::Bool,
            Sem::PairSum => d.is_float(),
            Sem::Part(op) => d != DType::Bool && scalar::binary_exists(op, Ty::D(d)),
            Sem::Interleave | Sem::Deinterleave | Sem::DeinterleaveOne => d != DType::Bool,
            _ => true,
        };
        if !exists {
            let list: Vec<_> = types.iter().map(|t| t.to_string()).collect();
            let on = if all(rest, d) { d.to_string() } else { list.join(", ") };
            self.error(codes::IR_DTYPE, format!("{} does not exist on {on}", row.name));
        }
    }

    /// Whether elements are copied from operands of the destination's dtype, and looked up in operands of integers.
    fn cells_fit(&self, cell: &Cell, d: DType, types: &[Ty]) -> bool {
        let integer = |k: usize| matches!(types.get(k), Some(Ty::D(d)) if d.is_int());
        let looked = |n: &IndexExpr| n.first_look().is_none_or(|(k, ..)| integer(k));
        d != DType::Bool
            && match cell {
                Cell::At(k, r, c) => {
                    // The bits of an element; those of another dtype are as many.
                    let same = |t: &Ty| matches!(t, Ty::D(x) if *x != DType::Bool && x.size() == d.size());
                    types.get(*k).is_some_and(same) && looked(r) && looked(c)
                }
                Cell::Scalar(k) => types.get(*k) == Some(&Ty::D(d)),
                Cell::Is(_) => true,
                Cell::Of(_) => d.is_int() && types.iter().skip(1).all(|t| *t == Ty::Index || *t == Ty::D(d)),
                Cell::If(_, a, b) => self.cells_fit(a, d, types) && self.cells_fit(b, d, types),
            }
    }

    fn shapes(&mut self, row: &Instr, operands: &[Operand]) {
        // Valid shape of each operand that has one.
        let shape = |o: &Operand| match o {
            Operand::Tile(t) => Some(t.valid),
            Operand::View(v) if v.shape.len() == 2 => Some((v.shape[0], v.shape[1])),
            _ => None,
        };
        let shapes: Vec<(Value, Value)> = operands.iter().filter_map(shape).collect();
        let Some(&d) = shapes.first() else { return };
        // Operands of other kinds have been reported.
        let needed = match row.shape {
            ShapeRule::Own if row.sem == Sem::Scatter => 3,
            ShapeRule::RowParams | ShapeRule::Halves => 2,
            _ => 1,
        };
        if shapes.len() < needed {
            return;
        }
        let equal = |a: (Value, Value), b: (Value, Value)| self.same(a.0, b.0) && self.same(a.1, b.1);
        let one = |v: Value| self.scopes.index(v) == Some(1);
        // A number for each row, in a row or a column.
        let numbers =
            |idx: (Value, Value), rows| one(idx.0) && self.same(rows, idx.1) || one(idx.1) && self.same(rows, idx.0);
        let last = shapes[shapes.len() - 1];
        let middle = &shapes[1..shapes.len().max(2) - 1];
        let ok = match row.shape {
            // What the meaning demands, elaboration has checked or made into checks; the interpreter holds to it.
            ShapeRule::Own if row.sem == Sem::Scatter => equal(shapes[1], shapes[2]) && self.same(d.1, shapes[1].1),
            ShapeRule::Free | ShapeRule::Own | ShapeRule::Whole => true,
            ShapeRule::Same => shapes.iter().all(|&s| equal(d, s)),
            ShapeRule::RowReduce => {
                self.same(d.0, last.0) && one(d.1) && row.results().all(|k| shapes.get(k).is_some_and(|&s| equal(d, s)))
            }
            ShapeRule::ColReduce => self.same(d.1, last.1) && one(d.0),
            ShapeRule::RowExpand => middle.iter().all(|&s| equal(d, s)) && self.same(d.0, last.0) && one(last.1),
            ShapeRule::ColExpand => middle.iter().all(|&s| equal(d, s)) && self.same(d.1, last.1) && one(last.0),
            ShapeRule::Transpose => equal(d, (last.1, last.0)),
            ShapeRule::Gemv if !one(d.0) => false,
            ShapeRule::Matmul | ShapeRule::Gemv => return self.matmul(row, operands),
            ShapeRule::RowParams => {
                let column = |s: &(Value, Value)| self.same(d.0, s.0) && one(s.1);
                equal(d, shapes[1]) && shapes[2..].iter().all(column)
            }
            // That the smaller one lies within, and that columns are even, is elaboration's to see to: the interpreter
            // asks.
            ShapeRule::Part => shapes.chunks(3).all(|s| match *s {
                [x, a, b] => equal(x, d) && equal(a, shapes[1]) && equal(b, shapes[2]) && (equal(x, a) || equal(x, b)),
                _ => false,
            }),
            ShapeRule::EvenColumns => shapes.iter().all(|&s| equal(d, s)),
            ShapeRule::Fixpipe => self.fixpipe_shapes(row, operands),
            ShapeRule::Counted => match shapes[..] {
                [d, a, k, counts] => [a, k, counts].iter().all(|s| self.same(d.0, s.0)) && one(k.1) && one(counts.1),
                _ => false,
            },
            ShapeRule::Halves => equal(d, shapes[1]) && self.same(d.0, last.0),
            ShapeRule::Sample => self.sample(operands),
            ShapeRule::GatherRows => match shapes[..] {
                [d, table, idx] => self.same(d.1, table.1) && numbers(idx, d.0),
                _ => false,
            },
            ShapeRule::ScatterRows => match shapes[..] {
                [table, a, idx] => self.same(a.1, table.1) && numbers(idx, a.0),
                _ => false,
            },
            ShapeRule::Gather | ShapeRule::Scattered => {
                match (&operands[usize::from(row.sem == Sem::ScatterTo)], &operands[2]) {
                    (Operand::Tile(a), Operand::Tile(b)) => equal(a.valid, b.valid),
                    _ => true,
                }
            }
        };
        if !ok {
            let list: Vec<_> = shapes.iter().map(|(r, c)| format!("{r} x {c}")).collect();
            self.error(codes::IR_SHAPE, format!("{} cannot have operands of {}", row.name, list.join(", ")));
        }
    }

    /// All of one shape where there is no window; scales are a row of what is moved.
    fn fixpipe_shapes(&self, row: &Instr, operands: &[Operand]) -> bool {
        let Sem::Fixpipe(f) = row.sem else { return false };
        let Some(Operand::Tile(a)) = operands.get(1) else { return false };
        let dst = match operands.first() {
            Some(Operand::Tile(d)) => d.valid,
            Some(Operand::View(v)) if v.shape.len() == 2 => (v.shape[0], v.shape[1]),
            _ => return false,
        };
        let moved = if f.window == FixpipeWindow::OfSource { dst } else { a.valid };
        let whole = f.window != FixpipeWindow::Whole || (self.same(dst.0, a.valid.0) && self.same(dst.1, a.valid.1));
        let scales = match operands.get(2) {
            Some(Operand::Tile(s)) if f.quantised => {
                self.scopes.index(s.valid.0) == Some(1) && self.same(s.valid.1, moved.1)
            }
            _ => true,
        };
        whole && scales
    }

    /// d is 1 x c; map h x w x c, line 4, weights s, offsets s x 2.
    fn sample(&self, operands: &[Operand]) -> bool {
        let two = |v: Value| self.scopes.index(v) == Some(2);
        match operands {
            [Operand::Tile(d), Operand::View(map), Operand::View(line), Operand::View(weights), offsets @ ..] => {
                let ranks = (map.shape.len(), line.shape.len(), weights.shape.len()) == (3, 1, 1);
                let moved = match offsets {
                    [] => true,
                    [Operand::View(o), ..] => {
                        ranks && o.shape.len() == 2 && self.same(o.shape[0], weights.shape[0]) && two(o.shape[1])
                    }
                    _ => false,
                };
                ranks
                    && moved
                    && self.scopes.index(d.valid.0) == Some(1)
                    && self.same(d.valid.1, map.shape[2])
                    && self.scopes.index(line.shape[0]) == Some(4)
            }
            _ => false,
        }
    }

    fn matmul(&mut self, row: &Instr, operands: &[Operand]) {
        let tiles: Vec<&TileRef> =
            operands.iter().filter_map(|o| if let Operand::Tile(t) = o { Some(t) } else { None }).collect();
        let (d, start, a, b) = match (row.sem, &tiles[..]) {
            (Sem::Matmul, [d, a, b]) => (d, None, a, b),
            (Sem::MatmulAcc, [d, c, a, b]) => (d, Some(c), a, b),
            (_, [d, a, b, bias]) => (d, Some(bias), a, b),
            _ => return,
        };
        let bias = row.sem == Sem::MatmulBias;
        let valid_ok = self.same(d.valid.0, a.valid.0)
            && self.same(d.valid.1, b.valid.1)
            && self.same(a.valid.1, b.valid.0)
            && start.is_none_or(|s| {
                self.same(s.valid.1, d.valid.1)
                    && if bias { self.scopes.index(s.valid.0) == Some(1) } else { self.same(s.valid.0, d.valid.0) }
            });
        if !valid_ok {
            let list: Vec<_> = tiles.iter().map(|t| format!("{} x {}", t.valid.0, t.valid.1)).collect();
            self.error(codes::IR_SHAPE, format!("{} cannot have operands of {}", row.name, list.join(", ")));
        }
        let capacity_ok = d.rows == a.rows
            && d.cols == b.cols
            && a.cols == b.rows
            && start.is_none_or(|s| s.cols == d.cols && (bias || s.rows == d.rows));
        if !capacity_ok {
            let list: Vec<_> = tiles.iter().map(|t| format!("{} x {}", t.rows, t.cols)).collect();
            self.error(codes::IR_SHAPE, format!("{} cannot have capacities of {}", row.name, list.join(", ")));
        }
    }
}
