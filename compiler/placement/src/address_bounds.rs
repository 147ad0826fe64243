//! Address bounds: how far the addresses reach that a kernel computes while it runs.
//!
//! An upper bound of every TASSIGN, from constants, loop bounds, remainders, and what the launch's checks say. It is
//! for the map of the memories; whether an address is right is for [`crate::addresses`] to say.

use crate::access::regions;
use ptoc_ir::tile::{Kernel, Op, Stmt, Tile, Ty, Value};
use ptoc_isa::{BinOp, CmpOp};
use rustc_hash::FxHashMap;

/// Steps of an evaluation, which may meet a value on several ways.
const FUEL: u32 = 2_000;

/// For each tile with run-time addresses: one past the last byte that it may have; `None` if nothing bounds it.
pub fn ends(kernel: &Kernel) -> FxHashMap<Tile, Option<u64>> {
    let mut bounds = Bounds::default();
    bounds
        .lows
        .extend(kernel.dims.values().map(|d| d.value).chain(kernel.grid.iter().map(|g| g.index)).map(|v| (v, 0)));
    bounds.note(kernel, &kernel.prologue);
    bounds.launch(&kernel.prologue);
    bounds.note(kernel, &kernel.body);
    let mut out = FxHashMap::default();
    bounds.assigns(kernel, &kernel.body, &mut out);
    out
}

#[derive(Clone, Copy)]
enum Def {
    Const(i64),
    Binary(BinOp, Value, Value),
    Compare(CmpOp, Value, Value),
    And(Value, Value),
    /// A loop's, with its bounds.
    Index(Value, Value),
}

#[derive(Default)]
struct Bounds {
    defs: FxHashMap<Value, Def>,
    lows: FxHashMap<Value, i64>,
    highs: FxHashMap<Value, i64>,
}

impl Bounds {
    fn note(&mut self, kernel: &Kernel, region: &[Stmt]) {
        for stmt in region {
            match &stmt.op {
                Op::Const { dst, value } => self.defs.extend(value.as_index().map(|n| (*dst, Def::Const(n)))),
                Op::Binary { dst, op, a, b } if kernel.values[*a].ty == Ty::Index => {
                    self.defs.insert(*dst, Def::Binary(*op, *a, *b));
                }
                Op::Binary { dst, op: BinOp::And, a, b } if kernel.values[*a].ty == Ty::BOOL => {
                    self.defs.insert(*dst, Def::And(*a, *b));
                }
                Op::Compare { dst, op, a, b } if kernel.values[*a].ty == Ty::Index => {
                    self.defs.insert(*dst, Def::Compare(*op, *a, *b));
                }
                Op::For(f) => {
                    self.defs.insert(f.index, Def::Index(f.lo, f.hi));
                }
                _ => {}
            }
            regions(&stmt.op).into_iter().for_each(|r| self.note(kernel, r));
        }
    }

    /// What the launch is asked for.
    fn launch(&mut self, prologue: &[Stmt]) {
        let checks = prologue.iter().filter_map(|stmt| match &stmt.op {
            Op::Check { cond, .. } => Some(*cond),
            _ => None,
        });
        let mut open: Vec<Value> = checks.collect();
        while let Some(cond) = open.pop() {
            let (op, a, b) = match self.defs.get(&cond) {
                Some(&Def::Compare(op, a, b)) => (op, a, b),
                Some(&Def::And(a, b)) => {
                    open.extend([a, b]);
                    continue;
                }
                _ => continue,
            };
            let constant = |v: Value| match self.defs.get(&v) {
                Some(Def::Const(n)) => Some(*n),
                _ => None,
            };
            let (v, op, n) = match (constant(a), constant(b)) {
                (None, Some(n)) => (a, op, n),
                (Some(n), None) => (b, op.mirrored(), n),
                _ => continue,
            };
            let (low, high) = match op {
                CmpOp::Lt => (None, n.checked_sub(1)),
                CmpOp::Le => (None, Some(n)),
                CmpOp::Gt => (n.checked_add(1), None),
                CmpOp::Ge => (Some(n), None),
                CmpOp::Eq => (Some(n), Some(n)),
                CmpOp::Ne => (None, None),
            };
            self.lows.extend(low.map(|n| (v, n)));
            self.highs.extend(high.map(|n| (v, n)));
        }
    }

    fn assigns(&self, kernel: &Kernel, region: &[Stmt], out: &mut FxHashMap<Tile, Option<u64>>) {
        for stmt in region {
            if let Op::Assign { tile, addr, .. } = &stmt.op {
                let high = self.range(*addr, &mut { FUEL }).1.and_then(|n| u64::try_from(n).ok());
                let end = high.and_then(|at| at.checked_add(kernel.tiles[*tile].ty.bytes()));
                let slot = out.entry(*tile).or_insert(Some(0));
                *slot = slot.zip(end).map(|(a, b)| a.max(b));
            }
            regions(&stmt.op).into_iter().for_each(|r| self.assigns(kernel, r, out));
        }
    }

    /// The least and the largest value, as far as they are known.
    fn range(&self, v: Value, fuel: &mut u32) -> (Option<i64>, Option<i64>) {
        let Some(left) = fuel.checked_sub(1) else { return (None, None) };
        *fuel = left;
        let known = (self.lows.get(&v).copied(), self.highs.get(&v).copied());
        let (low, high) = match self.defs.get(&v) {
            Some(Def::Const(n)) => (Some(*n), Some(*n)),
            Some(Def::Index(lo, hi)) => {
                (self.range(*lo, fuel).0, self.range(*hi, fuel).1.and_then(|n| n.checked_sub(1)))
            }
            Some(Def::Binary(op, a, b)) => {
                let (a, b) = (self.range(*a, fuel), self.range(*b, fuel));
                binary(*op, a, b)
            }
            Some(Def::Compare(..) | Def::And(..)) | None => (None, None),
        };
        (low.max(known.0), high.into_iter().chain(known.1).min())
    }
}

type Range = (Option<i64>, Option<i64>);

fn binary(op: BinOp, a: Range, b: Range) -> Range {
    let both = |x: Option<i64>, y: Option<i64>, f: fn(i64, i64) -> Option<i64>| x.zip(y).and_then(|(x, y)| f(x, y));
    let positive = |r: Range| r.0 == r.1 && r.0.is_some_and(|n| n > 0);
    match op {
        BinOp::Add => (both(a.0, b.0, i64::checked_add), both(a.1, b.1, i64::checked_add)),
        BinOp::Sub => (both(a.0, b.1, i64::checked_sub), both(a.1, b.0, i64::checked_sub)),
        BinOp::Mul if a.0.is_some_and(|n| n >= 0) && b.0.is_some_and(|n| n >= 0) => {
            (both(a.0, b.0, i64::checked_mul), both(a.1, b.1, i64::checked_mul))
        }
        BinOp::Mul if positive(b) => (both(a.0, b.0, i64::checked_mul), both(a.1, b.0, i64::checked_mul)),
        BinOp::Mul if positive(a) => (both(b.0, a.0, i64::checked_mul), both(b.1, a.0, i64::checked_mul)),
        // Floors, as the language does.
        BinOp::Div if positive(b) => {
            let div = |x: i64, y: i64| x.checked_div_euclid(y);
            (both(a.0, b.0, div), both(a.1, b.0, div))
        }
        BinOp::Rem if positive(b) => (Some(0), b.0.map(|n| n - 1)),
        BinOp::Min => (both(a.0, b.0, |x, y| Some(x.min(y))), a.1.into_iter().chain(b.1).min()),
        BinOp::Max => (a.0.max(b.0), both(a.1, b.1, |x, y| Some(x.max(y)))),
        _ => (None, None),
    }
}
