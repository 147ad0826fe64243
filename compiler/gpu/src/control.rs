//! Statements outside `Lanes`: control flow, scalars, and which statement has which emitter.

use crate::dependences::{self, Key, Touched};
use crate::emit::{Emit, Targets, Val};
use crate::resident::single;
use crate::unsupported::{RefusalCode, Refused};
use ptoc_ir::loops::{Addr, For, If, Op, PrintPart, Reg, Region, Scope, Start, Stride, While, operands};
use ptoc_ptx::{Arith, Cmp, Op as Ptx, Src, Type};

/// Whether control reaches the point after a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    On,
    Ended,
}

impl Emit<'_> {
    pub(crate) fn region(&mut self, region: &Region) -> Result<Flow, Refused> {
        for stmt in region {
            self.at(stmt.span);
            if self.statement(&stmt.op)? == Flow::Ended {
                return Ok(Flow::Ended);
            }
        }
        Ok(Flow::On)
    }

    pub(crate) fn statement(&mut self, op: &Op) -> Result<Flow, Refused> {
        match op {
            Op::Get { dst, var } => self.get(*dst, *var),
            Op::Set { var, value } => {
                let ty = crate::emit::whole(self.func.regs[*value].ty);
                let (var, value) = (self.var(*var), self.src(*value));
                self.b.set(var, ty, value);
            }
            Op::Load { dst, ty, addr } => self.scalar_load(*dst, *ty, addr),
            Op::Store { ty, addr, value } => self.scalar_store(*ty, addr, *value),
            Op::Atomic(atomic) => self.atomic(atomic),
            Op::For(f) if single(f, |r| self.known(r).map(|n| n as i64)) => {
                let first = self.known(f.lo).unwrap_or(0);
                self.values[f.index] = Some(Val::Known(first));
                return self.region(&f.body);
            }
            Op::For(f) => {
                if !self.iterations(f)? && !self.solo(op)? && !self.nest(f) {
                    self.counted(f)?;
                }
            }
            Op::Lanes(lanes) => self.lanes(lanes),
            Op::If(i) => return self.conditional(i),
            Op::While(w) => {
                if !self.solo(op)? {
                    self.conditional_loop(w)?;
                }
            }
            Op::Scope(s) => self.scope(s)?,
            Op::Break(label) | Op::Leave(label) => {
                let exit = self.labels[label].exit;
                self.b.bra(exit);
                return Ok(Flow::Ended);
            }
            Op::Continue(label) => {
                if let Some(next) = self.labels[label].next {
                    self.b.bra(next);
                }
                return Ok(Flow::Ended);
            }
            Op::Contract(c) => self.contract(c),
            Op::Reduce(r) => self.reduce(r),
            Op::Gather(g) => self.gather(g),
            Op::Sort(s) => self.sort(s),
            Op::Merge(m) => self.merge_lists(m),
            Op::Check { cond, check, args } => self.check(*cond, *check, args),
            Op::Watch(_) => return self.refuse(RefusalCode::Watch, "code that is watched runs on the CPU"),
            Op::Print { .. } => return self.refuse(RefusalCode::Print, "`print` has no translation yet"),
            // A hint.
            Op::Fetch { .. } => {}
            Op::Join { .. } => return self.refuse(RefusalCode::Internal, "`join` outside `lanes`"),
            Op::Nibble { .. } => return self.refuse(RefusalCode::Internal, "half bytes of words"),
            Op::Const { .. }
            | Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Fma { .. }
            | Op::Compare { .. }
            | Op::Select { .. }
            | Op::Cast { .. } => self.compute(op),
        }
        Ok(Flow::On)
    }

    /// A copy: the variable may be set while the copy is still wanted.
    pub(crate) fn get(&mut self, dst: Reg, var: ptoc_ir::loops::VarId) {
        let var = self.var(var);
        let ty = crate::emit::whole(self.func.regs[dst].ty);
        let value = self.b.mov(ty, var);
        self.define(dst, value);
    }

    pub(crate) fn var(&self, var: ptoc_ir::loops::VarId) -> ptoc_ptx::VReg {
        self.vars[var].unwrap_or(self.tid)
    }

    /// What was touched when a loop or scope is entered or left: at any turn, all that it touches may be pending.
    fn merge(&mut self, regions: &[&Region]) {
        if self.solo {
            return;
        }
        let mut all = Touched::default();
        regions.iter().for_each(|r| dependences::of_region(r, self.keys(), &mut all));
        self.pending.add(&all);
    }

    fn counted(&mut self, f: &For) -> Result<(), Refused> {
        let (lo, hi) = (self.src(f.lo), self.src(f.hi));
        let (head, next, exit) = (self.b.label(), self.b.label(), self.b.label());
        let index = self.b.mov(Type::B64, lo);
        self.define(f.index, index);
        self.labels.insert(f.label, Targets { exit, next: Some(next) });
        self.merge(&[&f.body]);
        let entry = self.pending.clone();
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::S64, index, hi);
        self.b.bra_if(over, true, exit);
        self.region(&f.body)?;
        self.b.place(next);
        self.b.push(Ptx::Arith(Arith::Add, Type::S64), &[index], &[index.into(), Src::Imm(f.step as u64)]);
        self.b.bra(head);
        self.b.place(exit);
        self.pending = entry;
        Ok(())
    }

    fn conditional(&mut self, i: &If) -> Result<Flow, Refused> {
        let cond = self.reg(i.cond);
        let (els, join) = (self.b.label(), self.b.label());
        let before = self.pending.clone();
        self.b.bra_if(cond, false, els);
        let mut after: Option<Touched> = None;
        let mut flow = Flow::Ended;
        for (n, region) in [&i.then, &i.els].into_iter().enumerate() {
            if n == 1 {
                self.b.place(els);
                self.pending = before.clone();
            }
            if self.region(region)? == Flow::On {
                if n == 0 {
                    self.b.bra(join);
                }
                flow = Flow::On;
                match &mut after {
                    Some(after) => after.add(&self.pending),
                    None => after = Some(self.pending.clone()),
                }
            }
        }
        self.b.place(join);
        self.pending = after.unwrap_or_default();
        Ok(flow)
    }

    fn conditional_loop(&mut self, w: &While) -> Result<(), Refused> {
        let (head, exit) = (self.b.label(), self.b.label());
        self.labels.insert(w.label, Targets { exit, next: Some(head) });
        self.merge(&[&w.head, &w.body]);
        let entry = self.pending.clone();
        self.b.place(head);
        if self.region(&w.head)? == Flow::On {
            let cond = self.reg(w.cond);
            self.b.bra_if(cond, false, exit);
            if self.region(&w.body)? == Flow::On {
                self.b.bra(head);
            }
        }
        self.b.place(exit);
        self.pending = entry;
        Ok(())
    }

    fn scope(&mut self, s: &Scope) -> Result<(), Refused> {
        let exit = self.b.label();
        self.labels.insert(s.label, Targets { exit, next: None });
        self.merge(&[&s.body]);
        let entry = self.pending.clone();
        self.region(&s.body)?;
        self.b.place(exit);
        self.pending = entry;
        Ok(())
    }

    /// The first thread's value of a register becomes everyone's, by way of shared memory.
    pub(crate) fn broadcast(&mut self, value: ptoc_ptx::VReg, ty: Type) -> ptoc_ptx::VReg {
        let mut told = Touched::default();
        told.reads.insert(Key::Control);
        let at = ptoc_ptx::Address::at(self.smem);
        let before = self.b.guard.replace((self.first, true));
        self.b.st(ptoc_ptx::Space::Shared, ty, at, value);
        self.b.guard = before;
        self.order(&told);
        self.b.ld(ptoc_ptx::Space::Shared, ty, at)
    }
}

fn of_addr(addr: &Addr, f: &mut dyn FnMut(Reg)) {
    f(addr.offset);
    if let Stride::Reg(reg) = addr.stride {
        f(reg);
    }
    addr.gather.iter().for_each(|g| f(*g));
}

/// The registers that a statement reads, its regions aside.
pub(crate) fn reads(op: &Op, f: &mut dyn FnMut(Reg)) {
    operands(op).0.into_iter().flatten().for_each(&mut *f);
    let strides = |list: &[Stride], f: &mut dyn FnMut(Reg)| {
        for stride in list {
            if let Stride::Reg(reg) = stride {
                f(*reg);
            }
        }
    };
    match op {
        Op::Set { value, .. } => f(*value),
        Op::Load { addr, .. } | Op::Store { addr, .. } | Op::Fetch { addr, .. } | Op::Join { addr, .. } => {
            of_addr(addr, f);
        }
        Op::Atomic(a) => {
            of_addr(&a.addr, f);
            a.expected.iter().for_each(|r| f(*r));
            f(a.value);
        }
        Op::For(x) => [x.lo, x.hi].into_iter().for_each(f),
        Op::Lanes(x) => f(x.count),
        Op::If(x) => f(x.cond),
        Op::While(x) => f(x.cond),
        Op::Contract(c) => {
            [c.m, c.n, c.k].into_iter().for_each(&mut *f);
            [&c.d, &c.a, &c.b].into_iter().for_each(|addr| of_addr(addr, f));
            for pair in [c.d_strides, c.a_strides, c.b_strides] {
                strides(&[pair.0, pair.1], f);
            }
            if let Start::At { addr, row, col, .. } = &c.start {
                of_addr(addr, f);
                strides(&[*row, *col], f);
            }
        }
        Op::Reduce(r) => {
            [r.rows, r.cols].into_iter().for_each(&mut *f);
            [&r.d, &r.a].into_iter().for_each(|addr| of_addr(addr, f));
        }
        Op::Gather(g) => {
            [g.rows, g.cols, g.total].into_iter().for_each(&mut *f);
            [&g.d, &g.table, &g.index].into_iter().for_each(|addr| of_addr(addr, f));
        }
        Op::Sort(s) => {
            [s.rows, s.cols].into_iter().for_each(&mut *f);
            [&s.d, &s.a, &s.index].into_iter().for_each(|addr| of_addr(addr, f));
        }
        Op::Merge(m) => {
            m.counts().for_each(&mut *f);
            m.read().iter().map(|r| &r.at).chain([&m.d]).for_each(|addr| of_addr(addr, f));
        }
        Op::Check { cond, args, .. } => {
            f(*cond);
            args.iter().for_each(|r| f(*r));
        }
        Op::Print { parts } => {
            for part in parts {
                match part {
                    PrintPart::Text(_) => {}
                    PrintPart::Scalar { value, .. } => f(*value),
                    PrintPart::Matrix { addr, rows, cols, .. } => {
                        of_addr(addr, f);
                        [*rows, *cols].into_iter().for_each(&mut *f);
                    }
                }
            }
        }
        _ => {}
    }
}
