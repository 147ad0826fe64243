//! Value numbering: which value of tile IR is an earlier one again, computed by the same operation of the same operands
//! where the earlier one is seen. It is written once, so that text has the operations that the IR of it has when it is
//! read.

use super::control::assigned;
use ptoc_ir::tile::{Kernel, Op, Region, Value, Var};
use rustc_hash::FxHashMap;

/// Values that are others again.
#[derive(Default)]
pub(super) struct Numbering {
    first: FxHashMap<Value, Value>,
    /// How often each variable may have changed so far.
    changes: FxHashMap<Var, u32>,
}

/// Operations that were met in the open regions, without what they define.
type Known = Vec<FxHashMap<String, Value>>;

impl Numbering {
    /// Of a kernel.
    pub fn of(kernel: &Kernel) -> Numbering {
        let mut numbering = Numbering::default();
        let mut known = vec![FxHashMap::default()];
        numbering.statements(&kernel.prologue, kernel, &mut known);
        numbering.statements(&kernel.body, kernel, &mut known);
        numbering
    }

    /// The value that it is again, or itself.
    pub fn first(&self, value: Value) -> Value {
        self.first.get(&value).copied().unwrap_or(value)
    }

    fn statements(&mut self, region: &Region, kernel: &Kernel, known: &mut Known) {
        for stmt in region {
            if let Some((dst, key)) = stmt.op.def().zip(self.key(&stmt.op, kernel)) {
                match known.iter().rev().find_map(|open| open.get(&key)) {
                    Some(first) => {
                        self.first.insert(dst, *first);
                    }
                    None => {
                        if let Some(open) = known.last_mut() {
                            open.insert(key, dst);
                        }
                    }
                }
            }
            if let Op::Set { var, .. } = &stmt.op {
                *self.changes.entry(*var).or_default() += 1;
            }
            // A loop's body does not see what its condition computes, as the text has it, and sees what iterations
            // before it have set.
            for inner in stmt.op.regions() {
                self.changed(&stmt.op);
                known.push(FxHashMap::default());
                self.statements(inner, kernel, known);
                known.pop();
            }
            self.changed(&stmt.op);
        }
    }

    /// The variables that a statement's blocks set may be others.
    fn changed(&mut self, op: &Op) {
        let mut vars = Vec::new();
        op.regions().for_each(|r| assigned(r, &mut vars));
        vars.into_iter().for_each(|var| *self.changes.entry(var).or_default() += 1);
    }

    /// An operation by its operands: two with one key give one value.
    fn key(&self, op: &Op, kernel: &Kernel) -> Option<String> {
        let first = |v: &Value| self.first(*v);
        let to = kernel.values[op.def()?].ty;
        Some(match op {
            Op::Unary { op, a, .. } => format!("{to} {op} {}", first(a)),
            Op::Binary { op, a, b, .. } => format!("{to} {op} {} {}", first(a), first(b)),
            Op::Compare { op, a, b, .. } => format!("{op}? {} {}", first(a), first(b)),
            Op::Select { cond, a, b, .. } => format!("{to} ? {} {} {}", first(cond), first(a), first(b)),
            Op::Convert { a, round, saturate, .. } => format!("{to} {round:?} {saturate} {}", first(a)),
            Op::Bitcast { a, .. } => format!("{to} = {}", first(a)),
            Op::Get { var, .. } => format!("{var} {}", self.changes.get(var).copied().unwrap_or_default()),
            Op::Const { value, .. } => format!("{to} {}", value.bits),
            _ => return None,
        })
    }
}
