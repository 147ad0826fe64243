//! Relevance slice: which scalars matter to the order of pipes.

use super::code::Def;
use super::flat::Flat;
use super::touch::{TouchedObject, touches};
use cranelift_entity::EntitySet;
use ptoc_ir::tile::{Kernel, Op, Region, Value, Var};
use ptoc_isa::{BinOp, UnOp};
use rustc_hash::FxHashMap;

impl Flat<'_> {
    /// Which scalars decide something: who waits for whom, where an access is, which way control goes.
    pub(super) fn want(&mut self) {
        let mut found: FxHashMap<Var, Vec<Value>> = FxHashMap::default();
        let mut gets: FxHashMap<Value, Var> = FxHashMap::default();
        let mut work = Vec::new();
        let mut roots = Vec::new();
        seeds(&self.code.used, &self.code.kernel.body, &mut found, &mut gets, &mut roots);
        roots.iter().for_each(|v| *self.code.uses.entry(*v).or_default() += 1);
        work.extend(roots);
        while let Some(v) = work.pop() {
            if !self.wanted.insert(v) {
                continue;
            }
            let mut operands = Vec::new();
            self.operands(v, &mut operands);
            operands.iter().for_each(|v| *self.code.uses.entry(*v).or_default() += 1);
            work.extend(operands);
            if let Some(&var) = gets.get(&v)
                && self.vars.insert(var)
            {
                work.extend(found.get(&var).into_iter().flatten());
            }
        }
        for (&var, values) in &found {
            let counts = values.iter().all(|v| match self.code.defs[self.code.root(*v)] {
                Def::Const(_) => true,
                Def::Binary(BinOp::Add | BinOp::Sub, a, b) => {
                    gets.get(&a) == Some(&var) && matches!(self.code.defs[b], Def::Const(_))
                }
                _ => false,
            });
            if counts && self.vars.contains(&var) {
                self.code.counting.insert(var);
            }
        }
    }

    pub(super) fn operands(&self, v: Value, out: &mut Vec<Value>) {
        match self.code.defs[v] {
            Def::Unary(_, a) | Def::Same(a) => out.push(a),
            Def::Binary(_, a, b) | Def::Compare(_, a, b) | Def::AtMost(a, b, _) | Def::Test(_, a, b) => {
                out.extend([a, b]);
            }
            Def::Select(c, a, b) => out.extend([c, a, b]),
            Def::Given(_) | Def::Const(_) | Def::Slot(_) | Def::Bits(_) => {}
            Def::Vague => out.extend(self.code.opaque.get(&v).into_iter().flatten()),
        }
    }

    pub(super) fn decided_by_wanted(&self, cond: Value) -> bool {
        match self.code.defs[cond] {
            Def::Compare(_, a, b) => {
                [a, b].iter().any(|v| self.wanted.contains(v) && !matches!(self.code.defs[*v], Def::Const(_)))
            }
            Def::Same(a) | Def::Unary(UnOp::Not, a) => self.decided_by_wanted(a),
            Def::Binary(BinOp::And | BinOp::Or, a, b) => self.decided_by_wanted(a) || self.decided_by_wanted(b),
            _ => false,
        }
    }
}

/// The conditions of all checks.
pub(super) fn conditions(kernel: &Kernel) -> Vec<Value> {
    fn collect(region: &Region, out: &mut Vec<Value>) {
        for stmt in region {
            if let Op::Check { cond, .. } = stmt.op {
                out.push(cond);
            }
            stmt.op.regions().for_each(|r| collect(r, out));
        }
    }
    let mut out = Vec::new();
    collect(&kernel.prologue, &mut out);
    collect(&kernel.body, &mut out);
    out
}

/// The values that decide something, and what variables are set to.
fn seeds(
    used: &EntitySet<Value>,
    region: &Region,
    found: &mut FxHashMap<Var, Vec<Value>>,
    gets: &mut FxHashMap<Value, Var>,
    out: &mut Vec<Value>,
) {
    for stmt in region {
        match &stmt.op {
            Op::Get { dst, var } => {
                gets.insert(*dst, *var);
            }
            Op::Set { var, value } => found.entry(*var).or_default().push(*value),
            Op::Sync(sync) => sync.for_each_value(&mut |v| out.push(v)),
            Op::Assign { element, addr, .. } => out.extend(element.iter().chain([addr])),
            Op::For(f) => out.extend([f.lo, f.hi]),
            Op::If(i) => out.push(i.cond),
            Op::While(w) => out.push(w.cond),
            _ => {}
        }
        for touch in touches(stmt, used) {
            match touch.what {
                TouchedObject::Tile(t) => {
                    out.extend(t.element);
                    out.extend(t.origin.iter().flat_map(|(r, c)| [*r, *c]));
                }
                TouchedObject::View(_, v, _) => {
                    out.push(v.offset);
                    out.extend(&v.strides);
                }
                TouchedObject::Element(_, offset) => out.push(offset),
                TouchedObject::Tensor(_) => {}
            }
        }
        stmt.op.regions().for_each(|r| seeds(used, r, found, gets, out));
    }
}
