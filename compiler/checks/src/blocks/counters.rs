//! Variables that count: set once before a `while`, and in every iteration of it increased by the same number. Blocks
//! that take every so manieth tile are written so.

use ptoc_ir::analysis::poly::Definitions;
use ptoc_ir::tile::{Kernel, Label, Op, Region, Ty, Value, Var};
use ptoc_isa::BinOp;
use rustc_hash::{FxHashMap, FxHashSet};

/// Variables that are looked at; a kernel with more is not written by hand.
const MOST: usize = 256;

/// `first + n * step` at the begin of iteration n.
#[derive(Clone, Debug)]
pub(super) struct Counter {
    pub(super) first: Value,
    pub(super) step: Value,
    /// The loop that counts.
    pub(super) label: Label,
    /// Where it is read before it is increased.
    pub(super) gets: FxHashSet<Value>,
}

/// The variables of a kernel that count.
pub(super) fn find(kernel: &Kernel, defs: &Definitions<'_>, launch: &FxHashSet<Value>) -> FxHashMap<Var, Counter> {
    let mut sets: FxHashMap<Var, Vec<(Value, Option<Label>)>> = FxHashMap::default();
    let mut inside: FxHashMap<Label, FxHashSet<Value>> = FxHashMap::default();
    collect(&kernel.body, None, &mut sets, &mut inside);
    let mut out = FxHashMap::default();
    if sets.len() > MOST {
        return out;
    }
    for (var, sets) in sets {
        let &[(first, outside), (next, Some(label))] = &sets[..] else { continue };
        if outside == Some(label) || kernel.vars[var].ty != Ty::Index {
            continue;
        }
        let Some((a, b)) = defs.binary(next, BinOp::Add) else { continue };
        let own = |v: Value| matches!(defs.of(v), Some(Op::Get { var: of, .. }) if *of == var);
        let step = match (own(a), own(b)) {
            (true, false) => b,
            (false, true) => a,
            _ => continue,
        };
        // The step is the same in all iterations.
        let moves = inside.get(&label).is_some_and(|defined| defined.contains(&step)) && !launch.contains(&step);
        let mut gets = FxHashSet::default();
        if !moves && before(&kernel.body, label, var, &mut gets) {
            out.insert(var, Counter { first, step, label, gets });
        }
    }
    out
}

/// Assignments in program order, with the `while` in whose body they stand directly; and what each `while` defines.
fn collect(
    region: &Region,
    direct: Option<Label>,
    sets: &mut FxHashMap<Var, Vec<(Value, Option<Label>)>>,
    inside: &mut FxHashMap<Label, FxHashSet<Value>>,
) {
    for stmt in region {
        match &stmt.op {
            Op::Set { var, value } => sets.entry(*var).or_default().push((*value, direct)),
            Op::While(w) => {
                let mut defined = FxHashSet::default();
                defines(&w.head, &mut defined);
                defines(&w.body, &mut defined);
                inside.insert(w.label, defined);
                collect(&w.head, None, sets, inside);
                collect(&w.body, Some(w.label), sets, inside);
            }
            op => op.regions().for_each(|r| collect(r, None, sets, inside)),
        }
    }
}

fn defines(region: &Region, out: &mut FxHashSet<Value>) {
    for stmt in region {
        out.extend(stmt.op.def());
        if let Op::For(f) = &stmt.op {
            out.insert(f.index);
        }
        stmt.op.regions().for_each(|r| defines(r, out));
    }
}

/// The reads of `var` in the loop of that label before it is set there. False if the loop is not found.
fn before(region: &Region, label: Label, var: Var, out: &mut FxHashSet<Value>) -> bool {
    region.iter().any(|stmt| match &stmt.op {
        Op::While(w) if w.label == label => {
            gets(&w.head, var, out);
            let end = w.body.iter().position(|s| matches!(s.op, Op::Set { var: v, .. } if v == var));
            w.body[..end.unwrap_or(0)].iter().for_each(|s| one(&s.op, var, out));
            true
        }
        op => op.regions().any(|r| before(r, label, var, out)),
    })
}

fn gets(region: &Region, var: Var, out: &mut FxHashSet<Value>) {
    region.iter().for_each(|s| one(&s.op, var, out));
}

fn one(op: &Op, var: Var, out: &mut FxHashSet<Value>) {
    if let Op::Get { dst, var: v } = op
        && *v == var
    {
        out.insert(*dst);
    }
    op.regions().for_each(|r| gets(r, var, out));
}
