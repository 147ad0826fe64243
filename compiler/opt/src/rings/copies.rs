//! Copies of statements: every value that one defines has another name in the copy.

use cranelift_entity::PrimaryMap;
use ptoc_ir::tile::{Affine, NestAccess, Op, Operand, Region, TileRef, Value, ValueData, ViewRef};
use rustc_hash::FxHashMap;

/// Renames what a region defines. `None` where it has statements that are not copied.
pub(super) fn renamed(region: &mut Region, values: &mut PrimaryMap<Value, ValueData>) -> Option<()> {
    Copies { values, names: FxHashMap::default() }.region(region)
}

struct Copies<'v> {
    values: &'v mut PrimaryMap<Value, ValueData>,
    names: FxHashMap<Value, Value>,
}

impl Copies<'_> {
    fn region(&mut self, region: &mut Region) -> Option<()> {
        region.iter_mut().try_for_each(|stmt| self.op(&mut stmt.op))
    }

    fn of(&self, v: &mut Value) {
        if let Some(name) = self.names.get(v) {
            *v = *name;
        }
    }

    fn define(&mut self, v: &mut Value) {
        let name = self.values.push(self.values[*v].clone());
        self.names.insert(*v, name);
        *v = name;
    }

    fn tile(&self, t: &mut TileRef) {
        t.element.iter_mut().for_each(|v| self.of(v));
        if let Some((row, col)) = &mut t.origin {
            [row, col].into_iter().for_each(|v| self.of(v));
        }
        [&mut t.valid.0, &mut t.valid.1].into_iter().for_each(|v| self.of(v));
    }

    fn view(&self, v: &mut ViewRef) {
        let ViewRef { offset, shape, strides, .. } = v;
        [offset].into_iter().chain(shape).chain(strides).for_each(|v| self.of(v));
    }

    fn affine(&self, a: &mut Affine) {
        [&mut a.start].into_iter().chain(&mut a.strides).for_each(|v| self.of(v));
    }

    fn side(&self, side: &mut NestAccess) {
        match side {
            NestAccess::Tile { tile, row, col } => {
                self.tile(tile);
                [row, col].into_iter().for_each(|a| self.affine(a));
            }
            NestAccess::Tensor { at, tables, .. } => {
                self.affine(at);
                for table in tables {
                    self.affine(&mut table.at);
                    [&mut table.stride, &mut table.extent].into_iter().for_each(|v| self.of(v));
                }
            }
        }
    }

    fn op(&mut self, op: &mut Op) -> Option<()> {
        match op {
            Op::Const { dst, .. } | Op::Get { dst, .. } => self.define(dst),
            Op::Unary { dst, a, .. } | Op::Convert { dst, a, .. } | Op::Bitcast { dst, a } => {
                self.of(a);
                self.define(dst);
            }
            Op::Binary { dst, a, b, .. } | Op::Compare { dst, a, b, .. } => {
                [a, b].into_iter().for_each(|v| self.of(v));
                self.define(dst);
            }
            Op::Select { dst, cond, a, b } => {
                [cond, a, b].into_iter().for_each(|v| self.of(v));
                self.define(dst);
            }
            Op::Load { dst, offset, .. } => {
                self.of(offset);
                self.define(dst);
            }
            Op::Set { value, .. } => self.of(value),
            Op::Alloc { .. } => {}
            Op::Inst(inst) => {
                for operand in &mut inst.operands {
                    match operand {
                        Operand::Tile(t) => self.tile(t),
                        Operand::View(v) => self.view(v),
                        Operand::Scalar(v) => self.of(v),
                    }
                }
                inst.scratch.iter_mut().for_each(|t| self.tile(t));
            }
            Op::Copy(copy) => {
                copy.extents.iter_mut().for_each(|v| self.of(v));
                [&mut copy.dst, &mut copy.src].into_iter().for_each(|side| self.side(side));
                for guard in &mut copy.guards {
                    self.affine(&mut guard.at);
                    self.of(&mut guard.bound);
                }
                copy.fill.iter_mut().for_each(|v| self.of(v));
            }
            Op::Check { cond, args, .. } => [cond].into_iter().chain(args).for_each(|v| self.of(v)),
            Op::For(f) => {
                [&mut f.lo, &mut f.hi].into_iter().for_each(|v| self.of(v));
                self.define(&mut f.index);
                self.region(&mut f.body)?;
            }
            Op::If(i) => {
                self.of(&mut i.cond);
                self.region(&mut i.then)?;
                self.region(&mut i.els)?;
            }
            _ => return None,
        }
        Some(())
    }
}
