//! Live-ins of a block: which statements of the prologue a block has to repeat: those whose values its body uses.

use ptoc_ir::tile::{Kernel, Op, Stmt, TensorId, Value, Var};
use rustc_hash::FxHashSet;

#[derive(Default)]
struct Needs {
    values: FxHashSet<Value>,
    vars: FxHashSet<Var>,
}

/// For each statement of the prologue, whether the body depends on it. Checks belong to the launch alone.
/// `more` are values beside these that its code has a use for.
pub(super) fn needed(kernel: &Kernel, more: &[Value]) -> Vec<bool> {
    let mut needs = Needs::default();
    needs.values.extend(more);
    kernel.body.iter().for_each(|s| needs.use_all(s));
    let mut tables = FxHashSet::default();
    kernel.body.iter().for_each(|s| looked_up(s, &mut tables));
    // What a wrong entry of a table is reported with: its row and column.
    needs.values.extend(tables.iter().flat_map(|t| &kernel.tensors[*t].shape));
    let mut wanted: Vec<bool> = kernel
        .prologue
        .iter()
        .rev()
        .map(|stmt| {
            let take = needs.defines_needed(stmt);
            if take {
                needs.use_all(stmt);
            }
            take
        })
        .collect();
    wanted.reverse();
    wanted
}

/// The tensors that copies and products along nests look into for places.
fn looked_up(stmt: &Stmt, out: &mut FxHashSet<TensorId>) {
    let sides = match &stmt.op {
        Op::Copy(c) => vec![&c.dst, &c.src],
        Op::Mma(m) => vec![&m.acc, &m.a, &m.b],
        _ => Vec::new(),
    };
    out.extend(sides.into_iter().flat_map(|s| s.tables()));
    for region in stmt.op.regions() {
        region.iter().for_each(|s| looked_up(s, out));
    }
}

impl Needs {
    fn use_all(&mut self, stmt: &Stmt) {
        stmt.op.for_each_use(&mut |v| {
            self.values.insert(v);
        });
        if let Op::Get { var, .. } = stmt.op {
            self.vars.insert(var);
        }
        for region in stmt.op.regions() {
            region.iter().for_each(|s| self.use_all(s));
        }
    }

    fn defines_needed(&self, stmt: &Stmt) -> bool {
        if let Op::Set { var, .. } = stmt.op {
            return self.vars.contains(&var);
        }
        stmt.op.def().is_some_and(|v| self.values.contains(&v))
            || stmt.op.regions().any(|r| r.iter().any(|s| self.defines_needed(s)))
    }
}
