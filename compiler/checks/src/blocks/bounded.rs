//! Arguments of type `index` that have bounds: by `where`, or because so many blocks are launched. Products with others
//! may wrap around, so nothing is known of them.

use ptoc_diagnostics::codes;
use ptoc_ir::analysis::poly::Definitions;
use ptoc_ir::tile::{Kernel, Op, Ty, Value};
use ptoc_isa::{BinOp, CmpOp};
use rustc_hash::FxHashSet;

/// The arguments with bounds.
pub(super) fn find(kernel: &Kernel, defs: &Definitions<'_>) -> FxHashSet<Value> {
    let known = kernel.dims.values().map(|d| d.value).collect();
    let mut found = Bounded { defs, known, exact: FxHashSet::default() };
    let arguments: FxHashSet<Value> =
        kernel.scalars.iter().map(|s| s.value).filter(|v| kernel.values[*v].ty == Ty::Index).collect();
    for dim in &kernel.grid {
        found.factors(dim.extent, &arguments, 0);
    }
    let mut conditions = Vec::new();
    for stmt in &kernel.prologue {
        if let Op::Check { cond, check, args } = &stmt.op {
            comparisons(defs, *cond, &mut conditions);
            if let (codes::INDEX_OVERFLOW, [a, b]) = (kernel.checks[*check].code, &args[..]) {
                found.exact.insert((*a, *b));
            }
        }
    }
    // One may be bounded by another, from one side alone: `0 <= a, a <= b, b <= M`.
    let (mut above, mut below) = (FxHashSet::default(), FxHashSet::default());
    for _ in 0..3 {
        for &(op, a, b) in &conditions {
            for (op, a, b) in [(op, a, b), (op.mirrored(), b, a)] {
                if !arguments.contains(&a) {
                    continue;
                }
                let small = found.is_small(b, 0);
                if matches!(op, CmpOp::Lt | CmpOp::Le | CmpOp::Eq) && (small || above.contains(&b)) {
                    above.insert(a);
                }
                if matches!(op, CmpOp::Gt | CmpOp::Ge | CmpOp::Eq) && (small || below.contains(&b)) {
                    below.insert(a);
                }
            }
        }
        // `o + n <= M`, `n <= M - o`: what the others are no less than, the rest has for itself.
        for &(op, a, b) in &conditions {
            for (op, a, b) in [(op, a, b), (op.mirrored(), b, a)] {
                if matches!(op, CmpOp::Lt | CmpOp::Le | CmpOp::Eq) {
                    above.extend(found.parts_below(a, b, &below).into_iter().filter(|v| arguments.contains(v)));
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
    /// What was tested to have a sum.
    exact: FxHashSet<(Value, Value)>,
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

    /// Summands that are no greater than some bounded number, if `a` is no greater than `b`, and those of `below` have
    /// a bound below.
    fn parts_below(&self, a: Value, b: Value, below: &FxHashSet<Value>) -> Vec<Value> {
        let has_least = |v: &Value| below.contains(v) || self.is_small(*v, 0);
        let mut parts = Vec::new();
        // A difference from a bounded number does not wrap around, if what is taken away has a bound below.
        let whole = match self.defs.binary(b, BinOp::Sub) {
            Some((whole, less)) if has_least(&less) => whole,
            _ => b,
        };
        if !self.is_small(whole, 0) || !self.summands(a, &mut parts, 0) {
            return Vec::new();
        }
        let least = parts.iter().filter(|v| has_least(v)).count();
        let alone = |v: &Value| least == parts.len() || least + 1 == parts.len() && !has_least(v);
        parts.iter().copied().filter(alone).collect()
    }

    /// The parts of a sum that does not wrap around.
    fn summands(&self, v: Value, out: &mut Vec<Value>, depth: u32) -> bool {
        match self.defs.binary(v, BinOp::Add) {
            Some((a, b)) if depth < 4 => {
                let exact = self.exact.contains(&(a, b)) || self.exact.contains(&(b, a));
                exact && self.summands(a, out, depth + 1) && self.summands(b, out, depth + 1)
            }
            Some(_) => false,
            None => {
                out.push(v);
                true
            }
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
