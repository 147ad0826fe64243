//! `while` loops that count: `while k < n { ..; k = k + 1; }` is walked through as a `for` is.

use ptoc_ir::tile::{Kernel, Label, Op, Region, Stmt, Value, Var, While};
use ptoc_isa::{BinOp, CmpOp};
use rustc_hash::{FxHashMap, FxHashSet};

/// How a `while` counts.
#[derive(Clone, Debug)]
pub(super) struct Driver {
    /// The variable that is one more with each iteration.
    pub(super) var: Var,
    /// What the condition reads of it.
    pub(super) index: Value,
    /// Other readings of the same iteration, before it is one more.
    pub(super) same: Vec<Value>,
    /// What it stays below; not computed from anything that changes inside.
    pub(super) hi: Value,
}

/// The loops of a kernel that count.
pub(super) fn drivers(kernel: &Kernel) -> FxHashMap<Label, Driver> {
    let mut ops = FxHashMap::default();
    let mut loops = Vec::new();
    collect(&kernel.prologue, &mut ops, &mut loops);
    collect(&kernel.body, &mut ops, &mut loops);
    loops.into_iter().filter_map(|w| Some((w.label, driver(w, &ops)?))).collect()
}

fn collect<'k>(region: &'k [Stmt], ops: &mut FxHashMap<Value, &'k Op>, loops: &mut Vec<&'k While>) {
    for stmt in region {
        ops.extend(stmt.op.def().map(|v| (v, &stmt.op)));
        if let Op::While(w) = &stmt.op {
            loops.push(w);
        }
        stmt.op.regions().for_each(|r| collect(r, ops, loops));
    }
}

fn driver(w: &While, ops: &FxHashMap<Value, &Op>) -> Option<Driver> {
    // The condition only looks.
    if !w.head.iter().all(|s| s.op.is_pure() || matches!(s.op, Op::Get { .. })) {
        return None;
    }
    let (index, hi) = match ops.get(&w.cond)? {
        Op::Compare { op: CmpOp::Lt, a, b, .. } => (*a, *b),
        Op::Compare { op: CmpOp::Gt, a, b, .. } => (*b, *a),
        _ => return None,
    };
    let mut inside = FxHashSet::default();
    defined(&w.head, &mut inside);
    defined(&w.body, &mut inside);
    let var = match ops.get(&index)? {
        Op::Get { var, .. } if inside.contains(&index) => *var,
        _ => return None,
    };
    if !settled(hi, &inside, ops, 0) {
        return None;
    }
    // It is written once, in every iteration, and nothing goes on to the next one before that.
    let here = |s: &Stmt| matches!(s.op, Op::Set { var: v, .. } if v == var);
    let at = w.body.iter().position(here)?;
    if sets(&w.body, var) != 1 || goes_on(&w.body, w.label) {
        return None;
    }
    let mut same = Vec::new();
    reads(&w.head, var, &mut same);
    reads(&w.body[..at], var, &mut same);
    let Op::Set { value, .. } = w.body[at].op else { return None };
    let (a, b) = match ops.get(&value)? {
        Op::Binary { op: BinOp::Add, a, b, .. } => (*a, *b),
        _ => return None,
    };
    let one = |v: Value| matches!(ops.get(&v), Some(Op::Const { value, .. }) if value.bits == 1);
    if !(same.contains(&a) && one(b) || same.contains(&b) && one(a)) {
        return None;
    }
    same.retain(|v| *v != index);
    Some(Driver { var, index, same, hi })
}

fn defined(region: &Region, out: &mut FxHashSet<Value>) {
    for stmt in region {
        out.extend(stmt.op.def());
        if let Op::For(f) = &stmt.op {
            out.insert(f.index);
        }
        stmt.op.regions().for_each(|r| defined(r, out));
    }
}

/// Whether a value is the same in all iterations: from outside, or computed from what is.
fn settled(v: Value, inside: &FxHashSet<Value>, ops: &FxHashMap<Value, &Op>, depth: u32) -> bool {
    if !inside.contains(&v) {
        return true;
    }
    let go = |v: &Value| settled(*v, inside, ops, depth + 1);
    match ops.get(&v) {
        _ if depth > 8 => false,
        Some(Op::Const { .. }) => true,
        Some(Op::Unary { a, .. } | Op::Convert { a, .. }) => go(a),
        Some(Op::Binary { a, b, .. } | Op::Compare { a, b, .. }) => go(a) && go(b),
        Some(Op::Select { cond, a, b, .. }) => go(cond) && go(a) && go(b),
        _ => false,
    }
}

fn sets(region: &Region, var: Var) -> usize {
    let one = |s: &Stmt| {
        let own = usize::from(matches!(s.op, Op::Set { var: v, .. } if v == var));
        own + s.op.regions().map(|r| sets(r, var)).sum::<usize>()
    };
    region.iter().map(one).sum()
}

fn goes_on(region: &Region, label: Label) -> bool {
    region.iter().any(|s| matches!(s.op, Op::Continue(l) if l == label) || s.op.regions().any(|r| goes_on(r, label)))
}

fn reads(region: &[Stmt], var: Var, out: &mut Vec<Value>) {
    for stmt in region {
        if let Op::Get { dst, var: v } = &stmt.op
            && *v == var
        {
            out.push(*dst);
        }
        stmt.op.regions().for_each(|r| reads(r, var, out));
    }
}
