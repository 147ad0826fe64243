//! Loops of scalars whose iterations may come in any order: each is one thread's.
//!
//! That is so where an iteration stores what no other one touches ([`Rows::conditions`]), and where iterations update
//! the same elements by one operation whose order does not show: atomics whose old value nobody asks for, and
//! `t[i] = t[i] + x` on integers, which become atomics here. A check that fails ends the iterations of its thread; then
//! the first one that failed runs once more, in all threads, and reports itself.

use crate::dependences::{Key, Touched};
use crate::emit::Emit;
use crate::ops::pure;
use crate::rows::{RowAccess, Rows};
use crate::unsupported::Refused;
use ptoc_ir::loops::{Addr, Atomic, BinOp, For, MemTy, Op, Reg, Stmt, operands};
use ptoc_isa::AtomicOp;
use ptoc_ptx::{Address, Arith, AtomOp, Cmp, Op as Ptx, Round, Space, Src, Type, VReg};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// The body of a loop as a thread runs it.
struct Iterations<'a> {
    body: Vec<Cow<'a, Stmt>>,
    touched: Touched,
    checks: bool,
    /// Stored elements that are loaded as well: a check may ask for what was stored before it.
    loads_stored: bool,
}

impl Emit<'_> {
    /// A loop whose iterations may come in any order; false if it is none.
    ///
    /// # Errors
    /// What has no translation.
    pub(crate) fn iterations(&mut self, f: &For) -> Result<bool, Refused> {
        if self.solo {
            return Ok(false);
        }
        let Some(it) = self.any_order(f) else { return Ok(false) };
        let mut touched = it.touched.clone();
        if it.checks {
            touched.writes.insert(Key::Control);
            self.tells = true;
        }
        self.order(&touched);
        let failed = Address::at(self.smem);
        if it.checks {
            let none = self.b.mov(Type::B64, Src::Imm(i64::MAX as u64));
            let before = self.b.guard.replace((self.first, true));
            self.b.st(Space::Shared, Type::B64, failed, none);
            self.b.guard = before;
            self.b.push(Ptx::Bar(0), &[], &[]);
        }
        let (lo, hi) = (self.src(f.lo), self.src(f.hi));
        let tid = self.b.cvt(Type::U64, Type::U32, Round::None, self.tid);
        let index = self.b.arith(Arith::MadLo, Type::S64, &[tid.into(), Src::Imm(f.step as u64), lo]);
        self.define(f.index, index);
        let (head, exit) = (self.b.label(), self.b.label());
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::S64, index, hi);
        self.b.bra_if(over, true, exit);
        self.solo = true;
        for stmt in &it.body {
            self.at(stmt.span);
            match &stmt.op {
                Op::Check { cond, .. } => self.end_iterations(*cond, index, failed, exit),
                op => {
                    self.statement(op)?;
                }
            }
        }
        self.solo = false;
        let step = Src::Imm(f.step as u64 * u64::from(self.threads));
        self.advance(index, Type::S64, step);
        self.b.bra(head);
        self.b.place(exit);
        if it.checks {
            self.first_failure(f, &it, failed)?;
        }
        Ok(true)
    }

    /// Notes an iteration whose check does not hold, and leaves.
    fn end_iterations(&mut self, cond: Reg, index: VReg, failed: Address, exit: ptoc_ptx::Label) {
        let on = self.b.label();
        let cond = self.reg(cond);
        self.b.bra_if(cond, true, on);
        let old = self.b.reg(ptoc_ptx::Class::B64);
        // Both are at least 0, so that the order without sign is theirs.
        let min = Ptx::Atom(Space::Shared, AtomOp::Min, Type::U64);
        self.b.push(min, &[old], &[Src::Addr(failed), index.into()]);
        self.b.bra(exit);
        self.b.place(on);
    }

    /// The first iteration that failed, where one has, in all threads. Its check fails again, and ends the CTA.
    fn first_failure(&mut self, f: &For, it: &Iterations<'_>, failed: Address) -> Result<(), Refused> {
        self.b.push(Ptx::Bar(0), &[], &[]);
        self.pending = Touched::default();
        self.pending.reads.insert(Key::Control);
        let at = self.b.ld(Space::Shared, Type::B64, failed);
        let none = self.b.setp(Cmp::Eq, Type::S64, at, Src::Imm(i64::MAX as u64));
        let on = self.b.label();
        self.b.bra_if(none, true, on);
        let before = self.pending.clone();
        self.define(f.index, at);
        for stmt in &it.body {
            self.at(stmt.span);
            let effect = matches!(stmt.op, Op::Store { .. } | Op::Atomic(_));
            if !effect || it.loads_stored {
                self.statement(&stmt.op)?;
            }
        }
        self.pending = before;
        self.b.place(on);
        Ok(())
    }

    /// The iterations of a loop, where their order does not show.
    fn any_order<'f>(&self, f: &'f For) -> Option<Iterations<'f>> {
        let body = with_updates(&f.body, &self.used_once(&f.body));
        let keys = self.keys();
        let mut touched = Touched::default();
        // Elements that are updated, with the operation.
        let mut updated: FxHashMap<Key, (AtomicOp, bool, MemTy)> = FxHashMap::default();
        let mut accesses = Vec::new();
        let mut checks = false;
        for stmt in &body {
            match &stmt.op {
                Op::Load { addr, .. } => {
                    touched.reads.insert(keys.of(addr));
                    accesses.push(RowAccess::of(stmt)?);
                }
                Op::Store { addr, .. } => {
                    touched.writes.insert(keys.of(addr));
                    accesses.push(RowAccess::of(stmt)?);
                }
                Op::Atomic(a) => {
                    let how = (a.op, a.unsigned, a.ty);
                    let old_value = self.used.contains(&a.dst) && !self.replaced(&f.body, a);
                    if !commutes(a) || old_value || *updated.entry(keys.of(&a.addr)).or_insert(how) != how {
                        return None;
                    }
                }
                Op::Check { .. } => checks = true,
                // A hint.
                Op::Fetch { .. } => {}
                op if pure(op) => {}
                _ => return None,
            }
        }
        if touched.writes.is_empty() && updated.is_empty() {
            return None;
        }
        let others = touched.reads.iter().chain(&touched.writes);
        if others.into_iter().any(|key| updated.contains_key(key)) {
            return None;
        }
        let known = |reg| self.known(reg).map(|bits| bits as i64);
        // Numbers of iterations are compared without sign.
        if checks && self.intervals[f.lo].lo < 0 {
            return None;
        }
        let mut rows = Rows::new(self.func, f.index, known(f.lo), &known);
        rows.statements(&f.body);
        let most = self.intervals[f.hi].hi.checked_sub(self.intervals[f.lo].lo)?;
        let holds = |c: &crate::rows::Condition| {
            let rows = if c.rows == 0 { Some(0) } else { c.rows.checked_mul((most - 1).max(0)) };
            c.limit_reg.is_none() && rows.and_then(|r| r.checked_add(c.plus)).is_some_and(|sum| sum <= c.limit)
        };
        if !rows.conditions(&accesses)?.iter().all(holds) {
            return None;
        }
        let loads_stored = touched.reads.intersection(&touched.writes).next().is_some();
        touched.writes.extend(updated.keys());
        Some(Iterations { body, touched, checks, loads_stored })
    }

    /// Whether the atomic stands for a load and a store of the body, whose old value is nobody else's.
    fn replaced(&self, body: &[Stmt], a: &Atomic) -> bool {
        body.iter().any(|s| matches!(s.op, Op::Load { dst, .. } if dst == a.dst))
    }

    /// Registers of the body that one statement of it reads, once.
    fn used_once(&self, body: &[Stmt]) -> FxHashSet<Reg> {
        let mut uses: FxHashMap<Reg, u32> = FxHashMap::default();
        for stmt in body {
            crate::control::reads(&stmt.op, &mut |reg| *uses.entry(reg).or_default() += 1);
        }
        uses.into_iter().filter(|(_, n)| *n == 1).map(|(reg, _)| reg).collect()
    }
}

/// Updates of an element that give the same in any order.
fn commutes(a: &Atomic) -> bool {
    let float = matches!(a.ty, MemTy::F16 | MemTy::BF16 | MemTy::F32) || a.ty.is_f8();
    match a.op {
        AtomicOp::Add => !float,
        AtomicOp::Max | AtomicOp::Min | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => true,
        AtomicOp::Exchange | AtomicOp::Cas => false,
    }
}

/// The body with each `t[i] = t[i] + x` of integers as one update: a load, an operation on what it loaded, and a store
/// of the result to where it came from.
fn with_updates<'f>(body: &'f [Stmt], once: &FxHashSet<Reg>) -> Vec<Cow<'f, Stmt>> {
    let mut all: Vec<Cow<'f, Stmt>> = body.iter().map(Cow::Borrowed).collect();
    for (n, stmt) in body.iter().enumerate() {
        let Op::Store { ty, addr, value } = stmt.op else { continue };
        let Some((load, join, atomic)) = update(&body[..n], ty, addr, value, once) else { continue };
        all[n] = Cow::Owned(Stmt { op: Op::Atomic(Box::new(atomic)), span: stmt.span });
        // A constant that nobody reads stands for each.
        for dead in [load, join] {
            let dst = operands(&body[dead].op).1.unwrap_or(value);
            all[dead] = Cow::Owned(Stmt { op: Op::Const { dst, bits: 0 }, span: body[dead].span });
        }
    }
    all
}

/// The load, the operation, and what they are with a store behind them.
fn update(before: &[Stmt], ty: MemTy, at: Addr, value: Reg, once: &FxHashSet<Reg>) -> Option<(usize, usize, Atomic)> {
    if !matches!(ty, MemTy::I32 | MemTy::I64) || at.gather.is_some() || !once.contains(&value) {
        return None;
    }
    let join = before.iter().rposition(|s| operands(&s.op).1 == Some(value))?;
    let Op::Binary { op, a, b, .. } = before[join].op else { return None };
    let (op, unsigned) = match op {
        BinOp::Add => (AtomicOp::Add, false),
        BinOp::Max => (AtomicOp::Max, false),
        BinOp::Min => (AtomicOp::Min, false),
        BinOp::MaxU => (AtomicOp::Max, true),
        BinOp::MinU => (AtomicOp::Min, true),
        BinOp::And => (AtomicOp::And, false),
        BinOp::Or => (AtomicOp::Or, false),
        BinOp::Xor => (AtomicOp::Xor, false),
        _ => return None,
    };
    let loaded = |reg: Reg| {
        let load = before.iter().rposition(|s| operands(&s.op).1 == Some(reg))?;
        let Op::Load { ty: of, addr, .. } = before[load].op else { return None };
        (of == ty && same_place(before, &addr, &at) && once.contains(&reg)).then_some(load)
    };
    let (load, old, value) = match (loaded(a), loaded(b)) {
        (Some(load), None) => (load, a, b),
        (None, Some(load)) => (load, b, a),
        _ => return None,
    };
    // What is stored between the two may be the same element.
    let stored = |s: &Stmt| match &s.op {
        Op::Store { addr, .. } => addr.base == at.base,
        Op::Atomic(a) => a.addr.base == at.base,
        _ => false,
    };
    if before[load..].iter().any(stored) {
        return None;
    }
    Some((load, join, Atomic { dst: old, op, unsigned, ty, addr: at, expected: None, value }))
}

/// The same element: of one base, by offsets that are computed alike.
fn same_place(body: &[Stmt], a: &Addr, b: &Addr) -> bool {
    a.base == b.base && a.gather.is_none() && alike(body, a.offset, b.offset, 8)
}

/// Registers that hold the same: they are one, or made by one operation on such registers.
fn alike(body: &[Stmt], a: Reg, b: Reg, depth: u32) -> bool {
    if a == b {
        return true;
    }
    if depth == 0 {
        return false;
    }
    let made = |reg: Reg| body.iter().rfind(|s| operands(&s.op).1 == Some(reg)).map(|s| &s.op);
    match (made(a), made(b)) {
        (Some(Op::Const { bits: x, .. }), Some(Op::Const { bits: y, .. })) => x == y,
        (Some(Op::Binary { op: p, a: x, b: y, .. }), Some(Op::Binary { op: q, a: z, b: w, .. })) => {
            p == q && alike(body, *x, *z, depth - 1) && alike(body, *y, *w, depth - 1)
        }
        (Some(Op::Cast { op: p, a: x, .. }), Some(Op::Cast { op: q, a: z, .. })) => {
            p == q && alike(body, *x, *z, depth - 1)
        }
        (Some(Op::Load { ty: p, addr: x, .. }), Some(Op::Load { ty: q, addr: z, .. })) => {
            let stores = body.iter().any(|s| matches!(s.op, Op::Store { .. } | Op::Atomic(_)));
            !stores
                && p == q
                && x.base == z.base
                && x.gather.is_none()
                && z.gather.is_none()
                && alike(body, x.offset, z.offset, depth - 1)
        }
        _ => false,
    }
}
