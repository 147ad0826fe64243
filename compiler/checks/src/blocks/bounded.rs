//! Arguments of type `index` that have bounds: by `where`, or because so many blocks are launched. Products with others
//! may wrap around, so nothing is known of them.

use ptoc_ir::analysis::poly::Definitions;
use ptoc_ir::tile::{Kernel, Op, Ty, Value};
use ptoc_isa::{BinOp, CmpOp};
use rustc_hash::FxHashSet;

/// The arguments with bounds.
pub(super) fn find(kernel: &Kernel, defs: &Definitions<'_>) -> FxHashSet<Value> {
    let mut found = Bounded { defs, known: kernel.dims.values().map(|d| d.value).collect() };
    let arguments: FxHashSet<Value> =
        kernel.scalars.iter().map(|s| s.value).filter(|v| kernel.values[*v].ty == Ty::Index).collect();
    for dim in &kernel.grid {
        found.factors(dim.extent, &arguments, 0);
    }
    let mut conditions = Vec::new();
    for stmt in &kernel.prologue {
        if let Op::Check { cond, .. } = stmt.op {
            comparisons(defs, cond, &mut conditions);
        }
    }
    // One may be bounded by another.
    for _ in 0..3 {
        let (mut above, mut below) = (FxHashSet::default(), FxHashSet::default());
        for &(op, a, b) in &conditions {
            for (op, a, b) in [(op, a, b), (op.mirrored(), b, a)] {
                if !arguments.contains(&a) || !found.is_small(b, 0) {
                    continue;
                }
                if matches!(op, CmpOp::Lt | CmpOp::Le | CmpOp::Eq) {
                    above.insert(a);
                }
                if matches!(op, CmpOp::Gt | CmpOp::Ge | CmpOp::Eq) {
                    below.insert(a);
                }
            }
        }
        found.known.extend(above.intersection(&below));
    }
    found.known
}

fn comparisons(defs: &Definitions<'_>, cond: Value, out: &mut Vec<(CmpOp, Value, Value)>) {
    match defs.of(cond) {
        Some(&Op::Compare { op, a, b, .. }) => out.push((op, a, b)),
        Some(&Op::Binary { op: BinOp::And, a, b, .. }) => {
            comparisons(defs, a, out);
            comparisons(defs, b, out);
        }
        _ => {}
    }
}

struct Bounded<'d, 'k> {
    defs: &'d Definitions<'k>,
    known: FxHashSet<Value>,
}

impl Bounded<'_, '_> {
    /// What an extent of the grid is the sum or product of: that many blocks can be launched.
    fn factors(&mut self, v: Value, arguments: &FxHashSet<Value>, depth: u32) {
        if arguments.contains(&v) {
            self.known.insert(v);
        }
        if let Some(&Op::Binary { op: BinOp::Add | BinOp::Mul, a, b, .. }) = self.defs.of(v).filter(|_| depth < 8) {
            self.factors(a, arguments, depth + 1);
            self.factors(b, arguments, depth + 1);
        }
    }

    /// Whether it is computed from bounded numbers alone.
    fn is_small(&self, v: Value, depth: u32) -> bool {
        if self.known.contains(&v) {
            return true;
        }
        match self.defs.of(v) {
            Some(Op::Const { value, .. }) => value.as_index().is_some_and(|n| n.unsigned_abs() < 1 << 40),
            Some(op) if op.is_pure() && depth < 8 => {
                let mut all = true;
                op.for_each_use(&mut |u| all = all && self.is_small(u, depth + 1));
                all
            }
            _ => false,
        }
    }
}
