//! Bounds of every access of tile IR: proved here, or tested when the kernel runs.
//!
//! Elaboration proves or checks an index where a window is made, and says why in the author's words. This pass trusts
//! none of that. It walks the finished kernel, keeps what conditions, loops and checks say at each place ([`Facts`]),
//! and derives from each access what must hold for it to stay inside ([`obligations()`]): the element of a tile array,
//! the window and the valid shape in the tile, row and column in the valid shape, every point of a window and of a nest
//! in its tensor or tile, the entries of tables that are looked up, the address that TASSIGN binds, the windows that an
//! instruction's index operands name. What is not proved ([`prove`]) gets a check in front of it (PA-1002, PA-1003;
//! [`check`]), unless intervals of variables decide it ([`ptoc_ir::analysis::ranges`]). The lowering takes no other
//! kernels: [`verify()`] refuses an access that has neither, and loop IR has a table of what each statement touches and
//! by what that is in bounds ([`Verdict::rows`]). [`unproved`] lists what has no proof, for tests.
//!
//! Taken on trust is what a launch guarantees (dimensions and sizes of tensors), and that the data of instructions that
//! take indices from tiles (MGATHER, TGATHER, ..) is tested where it is read: their lowering does that.

mod check;
mod claim;
mod obligations;
mod points;
mod prove;
mod table;
mod verify;

use check::Checks;
use claim::{Bound, Claim};
use cranelift_entity::EntityRef;
use obligations::obligations;
use prove::Prover;
use ptoc_diagnostics::{Account, Code, Span};
use ptoc_ir::analysis::facts::Facts;
use ptoc_ir::analysis::inequalities;
use ptoc_ir::scalar;
use ptoc_ir::tile::{CheckId, Const, Kernel, Op, Region, Stmt, Ty, Value};
use ptoc_isa::{BinOp, Target, UnOp};
use ptoc_tensor::DType;
use rustc_hash::FxHashSet;
use table::Touched;

pub use table::{AccessBounds, of_module};
pub use verify::verify;

/// An access that nothing shows to be inside.
#[derive(Clone, Debug, PartialEq)]
pub struct Unproved {
    /// What would be wrong.
    pub code: Code,
    /// What is asked for, as a check would say it.
    pub what: String,
    /// The statement.
    pub span: Span,
}

/// What was decided of the accesses of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Bounds that follow from what is known at the access.
    pub proved: usize,
    /// Bounds with a check in front of the access.
    pub checked: usize,
    /// By what each thing that a statement touches is in bounds.
    pub rows: Vec<AccessBounds>,
}

/// The kernel with a check in front of each access that has no proof; `None`: all have one. Where the steps of
/// `account` are spent, more accesses get checks.
pub fn settled(kernel: &Kernel, target: &Target, account: Account<'_>) -> (Option<Kernel>, Verdict) {
    let (open, touched) = find(kernel, target, Effort::Of(account));
    let bounds: usize = touched.iter().map(|t| t.bounds).sum();
    if open.is_empty() {
        return (None, Verdict { proved: bounds, checked: 0, rows: table::rows(kernel, &touched, &[], &[]) });
    }
    let mut out = kernel.clone();
    let first = CheckId::new(out.checks.len());
    let mut checks = Checks::new(&mut out);
    checks.insert(&open);
    checks.finish();
    let removed = ptoc_ir::analysis::ranges::settle_from(&mut out, first);
    let rows = table::rows(kernel, &touched, &open, &removed);
    let checked = open.len() - removed.len();
    (Some(out), Verdict { proved: bounds - checked, checked, rows })
}

/// The accesses of `kernel` whose bounds do not follow from what is known there.
pub fn unproved(kernel: &Kernel, target: &Target) -> Vec<Unproved> {
    let told = |(_, span, bound): Open| Unproved { code: bound.what.code(), what: bound.what.text(kernel), span };
    find(kernel, target, Effort::Full).0.into_iter().map(told).collect()
}

/// A bound that is not proved: the number of its statement (in the order of a walk into regions), the source.
type Open = (usize, Span, Bound);

/// What proofs may take.
#[derive(Clone, Copy)]
enum Effort<'b> {
    /// As many steps as one proof may take.
    Full,
    /// Few steps.
    Little,
    /// Many, for what was proved before.
    Ample,
    /// As many while the account has some, then few.
    Of(Account<'b>),
}

fn find(kernel: &Kernel, target: &Target, effort: Effort<'_>) -> (Vec<Open>, Vec<Touched>) {
    let mut walk = BoundsChecker {
        kernel,
        target,
        effort,
        facts: Facts::default(),
        zero: None,
        at: 0,
        shown: FxHashSet::default(),
        order: Vec::new(),
        open: Vec::new(),
        touched: Vec::new(),
    };
    walk.launch();
    walk.region(&kernel.prologue);
    walk.at = 0;
    for dim in &kernel.grid {
        walk.facts.ge_const(dim.index, 0);
        walk.facts.counts(dim.index, dim.extent);
    }
    walk.region(&kernel.body);
    (walk.open, walk.touched)
}

struct BoundsChecker<'k> {
    kernel: &'k Kernel,
    target: &'k Target,
    effort: Effort<'k>,
    facts: Facts,
    /// The constant 0, once it was seen.
    zero: Option<Value>,
    /// Statements before this one.
    at: usize,
    /// What was proved before in this region or one around it: most statements use the tiles of others.
    shown: FxHashSet<Claim>,
    /// The same in the order of the proofs, so that a region takes its own back.
    order: Vec<Claim>,
    open: Vec<Open>,
    touched: Vec<Touched>,
}

impl BoundsChecker<'_> {
    /// What the launch guarantees: dimensions and sizes of tensors.
    fn launch(&mut self) {
        for dim in self.kernel.dims.values() {
            self.facts.ge_const(dim.value, 0);
            self.facts.dimension(dim.value);
        }
        for tensor in self.kernel.tensors.values() {
            self.facts.tensor(tensor.shape.clone());
        }
    }

    fn region(&mut self, region: &Region) {
        let shown = self.order.len();
        for stmt in region {
            self.stmt(stmt);
        }
        for claim in self.order.drain(shown..) {
            self.shown.remove(&claim);
        }
    }

    /// A region in which a condition holds, or does not.
    fn nested(&mut self, condition: Option<(Value, bool)>, region: &Region) {
        let mark = self.facts.mark();
        if let Some((cond, holds)) = condition {
            self.facts.learn(cond, holds);
        }
        self.region(region);
        self.facts.forget(mark);
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let at = self.at;
        self.at += 1;
        match &stmt.op {
            Op::For(f) => {
                let mark = self.facts.mark();
                if let Some(least) = self.facts.min_of(f.lo) {
                    self.facts.ge_const(f.index, least);
                }
                self.facts.le(f.lo, f.index, 0);
                self.facts.counts(f.index, f.hi);
                self.region(&f.body);
                self.facts.forget(mark);
            }
            Op::If(i) => {
                self.nested(Some((i.cond, true)), &i.then);
                self.nested(Some((i.cond, false)), &i.els);
                // What follows is on the path that goes on.
                if let Some(holds) = i.holds_behind() {
                    self.facts.learn(i.cond, holds);
                }
            }
            Op::While(w) => {
                let mark = self.facts.mark();
                self.region(&w.head);
                self.nested(Some((w.cond, true)), &w.body);
                self.facts.forget(mark);
            }
            Op::Scope(s) => self.nested(None, &s.body),
            Op::Check { cond, .. } => self.facts.learn(*cond, true),
            op => {
                self.access(at, stmt);
                self.define(op);
            }
        }
    }

    fn access(&mut self, at: usize, stmt: &Stmt) {
        for mut group in obligations(self.kernel, self.target, &self.facts, &stmt.op) {
            if let Some(thing) = group.first().map(|b| b.what.thing()) {
                self.touched.push(Touched { at, span: stmt.span, thing, bounds: group.len() });
            }
            if group.iter().all(|b| self.shown.contains(&b.claim)) {
                continue;
            }
            // What is empty touches nothing.
            let mark = self.facts.mark();
            for claim in group.iter().map(|b| &b.claim) {
                claim.unless_empty.iter().for_each(|v| self.facts.ge_const(*v, 1));
                // Nor is a point whose table has no entry that counts.
                let Some(nest) = &claim.nest else { continue };
                nest.entries.iter().for_each(|e| self.facts.ge_const(e.extent, 1));
                for (at, bound) in &nest.guards {
                    match (at.value(), at.as_number()) {
                        (Some(v), _) => self.facts.le(v, *bound, -1),
                        (_, Some(n)) => self.facts.ge_const(*bound, n.saturating_add(1)),
                        _ => {}
                    }
                }
            }
            let effort = match self.effort {
                Effort::Full => inequalities::Effort::Full,
                Effort::Little => inequalities::Effort::Little,
                Effort::Ample => inequalities::Effort::Ample,
                Effort::Of(account) if account.left() == 0 => inequalities::Effort::Little,
                Effort::Of(_) => inequalities::Effort::Full,
            };
            let prover = Prover::new(&self.facts, effort);
            let all = prover.both(&group);
            let open: Vec<Bound> = group.extract_if(.., |b| !all && !prover.alone(&b.claim)).collect();
            if let Effort::Of(account) = self.effort {
                // Whoever gets none makes do with few.
                account.spend(prover.taken() as usize * inequalities::Prover::STEP).ok();
            }
            self.facts.forget(mark);
            group.into_iter().for_each(|bound| self.show(bound.claim));
            // From here on in this region there is a check.
            for bound in open {
                self.believe(&bound.claim);
                self.show(bound.claim.clone());
                self.open.push((at, stmt.span, bound));
            }
        }
    }

    fn show(&mut self, claim: Claim) {
        if self.shown.insert(claim.clone()) {
            self.order.push(claim);
        }
    }

    fn believe(&mut self, claim: &Claim) {
        // Where nothing is touched, a check says nothing.
        if claim.nest.is_some() || !claim.unless_empty.is_empty() {
            return;
        }
        match (claim.low.as_number(), claim.low.value(), claim.high.as_number(), claim.high.value()) {
            (Some(n), _, _, Some(v)) => self.facts.ge_const(v, n),
            (_, Some(v), Some(n), _) => self.facts.le_const(v, n),
            (_, Some(v), _, Some(u)) => self.facts.le(v, u, 0),
            _ => {}
        }
    }

    fn define(&mut self, op: &Op) {
        let index = |v: Value| self.kernel.values[v].ty == Ty::Index;
        match *op {
            Op::Const { dst, value } => {
                if let Some(c) = Const::as_index(value) {
                    self.facts.constant(dst, c);
                    self.zero = self.zero.or((c == 0).then_some(dst));
                }
            }
            Op::Unary { dst, op: UnOp::Neg, a } if index(dst) => {
                if let Some(zero) = self.zero {
                    self.facts.defined(dst, BinOp::Sub, zero, a);
                }
            }
            Op::Binary { dst, op, a, b } if index(dst) => self.facts.defined(dst, op, a, b),
            Op::Binary { dst, op: op @ (BinOp::And | BinOp::Or), a, b } if self.kernel.values[dst].ty == Ty::BOOL => {
                self.facts.combined(dst, op == BinOp::And, a, b);
            }
            Op::Unary { dst, op: UnOp::Not, a } if self.kernel.values[dst].ty == Ty::BOOL => self.facts.negated(dst, a),
            Op::Compare { dst, op, a, b } if index(a) => self.facts.compared(dst, op, a, b),
            Op::Select { dst, a, b, .. } if index(dst) => self.facts.selected(dst, a, b),
            Op::Convert { dst, a, .. } if index(dst) => match self.kernel.values[a].ty {
                Ty::D(d) if d.size() < 8 && scalar::float(Ty::D(d)).is_none() => {
                    if matches!(d, DType::U8 | DType::U16 | DType::U32 | DType::Bool) {
                        self.facts.ge_const(dst, 0);
                    }
                    self.facts.width(dst, 8 * d.size() as u32);
                }
                _ => {}
            },
            _ => {}
        }
    }
}
