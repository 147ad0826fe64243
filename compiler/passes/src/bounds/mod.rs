//! Bounds of every access of tile IR: proved here, or tested when the kernel runs.
//!
//! Elaboration proves or checks an index where a window is made, and says why in the author's words. This pass trusts none of
//! that. It walks the finished kernel, keeps what conditions, loops and checks say at each place ([`Facts`]), and derives
//! from each access what must hold for it to stay inside ([`obligations`]): the element of a tile array, the window and the valid
//! shape in the tile, row and column in the valid shape, first and last element of a window in its tensor, the address
//! that TASSIGN binds, the windows that an instruction's index operands name. What is not proved ([`prove`]) gets a check in front
//! of it (PA-1002, PA-1003), unless intervals of variables decide it ([`ptoc_ir::ranges`]). The lowering
//! takes no other kernels. [`unproved`] lists what has no proof, for tests.
//!
//! Not looked at are the points of nests ([`ptoc_ir::tile::Copy`]) with guards, and sides of nests that have tables, a swizzle or elements
//! of another type than their tensor: there elaboration's word is all there is.

mod check;
mod obligations;
mod prove;

use check::Checks;
use obligations::{Bound, Claim, obligations};
use prove::Prover;
use ptoc_diagnostics::{Code, Span};
use ptoc_ir::facts::Facts;
use ptoc_ir::scalar;
use ptoc_ir::tile::{Const, Kernel, Op, Region, Stmt, TensorId, Ty, Value};
use ptoc_isa::{BinOp, Target, UnOp};
use ptoc_tensor::DType;
use rustc_hash::FxHashSet;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Bounds that follow from what is known at the access.
    pub proved: usize,
    /// Bounds with a check in front of the access.
    pub checked: usize,
}

/// The kernel with a check in front of each access that has no proof; `None`: all have one.
pub fn settled(kernel: &Kernel, target: &Target) -> (Option<Kernel>, Verdict) {
    let (mut open, proved) = find(kernel, target);
    let checked = open.len();
    if open.is_empty() {
        return (None, Verdict { proved, checked });
    }
    let mut out = kernel.clone();
    let mut checks = Checks::new(&mut out);
    checks.insert(&mut open);
    checks.finish();
    let removed = ptoc_ir::ranges::settle(&mut out);
    (Some(out), Verdict { proved: proved + removed, checked: checked - removed })
}

/// The accesses of `kernel` that carry neither a proof nor a check.
pub fn unproved(kernel: &Kernel, target: &Target) -> Vec<Unproved> {
    let told = |(_, span, bound): Open| Unproved { code: bound.what.code(), what: bound.what.text(kernel), span };
    find(kernel, target).0.into_iter().map(told).collect()
}

/// A bound that is not proved: the number of its statement (in the order of a walk into regions), the source.
type Open = (usize, Span, Bound);

fn find(kernel: &Kernel, target: &Target) -> (Vec<Open>, usize) {
    let mut walk = Walk {
        kernel,
        target,
        facts: Facts::default(),
        zero: None,
        at: 0,
        shown: FxHashSet::default(),
        order: Vec::new(),
        open: Vec::new(),
        proved: 0,
    };
    walk.launch();
    walk.region(&kernel.prologue);
    walk.at = 0;
    for dim in &kernel.grid {
        walk.facts.ge_const(dim.index, 0);
        walk.facts.le(dim.index, dim.extent, -1);
    }
    walk.region(&kernel.body);
    (walk.open, walk.proved)
}

struct Walk<'k> {
    kernel: &'k Kernel,
    target: &'k Target,
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
    proved: usize,
}

impl Walk<'_> {
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
                self.facts.le(f.index, f.hi, -1);
                self.region(&f.body);
                self.facts.forget(mark);
            }
            Op::If(i) => {
                self.nested(Some((i.cond, true)), &i.then);
                self.nested(Some((i.cond, false)), &i.els);
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
        for mut group in obligations(self.kernel, self.target, &stmt.op) {
            if group.iter().all(|b| self.shown.contains(&b.claim)) {
                self.proved += group.len();
                continue;
            }
            // What is empty touches nothing.
            let mark = self.facts.mark();
            group.iter().flat_map(|b| &b.claim.unless_empty).for_each(|v| self.facts.ge_const(*v, 1));
            let prover = Prover::new(&self.facts);
            let all = prover.both(&group);
            let open: Vec<Bound> = group.extract_if(.., |b| !all && !prover.alone(&b.claim)).collect();
            self.facts.forget(mark);
            self.proved += group.len();
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

/// Elements of a tensor: the product of its extents.
fn extents(kernel: &Kernel, tensor: TensorId) -> &[Value] {
    &kernel.tensors[tensor].shape
}
