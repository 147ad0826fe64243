//! What a statement defines, uses and contains.

use super::{Affine, NestAccess, Op, Operand, PrintPart, Region, TensorId, TileRef, Value, ViewRef};

impl TileRef {
    /// Calls `f` on every value that the reference uses.
    pub fn for_each_value(&self, f: &mut dyn FnMut(Value)) {
        self.element.into_iter().for_each(&mut *f);
        if let Some((row, col)) = self.origin {
            f(row);
            f(col);
        }
        f(self.valid.0);
        f(self.valid.1);
    }
}

impl ViewRef {
    /// Calls `f` on every value that the reference uses.
    pub fn for_each_value(&self, f: &mut dyn FnMut(Value)) {
        f(self.offset);
        self.shape.iter().chain(&self.strides).copied().for_each(f);
    }
}

impl Affine {
    /// Calls `f` on every value that the function uses.
    pub fn for_each_value(&self, f: &mut dyn FnMut(Value)) {
        f(self.start);
        self.strides.iter().copied().for_each(f);
    }
}

impl NestAccess {
    /// Calls `f` on every value that the side uses.
    pub fn for_each_value(&self, f: &mut dyn FnMut(Value)) {
        match self {
            NestAccess::Tile { tile, row, col } => {
                tile.for_each_value(f);
                row.for_each_value(f);
                col.for_each_value(f);
            }
            NestAccess::Tensor { at, tables, .. } => {
                at.for_each_value(f);
                for table in tables {
                    table.at.for_each_value(f);
                    f(table.stride);
                    f(table.extent);
                }
            }
        }
    }

    /// The tile, if it is one.
    pub fn tile(&self) -> Option<&TileRef> {
        match self {
            NestAccess::Tile { tile, .. } => Some(tile),
            NestAccess::Tensor { .. } => None,
        }
    }

    /// The tensor, if it is one. Its tables are tensors too: [`NestAccess::tables`].
    pub fn tensor(&self) -> Option<TensorId> {
        match self {
            NestAccess::Tile { .. } => None,
            NestAccess::Tensor { tensor, .. } => Some(*tensor),
        }
    }

    /// The tensors that are looked into for the place of an element, whichever way the element goes.
    pub fn tables(&self) -> impl Iterator<Item = TensorId> + '_ {
        let tables = match self {
            NestAccess::Tile { .. } => &[],
            NestAccess::Tensor { tables, .. } => &tables[..],
        };
        tables.iter().map(|t| t.tensor)
    }
}

impl Op {
    /// The value that the statement itself defines (a `for`'s index is defined in its body and not meant here).
    pub fn def(&self) -> Option<Value> {
        match *self {
            Op::Const { dst, .. }
            | Op::Unary { dst, .. }
            | Op::Binary { dst, .. }
            | Op::Compare { dst, .. }
            | Op::Select { dst, .. }
            | Op::Convert { dst, .. }
            | Op::Bitcast { dst, .. }
            | Op::Get { dst, .. }
            | Op::Load { dst, .. }
            | Op::Atomic { dst, .. }
            | Op::TileGet { dst, .. } => Some(dst),
            _ => None,
        }
    }

    /// Calls `f` on every value that the statement itself uses, in operand order. Values used inside its regions are
    /// not included; the condition of a `while`, which its head defines, is.
    pub fn for_each_use(&self, f: &mut dyn FnMut(Value)) {
        match self {
            Op::Const { .. }
            | Op::Get { .. }
            | Op::Alloc { .. }
            | Op::Scope(_)
            | Op::Break(_)
            | Op::Continue(_)
            | Op::Leave(_) => {}
            Op::Unary { a, .. } | Op::Convert { a, .. } | Op::Bitcast { a, .. } => f(*a),
            Op::Binary { a, b, .. } | Op::Compare { a, b, .. } => [*a, *b].into_iter().for_each(f),
            Op::Select { cond, a, b, .. } => [*cond, *a, *b].into_iter().for_each(f),
            Op::Set { value, .. } => f(*value),
            Op::Load { offset, .. } => f(*offset),
            Op::Store { offset, value, .. } => [*offset, *value].into_iter().for_each(f),
            Op::Atomic { offset, expected, value, .. } => {
                f(*offset);
                expected.iter().copied().for_each(&mut *f);
                f(*value);
            }
            Op::TileGet { tile, row, col, .. } => {
                tile.for_each_value(f);
                [*row, *col].into_iter().for_each(f);
            }
            Op::TileSet { tile, row, col, value } => {
                tile.for_each_value(f);
                [*row, *col, *value].into_iter().for_each(f);
            }
            Op::Assign { element, addr, .. } => element.iter().chain([addr]).copied().for_each(f),
            Op::Inst(inst) => {
                for operand in &inst.operands {
                    match operand {
                        Operand::Tile(t) => t.for_each_value(f),
                        Operand::View(v) => v.for_each_value(f),
                        Operand::Scalar(v) => f(*v),
                    }
                }
                inst.scratch.iter().for_each(|t| t.for_each_value(f));
            }
            Op::Copy(copy) => {
                copy.extents.iter().copied().for_each(&mut *f);
                copy.dst.for_each_value(f);
                copy.src.for_each_value(f);
                for guard in &copy.guards {
                    guard.at.for_each_value(f);
                    f(guard.bound);
                }
                copy.fill.iter().copied().for_each(f);
            }
            Op::Mma(mma) => {
                [&mma.m, &mma.n, &mma.k].into_iter().flatten().copied().for_each(&mut *f);
                [&mma.acc, &mma.a, &mma.b].into_iter().for_each(|side| side.for_each_value(f));
            }
            Op::Check { cond, args, .. } => [cond].into_iter().chain(args).copied().for_each(f),
            Op::Print { parts } => parts.iter().for_each(|part| match part {
                PrintPart::Text(_) => {}
                PrintPart::Scalar(v) => f(*v),
                PrintPart::Tile(t) => t.for_each_value(f),
            }),
            Op::Sync(sync) => sync.for_each_value(f),
            Op::For(x) => [x.lo, x.hi].into_iter().for_each(f),
            Op::If(x) => f(x.cond),
            Op::While(x) => f(x.cond),
        }
    }

    /// The regions inside, in the order in which they run.
    pub fn regions(&self) -> impl Iterator<Item = &Region> {
        let (a, b) = match self {
            Op::For(x) => (Some(&x.body), None),
            Op::If(x) => (Some(&x.then), Some(&x.els)),
            Op::While(x) => (Some(&x.head), Some(&x.body)),
            Op::Scope(x) => (Some(&x.body), None),
            _ => (None, None),
        };
        a.into_iter().chain(b)
    }

    /// Every reference to a tile of this statement itself.
    pub fn for_each_tile_mut(&mut self, f: &mut dyn FnMut(&mut TileRef)) {
        let side = |side: &mut NestAccess, f: &mut dyn FnMut(&mut TileRef)| {
            if let NestAccess::Tile { tile, .. } = side {
                f(tile);
            }
        };
        match self {
            Op::TileGet { tile, .. } | Op::TileSet { tile, .. } => f(tile),
            Op::Inst(inst) => {
                for operand in &mut inst.operands {
                    if let Operand::Tile(t) = operand {
                        f(t);
                    }
                }
                inst.scratch.iter_mut().for_each(f);
            }
            Op::Copy(copy) => [&mut copy.src, &mut copy.dst].into_iter().for_each(|s| side(s, f)),
            Op::Mma(mma) => [&mut mma.a, &mut mma.b, &mut mma.acc].into_iter().for_each(|s| side(s, f)),
            Op::Print { parts } => parts.iter_mut().for_each(|p| {
                if let PrintPart::Tile(t) = p {
                    f(t);
                }
            }),
            _ => {}
        }
    }

    /// Scalar code without effects: it can be repeated, moved to any place that its operands dominate, or dropped.
    pub fn is_pure(&self) -> bool {
        matches!(
            self,
            Op::Const { .. }
                | Op::Unary { .. }
                | Op::Binary { .. }
                | Op::Compare { .. }
                | Op::Select { .. }
                | Op::Convert { .. }
                | Op::Bitcast { .. }
        )
    }
}
