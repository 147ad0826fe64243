//! Launch-invariant operands: arrays that no block writes: what they hold is the same for the length of a launch.

use ptoc_ir::loops::{Addr, Base, Func, Op, Region};
use rustc_hash::FxHashSet;

/// Numbers of the tensors that a function may write.
pub(crate) fn written(func: &Func) -> FxHashSet<u32> {
    let mut out = FxHashSet::default();
    region(&func.body, &mut out);
    out
}

fn region(of: &Region, out: &mut FxHashSet<u32>) {
    for stmt in of {
        let addr = match &stmt.op {
            Op::Store { addr, .. } | Op::Join { addr, .. } => addr,
            Op::Atomic(a) => &a.addr,
            Op::Contract(c) => &c.d,
            Op::Reduce(r) => &r.d,
            Op::Sort(s) => &s.d,
            Op::Merge(m) => &m.d,
            Op::Gather(g) => {
                g.places.iter().for_each(|(addr, _)| note(addr, out));
                &g.d
            }
            Op::For(f) => {
                region(&f.body, out);
                continue;
            }
            Op::Lanes(l) => {
                region(&l.body, out);
                continue;
            }
            Op::If(i) => {
                region(&i.then, out);
                region(&i.els, out);
                continue;
            }
            Op::While(w) => {
                region(&w.head, out);
                region(&w.body, out);
                continue;
            }
            Op::Scope(s) => {
                region(&s.body, out);
                continue;
            }
            Op::Const { .. }
            | Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Fma { .. }
            | Op::Compare { .. }
            | Op::Select { .. }
            | Op::Cast { .. }
            | Op::Get { .. }
            | Op::Set { .. }
            | Op::Load { .. }
            | Op::Fetch { .. }
            | Op::Nibble { .. }
            | Op::Break(_)
            | Op::Continue(_)
            | Op::Leave(_)
            | Op::Check { .. }
            | Op::Watch(_)
            | Op::Print { .. } => continue,
        };
        note(addr, out);
    }
}

fn note(addr: &Addr, out: &mut FxHashSet<u32>) {
    if let Base::Tensor(n) = addr.base {
        out.insert(n);
    }
}
