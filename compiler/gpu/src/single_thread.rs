//! Loops of scalars that store: sorts, merges, updates one by one. The first thread runs them alone, and needs no
//! barrier between their statements; what they leave in variables it tells the others.

use crate::control::Flow;
use crate::dependences::{Key, Keys, Touched};
use crate::emit::{Emit, whole};
use crate::ops::pure;
use crate::unsupported::Refused;
use ptoc_ir::loops::{LTy, Label, Op, Region, VarId};
use ptoc_ptx::{Address, Cmp, Space, Src, Type};

/// Variables that there is room for in the words of control.
const MOST: usize = 8;

/// What a region of scalars does.
#[derive(Default)]
struct Scalars {
    touched: Touched,
    vars: Vec<VarId>,
    /// Labels of its own, and those that it jumps to.
    labels: Vec<Label>,
    jumps: Vec<Label>,
    stores: bool,
}

impl Scalars {
    /// Takes in a statement; false if it is more than scalars.
    fn statement(&mut self, op: &Op, keys: Keys<'_>) -> bool {
        match op {
            Op::Load { addr, .. } => {
                self.touched.solo_reads.insert(keys.of(addr));
            }
            Op::Store { addr, .. } => {
                self.touched.solo_writes.insert(keys.of(addr));
                self.stores = true;
            }
            Op::Atomic(a) => {
                self.touched.solo_writes.insert(keys.of(&a.addr));
                self.stores = true;
            }
            Op::Set { var, .. } if !self.vars.contains(var) => self.vars.push(*var),
            Op::For(f) => self.labels.push(f.label),
            Op::While(w) => self.labels.push(w.label),
            Op::Scope(s) => self.labels.push(s.label),
            Op::Break(label) | Op::Continue(label) | Op::Leave(label) => self.jumps.push(*label),
            Op::Set { .. } | Op::Fetch { .. } | Op::If(_) => {}
            op if pure(op) => {}
            _ => return false,
        }
        op.regions().all(|region| self.region(region, keys))
    }

    fn region(&mut self, region: &Region, keys: Keys<'_>) -> bool {
        region.iter().all(|stmt| self.statement(&stmt.op, keys))
    }
}

impl Emit<'_> {
    /// A loop that the first thread runs alone; false if it is none.
    pub(crate) fn solo(&mut self, op: &Op) -> Result<bool, Refused> {
        let mut scalars = Scalars::default();
        if self.solo || !scalars.statement(op, self.keys()) || !scalars.stores || scalars.vars.len() > MOST {
            return Ok(false);
        }
        if scalars.jumps.iter().any(|label| !scalars.labels.contains(label)) {
            return Ok(false);
        }
        if !scalars.vars.is_empty() {
            scalars.touched.solo_writes.insert(Key::Control);
        }
        self.order(&scalars.touched);
        let skip = self.b.label();
        self.b.bra_if(self.first, false, skip);
        self.solo = true;
        let flow = self.statement(op)?;
        self.solo = false;
        debug_assert!(flow == Flow::On, "its jumps stay inside");
        let word = |e: &Self, n: usize| Address { disp: 8 * n as i32, ..Address::at(e.smem) };
        for (n, var) in scalars.vars.iter().enumerate() {
            let ty = self.func.vars[*var].ty;
            let value = self.var(*var);
            let value = match ty {
                LTy::Bool => self.b.selp(Type::B32, Src::Imm(1), Src::Imm(0), value),
                _ => value,
            };
            self.b.st(Space::Shared, told(ty), word(self, n), value);
        }
        self.b.place(skip);
        if scalars.vars.is_empty() {
            return Ok(true);
        }
        let mut heard = Touched::default();
        heard.reads.insert(Key::Control);
        self.order(&heard);
        for (n, var) in scalars.vars.iter().enumerate() {
            let ty = self.func.vars[*var].ty;
            let value = self.b.ld(Space::Shared, told(ty), word(self, n));
            let value = match ty {
                LTy::Bool => self.b.setp(Cmp::Ne, Type::U32, value, Src::Imm(0)),
                _ => value,
            };
            let var = self.var(*var);
            self.b.set(var, whole(ty), value);
        }
        Ok(true)
    }
}

/// The type in which a variable is told.
fn told(ty: LTy) -> Type {
    if ty == LTy::Bool { Type::B32 } else { whole(ty) }
}
