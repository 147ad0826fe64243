//! Definitions and induction variables: how the scalars of a kernel come about, and with which loop they change.

use super::code::{Def, HazardProgram};
use super::domain::AffineValue;
use super::flat::Flat;
use super::poly::{PolyInterval, constant, poly};
use super::touch::{TouchKind, TouchedObject, touches};
use cranelift_entity::EntitySet;
use ptoc_ir::tile::{Op, Region, TensorId, Ty, Value};
use ptoc_isa::{BinOp, CmpOp};
use rustc_hash::FxHashMap;

impl<'k> Flat<'k> {
    /// Notes how values come about. Operands are the first values that are the same.
    pub(super) fn define(&mut self, region: &'k Region) {
        for stmt in region {
            if let Some(dst) = stmt.op.def() {
                self.define_value(dst, &stmt.op);
            }
            let place = match &stmt.op {
                Op::Load { dst, tensor, .. } => Some((*dst, (Some(*tensor), None))),
                Op::TileGet { dst, tile, .. } => Some((*dst, (None, Some(tile.tile)))),
                _ => None,
            };
            if let Some((dst, place)) = place {
                let first = *self.readers.entry(place).or_insert(dst);
                self.code.read.insert(dst, first);
            }
            match &stmt.op {
                Op::For(f) => {
                    self.code.slots.push(Some(f.index));
                    self.code.defs[f.index] = Def::Slot(self.code.slots.len() - 1);
                    self.code.bounds.insert(f.index, f.hi);
                }
                Op::While(w) => {
                    if let Some(driver) = self.drivers.get(&w.label) {
                        self.code.bounds.insert(driver.index, driver.hi);
                        for &again in &driver.same {
                            self.code.defs[again] = Def::Same(driver.index);
                        }
                    }
                }
                _ => {}
            }
            stmt.op.regions().for_each(|r| self.define(r));
        }
    }

    fn define_value(&mut self, dst: Value, op: &Op) {
        if matches!(self.code.defs[dst], Def::Same(_)) {
            return;
        }
        let kernel = self.code.kernel;
        let ints = |v: Value| matches!(kernel.values[v].ty, Ty::Index | Ty::BOOL);
        let root = |v: Value| self.code.root(v);
        let def = match op {
            Op::Const { value, .. } => match value.ty {
                Ty::Index => Def::Const(AffineValue::of(value.bits as i64)),
                ty if ptoc_ir::scalar::is_int(ty) || ty == Ty::BOOL => {
                    let n = i64::try_from(ptoc_ir::scalar::to_int(ty, value.bits));
                    n.map_or(Def::Vague, |n| Def::Const(AffineValue::of(n)))
                }
                _ => Def::Bits(value.bits),
            },
            Op::Unary { op, a, .. } if ints(*a) => Def::Unary(*op, root(*a)),
            Op::Binary { op, a, b, .. } if ints(*a) => {
                let (a, b) = (root(*a), root(*b));
                let either = matches!(op, BinOp::Add | BinOp::Mul | BinOp::Min | BinOp::Max);
                // The constant, or else what was computed later, is the second.
                let turn = either
                    && (matches!(self.code.defs[a], Def::Const(_)), a)
                        > (matches!(self.code.defs[b], Def::Const(_)), b);
                if turn { Def::Binary(*op, b, a) } else { Def::Binary(*op, a, b) }
            }
            Op::Compare { op, a, b, .. } if ptoc_ir::scalar::float(kernel.values[*a].ty).is_none() => {
                let (a, b) = (root(*a), root(*b));
                let last = (*op == CmpOp::Eq && kernel.values[a].ty == Ty::Index).then(|| last_tile(&self.code, a, b));
                last.flatten().unwrap_or(Def::Compare(*op, a, b))
            }
            Op::Compare { op, a, b, .. } => Def::Test(*op, root(*a), root(*b)),
            Op::Select { cond, a, b, .. } if ints(*a) => Def::Select(root(*cond), root(*a), root(*b)),
            Op::Convert { a, .. } if kernel.values[dst].ty == Ty::Index && narrow(kernel.values[*a].ty) => {
                Def::Same(root(*a))
            }
            Op::Load { tensor, offset, .. } if self.fixed.contains(tensor) => {
                let offset = root(*offset);
                match self.loads.get(&(*tensor, offset)) {
                    Some(&first) => Def::Same(first),
                    None => {
                        self.loads.insert((*tensor, offset), dst);
                        self.code.loaded.insert(dst, (*tensor, offset));
                        Def::Given(unsigned(kernel.values[dst].ty))
                    }
                }
            }
            op if op.is_pure() => {
                let mut operands = Vec::new();
                op.for_each_use(&mut |v| operands.push(v));
                self.code.opaque.insert(dst, operands);
                Def::Vague
            }
            op => {
                if matches!(op, Op::Get { .. }) {
                    self.code.variables.insert(dst);
                }
                self.code.slots.push(Some(dst));
                Def::Slot(self.code.slots.len() - 1)
            }
        };
        self.code.defs[dst] = match def {
            Def::Unary(..)
            | Def::Binary(..)
            | Def::Compare(..)
            | Def::AtMost(..)
            | Def::Select(..)
            | Def::Bits(_)
            | Def::Test(..) => match *self.same.entry((def, kernel.values[dst].ty)).or_insert(dst) {
                first if first == dst => def,
                first => Def::Same(first),
            },
            def => def,
        };
    }

    /// What is computed changes with the loops of what it is computed from, and not with those around it.
    pub(super) fn homes(&mut self) {
        let mut homes = Homes {
            offsets: self.loads.iter().map(|((_, offset), v)| (*v, *offset)).collect(),
            done: FxHashMap::default(),
        };
        let all = self.code.kernel.values.keys();
        let found: Vec<_> = all.filter_map(|v| Some((v, homes.of(self, v)?))).collect();
        self.code.home = found.into_iter().collect();
    }
}

/// The innermost loop of each value.
struct Homes {
    /// Where loads read that are always the same.
    offsets: FxHashMap<Value, Value>,
    done: FxHashMap<Value, Option<usize>>,
}

impl Homes {
    fn of(&mut self, flat: &Flat, v: Value) -> Option<usize> {
        if let Some(&l) = self.done.get(&v) {
            return l;
        }
        let mut operands = Vec::new();
        let l = match flat.code.defs[v] {
            Def::Slot(_) | Def::Vague => flat.code.home.get(&v).copied(),
            def => {
                match def {
                    Def::Given(_) => operands.extend(self.offsets.get(&v)),
                    _ => flat.operands(v, &mut operands),
                }
                // Of loops in one another the inner one has the greater number.
                operands.into_iter().filter_map(|v| self.of(flat, v)).max()
            }
        };
        self.done.insert(v, l);
        l
    }
}

/// An integer type all of whose values are `index` values.
fn narrow(ty: Ty) -> bool {
    ptoc_ir::scalar::is_int(ty) && ptoc_ir::scalar::width(ty) <= 32 || ty == Ty::BOOL
}

/// Whether nothing in the region writes the tensor.
pub(super) fn only_read(used: &EntitySet<Value>, region: &Region, tensor: TensorId) -> bool {
    region.iter().all(|stmt| {
        let mut touches = touches(stmt, used).into_iter();
        let written = touches.any(|t| {
            t.kind != TouchKind::Read
                && matches!(t.what, TouchedObject::View(g, ..) | TouchedObject::Element(g, _) | TouchedObject::Tensor(g)
                    if g == tensor)
        });
        !written && stmt.op.regions().all(|r| only_read(used, r, tensor))
    })
}

/// `j * k + min(d - j * k, k) == d` as the condition that tile j is the last one. As `j` is less than
/// `bound = (d + k - 1) / k`, that is `bound <= j + 1`, which says how far it is from the end of its loop.
fn last_tile(code: &HazardProgram, a: Value, b: Value) -> Option<Def> {
    let tile = |end: Value, all: Value| {
        let Def::Binary(BinOp::Add, p, q) = code.defs[end] else { return None };
        [(p, q), (q, p)].into_iter().find_map(|(from, length)| {
            let Def::Binary(BinOp::Min, rest, most) = code.defs[length] else { return None };
            let most = constant(code, most)?;
            // The end is the end of all if the rest is no more than a tile.
            let left = poly(code, rest, 0)?;
            let difference = poly(code, from, 0)?.add(&left)?.add(&poly(code, all, 0)?.scaled(-1)?)?;
            if difference.constant() != Some(0) {
                return None;
            }
            left.terms().iter().find_map(|(symbols, k)| {
                let (&[counter], k) = (&symbols[..], -k) else { return None };
                let bound = code.root(*code.bounds.get(&counter).filter(|_| k > 0)?);
                let Def::Binary(BinOp::Div, sum, by) = code.defs[bound] else { return None };
                if constant(code, by) != Some(k) {
                    return None;
                }
                // left <= most, where left + k * counter + e = sum: sum <= k * counter + most + e.
                let whole = left.add(&PolyInterval::symbol(counter).scaled(k)?)?;
                let e = poly(code, sum, 0)?.add(&whole.scaled(-1)?)?.constant()?;
                let more = most.checked_add(e)?.checked_sub(k - 1)?;
                (more.rem_euclid(k) == 0).then(|| Def::AtMost(bound, counter, more / k))
            })
        })
    };
    tile(a, b).or_else(|| tile(b, a))
}

pub(super) fn unsigned(ty: Ty) -> bool {
    ptoc_ir::scalar::is_int(ty) && !ptoc_ir::scalar::is_signed(ty)
}
