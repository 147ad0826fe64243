//! Normalised loops: loops that do not start at a constant: `a..b` is walked through as `0..b - a`, with `a` added to
//! the counter. So it is known how far an iteration is from the first and from the last, whatever `a` is.

use ptoc_ir::tile::{Const, Kernel, Op, Region, Stmt, Ty, Value, ValueData};
use ptoc_isa::BinOp;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// How deep two computations are compared.
const DEPTH: u32 = 8;

/// The kernel with all such loops from 0.
pub(super) fn from_zero(kernel: &Kernel) -> Cow<'_, Kernel> {
    let mut ops = FxHashMap::default();
    collect(&kernel.prologue, &mut ops);
    collect(&kernel.body, &mut ops);
    if !any(&kernel.body, &ops) {
        return Cow::Borrowed(kernel);
    }
    let mut out = kernel.clone();
    let mut body = std::mem::take(&mut out.body);
    region(&mut out, &mut body, &ops);
    out.body = body;
    Cow::Owned(out)
}

type Ops<'k> = FxHashMap<Value, &'k Op>;

fn collect<'k>(region: &'k Region, ops: &mut Ops<'k>) {
    for stmt in region {
        ops.extend(stmt.op.def().map(|v| (v, &stmt.op)));
        stmt.op.regions().for_each(|r| collect(r, ops));
    }
}

/// Whether this loop starts at something that is computed.
fn moves(op: &Op, ops: &Ops) -> bool {
    matches!(op, Op::For(f) if !matches!(ops.get(&f.lo), Some(Op::Const { .. })))
}

fn any(region: &Region, ops: &Ops) -> bool {
    region.iter().any(|s| moves(&s.op, ops) || s.op.regions().any(|r| any(r, ops)))
}

fn region(kernel: &mut Kernel, stmts: &mut Region, ops: &Ops) {
    for mut stmt in std::mem::take(stmts) {
        let from_zero = moves(&stmt.op, ops);
        let span = stmt.span;
        match &mut stmt.op {
            Op::For(f) => {
                region(kernel, &mut f.body, ops);
                if from_zero {
                    let mut value = |name| kernel.values.push(ValueData { ty: Ty::Index, name, span });
                    let (zero, length) = (value(None), value(None));
                    let counter = kernel.values[f.index].clone();
                    let counter = kernel.values.push(counter);
                    stmts.push(Stmt { op: Op::Const { dst: zero, value: Const::index(0) }, span });
                    let hi = match length_of(f.lo, f.hi, ops) {
                        Some(known) => known,
                        None => {
                            stmts.push(Stmt { op: binary(length, BinOp::Sub, f.hi, f.lo), span });
                            length
                        }
                    };
                    f.body.insert(0, Stmt { op: binary(f.index, BinOp::Add, counter, f.lo), span });
                    (f.index, f.lo, f.hi) = (counter, zero, hi);
                }
            }
            Op::If(i) => {
                region(kernel, &mut i.then, ops);
                region(kernel, &mut i.els, ops);
            }
            Op::While(w) => {
                region(kernel, &mut w.head, ops);
                region(kernel, &mut w.body, ops);
            }
            Op::Scope(s) => region(kernel, &mut s.body, ops),
            _ => {}
        }
        stmts.push(stmt);
    }
}

fn binary(dst: Value, op: BinOp, a: Value, b: Value) -> Op {
    Op::Binary { dst, op, a, b }
}

/// What is added to `lo` to make `hi`, if it is computed so.
fn length_of(lo: Value, hi: Value, ops: &Ops) -> Option<Value> {
    match ops.get(&hi)? {
        Op::Binary { op: BinOp::Add, a, b, .. } if same(*a, lo, ops, 0) => Some(*b),
        Op::Binary { op: BinOp::Add, a, b, .. } if same(*b, lo, ops, 0) => Some(*a),
        _ => None,
    }
}

/// Whether two values are computed alike.
fn same(a: Value, b: Value, ops: &Ops, depth: u32) -> bool {
    let go = |a: &Value, b: &Value| same(*a, *b, ops, depth + 1);
    a == b
        || depth < DEPTH
            && match (ops.get(&a), ops.get(&b)) {
                (Some(Op::Const { value: x, .. }), Some(Op::Const { value: y, .. })) => x == y,
                (Some(Op::Binary { op: p, a, b, .. }), Some(Op::Binary { op: q, a: c, b: d, .. })) => {
                    p == q && go(a, c) && go(b, d)
                }
                _ => false,
            }
}
